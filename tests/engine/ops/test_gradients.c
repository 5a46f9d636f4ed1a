/* The backward rule of every op, alone and in a network, against central differences. */
#include "engine/ops/finite_difference.h"

TEST_GROUP(fd_setup, close_context)

/* Measured: 4.3e-10 at most over all cases, 9.1e-10 for the network (central differences with h = 1e-5 in f64). */
static const double tolerance = 1e-8;

/* Running statistics have no gradient. */
static bool is_buffer(const att_op *op, int number)
{
    return op == &att_op_batch_norm && number >= 3;
}

/* Whole numbers and the boxes that roi_align reads have no gradient. */
static bool is_constant(const att_op *op, const att_case_input *input)
{
    return input->desc.dtype == ATT_I32 || (op == &att_op_roi_align && input->desc.shape.rank == 2);
}

/* Adds a parameter to each sample value, so that its gradient shows as the parameter's. */
static att_value operand(fd_model *model, const att_op *op, const att_case_input *input, int number)
{
    if (!att_desc_present(&input->desc))
        return ATT_NONE;
    char name[32];
    snprintf(name, sizeof name, "in%d", number);
    if (is_buffer(op, number))
        return att_graph_buffer(model->graph, name, input->desc.shape, input->shift);
    att_init init = {ATT_INIT_NORMAL, input->scale};
    if (input->desc.kind == ATT_SHARED)
        return att_graph_parameter(model->graph, name, input->desc.shape, init, false);
    att_value x = fd_input(model, input->desc.dtype == ATT_I32 ? ATT_I32 : ATT_F64, input->desc.shape, input->scale,
                           input->shift, input->limit);
    if (is_constant(op, input))
        return x;
    return att_add(model->graph, x, att_graph_parameter(model->graph, name, input->desc.shape, init, false));
}

static double check_case(const att_op *op, const att_op_case *definition)
{
    fd_model model = fd_create();
    att_value in[ATT_CASE_INPUTS];
    for (int i = 0; i < definition->in_count; i++)
        in[i] = operand(&model, op, &definition->in[i], i);
    att_value y = att_emit(model.graph, op->name, definition->attrs, in, definition->in_count, NULL);
    must(att_graph_status(model.graph));
    fd_loss_of(&model, y);
    char what[96];
    snprintf(what, sizeof what, "%s, case %s", op->name, definition->name);
    double error = fd_check(&model, what, 1, tolerance);
    fd_destroy(&model);
    return error;
}

/* Whether the op reads statistics of x whose gradient is part of that of x, or computes such statistics. Cases of a
 * single op cannot check that gradient: test_batch_norm.c does for statistics of the batch, a test below for those of a
 * sample. */
static bool has_statistics(const att_op *op)
{
    if (!strcmp(op->name, "channel_gram") || !strcmp(op->name, "merge_gram") || !strcmp(op->name, "group_norm"))
        return true;
    for (int i = 0; i < op->cases[0].in_count; i++)
        if (op->cases[0].in[i].desc.kind == ATT_BATCH)
            return true;
    return false;
}

TEST(every_backward_rule_is_right)
{
    double largest = 0;
    for (const att_op *const *op = att_ops; *op; op++) {
        int checked = 0;
        for (int i = 0; i < (*op)->case_count; i++) {
            if (!(*op)->cases[i].gradient)
                continue;
            largest = fmax(largest, check_case(*op, &(*op)->cases[i]));
            checked++;
        }
        if (((*op)->backward != NULL && !has_statistics(*op)) != (checked > 0))
            fail_msg("%s has %s backward rule, and %d gradient cases", (*op)->name, (*op)->backward ? "a" : "no",
                     checked);
    }
    print_message("largest relative error of a gradient: %.2g\n", largest);
}

/* check_case() cannot check a soft target, because targets have no gradient. */
TEST(soft_targets_have_gradients_for_logits)
{
    fd_model model = fd_create();
    att_value p = att_graph_parameter(model.graph, "p", att_shape_of(5), (att_init){ATT_INIT_NORMAL, 1}, false);
    att_value logits = att_add(model.graph, fd_input(&model, ATT_F64, att_shape_of(5), 1, 0, 0), p);
    att_value target = fd_input(&model, ATT_F64, att_shape_of(5), 0.1, 0.3, 0);
    att_graph_output(model.graph, "loss", att_cross_entropy(model.graph, logits, target, 0));
    fd_check(&model, "soft targets", 1, tolerance);
    fd_destroy(&model);
}

/* As mixed images have them. Measured: 1e-10. */
TEST(binary_cross_entropy_of_soft_targets)
{
    const att_binary_cross_entropy_options cases[] = {
        {.positive_weight = 1},
        {.positive_weight = 2.5, .sum = true},
        {.positive_weight = 2.5, .binary = true, .threshold = 0.3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fd_model model = fd_create();
        att_value p = att_graph_parameter(model.graph, "p", att_shape_of(9), (att_init){ATT_INIT_NORMAL, 1}, false);
        att_value logits = att_add(model.graph, fd_input(&model, ATT_F64, att_shape_of(9), 3, 0, 0), p);
        att_value target = fd_input(&model, ATT_F64, att_shape_of(9), 0.1, 0.3, 0);
        att_graph_output(model.graph, "loss", att_binary_cross_entropy(model.graph, logits, target, &cases[i]));
        fd_check(&model, "binary cross entropy", 1, tolerance);
        fd_destroy(&model);
    }
}

/* The op gives a number for each row of the mask; the function gives their mean. */
TEST(upsampled_cross_entropy_has_the_right_gradient)
{
    for (att_pixel_mean mean = ATT_MEAN_OF_LABELED; mean <= ATT_MEAN_OF_ALL; mean++) {
        fd_model model = fd_create();
        att_graph *g = model.graph;
        att_shape shape = att_shape_of(3, 2, 4);
        att_value p = att_graph_parameter(g, "p", shape, (att_init){ATT_INIT_NORMAL, 1}, false);
        att_value logits = att_add(g, fd_input(&model, ATT_F64, shape, 1, 0, 0), p);
        att_value mask = fd_input(&model, ATT_I32, att_shape_of(5, 4), 0, 0, 5);
        att_graph_output(g, "loss", att_upsampled_cross_entropy(g, logits, mask, 4, mean));
        fd_check(&model, "upsampled cross entropy", 1, tolerance);
        fd_destroy(&model);
    }
}

/* One group, several groups, one group for each channel; a map and a single row; with and without gamma and beta.
 * Measured: 1.4e-9. */
TEST(group_norm_has_the_right_gradients)
{
    static const int groups[] = {1, 2, 6};
    const att_shape shapes[] = {att_shape_of(3, 2, 6), att_shape_of(6)};
    const att_init one = {ATT_INIT_NORMAL, 1};
    double largest = 0;
    for (int i = 0; i < 3; i++)
        for (int affine = 0; affine < 4; affine++) {
            fd_model model = fd_create();
            att_graph *g = model.graph;
            att_shape shape = shapes[affine == 3 && groups[i] < 6];
            att_value x =
                att_add(g, fd_input(&model, ATT_F64, shape, 1, 3, 0), att_graph_parameter(g, "x", shape, one, false));
            att_value gamma = affine & 1 ? att_graph_parameter(g, "gamma", att_shape_of(6), one, false) : ATT_NONE;
            att_value beta = affine & 2 ? att_graph_parameter(g, "beta", att_shape_of(6), one, false) : ATT_NONE;
            fd_loss_of(&model, att_group_norm(g, x, groups[i], gamma, beta, 0.02));
            largest = fmax(largest, fd_check(&model, "group norm", 1, tolerance));
            fd_destroy(&model);
        }
    print_message("largest relative error of a gradient of group norm: %.2g\n", largest);
}

TEST(a_target_with_parameters_is_refused)
{
    fd_model model = fd_create();
    att_value p = att_graph_parameter(model.graph, "p", att_shape_of(5), (att_init){ATT_INIT_NORMAL, 1}, false);
    att_value x = fd_input(&model, ATT_F64, att_shape_of(5), 1, 0, 0);
    att_graph_output(model.graph, "loss", att_cross_entropy(model.graph, x, att_add(model.graph, x, p), 0));
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.backend = "ref";
    att_plan *plan = NULL;
    assert_fails(context, att_plan_compile(model.graph, &options, &plan), ATT_ERR_UNSUPPORTED,
                 "target depends on parameters");
    fd_destroy(&model);
}

/* --- whole network ------------------------------------------------------------------------------------------------ */

enum { WIDTH = 6, HEADS = 2, CLASSES = 3 };

static att_value weight(att_graph *graph, const char *scope, const char *name, att_shape shape, double spread)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", scope, name);
    return att_graph_parameter(graph, full, shape, (att_init){ATT_INIT_NORMAL, spread}, true);
}

static att_value linear(att_graph *graph, const char *scope, att_value x, int64_t inputs, int64_t outputs)
{
    att_value w = weight(graph, scope, "weight", att_shape_of(outputs, inputs), 0.5);
    return att_linear(graph, x, w, weight(graph, scope, "bias", att_shape_of(outputs), 0.5));
}

static att_value norm(att_graph *graph, const char *scope, att_value x)
{
    att_value gamma = weight(graph, scope, "weight", att_shape_of(WIDTH), 1);
    return att_layer_norm(graph, x, gamma, weight(graph, scope, "bias", att_shape_of(WIDTH), 0.5), 1e-2);
}

static att_value attention_branch(att_graph *graph, att_value x, double rate)
{
    const att_attention_options options = {.heads = HEADS, .prefix = 1, .grid_h = 2, .grid_w = 2};
    att_value y = linear(graph, "qkv", norm(graph, "norm1", x), WIDTH, 3 * WIDTH);
    y = linear(graph, "proj", att_attention(graph, y, ATT_NONE, ATT_NONE, &options), WIDTH, WIDTH);
    y = att_scale(graph, y, weight(graph, "ls1", "gamma", att_shape_of(WIDTH), 1));
    return att_drop_path(graph, y, rate);
}

static att_value mlp_branch(att_graph *graph, att_value x, double rate)
{
    att_value y = att_gelu(graph, linear(graph, "fc1", norm(graph, "norm2", x), WIDTH, 2 * WIDTH));
    y = linear(graph, "fc2", att_dropout(graph, y, rate), 2 * WIDTH, WIDTH);
    return att_context_broadcast(graph, y, 1, 0, weight(graph, "cb", "scale", att_shape_of(WIDTH), 1));
}

/* Builds a network of one block with every component; returns its logits. */
static att_value network(fd_model *model, double rate)
{
    att_graph *graph = model->graph;
    att_value x = att_patchify(graph, fd_input(model, ATT_F64, att_shape_of(4, 4, 2), 1, 0, 0), 2, 2);
    x = att_linear(graph, x, weight(graph, "patch", "weight", att_shape_of(WIDTH, 2, 2, 2), 0.5), ATT_NONE);
    x = att_prepend_tokens(graph, weight(graph, "cls", "token", att_shape_of(1, 1, WIDTH), 1), x);
    x = att_add(graph, x, weight(graph, "pos", "embed", att_shape_of(1, 5, WIDTH), 1));
    x = att_add(graph, x, attention_branch(graph, x, rate));
    x = att_add(graph, mlp_branch(graph, x, rate), x);
    x = norm(graph, "norm", x);
    att_value first = att_token_mean(graph, att_slice_tokens(graph, x, 0, 1), 0);
    att_value pooled = att_add(graph, first, att_token_mean(graph, x, 1));
    return linear(graph, "head", pooled, WIDTH, CLASSES);
}

TEST(a_network_has_the_right_gradients)
{
    for (int dropping = 0; dropping < 2; dropping++) {
        fd_model model = fd_create();
        att_value logits = network(&model, dropping ? 0.4 : 0);
        att_value target = fd_input(&model, ATT_I32, (att_shape){.rank = 0}, 0, 0, CLASSES);
        att_graph_output(model.graph, "loss", att_cross_entropy(model.graph, logits, target, 0.1));
        fd_check(&model, "network", 1, tolerance);
        fd_destroy(&model);
    }
}

static att_value frozen_norm(fd_model *model, const char *scope, att_value x)
{
    char mean[64], variance[64];
    snprintf(mean, sizeof mean, "%s.running_mean", scope);
    snprintf(variance, sizeof variance, "%s.running_var", scope);
    att_shape shape = att_shape_of(WIDTH);
    return att_batch_norm(
        model->graph, x, weight(model->graph, scope, "weight", shape, 1),
        weight(model->graph, scope, "bias", shape, 0.5), att_graph_buffer(model->graph, mean, shape, 0.1),
        att_graph_buffer(model->graph, variance, shape, 0.8), &(att_batch_norm_options){.frozen = true});
}

/* Gates of all kinds, one after another, on a residual branch. */
static att_value gated_branch(fd_model *model, att_value x)
{
    att_graph *graph = model->graph;
    const att_dct_pool_options frequencies = {.count = 2, .rows = {0, 1}, .columns = {1, 0}, .height = 2, .width = 2};
    att_value y = att_relu(graph, frozen_norm(model, "bn1", linear(graph, "conv1", x, WIDTH, WIDTH)));
    att_value style = att_channel_linear(graph, att_global_style(graph, y, 1e-2),
                                         weight(graph, "srm", "weight", att_shape_of(WIDTH, 2), 1));
    y = att_gate(graph, y, att_sigmoid(graph, style));
    att_value pooled = att_add(graph, att_global_max(graph, y), att_dct_pool(graph, y, &frequencies));
    pooled = att_channel_conv(graph, pooled, weight(graph, "eca", "weight", att_shape_of(1, 1, 3), 1));
    y = att_gate(graph, y, att_sigmoid(graph, pooled));
    att_value pixels = linear(graph, "spatial", att_channel_pool(graph, y), 2, 1);
    return att_pixel_gate(graph, y, att_sigmoid(graph, pixels));
}

TEST(gated_maps_have_the_right_gradients)
{
    fd_model model = fd_create();
    att_value x = linear(model.graph, "stem", fd_input(&model, ATT_F64, att_shape_of(3, 4, 2), 1, 0, 0), 2, WIDTH);
    x = att_relu(model.graph, att_add(model.graph, x, gated_branch(&model, x)));
    fd_loss_of(&model, linear(model.graph, "head", att_global_mean(model.graph, x), WIDTH, CLASSES));
    fd_check(&model, "gated maps", 1, tolerance);
    fd_destroy(&model);
}

/* The inference plan fuses more and omits dropout; without dropout it must agree with training. */
TEST(inference_agrees_with_training)
{
    double trained[FD_BATCH * CLASSES], inferred[FD_BATCH * CLASSES];
    for (int dropping = 0; dropping < 2; dropping++) {
        fd_model model = fd_create();
        att_value logits = network(&model, dropping ? 0.4 : 0);
        att_graph_output(model.graph, "logits", logits);
        fd_loss_of(&model, logits);
        fd_run run = fd_open(&model, 1);
        fd_evaluate(&run);
        if (!dropping)
            must(att_session_output(run.session, "logits", 0, FD_BATCH, trained));
        att_plan_options options = att_plan_options_defaults();
        options.backend = "ref";
        fd_run other = {.weights = run.weights};
        must(att_plan_compile(model.graph, &options, &other.plan));
        must(att_session_create(other.plan, run.weights, FD_BATCH, &other.session));
        for (int i = 0; i < model.input_count; i++)
            must(att_session_bind(other.session, model.input[i].name, model.input[i].rows));
        must(att_session_run(other.session, FD_BATCH));
        must(att_session_output(other.session, "logits", 0, FD_BATCH, inferred));
        for (int i = 0; i < FD_BATCH * CLASSES; i++)
            assert_true(fabs(inferred[i] - trained[i]) < 1e-12); /* measured: 0 */
        other.weights = NULL;
        fd_close(&other);
        fd_close(&run);
        fd_destroy(&model);
    }
}
