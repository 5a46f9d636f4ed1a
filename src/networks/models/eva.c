/* EVA (Fang et al., CVPR 2023), EVA-02 (Fang et al., 2024) and ViTs with rotary positions: the Perception Encoder
 * (Bolya et al., 2025), RoPE-ViT (Heo et al., ECCV 2024), DINOv3 (Simeoni et al., 2025) and others, as in timm's eva.
 */
#include <string.h>

#include <attscope/nn.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/eva.h"
#include "networks/models/patches.h"
#include "networks/models/token_ends.h"
#include "networks/models/token_tensors.h"

/* --- options ----------------------------------------------------------------------------------------------------- */

ATT_CHOICES(attention_names, ATT_EVA_NO_KEY_BIAS, ATT_EVA_KEY_BIAS)
ATT_CHOICES(block_names, ATT_EVA_BLOCK, ATT_EVA_POST_NORM)
ATT_CHOICES(rope_names, ATT_EVA_NO_ROPE, ATT_EVA_AXIAL, ATT_EVA_MIXED, ATT_EVA_CENTERED)
ATT_CHOICES(indexing_names, "ij", "xy")

#define EVA(member) ATT_OPTION_AT(att_eva_options, member)
static const att_option eva_options[] = {
    ATT_IMAGE_OPTIONS(att_eva_options),
    ATT_SHARED_OPTIONS(att_eva_options),
    ATT_ATTENTION_DROP_OPTION(att_eva_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]", .help = "pixels of a patch", .low = 1, .high = 65536,
     EVA(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     EVA(embed_dim)},
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "blocks", .low = 1, .high = 1024, EVA(depth)},
    {"num_heads", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "attention heads of a block",
     .not_in_tensors = "the number of heads", .low = 1, .high = 65536, EVA(num_heads)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, EVA(mlp_ratio)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "what the head reads",
     .choice = att_token_pool_name, .not_in_tensors = "the pooling", EVA(global_pool)},
    {"final_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm after the last block", EVA(final_norm)},
    {"fc_norm", .kind = ATT_OPTION_SWITCH, .help = "put that norm after the pooling", EVA(fc_norm)},
    {"class_token", .kind = ATT_OPTION_SWITCH, .help = "with or without a class token", EVA(class_token)},
    {"reg_tokens", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "register tokens", .high = 1024, EVA(reg_tokens)},
    {"pos_embed", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "position embedding: learn or none",
     .choice = att_token_position_name, EVA(pos_embed)},
    {"embed_class", .kind = ATT_OPTION_SWITCH, .help = "position embedding for class token and registers, too",
     EVA(embed_class)},
    {"pre_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm before the first block, and no bias of the patches",
     EVA(pre_norm)},
    {"norm_eps", .kind = ATT_OPTION_REAL, .value = "X", .help = "eps of the norms", .low = 1e-12, .high = 1,
     EVA(norm_eps)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", EVA(qkv_bias)},
    {"qkv_fused", .kind = ATT_OPTION_SWITCH, .help = "one layer for queries, keys and values", EVA(qkv_fused)},
    {"attn_type", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "with qkv_bias: eva, where keys have no bias, or rope, where they have one", .choice = attention_names,
     EVA(attn_type)},
    {"scale_attn_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm of the heads' results", EVA(scale_attn_norm)},
    {"scale_mlp_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm of the MLP's hidden channels", EVA(scale_mlp_norm)},
    {"init_values", .kind = ATT_OPTION_REAL, .value = "X", .help = "LayerScale with this initial value; 0: none",
     .high = 1e3, .compare_presence = true, EVA(init_values)},
    {"mlp_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "mlp, or gated by SiLU: swiglu, swiglu_packed",
     .choice = att_mlp_name, EVA(mlp_layer)},
    {"block_fn", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "kind of the blocks", .choice = block_names,
     EVA(block_fn)},
    {"rope_type", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "rotary positions: none, cat (of each axis), dinov3 (also, from -1 to 1) or mixed (learned frequencies)",
     .choice = rope_names, EVA(rope_type)},
    {"rope_temperature", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "nearly the ratio of the largest to the smallest wavelength of rotary positions", .low = 1e-3, .high = 1e9,
     EVA(rope_temperature)},
    {"rope_grid_offset", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "number added to the rotary positions of patches", .low = -1e6, .high = 1e6, EVA(rope_grid_offset)},
    {"rope_grid_indexing", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "first axis of rotary positions: ij, rows, or xy, columns", .choice = indexing_names,
     EVA(rope_grid_indexing)},
    {"rope_rotate_half", .kind = ATT_OPTION_SWITCH, .help = "turn channels half a head apart, not neighbours",
     EVA(rope_rotate_half)},
    {"ref_feat_shape", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "grid of patches to which rotary positions \"cat\" are scaled; 0: not scaled", .high = 65536,
     EVA(ref_feat_shape)},
    {"attn_pool_num_heads", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "heads of global_pool \"map\"; 0: num_heads", .high = 65536, EVA(attn_pool_num_heads)},
    {"attn_pool_mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "mlp_ratio of global_pool \"map\"; 0: that of the blocks", .high = 64, EVA(attn_pool_mlp_ratio)},
    {"file_grid", .kind = ATT_OPTION_SIDES, .low = 1, .high = 65536, .not_compared = true, .internal = true,
     EVA(file_grid)},
};

ATT_ASSERT_SETTINGS_FIT(att_eva_options);
static const att_option_table eva_table = {eva_options, sizeof eva_options / sizeof *eva_options,
                                           sizeof(att_eva_options)};

/* --- arguments of timm's constructor ------------------------------------------------------------------------------ */

/* Tensors show the kind of the MLP. */
static const att_accepted_argument eva_arguments[] = {
    {"pos_drop_rate", ATT_ANY_VALUE},       {"patch_drop_rate", ATT_ANY_VALUE},
    {"proj_drop_rate", ATT_ANY_VALUE},      {"dynamic_img_size", ATT_ANY_VALUE},
    {"dynamic_img_pad", "false"},           {"head_init_scale", ATT_ANY_VALUE},
    {"rope_shift_coords", ATT_ANY_VALUE},   {"rope_jitter_coords", ATT_ANY_VALUE},
    {"rope_rescale_coords", ATT_ANY_VALUE}, {"swiglu_mlp", ATT_ANY_VALUE},
    {"swiglu_align_to", ATT_ANY_VALUE},     {"qk_norm", "false"},
    {"attn_only_layer_scale", "false"},     {NULL, NULL},
};

static const att_switch_argument switch_arguments[] = {
    {.key = "no_embed_class", .option = "embed_class", .opposite = true},
    {.key = "use_pre_transformer_norm", .option = "pre_norm"},
    {.key = "use_fc_norm", .option = "fc_norm"},
    {.key = "scale_mlp", .option = "scale_mlp_norm"},
    {.key = "scale_attn_inner", .option = "scale_attn_norm"},
    {.key = "use_abs_pos_emb", .option = "pos_embed", .texts = {"none", "learn"}},
    {.key = "use_post_norm", .option = "block_fn", .texts = {ATT_EVA_BLOCK, ATT_EVA_POST_NORM}},
    {.key = NULL},
};

/* timm's use_rot_pos_emb false means rope_type "none". */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (fact->kind != ATT_FACT_NUMBERS || fact->count != 1)
        return false;
    if (strcmp(key, "num_reg_tokens") == 0) {
        if (!att_options_find(options, "reg_tokens"))
            att_options_set(options, "reg_tokens", fact->numbers[0]);
        return true;
    }
    if (strcmp(key, "use_rot_pos_emb") == 0 && fact->numbers[0] == 0) {
        att_options_set_text(options, "rope_type", ATT_EVA_NO_ROPE);
        return true;
    }
    return att_token_take_switch(switch_arguments, key, fact, options);
}

static const char same_arguments[] =
    "img_size in_chans patch_size embed_dim depth num_heads mlp_ratio class_token qkv_bias qkv_fused attn_type "
    "rope_temperature rope_grid_offset rope_grid_indexing rope_rotate_half attn_pool_num_heads attn_pool_mlp_ratio";

/* timm takes the layers of a gated MLP apart if they have a norm. */
static bool is_gated(const att_timm_network *network)
{
    return strcmp(att_options_text(network->options, "mlp_layer"), "mlp") != 0;
}

/* Rotary positions can be left out or be of another kind, but not be added. */
static bool give_rope(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (strcmp(att_options_text(network->own, option->key), ATT_EVA_NO_ROPE) == 0)
        return false;
    if (strcmp(att_options_text(network->options, option->key), ATT_EVA_NO_ROPE) != 0)
        return att_timm_give(network, option, option->key, writer);
    att_json_put_bool(writer, "use_rot_pos_emb", false);
    return true;
}

/* The norm after the pooling takes the place of the last norm; without a last norm there is neither. */
static bool give_pool_norm(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    att_json_put_bool(writer, "use_fc_norm",
                      att_options_number(network->options, "final_norm", 0) != 0 &&
                          att_options_number(network->options, option->key, 0) != 0);
    return true;
}

static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (strcmp(option->key, "embed_class") == 0 && !att_token_embeds_prefix(network->options))
        return true;
    if (strcmp(option->key, "global_pool") == 0)
        return att_timm_give_word("token avg max avgmax map", network, option, writer);
    if (strcmp(option->key, "rope_type") == 0)
        return give_rope(network, option, writer);
    if (strcmp(option->key, "fc_norm") == 0)
        return give_pool_norm(network, option, writer);
    if (strcmp(option->key, "reg_tokens") == 0)
        return att_timm_give(network, option, "num_reg_tokens", writer);
    if (att_checkpoint_lists("init_values ref_feat_shape", option->key)) /* timm takes 0 for a value */
        return att_options_number(network->options, option->key, 0) > 0 &&
               att_timm_give(network, option, option->key, writer);
    if (strcmp(option->key, "scale_mlp_norm") == 0 && is_gated(network))
        return false;
    return att_timm_give_of(same_arguments, network, option, writer) ||
           att_token_give_switch(switch_arguments, network, option, writer);
}

static const att_timm_form timm_form = {.sized = true, .idle = "embed_class", .give_argument = give_argument};

/* --- checks ------------------------------------------------------------------------------------------------------- */

static att_status check_rope(att_context *context, const att_eva_options *o)
{
    const bool axial = strcmp(o->rope_type, ATT_EVA_AXIAL) == 0, mixed = strcmp(o->rope_type, ATT_EVA_MIXED) == 0;
    if (strcmp(o->rope_type, ATT_EVA_NO_ROPE) == 0)
        return ATT_OK;
    if (o->embed_dim / o->num_heads % 4)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "rope_type \"%s\" needs heads whose channels are a multiple of 4; embed_dim %d and num_heads "
                        "%d make %d",
                        o->rope_type, o->embed_dim, o->num_heads, o->embed_dim / o->num_heads);
    if (mixed && o->rope_rotate_half)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "rope_type \"mixed\" turns neighbouring channels: it has no "
                        "rope_rotate_half");
    if (axial && (o->ref_feat_shape[0] == 0) != (o->ref_feat_shape[1] == 0))
        return att_fail(context, ATT_ERR_ARGUMENT, "ref_feat_shape %d %d must have two sides, or none",
                        o->ref_feat_shape[0], o->ref_feat_shape[1]);
    return ATT_OK;
}

static att_status check_modules(att_context *context, const att_eva_options *o)
{
    att_modules modules;
    ATT_TRY(att_token_modules(context, o->modules, o->depth, o->num_heads, &modules));
    for (int b = 0; b < o->depth && strcmp(o->rope_type, ATT_EVA_MIXED) == 0; b++)
        if (att_modules_replaced_heads(&modules, ATT_TOKEN_HEADS, b) > 0)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "modules \"%s\": in block %d they replace a head, but rope_type \"mixed\" has frequencies "
                            "for all heads",
                            o->modules, b);
    return ATT_OK;
}

static att_status check_pool(att_context *context, const att_eva_options *o)
{
    ATT_TRY(att_token_check_pool(context, o->global_pool, o->class_token, o->fc_norm == 1));
    if (strcmp(o->global_pool, "map") != 0)
        return ATT_OK;
    if (o->embed_dim % o->attn_pool_num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of attn_pool_num_heads %d",
                        o->embed_dim, o->attn_pool_num_heads);
    return att_mlp_check(context, "attn_pool_mlp_ratio", o->embed_dim, o->attn_pool_mlp_ratio);
}

static att_status eva_complete(att_context *context, void *options)
{
    att_eva_options *o = options;
    if (o->embed_dim % o->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", o->embed_dim,
                        o->num_heads);
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    if (o->attn_pool_num_heads == 0)
        o->attn_pool_num_heads = o->num_heads;
    if (o->attn_pool_mlp_ratio == 0)
        o->attn_pool_mlp_ratio = o->mlp_ratio;
    ATT_TRY(check_pool(context, o));
    ATT_TRY(check_rope(context, o));
    ATT_TRY(check_modules(context, o));
    if (strcmp(o->block_fn, ATT_EVA_POST_NORM) == 0 && o->init_values > 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "block_fn \"%s\" has no LayerScale: init_values must be 0, not %g",
                        o->block_fn, o->init_values);
    if (o->fc_norm == ATT_OPTION_UNSET)
        o->fc_norm = strcmp(o->global_pool, "avg") == 0;
    if (o->class_token + o->reg_tokens == 0 || strcmp(o->pos_embed, "learn") != 0)
        o->embed_class = 0;
    return ATT_OK;
}

/* --- the family --------------------------------------------------------------------------------------------------- */

static att_classifier_form eva_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = att_token_small_classifier};
}

extern const att_family att_family_eva;

const att_family att_family_eva = {
    .name = "eva",
    .signatures = {"patch_embed.proj.weight"},
    .inputs = {ATT_IMAGE_INPUT},
    .claims = att_eva_claims,
    .options = &eva_table,
    .hooks = ATT_TOKEN_HOOK_SET,
    .accepted_arguments = eva_arguments,
    .classifier = eva_classifier,
    .variants = &att_eva_variants,
    .complete = eva_complete,
    .build = att_eva_build,
    .foreign = att_eva_foreign,
    .recognise = att_eva_recognise,
    .take_argument = take_argument,
    .timm = &timm_form,
    .disambiguate = att_token_disambiguate,
    .check_undetermined = att_eva_check_undetermined,
    .regrids = att_eva_regrids,
    .is_added = att_token_is_added,
    .layer = att_token_layer,
};
