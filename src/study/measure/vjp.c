#include "study/measure/vjp.h"

#include <string.h>

#include <attscope/ops.h>

#include "base/core/memory.h"

#define X "vjp.x"
#define SEED "vjp.seed"

/* Follows the inputs of `to` back to `from`. reached: one mark per value, zero. */
static bool depends_alone(const att_graph *graph, const att_vjp_part *part, bool *reached)
{
    reached[part->to] = true;
    for (int i = graph->values.items[part->to].node; i >= 0; i--) {
        const att_node *node = &graph->nodes.items[i];
        bool needed = false;
        for (int j = 0; j < node->out_count; j++)
            needed |= reached[node->out[j]] && node->out[j] != part->from;
        for (int j = 0; needed && j < node->in_count; j++) {
            att_value in = node->in[j];
            if (in == ATT_NONE)
                continue;
            const att_value_info *info = &graph->values.items[in];
            if (in != part->from && info->node < 0 && info->desc.kind == ATT_SAMPLE)
                return false;
            reached[in] = true;
        }
    }
    return reached[part->from];
}

bool att_vjp_applies(const att_graph *graph, const att_vjp_part *part)
{
    const att_desc from = att_graph_desc(graph, part->from), to = att_graph_desc(graph, part->to);
    if (graph->values.items[part->from].node < 0 || part->from == part->to || !att_shape_equal(from.shape, to.shape) ||
        from.dtype != to.dtype)
        return false;
    bool *reached = att_allocate_array(graph->context, (size_t)graph->values.count, sizeof *reached);
    bool applies = reached && depends_alone(graph, part, reached);
    att_free(graph->context, reached);
    return applies;
}

/* Makes all nodes read `by` in place of `value`. */
static void substitute(att_graph *graph, att_value value, att_value by)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        for (int j = 0; j < node->in_count; j++)
            if (node->in[j] == value)
                node->in[j] = by;
    }
}

/* Turns the graph into one with the inputs X and SEED and the output loss = <seed, f(x)>. */
static void build(att_graph *graph, const att_vjp_part *part)
{
    const att_desc desc = att_graph_desc(graph, part->from);
    const att_shape row = att_shape_of(1, att_shape_count(desc.shape));
    graph->outputs.count = 0;
    att_value x = att_graph_input(graph, X, desc.dtype, desc.shape);
    att_value seed = att_graph_input(graph, SEED, desc.dtype, desc.shape), f = part->to;
    if (graph->status == ATT_OK)
        substitute(graph, part->from, x);
    if (part->difference)
        f = att_combine(graph, 1, f, -1, x);
    att_value loss = att_matmul(graph, att_reshape(graph, seed, row), att_reshape(graph, f, row), true, 1);
    att_graph_output(graph, "loss", att_reshape(graph, loss, (att_shape){0}));
}

static att_status compile(const att_study_job *job, att_graph *graph, att_plan **plan)
{
    static const char *const outputs[] = {"loss", NULL}, *const gradients[] = {X, NULL};
    size_t parameters = (size_t)graph->parameters.count;
    bool *frozen = att_allocate_array(job->context, parameters + 1, sizeof *frozen);
    if (!frozen)
        return att_fail_memory(job->context, parameters, "the parameters of a part");
    memset(frozen, true, parameters);
    att_plan_options options = att_study_plan_options(job);
    options.purpose = ATT_GRADIENT;
    options.outputs = outputs;
    options.gradients = gradients;
    options.frozen = frozen;
    att_status status = att_plan_compile(graph, &options, plan);
    att_free(job->context, frozen);
    return status;
}

att_status att_vjp_compile(const att_study_job *job, const att_graph *graph, const att_vjp_part *part, att_plan **plan)
{
    att_graph *copy = att_graph_copy(graph);
    if (!copy)
        return att_fail_memory(job->context, sizeof *copy, "a part of a network");
    build(copy, part);
    att_status status = compile(job, copy, plan);
    att_graph_destroy(&copy);
    return status;
}

static att_status open_session(const att_study_job *job, const att_plan *plan, att_vjp *vjp)
{
    size_t bytes = att_size_product((size_t)vjp->size, vjp->wide ? sizeof(double) : sizeof(float));
    ATT_TRY(att_session_create(plan, job->session->weights, 1, &vjp->session));
    vjp->seed = att_allocate(vjp->context, bytes);
    vjp->product = att_allocate(vjp->context, bytes);
    if (!vjp->seed || !vjp->product)
        return att_fail_memory(vjp->context, 2 * bytes, "the products of a Jacobian");
    return att_session_bind(vjp->session, SEED, vjp->seed);
}

att_status att_vjp_open(const att_study_job *job, const att_vjp_part *part, const att_plan *plan, att_vjp *vjp)
{
    *vjp = (att_vjp){.context = job->context,
                     .job = job,
                     .size = att_shape_count(att_value_shape(job->graph, part->from)),
                     .wide = job->graph->dtype == ATT_F64};
    att_status status = open_session(job, plan, vjp);
    if (status != ATT_OK)
        att_vjp_close(vjp);
    return status;
}

void att_vjp_close(att_vjp *vjp)
{
    if (!vjp->context)
        return;
    att_session_destroy(&vjp->session);
    att_free(vjp->context, vjp->seed);
    att_free(vjp->context, vjp->product);
    *vjp = (att_vjp){0};
}

att_status att_vjp_set(att_vjp *vjp, const void *x)
{
    return att_session_bind(vjp->session, X, x);
}

att_status att_vjp_apply(void *user, const double *v, double *y)
{
    att_vjp *vjp = user;
    double *wide = vjp->product;
    float *narrow = vjp->product, *seed = vjp->seed;
    if (vjp->wide)
        memcpy(vjp->seed, v, (size_t)vjp->size * sizeof *v);
    for (int64_t i = 0; !vjp->wide && i < vjp->size; i++)
        seed[i] = (float)v[i];
    ATT_TRY(att_study_tell(vjp->job, vjp->done, vjp->all));
    ATT_TRY(att_session_accumulate(vjp->session, NULL, 1, 1, 0, 0, 0));
    ATT_TRY(att_session_output(vjp->session, X ".grad", 0, 1, vjp->product));
    for (int64_t i = 0; i < vjp->size; i++)
        y[i] = vjp->wide ? wide[i] : narrow[i];
    return ATT_OK;
}
