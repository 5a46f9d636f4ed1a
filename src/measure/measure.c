#include <attscope/measure.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/spread.h"
#include "core/text.h"
#include "measure/list.h"
#include "measure/selection.h"
#include "measure/states.h"
#include "measure/study.h"
#include "ops/attention.h"

/* The figures of one statistic of one node. */
typedef struct series {
    const char *node, *statistic;
    int head;
    att_spread spread; /* statistics over the samples' finite values */
    int64_t undefined;
    double *samples; /* values of the first `max_samples` samples; NULL if they are not recorded */
    bool excluded;
    double bound, uniform; /* 0: not known */
} series;

typedef struct requested_row {
    const char *output; /* NULL: computed by the instrument's study */
    int64_t elements;
    double constant;
} requested_row;

/* An instrument in use. Its rows and series are ranges of the measure's lists. */
typedef struct active_instrument {
    const att_instrument *instrument;
    bool named; /* by its own name, without a '?' */
    double options[ATT_INSTRUMENT_OPTIONS];
    int first_row, row_count, first_series, series_count;
    att_states states; /* if the instrument keeps state */
    void *study;       /* what its study keeps between runs; NULL: nothing */
} active_instrument;

struct att_measure {
    att_context *context;
    bool wide;       /* the graph is in F64 */
    att_arena arena; /* owns names and buffers */
    ATT_LIST(active_instrument) active;
    ATT_LIST(requested_row) rows;
    ATT_LIST(series) series;
    float **blocks; /* per row: the values of all samples of one observation */
    int64_t *block_sizes;
    double *values; /* scratch: an instrument's values for one sample */
    const float **sample_rows;
    int64_t *lengths;
    double *constants;
    att_figure *figures; /* per series: figures reported by instruments that keep state */
    att_measurement *all;
    int max_samples;  /* how many samples of a series are recorded, for instruments with by_sample */
    att_graph *graph; /* a copy, for studies; NULL: there are none */
    const char *nodes;
    int64_t seen; /* samples observed since the figures were cleared */
    int64_t previewed;
    att_progress_fn progress;
    void *progress_user;
};

struct att_requests {
    att_measure *measure;
    att_graph *graph;
    const att_instrument *instrument; /* the instrument whose function `request` is running */
    const char *nodes;
    const double *options;
    att_status status; /* first failure of an att_requests_...() call */
};

/* --- requests of instruments -------------------------------------------------------------------------------------- */

att_graph *att_requests_graph(const att_requests *requests)
{
    return requests->graph;
}

double att_requests_option(const att_requests *requests, int index)
{
    return requests->options[index];
}

static bool is_node_of(const att_node *node, const char *op)
{
    return strcmp(op, "attention") == 0 ? att_is_attention(node) : !node->copy && strcmp(node->op->name, op) == 0;
}

int att_requests_node(const att_requests *requests, const char *op, int after)
{
    for (int i = after + 1; i < requests->graph->nodes.count; i++) {
        const att_node *node = &requests->graph->nodes.items[i];
        if (is_node_of(node, op) && att_text_matches(requests->nodes, node->scope))
            return i;
    }
    return -1;
}

/* Grows a list of the measure by one item if necessary. False if out of memory. */
#define GROW(requests, list)                                                              \
    att_list_grow((requests)->measure->context, (void *)&(requests)->measure->list.items, \
                  (requests)->measure->list.count, &(requests)->measure->list.capacity,   \
                  sizeof *(requests)->measure->list.items)

static const char *copy_text(att_requests *requests, const char *text)
{
    const char *copy = att_arena_string(&requests->measure->arena, text);
    if (!copy && requests->status == ATT_OK)
        requests->status = att_fail_memory(requests->measure->context, strlen(text), "a measure");
    return copy;
}

/* Number of elements per sample of the output or probe `name`; -1 if there is none. */
static int64_t elements_of(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return att_shape_count(att_value_shape(graph, graph->outputs.items[i].value));
    return -1;
}

static void add_row(att_requests *requests, requested_row row)
{
    att_measure *measure = requests->measure;
    if (!GROW(requests, rows))
        requests->status = att_fail_memory(measure->context, sizeof(requested_row), "a measure");
    else
        measure->rows.items[measure->rows.count++] = row;
}

void att_requests_study_row(att_requests *requests, int64_t elements, double constant)
{
    if (requests->status == ATT_OK)
        add_row(requests, (requested_row){NULL, elements, constant});
}

void att_requests_row(att_requests *requests, const char *name, double constant)
{
    att_measure *measure = requests->measure;
    const char *copy = copy_text(requests, name);
    if (requests->status != ATT_OK || requests->graph->status != ATT_OK)
        return;
    int64_t elements = elements_of(requests->graph, name);
    if (elements < 0) {
        requests->status = att_fail(measure->context, ATT_ERR_ARGUMENT,
                                    "instrument \"%s\" asks for \"%s\", which is not an output or probe of the graph",
                                    requests->instrument->info.name, name);
        return;
    }
    add_row(requests, (requested_row){copy, elements, constant});
}

void att_requests_series(att_requests *requests, const char *node, int head, const char *statistic)
{
    att_measure *measure = requests->measure;
    const char *copy = copy_text(requests, node);
    if (requests->status != ATT_OK)
        return;
    if (!GROW(requests, series)) {
        requests->status = att_fail_memory(measure->context, sizeof(series), "a measure");
        return;
    }
    measure->series.items[measure->series.count++] = (series){.node = copy, .statistic = statistic, .head = head};
}

void att_requests_exclude(att_requests *requests)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].excluded = true;
}

void att_requests_bound(att_requests *requests, double bound)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].bound = bound;
}

void att_requests_uniform(att_requests *requests, double value)
{
    if (requests->status == ATT_OK && requests->measure->series.count > 0)
        requests->measure->series.items[requests->measure->series.count - 1].uniform = value;
}

att_status att_requests_found_nothing(const att_requests *requests, const char *what)
{
    if (strcmp(requests->nodes, "*") == 0)
        return att_requests_fail(requests, "the network has no %s", what);
    return att_fail(requests->measure->context, ATT_ERR_NOT_FOUND,
                    "instrument \"%s\": the network has no %s that matches \"%s\"", requests->instrument->info.name,
                    what, requests->nodes);
}

att_status att_requests_fail(const att_requests *requests, const char *format, ...)
{
    char reason[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return att_fail(requests->measure->context, ATT_ERR_NOT_FOUND, "instrument \"%s\" has nothing to observe: %s",
                    requests->instrument->info.name, reason);
}

/* Calls the instrument's function `request`. What it adds to the graph counts as a copy, so that other instruments do
 * not measure it. After a failure its rows and series are removed; probes stay in the graph. */
static att_status request(att_requests *requests, const att_instrument *instrument)
{
    att_measure *measure = requests->measure;
    int row_count = measure->rows.count, series_count = measure->series.count;
    requests->graph->copying = true;
    att_status status = instrument->request(requests);
    requests->graph->copying = false;
    if (status != ATT_OK) {
        measure->rows.count = row_count;
        measure->series.count = series_count;
    }
    return status;
}

static att_status add_instrument(att_requests *requests, const att_instrument *instrument)
{
    att_measure *measure = requests->measure;
    for (int i = 0; i < measure->active.count; i++)
        if (measure->active.items[i].instrument == instrument)
            return att_fail(measure->context, ATT_ERR_ARGUMENT, "instrument \"%s\" is named twice",
                            instrument->info.name);
    if (!GROW(requests, active))
        return att_fail_memory(measure->context, sizeof(active_instrument), "a measure");
    requests->instrument = instrument;
    active_instrument active = {
        .instrument = instrument, .first_row = measure->rows.count, .first_series = measure->series.count};
    memcpy(active.options, requests->options, sizeof active.options);
    ATT_TRY(request(requests, instrument));
    ATT_TRY(requests->status);
    ATT_TRY(requests->graph->status);
    active.row_count = measure->rows.count - active.first_row;
    active.series_count = measure->series.count - active.first_series;
    measure->active.items[measure->active.count++] = active;
    return ATT_OK;
}

/* As add_instrument(), but skips an instrument that finds nothing to observe in the whole network, whichever nodes are
 * selected. */
static att_status add_if_applicable(att_requests *requests, const att_instrument *instrument)
{
    const char *nodes = requests->nodes;
    att_status status = add_instrument(requests, instrument);
    if (status != ATT_ERR_NOT_FOUND)
        return status;
    requests->nodes = "*";
    bool fits = request(requests, instrument) != ATT_ERR_NOT_FOUND;
    requests->nodes = nodes;
    return fits ? add_instrument(requests, instrument) : ATT_OK;
}

/* --- creation ------------------------------------------------------------------------------------------------------
 */

static bool keeps_state(const active_instrument *active)
{
    return active->instrument->state.size != NULL;
}

static att_observed shape_of(const att_measure *measure, const active_instrument *active)
{
    return (att_observed){.lengths = measure->lengths + active->first_row,
                          .constants = measure->constants + active->first_row,
                          .count = active->row_count,
                          .options = active->options,
                          .label = -1};
}

/* Updates the figures of an instrument that keeps state. */
static void update_figures(const att_measure *measure, active_instrument *active)
{
    att_states_report(&active->states, measure->figures + active->first_series);
}

/* Keeps a copy of the graph if an instrument studies parts of it. */
static att_status keep_graph(att_measure *measure, const att_graph *graph, const char *nodes)
{
    bool studied = false;
    for (int i = 0; i < measure->active.count; i++)
        studied |= measure->active.items[i].instrument->study != NULL;
    if (!studied)
        return ATT_OK;
    measure->graph = att_graph_copy(graph);
    measure->nodes = att_arena_string(&measure->arena, nodes);
    return measure->graph && measure->nodes
               ? ATT_OK
               : att_fail_memory(measure->context, sizeof *graph, "the graph of an instrument");
}

static att_status allocate_buffers(att_measure *measure)
{
    size_t rows = (size_t)measure->rows.count, all = (size_t)measure->series.count;
    measure->blocks = att_arena_allocate(&measure->arena, rows * sizeof *measure->blocks);
    measure->block_sizes = att_arena_allocate(&measure->arena, rows * sizeof *measure->block_sizes);
    measure->sample_rows = att_arena_allocate(&measure->arena, rows * sizeof *measure->sample_rows);
    measure->lengths = att_arena_allocate(&measure->arena, rows * sizeof *measure->lengths);
    measure->constants = att_arena_allocate(&measure->arena, rows * sizeof *measure->constants);
    measure->values = att_arena_allocate(&measure->arena, all * sizeof *measure->values);
    measure->figures = att_arena_allocate(&measure->arena, all * sizeof *measure->figures);
    measure->all = att_arena_allocate(&measure->arena, all * sizeof *measure->all);
    if (!measure->blocks || !measure->block_sizes || !measure->sample_rows || !measure->lengths ||
        !measure->constants || !measure->values || !measure->figures || !measure->all)
        return att_fail_memory(measure->context, all * sizeof *measure->all, "a measure");
    for (size_t i = 0; i < rows; i++) {
        measure->lengths[i] = measure->rows.items[i].elements;
        measure->constants[i] = measure->rows.items[i].constant;
    }
    for (int i = 0; i < measure->active.count; i++) {
        active_instrument *active = &measure->active.items[i];
        const att_observed shape = shape_of(measure, active);
        if (!keeps_state(active))
            continue;
        ATT_TRY(att_states_create(measure->context, &active->instrument->state, &shape, &active->states));
        update_figures(measure, active);
    }
    return ATT_OK;
}

/* Adds the instruments in the order of the catalog. */
static att_status add_selected(att_requests *requests, const att_selection *selections)
{
    att_context *context = requests->measure->context;
    const att_instrument *instrument;
    for (int i = 0; (instrument = att_catalog_at(&att_instruments, context, i)); i++) {
        if (!selections[i].selected)
            continue;
        requests->options = selections[i].options;
        const int before = requests->measure->active.count;
        ATT_TRY((selections[i].by_all ? add_if_applicable : add_instrument)(requests, instrument));
        if (requests->measure->active.count > before)
            requests->measure->active.items[before].named = !selections[i].by_all;
    }
    return ATT_OK;
}

static att_status prepare(att_measure *measure, att_graph *graph, const char *with, const char *nodes)
{
    att_requests requests = {.measure = measure, .graph = graph, .nodes = nodes};
    att_selection *selections;
    ATT_TRY(att_selections_parse(measure->context, with, &selections));
    att_status status = add_selected(&requests, selections);
    att_free(measure->context, selections);
    ATT_TRY(status);
    if (measure->active.count == 0)
        return att_fail(measure->context, ATT_ERR_ARGUMENT, "none of the instruments in \"%s\" applies to this network",
                        with ? with : "all");
    ATT_TRY(keep_graph(measure, graph, nodes));
    return allocate_buffers(measure);
}

att_status att_measure_create(att_graph *graph, const char *with, const char *nodes, att_measure **out)
{
    att_context *context = graph->context;
    ATT_TRY(graph->status);
    att_measure *measure = att_allocate(context, sizeof *measure);
    if (!measure)
        return att_fail_memory(context, sizeof *measure, "a measure");
    measure->context = measure->arena.context = context;
    measure->wide = graph->dtype == ATT_F64;
    att_status status = prepare(measure, graph, with, nodes ? nodes : "*");
    if (status != ATT_OK)
        att_measure_destroy(&measure);
    else
        *out = measure;
    return status;
}

void att_measure_destroy(att_measure **out)
{
    if (!out || !*out)
        return;
    att_measure *measure = *out;
    for (int i = 0; measure->blocks && i < measure->rows.count; i++)
        att_free(measure->context, measure->blocks[i]);
    for (int i = 0; i < measure->active.count; i++) {
        active_instrument *active = &measure->active.items[i];
        att_states_free(measure->context, &active->states);
        if (active->study)
            active->instrument->study->close(measure->context, active->study);
    }
    att_graph_destroy(&measure->graph);
    att_free(measure->context, measure->active.items);
    att_free(measure->context, measure->rows.items);
    att_free(measure->context, measure->series.items);
    att_arena_free(&measure->arena);
    att_free(measure->context, measure);
    *out = NULL;
}

/* --- observing ---------------------------------------------------------------------------------------------------- */

/* Rounds f64 values to f32, in place. */
static void narrow(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)values + (size_t)i * sizeof value, sizeof value);
        values[i] = (float)value;
    }
}

/* Copies all requested rows of `count` samples from the session. */
static att_status collect(att_measure *measure, att_session *session, int count)
{
    for (int i = 0; i < measure->rows.count; i++) {
        const requested_row *row = &measure->rows.items[i];
        int64_t elements = row->elements * count;
        if (measure->block_sizes[i] < elements) {
            size_t bytes = (size_t)elements * (measure->wide ? sizeof(double) : sizeof(float));
            att_free(measure->context, measure->blocks[i]);
            measure->block_sizes[i] = 0;
            measure->blocks[i] = att_allocate(measure->context, bytes);
            if (!measure->blocks[i])
                return att_fail_memory(measure->context, bytes, "measured rows");
            measure->block_sizes[i] = elements;
        }
        if (!row->output)
            memset(measure->blocks[i], 0, (size_t)elements * sizeof(float));
        else
            ATT_TRY(att_session_output(session, row->output, 0, count, measure->blocks[i]));
        if (row->output && measure->wide)
            narrow(measure->blocks[i], elements);
    }
    return ATT_OK;
}

static int64_t samples_of(const series *s)
{
    return s->spread.count + s->undefined;
}

static int kept_samples(const series *s, int max_samples)
{
    if (!s->samples)
        return 0;
    return samples_of(s) < max_samples ? (int)samples_of(s) : max_samples;
}

static void add_value(series *s, double value, int max_samples)
{
    if (s->samples && samples_of(s) < max_samples)
        s->samples[samples_of(s)] = value;
    if (isfinite(value))
        att_spread_add(&s->spread, value);
    else
        s->undefined++;
}

static void rows_of_sample(const att_measure *measure, const active_instrument *active, int sample, const float **rows)
{
    for (int i = 0; i < active->row_count; i++) {
        int row = active->first_row + i;
        rows[i] = measure->blocks[row] + sample * measure->lengths[row];
    }
}

static void observe_samples(att_measure *measure, const active_instrument *active, int count, const int32_t *labels)
{
    att_observed observed = shape_of(measure, active);
    observed.rows = measure->sample_rows;
    for (int sample = 0; sample < count; sample++) {
        rows_of_sample(measure, active, sample, measure->sample_rows);
        observed.label = labels ? labels[sample] : -1;
        active->instrument->observe(&observed, measure->values);
        for (int i = 0; i < active->series_count; i++)
            add_value(&measure->series.items[active->first_series + i], measure->values[i], measure->max_samples);
    }
}

typedef struct sample_source {
    const att_measure *measure;
    const active_instrument *active;
} sample_source;

static void sample_rows(void *user, int sample, const float **rows)
{
    const sample_source *s = user;
    rows_of_sample(s->measure, s->active, sample, rows);
}

static att_status observe_state(att_measure *measure, active_instrument *active, int count, const int32_t *labels)
{
    sample_source s = {measure, active};
    ATT_TRY(att_states_observe(measure->context, &active->states, count, labels, sample_rows, &s));
    update_figures(measure, active);
    return ATT_OK;
}

void att_measure_tell(att_measure *measure, att_progress_fn progress, void *user)
{
    measure->progress = progress;
    measure->progress_user = user;
}

/* Lets the study of an instrument compute its rows. */
static att_status run_study(att_measure *measure, active_instrument *active, att_session *session, int count,
                            const int32_t *labels, bool preview)
{
    const att_study *study = active->instrument->study;
    if (!study)
        return ATT_OK;
    if (session->plan->comm && att_comm_size(session->plan->comm) > 1)
        return att_fail(measure->context, ATT_ERR_UNSUPPORTED,
                        "instrument \"%s\" runs in one process; measure without other processes",
                        active->instrument->info.name);
    att_study_job job = {.context = measure->context,
                         .graph = measure->graph,
                         .nodes = measure->nodes,
                         .options = active->options,
                         .instrument = active->instrument,
                         .session = session,
                         .count = count,
                         .seen = measure->seen,
                         .preview = preview,
                         .previewed = measure->previewed,
                         .labels = labels,
                         .rows = measure->blocks + active->first_row,
                         .lengths = measure->lengths + active->first_row,
                         .row_count = active->row_count,
                         .own = &active->study,
                         .started = att_seconds_now(),
                         .progress = measure->progress,
                         .progress_user = measure->progress_user};
    att_status status = study->run(&job);
    if (status != ATT_OK && active->study) { /* it may be incomplete */
        study->close(measure->context, active->study);
        active->study = NULL;
    }
    return status;
}

static int64_t previews_of(const active_instrument *active)
{
    const att_study *study = active->instrument->study;
    return study && study->previews ? study->previews(active->options) : 0;
}

int64_t att_measure_previews(const att_measure *measure)
{
    int64_t most = 0;
    for (int i = 0; i < measure->active.count && measure->seen == 0; i++) {
        const int64_t wanted = previews_of(&measure->active.items[i]);
        most = wanted > most ? wanted : most;
    }
    return most;
}

att_status att_measure_preview(att_measure *measure, att_session *session, int count, const int32_t *labels)
{
    ATT_TRY(collect(measure, session, count));
    for (int i = 0; i < measure->active.count; i++)
        if (previews_of(&measure->active.items[i]) > 0)
            ATT_TRY(run_study(measure, &measure->active.items[i], session, count, labels, true));
    measure->previewed += count;
    return ATT_OK;
}

att_status att_measure_check_unlabelled(const att_measure *measure)
{
    for (int i = 0; i < measure->active.count; i++) {
        const active_instrument *active = &measure->active.items[i];
        if (active->named && active->instrument->info.needs_labels)
            return att_fail(measure->context, ATT_ERR_ARGUMENT,
                            "%s needs the classes of the images: give them as labels, one for each image",
                            active->instrument->info.name);
    }
    return ATT_OK;
}

att_status att_measure_observe(att_measure *measure, att_session *session, int count, const int32_t *labels)
{
    ATT_TRY(collect(measure, session, count));
    for (int i = 0; i < measure->active.count; i++) {
        active_instrument *active = &measure->active.items[i];
        if (active->instrument->info.needs_labels && !labels)
            continue;
        ATT_TRY(run_study(measure, active, session, count, labels, false));
        if (keeps_state(active))
            ATT_TRY(observe_state(measure, active, count, labels));
        else
            observe_samples(measure, active, count, labels);
    }
    measure->seen += count;
    return ATT_OK;
}

void att_measure_clear(att_measure *measure)
{
    measure->seen = measure->previewed = 0;
    for (int i = 0; i < measure->series.count; i++) {
        measure->series.items[i].spread = (att_spread){0};
        measure->series.items[i].undefined = 0;
    }
    for (int i = 0; i < measure->active.count; i++)
        if (keeps_state(&measure->active.items[i])) {
            att_states_clear(&measure->active.items[i].states);
            update_figures(measure, &measure->active.items[i]);
        }
}

att_status att_measure_keep_samples(att_measure *measure, int count)
{
    if (count < 0 || count > ATT_MEASURE_MOST_SAMPLES)
        return att_fail(measure->context, ATT_ERR_ARGUMENT, "cannot record %d samples of each figure; expected 0 to %d",
                        count, (int)ATT_MEASURE_MOST_SAMPLES);
    att_measure_clear(measure);
    measure->max_samples = 0;
    for (int w = 0; w < measure->active.count; w++) {
        const active_instrument *active = &measure->active.items[w];
        for (int i = 0; i < active->series_count; i++) {
            series *s = &measure->series.items[active->first_series + i];
            size_t bytes = (size_t)count * sizeof *s->samples;
            bool records = active->instrument->info.by_sample && !keeps_state(active) && count > 0;
            s->samples = records ? att_arena_allocate(&measure->arena, bytes) : NULL;
            if (records && !s->samples)
                return att_fail_memory(measure->context, bytes, "samples of a figure");
        }
    }
    measure->max_samples = count;
    return ATT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

int att_measure_count(const att_measure *measure)
{
    return measure->series.count;
}

static const active_instrument *instrument_of(const att_measure *measure, int index)
{
    const active_instrument *active = measure->active.items;
    while (index >= active->first_series + active->series_count)
        active++;
    return active;
}

static att_figure figure_of(const att_measure *measure, const active_instrument *active, int index)
{
    const series *s = &measure->series.items[index];
    if (keeps_state(active))
        return measure->figures[index];
    return (att_figure){att_spread_mean(&s->spread), att_spread_deviation(&s->spread), samples_of(s), s->undefined};
}

att_measurement att_measure_at(const att_measure *measure, int index)
{
    if (index < 0 || index >= measure->series.count)
        return (att_measurement){0};
    const series *s = &measure->series.items[index];
    const active_instrument *active = instrument_of(measure, index);
    att_figure figure = figure_of(measure, active, index);
    return (att_measurement){.instrument = active->instrument->info.name,
                             .node = s->node,
                             .statistic = s->statistic,
                             .unit = active->instrument->info.unit,
                             .head = s->head,
                             .mean = figure.mean,
                             .deviation = figure.deviation,
                             .count = figure.count,
                             .undefined = figure.undefined,
                             .excluded = s->excluded,
                             .bound = s->bound,
                             .uniform = s->uniform,
                             .samples = s->samples,
                             .sample_count = kept_samples(s, measure->max_samples)};
}

const att_measurement *att_measure_all(att_measure *measure)
{
    for (int i = 0; i < measure->series.count; i++)
        measure->all[i] = att_measure_at(measure, i);
    return measure->all;
}

const att_measurement *att_measure_observed(att_measure *measure, int *count)
{
    *count = 0;
    for (int i = 0; i < measure->series.count; i++) {
        att_measurement m = att_measure_at(measure, i);
        if (m.count > 0)
            measure->all[(*count)++] = m;
    }
    return measure->all;
}

int att_measure_instrument_count(const att_measure *measure)
{
    return measure->active.count;
}

att_instrument_info att_measure_instrument_at(const att_measure *measure, int index)
{
    return index >= 0 && index < measure->active.count ? measure->active.items[index].instrument->info
                                                       : (att_instrument_info){0};
}

const double *att_measure_options_at(const att_measure *measure, int index)
{
    return index >= 0 && index < measure->active.count ? measure->active.items[index].options : NULL;
}
