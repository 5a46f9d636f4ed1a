/* Recognises ViTs by timm's tensor names. */
#include <math.h>
#include <string.h>

#include <attscope/nn.h>

#include "base/core/error.h"
#include "base/io/tensors.h"
#include "networks/models/checkpoint.h"
#include "networks/models/detected_modules.h"
#include "networks/models/patches.h"
#include "networks/models/token_tensors.h"
#include "networks/models/vit.h"

/* Tensors outside of the blocks. */
static const char outer_names[] =
    "cls_token dist_token reg_token pos_embed rel_pos_bias.relative_position_bias_table "
    "shared_rel_pos.relative_position_bias_table shared_rel_pos.mlp.fc1.weight shared_rel_pos.mlp.fc1.bias "
    "shared_rel_pos.mlp.fc2.weight shared_rel_pos.mlp.fc2.bias patch_embed.proj.weight patch_embed.proj.bias "
    "patch_embed.pixel_norm.weight patch_embed.pixel_norm.bias patch_embed.norm.weight patch_embed.norm.bias "
    "norm_pre.weight norm_pre.bias norm.weight norm.bias "
    "fc_norm.weight fc_norm.bias head.weight head.bias head_dist.weight head_dist.bias " ATT_TOKEN_MAP_NAMES;
/* Tensors of an attention and of an MLP, below their scopes. */
static const char attention_names[] =
    "qkv.weight qkv.bias q_norm.weight q_norm.bias k_norm.weight k_norm.bias sub_norm.weight lambda_q1 lambda_k1 "
    "lambda_q2 lambda_k2 norm.weight norm.bias proj.weight proj.bias q_bias v_bias relative_position_bias_table "
    "rel_pos.relative_position_bias_table rel_pos.mlp.fc1.weight rel_pos.mlp.fc1.bias rel_pos.mlp.fc2.weight "
    "rel_pos.mlp.fc2.bias";
static const char mlp_names[] =
    "fc1.weight fc1.bias fc1_g.weight fc1_g.bias fc1_x.weight fc1_x.bias norm.weight norm.bias fc2.weight fc2.bias";
/* Tensors of a block beside those; and of blocks with attention and MLP in parallel. */
static const char block_names[] = "norm1.weight norm1.bias ls1.gamma norm2.weight norm2.bias ls2.gamma gamma_1 gamma_2";
static const char scaling_names[] =
    "in_norm.weight in_norm.bias in_proj.weight in_proj.bias mlp_bias q_norm.weight q_norm.bias k_norm.weight "
    "k_norm.bias sub_norm.weight lambda_q1 lambda_k1 lambda_q2 lambda_k2 attn_out_proj.weight attn_out_proj.bias "
    "mlp_out_proj.weight mlp_out_proj.bias out_proj.weight out_proj.bias ls.gamma";

/* How the blocks of a file are built. */
typedef enum block_kind { SEQUENTIAL, SCALING, THINGS } block_kind;

static block_kind kind_of(const att_tensors *file)
{
    return att_checkpoint_has(file, "blocks.0.in_proj.weight")            ? SCALING
           : att_checkpoint_has(file, "blocks.0.attns.0.attn.qkv.weight") ? THINGS
                                                                          : SEQUENTIAL;
}

/* One of a pair of parallel branches: "attns.1.norm.weight". */
static bool is_in_pair(const char *rest)
{
    static const char own[] = "norm.weight norm.bias ls.gamma";
    static const char *const scopes[] = {"attns.0", "attns.1", "ffns.0", "ffns.1"};
    for (int i = 0; i < 4; i++) {
        const char *inner = att_checkpoint_below(rest, scopes[i]);
        if (inner && (att_checkpoint_lists(own, inner) || (i < 2 ? att_token_lists_below(attention_names, inner, "attn")
                                                                 : att_token_lists_below(mlp_names, inner, "mlp"))))
            return true;
    }
    return false;
}

/* Whether a block of the file's kind has a tensor of this name. */
static bool is_of_block(const att_tensors *file, const char *rest)
{
    block_kind kind = kind_of(file);
    if (kind == SCALING)
        return att_checkpoint_lists(scaling_names, rest);
    if (kind == THINGS)
        return is_in_pair(rest);
    return att_checkpoint_lists(block_names, rest) || att_token_lists_below(attention_names, rest, "attn") ||
           att_token_lists_below(mlp_names, rest, "mlp");
}

static bool has_attention(const att_tensors *file, int block)
{
    return att_checkpoint_has(file, "blocks.%d.attn.qkv.weight", block);
}

static bool has_half(const att_tensors *file, int block, const char *const *scopes)
{
    bool has = false;
    for (int i = 0; i < att_tensors_count(file); i++) {
        const char *rest;
        if (att_checkpoint_block(att_tensors_at(file, i).name, "blocks", &rest) != block)
            continue;
        for (int s = 0; scopes[s]; s++)
            has = has || strncmp(rest, scopes[s], strlen(scopes[s])) == 0;
    }
    return has;
}

/* A last block without attention, its norm and its LayerScale, or without those of the MLP, is the extra layer. */
static void read_extra_layer(const att_tensors *file, att_option_values *found)
{
    static const char *const first[] = {"norm1.", "attn.", "ls1.", "gamma_1", NULL}, *const second[] = {
                                                                                         "norm2.", "mlp.", "ls2.",
                                                                                         "gamma_2", NULL};
    int last = (int)att_options_number(found, "depth", 0) - 1;
    if (last < 1 || kind_of(file) != SEQUENTIAL)
        return;
    bool attends = has_half(file, last, first), has_mlp = has_half(file, last, second);
    att_options_set_text(found, "extra_layer", attends && has_mlp ? "none" : attends ? "attn" : "mlp");
    if (!attends || !has_mlp)
        att_options_set(found, "depth", last);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Names of one block's parts, by kind. */
typedef struct parts {
    const char *norm, *attention, *qkv, *mlp, *scale;
} parts;
static const parts parts_of[] = {
    [SEQUENTIAL] = {"norm1", "attn.", "attn.qkv", "mlp.", "ls1.gamma"},
    [SCALING] = {"in_norm", "", "in_proj", NULL, "ls.gamma"},
    [THINGS] = {"attns.0.norm", "attns.0.attn.", "attns.0.attn.qkv", "ffns.0.mlp.", "attns.0.ls.gamma"}};

/* Whether block `block` has the tensor "<scope><name>". */
static bool has_part(const att_tensors *file, int block, const char *scope, const char *name)
{
    return att_checkpoint_has(file, "blocks.%d.%s%s", block, scope, name);
}

/* Returns the first block with attention, 0 if there is none: other blocks may have a module in its place. */
static int attending_block(const att_tensors *file, const att_option_values *found)
{
    int depth = (int)att_options_number(found, "depth", 0);
    for (int b = 0; b < depth && kind_of(file) == SEQUENTIAL; b++)
        if (has_attention(file, b))
            return b;
    return 0;
}

static void read_attention(const att_tensors *file, att_option_values *found)
{
    block_kind kind = kind_of(file);
    const parts *names = &parts_of[kind];
    int block = attending_block(file, found);
    bool attends = has_part(file, block, names->qkv, ".weight");
    if (!attends)
        return;
    bool differs = has_part(file, block, names->attention, "sub_norm.weight");
    bool has_own = has_part(file, block, names->attention, "q_bias");
    att_options_set(found, "qkv_bias", has_own || has_part(file, block, names->qkv, ".bias"));
    att_options_set(found, "qk_norm", has_part(file, block, names->attention, "q_norm.weight"));
    att_options_set_text(found, "attn_layer", differs && kind != SCALING ? ATT_VIT_DIFFERENTIAL : "attn");
    att_options_set_text(found, "block_fn",
                         kind == THINGS ? ATT_VIT_THINGS
                         : kind != SCALING
                             ? (has_own || has_part(file, 0, "", "gamma_1") ? ATT_VIT_BEIT : ATT_VIT_BLOCK)
                         : differs ? ATT_VIT_DIFF_SCALING
                                   : ATT_VIT_SCALING);
    bool has_bias = kind == SCALING ? has_part(file, block, differs ? "out_proj" : "attn_out_proj", ".bias")
                                    : has_part(file, block, names->attention, "proj.bias");
    att_options_set(found, "proj_bias", has_bias);
    att_options_set(found, "scale_attn_norm",
                    kind != SCALING && has_part(file, block, names->attention, "norm.weight"));
}

static void read_mlp(const att_tensors *file, att_option_values *found)
{
    const parts *names = &parts_of[kind_of(file)];
    int width = (int)att_options_number(found, "embed_dim", 1);
    const char *mlp = names->mlp ? names->mlp : "-";
    int64_t hidden = names->mlp ? att_checkpoint_side(file, 0, "blocks.0.%sfc1.weight", mlp)
                                : att_checkpoint_side(file, 0, "blocks.0.%s.weight", names->qkv) - 3 * (int64_t)width;
    int64_t gate = att_checkpoint_side(file, 0, "blocks.0.%sfc1_g.weight", mlp);
    bool packed = hidden > 0 && 2 * att_checkpoint_side(file, 1, "blocks.0.%sfc2.weight", mlp) == hidden;
    att_options_set_text(found, "mlp_layer",
                         att_mlp_name(gate > 0 ? ATT_MLP_SWIGLU
                                      : packed ? ATT_MLP_PACKED
                                               : ATT_MLP_PLAIN));
    if (gate > 0 || packed)
        att_options_set_text(found, "act_layer", "silu");
    att_options_set(found, "scale_mlp_norm", names->mlp && has_part(file, 0, names->mlp, "norm.weight"));
    if (hidden > 0 || gate > 0)
        att_options_set(found, "mlp_ratio", att_mlp_ratio(width, gate > 0 ? gate : hidden));
}

static void read_norms(const att_tensors *file, att_option_values *found)
{
    const char *norm = parts_of[kind_of(file)].norm;
    bool has_head = att_token_has_norm(file, "head");
    if (has_part(file, 0, norm, ".weight"))
        att_options_set_text(found, "norm_layer", has_part(file, 0, norm, ".bias") ? "layernorm" : ATT_VIT_RMS_NORM);
    if (!att_token_has_norm(file, "patch_embed.norm"))
        att_options_set_text(found, "embed_norm_layer", "none");
    else
        att_options_set_text(found, "embed_norm_layer",
                             att_checkpoint_has(file, "patch_embed.norm.bias") ? "layernorm" : ATT_VIT_RMS_NORM);
    att_options_set(found, "pixel_norm", att_token_has_norm(file, "patch_embed.pixel_norm"));
    att_options_set(found, "pre_norm", att_token_has_norm(file, "norm_pre"));
    bool last = att_token_has_norm(file, "norm") || att_token_has_norm(file, "fc_norm");
    if (last)
        att_options_set(found, "fc_norm", att_token_has_norm(file, "fc_norm"));
    else if (!has_head) /* a backbone may lack the last norm */
        att_options_set(found, "final_norm", 0);
}

static void read_switches(const att_tensors *file, att_option_values *found)
{
    /* Tensors show that there is LayerScale, but not its initial value. This value has the order of magnitude of DeiT
     * III's. */
    static const double unknown_start = 1e-5;
    bool scales = has_part(file, 0, parts_of[kind_of(file)].scale, "") || has_part(file, 0, "", "gamma_1");
    att_options_set(found, "init_values", scales ? unknown_start : 0);
    att_token_read_classes(file, found);
}

static const att_token_tensors like = {.outer = outer_names,
                                       .is_of_block = is_of_block,
                                       .attends = has_attention,
                                       .what = "ViT or DeiT",
                                       .places = &att_token_places_of_blocks};

att_foreign att_vit_foreign(const att_context *context, const att_tensors *file)
{
    return att_token_foreign(context, file, &like);
}

/* Whether position `row` of a grid with `side` patches in a row is that of MoCo v3, [4 quarter]: sines and cosines of
 * its row, then of its column. Others that compute positions begin with the column. */
static bool is_moco_position(const float *values, int row, int side, int quarter)
{
    enum { TEMPERATURE = 10000 };
    const double most = 1e-4; /* PyTorch's powers and sines in f32, measured: 1.2e-6 */
    bool is = true;
    for (int k = 0; k < 2 * quarter && is; k++) {
        const double angle =
            (k < quarter ? row / side : row % side) * pow(TEMPERATURE, -(double)(k % quarter) / quarter);
        const float *pair = values + (k < quarter ? k : quarter + k);
        is = fabs(pair[0] - sin(angle)) <= most && fabs(pair[quarter] - cos(angle)) <= most;
    }
    return is;
}

/* Whether the positions are those that MoCo v3 computes and keeps, zero for the class token. */
static bool has_moco_positions(const att_tensors *file, int width)
{
    enum { MOST = 1 << 22 };
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, "pos_embed", 3, &shape);
    const int side = dims ? att_patches_side(dims[1] - 1) : 0;
    if (side == 0 || dims[0] != 1 || dims[2] != width || width % 4 || dims[1] * width > MOST || file->whole > 0)
        return false;
    float *values = att_allocate_array(file->context, (size_t)(dims[1] * width), sizeof *values);
    bool has =
        values && att_tensors_read_f32(file, att_tensors_find(file, "pos_embed"), values, dims[1] * width) == ATT_OK;
    for (int i = 0; i < width && has; i++)
        has = values[i] == 0;
    for (int row = 0; row < side * side && has; row++)
        has = is_moco_position(values + (row + 1) * width, row, side, width / 4);
    att_free(file->context, values);
    return has;
}

/* The small ViT of MoCo v3 has heads of 32 channels, others of 64. Its files have the prefix base_encoder or, after a
 * training of the classifier, the positions of MoCo v3. */
static void read_moco(const att_tensors *file, att_option_values *found)
{
    enum { WIDTH = 384 };
    if (att_options_number(found, "embed_dim", 0) == WIDTH &&
        ((file->encoder && strcmp(file->encoder, "base_encoder.") == 0) || has_moco_positions(file, WIDTH)))
        att_options_set(found, "num_heads", 12);
}

att_status att_vit_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    att_detected_modules detected = {0};
    ATT_TRY(att_token_read_names(context, file, &like, found, &detected));
    ATT_TRY(att_patches_read(context, file, "patch_embed.proj.weight", found));
    read_extra_layer(file, found);
    att_token_read_heads(file, found);
    read_moco(file, found);
    read_attention(file, found);
    att_vit_read_relative(file, found);
    read_mlp(file, found);
    ATT_TRY(att_token_write_modules(context, file, &detected, found));
    read_norms(file, found);
    att_token_read_tokens(file, found);
    att_options_set(found, "distilled",
                    att_checkpoint_has(file, "dist_token") || att_checkpoint_has(file, "head_dist.weight"));
    read_switches(file, found);
    att_vit_read_grid(file, found);
    return ATT_OK;
}

/* In timm, a network that pools its class token gets an fc_norm either by mean pooling or by the argument fc_norm. The
 * tensors are the same. */
static att_status check_pool(att_context *context, const att_option_sources *u)
{
    if (att_options_number(u->found, "fc_norm", 0) == 0 || att_options_number(u->found, "class_token", 0) == 0 ||
        att_options_number(u->given, "fc_norm", 0) == 1 || *att_options_text(u->given, "global_pool") ||
        strcmp(att_options_text(u->own, "global_pool"), "token") != 0)
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "%s: the tensor \"fc_norm.weight\" is not one of %s; with it a network pools by the mean "
        "(global_pool \"avg\") or by the class token (global_pool \"token\"), which the tensors do not show; give "
        "global_pool (--global-pool)",
        u->path, u->name);
}

att_status att_vit_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *sources)
{
    static const char *const shown[] = {"reg_tokens",       "distilled",      "pos_embed",      "pre_norm",
                                        "pixel_norm",       "rel_pos_type",   "shared_rel_pos", "norm_layer",
                                        "embed_norm_layer", "qk_norm",        "proj_bias",      "mlp_layer",
                                        "scale_attn_norm",  "scale_mlp_norm", "attn_layer",     NULL};
    ATT_TRY(att_token_check_shown(context, shown, sources));
    ATT_TRY(att_token_check_map(context, file, sources));
    ATT_TRY(check_pool(context, sources));
    ATT_TRY(att_token_check_heads(context, sources));
    ATT_TRY(att_vit_check_grid(context, file, sources));
    return att_token_check_tokens(context, sources);
}
