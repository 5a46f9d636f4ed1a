#include "study/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "study/measure/list.h"
#include "study/measure/selection.h"
#include "study/measure/study.h"

/* --- creation ----------------------------------------------------------------------------------------------------- */

static bool keeps_state(const att_active_instrument *active)
{
    return active->instrument->state.size != NULL;
}

static att_observed shape_of(const att_measure *measure, const att_active_instrument *active)
{
    return (att_observed){.lengths = measure->lengths + active->first_row,
                          .constants = measure->constants + active->first_row,
                          .count = active->row_count,
                          .options = active->options,
                          .label = -1};
}

/* Updates the figures of an instrument that keeps state. */
static void update_figures(const att_measure *measure, att_active_instrument *active)
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
        att_active_instrument *active = &measure->active.items[i];
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
        ATT_TRY((selections[i].by_all ? att_requests_add_if_applicable : att_requests_add)(requests, instrument));
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
    att_measure *measure;
    ATT_TRY(att_new(context, &measure, 1, "a measure"));
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
        att_active_instrument *active = &measure->active.items[i];
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

/* Copies all requested rows of `count` samples from the session. */
static att_status collect(att_measure *measure, att_session *session, int count)
{
    for (int i = 0; i < measure->rows.count; i++) {
        const att_requested_row *row = &measure->rows.items[i];
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
            att_study_narrow(measure->blocks[i], elements);
    }
    return ATT_OK;
}

static int64_t samples_of(const att_series *s)
{
    return s->values.spread.count + s->values.undefined;
}

static int kept_samples(const att_series *s, int max_samples)
{
    if (!s->samples)
        return 0;
    return samples_of(s) < max_samples ? (int)samples_of(s) : max_samples;
}

static void add_value(att_series *s, double value, int max_samples)
{
    if (s->samples && samples_of(s) < max_samples)
        s->samples[samples_of(s)] = value;
    att_tally_add(&s->values, value);
}

static void rows_of_sample(const att_measure *measure, const att_active_instrument *active, int sample,
                           const float **rows)
{
    for (int i = 0; i < active->row_count; i++) {
        int row = active->first_row + i;
        rows[i] = measure->blocks[row] + sample * measure->lengths[row];
    }
}

static void observe_samples(att_measure *measure, const att_active_instrument *active, int count, const int32_t *labels)
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
    const att_active_instrument *active;
} sample_source;

static void sample_rows(void *user, int sample, const float **rows)
{
    const sample_source *s = user;
    rows_of_sample(s->measure, s->active, sample, rows);
}

static att_status observe_state(att_measure *measure, att_active_instrument *active, int count, const int32_t *labels)
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
static att_status run_study(att_measure *measure, att_active_instrument *active, att_session *session, int count,
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

static int64_t previews_of(const att_active_instrument *active)
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
        const att_active_instrument *active = &measure->active.items[i];
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
        att_active_instrument *active = &measure->active.items[i];
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

/* 0 stands for a bound that is not known, and is the bound of a single token, too. */
static double mean_of(double a, int64_t a_count, double b, int64_t b_count)
{
    return (a * (double)a_count + b * (double)b_count) / (double)(a_count + b_count);
}

static att_status check_mergeable(const att_measure *measure, const att_measure *other)
{
    for (int i = 0; i < measure->active.count; i++)
        if (keeps_state(&measure->active.items[i]))
            return att_fail(measure->context, ATT_ERR_UNSUPPORTED,
                            "instrument \"%s\" gives no mean over samples, and so needs texts of one length; leave it "
                            "out, or give texts of one length",
                            measure->active.items[i].instrument->info.name);
    bool same = measure->series.count == other->series.count;
    for (int i = 0; same && i < measure->series.count; i++)
        same = strcmp(measure->series.items[i].node, other->series.items[i].node) == 0 &&
               strcmp(measure->series.items[i].statistic, other->series.items[i].statistic) == 0 &&
               measure->series.items[i].head == other->series.items[i].head;
    return same ? ATT_OK
                : att_fail(measure->context, ATT_ERR_UNSUPPORTED,
                           "the instruments have other figures for texts of another length; give texts of one length");
}

att_status att_measure_merge(att_measure *measure, const att_measure *other)
{
    ATT_TRY(check_mergeable(measure, other));
    for (int i = 0; i < measure->series.count && other->seen > 0; i++) {
        att_series *s = &measure->series.items[i];
        const att_series *more = &other->series.items[i];
        s->bound = mean_of(s->bound, measure->seen, more->bound, other->seen);
        s->uniform = mean_of(s->uniform, measure->seen, more->uniform, other->seen);
        att_tallies_merge(&s->values, &more->values, 1);
    }
    measure->seen += other->seen;
    return ATT_OK;
}

void att_measure_clear(att_measure *measure)
{
    measure->seen = measure->previewed = 0;
    for (int i = 0; i < measure->series.count; i++)
        measure->series.items[i].values = (att_tally){0};
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
        const att_active_instrument *active = &measure->active.items[w];
        for (int i = 0; i < active->series_count; i++) {
            att_series *s = &measure->series.items[active->first_series + i];
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

static const att_active_instrument *instrument_of(const att_measure *measure, int index)
{
    const att_active_instrument *active = measure->active.items;
    while (index >= active->first_series + active->series_count)
        active++;
    return active;
}

static att_figure figure_of(const att_measure *measure, const att_active_instrument *active, int index)
{
    return keeps_state(active) ? measure->figures[index] : att_tally_figure(&measure->series.items[index].values);
}

att_measurement att_measure_at(const att_measure *measure, int index)
{
    if (index < 0 || index >= measure->series.count)
        return (att_measurement){0};
    const att_series *s = &measure->series.items[index];
    const att_active_instrument *active = instrument_of(measure, index);
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
    att_instrument_info info = {0};
    if (index >= 0 && index < measure->active.count)
        info = measure->active.items[index].instrument->info;
    if (measure->wide && info.scales_f64)
        info.scales = info.scales_f64;
    info.scales_f64 = NULL;
    return info;
}

const double *att_measure_options_at(const att_measure *measure, int index)
{
    return index >= 0 && index < measure->active.count ? measure->active.items[index].options : NULL;
}
