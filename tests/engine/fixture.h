/* engine/fixture.h - for tests of plans and sessions: a context of two threads for all tests of a program. */
#ifndef ATT_TESTS_ENGINE_FIXTURE_H
#define ATT_TESTS_ENGINE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attscope/update.h>

#include "engine/network.h"

static att_context *context;

static inline int make_context(void **state)
{
    (void)state;
    att_settings settings = att_settings_defaults();
    settings.threads = 2;
    return att_context_create(&settings, &context) == ATT_OK ? 0 : -1;
}

static inline int free_context(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

static inline void assert_message(const char *part)
{
    if (!strstr(att_context_message(context), part))
        fail_msg("\"%s\" does not contain \"%s\"", att_context_message(context), part);
}

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
    if (att_plan_compile(graph, &options, &it.plan) != ATT_OK)
        fail_msg("%s", att_context_message(context));
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
