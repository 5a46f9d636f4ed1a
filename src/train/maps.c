#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/json.h>
#include <attscope/maps.h>
#include <attscope/ops.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "graph/graph.h"
#include "train/network.h"

enum { MOST_IMAGES = 65536, NAME_SIZE = 256, NUMBER_SIZE = 16, OWN_TENSORS = 3, TENSORS_PER_NODE = 2 };

typedef struct map_node {
    char probe[NAME_SIZE], largest[NAME_SIZE]; /* the tensors' names */
    const char *scope;                         /* the graph's */
    int64_t heads, tokens;
    uint8_t *map; /* [count][heads][tokens][tokens] */
    float *max;   /* [count][heads][tokens] */
} map_node;

typedef struct mapper {
    att_context *context;
    const att_maps_options *options;
    const att_transform_options *transform;
    att_model *model; /* one of its own, with probes */
    att_plan *plan;
    att_session *session;
    att_loader *loader;
    att_arena arena;
    map_node *nodes;
    int node_count;
    int64_t count; /* images made so far */
    int64_t most;
    int classes;
    uint8_t *images;
    int64_t *labels, *predictions;
    float *rows, *logits;
} mapper;

att_maps_options att_maps_options_defaults(void)
{
    return (att_maps_options){.nodes = "*", .count = 8, .backend = "cpu"};
}

/* --- getting ready ------------------------------------------------------------------------------------------------ */

static att_status probe_model(mapper *m, const att_model *model)
{
    att_model_options options = att_model_options_of(model);
    options.loss = false;
    ATT_TRY(att_model_create(m->context, att_model_name(model), &options, ATT_F32, &m->model));
    return att_ask_attention_map(att_model_graph(m->model), m->options->nodes);
}

static bool is_wanted(const mapper *m, const att_node *node)
{
    return strcmp(node->op->name, "attention") == 0 && att_text_matches(m->options->nodes, node->scope);
}

static att_status add_node(mapper *m, const att_node *node)
{
    map_node *added = &m->nodes[m->node_count++];
    added->scope = node->scope;
    added->heads = node->attrs.attention.heads;
    added->tokens = att_value_shape(att_model_graph(m->model), node->out[0]).dims[0];
    snprintf(added->probe, sizeof added->probe, "%s.map", node->scope);
    snprintf(added->largest, sizeof added->largest, "%s.max", node->scope);
    size_t rows = att_size_product((size_t)m->most, (size_t)(added->heads * added->tokens));
    size_t weights = att_size_product(rows, (size_t)added->tokens);
    added->map = att_arena_allocate(&m->arena, weights);
    added->max = att_arena_allocate(&m->arena, att_size_product(rows, sizeof *added->max));
    return added->map && added->max ? ATT_OK : att_fail_memory(m->context, weights, "attention maps");
}

static att_status find_nodes(mapper *m)
{
    const att_graph *graph = att_model_graph(m->model);
    size_t size = (size_t)graph->nodes.count * sizeof *m->nodes;
    int64_t largest = 0;
    m->nodes = att_arena_allocate(&m->arena, size);
    if (!m->nodes)
        return att_fail_memory(m->context, size, "attention maps");
    for (int i = 0; i < graph->nodes.count; i++) {
        if (!is_wanted(m, &graph->nodes.items[i]))
            continue;
        ATT_TRY(add_node(m, &graph->nodes.items[i]));
        const map_node *added = &m->nodes[m->node_count - 1];
        int64_t weights = added->heads * added->tokens * added->tokens;
        largest = weights > largest ? weights : largest;
    }
    m->rows = att_arena_allocate(&m->arena, att_size_product((size_t)largest, sizeof *m->rows));
    return m->rows ? ATT_OK : att_fail_memory(m->context, (size_t)largest * sizeof *m->rows, "an attention map");
}

static size_t pixels(const mapper *m)
{
    return (size_t)m->transform->height * (size_t)m->transform->width * (size_t)m->transform->channels;
}

static att_status reserve(mapper *m)
{
    size_t count = (size_t)m->most, bytes = att_size_product(count, pixels(m));
    m->images = att_arena_allocate(&m->arena, bytes);
    m->labels = att_arena_allocate(&m->arena, count * sizeof *m->labels);
    m->predictions = att_arena_allocate(&m->arena, count * sizeof *m->predictions);
    m->logits = att_arena_allocate(&m->arena, (size_t)m->classes * sizeof *m->logits);
    bool fine = m->images && m->labels && m->predictions && m->logits;
    return fine ? ATT_OK : att_fail_memory(m->context, bytes, "the images of attention maps");
}

/* Whoever evaluated the data set was told of it. */
static att_status pass_over(void *user, int64_t index, const char *reason)
{
    (void)user;
    (void)index;
    (void)reason;
    return ATT_OK;
}

static att_status open_loader(mapper *m, const att_dataset *dataset)
{
    const att_transform_options *t = m->transform;
    att_loader_options options = att_loader_options_defaults(t->height, t->width, t->channels);
    options.transform = *t;
    options.batch_size = 1;
    options.workers = 0;
    options.corrupt = m->options->skip_corrupt ? ATT_CORRUPT_LEFT_OUT : ATT_CORRUPT_FATAL;
    options.corrupt_found = pass_over;
    ATT_TRY(att_loader_create(m->context, dataset, &options, &m->loader));
    return att_loader_start(m->loader, 0, 0);
}

static att_status prepare(mapper *m, const att_model *model, att_weights *weights, const att_dataset *dataset)
{
    if (m->options->count < 1 || m->options->count > MOST_IMAGES)
        return att_fail(m->context, ATT_ERR_ARGUMENT, "attention maps of %d images, expected 1 to %d",
                        m->options->count, (int)MOST_IMAGES);
    m->most = att_dataset_count(dataset) < m->options->count ? att_dataset_count(dataset) : m->options->count;
    m->classes = att_model_options_of(model).num_classes;
    ATT_TRY(att_network_check_images(model, m->transform));
    ATT_TRY(probe_model(m, model));
    ATT_TRY(find_nodes(m));
    ATT_TRY(reserve(m));
    att_plan_options plan = att_plan_options_defaults();
    plan.backend = m->options->backend;
    plan.precision = m->options->precision;
    plan.group = 1;
    ATT_TRY(att_plan_compile(att_model_graph(m->model), &plan, &m->plan));
    ATT_TRY(att_session_create(m->plan, weights, 1, &m->session));
    return open_loader(m, dataset);
}

/* --- one image ---------------------------------------------------------------------------------------------------- */

static uint8_t to_byte(double value)
{
    return value >= 255 ? 255 : value > 0 ? (uint8_t)lround(value) : 0; /* NaN: 0 */
}

static void keep_image(mapper *m, const float *image)
{
    const att_transform_options *t = m->transform;
    uint8_t *out = m->images + (size_t)m->count * pixels(m);
    for (size_t i = 0; i < pixels(m); i++) {
        size_t c = i % (size_t)t->channels;
        out[i] = to_byte(255 * ((double)image[i] * t->std[c] + t->mean[c]));
    }
}

static int64_t largest_of(const float *logits, int classes)
{
    int best = 0;
    for (int c = 1; c < classes; c++)
        best = logits[c] > logits[best] ? c : best;
    return best;
}

static void keep_rows(const map_node *node, const float *rows, int64_t image)
{
    int64_t count = node->heads * node->tokens, n = node->tokens;
    for (int64_t i = 0; i < count; i++) {
        const float *row = rows + i * n;
        uint8_t *out = node->map + (image * count + i) * n;
        float max = 0;
        for (int64_t j = 0; j < n; j++)
            max = row[j] > max ? row[j] : max;
        for (int64_t j = 0; j < n; j++)
            out[j] = to_byte(255 * ((double)row[j] / (double)max));
        node->max[image * count + i] = max;
    }
}

static att_status add_image(mapper *m, const att_batch *batch)
{
    ATT_TRY(att_session_bind(m->session, "image", batch->images));
    ATT_TRY(att_session_run(m->session, 1));
    ATT_TRY(att_session_output(m->session, "logits", 0, 1, m->logits));
    for (int i = 0; i < m->node_count; i++) {
        ATT_TRY(att_session_output(m->session, m->nodes[i].probe, 0, 1, m->rows));
        keep_rows(&m->nodes[i], m->rows, m->count);
    }
    keep_image(m, batch->images);
    m->labels[m->count] = batch->labels[0];
    m->predictions[m->count] = largest_of(m->logits, m->classes);
    m->count++;
    return ATT_OK;
}

static att_status tell(const mapper *m)
{
    att_progress progress = {.stage = "maps",
                             .batch = m->count,
                             .batches = m->most,
                             .images_per_second = NAN,
                             .seconds_left = NAN,
                             .loss = NAN,
                             .lr = NAN};
    if (!m->options->progress || m->options->progress(m->options->progress_user, &progress))
        return ATT_OK;
    return att_fail(m->context, ATT_ERR_STOPPED, "the maps were asked to stop after %lld images", (long long)m->count);
}

static att_status add_images(mapper *m)
{
    while (m->count < m->most) {
        att_batch batch;
        ATT_TRY(att_loader_next(m->loader, &batch));
        if (batch.count == 0)
            break;
        ATT_TRY(add_image(m, &batch));
        ATT_TRY(tell(m));
    }
    return m->count > 0 ? ATT_OK : att_fail(m->context, ATT_ERR_FORMAT, "no image could be decoded for a map");
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

typedef const char *(*text_at)(const void *user, int index);

static const char *class_at(const void *user, int index)
{
    return att_dataset_class_name(user, index);
}

static const char *node_at(const void *user, int index)
{
    return ((const mapper *)user)->nodes[index].scope;
}

static att_status json_list(mapper *m, text_at text, const void *user, int count, const char **list)
{
    att_json_writer *json;
    const char *made = NULL;
    size_t length = 0;
    ATT_TRY(att_json_writer_create(m->context, false, &json));
    att_json_begin_array(json);
    for (int i = 0; i < count; i++)
        att_json_string(json, text(user, i));
    att_json_end_array(json);
    att_status status = att_json_writer_finish(json, &made, &length);
    if (status == ATT_OK && !(*list = att_arena_string(&m->arena, made)))
        status = att_fail_memory(m->context, length, "a list of names");
    att_json_writer_destroy(&json);
    return status;
}

static int list_tensors(const mapper *m, att_safetensors_tensor *tensors)
{
    const att_transform_options *t = m->transform;
    int64_t k = m->count;
    tensors[0] = (att_safetensors_tensor){"image", ATT_SAFETENSORS_U8,
                                          att_shape_of(k, t->height, t->width, t->channels), m->images};
    tensors[1] = (att_safetensors_tensor){"label", ATT_SAFETENSORS_I64, att_shape_of(k), m->labels};
    tensors[2] = (att_safetensors_tensor){"prediction", ATT_SAFETENSORS_I64, att_shape_of(k), m->predictions};
    int count = OWN_TENSORS;
    for (int i = 0; i < m->node_count; i++) {
        const map_node *n = &m->nodes[i];
        tensors[count++] = (att_safetensors_tensor){n->probe, ATT_SAFETENSORS_U8,
                                                    att_shape_of(k, n->heads, n->tokens, n->tokens), n->map};
        tensors[count++] =
            (att_safetensors_tensor){n->largest, ATT_SAFETENSORS_F32, att_shape_of(k, n->heads, n->tokens), n->max};
    }
    return count;
}

static const att_attention_attrs *first_attention(const mapper *m)
{
    const att_graph *graph = att_model_graph(m->model);
    int i = 0;
    while (!is_wanted(m, &graph->nodes.items[i]))
        i++;
    return &graph->nodes.items[i].attrs.attention;
}

static att_status write_file(mapper *m, const att_dataset *dataset, const char *path)
{
    size_t size = (size_t)(OWN_TENSORS + TENSORS_PER_NODE * m->node_count) * sizeof(att_safetensors_tensor);
    att_safetensors_tensor *tensors = att_arena_allocate(&m->arena, size);
    if (!tensors)
        return att_fail_memory(m->context, size, "a list of maps");
    const char *classes, *nodes;
    ATT_TRY(json_list(m, class_at, dataset, att_dataset_class_count(dataset), &classes));
    ATT_TRY(json_list(m, node_at, m, m->node_count, &nodes));
    const att_attention_attrs *attention = first_attention(m);
    char prefix[NUMBER_SIZE], grid_h[NUMBER_SIZE], grid_w[NUMBER_SIZE];
    snprintf(prefix, sizeof prefix, "%d", (int)attention->prefix);
    snprintf(grid_h, sizeof grid_h, "%d", (int)attention->grid_h);
    snprintf(grid_w, sizeof grid_w, "%d", (int)attention->grid_w);
    const att_safetensors_pair metadata[] = {{"model", att_model_name(m->model)},
                                             {"nodes", nodes},
                                             {"prefix", prefix},
                                             {"grid_h", grid_h},
                                             {"grid_w", grid_w},
                                             {"classes", classes},
                                             {"weights", m->options->weights}};
    size_t given = sizeof metadata / sizeof *metadata;
    att_safetensors_content content = {.tensors = tensors,
                                       .tensor_count = list_tensors(m, tensors),
                                       .metadata = metadata,
                                       .metadata_count = m->options->weights ? given : given - 1};
    return att_safetensors_write(m->context, path, &content);
}

static void release(mapper *m)
{
    att_loader_destroy(&m->loader);
    att_session_destroy(&m->session);
    att_plan_destroy(&m->plan);
    att_model_destroy(&m->model);
    att_arena_free(&m->arena);
}

att_status att_maps_write(const att_model *model, att_weights *weights, const att_dataset *dataset,
                          const att_transform_options *transform, const att_maps_options *options, const char *path)
{
    att_maps_options defaults = att_maps_options_defaults();
    att_context *context = att_graph_context(att_model_graph(model));
    mapper m = {.context = context,
                .options = options ? options : &defaults,
                .transform = transform,
                .arena = {.context = context}};
    att_status status = prepare(&m, model, weights, dataset);
    if (status == ATT_OK)
        status = add_images(&m);
    if (status == ATT_OK)
        status = write_file(&m, dataset, path);
    release(&m);
    return status;
}
