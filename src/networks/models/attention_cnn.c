/* The self-attention network of Cordonnier et al. (ICLR 2020), which can express a convolutional network: patches of 2
 * x 2 pixels, blocks of attention and an MLP with a layer norm after each addition, the mean over the tokens. Every
 * head attends to the whole grid by positions, or by positions and content, and reads all channels of the tokens as
 * values.
 */
#include "networks/models/attention_cnn.h"

#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/models/patches.h"
#include "networks/models/token_tensors.h"
#include "networks/models/variants.h"

static const double NORM_EPS = 1e-12;
static const att_hooks no_hooks;

/* --- encodings --------------------------------------------------------------------------------------------------- */

#define ISOTROPIC ATT_ENCODING_ISOTROPIC
#define QUADRATIC ATT_ENCODING_QUADRATIC
#define LEARNED ATT_ENCODING_LEARNED
#define LEARNED_CONTENT ATT_ENCODING_CONTENT

ATT_CHOICES(encoding_name, ISOTROPIC, QUADRATIC, LEARNED, LEARNED_CONTENT)

/* --- variants ---------------------------------------------------------------------------------------------------- */

static const char CORDONNIER[] = "self-attention as convolution (Cordonnier et al., ICLR 2020)";

static const att_variant_row variant_rows[] = {
    {"attention_cnn_isotropic", CORDONNIER, 32, 10, 1, "encoding=" ISOTROPIC},
    {"attention_cnn_isotropic_many", CORDONNIER, 32, 10, 1, "num_heads=16 encoding=" ISOTROPIC},
    {"attention_cnn_quadratic", CORDONNIER, 32, 10, 1, "encoding=" QUADRATIC},
    {"attention_cnn_learned", CORDONNIER, 32, 10, 1, "encoding=" LEARNED},
    {"attention_cnn_content", CORDONNIER, 32, 10, 1, "encoding=" LEARNED_CONTENT},
};
static const att_variants variants = {.rows = variant_rows,
                                      .count = sizeof variant_rows / sizeof *variant_rows,
                                      .shared = ATT_CIFAR
                                      "patch_size=2 embed_dim=400 depth=6 num_heads=9 mlp_ratio=1.28 global_pool=avg "
                                      "proj_drop_rate=0.1 attn_drop_rate=0"};

/* --- options ----------------------------------------------------------------------------------------------------- */

typedef att_attention_cnn_options attention_cnn_options;

ATT_CHOICES(pool_name, "avg")

enum { MOST_HEADS = 65536 };
#define MEMBER(member) ATT_OPTION_AT(attention_cnn_options, member)
static const att_option option_rows[] = {
    ATT_IMAGE_OPTIONS(attention_cnn_options),
    ATT_SHARED_OPTIONS(attention_cnn_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, MEMBER(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     MEMBER(embed_dim)},
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "blocks", .low = 1, .high = 1024, MEMBER(depth)},
    {"num_heads", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "attention heads of a block", .low = 1,
     .high = MOST_HEADS, MEMBER(num_heads)},
    {"layer_heads", .kind = ATT_OPTION_TEXT, .value = "LIST",
     .help = "of attention_cnn: heads of each block if they differ, as after pruning: 9,9,8,7,9,6; num_heads is then "
             "the largest of them",
     .differs_as = "the heads of its blocks", MEMBER(layer_heads)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, MEMBER(mlp_ratio)},
    {"encoding", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what attention_cnn's heads attend by: isotropic (distance to a center), quadratic (with a spread of any "
             "shape), learned (a vector for each shift along each axis) or learned_content (such vectors, compared "
             "with the "
             "query, and queries with keys)",
     .choice = encoding_name, MEMBER(encoding)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: avg, the mean over tokens", .choice = pool_name, MEMBER(global_pool)},
    {"proj_drop_rate", .flag = "proj-drop", .kind = ATT_OPTION_REAL, .value = "X",
     .help = "of attention_cnn: dropout at the end of each branch", .high = 0.999999, .not_compared = true,
     MEMBER(proj_drop_rate)},
    ATT_ATTENTION_DROP_OPTION(attention_cnn_options),
};
ATT_ASSERT_SETTINGS_FIT(attention_cnn_options);
static const att_option_table table = {option_rows, sizeof option_rows / sizeof *option_rows,
                                       sizeof(attention_cnn_options)};

static bool is(const attention_cnn_options *o, const char *encoding)
{
    return strcmp(o->encoding, encoding) == 0;
}

int att_attention_cnn_heads(const att_attention_cnn_options *o, int block)
{
    int heads[ATT_ATTENTION_CNN_LISTED];
    const int count = att_text_to_list(o->layer_heads, 1, MOST_HEADS, heads, ATT_ATTENTION_CNN_LISTED);
    return block < count ? heads[block] : o->num_heads;
}

/* Checks layer_heads. num_heads becomes the largest number. */
static att_status complete_heads(att_context *context, attention_cnn_options *o)
{
    int heads[ATT_ATTENTION_CNN_LISTED], most = 0;
    const int count = att_text_to_list(o->layer_heads, 1, MOST_HEADS, heads, ATT_ATTENTION_CNN_LISTED);
    if (!*o->layer_heads)
        return ATT_OK;
    if (count != o->depth)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "layer_heads must be the numbers of heads of the %d blocks, from 1 to %d and joined by commas, "
                        "not \"%s\"",
                        o->depth, MOST_HEADS, o->layer_heads);
    for (int i = 0; i < count; i++)
        most = heads[i] > most ? heads[i] : most;
    o->num_heads = most;
    return ATT_OK;
}

static att_status attention_cnn_complete(att_context *context, void *options)
{
    attention_cnn_options *o = options;
    const att_stages stages = {.count = 1, .blocks = {o->depth}};
    att_modules modules;
    ATT_TRY(att_modules_parse(context, &no_hooks, &stages, o->modules, &modules));
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(complete_heads(context, o));
    if (is(o, LEARNED_CONTENT) && o->embed_dim % 2)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "embed_dim is %d; with encoding " LEARNED_CONTENT
                        " it must be even, since each axis reads one "
                        "half of a query",
                        o->embed_dim);
    return att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio);
}

/* --- the network ------------------------------------------------------------------------------------------------- */

/* A layer without bias, which starts as att_nn_classifier(). */
static att_value project(const att_scope *scope, att_value x, int64_t inputs, int64_t outputs)
{
    const att_init init = {.rule = ATT_INIT_UNIFORM, .value = 1 / sqrt((double)inputs)};
    att_scope_enter(scope);
    return att_linear(scope->graph, x, att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs), init, true),
                      ATT_NONE);
}

/* A parameter of positions: drawn from N(0, deviation^2), without weight decay. */
static att_value position_parameter(const att_scope *scope, const char *name, att_shape shape, double deviation,
                                    bool decay)
{
    const att_init init = {.rule = ATT_INIT_NORMAL, .value = deviation};
    att_scope_enter(scope);
    return att_scope_parameter(scope, name, shape, init, decay);
}

static int grid_side(const attention_cnn_options *o, int axis)
{
    return o->img_size[axis] / o->patch_size[axis];
}

/* Scores of quadratic encodings: learned centers, rows first, and sharpness. Both start as published. */
static void add_quadratic(const att_scope *scope, const attention_cnn_options *o, int64_t heads,
                          att_attention_terms *terms)
{
    enum { CENTER = 2 };
    const att_init near_one = {.rule = ATT_INIT_NEAR_IDENTITY, .value = 0.01};
    const int height = grid_side(o, 0), width = grid_side(o, 1);
    att_value centers = position_parameter(scope, "centers", att_shape_of(heads, 2), CENTER, false);
    if (is(o, ISOTROPIC)) {
        att_value sharpness = att_scope_parameter(scope, "sharpness", att_shape_of(heads), near_one, false);
        att_isotropic_shifts(scope->graph, height, width, centers, sharpness, terms);
    } else {
        att_value factors = att_scope_parameter(scope, "factors", att_shape_of(heads, 2, 2), near_one, false);
        terms->relative = att_quadratic_shifts(scope->graph, height, width, centers, factors);
    }
}

/* A vector for each shift along an axis, as PyTorch's nn.Embedding starts. */
static att_value axis_embedding(const att_scope *scope, const char *name, int side, int64_t width)
{
    return position_parameter(scope, name, att_shape_of(2 * side - 1, width), 1, true);
}

static void add_learned(const att_scope *scope, const attention_cnn_options *o, int heads, att_attention_terms *terms)
{
    att_scope row_key = att_scope_in(scope, "row_key"), column_key = att_scope_in(scope, "column_key");
    att_value rows = axis_embedding(scope, "row_embed", grid_side(o, 0), o->embed_dim);
    att_value columns = axis_embedding(scope, "column_embed", grid_side(o, 1), o->embed_dim);
    terms->row_shifts = project(&row_key, rows, o->embed_dim, heads);
    terms->column_shifts = project(&column_key, columns, o->embed_dim, heads);
}

/* Scores of queries q [N, H C]: the first half of a head's channels belongs to the rows, the other to the columns. */
static void add_axis_terms(const att_scope *scope, const attention_cnn_options *o, int heads, att_value q,
                           att_attention_terms *terms)
{
    const att_axis_terms_options options = {.heads = heads,
                                            .width = o->embed_dim,
                                            .grid_h = grid_side(o, 0),
                                            .grid_w = grid_side(o, 1),
                                            .scale = 1 / sqrt(o->embed_dim)};
    att_value rows = axis_embedding(scope, "row_embed", grid_side(o, 0), o->embed_dim / 2);
    att_value columns = axis_embedding(scope, "column_embed", grid_side(o, 1), o->embed_dim / 2);
    att_scope_enter(scope);
    att_axis_terms(scope->graph, q, rows, columns, &options, terms);
}

/* Every head reads all channels of x as values: [N, C] -> [N, H C]. */
static att_value build_heads(const att_scope *scope, const attention_cnn_options *o, int heads, att_value x)
{
    const int64_t width = (int64_t)o->embed_dim * heads;
    att_attention_terms terms = att_attention_no_terms();
    att_scope query = att_scope_in(scope, "query"), key = att_scope_in(scope, "key");
    att_value q = ATT_NONE, k = ATT_NONE;
    if (is(o, LEARNED_CONTENT)) {
        q = att_nn_classifier(&query, x, width);
        k = att_nn_classifier(&key, x, width);
        add_axis_terms(scope, o, heads, q, &terms);
    } else if (is(o, LEARNED)) {
        add_learned(scope, o, heads, &terms);
    } else {
        add_quadratic(scope, o, heads, &terms);
    }
    const att_attention_options options = {.heads = heads,
                                           .value_heads = 1,
                                           .grid_h = grid_side(o, 0),
                                           .grid_w = grid_side(o, 1),
                                           .step_h = o->patch_size[0],
                                           .step_w = o->patch_size[1],
                                           .terms = &terms,
                                           .drop_rate = o->attn_drop_rate};
    att_scope_enter(scope);
    return att_attention(scope->graph, q, k, x, &options);
}

static att_value drop(const att_scope *scope, const attention_cnn_options *o, att_value x)
{
    att_scope_enter(scope);
    return att_dropout(scope->graph, x, o->proj_drop_rate);
}

/* norm(identity + drop_path(dropout(branch))). half_of_block: 1 or 2. */
static att_value add_branch(const att_scope *block, const attention_cnn_options *o, int half_of_block,
                            att_value identity, att_value branch)
{
    att_scope dropout = att_scope_in(block, "drop%d", half_of_block);
    att_scope path = att_scope_in(block, "drop_path%d", half_of_block);
    att_scope sum = att_scope_in(block, "add%d", half_of_block), norm = att_scope_in(block, "norm%d", half_of_block);
    branch = drop(&dropout, o, branch);
    att_scope_enter(&path);
    branch = att_drop_path(block->graph, branch, o->drop_path_rate);
    att_scope_enter(&sum);
    return att_nn_layer_norm(&norm, att_add(block->graph, identity, branch), NORM_EPS);
}

static att_value build_block(const att_scope *block, const attention_cnn_options *o, int heads, att_value x)
{
    const int64_t width = o->embed_dim, hidden = att_mlp_hidden(o->embed_dim, o->mlp_ratio);
    att_scope attention = att_scope_in(block, "attn"), value = att_scope_in(&attention, "value");
    att_scope proj = att_scope_in(&attention, "proj");
    att_scope first = att_scope_in(block, "mlp.fc1"), second = att_scope_in(block, "mlp.fc2");
    att_value branch = build_heads(&attention, o, heads, x);
    branch = att_nn_classifier(&value, branch, width);
    x = add_branch(block, o, 1, x, att_nn_classifier(&proj, branch, width));
    branch = att_gelu(block->graph, att_nn_classifier(&first, x, hidden));
    return add_branch(block, o, 2, x, att_nn_classifier(&second, branch, width));
}

static att_value build_stem(const att_scope *scope, const attention_cnn_options *o)
{
    att_value image = att_graph_input(scope->graph, ATT_IMAGE, att_graph_dtype(scope->graph),
                                      att_shape_of(o->img_size[0], o->img_size[1], o->in_chans));
    const int64_t inputs = (int64_t)o->patch_size[0] * o->patch_size[1] * o->in_chans;
    const att_init init = {.rule = ATT_INIT_UNIFORM, .value = 1 / sqrt((double)inputs)};
    att_shape shape = att_shape_of(o->embed_dim, o->in_chans, o->patch_size[0], o->patch_size[1]);
    att_scope_enter(scope);
    att_value weight = att_scope_parameter(scope, "weight", shape, init, true);
    att_value bias = att_scope_parameter(scope, "bias", att_shape_of(o->embed_dim), init, false);
    return att_linear(scope->graph, att_patchify(scope->graph, image, o->patch_size[0], o->patch_size[1]), weight,
                      bias);
}

static void attention_cnn_build(att_graph *graph, const void *options, att_features *features)
{
    const attention_cnn_options *o = options;
    att_scope root = att_scope_root(graph), stem = att_scope_in(&root, "patch_embed.proj");
    att_scope pool = att_scope_in(&root, "pool");
    att_value *blocks = att_features_of_tokens(graph, 0, grid_side(o, 0), grid_side(o, 1), o->depth, features);
    if (!blocks)
        return;
    att_value x = build_stem(&stem, o);
    for (int i = 0; i < o->depth; i++) {
        att_scope block = att_scope_in(&root, "blocks.%d", i);
        blocks[i] = x = build_block(&block, o, att_attention_cnn_heads(o, i), x);
    }
    features->tokens = x;
    att_scope_enter(&pool);
    features->pooled = att_token_mean(graph, x, 0);
}

static att_classifier_form attention_cnn_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = att_nn_classifier};
}

/* --- recognising tensors ------------------------------------------------------------------------------------------ */

static const char SIGNATURE[] = "blocks.0.attn.value.weight", STEM[] = "patch_embed.proj.weight";

static const char outer_names[] = "patch_embed.proj.weight patch_embed.proj.bias head.weight head.bias";
static const char block_names[] =
    "attn.value.weight attn.value.bias attn.proj.weight attn.proj.bias norm1.weight norm1.bias mlp.fc1.weight "
    "mlp.fc1.bias mlp.fc2.weight mlp.fc2.bias norm2.weight norm2.bias";

/* The tensors of each encoding, below a block's attention; `sign` tells it from the encodings before it. */
static const struct encoding_tensors {
    const char *encoding, *sign, *names;
} encodings[] = {
    {LEARNED_CONTENT, "query.weight", "query.weight query.bias key.weight key.bias row_embed column_embed"},
    {LEARNED, "row_key.weight", "row_key.weight column_key.weight row_embed column_embed"},
    {ISOTROPIC, "sharpness", "sharpness centers"},
    {QUADRATIC, "factors", "factors centers"},
};

static const struct encoding_tensors *find_encoding(const att_tensors *file)
{
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (att_checkpoint_has(file, "blocks.0.attn.%s", encodings[i].sign))
            return &encodings[i];
    return NULL;
}

static bool is_of_block(const att_tensors *file, const char *rest)
{
    const struct encoding_tensors *encoding = find_encoding(file);
    return att_checkpoint_lists(block_names, rest) ||
           (encoding && att_token_lists_below(encoding->names, rest, "attn"));
}

static const att_token_places no_places = {.hooks = &no_hooks};
static const att_token_tensors like = {.outer = outer_names,
                                       .is_of_block = is_of_block,
                                       .what = "self-attention network of Cordonnier et al.",
                                       .places = &no_places};

static att_foreign attention_cnn_foreign(const att_context *context, const att_tensors *file)
{
    return att_token_foreign(context, file, &like);
}

static int heads_in_block(const att_tensors *file, int width, int block)
{
    const int64_t inputs = att_checkpoint_side(file, 1, "blocks.%d.attn.value.weight", block);
    return inputs % width == 0 && inputs / width <= MOST_HEADS ? (int)(inputs / width) : 0;
}

/* The option layer_heads is left out if the list is too long for it. */
static void read_heads(const att_tensors *file, int width, att_option_values *found)
{
    char list[sizeof((attention_cnn_options *)0)->layer_heads];
    int heads[ATT_ATTENTION_CNN_LISTED], most = 0, least = MOST_HEADS;
    const int depth = (int)att_options_number(found, "depth", 0);
    for (int i = 0; i < depth && i < ATT_ATTENTION_CNN_LISTED; i++) {
        heads[i] = heads_in_block(file, width, i);
        most = heads[i] > most ? heads[i] : most;
        least = heads[i] < least ? heads[i] : least;
    }
    if (most > 0)
        att_options_set(found, "num_heads", most);
    if (least != most && depth <= ATT_ATTENTION_CNN_LISTED && att_format_list(heads, depth, list, sizeof list))
        att_options_set_text(found, "layer_heads", list);
}

/* The grid of learned encodings, from the number of shifts along each axis. */
static void read_grid(const att_tensors *file, att_option_values *found)
{
    static const char *const names[] = {"blocks.0.attn.row_embed", "blocks.0.attn.column_embed"};
    const att_option_value *patch = att_options_find(found, "patch_size");
    int sides[2] = {0, 0};
    for (int axis = 0; axis < 2; axis++) {
        att_shape shape;
        const int64_t *dims = att_checkpoint_dims(file, names[axis], 2, &shape);
        if (dims && dims[0] % 2)
            sides[axis] = (int)((dims[0] + 1) / 2 * (int64_t)patch->numbers[axis < patch->count ? axis : 0]);
    }
    if (sides[0] > 0 && sides[1] > 0)
        att_options_set_sides(found, "img_size", sides[0], sides[1]);
}

static att_status attention_cnn_recognise(att_context *context, const att_tensors *file, att_option_values *found)
{
    const struct encoding_tensors *encoding = find_encoding(file);
    att_detected_modules none = {0};
    if (!encoding)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: \"%s\" is of no attention by positions that attscope has",
                        att_tensors_path(file), SIGNATURE);
    ATT_TRY(att_token_read_names(context, file, &like, found, &none));
    ATT_TRY(att_patches_read(context, file, STEM, found));
    att_options_set_text(found, "encoding", encoding->encoding);
    const int width = (int)att_options_number(found, "embed_dim", 1);
    read_heads(file, width, found);
    const int64_t hidden = att_checkpoint_side(file, 0, "blocks.0.mlp.fc1.weight");
    if (hidden)
        att_options_set(found, "mlp_ratio", att_mlp_ratio(width, hidden));
    att_options_set(found, "num_classes", (double)att_checkpoint_side(file, 0, "head.weight"));
    read_grid(file, found);
    return ATT_OK;
}

static double side(const att_option_value *sides, int axis)
{
    return sides->numbers[axis < sides->count ? axis : 0];
}

/* The learned encodings of shifts fit one grid of patches. found: its sides in pixels, whole patches. */
static att_status attention_cnn_check_undetermined(att_context *context, const att_tensors *file,
                                                   const att_option_sources *u)
{
    (void)file;
    const att_option_value *size = att_options_find(u->given, "img_size");
    const att_option_value *found = att_options_find(u->found, "img_size"),
                           *patch = att_options_find(u->found, "patch_size");
    bool fits = true;
    for (int axis = 0; size && found && axis < 2; axis++) {
        double beyond = side(size, axis) - side(found, axis);
        fits &= beyond >= 0 && beyond < side(patch, axis);
    }
    return fits ? ATT_OK
                : att_fail(
                      context, ATT_ERR_UNSUPPORTED,
                      "%s: the learned encodings of positions fit images of %.0f x %.0f pixels, not of %.0f x %.0f; "
                      "leave img_size out, or train a network for that size",
                      u->path, side(found, 0), side(found, 1), side(size, 0), side(size, 1));
}

extern const att_family att_family_attention_cnn;

const att_family att_family_attention_cnn = {
    .name = "attention_cnn",
    .signatures = {SIGNATURE},
    .inputs = {ATT_IMAGE_INPUT},
    .options = &table,
    .classifier = attention_cnn_classifier,
    .variants = &variants,
    .complete = attention_cnn_complete,
    .build = attention_cnn_build,
    .foreign = attention_cnn_foreign,
    .recognise = attention_cnn_recognise,
    .check_undetermined = attention_cnn_check_undetermined,
    .layer = att_token_layer,
    .positions = &att_attention_cnn_positions,
};
