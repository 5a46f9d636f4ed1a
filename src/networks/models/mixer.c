/* MLP-Mixer (Tolstikhin et al., NeurIPS 2021) as in timm: patch embedding; pre-norm blocks with an MLP along the tokens
 * and one along the channels; a last norm; the mean over tokens. Dimensions and preprocessing are those of timm 1.0. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"
#include "networks/models/patches.h"
#include "networks/models/token_tensors.h"
#include "networks/models/variants.h"

static const double NORM_EPS = 1e-6;

/* --- variants ---------------------------------------------------------------------------------------------------- */

static const char MIXER[] = "MLP-Mixer (Tolstikhin et al., NeurIPS 2021)";

static const att_variant_row variant_rows[] = {
    {"mixer_s32_224", MIXER, 224, 1000, 0.875, "patch_size=32 embed_dim=512 depth=8"},
    {"mixer_s16_224", MIXER, 224, 1000, 0.875, "patch_size=16 embed_dim=512 depth=8"},
    {"mixer_b32_224", MIXER, 224, 1000, 0.875, "patch_size=32 embed_dim=768 depth=12"},
    {"mixer_b16_224", MIXER, 224, 1000, 0.875, "patch_size=16 embed_dim=768 depth=12"},
    {"mixer_l32_224", MIXER, 224, 1000, 0.875, "patch_size=32 embed_dim=1024 depth=24"},
    {"mixer_l16_224", MIXER, 224, 1000, 0.875, "patch_size=16 embed_dim=1024 depth=24"},
};
static const att_variants variants = {.rows = variant_rows,
                                      .count = sizeof variant_rows / sizeof *variant_rows,
                                      .shared = ATT_HALF "mlp_ratio=4 token_mlp_ratio=0.5 global_pool=avg"};

/* --- options ----------------------------------------------------------------------------------------------------- */

typedef struct mixer_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int patch_size[2], embed_dim, depth;
    double mlp_ratio, token_mlp_ratio;
    char global_pool[8];
} mixer_options;

ATT_CHOICES(pool_names, "avg")

#define MIXER(member) ATT_OPTION_AT(mixer_options, member)
static const att_option rows[] = {
    ATT_IMAGE_OPTIONS(mixer_options),
    ATT_SHARED_OPTIONS(mixer_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, MIXER(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     MIXER(embed_dim)},
    {"depth", .alias = "num_blocks", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "blocks", .low = 1, .high = 1024,
     MIXER(depth)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "width of the MLP along the channels over that of a token", .low = 1e-3, .high = 64, MIXER(mlp_ratio)},
    {"token_mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "of an MLP-Mixer: width of the MLP along the tokens over that of a token", .low = 1e-3, .high = 64,
     MIXER(token_mlp_ratio)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over tokens", .choice = pool_names, MIXER(global_pool)},
};
ATT_ASSERT_SETTINGS_FIT(mixer_options);
static const att_option_table table = {rows, sizeof rows / sizeof *rows, sizeof(mixer_options)};

/* Indices in `hooks`. */
enum { AFTER_MLP, AFTER_MIXING, MIXING };
static const att_module_hook hooks[] = {
    {"after_mlp", "at the end of a block's MLP along channels, before the addition", ATT_ON_TOKENS},
    {"after_mixing", "at the end of a block's MLP along tokens, before the addition", ATT_ON_TOKENS},
    {"mixing", "in place of a block's MLP along tokens, after its norm", ATT_ON_TOKENS},
};
static const att_hooks places = {hooks, sizeof hooks / sizeof *hooks};

static att_status parse_modules(att_context *context, const mixer_options *o, att_modules *modules)
{
    const att_stages stages = {.count = 1, .blocks = {o->depth}};
    return att_modules_parse(context, &places, &stages, o->modules, modules);
}

static att_status mixer_complete(att_context *context, void *options)
{
    const mixer_options *o = options;
    att_modules modules;
    ATT_TRY(parse_modules(context, o, &modules));
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    return att_mlp_check(context, "token_mlp_ratio", o->embed_dim, o->token_mlp_ratio);
}

static const att_accepted_argument accepted_arguments[] = {
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"nlhb", ATT_ANY_VALUE},
    {"stem_norm", "false"},
    {"act_layer", "gelu"},
    {"norm_layer", "layernorm"},
    {NULL, NULL},
};

static void set_if_open(att_option_values *options, const char *key, double number)
{
    if (!att_options_find(options, key))
        att_options_set(options, key, number);
}

/* timm's mlp_ratio is a pair (ratio of the MLP along the tokens, ratio of the MLP along the channels), or one number
 * for both. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    const att_option *ratio = att_option_find(&table, "mlp_ratio");
    if (strcmp(key, ratio->key) != 0 || fact->kind != ATT_FACT_NUMBERS || fact->count < 1 || fact->count > 2)
        return false;
    const double *tokens = &fact->numbers[0], *channels = &fact->numbers[fact->count - 1];
    if (!att_option_accepts(ratio, tokens, 1) || !att_option_accepts(ratio, channels, 1))
        return false;
    set_if_open(options, "token_mlp_ratio", *tokens);
    set_if_open(options, ratio->key, *channels);
    return true;
}

static bool give_ratios(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (strcmp(option->key, "token_mlp_ratio") == 0 && att_timm_differs(network, "mlp_ratio"))
        return true;
    att_json_put_array(writer, "mlp_ratio");
    att_json_number(writer, att_options_number(network->options, "token_mlp_ratio", 0));
    att_json_number(writer, att_options_number(network->options, "mlp_ratio", 0));
    att_json_end_array(writer);
    return true;
}

/* timm's named networks fix patches, width and depth. */
static bool give_argument(const att_timm_network *network, const att_option *option, att_json_writer *writer)
{
    if (att_checkpoint_lists("mlp_ratio token_mlp_ratio", option->key))
        return give_ratios(network, option, writer);
    return att_timm_give_of("img_size in_chans", network, option, writer);
}

static const att_timm_form timm_form = {.sized = true, .give_argument = give_argument};

/* --- the network ------------------------------------------------------------------------------------------------- */

/* Initialised as in timm: Glorot-uniform weights, biases close to 0. */
static att_value build_linear(const att_scope *scope, att_value x, int64_t inputs, int64_t outputs)
{
    att_init weight_init = {.rule = ATT_INIT_UNIFORM, .value = sqrt(6.0 / (double)(inputs + outputs))};
    att_init bias_init = {.rule = ATT_INIT_NORMAL, .value = 1e-6};
    att_scope_enter(scope);
    att_value weight = att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs), weight_init, true);
    att_value bias = att_scope_parameter(scope, "bias", att_shape_of(outputs), bias_init, false);
    return att_linear(scope->graph, x, weight, bias);
}

static att_value build_mlp(const att_scope *scope, att_value x, int64_t width, int64_t hidden)
{
    att_scope first = att_scope_in(scope, "fc1"), second = att_scope_in(scope, "fc2");
    x = att_gelu(scope->graph, build_linear(&first, x, width, hidden));
    return build_linear(&second, x, hidden, width);
}

static att_value transpose(const att_scope *scope, att_value x)
{
    att_scope_enter(scope);
    return att_transpose(scope->graph, x, (const int[]){1, 0}, 2);
}

static int64_t tokens_of(const mixer_options *o)
{
    return (int64_t)(o->img_size[0] / o->patch_size[0]) * (o->img_size[1] / o->patch_size[1]);
}

/* identity + drop_path(branch), with one rate for all blocks; half_of_block is 1 or 2. */
static att_value add_branch(const att_scope *block, const mixer_options *o, int half_of_block, att_value identity,
                            att_value branch)
{
    att_scope drop = att_scope_in(block, "drop_path%d", half_of_block);
    att_scope_enter(&drop);
    branch = att_drop_path(block->graph, branch, o->drop_path_rate);
    att_scope sum = att_scope_in(block, "add%d", half_of_block);
    att_scope_enter(&sum);
    return att_add(block->graph, identity, branch);
}

/* [N, C] -> [N, C] */
static att_value build_mixing(const att_scope *scope, const mixer_options *o, att_value x)
{
    x = build_mlp(scope, transpose(scope, x), tokens_of(o), att_mlp_hidden(o->embed_dim, o->token_mlp_ratio));
    return transpose(scope, x);
}

/* Applies the modules of a hook in block `index`. */
static att_value change(const mixer_options *o, const att_modules *modules, int hook, int index, const att_scope *scope,
                        att_value branch, att_value identity)
{
    const att_module_site site = {.branch = branch,
                                  .identity = identity,
                                  .input = ATT_NONE,
                                  .grid_h = o->img_size[0] / o->patch_size[0],
                                  .grid_w = o->img_size[1] / o->patch_size[1]};
    return att_modules_apply(modules, hook, index, scope, &site);
}

static att_value build_block(const att_scope *block, const mixer_options *o, const att_modules *modules, int index,
                             att_value x)
{
    att_scope norm1 = att_scope_in(block, "norm1"), along_tokens = att_scope_in(block, "mlp_tokens");
    att_scope norm2 = att_scope_in(block, "norm2"), along_channels = att_scope_in(block, "mlp_channels");
    att_value branch = att_nn_layer_norm(&norm1, x, NORM_EPS);
    if (att_modules_any(modules, MIXING, index))
        branch = change(o, modules, MIXING, index, &along_tokens, branch, x);
    else
        branch = build_mixing(&along_tokens, o, branch);
    branch = change(o, modules, AFTER_MIXING, index, &along_tokens, branch, x);
    x = add_branch(block, o, 1, x, branch);
    branch = att_nn_layer_norm(&norm2, x, NORM_EPS);
    branch = build_mlp(&along_channels, branch, o->embed_dim, att_mlp_hidden(o->embed_dim, o->mlp_ratio));
    branch = change(o, modules, AFTER_MLP, index, &along_channels, branch, x);
    return add_branch(block, o, 2, x, branch);
}

/* Initialised as in timm, LeCun-normal. timm redraws values beyond two standard deviations and rescales to the same
 * variance; attscope does not. */
static att_value build_stem(const att_scope *scope, const mixer_options *o)
{
    att_value image = att_graph_input(scope->graph, ATT_IMAGE, att_graph_dtype(scope->graph),
                                      att_shape_of(o->img_size[0], o->img_size[1], o->in_chans));
    int64_t pixels = (int64_t)o->patch_size[0] * o->patch_size[1];
    att_init weight_init = {.rule = ATT_INIT_NORMAL, .value = 1 / sqrt((double)(pixels * o->in_chans))};
    att_init bias_init = {.rule = ATT_INIT_CONSTANT, .value = 0};
    att_shape shape = att_shape_of(o->embed_dim, o->in_chans, o->patch_size[0], o->patch_size[1]);
    att_scope_enter(scope);
    att_value weight = att_scope_parameter(scope, "weight", shape, weight_init, true);
    att_value bias = att_scope_parameter(scope, "bias", att_shape_of(o->embed_dim), bias_init, false);
    return att_linear(scope->graph, att_patchify(scope->graph, image, o->patch_size[0], o->patch_size[1]), weight,
                      bias);
}

static void mixer_build(att_graph *graph, const void *options, att_features *features)
{
    const mixer_options *o = options;
    att_modules modules;
    if (parse_modules(att_graph_context(graph), o, &modules) != ATT_OK)
        return; /* cannot happen: complete() has checked the option */
    att_scope root = att_scope_root(graph), stem = att_scope_in(&root, "stem.proj");
    att_value *blocks = att_features_of_tokens(graph, 0, o->img_size[0] / o->patch_size[0],
                                               o->img_size[1] / o->patch_size[1], o->depth, features);
    if (!blocks)
        return;
    att_value x = build_stem(&stem, o);
    for (int i = 0; i < o->depth; i++) {
        att_scope block = att_scope_in(&root, "blocks.%d", i);
        blocks[i] = x = build_block(&block, o, &modules, i, x);
    }
    att_scope norm = att_scope_in(&root, "norm"), pool = att_scope_in(&root, "pool");
    features->tokens = att_nn_layer_norm(&norm, x, NORM_EPS);
    att_scope_enter(&pool);
    features->pooled = att_token_mean(graph, features->tokens, 0);
}

/* Initialised to zero, as in timm. */
static att_value build_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    int64_t width = att_value_shape(scope->graph, features).dims[0];
    att_scope_enter(scope);
    att_value weight = att_scope_parameter(scope, "weight", att_shape_of(classes, width), zeros, true);
    att_value bias = att_scope_parameter(scope, "bias", att_shape_of(classes), zeros, false);
    return att_linear(scope->graph, features, weight, bias);
}

static att_classifier_form mixer_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = build_classifier};
}

/* --- recognising tensors ------------------------------------------------------------------------------------------ */

static const char SIGNATURE[] = "stem.proj.weight";
static const char CHANNEL_MLP[] = "blocks.0.mlp_channels.fc1.weight";

static const char outer_names[] = "stem.proj.weight stem.proj.bias norm.weight norm.bias head.weight head.bias";
static const char block_names[] =
    "norm1.weight norm1.bias mlp_tokens.fc1.weight mlp_tokens.fc1.bias mlp_tokens.fc2.weight mlp_tokens.fc2.bias "
    "norm2.weight norm2.bias mlp_channels.fc1.weight mlp_channels.fc1.bias mlp_channels.fc2.weight "
    "mlp_channels.fc2.bias";

enum { NAME_SIZE = 48 };
static const char *const branches[] = {
    [AFTER_MLP] = "mlp_channels", [AFTER_MIXING] = "mlp_tokens", [MIXING] = "mlp_tokens"};
static const att_token_places tensor_places = {
    .hooks = &places, .branches = branches, .inside = MIXING, .after = AFTER_MIXING};

static bool mixes(const att_tensors *file, int block)
{
    return att_checkpoint_has(file, "blocks.%d.mlp_tokens.fc1.weight", block);
}

static const att_token_tensors like = {
    .outer = outer_names, .block = block_names, .attends = mixes, .what = "MLP-Mixer", .places = &tensor_places};

static bool mixer_is_added(const att_context *context, const char *name)
{
    const char *rest;
    return att_checkpoint_block(name, "blocks", &rest) >= 0 && att_token_owns(context, &tensor_places, rest);
}

static att_foreign mixer_foreign(const att_context *context, const att_tensors *file)
{
    return att_token_foreign(context, file, &like);
}

/* Returns the dimensions of the weight fc1 in the first token MLP, and its name; NULL if no block has one. */
static const int64_t *token_mlp(const att_tensors *file, const att_option_values *found, char name[NAME_SIZE],
                                att_shape *shape)
{
    int depth = (int)att_options_number(found, "depth", 0);
    for (int b = 0; b < depth; b++)
        if (mixes(file, b)) {
            snprintf(name, NAME_SIZE, "blocks.%d.mlp_tokens.fc1.weight", b);
            return att_checkpoint_dims(file, name, 2, shape);
        }
    return NULL;
}

static void read_mlps(const att_tensors *file, att_option_values *found)
{
    att_shape shape;
    int width = (int)att_options_number(found, "embed_dim", 1);
    const int64_t *dims = att_checkpoint_dims(file, CHANNEL_MLP, 2, &shape);
    if (dims)
        att_options_set(found, "mlp_ratio", att_mlp_ratio(width, dims[0]));
    char name[NAME_SIZE];
    dims = token_mlp(file, found, name, &shape);
    if (!dims)
        return;
    att_options_set(found, "token_mlp_ratio", att_mlp_ratio(width, dims[0]));
    int side = att_patches_side(dims[1]);
    if (side > 0)
        att_patches_read_side(side, found);
}

static att_status mixer_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    att_detected_modules detected = {0};
    ATT_TRY(att_token_read_names(context, file, &like, found, &detected));
    ATT_TRY(att_patches_read(context, file, SIGNATURE, found));
    const int64_t width = (int64_t)att_options_number(found, "embed_dim", 1), widths[] = {width, width, width};
    ATT_TRY(att_detected_write_blocks(context, file, &places, branches, widths, &detected, found));
    ATT_TRY(att_mlp_check_gate(context, file, "blocks.0.mlp_tokens"));
    ATT_TRY(att_mlp_check_gate(context, file, "blocks.0.mlp_channels"));
    att_token_read_classes(file, found);
    read_mlps(file, found);
    return ATT_OK;
}

/* The MLP along the tokens determines the number of patches, but not the sides of their grid. */
static att_status mixer_check_undetermined(att_context *context, const att_tensors *file, const att_option_sources *u)
{
    att_shape shape;
    char name[NAME_SIZE];
    const int64_t *dims = token_mlp(file, u->found, name, &shape);
    const att_option_value *size = att_options_find(u->given, "img_size");
    if (!dims || (!size && att_options_find(u->found, "img_size")))
        return ATT_OK;
    if (!size)
        return att_fail(
            context, ATT_ERR_UNSUPPORTED,
            "%s: the %d patches of \"%s\" form no square grid; give the sides of the images (img_size H W, --img-size)",
            u->path, (int)dims[1], name);
    const att_option_value *patch = att_options_find(u->given, "patch_size");
    if (!patch)
        patch = att_options_find(u->found, "patch_size");
    int height = (int)size->numbers[0], width = (int)size->numbers[size->count - 1];
    int64_t tokens = (int64_t)(height / (int)patch->numbers[0]) * (width / (int)patch->numbers[patch->count - 1]);
    if (tokens == dims[1])
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: the weights of an MLP-Mixer fit one number of patches: these fit %d, and an image of %d x %d "
                    "pixels has %" PRId64 "; leave img_size out, or train a network for that size",
                    u->path, (int)dims[1], height, width, tokens);
}

extern const att_family att_family_mixer;

const att_family att_family_mixer = {
    .name = "mixer",
    .signatures = {SIGNATURE},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &table,
    .hooks = {hooks, sizeof hooks / sizeof *hooks},
    .accepted_arguments = accepted_arguments,
    .classifier = mixer_classifier,
    .variants = &variants,
    .complete = mixer_complete,
    .build = mixer_build,
    .foreign = mixer_foreign,
    .recognise = mixer_recognise,
    .take_argument = take_argument,
    .timm = &timm_form,
    .check_undetermined = mixer_check_undetermined,
    .is_added = mixer_is_added,
    .layer = att_token_layer,
};
