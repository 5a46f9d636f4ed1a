/* What ops absorb, what they cost, and requests for attention statistics. */
#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/attention.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/finite_difference.h"
#include "engine/ops/gate.h"
#include "engine/ops/linear.h"
#include "engine/passes/passes.h"

TEST_GROUP(fd_setup, close_context)

/* A graph with x, z [5, 4], and linear(x) in node 0. */
typedef struct fixture {
    att_graph *graph;
    att_value x, z, y;
} fixture;

static fixture new_fixture(void)
{
    fixture f;
    must(att_graph_create(context, ATT_F32, &f.graph));
    f.x = att_graph_input(f.graph, "x", ATT_F32, att_shape_of(5, 4));
    f.z = att_graph_input(f.graph, "z", ATT_F32, att_shape_of(5, 4));
    att_value weight = att_graph_parameter(f.graph, "w", att_shape_of(4, 4), (att_init){ATT_INIT_CONSTANT, 0}, true);
    f.y = att_linear(f.graph, f.x, weight, ATT_NONE);
    return f;
}

/* Whether node 0 absorbs the last node. */
static bool absorbs(fixture *f)
{
    must(att_graph_status(f->graph));
    att_node *nodes = f->graph->nodes.items;
    return nodes[0].op->absorb(&nodes[0], &nodes[f->graph->nodes.count - 1]);
}

TEST(linear_absorbs_one_gelu_and_one_residual)
{
    fixture f = new_fixture();
    const att_node *linear = &f.graph->nodes.items[0];
    att_gelu(f.graph, f.y);
    assert_true(absorbs(&f));
    assert_int_equal(ATT_ATTRS(linear, linear)->activation, ATT_ACT_GELU);
    assert_false(absorbs(&f)); /* not a second activation */
    att_add(f.graph, f.z, f.y);
    linear = &f.graph->nodes.items[0];
    assert_true(absorbs(&f));
    assert_int_equal(linear->in[3], f.z);
    assert_int_equal(ATT_ATTRS(linear, linear)->activation, ATT_ACT_GELU);
    assert_false(absorbs(&f));
    att_gelu(f.graph, f.y);
    ((att_linear_attrs *)f.graph->nodes.items[0].attrs)->activation = ATT_ACT_NONE;
    assert_false(absorbs(&f)); /* an activation after the residual */
    att_graph_destroy(&f.graph);
}

TEST(sums_that_are_not_a_residual_are_not_absorbed)
{
    fixture f = new_fixture();
    att_add(f.graph, f.y, f.y);
    assert_false(absorbs(&f));
    att_value bias = att_graph_parameter(f.graph, "b", att_shape_of(4), (att_init){ATT_INIT_CONSTANT, 0}, false);
    att_add(f.graph, f.y, bias);
    assert_false(absorbs(&f));
    att_add(f.graph, f.x, f.z);
    assert_false(absorbs(&f));
    att_scale(f.graph, f.y, bias);
    assert_false(absorbs(&f));
    att_graph_destroy(&f.graph);
}

TEST(context_broadcast_absorbs_a_residual)
{
    fixture f = new_fixture();
    att_value y = att_context_broadcast(f.graph, f.x, 0.5, 0.5, ATT_NONE);
    att_add(f.graph, y, f.z);
    must(att_graph_status(f.graph));
    att_node *nodes = f.graph->nodes.items;
    assert_true(nodes[1].op->absorb(&nodes[1], &nodes[2]));
    assert_int_equal(nodes[1].in[2], f.z);
    assert_false(nodes[1].op->absorb(&nodes[1], &nodes[2]));
    att_graph_destroy(&f.graph);
}

TEST(layer_norm_grad_absorbs_an_addend)
{
    fixture f = new_fixture();
    att_value gamma = att_graph_parameter(f.graph, "g", att_shape_of(4), (att_init){ATT_INIT_CONSTANT, 1}, false);
    att_value stats = att_graph_input(f.graph, "stats", ATT_F32, att_shape_of(5, 2));
    att_value in[] = {f.y, f.x, gamma, stats, ATT_NONE};
    att_value dx = att_emit(f.graph, "layer_norm_grad", NULL, in, 5, NULL);
    att_add(f.graph, f.z, dx);
    must(att_graph_status(f.graph));
    att_node *nodes = f.graph->nodes.items;
    assert_true(nodes[1].op->absorb(&nodes[1], &nodes[2]));
    assert_int_equal(nodes[1].in[4], f.z);
    assert_false(nodes[1].op->absorb(&nodes[1], &nodes[2]));
    att_graph_destroy(&f.graph);
}

static att_value parameter(att_graph *graph, const char *name, double start)
{
    return att_graph_parameter(graph, name, att_shape_of(4), (att_init){ATT_INIT_CONSTANT, start}, false);
}

static att_value frozen_norm(att_graph *graph, att_value x)
{
    return att_batch_norm(graph, x, parameter(graph, "gamma", 1), parameter(graph, "beta", 0),
                          att_graph_buffer(graph, "mean", att_shape_of(4), 0),
                          att_graph_buffer(graph, "variance", att_shape_of(4), 1),
                          &(att_batch_norm_options){.frozen = true});
}

static bool node_absorbs(const att_graph *graph, int producer, int consumer)
{
    must(att_graph_status(graph));
    return graph->nodes.items[producer].op->absorb(&graph->nodes.items[producer], &graph->nodes.items[consumer]);
}

TEST(sums_and_norms_absorb_one_relu)
{
    fixture f = new_fixture();
    att_relu(f.graph, frozen_norm(f.graph, f.x));  /* nodes 1, 2 */
    att_relu(f.graph, att_add(f.graph, f.x, f.z)); /* 3, 4 */
    att_gelu(f.graph, f.z);                        /* 5 */
    for (int producer = 1; producer <= 3; producer += 2) {
        assert_false(node_absorbs(f.graph, producer, 5));
        assert_true(node_absorbs(f.graph, producer, producer + 1));
        assert_false(node_absorbs(f.graph, producer, producer + 1));
    }
    assert_int_equal(ATT_ATTRS(&f.graph->nodes.items[1], batch_norm)->activation, ATT_ACT_RELU);
    assert_int_equal(ATT_ATTRS(&f.graph->nodes.items[3], add)->activation, ATT_ACT_RELU);
    att_graph_destroy(&f.graph);
}

TEST(a_sum_with_its_relu_is_no_residual)
{
    fixture f = new_fixture();
    att_add(f.graph, f.y, f.z);
    ((att_add_attrs *)f.graph->nodes.items[1].attrs)->activation = ATT_ACT_RELU;
    assert_false(absorbs(&f));
    att_graph_destroy(&f.graph);
}

/* A residual comes before the ReLU. */
TEST(gates_absorb_a_residual_and_a_relu)
{
    fixture f = new_fixture();
    att_value channels = att_graph_input(f.graph, "channels", ATT_F32, att_shape_of(4));
    att_value pixels = att_graph_input(f.graph, "pixels", ATT_F32, att_shape_of(5, 1));
    att_value y = att_gate(f.graph, f.x, channels); /* node 1 */
    att_relu(f.graph, att_add(f.graph, f.z, y));    /* 2, 3 */
    y = att_pixel_gate(f.graph, f.x, pixels);       /* 4 */
    att_relu(f.graph, att_add(f.graph, f.z, y));    /* 5, 6 */
    for (int gate = 1; gate <= 4; gate += 3) {
        assert_true(node_absorbs(f.graph, gate, gate + 1));
        assert_int_equal(f.graph->nodes.items[gate].in[2], f.z);
        assert_false(node_absorbs(f.graph, gate, gate + 1));
        assert_true(node_absorbs(f.graph, gate, gate + 2));
        assert_false(node_absorbs(f.graph, gate, gate + 2));
        f.graph->nodes.items[gate].in[2] = ATT_NONE;
        assert_false(node_absorbs(f.graph, gate, gate + 1));
    }
    att_graph_destroy(&f.graph);
}

/* Returns a matrix of the batch for rows of 4. */
static att_value matrix_for(att_graph *graph, att_value x)
{
    att_moments_attrs rows = {.rows = 5};
    att_value gram = att_emit(graph, "channel_gram", NULL, &x, 1, NULL);
    return att_emit(graph, "merge_gram", &rows, &gram, 1, NULL);
}

/* Gate, sum and ReLU, in this order. */
TEST(affine_maps_absorb_a_gate_a_sum_and_a_relu)
{
    fixture f = new_fixture();
    att_value gate = att_graph_input(f.graph, "gate", ATT_F32, att_shape_of(4));
    att_value in[] = {f.x, matrix_for(f.graph, f.x), ATT_NONE, ATT_NONE};
    att_value y = att_emit(f.graph, "affine", NULL, in, 4, NULL); /* node 3 */
    att_gate(f.graph, y, gate);                                   /* 4 */
    att_add(f.graph, f.z, y);                                     /* 5 */
    att_relu(f.graph, y);                                         /* 6 */
    const att_node *made = &f.graph->nodes.items[3];
    assert_true(node_absorbs(f.graph, 3, 4));
    assert_true(made->in[2] == gate && made->in[3] == ATT_NONE);
    assert_false(node_absorbs(f.graph, 3, 4));
    assert_true(node_absorbs(f.graph, 3, 5));
    assert_true(made->in[3] == f.z);
    assert_false(node_absorbs(f.graph, 3, 5));
    assert_true(node_absorbs(f.graph, 3, 6));
    assert_int_equal(ATT_ATTRS(made, gate)->activation, ATT_ACT_RELU);
    assert_false(node_absorbs(f.graph, 3, 6));
    in[2] = ATT_NONE;
    att_emit(f.graph, "affine", NULL, in, 4, NULL); /* 7 */
    f.graph->nodes.items[7].in[3] = f.z;
    f.graph->nodes.items[7].out[0] = y;
    assert_false(node_absorbs(f.graph, 7, 4)); /* a gate after the sum */
    att_graph_destroy(&f.graph);
}

/* The gradient of a gate may be needed before the other summand exists. */
TEST(sums_of_affine_maps_without_a_gate_absorb_a_sum)
{
    fixture f = new_fixture();
    att_value gate = att_graph_input(f.graph, "gate", ATT_F32, att_shape_of(4));
    att_value other = att_graph_input(f.graph, "other", ATT_F32, att_shape_of(5, 4));
    att_value in[] = {f.z, f.x, matrix_for(f.graph, f.x), gate, ATT_NONE};
    for (int gated = 1; gated >= 0; gated--) {
        att_add(f.graph, other, att_emit(f.graph, "affine_sums", NULL, in, 5, NULL)); /* nodes 3, 4 and 5, 6 */
        assert_int_equal(node_absorbs(f.graph, gated ? 3 : 5, gated ? 4 : 6), !gated);
        in[3] = ATT_NONE;
    }
    assert_true(f.graph->nodes.items[5].in[4] == other);
    att_graph_destroy(&f.graph);
}

static att_value emit(att_graph *graph, const char *op, att_value a, att_value b)
{
    att_value in[] = {a, b};
    return att_emit(graph, op, NULL, in, 2, NULL);
}

/* A sum comes before the ReLU's gradient, which depends on the output of the forward pass. */
TEST(gradients_of_maps_absorb_a_sum_and_a_relu)
{
    fixture f = new_fixture();
    att_value map = att_graph_input(f.graph, "map", ATT_F32, att_shape_of(3, 5, 4));
    att_value other = att_graph_input(f.graph, "other", ATT_F32, att_shape_of(3, 5, 4));
    att_value weight =
        att_graph_parameter(f.graph, "k", att_shape_of(4, 4, 1, 1), (att_init){ATT_INIT_CONSTANT, 0}, true);
    att_conv_attrs attrs = {.stride = 1, .dilation = 1, .groups = 1, .height = 3, .width = 5};
    att_value in[] = {map, weight, ATT_NONE, ATT_NONE, ATT_NONE};
    att_value dx = att_emit(f.graph, "conv2d_data_grad", &attrs, in, 5, NULL); /* node 1 */
    att_add(f.graph, other, dx);                                               /* 2 */
    emit(f.graph, "relu_grad", dx, map);                                       /* 3 */
    emit(f.graph, "relu_grad", map, dx);                                       /* 4 */
    const att_node *made = &f.graph->nodes.items[1];
    assert_false(node_absorbs(f.graph, 1, 4)); /* dx is the map that decides where to pass */
    assert_true(node_absorbs(f.graph, 1, 2));
    assert_int_equal(made->in[2], other);
    assert_false(node_absorbs(f.graph, 1, 2));
    assert_true(node_absorbs(f.graph, 1, 3));
    assert_int_equal(made->in[3], map);
    assert_false(node_absorbs(f.graph, 1, 3));
    f.graph->nodes.items[1].in[2] = ATT_NONE;
    assert_false(node_absorbs(f.graph, 1, 2));
    att_graph_destroy(&f.graph);
}

static int count_of(const att_graph *graph, const char *op)
{
    int count = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        count += !strcmp(graph->nodes.items[i].op->name, op);
    return count;
}

static att_dtype type_of(const att_graph *graph, att_value value)
{
    return graph->values.items[value].desc.dtype;
}

/* x is f32; results of linear layers are bf16 if all readers accept it. */
TEST(a_sum_is_as_wide_as_its_widest_term)
{
    fixture f = new_fixture();
    att_value weight = att_graph_parameter(f.graph, "v", att_shape_of(4, 4), (att_init){ATT_INIT_CONSTANT, 0}, true);
    att_value a = att_linear(f.graph, f.z, weight, ATT_NONE);
    att_value narrow = att_add(f.graph, a, f.y), wide = att_add(f.graph, f.x, f.y);
    att_value both = att_add(f.graph, narrow, wide);
    att_graph_output(f.graph, "y", att_linear(f.graph, narrow, weight, ATT_NONE));
    att_graph_output(f.graph, "from_wide", att_linear(f.graph, wide, weight, ATT_NONE));
    att_graph_output(f.graph, "from_both", att_linear(f.graph, both, weight, ATT_NONE));
    static const bool no_observers[64];
    must(att_graph_autocast(f.graph, no_observers));
    assert_int_equal(type_of(f.graph, a), ATT_BF16);
    assert_int_equal(type_of(f.graph, f.y), ATT_BF16);
    assert_int_equal(type_of(f.graph, narrow), ATT_BF16);
    assert_int_equal(type_of(f.graph, wide), ATT_F32);
    assert_int_equal(type_of(f.graph, both), ATT_F32);
    att_graph_destroy(&f.graph);
}

/* Equal nodes of one segment are merged, and then the nodes that read them. */
TEST(copies_in_a_segment_become_one)
{
    fixture f = new_fixture();
    att_value a = att_gelu(f.graph, f.y), b = att_gelu(f.graph, f.y);             /* nodes 1, 2 */
    att_value sum = att_add(f.graph, att_gelu(f.graph, a), att_gelu(f.graph, b)); /* 3, 4, 5 */
    att_value other = att_gelu(f.graph, f.z);                                     /* 6 */
    att_graph_output(f.graph, "sum", sum);
    att_graph_output(f.graph, "other", other);
    att_graph_output(f.graph, "copy", att_gelu(f.graph, f.z)); /* 7: an output keeps a value of its own */
    must(att_graph_status(f.graph));
    f.graph->nodes.items[4].segment = 1;
    must(att_graph_merge_copies(f.graph, NULL));
    assert_int_equal(count_of(f.graph, "gelu"), 5); /* without node 2 */
    assert_int_equal(f.graph->nodes.items[3].in[0], a);
    f.graph->nodes.items[3].segment = 0;
    must(att_graph_merge_copies(f.graph, NULL));
    assert_int_equal(count_of(f.graph, "gelu"), 4);
    assert_int_equal(f.graph->nodes.items[3].in[0], f.graph->nodes.items[3].in[1]);
    att_graph_destroy(&f.graph);
}

/* The gradient of a ReLU after batch norm has no step of its own. */
TEST(a_norm_in_training_absorbs_its_relu_first)
{
    fixture f = new_fixture();
    att_value y = att_batch_norm(f.graph, f.y, parameter(f.graph, "gamma", 1), parameter(f.graph, "beta", 0),
                                 att_graph_buffer(f.graph, "mean", att_shape_of(4), 0),
                                 att_graph_buffer(f.graph, "variance", att_shape_of(4), 1), NULL);
    att_value target = att_graph_input(f.graph, "target", ATT_I32, (att_shape){.rank = 0});
    y = att_cross_entropy(f.graph, att_global_mean(f.graph, att_relu(f.graph, y)), target, 0);
    att_graph_output(f.graph, "loss", y);
    int *owner = NULL;
    must(att_graph_decompose(f.graph));
    must(att_graph_fuse(f.graph, NULL, ATT_OP_ABSORBS_FIRST));
    must(att_graph_differentiate(f.graph, f.graph->outputs.items[0].value, &(att_gradient_request){.frozen = NULL},
                                 &owner));
    assert_int_equal(count_of(f.graph, "relu"), 0);
    assert_int_equal(count_of(f.graph, "relu_grad"), 0);
    for (int i = 0; i < f.graph->nodes.count; i++)
        if (!strncmp(f.graph->nodes.items[i].op->name, "normalize", 9))
            assert_int_equal(ATT_ATTRS(&f.graph->nodes.items[i], batch_norm)->activation, ATT_ACT_RELU);
    assert_int_equal(count_of(f.graph, "normalize_grad"), 1);
    att_free(context, owner);
    att_graph_destroy(&f.graph);
}

/* Returns the number of ReLU steps in a training step, after a norm or after a sum. */
static int relus(bool norm)
{
    fixture f = new_fixture();
    att_value y = norm ? frozen_norm(f.graph, f.y) : att_add(f.graph, f.y, f.z);
    att_value target = att_graph_input(f.graph, "target", ATT_I32, (att_shape){.rank = 0});
    y = att_cross_entropy(f.graph, att_global_mean(f.graph, att_relu(f.graph, y)), target, 0);
    int *owner = NULL;
    must(att_graph_differentiate(f.graph, y, &(att_gradient_request){.frozen = NULL}, &owner));
    int count = count_of(f.graph, "relu");
    att_free(context, owner);
    att_graph_destroy(&f.graph);
    return count;
}

TEST(a_relu_is_computed_again_where_its_input_is)
{
    assert_int_equal(relus(true), 2);
    assert_int_equal(relus(false), 1);
}

/* 5 x 4 x 4 multiply-adds. */
TEST(products_cost_their_multiply_adds)
{
    fixture f = new_fixture();
    att_cost cost = att_graph_cost(f.graph);
    assert_true(cost.macs == 80 && cost.flops == 160);
    att_attention(f.graph, att_graph_input(f.graph, "qkv", ATT_F32, att_shape_of(7, 36)), ATT_NONE, ATT_NONE,
                  &(att_attention_options){.heads = 3});
    cost = att_graph_cost(f.graph);
    assert_true(cost.macs == 80 + 2 * 7 * 7 * 12);
    att_graph_destroy(&f.graph);
}

/* Attention whose queries [5, 4 x 3], keys [7, 2 x 3] and values [7, 10] are results of linear layers. */
typedef struct crossing {
    att_graph *graph;
    att_value q, k, v, o;
} crossing;
static const att_attention_attrs crossed = {.heads = 4, .key_heads = 2, .value_heads = 1, .scale = 1};

static att_value projected(att_graph *graph, const char *name, int64_t tokens, int64_t width)
{
    att_value weight = att_graph_parameter(graph, name, att_shape_of(width, 4), (att_init){ATT_INIT_CONSTANT, 0}, true);
    return att_linear(graph, att_graph_input(graph, name, ATT_F32, att_shape_of(tokens, 4)), weight, ATT_NONE);
}

static crossing new_crossing(void)
{
    crossing c;
    must(att_graph_create(context, ATT_F32, &c.graph));
    c.q = projected(c.graph, "q", 5, 12), c.k = projected(c.graph, "k", 7, 6), c.v = projected(c.graph, "v", 7, 10);
    c.o = att_emit(c.graph, "attention", &crossed, (att_value[]){c.q, c.k, c.v}, 3, NULL);
    return c;
}

TEST(attention_costs_its_keys_and_its_values)
{
    enum { PAIRS = 5 * 7 * 4 };
    crossing c = new_crossing();
    double before = att_graph_cost(c.graph).macs;
    assert_true(before == 4 * (5 * 12 + 7 * 6 + 7 * 10) + PAIRS * (3 + 10));
    att_value lse = att_graph_input(c.graph, "lse", ATT_F32, att_shape_of(4, 5));
    att_emit(c.graph, "attention_grad", &crossed, (att_value[]){c.o, c.o, lse, c.q, c.k, c.v}, 6, (att_value[4]){0});
    must(att_graph_status(c.graph));
    assert_true(att_graph_cost(c.graph).macs == before + PAIRS * (3 * 3 + 2 * 10));
    att_graph_destroy(&c.graph);
}

TEST(attention_and_its_gradient_are_in_bf16)
{
    static const bool no_observers[64];
    crossing c = new_crossing();
    att_value lse = att_graph_input(c.graph, "lse", ATT_F32, att_shape_of(4, 5)), all[8] = {c.q, c.k, c.v, c.o};
    att_emit(c.graph, "attention_grad", &crossed, (att_value[]){c.o, c.o, lse, c.q, c.k, c.v}, 6, all + 4);
    for (int i = 3; i < 7; i++) {
        char name[4] = {'w', (char)('0' + i)};
        att_shape shape = att_shape_of(1, att_value_shape(c.graph, all[i]).dims[1]);
        att_value weight = att_graph_parameter(c.graph, name, shape, (att_init){ATT_INIT_CONSTANT, 0}, true);
        att_graph_output(c.graph, name, att_linear(c.graph, all[i], weight, ATT_NONE));
    }
    must(att_graph_autocast(c.graph, no_observers));
    for (int i = 0; i < 7; i++)
        assert_int_equal(type_of(c.graph, all[i]), ATT_BF16);
    att_graph_destroy(&c.graph);
}

TEST(every_case_has_a_cost)
{
    for (const att_op *const *op = att_ops; *op; op++) {
        for (int i = 0; i < (*op)->case_count; i++) {
            const att_op_case *definition = &(*op)->cases[i];
            att_desc in[ATT_CASE_INPUTS], out[ATT_CASE_OUTPUTS];
            for (int j = 0; j < definition->in_count; j++)
                in[j] = definition->in[j].desc;
            att_infer infer = {
                context, *op,  att_op_case_attrs(*op, definition), in, definition->in_count, out, ATT_CASE_OUTPUTS,
                0,       false};
            assert_int_equal((*op)->infer(&infer), ATT_OK);
            att_cost cost = {.flops = -1};
            att_op_cost(*op, in, out, att_op_case_attrs(*op, definition), &cost);
            assert_true(cost.flops >= 2 * cost.macs && cost.macs >= 0);
        }
    }
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void add_attention(att_graph *graph, const char *scope, att_value qkv)
{
    att_graph_scope(graph, scope);
    att_attention(graph, qkv, ATT_NONE, ATT_NONE,
                  &(att_attention_options){.heads = 2, .prefix = 1, .grid_h = 2, .grid_w = 2});
}

TEST(attention_is_asked_by_scope)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    att_value qkv = att_graph_input(graph, "qkv", ATT_F32, att_shape_of(5, 18));
    add_attention(graph, "blocks.0.attn", qkv);
    add_attention(graph, "blocks.1.attn", qkv);
    must(att_graph_probe_attention_stats(graph, "blocks.*.attn"));
    must(att_graph_probe_attention_map(graph, "blocks.1.attn"));
    must(att_graph_probe_attention_stats(graph, "*")); /* requested before: no second output */
    assert_int_equal(graph->outputs.count, 3);
    assert_string_equal(graph->outputs.items[0].name, "blocks.0.attn.stats");
    assert_string_equal(graph->outputs.items[2].name, "blocks.1.attn.map");
    assert_true(
        att_shape_equal(att_value_shape(graph, graph->outputs.items[0].value), att_shape_of(2, 5, ATT_STAT_COUNT)));
    assert_true(att_shape_equal(att_value_shape(graph, graph->outputs.items[2].value), att_shape_of(2, 5, 5)));
    assert_int_equal(att_graph_probe_attention_map(graph, "block.*"), ATT_ERR_NOT_FOUND);
    assert_string_equal(att_context_message(context), "no attention layer matches \"block.*\"");
    must(att_graph_status(graph)); /* a request that fails leaves the graph intact */
    att_graph_destroy(&graph);
}

TEST(statistics_of_a_failed_graph_are_refused)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    att_gelu(graph, ATT_NONE);
    assert_int_equal(att_graph_probe_attention_stats(graph, "*"), ATT_ERR_ARGUMENT);
    att_graph_destroy(&graph);
}

TEST(statistics_come_back_from_a_run)
{
    fd_model model = fd_create();
    att_value p = att_graph_parameter(model.graph, "p", att_shape_of(18), (att_init){ATT_INIT_CONSTANT, 0}, false);
    add_attention(model.graph, "attn",
                  att_add(model.graph, fd_input(&model, ATT_F64, att_shape_of(5, 18), 0, 1, 0), p));
    must(att_graph_probe_attention_stats(model.graph, "attn"));
    must(att_graph_probe_attention_map(model.graph, "attn"));
    fd_loss_of(&model, model.graph->nodes.items[1].out[0]);
    fd_run run = fd_open(&model, 1);
    fd_evaluate(&run);
    double stats[FD_BATCH][2][5][ATT_ATTENTION_STATS], map[FD_BATCH][2][5][5];
    must(att_session_output(run.session, "attn.stats", 0, FD_BATCH, stats));
    must(att_session_output(run.session, "attn.map", 0, FD_BATCH, map));
    /* all tokens are equal, so attention is uniform */
    assert_true(fabs(stats[4][1][4][ATT_STAT_ENTROPY] - log(5)) < 1e-12);
    assert_true(fabs(map[4][1][4][4] - 0.2) < 1e-12);
    fd_close(&run);
    fd_destroy(&model);
}
