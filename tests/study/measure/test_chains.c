/* Products of attention maps of random heads, and the distance of matrices from rank 1. */
#include <attscope/measure.h>
#include <attscope/ops.h>

#include "context.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 0)

enum { SIDE = 12, LAYERS = 3, HEADS = 2 };

/* --- the operation ------------------------------------------------------------------------------------------------ */

enum { N = 6 };

/* The residual of a matrix [N, N], on the CPU in f32 and on the reference kernels in f64. */
static void check_residual(const double matrix[N * N], double expected, double tolerance)
{
    float narrow[N * N], result32 = 0;
    double result64 = 0;
    for (int i = 0; i < N * N; i++)
        narrow[i] = (float)matrix[i];
    for (int wide = 0; wide < 2; wide++) {
        att_graph *graph;
        att_plan *plan;
        att_weights *weights;
        att_session *session;
        att_plan_options options = att_plan_options_defaults();
        options.backend = wide ? "ref" : "cpu";
        must(att_graph_create(context, wide ? ATT_F64 : ATT_F32, &graph));
        att_value x = att_graph_input(graph, "x", wide ? ATT_F64 : ATT_F32, att_shape_of(N, N));
        att_graph_output(graph, "y", att_rank_one_residual(graph, x));
        must(att_weights_create(graph, "cpu", &weights));
        must(att_plan_compile(graph, &options, &plan));
        must(att_session_create(plan, weights, 1, &session));
        must(att_session_bind(session, "x", wide ? (const void *)matrix : (const void *)narrow));
        must(att_session_run(session, 1));
        must(att_session_output(session, "y", 0, 1, wide ? (void *)&result64 : (void *)&result32));
        att_session_destroy(&session), att_plan_destroy(&plan), att_weights_destroy(&weights);
        att_graph_destroy(&graph);
    }
    if (isnan(expected)) {
        assert_true(isnan(result64) && isnan((double)result32));
        return;
    }
    print_message("f64 error %.2g, f32 error %.2g\n", fabs(result64 - expected), fabs((double)result32 - expected));
    assert_true(fabs(result64 - expected) < tolerance);
    assert_true(fabs((double)result32 - expected) < 1e-6); /* measured: at most 2e-8 */
}

TEST(residuals_of_known_matrices)
{
    double identity[N * N] = {0}, outer[N * N], diagonal[N * N] = {0}, zero[N * N] = {0}, blocks[N * N] = {0};
    for (int i = 0; i < N; i++) {
        identity[i * N + i] = 1;
        diagonal[i * N + i] = i == 0 ? -5 : 1;
        for (int j = 0; j < N; j++)
            outer[i * N + j] = (i + 1) * cos(j);
    }
    blocks[0] = 10; /* the largest row is not of the largest singular value, 9 sqrt(2 N - 2) / sqrt(2) */
    for (int i = 1; i < N; i++)
        for (int j = 1; j < 3; j++)
            blocks[i * N + j] = 6.5;
    const double of_block = 6.5 * 6.5 * 2 * (N - 1);
    check_residual(identity, sqrt((N - 1.0) / N), 1e-14);
    check_residual(outer, 0, 1e-14);
    check_residual(diagonal, sqrt((N - 1.0) / (25 + N - 1.0)), 1e-14);
    check_residual(blocks, sqrt(100 / (100 + of_block)), 1e-14);
    check_residual(zero, NAN, 0);
}

/* --- the instrument ----------------------------------------------------------------------------------------------- */

/* A network in f64 that measures itself on one image of the formula. */
typedef struct measured {
    att_context *context;
    att_model *model;
    att_weights *weights;
    att_measure *measure;
} measured;

static measured open_network(const char *name, int heads)
{
    measured m = {.context = context};
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "depth", LAYERS), att_options_set(&options, "num_heads", heads);
    att_options_set(&options, "embed_dim", 8 * heads), att_options_set(&options, "num_classes", 3);
    must(att_model_create(context, name, &options, ATT_F64, &m.model));
    must(att_weights_create(att_model_graph(m.model), "cpu", &m.weights));
    formula_fill(context, att_model_graph(m.model), m.weights);
    return m;
}

static void observe(measured *m, const char *with)
{
    static double image[SIDE * SIDE * 3];
    att_plan *plan;
    att_session *session;
    att_plan_options options = att_plan_options_defaults();
    options.backend = "f64";
    for (uint32_t i = 0; i < SIDE * SIDE * 3; i++)
        image[i] = 4 * formula("image", i);
    CHECK(m->context, att_measure_create(att_model_graph(m->model), with, "*", &m->measure));
    CHECK(m->context, att_plan_compile(att_model_graph(m->model), &options, &plan));
    CHECK(m->context, att_session_create(plan, m->weights, 1, &session));
    CHECK(m->context, att_session_bind(session, "image", image));
    CHECK(m->context, att_session_run(session, 1));
    CHECK(m->context, att_measure_observe(m->measure, session, 1, NULL));
    att_session_destroy(&session), att_plan_destroy(&plan);
}

static void close_network(measured *m)
{
    att_measure_destroy(&m->measure), att_weights_destroy(&m->weights), att_model_destroy(&m->model);
}

static double figure(const measured *m, int length, const char *statistic)
{
    char name[96];
    snprintf(name, sizeof name, "head_chains/length.%d/%s", length, statistic);
    for (int i = 0; i < att_measure_count(m->measure); i++) {
        att_measurement found = att_measure_at(m->measure, i);
        if (att_measurement_is_called(&found, name))
            return found.mean;
    }
    fail_msg("no figure %s", name);
    return NAN;
}

/* 256 draws have every chain: there are at most 12 of a length. Rows are handed over in f32. */
TEST(extremes_are_numpys)
{
    measured m = open_network("vit_tiny_patch16_224", HEADS);
    observe(&m, "head_chains:count=256,seed=7");
    FILE *file = golden_open("chains.txt");
    double least, most, worst = 0;
    int length, lines = 0;
    for (char order[16]; fscanf(file, "%15s %d %lf %lf", order, &length, &least, &most) == 4; lines++) {
        char name[32];
        snprintf(name, sizeof name, "minimum %s", order);
        worst = fmax(worst, fabs(figure(&m, length, name) / least - 1));
        snprintf(name, sizeof name, "maximum %s", order);
        worst = fmax(worst, fabs(figure(&m, length, name) / most - 1));
    }
    fclose(file);
    print_message("largest relative error %.2g\n", worst);
    assert_int_equal(lines, 2 * LAYERS);
    assert_true(worst < 2e-7); /* measured: 4e-8, the rounding of rows to f32 */
    for (length = 1; length <= LAYERS; length++) {
        double quartiles[] = {figure(&m, length, "minimum code"), figure(&m, length, "quantile 0.25 code"),
                              figure(&m, length, "median code"), figure(&m, length, "quantile 0.75 code"),
                              figure(&m, length, "maximum code")};
        for (int i = 1; i < 5; i++)
            assert_true(quartiles[i] >= quartiles[i - 1]);
    }
    assert_true(figure(&m, 1, "median code") == figure(&m, 1, "median formula")); /* one map has no order */
    close_network(&m);
}

static void set_all(measured *m, const char *parameter, double value)
{
    double values[64];
    for (int layer = 0; layer < LAYERS; layer++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.%s", layer, parameter);
        int index = att_weights_find(m->weights, name);
        assert_true(index >= 0);
        int64_t count = att_shape_count(att_weights_at(m->weights, index).shape);
        assert_true(count <= 64);
        for (int64_t i = 0; i < count; i++)
            values[i] = value;
        CHECK(m->context, att_weights_set(m->weights, -1, index, values, count));
    }
}

/* Heads that attend at their own place have the identity as their map, flat ones a matrix of rank 1. */
TEST(identical_and_flat_maps)
{
    static const double sharpness[] = {100, 0};
    for (int i = 0; i < 2; i++) {
        const double expected = sharpness[i] > 0 ? sqrt((9 - 1.0) / 9) : 0;
        measured m = open_network("attention_cnn_isotropic", 3);
        set_all(&m, "centers", 0), set_all(&m, "sharpness", sharpness[i]);
        observe(&m, "head_chains:count=3");
        for (int length = 1; length <= LAYERS; length++)
            for (int order = 0; order < 2; order++) {
                double least = figure(&m, length, order ? "minimum code" : "minimum formula");
                double most = figure(&m, length, order ? "maximum code" : "maximum formula");
                assert_true(fabs(least - expected) < 1e-7 && fabs(most - expected) < 1e-7); /* measured: 3e-8 */
            }
        close_network(&m);
    }
}

TEST(draws_follow_the_options)
{
    static const char *const with[] = {"head_chains:count=2,seed=1", "head_chains:seed=1,count=2",
                                       "head_chains:count=2,seed=2", "head_chains:longest=1"};
    double found[4];
    for (int i = 0; i < 4; i++) {
        measured m = open_network("vit_tiny_patch16_224", HEADS);
        observe(&m, with[i]);
        found[i] = figure(&m, 1, "maximum formula");
        assert_int_equal(att_measure_count(m.measure), 2 * 5 * (i == 3 ? 1 : LAYERS));
        if (i < 3)
            found[i] += figure(&m, 2, "minimum formula") + figure(&m, 3, "median formula");
        close_network(&m);
    }
    assert_true(found[0] == found[1] && found[0] != found[2]);
}

TEST(other_networks_are_refused_with_the_reason)
{
    static const char *const networks[][2] = {{"swin_tiny_patch4_window7_224", "maps are multiplied, so all must be"},
                                              {"resnet18", "the network has no attention layer"}};
    for (int i = 0; i < 2; i++) {
        att_model *model;
        att_measure *measure;
        must(att_model_create(context, networks[i][0], NULL, ATT_F32, &model));
        assert_fails(context, att_measure_create(att_model_graph(model), "head_chains", "*", &measure),
                     ATT_ERR_NOT_FOUND, networks[i][1]);
        att_model_destroy(&model);
    }
}
