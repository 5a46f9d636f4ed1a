/* The gradient of the loss with respect to the scores of attention, beside the entropy of their rows. Two plans run for
 * each group of samples: one propagates the gradient back to the outputs of all attention layers; the other computes
 * from it the gradient of the scores, a tile of keys at a time, and keeps its norms. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/memory.h"
#include "base/core/spread.h"
#include "base/core/text.h"
#include "engine/ops/attention.h"
#include "engine/ops/list.h"
#include "networks/tasks/task.h"
#include "study/measure/list.h"
#include "study/measure/moments.h"
#include "study/measure/study.h"

enum { BINS = 10 };
enum { MOST_SAMPLES = 16 }; /* of one run, so that the gradients of all layers stay small */

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* The row of a layer and sample: whether the sample was measured; count, mean and deviation of the norms in each bin;
 * the members of att_moments. */
enum { MEASURED, FIRST_BIN, PER_BIN = 3, MOMENTS = FIRST_BIN + PER_BIN * BINS, NUMBERS = MOMENTS + 7 };

#define NORM "|dL/ds|, entropy "
static const att_statistic_info statistics[] = {{"norm 0.0-0.1", NORM "below 0.1 of its maximum, n: rows", NULL},
                                                {"norm 0.1-0.2", NORM "0.1 to 0.2, n: rows", NULL},
                                                {"norm 0.2-0.3", NORM "0.2 to 0.3, n: rows", NULL},
                                                {"norm 0.3-0.4", NORM "0.3 to 0.4, n: rows", NULL},
                                                {"norm 0.4-0.5", NORM "0.4 to 0.5, n: rows", NULL},
                                                {"norm 0.5-0.6", NORM "0.5 to 0.6, n: rows", NULL},
                                                {"norm 0.6-0.7", NORM "0.6 to 0.7, n: rows", NULL},
                                                {"norm 0.7-0.8", NORM "0.7 to 0.8, n: rows", NULL},
                                                {"norm 0.8-0.9", NORM "0.8 to 0.9, n: rows", NULL},
                                                {"norm 0.9-1.0", NORM "at least 0.9, n: rows", NULL},
                                                {"correlation", "r of entropy and ln |dL/ds|, n: rows", NULL},
                                                {0}};
enum { STATISTICS = sizeof statistics / sizeof *statistics - 1 };

static bool has_scores(const att_node *node)
{
    return att_is_attention(node) && node->op == &att_op_attention;
}

/* The next attention with content that matches the pattern, after node `after`; -1: none. */
static int next_layer(const att_graph *graph, const char *nodes, int after)
{
    for (int i = after + 1; i < graph->nodes.count; i++)
        if (has_scores(&graph->nodes.items[i]) && att_text_matches_any(nodes, graph->nodes.items[i].scope))
            return i;
    return -1;
}

static int next_requested(const att_requests *requests, int after)
{
    const att_graph *graph = att_requests_graph(requests);
    do
        after = att_requests_node(requests, "attention", after);
    while (after >= 0 && !has_scores(&graph->nodes.items[after]));
    return after;
}

static att_status request(att_requests *requests)
{
    const att_graph *graph = att_requests_graph(requests);
    int layers = 0;
    ATT_TRY(att_requests_need_classes(requests));
    for (int i = -1; (i = next_requested(requests, i)) >= 0; layers++)
        att_requests_study_row(requests, NUMBERS, 0);
    for (int s = 0; s < STATISTICS; s++) {
        for (int i = -1; (i = next_requested(requests, i)) >= 0;)
            att_requests_series(requests, graph->nodes.items[i].scope, -1, statistics[s].name);
        att_requests_series(requests, "", -1, statistics[s].name);
    }
    return layers > 0 ? ATT_OK : att_requests_found_no_attention(requests, "attention with queries and keys");
}

/* --- the study ---------------------------------------------------------------------------------------------------- */

typedef struct layer {
    int node;
    att_attention_attrs attrs;
    int64_t heads, queries, keys;
    char *gradients; /* of the layer's output, for `most` samples */
} layer;

/* Kept between runs. */
typedef struct study {
    layer *layers;
    int count, most;
    bool wide;
    att_plan *back, *rows; /* the gradients of the layers' outputs; statistics and norms of the rows */
    att_session *back_session, *rows_session;
    char *stats, *norms; /* of one layer, for `most` samples */
} study;

static void close_study(att_context *context, void *own)
{
    study *s = own;
    att_session_destroy(&s->back_session);
    att_session_destroy(&s->rows_session);
    att_plan_destroy(&s->back);
    att_plan_destroy(&s->rows);
    for (int i = 0; i < s->count; i++)
        att_free(context, s->layers[i].gradients);
    att_free(context, s->layers);
    att_free(context, s->stats);
    att_free(context, s->norms);
    att_free(context, s);
}

static void name_of(const char *what, int index, char name[32])
{
    snprintf(name, 32, "%s.%d", what, index);
}

static att_status find_layers(const att_study_job *job, study *s)
{
    const att_graph *graph = job->graph;
    ATT_TRY(att_new(job->context, &s->layers, (size_t)job->row_count, "an instrument"));
    for (int i = -1; s->count < job->row_count && (i = next_layer(graph, job->nodes, i)) >= 0; s->count++) {
        const att_node *node = &graph->nodes.items[i];
        att_shape rows = att_value_shape(graph, node->out[1]);
        s->layers[s->count] = (layer){.node = i,
                                      .attrs = *ATT_ATTRS(node, attention),
                                      .heads = rows.dims[0],
                                      .queries = rows.dims[1],
                                      .keys = att_attention_keys(graph, node)};
    }
    return ATT_OK;
}

/* The output "out.I" is that of layer I, and the loss is the cross-entropy of the logits. */
static att_status compile_back(const att_study_job *job, att_graph *graph, study *s)
{
    att_value logits = att_graph_find_output(graph, att_task_class_output(graph));
    const size_t count = (size_t)s->count, parameters = (size_t)graph->parameters.count;
    char(*names)[32] = att_allocate_array(job->context, count, sizeof *names);
    const char **gradients = att_allocate_array(job->context, count + 1, sizeof *gradients);
    bool *frozen = att_allocate_array(job->context, parameters + 1, sizeof *frozen);
    att_status status = names && gradients && frozen ? ATT_OK
                                                     : att_fail_memory(job->context, count * sizeof *names + parameters,
                                                                       "the graph of an instrument");
    if (status == ATT_OK) {
        graph->outputs.count = 0;
        att_value target = att_graph_input(graph, "score_gradient.class", ATT_I32, (att_shape){0});
        att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0));
        for (int i = 0; i < s->count; i++) {
            name_of("out", i, names[i]);
            gradients[i] = names[i];
            att_graph_output(graph, names[i], graph->nodes.items[s->layers[i].node].out[0]);
        }
        memset(frozen, true, parameters);
        att_plan_options options = att_study_plan_options(job);
        options.purpose = ATT_GRADIENT;
        options.gradients = gradients;
        options.frozen = frozen;
        status = att_plan_compile(graph, &options, &s->back);
    }
    att_free(job->context, names);
    att_free(job->context, gradients);
    att_free(job->context, frozen);
    return status;
}

/* The input "gradient.I" is what the other plan gives for layer I. */
static att_status compile_rows(const att_study_job *job, att_graph *graph, study *s)
{
    graph->outputs.count = 0;
    for (int i = 0; i < s->count && graph->status == ATT_OK; i++) {
        char name[32];
        const att_node node = graph->nodes.items[s->layers[i].node];
        const att_desc out = att_graph_desc(graph, node.out[0]);
        att_graph_scope(graph, node.scope);
        name_of("gradient", i, name);
        att_value gradient = att_graph_input(graph, name, out.dtype, out.shape);
        name_of("norms", i, name);
        att_graph_output(graph, name, att_score_gradient_norms(graph, &node, gradient));
        name_of("stats", i, name);
        att_graph_output(graph, name, node.out[2]);
    }
    const att_plan_options options = att_study_plan_options(job);
    return att_plan_compile(graph, &options, &s->rows);
}

static att_status compile(const att_study_job *job, study *s,
                          att_status (*build)(const att_study_job *job, att_graph *graph, study *s))
{
    att_graph *graph = att_graph_copy(job->graph);
    if (!graph)
        return att_fail_memory(job->context, sizeof *graph, "the graph of an instrument");
    att_status status = build(job, graph, s);
    att_graph_destroy(&graph);
    return status;
}

static att_status reserve(const att_study_job *job, study *s)
{
    const size_t element = (size_t)s->most * (s->wide ? sizeof(double) : sizeof(float));
    int64_t most_rows = 0;
    for (int i = 0; i < s->count; i++) {
        layer *l = &s->layers[i];
        att_value out = job->graph->nodes.items[l->node].out[0];
        size_t bytes = att_size_product((size_t)att_shape_count(att_value_shape(job->graph, out)), element);
        l->gradients = att_allocate(job->context, bytes);
        if (!l->gradients)
            return att_fail_memory(job->context, bytes, "the gradients of attention's outputs");
        most_rows = l->heads * l->queries > most_rows ? l->heads * l->queries : most_rows;
    }
    size_t bytes = att_size_product((size_t)most_rows, element);
    s->stats = att_allocate(job->context, att_size_product(bytes, ATT_STAT_COUNT));
    s->norms = att_allocate(job->context, bytes);
    return s->stats && s->norms ? ATT_OK
                                : att_fail_memory(job->context, bytes * (ATT_STAT_COUNT + 1), "rows of attention");
}

static att_status open_study(const att_study_job *job)
{
    study *s = *job->own = att_allocate(job->context, sizeof *s);
    if (!s)
        return att_fail_memory(job->context, sizeof *s, "an instrument");
    s->wide = job->graph->dtype == ATT_F64;
    s->most = job->session->max_batch < MOST_SAMPLES ? job->session->max_batch : MOST_SAMPLES;
    ATT_TRY(find_layers(job, s));
    ATT_TRY(compile(job, s, compile_back));
    ATT_TRY(compile(job, s, compile_rows));
    ATT_TRY(att_session_create(s->back, job->session->weights, s->most, &s->back_session));
    ATT_TRY(att_session_create(s->rows, job->session->weights, s->most, &s->rows_session));
    att_cost network;
    ATT_TRY(att_graph_inference_cost(job->graph, &network));
    const double own = att_plan_cost(s->back).flops + att_plan_cost(s->rows).flops;
    att_log(job->context, ATT_LOG_INFO,
            "score_gradient: its plans take %.3g GFLOP for each image, %.3g times as much as the network (%.3g GFLOP)",
            own / 1e9, own / network.flops, network.flops / 1e9);
    return reserve(job, s);
}

static double at(const void *values, bool wide, int64_t i)
{
    return wide ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Entropy over that of a uniform row; NaN if the query sees one key only. */
static double normalised(const layer *l, double entropy, int64_t query)
{
    const int64_t keys = l->attrs.causal ? query + 1 : l->keys;
    return keys > 1 ? fmin(1, fmax(0, entropy / log((double)keys))) : NAN;
}

/* Writes the row of one sample of a layer. stats, norms: those of the layer, of all samples */
static void describe(const study *s, const layer *l, int sample, float *row)
{
    att_spread bins[BINS] = {{0}};
    att_moments moments = {0};
    for (int64_t i = 0; i < l->heads * l->queries; i++) {
        const int64_t of_sample = sample * l->heads * l->queries + i;
        const double norm = at(s->norms, s->wide, of_sample);
        const double entropy =
            normalised(l, at(s->stats, s->wide, of_sample * ATT_STAT_COUNT + ATT_STAT_ENTROPY), i % l->queries);
        att_moments_add(&moments, entropy, log(norm));
        if (isfinite(entropy) && isfinite(norm))
            att_spread_add(&bins[entropy < 1 ? (int)(BINS * entropy) : BINS - 1], norm);
    }
    row[MEASURED] = 1;
    for (int b = 0; b < BINS; b++) {
        float *bin = row + FIRST_BIN + PER_BIN * b;
        bin[0] = (float)bins[b].count;
        bin[1] = (float)bins[b].mean;
        bin[2] = bins[b].count > 1 ? (float)att_spread_deviation(&bins[b]) : 0;
    }
    const double numbers[] = {
        (double)moments.count, (double)moments.undefined, moments.x, moments.y, moments.xx, moments.yy, moments.xy};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        row[MOMENTS + i] = (float)numbers[i];
}

static att_status propagate(const att_study_job *job, study *s, int first, int count)
{
    ATT_TRY(att_study_bind(job, s->back_session, first));
    ATT_TRY(att_session_bind(s->back_session, "score_gradient.class", job->labels + first));
    ATT_TRY(att_session_accumulate(s->back_session, NULL, count, 1, 0, 0, 0));
    for (int i = 0; i < s->count; i++) {
        char name[40];
        snprintf(name, sizeof name, "out.%d.grad", i);
        ATT_TRY(att_session_output(s->back_session, name, 0, count, s->layers[i].gradients));
    }
    return ATT_OK;
}

/* Runs at most `most` samples. A class that the network lacks has no loss. */
static att_status run_some(const att_study_job *job, study *s, int first, int count)
{
    char name[32];
    ATT_TRY(propagate(job, s, first, count));
    ATT_TRY(att_study_bind(job, s->rows_session, first));
    for (int i = 0; i < s->count; i++) {
        name_of("gradient", i, name);
        ATT_TRY(att_session_bind(s->rows_session, name, s->layers[i].gradients));
    }
    ATT_TRY(att_session_run(s->rows_session, count));
    for (int i = 0; i < s->count; i++) {
        name_of("stats", i, name);
        ATT_TRY(att_session_output(s->rows_session, name, 0, count, s->stats));
        name_of("norms", i, name);
        ATT_TRY(att_session_output(s->rows_session, name, 0, count, s->norms));
        for (int sample = 0; sample < count; sample++)
            if (job->labels[first + sample] >= 0)
                describe(s, &s->layers[i], sample, job->rows[i] + (int64_t)(first + sample) * NUMBERS);
    }
    return ATT_OK;
}

static att_status run(att_study_job *job)
{
    if (!*job->own)
        ATT_TRY(open_study(job));
    study *s = *job->own;
    for (int done = 0; done < job->count; done += s->most) {
        int now = job->count - done < s->most ? job->count - done : s->most;
        ATT_TRY(run_some(job, s, done, now));
        ATT_TRY(att_study_tell(job, done + now, job->count));
    }
    return ATT_OK;
}

static const att_study gradient_study = {.run = run, .close = close_study};

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Of one layer. */
typedef struct state {
    att_spread bins[BINS]; /* of the norms */
    att_moments moments;   /* of normalised entropy and the logarithm of the norm */
} state;

static size_t size(const att_observed *shape)
{
    return (size_t)shape->count * sizeof(state);
}

static void merge_layer(state *s, const state *more)
{
    for (int b = 0; b < BINS; b++)
        att_spread_merge(&s->bins[b], &more->bins[b]);
    att_moments_merge(&s->moments, &more->moments);
}

static void observe(void *states, const att_observed *observed)
{
    for (int i = 0; i < observed->count; i++) {
        const float *row = observed->rows[i], *m = row + MOMENTS;
        state sample = {.moments = {(int64_t)m[0], (int64_t)m[1], (double)m[2], (double)m[3], (double)m[4],
                                    (double)m[5], (double)m[6]}};
        for (int b = 0; b < BINS; b++) {
            const float *bin = row + FIRST_BIN + PER_BIN * b;
            const double deviation = (double)bin[2];
            sample.bins[b] =
                (att_spread){(int64_t)bin[0], (double)bin[1], deviation * deviation * ((double)bin[0] - 1)};
        }
        if (row[MEASURED] != 0)
            merge_layer((state *)states + i, &sample);
    }
}

static void merge(void *states, const void *later, const att_observed *shape)
{
    for (int i = 0; i < shape->count; i++)
        merge_layer((state *)states + i, (const state *)later + i);
}

static att_figure figure_of(const state *s, int statistic)
{
    if (statistic < BINS) {
        const att_spread *bin = &s->bins[statistic];
        return (att_figure){att_spread_mean(bin), att_spread_deviation(bin), bin->count, 0};
    }
    const att_moments *m = &s->moments;
    const double correlation = att_moments_correlation(m);
    const int64_t rows = m->count + m->undefined;
    return (att_figure){correlation, NAN, rows, isnan(correlation) ? rows : m->undefined};
}

static void report(const void *states, const att_observed *shape, att_figure *figures)
{
    const state *all = states;
    state network = {0};
    for (int i = 0; i < shape->count; i++)
        merge_layer(&network, &all[i]);
    for (int s = 0; s < STATISTICS; s++) {
        for (int i = 0; i < shape->count; i++)
            *figures++ = figure_of(&all[i], s);
        *figures++ = figure_of(&network, s);
    }
}

static const att_statistic_scale scales[] = {
    {"correlation", "-0.26 to 0.33 by layer in DeiT-Tiny; above 0 if gradients are steeper around uniform rows",
     ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_score_gradient = {
    .info = {.name = "score_gradient",
             .view = "uniform",
             .title = "Gradient of the scores",
             .summary =
                 "size of the gradient of the loss with respect to the scores of attention, by entropy of the row",
             .unit = "1",
             .formula =
                 "|dL/ds_i|_2, ds_ij = a_ij (da_ij - sum_k a_ik da_ik), da_ij = do_i . v_j: mean over the rows i "
                 "whose H(a_i) / ln N is in the bin; correlation of H(a_i) / ln N and ln |dL/ds_i| over all rows",
             .source = "claim that gradients are steepest around uniform attention: Hyeon-Woo et al., ICCV 2023; the "
                       "statistic is ours",
             .reading =
                 "L is the cross-entropy of one image's logits and its class, without smoothing, whatever the "
                 "network was trained with; s are the scores after scaling and with all their terms; N keys are "
                 "those of the window, or those not after the query; the mask of shifted windows does not lower N. "
                 "A row is a query of a head of an image, and n counts rows; the deviation is that over rows. "
                 "Layers without queries and keys are left out, and rows with one key. A row whose norm is 0 has no "
                 "logarithm and is left out of Pearson's correlation: where only the class token is read on, other "
                 "queries of the last layer have gradient 0. In f32, the norm of a row with 1 - max_j a_ij below "
                 "about 1e-5 is mostly rounding. Figures of the whole network join the rows of all layers, whose "
                 "gradients differ in size. Costs two forward passes and one backward pass, in f32",
             .scales = scales,
             .needs_labels = true,
             .costly = true,
             .by_block = true,
             .statistics = statistics},
    .request = request,
    .state = {size, observe, merge, report},
    .study = &gradient_study,
};
