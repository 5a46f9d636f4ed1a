/* Builds a small graph from operations, requests the statistics of its attention node, and runs it.
 *
 * All queries are zero, so every token attends to all four tokens equally: the entropy of each row is ln 4 = 1.386
 * nats, and the output is the mean of the values.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/context.h>
#include <attscope/ops.h>
#include <attscope/plan.h>

enum { TOKENS = 4, WIDTH = 2 };

static att_status build(att_graph *graph)
{
    att_value qkv = att_graph_input(graph, "qkv", ATT_F32, att_shape_of(TOKENS, 3 * WIDTH));
    att_graph_scope(graph, "attn"); /* the name of the nodes added from here on */
    att_value mixed = att_attention(graph, qkv, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 1});
    att_graph_output(graph, "mixed", mixed);
    att_status status = att_graph_status(graph); /* the first failure of the calls above */
    return status == ATT_OK ? att_graph_probe_attention_stats(graph, "attn") : status;
}

static att_status run(att_session *session)
{
    float qkv[TOKENS][3 * WIDTH], mixed[TOKENS][WIDTH], stats[TOKENS][ATT_ATTENTION_STATS];
    for (int i = 0; i < TOKENS; i++) {
        const float row[3 * WIDTH] = {0, 0, (float)i, 1, (float)i, (float)-i}; /* query, key, value */
        memcpy(qkv[i], row, sizeof row);
    }
    att_status status = att_session_bind(session, "qkv", qkv);
    if (status == ATT_OK)
        status = att_session_run(session, 1);
    if (status == ATT_OK)
        status = att_session_output(session, "mixed", 0, 1, mixed);
    if (status == ATT_OK)
        status = att_session_output(session, "attn.stats", 0, 1, stats);
    if (status != ATT_OK)
        return status;
    for (int i = 0; i < TOKENS; i++) {
        printf("token %d: output %.3f %.3f, entropy %.3f nats\n", i, mixed[i][0], mixed[i][1], stats[i][0]);
        if (!(fabs(stats[i][0] - log(TOKENS)) < 1e-5 && fabs(mixed[i][0] - 1.5) < 1e-5))
            return ATT_ERR_INTERNAL;
    }
    return ATT_OK;
}

int main(void)
{
    att_context *context = NULL;
    att_graph *graph = NULL;
    att_weights *weights = NULL; /* empty; a session always needs weights */
    att_plan *plan = NULL;
    att_session *session = NULL;
    att_plan_options options = att_plan_options_defaults();

    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_graph_create(context, ATT_F32, &graph);
    if (status == ATT_OK)
        status = build(graph);
    if (status == ATT_OK)
        status = att_weights_create(graph, "cpu", &weights);
    if (status == ATT_OK)
        status = att_plan_compile(graph, &options, &plan);
    if (status == ATT_OK)
        status = att_session_create(plan, weights, 1, &session);
    if (status == ATT_OK)
        status = run(session);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");

    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
    return status != ATT_OK;
}
