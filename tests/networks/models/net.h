/* models/net.h - a network in f64, and its answer to one image on reference kernels. */
#ifndef TESTS_MODELS_NET_H
#define TESTS_MODELS_NET_H

#include <attscope/plan.h>

#include "networks/models/fixture.h"

typedef struct net {
    att_context *context;
    att_model *model;
    att_weights *weights;
} net;

static inline net net_create(att_context *of, const char *name, const att_option_values *options)
{
    net n = {.context = of};
    CHECK(of, att_model_create(of, name, options, ATT_F64, &n.model));
    CHECK(of, att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    return n;
}

static inline void net_destroy(net *n)
{
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static inline void net_run(const net *n, const double *image, double *logits)
{
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    options.backend = "ref";
    CHECK(n->context, att_plan_compile(att_model_graph(n->model), &options, &plan));
    CHECK(n->context, att_session_create(plan, n->weights, 1, &session));
    CHECK(n->context, att_session_bind(session, "image", image));
    CHECK(n->context, att_session_run(session, 1));
    CHECK(n->context, att_session_output(session, "logits", 0, 1, logits));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

#endif
