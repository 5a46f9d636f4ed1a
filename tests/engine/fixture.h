/* engine/fixture.h - for tests of plans and sessions: a context of two threads for all tests of a program. */
#ifndef ATT_TESTS_ENGINE_FIXTURE_H
#define ATT_TESTS_ENGINE_FIXTURE_H

#include <attscope/update.h>

#include "context.h"
#include "engine/network.h"

SHARED_CONTEXT(threads, 2)

static inline att_graph *make_graph(void)
{
    att_graph *graph;
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    return graph;
}

/* A plan with initialised weights, its session, and for training its gradient and update. */
typedef struct runner {
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_gradient *gradient; /* of a training plan; NULL for others, as is update */
    att_update *update;
} runner;

/* Takes ownership of the graph. */
static inline runner make_trainer(att_graph *graph, att_plan_options options, const char *optimizer, int batch)
{
    runner it = {.plan = NULL};
    CHECK(context, att_plan_compile(graph, &options, &it.plan));
    assert_int_equal(att_weights_create(graph, "cpu", &it.weights), ATT_OK);
    assert_int_equal(att_weights_initialise(it.weights, 5), ATT_OK);
    assert_int_equal(att_session_create(it.plan, it.weights, batch, &it.session), ATT_OK);
    if (options.purpose == ATT_TRAIN)
        assert_int_equal(att_gradient_create(it.weights, &it.gradient), ATT_OK);
    att_update_options with = {.backend = options.backend, .optimizer = optimizer};
    if (optimizer)
        assert_int_equal(att_update_create(it.gradient, &with, &it.update), ATT_OK);
    att_graph_destroy(&graph);
    return it;
}

static inline runner make_runner(att_graph *graph, att_plan_options options, int batch)
{
    return make_trainer(graph, options, NULL, batch);
}

static inline void free_runner(runner *it)
{
    att_update_destroy(&it->update);
    att_gradient_destroy(&it->gradient);
    att_session_destroy(&it->session);
    att_weights_destroy(&it->weights);
    att_plan_destroy(&it->plan);
}

#endif
