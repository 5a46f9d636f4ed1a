#include "study/train/maps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/ops/list.h"
#include "engine/ops/mix_pairs.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "networks/tasks/draw.h"

enum { MAX_IMAGES = 65536, TEXT_SIZE = 8192, MAX_LEVEL = 65535 };

att_maps_options att_maps_options_defaults(void)
{
    return (att_maps_options){.nodes = "*", .count = 8, .backend = "cpu"};
}

/* --- preparation -------------------------------------------------------------------------------------------------- */

static att_status add_probes(att_mapper *m)
{
    const att_graph *graph = att_model_graph(m->model);
    ATT_TRY(att_graph_status(graph));
    m->graph = att_graph_copy(graph);
    if (!m->graph)
        return att_fail_memory(m->context, sizeof(void *), "the graph of attention maps");
    return att_graph_probe_attention_map(m->graph, m->options->nodes);
}

static bool is_requested(const att_mapper *m, const att_node *node)
{
    return att_is_attention(node) && att_text_matches_any(m->options->nodes, node->scope);
}

/* Whether the queries are all pixels of the map. */
static bool has_all_queries(const att_mapper *m, const att_node *node)
{
    const att_mix_pairs_attrs *attrs = ATT_ATTRS(node, mix_pairs);
    const att_shape map = att_value_shape(m->graph, node->in[0]);
    return attrs->stride == 1 && map.dims[0] == attrs->attention.grid_h && map.dims[1] == attrs->attention.grid_w;
}

static int64_t tokens_of(const att_mapper *m, const att_node *node)
{
    const att_shape shape = att_value_shape(m->graph, node->out[0]);
    return att_shape_count(shape) / shape.dims[shape.rank - 1];
}

/* Whether the node's queries and keys are the same tokens, on a grid; the keys may have a ring around it. */
static bool is_on_a_grid(const att_mapper *m, const att_node *node)
{
    const att_attention_attrs *attrs = ATT_ATTRS(node, attention);
    if (node->op == &att_op_mix_pairs && !has_all_queries(m, node))
        return false;
    return tokens_of(m, node) == attrs->prefix + attrs->grid_h * attrs->grid_w && attrs->grid_h > 0;
}

static void *allocate(att_mapper *m, size_t count, size_t size)
{
    return att_arena_allocate(&m->arena, att_size_product(count, size));
}

static void find_windows(const att_mapped_node *node)
{
    int64_t windows = att_attention_windows(node->attrs);
    for (int64_t window = 0; window < windows; window++)
        for (int64_t i = 0; i < node->keys; i++) {
            int64_t token = att_attention_token_at(node->attrs, window, i).index;
            node->window[token] = (int32_t)window;
            node->self[token] = (int32_t)i;
        }
}

static att_status add_node(att_mapper *m, const att_node *node)
{
    att_mapped_node *added = &m->nodes[m->node_count++];
    added->scope = node->scope;
    added->attrs = ATT_ATTRS(node, attention);
    added->heads = added->attrs->heads;
    added->tokens = tokens_of(m, node);
    added->prefix_tokens = added->attrs->prefix;
    added->keys = added->tokens / att_attention_windows(added->attrs);
    added->ring = node->op == &att_op_mix_pairs ? ATT_ATTRS(node, mix_pairs)->ring : 0;
    snprintf(added->patches_name, ATT_MAP_NAME, "%s.patches", node->scope);
    snprintf(added->prefix_name, ATT_MAP_NAME, "%s.prefix", node->scope);
    snprintf(added->figures_name, ATT_MAP_NAME, "%s.figures", node->scope);
    snprintf(added->place_name, ATT_MAP_NAME, "%s.place", node->scope);
    size_t rows = att_size_product((size_t)m->max_images, (size_t)(added->heads * added->tokens));
    size_t described = att_size_product((size_t)m->max_images, (size_t)((added->heads + 1) * added->tokens));
    size_t patches = att_size_product(rows, (size_t)(added->keys - added->prefix_tokens));
    size_t prefix = att_size_product(rows, (size_t)added->prefix_tokens);
    added->patches = allocate(m, patches, sizeof *added->patches);
    added->prefix = allocate(m, prefix > 0 ? prefix : 1, sizeof *added->prefix);
    added->figures = allocate(m, described, ATT_MAPS_FIGURES * sizeof *added->figures);
    added->place = allocate(m, described, sizeof *added->place);
    added->window = allocate(m, (size_t)added->tokens, sizeof *added->window);
    added->self = allocate(m, (size_t)added->tokens, sizeof *added->self);
    bool ok = added->patches && added->prefix && added->figures && added->place && added->window && added->self;
    if (!ok)
        return att_fail_memory(m->context, att_size_product(patches, sizeof *added->patches), "attention maps");
    find_windows(added);
    return ATT_OK;
}

/* Weights of a query in the map that the network computes, with those of the ring. */
static int64_t computed_keys(const att_mapped_node *node)
{
    const att_attention_attrs *attrs = node->attrs;
    return node->ring > 0 ? (attrs->grid_h + 2 * node->ring) * (attrs->grid_w + 2 * node->ring) : node->keys;
}

static att_status find_nodes(att_mapper *m)
{
    const att_graph *graph = m->graph;
    size_t size = (size_t)graph->nodes.count * sizeof *m->nodes;
    int64_t largest = 0, keys = 0;
    m->nodes = att_arena_allocate(&m->arena, size);
    if (!m->nodes)
        return att_fail_memory(m->context, size, "attention maps");
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (!is_requested(m, node))
            continue;
        if (!is_on_a_grid(m, node)) {
            att_log(m->context, ATT_LOG_INFO,
                    "no maps of %s: its queries are not the tokens of the grid of its keys, as in layers with a stride",
                    node->scope);
            continue;
        }
        ATT_TRY(add_node(m, node));
        const att_mapped_node *added = &m->nodes[m->node_count - 1];
        int64_t weights = added->heads * added->tokens * computed_keys(added);
        largest = weights > largest ? weights : largest;
        keys = added->keys > keys ? added->keys : keys;
    }
    if (m->node_count == 0)
        return att_fail(m->context, ATT_ERR_UNSUPPORTED, "no attention on a grid of tokens matches \"%s\"",
                        m->options->nodes);
    m->rows = allocate(m, (size_t)largest, sizeof *m->rows);
    m->mean = allocate(m, (size_t)keys, sizeof *m->mean);
    return m->rows && m->mean ? ATT_OK
                              : att_fail_memory(m->context, (size_t)largest * sizeof *m->rows, "an attention map");
}

static size_t image_area(const att_mapper *m)
{
    return (size_t)m->transform->height * (size_t)m->transform->width;
}

static size_t pixels(const att_mapper *m)
{
    return image_area(m) * (size_t)m->transform->channels;
}

/* Whether the task's answers give each pixel a class, or may do so. */
static bool is_drawn(const att_mapper *m)
{
    return att_task_draws(m->context, att_model_task(m->model).name) && att_model_classes(m->model) > 0;
}

static att_status reserve_images(att_mapper *m)
{
    size_t count = (size_t)m->max_images;
    m->images = allocate(m, count, pixels(m));
    m->pixels = allocate(m, pixels(m), sizeof *m->pixels);
    m->indices = allocate(m, count, sizeof *m->indices);
    m->labels = allocate(m, count, sizeof *m->labels);
    m->captions = allocate(m, count, sizeof *m->captions);
    bool ok = m->images && m->pixels && m->indices && m->labels && m->captions;
    if (is_drawn(m)) {
        const size_t classes = (size_t)att_model_classes(m->model);
        m->classes = allocate(m, att_size_product(count, image_area(m)), sizeof *m->classes);
        m->colours = allocate(m, classes, 3);
        ok = ok && m->classes && m->colours;
    }
    return ok ? ATT_OK
              : att_fail_memory(m->context, att_size_product(count, pixels(m)), "the images of attention maps");
}

static att_status reserve_output(att_mapper *m, const att_field *field, att_mapped_output *output)
{
    size_t bytes = att_size_product((size_t)m->max_images, att_field_bytes(field)), length = strlen(field->name);
    if (field->shape.rank == ATT_MAX_RANK)
        return att_fail(m->context, ATT_ERR_UNSUPPORTED,
                        "the network's output \"%s\" has %d dimensions; a file of maps can store at most %d",
                        field->name, ATT_MAX_RANK, ATT_MAX_RANK - 1);
    char *name = allocate(m, length + sizeof ATT_MAPS_OUTPUT, 1);
    output->values = allocate(m, bytes, 1);
    if (!name || !output->values)
        return att_fail_memory(m->context, bytes, "the outputs of a network");
    snprintf(name, length + sizeof ATT_MAPS_OUTPUT, ATT_MAPS_OUTPUT "%s", field->name);
    output->name = name;
    return ATT_OK;
}

static att_status reserve(att_mapper *m)
{
    int count = m->inference.output_count;
    ATT_TRY(reserve_images(m));
    m->outputs = allocate(m, (size_t)count, sizeof *m->outputs);
    if (!m->outputs)
        return att_fail_memory(m->context, (size_t)count * sizeof *m->outputs, "the outputs of a network");
    for (int i = 0; i < count; i++)
        ATT_TRY(reserve_output(m, &m->inference.outputs[i], &m->outputs[i]));
    return ATT_OK;
}

/* Checks the requested images and sets `max_images`. */
static att_status count_images(att_mapper *m)
{
    const att_maps_options *o = m->options;
    int64_t count = att_dataset_count(m->dataset);
    if (o->count < 1 || o->count > MAX_IMAGES)
        return att_fail(m->context, ATT_ERR_ARGUMENT, "attention maps of %d images, expected 1 to %d", o->count,
                        (int)MAX_IMAGES);
    for (int i = 0; o->images && i < o->count; i++)
        if (o->images[i] < 0 || o->images[i] >= count)
            return att_fail(m->context, ATT_ERR_ARGUMENT, "attention maps of image %lld of a data set of %lld images",
                            (long long)o->images[i], (long long)count);
    m->max_images = o->images || o->count < count ? o->count : count;
    return ATT_OK;
}

static att_answer_options names_of_classes(const att_mapper *m)
{
    const att_maps_options *o = m->options;
    att_answer_options names = {.labels = o->class_names, .label_count = o->class_count, .colours = o->class_colours};
    if (!names.labels && !o->unlabelled) {
        names.labels = att_dataset_class_names(m->dataset);
        names.label_count = att_dataset_class_count(m->dataset);
    }
    return names;
}

static att_status prepare(att_mapper *m, att_weights *weights)
{
    if (att_graph_dtype(att_model_graph(m->model)) != ATT_F32)
        return att_fail(m->context, ATT_ERR_UNSUPPORTED, "attention maps are recorded of networks in F32, not in %s",
                        att_dtype_name(att_graph_dtype(att_model_graph(m->model))));
    ATT_TRY(count_images(m));
    m->names = names_of_classes(m);
    ATT_TRY(att_inference_check_images(m->model, m->transform));
    ATT_TRY(add_probes(m));
    ATT_TRY(find_nodes(m));
    att_inference_options inference = {.backend = m->options->backend,
                                       .precision = m->options->precision,
                                       .max_batch = 1,
                                       .group = 1,
                                       .probes = "*.map"};
    ATT_TRY(att_inference_create(m->graph, weights, &inference, &m->inference));
    return reserve(m);
}

/* --- one image ---------------------------------------------------------------------------------------------------- */

static uint8_t to_byte(double value)
{
    return value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0; /* NaN: 0 */
}

/* Stores the image as the network sees it, with the normalisation undone. */
static void store_image(att_mapper *m)
{
    const att_transform_options *t = m->transform;
    uint8_t *out = m->images + (size_t)m->count * pixels(m);
    for (size_t i = 0; i < pixels(m); i++) {
        size_t c = i % (size_t)t->channels;
        out[i] = to_byte(255 * ((double)m->pixels[i] * t->std[c] + t->mean[c]));
    }
}

/* Stores the class of each pixel of the image that was stored last. */
static att_status store_classes(att_mapper *m, const att_batch *answer)
{
    const att_transform_options *t = m->transform;
    const att_image image = {t->width, t->height, t->channels, m->images + (size_t)m->count * pixels(m)};
    const int classes = att_model_classes(m->model);
    att_drawing drawing = {0};
    ATT_TRY(
        att_task_draw(m->context, att_model_task(m->model).name, classes, answer, &m->names, &image, NULL, &drawing));
    if (drawing.classes.classes) {
        memcpy(m->classes + (size_t)m->count * image_area(m), drawing.classes.classes,
               image_area(m) * sizeof *m->classes);
        memcpy(m->colours, drawing.colours, 3 * (size_t)classes);
    } else {
        m->classes = NULL;
    }
    att_drawing_free(m->context, &drawing);
    return ATT_OK;
}

/* Computes the figures of a query from its attention weights on all keys, in f64. */
static void compute_figures(const att_mapped_node *node, const double *row, int64_t query,
                            float figures[ATT_MAPS_FIGURES], int32_t *place)
{
    double entropy = 0, prefix = 0;
    int64_t best = node->prefix_tokens;
    for (int64_t j = 0; j < node->keys; j++) {
        entropy -= row[j] > 0 ? row[j] * log(row[j]) : 0;
        prefix += j < node->prefix_tokens ? row[j] : 0;
        if (j > best && row[j] > row[best])
            best = j;
    }
    figures[ATT_MAPS_ENTROPY] = entropy > 0 ? (float)entropy : 0; /* negative if rounding makes a weight exceed 1 */
    figures[ATT_MAPS_SELF] = (float)row[node->self[query]];
    figures[ATT_MAPS_PREFIX] = (float)prefix;
    figures[ATT_MAPS_LARGEST] = (float)row[best];
    int64_t token = att_attention_token_at(node->attrs, node->window[query], best).index;
    *place = (int32_t)(token - node->prefix_tokens);
}

/* Stores the attention weights of one query of a head; those on patches are quantised relative to the largest. */
static void store_row(const att_mapped_node *node, const float *row, float largest, float *prefix, uint16_t *patches)
{
    for (int64_t j = 0; j < node->prefix_tokens; j++)
        prefix[j] = row[j];
    for (int64_t j = node->prefix_tokens; j < node->keys; j++) {
        double ratio = largest > 0 ? (double)row[j] / (double)largest : 0;
        *patches++ = (uint16_t)(ratio >= 1 ? MAX_LEVEL : lround(MAX_LEVEL * ratio));
    }
}

/* Averages the weights of query i over `count` heads, whose maps begin at `maps`. Returns false if a sum is negative or
 * not finite. */
static bool mean_row(const att_mapped_node *node, const float *maps, int64_t count, int64_t i, double *row)
{
    int64_t n = node->tokens, keys = node->keys;
    bool ok = true;
    for (int64_t j = 0; j < keys; j++) {
        double sum = 0;
        for (int64_t h = 0; h < count; h++)
            sum += (double)maps[(h * n + i) * keys + j];
        row[j] = sum / (double)count;
        ok = ok && isfinite(sum) && sum >= 0;
    }
    return ok;
}

/* Removes the weights of the ring from maps [heads][tokens][computed keys]. */
static void remove_ring(const att_mapped_node *node, float *maps)
{
    const int64_t height = node->attrs->grid_h, width = node->attrs->grid_w, ring = node->ring;
    float *to = maps;
    for (int64_t row = 0; ring > 0 && row < node->heads * node->tokens; row++)
        for (int64_t y = 0; y < height; y++, to += width)
            memmove(to, maps + row * computed_keys(node) + (y + ring) * (width + 2 * ring) + ring,
                    (size_t)width * sizeof *to);
}

/* Stores the maps of the current image, [heads][tokens][keys]. Returns false if they are not valid weights. */
static bool store_maps(const att_mapper *m, const att_mapped_node *node, const float *maps)
{
    int64_t heads = node->heads, n = node->tokens, keys = node->keys, prefix = node->prefix_tokens, row = 0;
    for (int64_t h = 0; h <= heads; h++)
        for (int64_t i = 0; i < n; i++, row++) {
            int64_t at = m->count * (heads + 1) * n + row, kept = m->count * heads * n + row;
            bool single = h < heads; /* the last entry is the mean over heads */
            if (!mean_row(node, single ? maps + h * n * keys : maps, single ? 1 : heads, i, m->mean))
                return false;
            float *figures = node->figures + at * ATT_MAPS_FIGURES;
            compute_figures(node, m->mean, i, figures, node->place + at);
            if (single)
                store_row(node, maps + row * keys, figures[ATT_MAPS_LARGEST], node->prefix + kept * prefix,
                          node->patches + kept * (keys - prefix));
        }
    return true;
}

static void store_answer(const att_mapper *m, const att_batch *answer)
{
    for (int i = 0; i < answer->field_count; i++) {
        int64_t width = att_shape_count(answer->fields[i].shape);
        memcpy(m->outputs[i].values + m->count * width, answer->data[i], (size_t)width * sizeof(float));
    }
}

static att_status store_caption(att_mapper *m, const att_batch *answer, int64_t index)
{
    const att_task_image image = {.dataset = m->dataset, .index = index, .unlabelled = m->options->unlabelled};
    att_text text = {.context = m->context};
    const att_task *task = att_model_task_of(m->model);
    att_status status = task->caption ? task->caption(m->context, answer, &m->names, &image, &text) : ATT_OK;
    att_caption_truncate(&text);
    const char *kept = att_arena_string(&m->arena, text.data ? text.data : "");
    if (status == ATT_OK && (text.failed || !kept))
        status = att_fail_memory(m->context, text.length, "the caption of an image");
    att_text_free(&text);
    m->captions[m->count] = kept;
    return status;
}

/* Reads and transforms image `index` of the data set. */
static att_status read_image(att_mapper *m, int64_t index)
{
    att_image image = {0};
    ATT_TRY(att_dataset_read(m->dataset, m->context, index, m->transform->channels, &image));
    att_status status = att_transform_image(m->context, m->transform, &image, 0, 0, index, m->pixels);
    if (status == ATT_OK)
        status = att_transform_geometry(m->context, m->transform, image.width, image.height, &m->place);
    m->names.geometry = &m->place;
    att_image_free(m->context, &image);
    return status;
}

static att_status add_image(att_mapper *m, int64_t index)
{
    att_batch answer;
    const att_field field = att_model_image(m->model).field;
    const void *const data[] = {m->pixels};
    const att_batch image = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    ATT_TRY(att_inference_run(&m->inference, &image, 1, &answer));
    for (int i = 0; i < m->node_count; i++) {
        const att_mapped_node *node = &m->nodes[i];
        char probe[ATT_MAP_NAME];
        snprintf(probe, sizeof probe, "%s.map", node->scope);
        ATT_TRY(att_session_output(m->inference.session, probe, 0, 1, m->rows));
        remove_ring(node, m->rows);
        if (!store_maps(m, node, m->rows)) {
            char what[ATT_MAP_NAME + 64];
            snprintf(what, sizeof what, "%s: NaN or infinity in the attention map", node->scope);
            return att_weights_fail_nonfinite(m->weights, what);
        }
    }
    if (!att_inference_is_finite(&answer, 0))
        return att_weights_fail_nonfinite(m->weights, "the network's outputs contain NaN or infinity");
    store_answer(m, &answer);
    ATT_TRY(store_caption(m, &answer, index));
    store_image(m);
    if (m->classes)
        ATT_TRY(store_classes(m, &answer));
    m->indices[m->count] = index;
    m->labels[m->count] = m->options->unlabelled ? -1 : att_dataset_label(m->dataset, index);
    m->count++;
    return ATT_OK;
}

static att_status report_progress(const att_mapper *m)
{
    att_progress progress = {.stage = "maps",
                             .batch = m->count,
                             .batches = m->max_images,
                             .images_per_second = NAN,
                             .seconds_left = NAN,
                             .loss = NAN,
                             .lr = NAN,
                             .slowest_rank = -1,
                             .others_share = NAN};
    if (!m->options->progress || m->options->progress(m->options->progress_user, &progress))
        return ATT_OK;
    return att_fail(m->context, ATT_ERR_STOPPED, "writing maps was stopped on request after %lld images",
                    (long long)m->count);
}

static att_status add_images(att_mapper *m)
{
    const att_maps_options *o = m->options;
    int64_t requested = o->images ? o->count : att_dataset_count(m->dataset);
    for (int64_t i = 0; i < requested && m->count < m->max_images; i++) {
        int64_t index = o->images ? o->images[i] : i;
        att_status status = read_image(m, index);
        if (o->skip_corrupt && (status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED))
            continue; /* the evaluation has reported this image */
        ATT_TRY(status);
        ATT_TRY(add_image(m, index));
        ATT_TRY(report_progress(m));
    }
    return m->count > 0 ? ATT_OK : att_fail(m->context, ATT_ERR_FORMAT, "no image could be decoded for a map");
}

static void release(att_mapper *m)
{
    att_inference_free(&m->inference);
    att_graph_destroy(&m->graph);
    att_arena_free(&m->arena);
}

att_status att_maps_write(const att_model *model, att_weights *weights, const att_dataset *dataset,
                          const att_transform_options *transform, const att_maps_options *options, const char *path)
{
    att_maps_options defaults = att_maps_options_defaults();
    att_context *context = att_graph_context(att_model_graph(model));
    att_mapper m = {.context = context,
                    .options = options ? options : &defaults,
                    .transform = transform,
                    .model = model,
                    .weights = weights,
                    .dataset = dataset,
                    .arena = {.context = context}};
    att_status status = prepare(&m, weights);
    if (status == ATT_OK)
        status = add_images(&m);
    if (status == ATT_OK)
        status = att_mapper_write(&m, path);
    release(&m);
    return status;
}
