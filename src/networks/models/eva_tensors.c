/* Recognises networks of the EVA family by timm's tensor names. */
#include <string.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/eva.h"
#include "networks/models/patches.h"
#include "networks/models/position_grid.h"
#include "networks/models/token_tensors.h"
#include "networks/models/vit.h"

static const char outer_names[] =
    "cls_token reg_token pos_embed patch_embed.proj.weight patch_embed.proj.bias rope.freqs norm_pre.weight "
    "norm_pre.bias norm.weight norm.bias fc_norm.weight fc_norm.bias head.weight head.bias " ATT_TOKEN_MAP_NAMES;
/* Tensors of a block. */
static const char block_names[] =
    "norm1.weight norm1.bias attn.qkv.weight attn.qkv.bias attn.q_bias attn.v_bias attn.q_proj.weight "
    "attn.q_proj.bias attn.k_proj.weight attn.k_proj.bias attn.v_proj.weight attn.v_proj.bias attn.norm.weight "
    "attn.norm.bias attn.proj.weight attn.proj.bias gamma_1 norm2.weight norm2.bias mlp.fc1.weight mlp.fc1.bias "
    "mlp.fc1_g.weight mlp.fc1_g.bias mlp.fc1_x.weight mlp.fc1_x.bias mlp.norm.weight mlp.norm.bias mlp.fc2.weight "
    "mlp.fc2.bias gamma_2";

static bool has_part(const att_tensors *file, int block, const char *name)
{
    return att_checkpoint_has(file, "blocks.%d.%s", block, name);
}

static bool attends(const att_tensors *file, int block)
{
    return has_part(file, block, "attn.qkv.weight") || has_part(file, block, "attn.q_proj.weight");
}

/* BEiT, a ViT with relative positions, has EVA's names, too. A Perception Encoder without LayerScale has the names of a
 * ViT with a norm before the blocks, as CLIP; but that has no pooling by attention, and a last norm. */
bool att_eva_claims(const att_tensors *file)
{
    static const char *const own[] = {"rope.freqs", "blocks.0.gamma_1", "blocks.0.attn.q_bias",
                                      "blocks.0.attn.q_proj.weight"};
    if (att_vit_table_rows(file) > 0)
        return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (att_checkpoint_has(file, "%s", own[i]))
            return true;
    return att_token_has_norm(file, "norm_pre") && has_part(file, 0, "attn.qkv.weight") &&
           (att_checkpoint_has(file, "attn_pool.latent") || !att_token_has_norm(file, "norm"));
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Reads the attention of the first block that has one: other blocks may have a module in its place. */
static void read_attention(const att_tensors *file, att_option_values *found)
{
    int depth = (int)att_options_number(found, "depth", 0), block = 0;
    while (block < depth && !attends(file, block))
        block++;
    if (block >= depth)
        return;
    bool fused = has_part(file, block, "attn.qkv.weight");
    bool key_bias = has_part(file, block, fused ? "attn.qkv.bias" : "attn.k_proj.bias");
    bool bias = key_bias || has_part(file, block, fused ? "attn.q_bias" : "attn.q_proj.bias");
    att_options_set(found, "qkv_fused", fused);
    att_options_set(found, "qkv_bias", bias);
    if (bias)
        att_options_set_text(found, "attn_type", key_bias ? ATT_EVA_KEY_BIAS : ATT_EVA_NO_KEY_BIAS);
    att_options_set(found, "scale_attn_norm", has_part(file, block, "attn.norm.weight"));
    att_options_set_text(found, "block_fn", ATT_EVA_BLOCK);
}

static void read_mlp(const att_tensors *file, att_option_values *found)
{
    int width = (int)att_options_number(found, "embed_dim", 1);
    int64_t outputs = att_checkpoint_side(file, 0, "blocks.0.mlp.fc1.weight"),
            inputs = att_checkpoint_side(file, 1, "blocks.0.mlp.fc2.weight");
    bool gated = att_checkpoint_side(file, 0, "blocks.0.mlp.fc1_g.weight") > 0,
         packed = inputs > 0 && outputs == 2 * inputs;
    int64_t pool = att_checkpoint_side(file, 0, "attn_pool.mlp.fc1.weight");
    att_options_set_text(found, "mlp_layer",
                         att_mlp_name(gated    ? ATT_MLP_SWIGLU
                                      : packed ? ATT_MLP_PACKED
                                               : ATT_MLP_PLAIN));
    att_options_set(found, "scale_mlp_norm", has_part(file, 0, "mlp.norm.weight"));
    if (inputs > 0)
        att_options_set(found, "mlp_ratio", att_mlp_ratio(width, inputs));
    if (pool > 0)
        att_options_set(found, "attn_pool_mlp_ratio", att_mlp_ratio(width, pool));
}

static att_status read_norms(att_context *context, const att_tensors *file, att_option_values *found)
{
    bool before = att_token_has_norm(file, "norm"), after = att_token_has_norm(file, "fc_norm");
    if (before && after)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: it has \"norm.weight\" and \"fc_norm.weight\": attscope has no networks with a norm "
                        "before and after the pooling",
                        att_tensors_path(file));
    att_options_set(found, "pre_norm", att_token_has_norm(file, "norm_pre"));
    att_options_set(found, "final_norm", before || after);
    if (before || after)
        att_options_set(found, "fc_norm", after);
    return ATT_OK;
}

/* Of the rotary positions tensors show learned frequencies only. */
static void read_rope(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "rope.freqs", 4, &shape);
    if (!dims)
        return;
    att_options_set_text(found, "rope_type", ATT_EVA_MIXED);
    att_options_set(found, "num_heads", (double)dims[2]);
}

static const att_token_tensors like = {.outer = outer_names,
                                       .block = block_names,
                                       .attends = attends,
                                       .what = "network of the EVA family here",
                                       .places = &att_token_places_of_blocks};

att_foreign att_eva_foreign(const att_context *context, const att_tensors *file)
{
    return att_token_foreign(context, file, &like);
}

att_status att_eva_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    /* Tensors show that there is LayerScale, but not its initial value. */
    static const double unknown_start = 1e-5;
    att_detected_modules detected = {0};
    ATT_TRY(att_token_read_names(context, file, &like, found, &detected));
    ATT_TRY(att_patches_read(context, file, "patch_embed.proj.weight", found));
    att_token_read_heads(file, found);
    read_attention(file, found);
    read_mlp(file, found);
    ATT_TRY(att_token_write_modules(context, file, &detected, found));
    ATT_TRY(read_norms(context, file, found));
    att_token_read_tokens(file, found);
    read_rope(file, found);
    att_options_set(found, "init_values", has_part(file, 0, "gamma_1") ? unknown_start : 0);
    att_token_read_classes(file, found);
    att_positions_read(file, found);
    return ATT_OK;
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

/* The last norm stands before or after the pooling by its kind, unless timm's argument use_fc_norm says otherwise; a
 * file made with another pooling than the variant's differs in that. */
static att_status check_pool(att_context *context, const att_option_sources *u)
{
    const char *own = att_options_text(u->own, "global_pool");
    int expected = (int)att_options_number(u->own, "fc_norm", strcmp(own, "avg") == 0);
    int found = (int)att_options_number(u->found, "fc_norm", expected);
    if (found == expected || att_options_number(u->found, "class_token", 0) == 0 ||
        *att_options_text(u->given, "global_pool"))
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: its last norm is \"%s\", that of %s is \"%s\"; it may pool by the mean (global_pool \"avg\") "
                    "or by the class token (global_pool \"token\"), which the tensors do not show; give global_pool "
                    "(--global-pool)",
                    u->path, found ? "fc_norm" : "norm", u->name, expected ? "fc_norm" : "norm");
}

/* Options that other networks with the same tensors have may be given: rope_type is none, cat or dinov3 without learned
 * frequencies. */
static att_status check_rope(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    const char *given = att_options_text(u->given, "rope_type"), *own = att_options_text(u->own, "rope_type");
    bool mixed = att_checkpoint_has(file, "rope.freqs"), wanted = strcmp(*given ? given : own, ATT_EVA_MIXED) == 0;
    if (wanted && !mixed)
        return att_fail(context, ATT_ERR_MISMATCH,
                        "%s: rope_type \"mixed\" needs frequencies, but there is no tensor "
                        "\"rope.freqs\"",
                        u->path);
    if (*given && mixed && !wanted)
        return att_fail(context, ATT_ERR_MISMATCH,
                        "%s: rope_type is given as %.16s, but the tensor \"rope.freqs\" is of rope_type \"mixed\"",
                        u->path, given);
    return ATT_OK;
}

att_status att_eva_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources)
{
    static const char *const shown[] = {"reg_tokens", "pos_embed",       "pre_norm",       "qkv_fused", "qkv_bias",
                                        "attn_type",  "scale_attn_norm", "scale_mlp_norm", "mlp_layer", NULL};
    ATT_TRY(att_token_check_shown(context, shown, sources));
    ATT_TRY(check_rope(context, file, sources));
    ATT_TRY(att_token_check_map(context, file, sources));
    ATT_TRY(check_pool(context, sources));
    ATT_TRY(att_token_check_heads(context, sources));
    ATT_TRY(att_positions_check(context, file, sources));
    return att_token_check_tokens(context, sources);
}

bool att_eva_regrids(const void *options, const att_option_values *file_options, const char *name, att_shape file,
                     att_shape own, att_regrid *grid)
{
    const att_eva_options *o = options;
    return att_positions_regrid(o->img_size, o->patch_size, o->file_grid, file_options, name, file, own, grid);
}
