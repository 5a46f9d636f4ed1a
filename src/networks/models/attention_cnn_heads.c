/* The heads of attention_cnn as a convolution: what its parameters say about them (models/position_heads.h). */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "networks/models/attention_cnn.h"
#include "networks/models/checkpoint.h"

static int count_layers(const void *options)
{
    const att_attention_cnn_options *o = options;
    return strcmp(o->encoding, ATT_ENCODING_CONTENT) == 0 ? 0 : o->depth;
}

static int count_heads(const void *options, int layer)
{
    return att_attention_cnn_heads(options, layer);
}

/* Where the parameters of a layer are read from. */
typedef struct source {
    const att_attention_cnn_options *options;
    const att_model *model;
    const att_weights *weights;
    att_position_heads *heads;
} source;

static att_status read(const source *s, const char *name, int64_t count, double **values)
{
    return att_position_parameter(s->heads, s->model, s->weights, name, count, values);
}

static att_status read_forms(const source *s)
{
    att_position_heads *heads = s->heads;
    const bool isotropic = strcmp(s->options->encoding, ATT_ENCODING_ISOTROPIC) == 0;
    double *centers = NULL, *factors = NULL;
    heads->forms = att_allocate_array(heads->context, (size_t)heads->count, sizeof *heads->forms);
    att_status status = heads->forms ? read(s, "centers", 2 * (int64_t)heads->count, &centers)
                                     : att_fail_memory(heads->context, sizeof *heads->forms, "the heads of a layer");
    if (status == ATT_OK)
        status = isotropic ? read(s, "sharpness", heads->count, &factors)
                           : read(s, "factors", 4 * (int64_t)heads->count, &factors);
    for (int h = 0; h < heads->count && status == ATT_OK; h++)
        for (int i = 0; i < 2; i++) {
            heads->forms[h].center[i] = centers[2 * h + i];
            for (int j = 0; j < 2; j++)
                heads->forms[h].factors[i][j] = !isotropic ? factors[4 * h + 2 * i + j] : i == j ? factors[h] : 0;
        }
    att_free(heads->context, centers);
    att_free(heads->context, factors);
    return status;
}

/* Adds row_key(row_embed) or column_key(column_embed) to the scores. The tables count shifts from key to query. */
static att_status add_learned(const source *s, int axis, const char *embed_name, const char *key_name)
{
    att_position_heads *heads = s->heads;
    const int64_t width = s->options->embed_dim, shifts = 2 * (int64_t)heads->grid[axis] - 1;
    const int64_t rows = 2 * (int64_t)heads->grid[0] - 1, columns = 2 * (int64_t)heads->grid[1] - 1;
    double *embed = NULL, *key = NULL;
    att_status status = read(s, embed_name, shifts * width, &embed);
    if (status == ATT_OK)
        status = read(s, key_name, heads->count * width, &key);
    for (int64_t i = 0; i < heads->count * rows * columns && status == ATT_OK; i++) {
        const int64_t shift = axis == 0 ? i / columns % rows : i % columns, head = i / columns / rows;
        const double *vector = embed + (shifts - 1 - shift) * width;
        for (int64_t c = 0; c < width; c++)
            heads->scores[i] += vector[c] * key[head * width + c];
    }
    att_free(heads->context, embed);
    att_free(heads->context, key);
    return status;
}

static att_status read_scores(const source *s)
{
    att_position_heads *heads = s->heads;
    const size_t count = (size_t)heads->count * (size_t)(2 * heads->grid[0] - 1) * (size_t)(2 * heads->grid[1] - 1);
    ATT_TRY(att_new(heads->context, &heads->scores, count, "the scores of a layer"));
    ATT_TRY(add_learned(s, 0, "row_embed", "row_key.weight"));
    return add_learned(s, 1, "column_embed", "column_key.weight");
}

static att_status read_layer(const void *options, const att_model *model, const att_weights *weights, int layer,
                             att_position_heads *heads)
{
    const source s = {options, model, weights, heads};
    const int64_t width = s.options->embed_dim;
    snprintf(heads->scope, sizeof heads->scope, "blocks.%d.attn", layer);
    heads->inputs = heads->middle = heads->outputs = width;
    for (int i = 0; i < 2; i++)
        heads->grid[i] = s.options->img_size[i] / s.options->patch_size[i];
    ATT_TRY(strcmp(s.options->encoding, ATT_ENCODING_LEARNED) == 0 ? read_scores(&s) : read_forms(&s));
    ATT_TRY(read(&s, "value.weight", width * width * heads->count, &heads->value));
    ATT_TRY(read(&s, "value.bias", width, &heads->value_bias));
    ATT_TRY(read(&s, "proj.weight", width * width, &heads->proj));
    return read(&s, "proj.bias", width, &heads->proj_bias);
}

static int head_axis(const char *name, int layer)
{
    static const char rows[] = "centers factors sharpness row_key.weight column_key.weight";
    const char *rest;
    if (att_checkpoint_block(name, "blocks", &rest) != layer || strncmp(rest, "attn.", 5) != 0)
        return -1;
    return att_checkpoint_lists(rows, rest + 5) ? 0 : strcmp(rest + 5, "value.weight") == 0 ? 1 : -1;
}

/* Equal numbers need no list. */
static bool set_heads(const int *heads, int layers, att_option_values *options)
{
    char list[sizeof((att_attention_cnn_options *)0)->layer_heads];
    bool equal = true, fits = att_format_list(heads, layers, list, sizeof list);
    for (int i = 0; i < layers; i++)
        equal = equal && heads[i] == heads[0];
    att_options_unset(options, "num_heads");
    att_options_unset(options, "layer_heads");
    if (equal)
        att_options_set(options, "num_heads", heads[0]);
    else
        att_options_set_text(options, "layer_heads", list);
    return equal || fits;
}

const att_position_family att_attention_cnn_positions = {
    .layers = count_layers,
    .heads = count_heads,
    .read = read_layer,
    .head_axis = head_axis,
    .set_heads = set_heads,
};
