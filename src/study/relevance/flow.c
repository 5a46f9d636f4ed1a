/* Attention flow: the op attention_flow over the maps of all layers. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "study/relevance/list.h"

/* The time of a maximum flow to every token grows with the third power of their number. */
enum { MOST_TOKENS = 256 };

/* maps[j] = mean over the heads of a_ij; 0 for a key that the query does not see. rows: scratch [H, N] */
static att_status take_query(const att_relevance *r, int layer, int query, float *rows, float *maps)
{
    const att_explored_layer *explored = &r->explorer->layers[layer];
    const int heads = explored->attrs.heads;
    ATT_TRY(att_explorer_row(r->explorer, layer, query, NULL, rows));
    for (int64_t j = 0; j < explored->tokens; j++) {
        double sum = 0;
        for (int h = 0; h < heads; h++)
            sum += isnan(rows[h * explored->tokens + j]) ? 0 : (double)rows[h * explored->tokens + j];
        maps[j] = (float)(sum / heads);
    }
    return ATT_OK;
}

/* The op begins at token 0, with a flow of 1. A further layer above the last one spreads it over the tokens that the
 * head reads: its capacities from token 0, 0.5 a_0j + 0.5 [j = 0], are e_j. */
static void take_start(const att_relevance *r, int64_t tokens, double *start, float *map)
{
    memset(map, 0, (size_t)(tokens * tokens) * sizeof *map);
    att_relevance_begin(r, start);
    for (int64_t j = 0; j < tokens; j++)
        map[j] = (float)(2 * start[j] - (j == 0));
}

static att_status take_maps(const att_relevance *r, int layers, float *rows, double *start, float *maps)
{
    const int64_t tokens = r->explorer->layers[0].tokens;
    for (int l = 0; l < layers; l++)
        for (int i = 0; i < tokens; i++) {
            if (att_stop_asked(r->context))
                return att_fail(r->context, ATT_ERR_STOPPED, "stopped on request while maps were computed");
            ATT_TRY(take_query(r, l, i, rows, maps + (l * tokens + i) * tokens));
        }
    take_start(r, tokens, start, maps + layers * tokens * tokens);
    return ATT_OK;
}

/* row: the flow to each token. The processor computes it, whatever the network runs on. */
static att_status run_flow(const att_graph *graph, const att_field *field, const float *maps, double *row)
{
    const att_inference_options options = {
        .backend = "cpu", .precision = ATT_FULL, .max_batch = 1, .group = 1, .stops = true};
    const void *data[] = {maps};
    const att_batch inputs = {.count = 1, .rows = 1, .field_count = 1, .fields = field, .data = data};
    att_weights *none;
    att_inference inference = {0};
    att_batch answers;
    ATT_TRY(att_weights_create(graph, options.backend, &none));
    att_status status = att_inference_create(graph, none, &options, &inference);
    if (status == ATT_OK)
        status = att_inference_run(&inference, &inputs, 1, &answers);
    if (status == ATT_OK) {
        const float *flow = att_batch_field(&answers, "flow");
        for (int64_t j = 0; j < field->shape.dims[1]; j++)
            row[j] = (double)flow[j];
    }
    att_inference_free(&inference);
    att_weights_destroy(&none);
    return status;
}

static att_status follow(const att_relevance *r, int64_t layers, int64_t tokens, const float *maps, double *row)
{
    const att_field field = {.name = "maps", .dtype = ATT_F32, .shape = att_shape_of(layers, tokens, tokens)};
    att_graph *graph;
    ATT_TRY(att_graph_create(r->context, ATT_F32, &graph));
    const att_value input = att_graph_input(graph, field.name, field.dtype, field.shape);
    att_graph_output(graph, "flow", att_attention_flow(graph, input, false));
    att_status status = graph->status;
    if (status == ATT_OK)
        status = run_flow(graph, &field, maps, row);
    att_graph_destroy(&graph);
    return status;
}

static size_t most_heads(const att_relevance *r)
{
    int most = 1;
    for (int l = 0; l < r->explorer->layer_count; l++)
        most = r->explorer->layers[l].attrs.heads > most ? r->explorer->layers[l].attrs.heads : most;
    return (size_t)most;
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int last = att_relevance_last_layer(r);
    float *maps;
    double *row;
    ATT_TRY(att_relevance_check_tokens(job, last));
    const size_t tokens = (size_t)r->explorer->layers[last].tokens, layers = (size_t)last + 2;
    if (tokens > MOST_TOKENS)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                        "flow: its time grows with the third power of the tokens, and %zu tokens are more than %d",
                        tokens, MOST_TOKENS);
    ATT_TRY(att_new(r->context, &maps, (layers * tokens + most_heads(r)) * tokens, "the maps of all layers"));
    att_status status = att_new(r->context, &row, tokens, "a row of attention");
    if (status == ATT_OK) {
        status = take_maps(r, last + 1, maps + layers * tokens * tokens, row, maps);
        if (status == ATT_OK)
            status = follow(r, (int64_t)layers, (int64_t)tokens, maps, row);
        if (status == ATT_OK)
            status = att_relevance_take_patches(job, last, row);
        att_free(r->context, row);
    }
    att_free(r->context, maps);
    return status;
}

const att_relevance_method att_relevance_flow = {
    .info = {.name = "flow",
             .title = "Attention flow",
             .summary = "the largest flow through the weights of attention of all layers; the same for every class",
             .source = "Abnar and Zuidema, ACL 2020"},
    .compute = compute};
