/* network/text_family.h - for tests: a family of networks for text, with the inputs "tokens" [context_length] I32 and
 * "count" I32, and one that has an image besides. Neither is in the list of families. */
#ifndef ATT_TESTS_NETWORK_TEXT_FAMILY_H
#define ATT_TESTS_NETWORK_TEXT_FAMILY_H

#include <attscope/ops.h>

#include "networks/models/family.h"

enum { VOCABULARY = 11, TEXT_WIDTH = 8, LENGTH = 6 };

typedef struct text_options {
    ATT_IMAGE_MEMBERS;
    ATT_SHARED_MEMBERS;
    int context_length;
} text_options;

static const att_option text_rows[] = {
    ATT_SHARED_OPTIONS(text_options),
    {"context_length", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "tokens of a text", .low = 1, .high = 1024,
     ATT_OPTION_AT(text_options, context_length)},
    ATT_IMAGE_OPTIONS(text_options),
};
ATT_ASSERT_SETTINGS_FIT(text_options);
enum { ROWS = sizeof text_rows / sizeof *text_rows, ROWS_OF_IMAGES = 2 };
static const att_option_table text_table = {text_rows, ROWS - ROWS_OF_IMAGES, sizeof(text_options)};
static const att_option_table pair_table = {text_rows, ROWS, sizeof(text_options)};

static inline att_status text_complete(att_context *context, void *options)
{
    (void)context, (void)options;
    return ATT_OK;
}

/* One block of attention; the number of valid tokens is added as a vector. */
static inline att_value text_features(att_graph *graph, const text_options *o, att_features *features)
{
    const att_init init = {ATT_INIT_NORMAL, 1};
    att_scope root = att_scope_root(graph), qkv = att_scope_in(&root, "blocks.0.attn.qkv");
    att_scope attention = att_scope_in(&root, "blocks.0.attn"), sum = att_scope_in(&root, "blocks.0.add1");
    att_value tokens = att_graph_input(graph, "tokens", ATT_I32, att_shape_of(o->context_length));
    att_value count = att_graph_input(graph, "count", ATT_I32, (att_shape){0});
    att_value x =
        att_embed(graph, att_graph_parameter(graph, "words", att_shape_of(VOCABULARY, TEXT_WIDTH), init, true), tokens);
    const att_attention_options how = {.heads = 2};
    att_value all = att_nn_linear(&qkv, x, 3 * TEXT_WIDTH, true);
    att_scope_enter(&attention);
    att_value branch = att_attention(graph, all, ATT_NONE, ATT_NONE, &how);
    att_scope_enter(&sum);
    features->tokens = att_add(graph, x, branch);
    att_value counts = att_graph_parameter(graph, "counts", att_shape_of(LENGTH + 1, TEXT_WIDTH), init, true);
    return att_add(graph, att_token_mean(graph, features->tokens, 0), att_embed(graph, counts, count));
}

static inline void text_build(att_graph *graph, const void *options, att_features *features)
{
    features->pooled = text_features(graph, options, features);
}

static inline void pair_build(att_graph *graph, const void *options, att_features *features)
{
    const text_options *o = options;
    att_scope root = att_scope_root(graph), patches = att_scope_in(&root, "patch_embed");
    att_value image = att_graph_input(graph, "image", att_graph_dtype(graph),
                                      att_shape_of(o->img_size[0], o->img_size[1], o->in_chans));
    att_value seen = att_token_mean(graph, att_nn_patch_embed(&patches, image, 4, 4, TEXT_WIDTH, true), 0);
    features->pooled = att_add(graph, seen, text_features(graph, o, features));
}

static inline att_classifier_form text_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = att_nn_classifier};
}

static inline int text_layer(const char *name)
{
    (void)name;
    return ATT_LAYER_HEAD;
}

static const att_variant_row text_row = {.name = "text", .num_classes = 4, .settings = "context_length=6 "};
static const att_variant_row pair_row = {.name = "pair",
                                         .num_classes = 4,
                                         .img_size = 8,
                                         .crop_pct = 1,
                                         .settings = "context_length=6 in_chans=1 mean=0.5 std=0.5 "};
static const att_variants text_variants = {.rows = &text_row, .count = 1, .shared = ""};
static const att_variants pair_variants = {.rows = &pair_row, .count = 1, .shared = ""};

#define TEXT_INPUTS                                                                               \
    {.name = "tokens", .dtype = ATT_I32, .dims = {"context_length"}, .varies = "context_length"}, \
    {                                                                                             \
        .name = "count", .dtype = ATT_I32                                                         \
    }
static const att_family text_family = {.name = "text",
                                       .inputs = {TEXT_INPUTS},
                                       .options = &text_table,
                                       .classifier = text_classifier,
                                       .variants = &text_variants,
                                       .complete = text_complete,
                                       .build = text_build,
                                       .layer = text_layer};
static const att_family pair_family = {.name = "pair",
                                       .inputs = {ATT_IMAGE_INPUT, TEXT_INPUTS},
                                       .options = &pair_table,
                                       .classifier = text_classifier,
                                       .variants = &pair_variants,
                                       .complete = text_complete,
                                       .build = pair_build,
                                       .layer = text_layer};

#endif
