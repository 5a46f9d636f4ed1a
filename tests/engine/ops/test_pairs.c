/* Attention with a head for each pair of a row score and a column score: against convolutions, against attention with
 * zero queries, and by hand; in f64. */
#include "engine/ops/attention.h"
#include "engine/ops/finite_difference.h"

TEST_GROUP(fd_setup, close_context)

enum { MOST = 4096 };

static att_value parameter(att_graph *graph, const char *name, att_shape shape)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, 0.8}, true);
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

typedef struct convolution {
    int height, width, channels, outputs, kernel_h, kernel_w, stride, padding, dilation, groups;
    bool bias;
} convolution;

static const convolution convolutions[] = {
    {5, 6, 3, 4, 3, 3, 1, 1, 1, 1, true},  {7, 5, 3, 4, 3, 3, 2, 1, 1, 1, false},
    {6, 8, 4, 6, 3, 3, 2, 1, 1, 2, true},  {12, 9, 3, 2, 7, 7, 2, 3, 1, 1, false},
    {7, 6, 2, 3, 3, 3, 1, 2, 2, 1, true},  {9, 8, 2, 2, 3, 3, 3, 2, 2, 2, false},
    {4, 5, 3, 2, 1, 1, 1, 0, 1, 1, true},  {5, 4, 3, 2, 1, 1, 2, 0, 1, 1, false},
    {4, 4, 6, 6, 3, 3, 1, 1, 1, 6, false}, {6, 7, 2, 2, 2, 4, 1, 1, 1, 1, false},
    {5, 5, 2, 2, 3, 3, 1, 0, 1, 1, false},
};

/* Constant [kernel]: the shift that each row or column of the kernel reads. */
static att_value centers_of(att_graph *graph, int kernel, const convolution *c)
{
    double centers[8];
    for (int i = 0; i < kernel; i++)
        centers[i] = i * c->dilation - c->padding;
    return att_graph_constant(graph, ATT_F64, att_shape_of(kernel), centers);
}

static att_value scores_of(att_graph *graph, const convolution *c, int kernel, int keys, int *queries)
{
    double sharp[8];
    for (int i = 0; i < kernel; i++)
        sharp[i] = 12; /* alpha = 72, exp(-72) = 5e-32 */
    *queries = (keys + 2 * c->padding - c->dilation * (kernel - 1) - 1) / c->stride + 1;
    return att_axis_scores(graph, *queries, keys, c->padding, c->stride, centers_of(graph, kernel, c),
                           att_graph_constant(graph, ATT_F64, att_shape_of(kernel), sharp));
}

/* The convolution as attention and projections. */
static att_value attend(att_graph *graph, const convolution *c, att_value x, att_value weight, att_value bias)
{
    static const int channels_last[] = {0, 2, 3, 1};
    int h, w, taps = c->kernel_h * c->kernel_w;
    att_value rows = scores_of(graph, c, c->kernel_h, c->height, &h);
    att_value columns = scores_of(graph, c, c->kernel_w, c->width, &w);
    const att_pair_attention_options options = {.ring = c->padding, .stride = c->stride, .groups = c->groups};
    att_value heads = att_pair_attention(graph, x, rows, columns, &options);
    att_value projections = att_reshape(graph, att_transpose(graph, weight, channels_last, 4),
                                        att_shape_of(c->outputs, taps * c->channels / c->groups, 1, 1));
    return att_conv2d(graph, heads, projections, bias, &(att_conv_options){.groups = c->groups});
}

static double compare_convolution(const convolution *c)
{
    static double convolved[2 * MOST], attended[2 * MOST];
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(c->height, c->width, c->channels), 1, 0, 0);
    att_value weight =
        parameter(graph, "weight", att_shape_of(c->outputs, c->channels / c->groups, c->kernel_h, c->kernel_w));
    att_value bias = c->bias ? parameter(graph, "bias", att_shape_of(c->outputs)) : ATT_NONE;
    const att_conv_options options = {c->stride, c->padding, c->dilation, c->groups};
    att_value y = att_conv2d(graph, x, weight, bias, &options);
    att_graph_output(graph, "convolved", y);
    att_graph_output(graph, "attended", attend(graph, c, x, weight, bias));
    fd_run run = fd_run_inference(&model);
    int64_t count = 2 * att_shape_count(att_value_shape(graph, y));
    double error = 0, largest = 0;
    must(att_session_output(run.session, "convolved", 0, 2, convolved));
    must(att_session_output(run.session, "attended", 0, 2, attended));
    for (int64_t i = 0; i < count; i++) {
        error = fmax(error, fabs(convolved[i] - attended[i]));
        largest = fmax(largest, fabs(convolved[i]));
        assert_false(isnan(attended[i]));
    }
    assert_true(largest > 0.1);
    fd_close(&run);
    fd_destroy(&model);
    return error / largest;
}

TEST(sharp_heads_compute_a_convolution)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        double error = compare_convolution(&convolutions[i]);
        if (!(error < 1e-14)) /* 4e-16 */
            fail_msg("convolution %zu differs by %g of the largest output", i, error);
    }
}

/* --- learned heads ------------------------------------------------------------------------------------------------ */

/* Centers and sharpness are parameters. */
static att_value soft_heads(fd_model *model, att_value x)
{
    att_graph *graph = model->graph;
    att_value rows = att_axis_scores(graph, 2, 4, 1, 2, parameter(graph, "row_centers", att_shape_of(2)),
                                     parameter(graph, "row_sharpness", att_shape_of(2)));
    att_value columns = att_axis_scores(graph, 3, 5, 1, 2, parameter(graph, "column_centers", att_shape_of(3)),
                                        parameter(graph, "column_sharpness", att_shape_of(3)));
    return att_pair_attention(graph, x, rows, columns,
                              &(att_pair_attention_options){.ring = 1, .stride = 2, .groups = 2});
}

TEST(gradients_are_those_of_finite_differences)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, att_shape_of(4, 5, 4), 1, 0, 0);
    att_value shifted = att_add(model.graph, x, parameter(model.graph, "v", att_shape_of(4, 5, 4)));
    fd_loss_of(&model, soft_heads(&model, shifted));
    print_message("largest error of a gradient %.2g\n", fd_check(&model, "pairs", 1, 1e-8));
    fd_destroy(&model);
}

/* Without a ring and strides the heads are those of att_isotropic_shifts(). */
TEST(maps_are_those_of_attention_with_isotropic_shifts)
{
    enum { H = 3, W = 4, N = H * W };
    static const double rows[] = {-1, 0.5}, columns[] = {0, 1, 2}, row_sharpness[] = {1.1, 1.1},
                        column_sharpness[] = {1.1, 1.1, 1.1};
    double centers[6][2], sharpness[6], of[2][2 * 6 * N * ATT_STAT_COUNT];
    static const char *const suffixes[] = {"map", "stats", "summary"};
    for (int m = 0; m < 6; m++)
        centers[m][0] = rows[m / 3], centers[m][1] = columns[m % 3], sharpness[m] = 1.1;
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(H, W, 2), 1, 0, 0);
    att_value r = att_axis_scores(graph, H, H, 0, 1, att_graph_constant(graph, ATT_F64, att_shape_of(2), rows),
                                  att_graph_constant(graph, ATT_F64, att_shape_of(2), row_sharpness));
    att_value c = att_axis_scores(graph, W, W, 0, 1, att_graph_constant(graph, ATT_F64, att_shape_of(3), columns),
                                  att_graph_constant(graph, ATT_F64, att_shape_of(3), column_sharpness));
    att_graph_scope(graph, "pairs");
    att_value pairs = att_pair_attention(graph, x, r, c, &(att_pair_attention_options){.step_h = 2});
    att_attention_terms terms = att_attention_no_terms();
    att_isotropic_shifts(graph, H, W, att_graph_constant(graph, ATT_F64, att_shape_of(6, 2), centers),
                         att_graph_constant(graph, ATT_F64, att_shape_of(6), sharpness), &terms);
    att_graph_scope(graph, "full");
    const att_attention_options options = {
        .heads = 6, .value_heads = 1, .grid_h = H, .grid_w = W, .step_h = 2, .terms = &terms};
    att_value full = att_attention(graph, ATT_NONE, ATT_NONE, att_reshape(graph, x, att_shape_of(N, 2)), &options);
    att_graph_output(graph, "pairs.y", pairs);
    att_graph_output(graph, "full.y", full);
    must(att_graph_probe_attention_map(graph, "*"));
    must(att_graph_probe_attention_stats(graph, "*"));
    must(att_graph_probe_attention_summary(graph, "*"));
    fd_run run = fd_run_inference(&model);
    for (size_t i = 0; i < 4; i++) {
        const char *suffix = i < 3 ? suffixes[i] : "y";
        const int64_t counts[] = {6 * N * N, 6 * N * ATT_STAT_COUNT, 6 * ATT_ATTENTION_SUMMARY, N * 12};
        for (int k = 0; k < 2; k++) {
            char name[32];
            snprintf(name, sizeof name, "%s.%s", k ? "full" : "pairs", suffix);
            must(att_session_output(run.session, name, 0, 2, of[k]));
        }
        for (int64_t e = 0; e < 2 * counts[i]; e++)
            if (!(fabs(of[0][e] - of[1][e]) < 1e-13)) /* 4e-15 */
                fail_msg("element %lld of %s is %.17g, not %.17g", (long long)e, suffix, of[0][e], of[1][e]);
    }
    fd_close(&run);
    fd_destroy(&model);
}

/* One head whose center is the pixel above the query's, on a map of 4 x 4 with a ring of 1 and a stride of 2. The query
 * in the first row looks at the ring. */
TEST(statistics_count_the_ring_and_the_stride)
{
    static const double up[] = {-1}, here[] = {0}, sharp[] = {12};
    double stats[2 * 4 * ATT_STAT_COUNT];
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(4, 4, 1), 1, 0, 0);
    att_value s = att_graph_constant(graph, ATT_F64, att_shape_of(1), sharp);
    att_value rows = att_axis_scores(graph, 2, 4, 1, 2, att_graph_constant(graph, ATT_F64, att_shape_of(1), up), s);
    att_value columns =
        att_axis_scores(graph, 2, 4, 1, 2, att_graph_constant(graph, ATT_F64, att_shape_of(1), here), s);
    att_value y = att_pair_attention(graph, x, rows, columns,
                                     &(att_pair_attention_options){.ring = 1, .stride = 2, .step_h = 8, .step_w = 4});
    att_graph_output(graph, "y", y);
    must(att_graph_probe_attention_stats(graph, "*"));
    fd_run run = fd_run_inference(&model);
    double outputs[2 * 4];
    const double *pixels = model.input[0].rows;
    must(att_session_output(run.session, "y", 0, 2, outputs));
    must(att_session_output(run.session, ".stats", 0, 2, stats));
    for (int i = 0; i < 4; i++) {
        const double *stat = stats + i * ATT_STAT_COUNT;
        int row = 2 * (i / 2) - 1, column = 2 * (i % 2);
        assert_true(fabs(outputs[i] - (row < 0 ? 0 : pixels[row * 4 + column])) < 1e-12);
        assert_true(stat[ATT_STAT_ARGMAX] == (row + 1) * 6 + column + 1);
        assert_true(fabs(stat[ATT_STAT_MAX] - 1) < 1e-12);
        assert_true(fabs(stat[ATT_STAT_DISTANCE] - 8) < 1e-12);
        assert_true(fabs(stat[ATT_STAT_ENTROPY]) < 1e-12);
        assert_true(stat[ATT_STAT_SELF] > 0 && stat[ATT_STAT_SELF] < 1e-30); /* exp(-72) = 5e-32 */
    }
    fd_close(&run);
    fd_destroy(&model);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void assert_refused(att_value value, const char *message)
{
    assert_int_equal(value, ATT_NONE);
    assert_message(context, message);
}

TEST(what_does_not_fit_is_refused)
{
    static const att_pair_attention_options none, three_groups = {.groups = 3}, ring = {.ring = 1},
                                                  back = {.stride = -1};
    static const struct {
        const att_pair_attention_options *options;
        int row_keys;
        const char *message;
    } cases[] = {{&none, 5, "mix_pairs: the map of rows [2, 4, 5] must have the shape [2, 4, 4]"},
                 {&ring, 4, "mix_pairs: the map of rows [2, 4, 4] must have the shape [2, 4, 6]"},
                 {&three_groups, 4, "the channels of x [4, 4, 4] do not divide into 3 groups"},
                 {&back, 4, "ring is 0, stride -1, groups 1; must be at least 0, 1 and 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fd_model model = fd_create();
        att_value x = fd_input(&model, ATT_F64, att_shape_of(4, 4, 4), 1, 0, 0);
        att_value rows = parameter(model.graph, "rows", att_shape_of(2, 4, cases[i].row_keys));
        att_value columns = parameter(model.graph, "columns", att_shape_of(3, 4, 4));
        assert_refused(att_pair_attention(model.graph, x, rows, columns, cases[i].options), cases[i].message);
        fd_destroy(&model);
    }
    fd_model model = fd_create();
    att_value centers = parameter(model.graph, "centers", att_shape_of(2, 2));
    assert_refused(att_axis_scores(model.graph, 4, 4, 0, 1, centers, centers), "axis scores: centers [2, 2]");
    fd_destroy(&model);
}
