/* Attention in place of convolutions: with soft heads against PyTorch (tools/goldens/attention_conv.py), sharp against
 * convolutions. */
#include <attscope/nn.h>
#include <attscope/ops.h>
#include <attscope/plan.h>

#include "engine/ops/attention.h"
#include "networks/models/fixture.h"

enum { MOST = 4096 };

typedef struct layer {
    char name[32];
    int height, width, channels, outputs, kernel, stride, dilation, groups, bias;
} layer;

typedef struct network {
    att_context *context;
    const char *backend;
    att_dtype dtype;
    layer layer;
    att_graph *graph;
    att_weights *weights;
    att_value y;
} network;

static void *in_dtype(att_dtype dtype, const double *values, int64_t count)
{
    void *rows = calloc((size_t)count, sizeof(double));
    assert_non_null(rows);
    for (int64_t i = 0; i < count; i++)
        if (dtype == ATT_F64)
            ((double *)rows)[i] = values[i];
        else
            ((float *)rows)[i] = (float)values[i];
    return rows;
}

static double element(att_dtype dtype, const void *values, int64_t i)
{
    return dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* f32 draws around `shift`, keyed by "<layer>.<name>". */
static void draw(const network *n, const char *name, int64_t count, double wide, double shift, double *values)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", n->layer.name, name);
    assert_in_range(count, 1, MOST);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(shift + wide * formula(key, (uint32_t)i));
}

static void fill(const network *n)
{
    const int kernel = n->layer.kernel;
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info info = att_weights_at(n->weights, i);
        int64_t count = att_shape_count(info.shape);
        bool sharp = ends_in(info.name, "_sharpness");
        double values[MOST];
        draw(n, info.name + strlen("conv."), count, sharp ? 0.8 : 1, sharp ? 1.2 : 0, values);
        for (int64_t e = 0; e < count && ends_in(info.name, "_centers"); e++)
            values[e] += n->layer.dilation * ((double)e - 0.5 * (kernel - 1));
        void *host = in_dtype(n->dtype, values, count);
        CHECK(n->context, att_weights_set(n->weights, -1, i, host, count));
        free(host);
    }
}

/* The loss is the sum of r y. */
static void build(network *n)
{
    const layer *l = &n->layer;
    CHECK(n->context, att_graph_create(n->context, n->dtype, &n->graph));
    att_scope root = att_scope_root(n->graph), scope = att_scope_in(&root, "conv");
    att_value x = att_graph_input(n->graph, "x", n->dtype, att_shape_of(l->height, l->width, l->channels));
    n->y = att_nn_attention_conv(
        &scope, x, l->outputs,
        &(att_nn_attention_conv_options){
            .kernel = l->kernel, .stride = l->stride, .dilation = l->dilation, .groups = l->groups, .bias = l->bias});
    CHECK(n->context, att_graph_status(n->graph));
    int64_t count = att_shape_count(att_value_shape(n->graph, n->y));
    double r[MOST];
    draw(n, "loss", count, 1, 0, r);
    void *host = in_dtype(n->dtype, r, count);
    att_value constant = att_graph_constant(n->graph, n->dtype, att_shape_of(1, count), host);
    free(host);
    att_value sum = att_linear(n->graph, att_reshape(n->graph, n->y, att_shape_of(count)), constant, ATT_NONE);
    att_graph_output(n->graph, "y", n->y);
    att_graph_output(n->graph, "loss", att_reshape(n->graph, sum, (att_shape){.rank = 0}));
    CHECK(n->context, att_weights_create(n->graph, n->backend, &n->weights));
    fill(n);
}

static double worst;

/* told: the sum of t r and the norm of t */
static void compare(const network *n, const char *tensor, const void *values, int64_t count, const double told[2],
                    double tolerance)
{
    char key[64];
    double r[MOST], dot = 0, squares = 0;
    snprintf(key, sizeof key, "%s r", tensor);
    draw(n, key, count, 1, 0, r);
    for (int64_t i = 0; i < count; i++) {
        double value = element(n->dtype, values, i);
        dot += value * r[i];
        squares += value * value;
    }
    double error = fmax(fabs(dot - told[0]), fabs(sqrt(squares) - told[1])) / told[1];
    worst = isnan(error) ? INFINITY : fmax(worst, error);
    if (!(error <= tolerance))
        fail_msg("%s, %s, %s: sum %.9g, expected %.9g; norm %.9g, expected %.9g", n->backend, n->layer.name, tensor,
                 dot, told[0], sqrt(squares), told[1]);
}

typedef struct run {
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
} run;

static run run_step(const network *n)
{
    static const char *const inputs[] = {"x", NULL};
    run r = {0};
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.backend = n->backend;
    options.gradients = inputs;
    CHECK(n->context, att_plan_compile(n->graph, &options, &r.plan));
    CHECK(n->context, att_session_create(r.plan, n->weights, 1, &r.session));
    CHECK(n->context, att_gradient_create(n->weights, &r.gradient));
    double x[MOST];
    int64_t count = (int64_t)n->layer.height * n->layer.width * n->layer.channels;
    draw(n, "x", count, 1, 0, x);
    void *host = in_dtype(n->dtype, x, count);
    CHECK(n->context, att_session_bind(r.session, "x", host));
    att_gradient_begin(r.gradient);
    CHECK(n->context, att_session_accumulate(r.session, r.gradient, 1, 1, 9, 1, 0));
    free(host);
    return r;
}

static void check_tensor(const network *n, const run *r, const char *tensor, const double told[2], double tolerance)
{
    double values[MOST];
    const layer *l = &n->layer;
    int64_t count = 0;
    if (strcmp(tensor, "y") == 0 || strcmp(tensor, "grad.x") == 0) {
        bool of_input = tensor[0] == 'g';
        count =
            of_input ? (int64_t)l->height * l->width * l->channels : att_shape_count(att_value_shape(n->graph, n->y));
        CHECK(n->context, att_session_output(r->session, of_input ? "x.grad" : "y", 0, 1, values));
    } else {
        char name[64];
        snprintf(name, sizeof name, "conv.%s", tensor + strlen("grad."));
        int i = att_weights_find(n->weights, name);
        assert_true(i >= 0);
        count = att_shape_count(att_weights_at(n->weights, i).shape);
        CHECK(n->context, att_gradient_get(r->gradient, i, values, count));
    }
    compare(n, tensor, values, count, told, tolerance);
}

static void close_network(network *n, run *r)
{
    att_gradient_destroy(&r->gradient);
    att_session_destroy(&r->session);
    att_plan_destroy(&r->plan);
    att_weights_destroy(&n->weights);
    att_graph_destroy(&n->graph);
}

/* Runs all cases of the golden file; returns the number of tensors. */
static int run_goldens(const char *backend, att_dtype dtype, double tolerance)
{
    FILE *file = golden_open("attention_conv.txt");
    network n = {.backend = backend, .dtype = dtype};
    run r = {0};
    char word[64];
    int tensors = 0;
    assert_int_equal(att_context_create(NULL, &n.context), ATT_OK);
    worst = 0;
    while (fscanf(file, "%63s", word) == 1) {
        layer *l = &n.layer;
        double told[2];
        if (strcmp(word, "case") == 0) {
            close_network(&n, &r);
            assert_int_equal(fscanf(file, "%31s %d %d %d %d %d %d %d %d %d", l->name, &l->height, &l->width,
                                    &l->channels, &l->outputs, &l->kernel, &l->stride, &l->dilation, &l->groups,
                                    &l->bias),
                             10);
            build(&n);
            r = run_step(&n);
            continue;
        }
        assert_int_equal(fscanf(file, "%lf %lf", &told[0], &told[1]), 2);
        check_tensor(&n, &r, word, told, tolerance);
        tensors++;
    }
    fclose(file);
    close_network(&n, &r);
    att_context_destroy(&n.context);
    print_message("%s: largest error %.2g\n", backend, worst);
    return tensors;
}

TEST(soft_heads_are_those_of_pytorch)
{
    assert_int_equal(run_goldens("ref", ATT_F64, 1e-10), 45);
    assert_int_equal(run_goldens("cpu", ATT_F32, 1e-5), 45);
}

/* --- sharp heads -------------------------------------------------------------------------------------------------- */

static void convolution_and_attention(att_context *context, const layer *l, double *error)
{
    static float x[2 * 64 * 64 * 8], of[2][2 * MOST * 8];
    att_graph *graph = NULL;
    att_weights *weights = NULL;
    att_plan *plan = NULL;
    att_session *session = NULL;
    CHECK(context, att_graph_create(context, ATT_F32, &graph));
    att_scope root = att_scope_root(graph), conv = att_scope_in(&root, "conv"), heads = att_scope_in(&root, "heads");
    att_value input = att_graph_input(graph, "x", ATT_F32, att_shape_of(l->height, l->width, l->channels));
    att_value y = att_nn_conv(
        &conv, input, l->outputs,
        &(att_nn_conv_options){.kernel = l->kernel, .stride = l->stride, .groups = l->groups, .bias = l->bias});
    att_value z =
        att_nn_attention_conv(&heads, input, l->outputs,
                              &(att_nn_attention_conv_options){
                                  .kernel = l->kernel, .stride = l->stride, .groups = l->groups, .bias = l->bias});
    att_graph_output(graph, "conv", y);
    att_graph_output(graph, "heads", z);
    CHECK(context, att_weights_create(graph, "cpu", &weights));
    CHECK(context, att_weights_initialise(weights, 3));
    for (int i = 0; i < att_weights_count(weights); i++) { /* the same weight and bias */
        char twin[64];
        att_parameter_info info = att_weights_at(weights, i);
        snprintf(twin, sizeof twin, "heads.%s", info.name + strlen("conv."));
        int to = strncmp(info.name, "conv.", 5) == 0 ? att_weights_find(weights, twin) : -1;
        if (to < 0)
            continue;
        double values[MOST];
        int64_t count = att_shape_count(info.shape);
        assert_in_range(count, 1, MOST);
        CHECK(context, att_weights_get(weights, -1, i, values, count));
        CHECK(context, att_weights_set(weights, -1, to, values, count));
    }
    att_plan_options options = att_plan_options_defaults();
    CHECK(context, att_plan_compile(graph, &options, &plan));
    CHECK(context, att_session_create(plan, weights, 2, &session));
    for (int64_t i = 0; i < 2 * (int64_t)l->height * l->width * l->channels; i++)
        x[i] = (float)formula("x", (uint32_t)i);
    CHECK(context, att_session_bind(session, "x", x));
    CHECK(context, att_session_run(session, 2));
    CHECK(context, att_session_output(session, "conv", 0, 2, of[0]));
    CHECK(context, att_session_output(session, "heads", 0, 2, of[1]));
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < 2 * att_shape_count(att_value_shape(graph, y)); i++) {
        largest = fmax(largest, fabs((double)of[0][i]));
        difference = fmax(difference, isnan(of[1][i]) ? INFINITY : fabs((double)of[0][i] - (double)of[1][i]));
    }
    *error = difference / largest;
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
}

/* On the CPU's kernels, in f32, with the initial alpha. ResNet-50's stem has a kernel of 7 x 7 with stride 2. */
TEST(sharp_heads_compute_a_convolution)
{
    static const layer layers[] = {
        {"plain", 16, 17, 8, 8, 3, 1, 1, 1, 1}, {"stride", 15, 16, 8, 16, 3, 2, 1, 1, 0},
        {"stem", 64, 64, 3, 8, 7, 2, 1, 1, 0},  {"groups", 8, 8, 64, 64, 3, 1, 1, 16, 0},
        {"pixel", 9, 7, 16, 32, 1, 2, 1, 1, 1}, {"channels", 8, 8, 24, 24, 3, 2, 1, 24, 0},
        {"wide", 5, 6, 19, 21, 3, 1, 1, 1, 1},
    };
    att_context *context;
    double largest = 0;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        double error;
        convolution_and_attention(context, &layers[i], &error);
        largest = fmax(largest, error);
        if (!(error <= 2e-6)) /* 4e-7 */
            fail_msg("%s: attention differs from the convolution by %g of the largest output", layers[i].name, error);
    }
    print_message("largest error %.2g\n", largest);
    att_context_destroy(&context);
}

/* Distances are in the unit of the steps: 3 for a row and 5 for a column of the map. */
TEST(distances_have_the_unit_of_the_steps)
{
    enum { HEADS = 9, QUERIES = 3 * 3 };
    static float stats[HEADS * QUERIES * ATT_ATTENTION_STATS];
    static const float x[6 * 6] = {0};
    att_context *context;
    att_graph *graph = NULL;
    att_weights *weights = NULL;
    att_plan *plan = NULL;
    att_session *session = NULL;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    CHECK(context, att_graph_create(context, ATT_F32, &graph));
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "heads");
    att_value input = att_graph_input(graph, "x", ATT_F32, att_shape_of(6, 6, 1));
    att_value y = att_nn_attention_conv(
        &scope, input, 1, &(att_nn_attention_conv_options){.kernel = 3, .stride = 2, .step_h = 3, .step_w = 5});
    att_graph_output(graph, "y", y);
    CHECK(context, att_graph_probe_attention_stats(graph, "heads"));
    CHECK(context, att_weights_create(graph, "cpu", &weights));
    CHECK(context, att_weights_initialise(weights, 3));
    att_plan_options options = att_plan_options_defaults();
    CHECK(context, att_plan_compile(graph, &options, &plan));
    CHECK(context, att_session_create(plan, weights, 1, &session));
    CHECK(context, att_session_bind(session, "x", x));
    CHECK(context, att_session_run(session, 1));
    CHECK(context, att_session_output(session, "heads.stats", 0, 1, stats));
    for (int head = 0; head < HEADS; head++)
        for (int query = 0; query < QUERIES; query++) {
            const double expected = hypot(3 * (head / 3 - 1), 5 * (head % 3 - 1));
            const float *row = stats + (head * QUERIES + query) * ATT_ATTENTION_STATS;
            if (!(fabs((double)row[ATT_STAT_DISTANCE] - expected) <= 1e-6)) /* 2.7e-7 */
                fail_msg("head %d, query %d: distance %g, expected %g", head, query, (double)row[ATT_STAT_DISTANCE],
                         expected);
            worst = fmax(head + query > 0 ? worst : 0, fabs((double)row[ATT_STAT_DISTANCE] - expected));
        }
    print_message("distances differ by %.2g\n", worst);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}
