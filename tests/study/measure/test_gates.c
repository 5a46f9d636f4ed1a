/* Instruments on residual blocks of feature maps: figures of gates, and which additions are steps. */
#include <attscope/attscope.h>

#include "context.h"
#include "networks/nn/module.h"
#include "study/measure/measure.h"

SHARED_CONTEXT(threads, 0)

enum { SIDE = 2, CHANNELS = 16, MAP = SIDE * SIDE * CHANNELS, BLOCKS = 4 };
static const att_shape shape = {3, {SIDE, SIDE, CHANNELS}};

static const att_measurement *find(att_measure *measure, const char *instrument, const char *node,
                                   const char *statistic)
{
    const att_measurement *all = att_measure_all(measure);
    for (int i = 0; i < att_measure_count(measure); i++)
        if (!strcmp(all[i].instrument, instrument) && !strcmp(all[i].node, node) &&
            !strcmp(all[i].statistic, statistic))
            return &all[i];
    return NULL;
}

/* Written as not (|error| <= tolerance), so that NaN fails. */
static void has_figure(att_measure *measure, const char *instrument, const char *node, const char *statistic,
                       double expected, double tolerance)
{
    const att_measurement *m = find(measure, instrument, node, statistic);
    if (!m)
        fail_msg("no figure %s %s %s", instrument, node, statistic);
    if (!(fabs(m->mean - expected) <= tolerance))
        fail_msg("%s %s %s is %.9g instead of %.9g", instrument, node, statistic, m->mean, expected);
}

typedef struct blocks {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    float x[MAP], f[BLOCKS][MAP], gate[BLOCKS][CHANNELS];
} blocks;

static void run(blocks *b, const char *with)
{
    must(att_measure_create(b->graph, with, "*", &b->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(b->graph, &plan, &b->plan));
    must(att_weights_create(b->graph, "cpu", &b->weights));
    must(att_weights_initialise(b->weights, 1));
    must(att_session_create(b->plan, b->weights, 1, &b->session));
    must(att_session_bind(b->session, "x", b->x));
    for (int t = 0; t < BLOCKS; t++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", t);
        must(att_session_bind(b->session, name, b->f[t]));
        snprintf(name, sizeof name, "gate%d", t);
        if (b->gate[t][0] > 0)
            must(att_session_bind(b->session, name, b->gate[t]));
    }
    must(att_session_run(b->session, 1));
    must(att_measure_observe(b->measure, b->session, 1, NULL));
}

/* Blocks without a graph but the input *x. */
static blocks *new_blocks(att_value *x)
{
    blocks *b = calloc(1, sizeof *b);
    assert_non_null(b);
    must(att_graph_create(context, ATT_F32, &b->graph));
    *x = att_graph_input(b->graph, "x", ATT_F32, shape);
    return b;
}

/* Adds an input whose name has the number of a block. */
static att_value input_of(blocks *b, const char *format, int block, att_shape of)
{
    char name[32];
    snprintf(name, sizeof name, format, block);
    return att_graph_input(b->graph, name, ATT_F32, of);
}

static void scope_of(blocks *b, const char *format, int block)
{
    char name[40];
    snprintf(name, sizeof name, format, block);
    att_graph_scope(b->graph, name);
}

static void fill(float *values, int count, float value)
{
    for (int i = 0; i < count; i++)
        values[i] = value;
}

static void release(blocks *b)
{
    att_session_destroy(&b->session);
    att_weights_destroy(&b->weights);
    att_plan_destroy(&b->plan);
    att_measure_destroy(&b->measure);
    att_graph_destroy(&b->graph);
    free(b);
}

/* x_{t+1} = relu(x_t + gate_t (.) f_t), all given: f_t = t + 1 everywhere; channel c of gate t is (c + 1) / 32 (1 - t /
 * 8), and the last channel of the last gate is 1. x_0 = 1. */
static blocks *given_gates(void)
{
    att_value x;
    blocks *b = new_blocks(&x);
    for (int t = 0; t < BLOCKS; t++) {
        att_value f = input_of(b, "f%d", t, shape);
        att_value gate = input_of(b, "gate%d", t, att_shape_of(CHANNELS));
        scope_of(b, "blocks.%d.se.gate", t);
        /* The ReLU leaves the gate unchanged; it is there because a measured value must be the output of an operation.
         * */
        f = att_gate(b->graph, f, att_relu(b->graph, gate));
        scope_of(b, "blocks.%d.add", t);
        x = att_relu(b->graph, att_add(b->graph, x, f));
        fill(b->f[t], MAP, (t + 1));
        for (int c = 0; c < CHANNELS; c++)
            b->gate[t][c] = (float)((c + 1) / 32.0 * (1 - t / 8.0));
    }
    b->gate[BLOCKS - 1][CHANNELS - 1] = 1;
    att_graph_output(b->graph, "y", x);
    fill(b->x, MAP, 1);
    return b;
}

TEST(gates_are_described)
{
    blocks *b = given_gates();
    run(b, "gate");
    has_figure(b->measure, "gate", "blocks.0.se.gate", "mean", 8.5 / 32, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "deviation", sqrt((16 * 16 - 1) / 12.0) / 32, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "minimum", 1 / 32.0, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "maximum", 0.5, 1e-6);
    /* Between the second and third, the eighth and ninth, and the fourteenth and fifteenth of sixteen. */
    has_figure(b->measure, "gate", "blocks.0.se.gate", "quantile 0.1", 2.5 / 32, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "median", 8.5 / 32, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "quantile 0.9", 14.5 / 32, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "share < 0.5", 15 / 16.0, 1e-6);
    has_figure(b->measure, "gate", "blocks.1.se.gate", "share < 0.5", 1, 1e-6);
    has_figure(b->measure, "gate", "blocks.3.se.gate", "share < 1", 15 / 16.0, 1e-6);
    release(b);
}

TEST(gates_may_exceed_one)
{
    blocks *b = given_gates();
    for (int c = 0; c < CHANNELS; c++)
        b->gate[0][c] *= 8;
    run(b, "gate");
    has_figure(b->measure, "gate", "blocks.0.se.gate", "maximum", 4, 1e-6);
    /* To half a bin, 4 / 1024 / 2. */
    has_figure(b->measure, "gate", "blocks.0.se.gate", "median", 8.5 / 4, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "quantile 0.9", 14.5 / 4, 1e-6);
    has_figure(b->measure, "gate", "blocks.0.se.gate", "share < 1", 3 / 16.0, 1e-6);
    release(b);
}

/* f_t grows faster than x_t, so zeta rises from block to block, while gates become smaller. */
TEST(gates_are_ranked_against_stiffness)
{
    blocks *b = given_gates();
    b->gate[BLOCKS - 1][CHANNELS - 1] = 0.3f;
    for (int t = 0; t < BLOCKS; t++)
        fill(b->f[t], MAP, pow(4, t));
    run(b, "nsi,gate");
    has_figure(b->measure, "nsi", "blocks.0.add", "attention", 1, 1e-6);
    double zeta = 0;
    for (int t = 0; t < BLOCKS; t++) {
        char node[32];
        snprintf(node, sizeof node, "blocks.%d.add", t);
        double next = find(b->measure, "nsi", node, "attention")->mean;
        assert_true(next > zeta);
        zeta = next;
    }
    has_figure(b->measure, "gate", "", "rank correlation with zeta", -1, 1e-12);
    release(b);
}

/* A step ends after its ReLU, and its branch is the value that the gate multiplied. */
TEST(steps_end_behind_the_activation)
{
    blocks *b = given_gates();
    fill(b->f[0], MAP, -100);
    run(b, "nsi");
    has_figure(b->measure, "nsi", "blocks.0.add", "unit", 1, 1e-6); /* exactly x_0 = 1 is subtracted */
    has_figure(b->measure, "nsi", "blocks.0.add", "attention", 100, 1e-4);
    has_figure(b->measure, "nsi", "blocks.0.add", "gated", 100 * sqrt(16 * 17 * 33 / 6.0 / 16) / 32, 1e-4);
    release(b);
}

/* |x_0| = 0 in the second of two samples. */
TEST(samples_without_a_value_are_counted)
{
    blocks *b = given_gates();
    run(b, "nsi,tns");
    fill(b->x, MAP, 0);
    must(att_session_run(b->session, 1));
    must(att_measure_observe(b->measure, b->session, 1, NULL));
    const att_measurement *first = find(b->measure, "nsi", "blocks.0.add", "attention"),
                          *second = find(b->measure, "nsi", "blocks.1.add", "attention");
    assert_int_equal(first->count, 2);
    assert_int_equal(first->undefined, 1);
    assert_int_equal(second->count, 2);
    assert_int_equal(second->undefined, 0);
    has_figure(b->measure, "nsi", "blocks.0.add", "attention", 1, 1e-6);
    release(b);
}

/* x + f, which only StepNet's gate reads, is not a step of the network. */
TEST(a_guess_is_no_step)
{
    att_value x;
    blocks *b = new_blocks(&x);
    att_scope root = att_scope_root(b->graph);
    att_module_choice step;
    must(att_module_parse(context, "step:adaptor=style", &step));
    for (int t = 0; t < BLOCKS; t++) {
        att_value f = input_of(b, "f%d", t, shape);
        att_scope block = att_scope_in(&root, "blocks.%d", t), add = att_scope_in(&block, "add");
        f = att_module_apply(&step, &block, &(att_module_site){.branch = f, .identity = x});
        att_scope_enter(&add);
        x = att_add(b->graph, x, f);
        for (int i = 0; i < MAP; i++)
            b->f[t][i] = (float)(1 + i % 3);
    }
    att_graph_output(b->graph, "y", x);
    fill(b->x, MAP, 1);
    run(b, "all");
    int steps = 0;
    for (int i = 0; i < att_measure_count(b->measure); i++) {
        att_measurement m = att_measure_at(b->measure, i);
        steps += !strcmp(m.instrument, "nsi") && !strcmp(m.statistic, "attention");
        assert_string_not_equal(m.instrument, "entropy");
    }
    assert_int_equal(steps, BLOCKS);
    /* Weights initialised with 0 give sigmoid(0). */
    has_figure(b->measure, "gate", "blocks.2.step.gate", "mean", 0.5, 1e-6);
    /* A constant has no correlation. */
    const att_measurement *correlation = find(b->measure, "gate", "", "rank correlation with zeta");
    assert_int_equal(correlation->undefined, 1);
    assert_true(isnan(correlation->mean));
    release(b);
}

/* f + gate (.) f is a gated branch and not a step; the branch of the step is f. */
TEST(a_gate_plus_one_is_no_step)
{
    att_value x;
    blocks *b = new_blocks(&x);
    for (int t = 0; t < BLOCKS; t++) {
        char name[32];
        att_value f = input_of(b, "f%d", t, shape);
        snprintf(name, sizeof name, "blocks.%d.add", t);
        att_graph_scope(b->graph, "gate");
        f = att_add(b->graph, f, att_gate(b->graph, f, att_sigmoid(b->graph, att_global_mean(b->graph, x))));
        att_graph_scope(b->graph, name);
        x = att_add(b->graph, x, f);
        fill(b->f[t], MAP, 2);
    }
    att_graph_output(b->graph, "y", x);
    fill(b->x, MAP, 1);
    run(b, "nsi");
    int steps = 0;
    for (int i = 0; i < att_measure_count(b->measure); i++)
        steps += strcmp(att_measure_at(b->measure, i).statistic, "attention") == 0;
    assert_int_equal(steps, BLOCKS);
    has_figure(b->measure, "nsi", "blocks.0.add", "attention", 2, 1e-6);
    has_figure(b->measure, "nsi", "blocks.0.add", "unit", 2 * (1 + 1 / (1 + exp(-1))), 1e-6);
    release(b);
}

/* LayerScale of 4 after the gate: x + 4 (.) gate (.) f. */
static blocks *scaled_gates(void)
{
    att_value x;
    blocks *b = new_blocks(&x);
    att_value gamma = att_graph_parameter(b->graph, "gamma", att_shape_of(CHANNELS),
                                          (att_init){.rule = ATT_INIT_CONSTANT, .value = 4}, false);
    for (int t = 0; t < BLOCKS; t++) {
        char name[32];
        att_value f = input_of(b, "f%d", t, shape);
        att_value gate = input_of(b, "gate%d", t, att_shape_of(CHANNELS));
        snprintf(name, sizeof name, "blocks.%d.add", t);
        att_graph_scope(b->graph, "gate");
        f = att_scale(b->graph, att_gate(b->graph, f, att_relu(b->graph, gate)), gamma);
        att_graph_scope(b->graph, name);
        x = att_add(b->graph, x, f);
        fill(b->f[t], MAP, (t + 1));
        fill(b->gate[t], CHANNELS, 0.5f);
    }
    att_graph_output(b->graph, "y", x);
    fill(b->x, MAP, 1);
    return b;
}

/* x_1 = 3, and |f_1| = 2: before all factors 2/3, before the gate 8/3, as it is added 4/3. */
TEST(layer_scale_belongs_to_the_branch_unless_asked_for)
{
    blocks *b = scaled_gates();
    run(b, "nsi,sai");
    has_figure(b->measure, "nsi", "blocks.1.add", "attention", 8 / 3.0, 1e-6);
    has_figure(b->measure, "nsi", "blocks.1.add", "gated", 4 / 3.0, 1e-6);
    has_figure(b->measure, "nsi", "blocks.1.add", "unit", 4 / 3.0, 1e-6);
    has_figure(b->measure, "sai", "blocks.1.add", "full attention", 8 / 3.0, 1e-6);
    has_figure(b->measure, "sai", "blocks.1.add", "simplified attention", 8 * sqrt(MAP), 1e-5);
    has_figure(b->measure, "sai", "blocks.1.add", "simplified gated", 4 * sqrt(MAP), 1e-5);
    has_figure(b->measure, "sai", "blocks.1.add", "simplified unit", 4 * sqrt(MAP), 1e-5);
    has_figure(b->measure, "sai", "blocks.1.add", "state", 3 * sqrt(MAP), 1e-5);
    release(b);
    b = scaled_gates();
    run(b, "nsi:dt=all");
    has_figure(b->measure, "nsi", "blocks.1.add", "attention", 2 / 3.0, 1e-6);
    has_figure(b->measure, "nsi", "blocks.1.add", "gated", 4 / 3.0, 1e-6);
    release(b);
}

static double next_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed / 4294967296.0;
}

static void observe_image(blocks *b)
{
    must(att_session_run(b->session, 1));
    must(att_measure_observe(b->measure, b->session, 1, NULL));
}

/* Over images, zeta of block 0 is 3 - 2 g of its mean gate g, that of block 1 rises with an independent number beside
 * g, and the gate of block 2 is always the same. 150 images, so that several chunks are merged. */
TEST(gates_are_correlated_with_stiffness_over_images)
{
    enum { IMAGES = 150 };
    blocks *b = given_gates();
    run(b, "gate_stiffness,nsi");
    att_measure_clear(b->measure);
    double g[IMAGES], zeta[IMAGES], mean_g = 0, mean_zeta = 0, products = 0, squares_g = 0, squares_zeta = 0;
    uint32_t seed = 5;
    for (int n = 0; n < IMAGES; n++) {
        float first = (float)(0.2 + 0.6 * next_number(&seed)), second = (float)(0.2 + 0.6 * next_number(&seed));
        double noise = next_number(&seed), size = 1 + first * (3 - 2 * first); /* x_1 */
        for (int c = 0; c < CHANNELS; c++)
            b->gate[0][c] = first, b->gate[1][c] = second, b->gate[2][c] = 0.25f;
        for (int i = 0; i < MAP; i++) {
            b->f[0][i] = 3 - 2 * first;
            b->f[1][i] = (float)((1 + noise + second) * size);
        }
        g[n] = (double)second, zeta[n] = 1 + noise + (double)second;
        mean_g += g[n] / IMAGES, mean_zeta += zeta[n] / IMAGES;
        observe_image(b);
    }
    for (int n = 0; n < IMAGES; n++) {
        products += (g[n] - mean_g) * (zeta[n] - mean_zeta);
        squares_g += pow(g[n] - mean_g, 2), squares_zeta += pow(zeta[n] - mean_zeta, 2);
    }
    double expected = products / sqrt(squares_g * squares_zeta);
    assert_true(expected > 0.2 && expected < 0.9);
    has_figure(b->measure, "gate_stiffness", "blocks.0.se.gate", "correlation", -1, 1e-9);
    has_figure(b->measure, "gate_stiffness", "blocks.1.se.gate", "correlation", expected, 1e-6);
    const att_measurement *constant = find(b->measure, "gate_stiffness", "blocks.2.se.gate", "correlation");
    assert_true(isnan(constant->mean));
    assert_int_equal(constant->count, IMAGES);
    assert_int_equal(constant->undefined, IMAGES);
    /* The gate of block 3 is constant, too. */
    has_figure(b->measure, "gate_stiffness", "", "mean correlation", (expected - 1) / 2, 1e-6);
    assert_null(find(b->measure, "gate_stiffness", "", "mean pixel correlation")); /* no such gates */
    release(b);
}

/* An image in which zeta has no value is counted, and left out. */
TEST(correlations_leave_out_images_without_a_value)
{
    blocks *b = given_gates();
    run(b, "gate_stiffness");
    for (int n = 0; n < 4; n++) {
        fill(b->x, MAP, n == 2 ? 0 : 1);
        fill(b->f[0], MAP, (1 + n));
        fill(b->gate[0], CHANNELS, 0.1f * (float)(1 + n));
        observe_image(b);
    }
    const att_measurement *m = find(b->measure, "gate_stiffness", "blocks.0.se.gate", "correlation");
    assert_int_equal(m->count, 5);
    assert_int_equal(m->undefined, 1);
    assert_true(isfinite(m->mean));
    release(b);
}

/* CBAM's two gates of a block have figures of their own; only those over channels enter the ranks. */
TEST(gates_over_pixels_are_reported_separately)
{
    att_value x;
    blocks *b = new_blocks(&x);
    for (int t = 0; t < BLOCKS; t++) {
        char name[40];
        att_value f = input_of(b, "f%d", t, shape);
        att_value gate = input_of(b, "gate%d", t, att_shape_of(CHANNELS));
        scope_of(b, "blocks.%d.cbam.channel.gate", t);
        att_value gated = att_gate(b->graph, f, att_relu(b->graph, gate));
        scope_of(b, "blocks.%d.cbam.spatial.gate", t);
        att_value pooled = att_channel_pool(b->graph, gated);
        snprintf(name, sizeof name, "blocks.%d.cbam.spatial.gate", t);
        att_value weight = att_graph_parameter(b->graph, name, att_shape_of(1, 2, 1, 1),
                                               (att_init){.rule = ATT_INIT_CONSTANT, .value = 0.3}, false);
        att_value z = att_conv2d(b->graph, pooled, weight, ATT_NONE, &(att_conv_options){.padding = 0});
        f = att_pixel_gate(b->graph, gated, att_sigmoid(b->graph, z));
        scope_of(b, "blocks.%d.add", t);
        x = att_add(b->graph, x, f);
        fill(b->f[t], MAP, 1);
        fill(b->gate[t], CHANNELS, 0.5f);
    }
    att_graph_output(b->graph, "y", x);
    run(b, "gate,gate_stiffness");
    uint32_t seed = 3;
    for (int n = 0; n < 5; n++) {
        fill(b->x, MAP, 1);
        for (int t = 0; t < BLOCKS; t++)
            for (int c = 0; c < CHANNELS; c++)
                b->gate[t][c] = (float)(0.1 + next_number(&seed));
        for (int i = 0; i < MAP; i++)
            b->f[0][i] = (float)(1 + next_number(&seed));
        observe_image(b);
    }
    assert_non_null(find(b->measure, "gate", "blocks.1.cbam.spatial.gate", "mean"));
    assert_null(find(b->measure, "gate_stiffness", "blocks.1.cbam.spatial.gate", "correlation"));
    assert_null(find(b->measure, "gate_stiffness", "blocks.1.cbam.channel.gate", "pixel correlation"));
    const att_measurement *of_pixels =
                              find(b->measure, "gate_stiffness", "blocks.0.cbam.spatial.gate", "pixel correlation"),
                          *of_channels =
                              find(b->measure, "gate_stiffness", "blocks.0.cbam.channel.gate", "correlation");
    assert_true(isfinite(of_pixels->mean) && isfinite(of_channels->mean));
    assert_true(fabs(of_pixels->mean - of_channels->mean) > 1e-3);
    assert_non_null(find(b->measure, "gate_stiffness", "", "mean pixel correlation"));
    release(b);
}

/* The first step of a stage is not counted: the counted ones have zeta 2 and 3. */
TEST(stages_begin_where_shapes_change)
{
    static const float branches[BLOCKS] = {1, 4, 6, 36}; /* next to x of 1, 2, 6, 12 */
    att_value x;
    blocks *b = new_blocks(&x);
    for (int t = 0; t < BLOCKS; t++) {
        if (t == 2)
            x = att_avg_pool(b->graph, x, &(att_pool_options){.kernel = SIDE});
        att_value f = input_of(b, "f%d", t, att_value_shape(b->graph, x));
        scope_of(b, "blocks.%d.add", t);
        x = att_add(b->graph, x, f);
        fill(b->f[t], MAP, branches[t]);
    }
    att_graph_output(b->graph, "y", x);
    fill(b->x, MAP, 1);
    run(b, "nsi,tns");
    has_figure(b->measure, "nsi", "blocks.2.add", "attention", 1, 1e-6);
    has_figure(b->measure, "tns", "", "zeta* attention", 3, 1e-6);
    has_figure(b->measure, "tns", "", "mu attention", 2.5, 1e-6);
    has_figure(b->measure, "tns", "", "tns attention", 3 * (3 / 2.5 - 1), 1e-5);
    release(b);
}
