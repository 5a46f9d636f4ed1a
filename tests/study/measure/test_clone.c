/* Copies of parts of a graph: what is copied, what is shared with the original, and what ignores the copies. */
#include <attscope/attscope.h>

#include "context.h"
#include "study/measure/clone.h"

SHARED_CONTEXT(threads, 0)

enum { N = 3, C = 4, COUNT = N * C };

/* y = x + relu(norm(x)), then z = y + tanh(y); `other` is another x. */
typedef struct net {
    att_graph *graph;
    att_value x, other, norm, branch, y, z;
} net;

static net make_net(void)
{
    net n;
    const att_shape shape = att_shape_of(N, C);
    const att_init one = {ATT_INIT_CONSTANT, 1}, zero = {ATT_INIT_CONSTANT, 0};
    must(att_graph_create(context, ATT_F64, &n.graph));
    n.x = att_graph_input(n.graph, "x", ATT_F64, shape);
    n.other = att_graph_input(n.graph, "other", ATT_F64, shape);
    att_value gamma = att_graph_parameter(n.graph, "norm.weight", att_shape_of(C), one, false);
    att_value beta = att_graph_parameter(n.graph, "norm.bias", att_shape_of(C), zero, false);
    att_graph_scope(n.graph, "norm");
    n.norm = att_layer_norm(n.graph, n.x, gamma, beta, 1e-5);
    att_graph_scope(n.graph, "relu");
    n.branch = att_relu(n.graph, n.norm);
    att_graph_scope(n.graph, "add1");
    n.y = att_add(n.graph, n.x, n.branch);
    att_graph_scope(n.graph, "add2");
    n.z = att_add(n.graph, n.y, att_tanh(n.graph, n.y));
    att_graph_output(n.graph, "z", n.z);
    return n;
}

static void run(const net *n, const char *name, double *out)
{
    static const double x[COUNT] = {1, 2, -3, 4, 0, .5, 2, -1, 7, 1, 1, 3},
                        other[COUNT] = {-1, 0, 5, 2, 1, 1, -4, .25, 2, -2, 6, 0};
    att_plan *plan = NULL;
    att_weights *weights = NULL;
    att_session *session = NULL;
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    must(att_plan_compile(n->graph, &options, &plan));
    must(att_weights_create(n->graph, "ref", &weights));
    must(att_weights_initialise(weights, 1));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "x", x));
    if (strcmp(name, "z") != 0)
        must(att_session_bind(session, "other", other));
    else
        must(att_session_bind(session, "other", x));
    must(att_session_run(session, 1));
    must(att_session_output(session, name, 0, 1, out));
    for (int i = 0; i < COUNT; i++)
        assert_true(isfinite(out[i]));
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
}

static bool has_scope(const att_graph *graph, att_value value, const char *scope)
{
    return strcmp(att_graph_producer(graph, value)->scope, scope) == 0;
}

TEST(a_copy_computes_from_the_replacement)
{
    net n = make_net();
    att_clone clone;
    double copy[COUNT], swapped[COUNT];
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.x, n.other);
    att_value z = att_clone_value(&clone, n.z);
    att_clone_end(&clone);
    assert_true(z != n.z && has_scope(n.graph, z, "add2"));
    att_graph_probe(n.graph, "copy", z);
    run(&n, "copy", copy);
    att_graph_destroy(&n.graph);

    /* The same network with `other` as its input. */
    n = make_net();
    const att_value x = n.x;
    att_graph *graph = n.graph;
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].in_count; j++)
            if (graph->nodes.items[i].in[j] == x)
                graph->nodes.items[i].in[j] = n.other;
    att_graph_probe(graph, "swapped", att_combine(graph, 1, n.z, 0, n.x));
    run(&n, "swapped", swapped);
    assert_memory_equal(copy, swapped, sizeof copy);
    att_graph_destroy(&n.graph);
}

TEST(what_depends_on_no_replaced_value_is_shared)
{
    net n = make_net();
    att_clone clone;
    const int nodes = n.graph->nodes.count;
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.y, n.other);
    assert_int_equal(att_clone_value(&clone, n.x), n.x);
    assert_int_equal(att_clone_value(&clone, n.branch), n.branch);
    assert_int_equal(att_clone_value(&clone, n.y), n.other);
    assert_int_equal(n.graph->nodes.count, nodes);
    att_value z = att_clone_value(&clone, n.z);
    assert_int_equal(n.graph->nodes.count, nodes + 2); /* tanh and add */
    assert_int_equal(att_clone_value(&clone, n.z), z); /* a value is copied once */
    assert_int_equal(att_clone_value(&clone, z), z);
    assert_int_equal(n.graph->nodes.count, nodes + 2);
    att_clone_end(&clone);
    att_graph_destroy(&n.graph);
}

static att_value without_norms(void *user, att_graph *graph, const att_node *node, const att_value *in)
{
    (void)graph;
    ++*(int *)user;
    return strcmp(node->op->name, "layer_norm") == 0 ? in[0] : ATT_NONE;
}

TEST(a_rule_replaces_nodes)
{
    net n = make_net();
    att_clone clone;
    int calls = 0;
    must(att_clone_begin(n.graph, without_norms, &calls, &clone));
    att_clone_replace(&clone, n.x, n.x);
    att_value branch = att_clone_value(&clone, n.branch);
    assert_int_equal(att_clone_value(&clone, n.norm), n.x);
    att_clone_end(&clone);
    assert_int_equal(calls, 2);
    assert_true(branch != n.branch);
    const att_node *relu = att_graph_producer(n.graph, branch);
    assert_string_equal(relu->op->name, "relu");
    assert_int_equal(relu->in[0], n.x);
    assert_true(relu->copy);
    att_graph_destroy(&n.graph);
}

TEST(a_value_replaced_by_itself_adds_nothing)
{
    net n = make_net();
    att_clone clone;
    const int nodes = n.graph->nodes.count;
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.x, n.x);
    assert_int_equal(att_clone_value(&clone, n.z), n.z);
    assert_int_equal(n.graph->nodes.count, nodes);
    att_clone_end(&clone);
    att_graph_destroy(&n.graph);
}

TEST(copies_are_no_residual_steps)
{
    net n = make_net();
    att_clone clone;
    att_residual_step step = {.node = -1};
    int steps = 0;
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.x, n.other);
    att_value z = att_clone_value(&clone, n.z);
    att_graph_probe(n.graph, "sum", att_add(n.graph, z, n.other)); /* added by the caller: a copy, too */
    att_clone_end(&clone);
    while (att_residual_step_next(n.graph, step.node, &step))
        steps++;
    assert_int_equal(steps, 2);
    att_graph_destroy(&n.graph);
}

TEST(results_keep_their_bits)
{
    double plain[COUNT], probed[COUNT];
    net n = make_net();
    run(&n, "z", plain);
    att_clone clone;
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.x, n.other);
    att_graph_probe(n.graph, "copy", att_clone_value(&clone, n.z));
    att_clone_end(&clone);
    run(&n, "z", probed);
    assert_memory_equal(plain, probed, sizeof plain);
    att_graph_destroy(&n.graph);
}

TEST(a_replacement_of_another_shape_is_refused)
{
    net n = make_net();
    att_clone clone;
    att_value wide = att_graph_input(n.graph, "wide", ATT_F64, att_shape_of(N, C + 1));
    must(att_clone_begin(n.graph, NULL, NULL, &clone));
    att_clone_replace(&clone, n.x, wide);
    assert_int_equal(att_clone_value(&clone, n.z), ATT_NONE);
    att_clone_end(&clone);
    assert_fails(context, att_graph_status(n.graph), ATT_ERR_ARGUMENT, "another shape");
    att_graph_destroy(&n.graph);
}

TEST(batch_norm_is_not_copied)
{
    att_graph *graph = NULL;
    att_clone clone;
    const att_init one = {ATT_INIT_CONSTANT, 1};
    must(att_graph_create(context, ATT_F32, &graph));
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(N, C));
    att_value other = att_graph_input(graph, "other", ATT_F32, att_shape_of(N, C));
    att_value gamma = att_graph_parameter(graph, "weight", att_shape_of(C), one, false);
    att_value beta = att_graph_parameter(graph, "bias", att_shape_of(C), one, false);
    att_value mean = att_graph_buffer(graph, "mean", att_shape_of(C), 0);
    att_value variance = att_graph_buffer(graph, "variance", att_shape_of(C), 1);
    att_graph_scope(graph, "bn1");
    att_value y = att_batch_norm(graph, x, gamma, beta, mean, variance, NULL);
    must(att_clone_begin(graph, NULL, NULL, &clone));
    att_clone_replace(&clone, x, other);
    assert_int_equal(att_clone_value(&clone, y), ATT_NONE);
    att_clone_end(&clone);
    assert_fails(context, att_graph_status(graph), ATT_ERR_UNSUPPORTED, "bn1: the op \"batch_norm\" cannot be copied");
    att_graph_destroy(&graph);
}
