/* Vision Transformer (Dosovitskiy et al., ICLR 2021), DeiT (Touvron et al., ICML 2021) and DeiT III (ECCV 2022) as in
 * timm: patch embedding, class token or none, learned position embedding, pre-norm blocks with or without LayerScale,
 * last norm before or after the pooling. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "core/error.h"
#include "models/checkpoint.h"
#include "models/family.h"
#include "models/patches.h"
#include "models/vit.h"

/* --- options ----------------------------------------------------------------------------------------------------- */

static const char *pool_names(int index)
{
    static const char *const names[] = {"token", "avg"};
    return index < 2 ? names[index] : NULL;
}

static const char *extra_layer_names(int index)
{
    static const char *const names[] = {"none", "attn", "mlp"};
    return index < 3 ? names[index] : NULL;
}

#define VIT(member) ATT_OPTION_AT(att_vit_options, member)
static const att_option vit_options[] = {
    ATT_SHARED_OPTIONS(att_vit_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, VIT(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     VIT(embed_dim)},
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "blocks; of a residual network: layers with weights, without shortcuts", .implied_by = "layers", .low = 1,
     .high = 1024, VIT(depth)},
    {"num_heads", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "attention heads of a block",
     .not_in_tensors = "the number of heads", .low = 1, .high = 65536, VIT(num_heads)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, VIT(mlp_ratio)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: token (the class token) or avg (the mean over the other tokens)",
     .choice = pool_names, VIT(global_pool)},
    {"final_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm after the last block", VIT(final_norm)},
    {"fc_norm", .kind = ATT_OPTION_SWITCH, .help = "put that norm after the pooling", VIT(fc_norm)},
    {"class_token", .kind = ATT_OPTION_SWITCH, .help = "with or without a class token", VIT(class_token)},
    {"embed_class", .kind = ATT_OPTION_SWITCH, .help = "position embedding for the class token too", VIT(embed_class)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", VIT(qkv_bias)},
    {"init_values", .kind = ATT_OPTION_REAL, .value = "X", .help = "LayerScale with this initial value; 0: none",
     .high = 1e3, .compare_presence = true, VIT(init_values)},
    {"extra_layer", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "one more residual layer after the last block: attn, or mlp with twice as many hidden channels as a "
             "token has, which has nearly as many parameters",
     .choice = extra_layer_names, .differs_as = "the extra layer", VIT(extra_layer)},
    {"file_grid", .kind = ATT_OPTION_SIDES, .low = 1, .high = 65536, .not_compared = true, .internal = true,
     VIT(file_grid)},
};

ATT_ASSERT_SETTINGS_FIT(att_vit_options);
static const att_option_table vit_table = {vit_options, sizeof vit_options / sizeof *vit_options,
                                           sizeof(att_vit_options)};

static void vit_defaults(int index, const att_option_values *given, att_option_values *options,
                         att_preprocess *preprocess)
{
    (void)given;
    att_vit_options o;
    att_options_clear(&vit_table, &o);
    att_vit_describe(index, &o, preprocess);
    o.drop_rate = o.drop_path_rate = 0;
    snprintf(o.modules, sizeof o.modules, "none");
    snprintf(o.extra_layer, sizeof o.extra_layer, "none");
    att_options_write(&vit_table, &o, options);
}

static const att_accepted_argument vit_arguments[] = {
    {"pos_drop_rate", ATT_ANY_VALUE},
    {"patch_drop_rate", ATT_ANY_VALUE},
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"attn_drop_rate", ATT_ANY_VALUE},
    {"weight_init", ATT_ANY_VALUE},
    {"fix_init", ATT_ANY_VALUE},
    {"dynamic_img_size", ATT_ANY_VALUE},
    {"dynamic_img_pad", ATT_ANY_VALUE},
    {"qk_norm", "false"},
    {"scale_attn_norm", "false"},
    {"scale_mlp_norm", "false"},
    {"proj_bias", "true"},
    {"pos_embed", "learn"},
    {"reg_tokens", "0"},
    {"pre_norm", "false"},
    {"act_layer", "gelu"},
    {"pool_include_prefix", "false"},
    {"norm_layer", "layernorm"},
    {NULL, NULL},
};

/* timm's no_embed_class is the opposite of embed_class. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "no_embed_class") != 0 || fact->kind != ATT_FACT_NUMBERS || fact->count != 1 ||
        (fact->numbers[0] != 0 && fact->numbers[0] != 1))
        return false;
    if (!att_options_find(options, "embed_class"))
        att_options_set(options, "embed_class", fact->numbers[0] == 0);
    return true;
}

static bool pools_mean(const att_vit_options *o)
{
    return strcmp(o->global_pool, "avg") == 0;
}

static att_status vit_complete(att_context *context, void *options)
{
    att_vit_options *o = options;
    if (o->embed_dim % o->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", o->embed_dim,
                        o->num_heads);
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    if (!pools_mean(o) && !o->class_token)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "global_pool \"token\" needs the class token; without one use \"avg\"");
    att_modules modules;
    ATT_TRY(att_token_modules(context, o->modules, o->depth, o->num_heads, &modules));
    if (o->fc_norm == ATT_OPTION_UNSET)
        o->fc_norm = pools_mean(o);
    if (!o->class_token)
        o->embed_class = 0;
    return ATT_OK;
}

static att_value build_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    return att_nn_linear(scope, features, classes, true);
}

static att_classifier_form vit_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = build_classifier};
}

/* As timm's VisionTransformer and VisionTransformerDistilled; fc_norm is beside the head. */
static int layer_of(const char *name)
{
    static const char *const stem[] = {"cls_token", "pos_embed", "patch_embed"};
    const char *rest;
    int block = att_checkpoint_block(name, "blocks", &rest);
    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
        if (strncmp(name, stem[i], strlen(stem[i])) == 0)
            return 0;
    if (strncmp(name, "norm.", 5) == 0)
        return ATT_LAYER_LAST_BLOCK;
    return block < 0 ? ATT_LAYER_HEAD : 1 + block;
}

extern const att_family att_family_vit;

const att_family att_family_vit = {
    .name = "vit",
    .signature = "patch_embed.proj.weight",
    .options = &vit_table,
    .hooks = ATT_TOKEN_HOOK_SET,
    .accepted_arguments = vit_arguments,
    .classifier = vit_classifier,
    .variant_count = ATT_VIT_VARIANTS,
    .variant = att_vit_info,
    .defaults = vit_defaults,
    .complete = vit_complete,
    .build = att_vit_build,
    .recognise = att_vit_recognise,
    .take_argument = take_argument,
    .disambiguate = att_vit_disambiguate,
    .check_undetermined = att_vit_check_undetermined,
    .regrids = att_vit_regrids,
    .is_added = att_vit_is_added,
    .layer = layer_of,
};
