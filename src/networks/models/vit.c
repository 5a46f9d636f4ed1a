/* Vision Transformer (Dosovitskiy et al., ICLR 2021), DeiT (Touvron et al., ICML 2021), DeiT III (ECCV 2022), BEiT (Bao
 * et al., ICLR 2022) and timm's ViTs with relative positions: patch embedding, class token or none, learned or relative
 * positions, pre-norm blocks with or without LayerScale, last norm before or after the pooling. Dimensions and
 * preprocessing are those of timm 1.0. */
#include <string.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"
#include "networks/models/patches.h"
#include "networks/models/token_ends.h"
#include "networks/models/token_tensors.h"
#include "networks/models/vit.h"

/* --- options ----------------------------------------------------------------------------------------------------- */

ATT_CHOICES(extra_layer_names, "none", "attn", "mlp")
ATT_CHOICES(resize_names, "bicubic", ATT_VIT_PLAIN, ATT_VIT_BILINEAR_ANTIALIASED, ATT_VIT_BILINEAR, ATT_VIT_CORNERS,
            ATT_VIT_SINES)
ATT_CHOICES(relative_names, "none", ATT_VIT_BIAS, ATT_VIT_MLP)
ATT_CHOICES(norm_names, "layernorm", ATT_VIT_RMS_NORM)
ATT_CHOICES(embed_norm_names, "none", "layernorm", ATT_VIT_RMS_NORM)
ATT_CHOICES(attention_names, "attn", ATT_VIT_DIFFERENTIAL)
ATT_CHOICES(block_names, ATT_VIT_BLOCK, ATT_VIT_POST_NORM, ATT_VIT_BEIT, ATT_VIT_SCALING, ATT_VIT_DIFF_SCALING,
            ATT_VIT_THINGS)

#define VIT(member) ATT_OPTION_AT(att_vit_options, member)
static const att_option vit_options[] = {
    ATT_IMAGE_OPTIONS(att_vit_options),
    ATT_SHARED_OPTIONS(att_vit_options),
    ATT_ATTENTION_DROP_OPTION(att_vit_options),
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
     .help = "what the head reads: token (the class token), avg, max or avgmax (mean, maximum or the mean of both over "
             "the other tokens), map (attention of a learned query) or cls_avg (token and avg side by side)",
     .choice = att_token_pool_name, .not_in_tensors = "the pooling", VIT(global_pool)},
    {"pool_include_prefix", .kind = ATT_OPTION_SWITCH, .help = "pooling reads class token and registers, too",
     .not_compared = true, VIT(pool_include_prefix)},
    {"final_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm after the last block", VIT(final_norm)},
    {"fc_norm", .kind = ATT_OPTION_SWITCH, .help = "put that norm after the pooling", VIT(fc_norm)},
    {"class_token", .kind = ATT_OPTION_SWITCH, .help = "with or without a class token", VIT(class_token)},
    {"reg_tokens", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "register tokens", .high = 1024, VIT(reg_tokens)},
    {"distilled", .kind = ATT_OPTION_SWITCH, .help = "a distillation token with a classifier of its own, as in DeiT",
     VIT(distilled)},
    {"pos_embed", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "position embedding: learn or none",
     .choice = att_token_position_name, VIT(pos_embed)},
    {"pos_embed_resize", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "how the position embedding of a file is resampled for other images: bicubic (antialiased), bicubic_plain "
             "(not antialiased, as Meta's and transformers' code), bilinear_antialiased, bilinear, or "
             "bilinear_corners (with the corners in the same places)",
     .choice = resize_names, .not_compared = true, VIT(pos_embed_resize)},
    {"rel_pos_type", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "relative positions in attention: none, bias (a number for each shift) or mlp (an MLP of the shift)",
     .choice = relative_names, VIT(rel_pos_type)},
    {"rel_pos_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "hidden channels of the MLP of relative positions",
     .high = 65536, VIT(rel_pos_dim)},
    {"shared_rel_pos", .kind = ATT_OPTION_SWITCH, .help = "one set of relative positions for all blocks",
     VIT(shared_rel_pos)},
    {"embed_class", .kind = ATT_OPTION_SWITCH, .help = "position embedding for class token and registers, too",
     VIT(embed_class)},
    {"pre_norm", .kind = ATT_OPTION_SWITCH,
     .help = "a norm before the first block, and no bias of the patches, as in CLIP", VIT(pre_norm)},
    {"pixel_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm of each patch's pixels before they are embedded",
     VIT(pixel_norm)},
    {"embed_norm_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "norm of the embedded patches",
     .choice = embed_norm_names, VIT(embed_norm_layer)},
    {"norm_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "norms: layernorm or rmsnorm",
     .choice = norm_names, VIT(norm_layer)},
    {"norm_eps", .kind = ATT_OPTION_REAL, .value = "X", .help = "eps of the norms", .low = 1e-12, .high = 1,
     VIT(norm_eps)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", VIT(qkv_bias)},
    {"qk_norm", .kind = ATT_OPTION_SWITCH, .help = "norms of the queries and keys of each head", VIT(qk_norm)},
    {"proj_bias", .kind = ATT_OPTION_SWITCH, .help = "biases of the MLP and after attention", VIT(proj_bias)},
    {"scale_attn_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm of the heads' results", VIT(scale_attn_norm)},
    {"scale_mlp_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm of the MLP's hidden channels", VIT(scale_mlp_norm)},
    {"init_values", .kind = ATT_OPTION_REAL, .value = "X", .help = "LayerScale with this initial value; 0: none",
     .high = 1e3, .compare_presence = true, VIT(init_values)},
    {"act_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "activation of the MLPs",
     .choice = att_activation_name, .not_in_tensors = "the activation", VIT(act_layer)},
    {"mlp_layer", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "mlp, or gated by SiLU: swiglu, swiglu_packed (both layers in one)", .choice = att_mlp_name,
     VIT(mlp_layer)},
    {"attn_layer", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "attention: attn, or diff (differential)",
     .choice = attention_names, VIT(attn_layer)},
    {"block_fn", .kind = ATT_OPTION_TEXT, .value = "NAME", .help = "kind of the blocks, by its name in timm",
     .choice = block_names, VIT(block_fn)},
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

/* Those that are options, too, have these values in a network whose name is unknown. */
static const att_accepted_argument vit_arguments[] = {
    {"pos_drop_rate", ATT_ANY_VALUE},
    {"patch_drop_rate", ATT_ANY_VALUE},
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"weight_init", ATT_ANY_VALUE},
    {"fix_init", ATT_ANY_VALUE},
    {"dynamic_img_size", ATT_ANY_VALUE},
    {"dynamic_img_pad", "false"},
    {"head_init_scale", ATT_ANY_VALUE},
    {"qk_norm", "false"},
    {"scale_attn_norm", "false"},
    {"scale_mlp_norm", "false"},
    {"proj_bias", "true"},
    {"pos_embed", "learn"},
    {"rel_pos_type", "none"},
    {"rel_pos_dim", ATT_ANY_VALUE},
    {"shared_rel_pos", "false"},
    {"reg_tokens", "0"},
    {"pre_norm", "false"},
    {"act_layer", "gelu"},
    {"pool_include_prefix", "false"},
    {"norm_layer", "layernorm"},
    {"swiglu_mlp", ATT_ANY_VALUE}, /* of BEiT; tensors show the kind of the MLP */
    {NULL, NULL},
};

static const att_switch_argument switch_arguments[] = {
    {.key = "no_embed_class", .option = "embed_class", .opposite = true},
    {.key = "use_abs_pos_emb", .option = "pos_embed", .texts = {"none", "learn"}},
    {.key = "use_rel_pos_bias", .option = "rel_pos_type", .texts = {"none", ATT_VIT_BIAS}},
    {.key = "use_fc_norm", .option = "fc_norm"},
    {.key = "scale_mlp", .option = "scale_mlp_norm"},
    {.key = NULL},
};

/* BEiT's tables: one for all blocks, or none if use_rel_pos_bias is false, too. */
static void take_shared_table(bool shared, att_option_values *options)
{
    if (shared)
        att_options_set_text(options, "rel_pos_type", ATT_VIT_BIAS);
    if (!att_options_find(options, "shared_rel_pos"))
        att_options_set(options, "shared_rel_pos", shared);
}

static const double DEFAULT_EPS = 1e-6; /* of timm's norms */

/* A norm named by an argument has timm's default eps, whatever the variant's norm has. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "norm_layer") == 0 && !att_options_find(options, "norm_eps"))
        att_options_set(options, "norm_eps", DEFAULT_EPS);
    if (strcmp(key, "use_shared_rel_pos_bias") != 0 || fact->kind != ATT_FACT_NUMBERS || fact->count != 1 ||
        (fact->numbers[0] != 0 && fact->numbers[0] != 1))
        return att_token_take_switch(switch_arguments, key, fact, options);
    take_shared_table(fact->numbers[0] != 0, options);
    return true;
}

/* timm has other constructors for BEiTs, for ViTs with relative positions, and for the rest. Each has the arguments of
 * all and those named here; distillation tokens, kinds of blocks and of MLPs are no arguments. */
static const char arguments_of_all[] = "img_size in_chans patch_size embed_dim depth num_heads mlp_ratio qkv_bias";
static const char arguments_of_relative[] = "class_token fc_norm qk_norm rel_pos_dim shared_rel_pos";
static const char arguments_of_rest[] =
    "class_token reg_tokens pos_embed pre_norm final_norm fc_norm pool_include_prefix qk_norm scale_attn_norm "
    "scale_mlp_norm proj_bias act_layer attn_layer";

/* timm takes 0 for a LayerScale of zeros where blocks compute attention and MLP of one norm. */
static bool give_scale(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const char *block = att_options_text(network->options, "block_fn");
    return (att_options_number(network->options, option->key, 0) > 0 ||
            !att_checkpoint_lists(ATT_VIT_SCALING " " ATT_VIT_DIFF_SCALING, block)) &&
           att_timm_give(network, option, option->key, writer);
}

/* The argument norm_layer is a name, which means timm's default eps. */
static bool give_norm(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (att_options_number(network->options, "norm_eps", 0) != DEFAULT_EPS)
        return false;
    if (strcmp(option->key, "norm_layer") == 0 || !att_timm_differs(network, "norm_layer"))
        att_json_put_string(writer, "norm_layer", att_options_text(network->options, "norm_layer"));
    return true;
}

/* The tables of BEiT's blocks, or one for all. */
static bool give_tables(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const bool has = strcmp(att_options_text(network->options, "rel_pos_type"), "none") != 0,
               shared = att_options_number(network->options, "shared_rel_pos", 0) != 0;
    if (strcmp(option->key, "shared_rel_pos") == 0 && att_timm_differs(network, "rel_pos_type"))
        return true;
    att_json_put_bool(writer, "use_rel_pos_bias", has && !shared);
    att_json_put_bool(writer, "use_shared_rel_pos_bias", has && shared);
    return true;
}

static bool give_to_beit(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (att_checkpoint_lists("rel_pos_type shared_rel_pos", option->key))
        return give_tables(network, option, writer);
    return att_checkpoint_lists("pos_embed fc_norm scale_mlp_norm", option->key) &&
           att_token_give_switch(switch_arguments, network, option, writer);
}

static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    const bool beit = strcmp(att_options_text(network->own, "block_fn"), ATT_VIT_BEIT) == 0,
               relative = strcmp(att_options_text(network->own, "rel_pos_type"), "none") != 0;
    if (strcmp(option->key, "embed_class") == 0 && !att_token_embeds_prefix(network->options))
        return true;
    if (strcmp(option->key, "init_values") == 0)
        return give_scale(network, option, writer);
    if (strcmp(option->key, "global_pool") == 0)
        return att_timm_give_word(beit || relative ? "token avg" : "token avg max avgmax map", network, option, writer);
    if (att_timm_give_of(arguments_of_all, network, option, writer))
        return true;
    if (beit)
        return give_to_beit(network, option, writer);
    if (relative && strcmp(option->key, "rel_pos_type") == 0)
        return att_timm_give_word(ATT_VIT_BIAS " " ATT_VIT_MLP, network, option, writer);
    if (relative)
        return att_timm_give_of(arguments_of_relative, network, option, writer);
    if (att_checkpoint_lists("norm_layer norm_eps", option->key))
        return give_norm(network, option, writer);
    return att_timm_give_of(arguments_of_rest, network, option, writer) ||
           (strcmp(option->key, "embed_class") == 0 &&
            att_token_give_switch(switch_arguments, network, option, writer));
}

static const att_timm_form timm_form = {.sized = true, .idle = "embed_class", .give_argument = give_argument};

bool att_vit_is_sequential(const char *block_fn)
{
    return att_checkpoint_lists(ATT_VIT_BLOCK " " ATT_VIT_POST_NORM " " ATT_VIT_BEIT, block_fn);
}

bool att_vit_is_beit(const att_vit_options *options)
{
    return strcmp(options->block_fn, ATT_VIT_BEIT) == 0;
}

bool att_vit_is_relative(const att_vit_options *options)
{
    return strcmp(options->rel_pos_type, "none") != 0;
}

int att_vit_prefix(const att_vit_options *options)
{
    return options->class_token + options->distilled + options->reg_tokens;
}

static att_status check_distilled(att_context *context, const att_vit_options *o)
{
    if (!o->distilled ||
        (o->class_token && o->embed_class && o->reg_tokens == 0 && strcmp(o->pos_embed, "learn") == 0 &&
         strcmp(o->global_pool, "token") == 0 && o->fc_norm != 1))
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "a distilled network reads its class token and its distillation token: it needs class_token, "
                    "embed_class, pos_embed \"learn\" and global_pool \"token\", and has no registers and no fc_norm");
}

static att_status check_mlp(att_context *context, const att_vit_options *o)
{
    const att_mlp_kind kind = att_mlp_named(o->mlp_layer);
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    if (kind != ATT_MLP_PLAIN && strcmp(o->act_layer, "silu") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "mlp_layer \"%s\" is gated by SiLU: act_layer must be \"silu\", not "
                        "\"%s\"",
                        o->mlp_layer, o->act_layer);
    if (kind == ATT_MLP_PACKED && att_mlp_hidden(o->embed_dim, o->mlp_ratio) % 2)
        return att_fail(context, ATT_ERR_ARGUMENT, "mlp_ratio %g makes %lld hidden channels, which are not two halves",
                        o->mlp_ratio, (long long)att_mlp_hidden(o->embed_dim, o->mlp_ratio));
    return ATT_OK;
}

/* The two kinds that compute attention and MLP of one norm have neither other MLPs nor further norms nor modules
 * inside; there is no place for the extra layer beside parallel blocks. */
static att_status check_block(att_context *context, const att_vit_options *o)
{
    bool is_scaling = att_checkpoint_lists(ATT_VIT_SCALING " " ATT_VIT_DIFF_SCALING, o->block_fn),
         is_sequential = att_vit_is_sequential(o->block_fn);
    if (is_scaling && (o->scale_attn_norm || o->scale_mlp_norm || strcmp(o->mlp_layer, "mlp") != 0 ||
                       strcmp(o->attn_layer, "attn") != 0))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "block_fn \"%s\" has no scale_attn_norm, no scale_mlp_norm, and only mlp_layer \"mlp\" and "
                        "attn_layer \"attn\"",
                        o->block_fn);
    if (!is_sequential && strcmp(o->modules, "none") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "modules \"%s\": block_fn \"%s\" has no places for modules",
                        o->modules, o->block_fn);
    if (!is_sequential && strcmp(o->extra_layer, "none") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "extra_layer \"%s\" does not fit block_fn \"%s\"", o->extra_layer,
                        o->block_fn);
    bool differs = strcmp(o->attn_layer, ATT_VIT_DIFFERENTIAL) == 0 || strcmp(o->block_fn, ATT_VIT_DIFF_SCALING) == 0;
    if (differs && o->embed_dim / o->num_heads % 2)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "differential attention divides the %d channels of a head in two halves",
                        o->embed_dim / o->num_heads);
    return ATT_OK;
}

static att_status check_relative(att_context *context, const att_vit_options *o, const att_modules *modules)
{
    if (!att_vit_is_relative(o))
        return ATT_OK;
    if (!att_vit_is_sequential(o->block_fn) || strcmp(o->attn_layer, "attn") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "rel_pos_type \"%s\" does not fit block_fn \"%s\" with attn_layer \"%s\"", o->rel_pos_type,
                        o->block_fn, o->attn_layer);
    if (att_vit_is_beit(o) && strcmp(o->rel_pos_type, ATT_VIT_BIAS) != 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "rel_pos_type \"%s\" does not fit block_fn \"%s\", which has none or bias", o->rel_pos_type,
                        o->block_fn);
    for (int b = 0; b < o->depth && o->shared_rel_pos; b++)
        if (att_modules_replaced_heads(modules, ATT_TOKEN_HEADS, b) > 0)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "modules \"%s\" replace heads of block %d, but shared_rel_pos gives all blocks the same "
                            "heads",
                            o->modules, b);
    return ATT_OK;
}

/* The MLP's default width is timm's. */
static void complete_relative(att_vit_options *o)
{
    bool is_mlp = strcmp(o->rel_pos_type, ATT_VIT_MLP) == 0;
    o->shared_rel_pos = o->shared_rel_pos && att_vit_is_relative(o);
    o->rel_pos_dim = !is_mlp ? 0 : o->rel_pos_dim > 0 ? o->rel_pos_dim : 128;
}

static att_status vit_complete(att_context *context, void *options)
{
    att_vit_options *o = options;
    if (o->embed_dim % o->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", o->embed_dim,
                        o->num_heads);
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(check_mlp(context, o));
    ATT_TRY(att_token_check_pool(context, o->global_pool, o->class_token, o->fc_norm == 1));
    ATT_TRY(check_distilled(context, o));
    ATT_TRY(check_block(context, o));
    att_modules modules;
    ATT_TRY(att_token_modules(context, o->modules, o->depth, o->num_heads, &modules));
    ATT_TRY(check_relative(context, o, &modules));
    complete_relative(o);
    if (o->fc_norm == ATT_OPTION_UNSET)
        o->fc_norm = att_checkpoint_lists(ATT_TOKEN_MEAN_POOLS, o->global_pool);
    if (att_vit_prefix(o) == 0 || strcmp(o->pos_embed, "learn") != 0)
        o->embed_class = 0;
    return ATT_OK;
}

static att_classifier_form vit_classifier(const void *options)
{
    const att_vit_options *o = options;
    if (o->distilled)
        return (att_classifier_form){.scope = "head", .second = "head_dist", .build = att_token_classifier};
    if (att_vit_is_beit(o))
        return (att_classifier_form){.scope = "head", .build = att_token_small_classifier};
    return (att_classifier_form){.scope = "head",
                                 .build = att_vit_is_relative(o) ? att_nn_classifier : att_token_classifier};
}

extern const att_family att_family_vit;

const att_family att_family_vit = {
    .name = "vit",
    .signatures = {"patch_embed.proj.weight"},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &vit_table,
    .hooks = ATT_TOKEN_HOOK_SET,
    .accepted_arguments = vit_arguments,
    .classifier = vit_classifier,
    .variants = &att_vit_variants,
    .complete = vit_complete,
    .build = att_vit_build,
    .foreign = att_vit_foreign,
    .recognise = att_vit_recognise,
    .take_argument = take_argument,
    .timm = &timm_form,
    .disambiguate = att_vit_disambiguate,
    .check_undetermined = att_vit_check_undetermined,
    .regrids = att_vit_regrids,
    .is_added = att_token_is_added,
    .layer = att_token_layer,
};
