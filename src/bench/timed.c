#include "bench/timed.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/random.h"
#include "graph/graph.h"

static void fill(att_random *random, att_dtype dtype, int classes, void *input, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == ATT_I32)
            ((int32_t *)input)[i] = (int32_t)att_random_below(random, classes);
        else
            ((float *)input)[i] = (float)(2 * att_random_uniform(random) - 1);
}

static att_status make_inputs(att_timed *timed, const att_graph *graph, int batch, int classes)
{
    timed->inputs = att_allocate_array(timed->context, (size_t)graph->inputs.count, sizeof *timed->inputs);
    if (!timed->inputs)
        return att_fail_memory(timed->context, (size_t)graph->inputs.count * sizeof *timed->inputs, "inputs");
    att_random random = att_random_from(att_random_key(1, 0, 0));
    while (timed->input_count < graph->inputs.count) {
        const att_named_value *port = &graph->inputs.items[timed->input_count];
        att_desc desc = graph->values.items[port->value].desc;
        size_t count = (size_t)batch * (size_t)att_shape_count(desc.shape), size = att_dtype_size(desc.dtype);
        void *input = att_allocate_array(timed->context, count, size);
        if (!input)
            return att_fail_memory(timed->context, count * size, "the inputs of a benchmark");
        timed->inputs[timed->input_count++] = input;
        fill(&random, desc.dtype, classes, input, count);
        ATT_TRY(att_session_bind(timed->session, port->name, input));
    }
    return ATT_OK;
}

att_status att_timed_create(const att_graph *graph, const att_plan_options *options, int batch, int classes,
                            att_timed *timed)
{
    *timed = (att_timed){.context = att_graph_context(graph),
                         .training = options->purpose == ATT_TRAIN,
                         .updates = options->optimizer != NULL};
    ATT_TRY(att_weights_create(graph, &timed->weights));
    ATT_TRY(att_plan_compile(graph, options, &timed->plan));
    ATT_TRY(att_session_create(timed->plan, timed->weights, batch, &timed->session));
    ATT_TRY(att_weights_initialise(timed->weights, 1)); /* last: what is too large is refused at once */
    return make_inputs(timed, graph, batch, classes);
}

void att_timed_destroy(att_timed *timed)
{
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
    ATT_TRY(att_session_accumulate(timed->session, batch, 1.0 / batch, 1, timed->step, 0));
    ATT_TRY(att_session_reduce(timed->session, NULL));
    return timed->updates ? att_session_update(timed->session, &hyper) : ATT_OK;
}
