/* Which values raw output has, and how they are taken from a session. */
#include "lab/runs/records/raw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/lab/json.h>
#include <attscope/measure.h>
#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "study/measure/instrument.h"

enum { READINGS = 3, BLOCK_BYTES = 32 << 20 };
static const char *const list_words[] = {"zeta", "rows", "weights"};
enum { ZETA = 1, ROWS = 2, WEIGHTS = 4 };

struct att_raw {
    att_context *context;
    att_arena arena;
    att_graph *graph;
    const char *nodes;
    bool wide;
    int which;
    const char **steps; /* scopes of the residual additions, and the names of their probes */
    const char **step_probes;
    int step_count;
    const char **probes; /* probes[i]: the output that array i copies; NULL: zeta */
    att_raw_files files;
    bool open;
    bool *seen; /* [images] */
    int64_t images;
    char *block; /* rows of one output */
    size_t block_bytes;
    float *zeta; /* [batch][step_count][READINGS] */
    int zeta_room;
};

/* --- the list ----------------------------------------------------------------------------------------------------- */

static att_status read_list(att_context *context, const char *which, int *found)
{
    *found = 0;
    for (const char *at = which; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        int word = 0;
        while (word < 3 && (strlen(list_words[word]) != length || strncmp(at, list_words[word], length) != 0))
            word++;
        if (word == 3)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "\"%.*s\" is no array of raw output; expected zeta, rows or weights, separated by commas",
                            (int)length, at);
        *found |= 1 << word;
    }
    return ATT_OK;
}

att_status att_raw_check_list(att_context *context, const char *which)
{
    int found;
    return read_list(context, which, &found);
}

/* --- probes ------------------------------------------------------------------------------------------------------- */

static att_status fail_memory(const att_raw *raw)
{
    return att_fail_memory(raw->context, sizeof *raw->files.arrays, "raw output");
}

static att_status request_steps(att_raw *raw)
{
    att_residual_step step = {.node = -1};
    int count = 0;
    while (att_residual_step_next(raw->graph, step.node, &step))
        count++;
    raw->steps = att_arena_allocate(&raw->arena, ((size_t)count + 1) * sizeof *raw->steps);
    raw->step_probes = att_arena_allocate(&raw->arena, ((size_t)count + 1) * sizeof *raw->step_probes);
    if (!raw->steps || !raw->step_probes)
        return fail_memory(raw);
    for (step.node = -1; att_residual_step_next(raw->graph, step.node, &step);) {
        char name[256];
        if (!att_text_matches_any(raw->nodes, step.scope))
            continue;
        snprintf(name, sizeof name, "%s.raw_norms", step.scope);
        raw->steps[raw->step_count] = att_arena_string(&raw->arena, step.scope);
        raw->step_probes[raw->step_count] = att_arena_string(&raw->arena, name);
        if (!raw->steps[raw->step_count] || !raw->step_probes[raw->step_count])
            return fail_memory(raw);
        raw->step_count++;
        att_graph_scope(raw->graph, step.scope);
        att_graph_probe(raw->graph, name, att_norms_of_step(raw->graph, &step, ATT_DT_GATES));
    }
    return att_graph_status(raw->graph);
}

/* Adds the probes of `part`. named: the user asked for it, so that a network without it is an error. */
static att_status request_part(att_raw *raw, int part, bool named)
{
    att_status status = part == ZETA   ? request_steps(raw)
                        : part == ROWS ? att_graph_probe_attention_stats(raw->graph, raw->nodes)
                                       : att_graph_probe_attention_map(raw->graph, raw->nodes);
    if (part == ZETA && status == ATT_OK && raw->step_count == 0)
        status = att_fail(raw->context, ATT_ERR_NOT_FOUND, "no residual addition matches \"%s\"", raw->nodes);
    if (status == ATT_ERR_NOT_FOUND && named)
        return att_fail(raw->context, ATT_ERR_ARGUMENT, "raw output of %s: %s", list_words[part == ZETA ? 0 : part / 2],
                        att_context_message(raw->context));
    if (status == ATT_ERR_NOT_FOUND)
        raw->which &= ~part;
    return status == ATT_ERR_NOT_FOUND ? ATT_OK : status;
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

static att_raw_array *add_array(att_raw *raw, const char *probe, att_safetensors_dtype dtype, att_shape shape)
{
    att_raw_array *array = &raw->files.arrays[raw->files.count];
    raw->probes[raw->files.count++] = probe;
    *array = (att_raw_array){
        .dtype = dtype, .shape = shape, .bytes = (size_t)att_shape_count(shape) * att_safetensors_dtype_size(dtype)};
    return array;
}

/* Returns the length of the node's name in "NODE.stats"; 0 for another output. */
static size_t node_of(const att_raw *raw, const char *output, const char *suffix)
{
    char node[256];
    const size_t length = strlen(output), end = strlen(suffix);
    if (length <= end || length >= sizeof node || strcmp(output + length - end, suffix) != 0)
        return 0;
    snprintf(node, sizeof node, "%.*s", (int)(length - end), output);
    return att_text_matches_any(raw->nodes, node) ? length - end : 0;
}

/* [1, shape]: the first axis is that of the images, which are not known yet. */
static att_status add_outputs(att_raw *raw, const char *suffix, const char *what)
{
    const att_graph *graph = raw->graph;
    for (int i = 0; i < graph->outputs.count; i++) {
        const char *output = graph->outputs.items[i].name;
        const size_t length = node_of(raw, output, suffix);
        const att_shape one = att_value_shape(graph, graph->outputs.items[i].value);
        att_shape shape = {.rank = one.rank + 1, .dims = {1}};
        if (length == 0)
            continue;
        if (one.rank + 1 > ATT_MAX_RANK)
            return att_fail(raw->context, ATT_ERR_UNSUPPORTED, "raw output of %s: too many dimensions", output);
        memcpy(shape.dims + 1, one.dims, (size_t)one.rank * sizeof *one.dims);
        att_raw_array *array = add_array(raw, output, raw->wide ? ATT_SAFETENSORS_F64 : ATT_SAFETENSORS_F32, shape);
        snprintf(array->name, sizeof array->name, "%.*s.%s", (int)length, output, what);
    }
    return ATT_OK;
}

static att_status add_arrays(att_raw *raw)
{
    const size_t most = (size_t)raw->graph->outputs.count + 1;
    raw->files.arrays = att_arena_allocate(&raw->arena, most * sizeof *raw->files.arrays);
    raw->probes = att_arena_allocate(&raw->arena, most * sizeof *raw->probes);
    if (!raw->files.arrays || !raw->probes)
        return fail_memory(raw);
    if (raw->which & ZETA) {
        att_raw_array *array =
            add_array(raw, NULL, ATT_SAFETENSORS_F32, att_shape_of(1, raw->step_count, (int64_t)READINGS));
        snprintf(array->name, sizeof array->name, "zeta");
    }
    if (raw->which & ROWS)
        ATT_TRY(add_outputs(raw, ".stats", "rows"));
    if (raw->which & WEIGHTS)
        ATT_TRY(add_outputs(raw, ".map", "weights"));
    return ATT_OK;
}

static att_status create(att_raw *raw, const char *which)
{
    ATT_TRY(read_list(raw->context, which, &raw->which));
    if (!which)
        raw->which = ZETA | ROWS;
    for (int part = ZETA; part <= WEIGHTS; part *= 2)
        if (raw->which & part)
            ATT_TRY(request_part(raw, part, which != NULL));
    if (!raw->which)
        return att_fail(raw->context, ATT_ERR_ARGUMENT,
                        "raw output: the network has neither residual additions nor attention between tokens that "
                        "match \"%s\"",
                        raw->nodes);
    return add_arrays(raw);
}

att_status att_raw_create(const att_model *observed, const char *which, const char *nodes, att_raw **out)
{
    att_graph *graph = att_model_graph(observed);
    att_context *context = att_graph_context(graph);
    att_raw *raw;
    ATT_TRY(att_new(context, &raw, 1, "raw output"));
    *raw = (att_raw){.context = context,
                     .arena = {.context = context},
                     .graph = graph,
                     .nodes = nodes,
                     .wide = graph->dtype == ATT_F64,
                     .files = {.context = context}};
    att_status status = create(raw, which);
    if (status != ATT_OK)
        att_raw_destroy(&raw);
    else
        *out = raw;
    return status;
}

void att_raw_destroy(att_raw **out)
{
    if (!out || !*out)
        return;
    att_raw *raw = *out;
    if (raw->open)
        att_raw_files_abort(&raw->files);
    att_free(raw->context, raw->block);
    att_free(raw->context, raw->zeta);
    att_arena_free(&raw->arena);
    att_free(raw->context, raw);
    *out = NULL;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Writes the texts as a JSON array. name(): the i-th. */
static att_status list_json(att_raw *raw, int64_t count, const char *(*name)(void *user, int64_t i), void *user,
                            const char **json)
{
    att_json_writer *writer = NULL;
    const char *text = NULL;
    size_t length = 0;
    ATT_TRY(att_json_writer_create(raw->context, false, &writer));
    att_json_begin_array(writer);
    for (int64_t i = 0; i < count; i++)
        att_json_string(writer, name(user, i));
    att_json_end_array(writer);
    att_status status = att_json_writer_finish(writer, &text, &length);
    *json = status == ATT_OK ? att_arena_string(&raw->arena, text) : NULL;
    att_json_writer_destroy(&writer);
    return status == ATT_OK && !*json ? fail_memory(raw) : status;
}

typedef struct image_names {
    const att_dataset *dataset;
    char text[ATT_RUN_PATH];
} image_names;

static const char *image_name(void *user, int64_t i)
{
    image_names *names = user;
    return att_dataset_short_name(names->dataset, i, names->text, sizeof names->text);
}

static const char *step_name(void *user, int64_t i)
{
    return ((const att_raw *)user)->steps[i];
}

enum { OWN_FACTS = 5 };
static const char readings[] = "[\"attention\", \"gated\", \"unit\"]";
/* ATT_ATTENTION_STATS names and units, in the order of att_graph_probe_attention_stats(). */
static const char statistics[] =
    "[\"entropy\", \"others\", \"others2\", \"others3\", \"distance\", \"prefix\", \"self\", \"max\", "
    "\"argmax\", \"y\", \"x\", \"yy\", \"xx\", \"yx\"]",
                  units[] =
                      "[\"nats\", \"1\", \"1\", \"1\", \"step\", \"1\", \"1\", \"1\", \"key\", \"rows\", \"columns\", "
                      "\"rows^2\", \"columns^2\", \"rows columns\"]";

static att_status describe(att_raw *raw, const att_dataset *dataset, att_raw_fact facts[OWN_FACTS])
{
    image_names names = {.dataset = dataset};
    const char *images = NULL, *steps = NULL;
    ATT_TRY(list_json(raw, raw->images, image_name, &names, &images));
    ATT_TRY(list_json(raw, raw->step_count, step_name, raw, &steps));
    facts[0] = (att_raw_fact){"images", images, false};
    facts[1] = (att_raw_fact){"zeta.additions", steps, false};
    facts[2] = (att_raw_fact){"zeta.readings", readings, false};
    facts[3] = (att_raw_fact){"rows.statistics", statistics, false};
    facts[4] = (att_raw_fact){"rows.units", units, false};
    return ATT_OK;
}

att_status att_raw_open(att_raw *raw, const char *path, const att_dataset *dataset, const att_raw_fact *facts,
                        int fact_count)
{
    raw->images = att_dataset_count(dataset);
    raw->seen = att_arena_allocate(&raw->arena, (size_t)raw->images * sizeof *raw->seen);
    att_raw_fact *all = att_arena_allocate(&raw->arena, ((size_t)fact_count + OWN_FACTS) * sizeof *all);
    if (!raw->seen || !all)
        return att_fail_memory(raw->context, (size_t)raw->images, "raw output");
    for (int i = 0; i < raw->files.count; i++)
        raw->files.arrays[i].shape.dims[0] = raw->images;
    for (int i = 0; i < fact_count; i++)
        all[i] = facts[i];
    ATT_TRY(describe(raw, dataset, all + fact_count));
    raw->files.path = path;
    ATT_TRY(att_raw_files_open(&raw->files, all, fact_count + OWN_FACTS));
    raw->open = true;
    return ATT_OK;
}

/* --- observing ---------------------------------------------------------------------------------------------------- */

static att_status reserve(att_raw *raw, size_t bytes)
{
    if (raw->block_bytes >= bytes)
        return ATT_OK;
    att_free(raw->context, raw->block);
    raw->block_bytes = 0;
    raw->block = att_allocate(raw->context, bytes);
    if (!raw->block)
        return att_fail_memory(raw->context, bytes, "raw output");
    raw->block_bytes = bytes;
    return ATT_OK;
}

static att_status put(att_raw *raw, int array, int64_t image, const void *row)
{
    return raw->open ? att_raw_files_put(&raw->files, &raw->files.arrays[array], image, row) : ATT_OK;
}

/* Copies an output of all samples, as many at a time as fit into a block. */
static att_status copy_output(att_raw *raw, int array, att_session *session, const att_batch *batch)
{
    const size_t bytes = raw->files.arrays[array].bytes;
    const int room = bytes > BLOCK_BYTES ? 1 : (int)(BLOCK_BYTES / bytes);
    for (int first = 0; first < batch->count; first += room) {
        const int count = batch->count - first < room ? batch->count - first : room;
        ATT_TRY(reserve(raw, (size_t)count * bytes));
        ATT_TRY(att_session_output(session, raw->probes[array], first, count, raw->block));
        for (int i = 0; i < count; i++)
            ATT_TRY(put(raw, array, batch->indices[first + i], raw->block + (size_t)i * bytes));
    }
    return ATT_OK;
}

static double norm_at(const att_raw *raw, int sample, int norm)
{
    const size_t at = (size_t)sample * ATT_STEP_NORMS + (size_t)norm;
    return raw->wide ? ((const double *)(const void *)raw->block)[at]
                     : (double)((const float *)(const void *)raw->block)[at];
}

/* |branch|, |added| and |after - before| over |before|; NaN if |before| is 0. */
static void put_zeta(const att_raw *raw, int step, int count)
{
    static const int norms[READINGS] = {2, 3, 1};
    for (int sample = 0; sample < count; sample++)
        for (int r = 0; r < READINGS; r++) {
            const double before = norm_at(raw, sample, 0);
            raw->zeta[(sample * raw->step_count + step) * READINGS + r] =
                before > 0 ? (float)(norm_at(raw, sample, norms[r]) / before) : NAN;
        }
}

static att_status copy_zeta(att_raw *raw, int array, att_session *session, const att_batch *batch)
{
    const size_t size = raw->wide ? sizeof(double) : sizeof(float);
    const size_t row = (size_t)raw->step_count * READINGS;
    if (raw->zeta_room < batch->count) {
        att_free(raw->context, raw->zeta);
        raw->zeta_room = 0;
        raw->zeta = att_allocate_array(raw->context, (size_t)batch->count * row, sizeof *raw->zeta);
        if (!raw->zeta)
            return fail_memory(raw);
        raw->zeta_room = batch->count;
    }
    ATT_TRY(reserve(raw, (size_t)batch->count * ATT_STEP_NORMS * size));
    for (int step = 0; step < raw->step_count; step++) {
        ATT_TRY(att_session_output(session, raw->step_probes[step], 0, batch->count, raw->block));
        put_zeta(raw, step, batch->count);
    }
    for (int i = 0; i < batch->count; i++)
        ATT_TRY(put(raw, array, batch->indices[i], raw->zeta + (size_t)i * row));
    return ATT_OK;
}

att_status att_raw_observe(void *user, att_session *session, const att_batch *batch)
{
    att_raw *raw = user;
    for (int i = 0; i < raw->files.count; i++)
        ATT_TRY(raw->probes[i] ? copy_output(raw, i, session, batch) : copy_zeta(raw, i, session, batch));
    for (int i = 0; raw->open && i < batch->count; i++)
        raw->seen[batch->indices[i]] = true;
    return ATT_OK;
}

static void fill_nan(att_safetensors_dtype dtype, size_t bytes, char *row)
{
    const double wide = NAN;
    const float narrow = NAN;
    const size_t size = att_safetensors_dtype_size(dtype);
    for (size_t at = 0; at < bytes; at += size)
        memcpy(row + at, dtype == ATT_SAFETENSORS_F64 ? (const void *)&wide : (const void *)&narrow, size);
}

static att_status fill_left_out(att_raw *raw, int array)
{
    const att_raw_array *to = &raw->files.arrays[array];
    ATT_TRY(reserve(raw, to->bytes));
    fill_nan(to->dtype, to->bytes, raw->block);
    for (int64_t image = 0; image < raw->images; image++)
        if (!raw->seen[image])
            ATT_TRY(put(raw, array, image, raw->block));
    return ATT_OK;
}

att_status att_raw_commit(att_raw *raw)
{
    for (int i = 0; i < raw->files.count; i++)
        ATT_TRY(fill_left_out(raw, i));
    ATT_TRY(att_raw_files_commit(&raw->files));
    raw->open = false;
    return ATT_OK;
}
