#include "lab/bench/timed.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"
#include "engine/plan/plan.h"
#include "engine/weights/gradient.h"
#include "lab/bench/clock.h"
#include "lab/bench/inputs.h"

/* Rows of a training batch that this process computes. */
static int own_rows(const att_plan_options *options, int batch)
{
    int64_t rank = att_comm_rank(options->comm), processes = att_comm_size(options->comm);
    return (int)(batch * (rank + 1) / processes - batch * rank / processes);
}

static att_status make_inputs(att_timed *timed, const att_graph *graph, const att_timed_options *options)
{
    const int rows = own_rows(&options->plan, options->batch);
    ATT_TRY(att_new(timed->context, &timed->inputs, (size_t)graph->inputs.count, "inputs"));
    att_random random = att_random_from(att_random_key(1, 0, 0));
    while (timed->input_count < graph->inputs.count) {
        const att_named_value *port = &graph->inputs.items[timed->input_count];
        att_desc desc = graph->values.items[port->value].desc;
        size_t count = (size_t)rows * (size_t)att_shape_count(desc.shape), size = att_dtype_size(desc.dtype);
        void *input = att_allocate_array(timed->context, count, size);
        if (!input)
            return att_fail_memory(timed->context, count * size, "the inputs of a benchmark");
        att_bench_fill(&random, graph, timed->input_count, options->task, rows, options->classes, options->vocabulary,
                       input);
        timed->inputs[timed->input_count++] = input;
        ATT_TRY(att_session_bind(timed->session, port->name, input));
    }
    return ATT_OK;
}

static att_status make_update(att_timed *timed, const att_timed_options *options)
{
    const att_update_options update = {
        .backend = options->plan.backend, .optimizer = options->optimizer, .rates = options->rates};
    if (!timed->training)
        return ATT_OK;
    ATT_TRY(att_gradient_create_for(timed->weights, options->plan.frozen, &timed->gradient));
    return options->optimizer ? att_update_create(timed->gradient, &update, &timed->update) : ATT_OK;
}

static att_status compile(att_timed *timed, const att_graph *graph, const att_timed_options *options)
{
    const double begin = att_seconds_now();
    ATT_TRY(att_plan_compile_without(graph, &options->plan, options->without, &timed->plan));
    ATT_TRY(att_session_create(timed->plan, timed->weights, options->batch, &timed->session));
    timed->compile_seconds = att_seconds_now() - begin;
    return ATT_OK;
}

att_status att_timed_create(const att_graph *graph, const att_timed_options *options, att_timed *timed)
{
    *timed = (att_timed){.context = att_graph_context(graph), .training = options->plan.purpose == ATT_TRAIN};
    ATT_TRY(att_weights_create(graph, options->plan.backend, &timed->weights));
    ATT_TRY(compile(timed, graph, options));
    ATT_TRY(make_update(timed, options));
    ATT_TRY(att_weights_initialise(timed->weights, 1)); /* last, so that graphs that are too large fail early */
    return make_inputs(timed, graph, options);
}

void att_timed_destroy(att_timed *timed)
{
    att_update_destroy(&timed->update);
    att_gradient_destroy(&timed->gradient);
    att_session_destroy(&timed->session);
    att_plan_destroy(&timed->plan);
    att_weights_destroy(&timed->weights);
    for (int i = 0; i < timed->input_count; i++)
        att_free(timed->context, timed->inputs[i]);
    att_free(timed->context, timed->inputs);
}

att_status att_timed_run(att_timed *timed, int batch)
{
    if (!timed->training)
        return att_session_run(timed->session, batch);
    att_hyper hyper = {
        .lr = 1e-4, .weight_decay = 0.05, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .update = ++timed->step};
    att_gradient_begin(timed->gradient);
    ATT_TRY(att_session_accumulate(timed->session, timed->gradient, batch, 1.0 / batch, 1, timed->step, 0));
    if (!timed->update)
        return ATT_OK;
    ATT_TRY(att_update_reduce(timed->update, NULL));
    return att_update_apply(timed->update, &hyper);
}
