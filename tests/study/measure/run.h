/* measure/run.h - for tests of instruments: a graph that measures itself on one sample. */
#ifndef TESTS_MEASURE_RUN_H
#define TESTS_MEASURE_RUN_H

#include <attscope/attscope.h>

#include "context.h"
#include "networks/models/fixture.h"

static inline att_measurement figure(att_measure *measure, const char *instrument, const char *node,
                                     const char *statistic, int head)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (!strcmp(m.instrument, instrument) && !strcmp(m.node, node) && !strcmp(m.statistic, statistic) &&
            m.head == head)
            return m;
    }
    fail_msg("no figure %s %s %s %d", instrument, node, statistic, head);
    return (att_measurement){0};
}

typedef struct run {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
} run;

static inline run begin_in(att_dtype dtype)
{
    run r = {0};
    must(att_graph_create(context, dtype, &r.graph));
    att_graph_scope(r.graph, "attn");
    return r;
}

static inline run begin(void)
{
    return begin_in(ATT_F32);
}

static inline void compile_for(run *r, const char *backend, const char *with)
{
    must(att_measure_create(r->graph, with, "*", &r->measure));
    att_plan_options options = att_plan_options_defaults();
    options.backend = backend;
    must(att_plan_compile(r->graph, &options, &r->plan));
    must(att_weights_create(r->graph, backend, &r->weights));
    must(att_session_create(r->plan, r->weights, 1, &r->session));
}

static inline void compile(run *r, const char *with)
{
    compile_for(r, "cpu", with);
}

static inline void observe(run *r)
{
    must(att_session_run(r->session, 1));
    must(att_measure_observe(r->measure, r->session, 1, NULL));
}

static inline void end(run *r)
{
    att_session_destroy(&r->session);
    att_weights_destroy(&r->weights);
    att_plan_destroy(&r->plan);
    att_measure_destroy(&r->measure);
    att_graph_destroy(&r->graph);
}

static inline void expect(run *r, const char *instrument, const char *statistic, int head, double expected,
                          double tolerance)
{
    att_measurement m = figure(r->measure, instrument, "attn", statistic, head);
    if (!(fabs(m.mean - expected) <= tolerance))
        fail_msg("%s %s of head %d is %.9g, should be %.9g", instrument, statistic, head, m.mean, expected);
}

#endif
