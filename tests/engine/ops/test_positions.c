/* Rotary positions, and cosine attention with Swin V2's positions, against timm (tools/goldens/rotary.py), in f64. */
#include "engine/ops/finite_difference.h"
#include "golden_path.h"

TEST_GROUP(fd_setup, close_context)

enum { LINE_NUMBERS = 4096, SWIN_PARAMETERS = 5 };

/* Reads numbers of the golden. */
static void read_numbers(FILE *file, double *numbers, int64_t count)
{
    assert_in_range(count, 1, LINE_NUMBERS);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(fscanf(file, "%lf", &numbers[i]), 1);
}

/* Runs a graph on its inputs and returns the largest difference of the output "y". */
static double output_error(fd_model *model, const double *expected, int64_t count)
{
    double y[LINE_NUMBERS], error = 0;
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    must(att_graph_status(model->graph));
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_session_create(run.plan, run.weights, 1, &run.session));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    must(att_session_run(run.session, 1));
    must(att_session_output(run.session, "y", 0, 1, y));
    for (int64_t i = 0; i < count; i++)
        error = fmax(error, isnan(y[i]) ? INFINITY : fabs(y[i] - expected[i]));
    fd_close(&run);
    return error;
}

/* The output of a graph is a sample value: zeros with the table added. */
static double table_error(fd_model *model, att_value table, const double *expected, int64_t count)
{
    att_value zeros = fd_input(model, ATT_F64, att_value_shape(model->graph, table), 0, 0, 0);
    assert_int_equal(att_shape_count(att_value_shape(model->graph, table)), count);
    assert_int_equal(att_value_kind(model->graph, table), ATT_SHARED);
    att_graph_output(model->graph, "y", att_add(model->graph, zeros, table));
    return output_error(model, expected, count);
}

static double compare_table(FILE *file)
{
    static double expected[LINE_NUMBERS];
    att_rotary_grid grid = {0};
    int centered, columns_first, halves, channels;
    double temperature;
    assert_int_equal(fscanf(file, "%d %d %d %d %d %d %d %lf %d %lf", &centered, &columns_first, &halves, &grid.height,
                            &grid.width, &grid.reference_h, &grid.reference_w, &grid.offset, &channels, &temperature),
                     10);
    grid.centered = centered, grid.columns_first = columns_first;
    int64_t count = (int64_t)grid.height * grid.width * channels;
    read_numbers(file, expected, count);
    fd_model model = fd_create();
    double error = table_error(&model, att_rotary_table(model.graph, &grid, channels, temperature), expected, count);
    fd_destroy(&model);
    return error;
}

static double compare_mixed(FILE *file)
{
    static double frequencies[LINE_NUMBERS], expected[LINE_NUMBERS];
    att_rotary_grid grid = {0};
    int columns_first, depth, heads, channels;
    double worst = 0;
    assert_int_equal(
        fscanf(file, "%d %d %d %d %d %d", &columns_first, &grid.height, &grid.width, &depth, &heads, &channels), 6);
    grid.columns_first = columns_first;
    int64_t count = (int64_t)grid.height * grid.width * heads * channels;
    read_numbers(file, frequencies, (int64_t)depth * heads * channels);
    for (int block = 0; block < depth; block++) {
        read_numbers(file, expected, count);
        fd_model model = fd_create();
        att_value constant =
            att_graph_constant(model.graph, ATT_F64, att_shape_of(2, depth, heads, channels / 2), frequencies);
        att_value table = att_rotary_mixed(model.graph, &grid, constant, block);
        worst = fmax(worst, table_error(&model, table, expected, count));
        fd_destroy(&model);
    }
    return worst;
}

static double compare_turned(FILE *file)
{
    static double x[LINE_NUMBERS], table[LINE_NUMBERS], expected[LINE_NUMBERS];
    int halves, tokens, channels;
    assert_int_equal(fscanf(file, "%d %d %d", &halves, &tokens, &channels), 3);
    int64_t count = (int64_t)tokens * channels;
    read_numbers(file, x, count);
    read_numbers(file, table, count);
    read_numbers(file, expected, count);
    fd_model model = fd_create();
    att_shape shape = att_shape_of(tokens, channels);
    att_value in = fd_input(&model, ATT_F64, shape, 1, 0, 0);
    memcpy(model.input[0].rows, x, (size_t)count * sizeof *x);
    att_value constant = att_graph_constant(model.graph, ATT_F64, shape, table);
    att_graph_output(model.graph, "y",
                     att_rotary(model.graph, in, constant, &(att_rotary_options){.heads = 1, .halves = halves}));
    double error = output_error(&model, expected, count);
    fd_destroy(&model);
    return error;
}

typedef struct swin {
    int height, width, reference_h, reference_w, heads, channels, hidden;
    att_shape shapes[SWIN_PARAMETERS];
} swin;

static att_value swin_attention(fd_model *model, const swin *s)
{
    static const char *const names[] = {"cpb_mlp.0.weight", "cpb_mlp.0.bias", "cpb_mlp.2.weight", "logit_scale", "qkv"};
    att_graph *graph = model->graph;
    att_value p[SWIN_PARAMETERS];
    for (int i = 0; i < SWIN_PARAMETERS; i++)
        p[i] = att_graph_parameter(graph, names[i], s->shapes[i], (att_init){ATT_INIT_NORMAL, 1}, true);
    att_value shifts = att_log_shifts(graph, s->height, s->width, s->reference_h, s->reference_w);
    att_value hidden = att_relu(graph, att_linear(graph, shifts, p[0], p[1]));
    att_value logits = att_linear(graph, hidden, p[2], ATT_NONE);
    att_value relative = att_combine(graph, 16, att_sigmoid(graph, logits), 0, ATT_NONE);
    assert_int_equal(att_value_kind(graph, relative), ATT_SHARED);
    att_value qkv = att_add(graph, fd_input(model, ATT_F64, s->shapes[4], 0, 0, 0), p[4]);
    const att_cosine_options cosine_options = {
        .heads = s->heads, .key_heads = s->heads, .width = s->channels, .eps = 1e-12};
    att_value cosine = att_cosine_heads(graph, qkv, p[3], &cosine_options);
    att_attention_terms terms = att_attention_no_terms();
    terms.relative = relative;
    att_attention_options options = {
        .heads = s->heads, .scale = 1, .grid_h = s->height, .grid_w = s->width, .terms = &terms};
    return att_attention(graph, cosine, ATT_NONE, ATT_NONE, &options);
}

static double largest_difference(const double *found, const double *expected, double factor, int64_t count)
{
    double worst = 0;
    for (int64_t i = 0; i < count; i++)
        worst = fmax(worst, isnan(found[i]) ? INFINITY : fabs(found[i] - factor * expected[i]));
    return worst;
}

/* Compares output and gradients with the next numbers of the golden. All samples are equal. */
static double run_swin(fd_model *model, const swin *s, FILE *file)
{
    static double values[SWIN_PARAMETERS][LINE_NUMBERS], expected[LINE_NUMBERS], weights[LINE_NUMBERS];
    static double found[LINE_NUMBERS];
    int64_t outputs = att_shape_count(s->shapes[4]) / 3;
    must(att_graph_status(model->graph));
    fd_run run = fd_open(model, 1);
    for (int i = 0; i < SWIN_PARAMETERS; i++) {
        read_numbers(file, values[i], att_shape_count(s->shapes[i]));
        must(att_weights_set(run.weights, -1, i, values[i], att_shape_count(s->shapes[i])));
    }
    read_numbers(file, expected, outputs);
    read_numbers(file, weights, outputs);
    for (int sample = 0; sample < FD_BATCH; sample++)
        memcpy((double *)model->input[1].rows + sample * outputs, weights, (size_t)outputs * sizeof *weights);
    fd_evaluate(&run);
    must(att_session_output(run.session, "y", 0, 1, found));
    double worst = largest_difference(found, expected, 1, outputs);
    for (int i = 0; i < SWIN_PARAMETERS; i++) {
        int64_t count = att_shape_count(s->shapes[i]);
        read_numbers(file, expected, count);
        must(att_gradient_get(run.gradient, i, found, count));
        worst = fmax(worst, largest_difference(found, expected, fd_scale * FD_BATCH, count));
    }
    fd_close(&run);
    return worst;
}

static double compare_swin(FILE *file)
{
    swin s;
    assert_int_equal(fscanf(file, "%d %d %d %d %d %d %d", &s.height, &s.width, &s.reference_h, &s.reference_w, &s.heads,
                            &s.channels, &s.hidden),
                     7);
    s.shapes[0] = att_shape_of(s.hidden, 2), s.shapes[1] = att_shape_of(s.hidden);
    s.shapes[2] = att_shape_of(s.heads, s.hidden), s.shapes[3] = att_shape_of(s.heads, 1, 1);
    s.shapes[4] = att_shape_of((int64_t)s.height * s.width, (int64_t)3 * s.heads * s.channels);
    fd_model model = fd_create();
    att_value y = swin_attention(&model, &s);
    att_graph_output(model.graph, "y", y);
    fd_loss_of(&model, y);
    double error = run_swin(&model, &s, file);
    fd_destroy(&model);
    return error;
}

typedef struct comparison {
    const char *name;
    double (*compare)(FILE *file);
    double tolerance;
    int lines;
} comparison;

TEST(positions_are_timms)
{
    /* timm computes angles, and Swin's shifts, in f32. Measured: 3.7e-7, 3.6e-7, 0, 1.2e-6. */
    static const comparison comparisons[] = {{"table", compare_table, 1e-6, 6},
                                             {"mixed", compare_mixed, 1e-6, 2},
                                             {"turned", compare_turned, 1e-15, 2},
                                             {"swin", compare_swin, 3e-6, 2}};
    enum { COUNT = sizeof comparisons / sizeof *comparisons };
    double worst[COUNT] = {0};
    int lines[COUNT] = {0};
    char path[4096], name[16];
    golden_path("rotary.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fscanf(file, "%15s", name) == 1) {
        int i = 0;
        while (i < COUNT && strcmp(comparisons[i].name, name))
            i++;
        assert_in_range(i, 0, COUNT - 1);
        worst[i] = fmax(worst[i], comparisons[i].compare(file));
        lines[i]++;
    }
    fclose(file);
    for (int i = 0; i < COUNT; i++) {
        print_message("%s: largest error %.2g\n", comparisons[i].name, worst[i]);
        assert_true(worst[i] <= comparisons[i].tolerance);
        assert_int_equal(lines[i], comparisons[i].lines);
    }
}

/* Two of three blocks have frequencies of their own in one parameter. */
TEST(learned_frequencies_have_gradients)
{
    const att_rotary_grid grid = {.height = 2, .width = 3};
    fd_model model = fd_create();
    att_graph *graph = model.graph;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(7, 30), 1, 0, 0);
    att_value frequencies =
        att_graph_parameter(graph, "rope.freqs", att_shape_of(2, 3, 2, 2), (att_init){ATT_INIT_NORMAL, 1}, false);
    att_value weight =
        att_graph_parameter(graph, "weight", att_shape_of(30, 30), (att_init){ATT_INIT_NORMAL, 0.2}, true);
    for (int block = 0; block < 3; block += 2) {
        x = att_linear(graph, x, weight, ATT_NONE);
        x = att_rotary(graph, x, att_rotary_mixed(graph, &grid, frequencies, block),
                       &(att_rotary_options){.heads = 4, .prefix = 1, .halves = block == 2});
    }
    fd_loss_of(&model, x);
    printf("largest error of a gradient %.2g\n", fd_check(&model, "mixed", 1, 1e-8)); /* 1.4e-10 */
    fd_destroy(&model);
}

static void assert_refused(att_graph *graph, att_value value, att_status status, const char *message)
{
    assert_int_equal(value, ATT_NONE);
    assert_int_equal(att_graph_status(graph), status);
    assert_string_equal(att_context_message(context), message);
    att_graph_destroy(&graph);
}

static att_graph *new_graph(void)
{
    return fd_create().graph;
}

TEST(wrong_positions_are_refused)
{
    const att_rotary_grid grid = {.height = 2, .width = 3}, empty = {.width = 3},
                          both = {.height = 2, .width = 3, .reference_h = 2, .reference_w = 3, .centered = true},
                          odd = {.height = 2, .width = 3, .offset = NAN};
    att_graph *g = new_graph();
    assert_refused(g, att_rotary_table(g, &empty, 8, 100), ATT_ERR_ARGUMENT,
                   "rotary: the grid is 0 x 3, must be at least 1 x 1");
    g = new_graph();
    assert_refused(
        g, att_rotary_table(g, &both, 8, 100), ATT_ERR_ARGUMENT,
        "rotary: the reference is 2 x 3, must be at least 1 x 1, or 0 x 0 for none; a centered grid has none");
    g = new_graph();
    assert_refused(g, att_rotary_table(g, &odd, 8, 100), ATT_ERR_ARGUMENT,
                   "rotary: the offset of the grid is nan, must be finite");
    g = new_graph();
    assert_refused(g, att_rotary_table(g, &grid, 6, 100), ATT_ERR_ARGUMENT,
                   "rotary: a head has 6 channels, must be a multiple of 4");
    g = new_graph();
    assert_refused(g, att_rotary_table(g, &grid, 8, 0), ATT_ERR_ARGUMENT,
                   "rotary: the temperature is 0, must be positive");
    g = new_graph();
    att_value frequencies =
        att_graph_parameter(g, "f", att_shape_of(2, 3, 1, 2), (att_init){ATT_INIT_NORMAL, 1}, false);
    assert_refused(g, att_rotary_mixed(g, &grid, frequencies, 3), ATT_ERR_ARGUMENT,
                   "rotary: frequencies of 3 blocks have none of block 3");
    g = new_graph();
    assert_refused(
        g, att_log_shifts(g, 2, 3, 0, 4), ATT_ERR_ARGUMENT,
        "log_shifts: the window is 2 x 3, must be at least 1 x 1; its reference is 0 x 4, must be that, too, "
        "or 0 x 0 for none");
}

static void refuse_rotary(int tokens, att_rotary_options options, att_status status, const char *message)
{
    const att_rotary_grid grid = {.height = 2, .width = 3};
    att_graph *g = new_graph();
    att_value x = att_graph_input(g, "x", ATT_F64, att_shape_of(tokens, 24));
    assert_refused(g, att_rotary(g, x, att_rotary_table(g, &grid, 8, 100), &options), status, message);
}

static void refuse_cosine(att_cosine_options options, const char *message)
{
    att_graph *g = new_graph();
    att_value x = att_graph_input(g, "x", ATT_F64, att_shape_of(7, 24));
    assert_refused(g, att_cosine_heads(g, x, ATT_NONE, &options), ATT_ERR_ARGUMENT, message);
}

TEST(wrong_heads_are_refused)
{
    refuse_rotary(5, (att_rotary_options){.heads = 2}, ATT_ERR_MISMATCH,
                  "rotary: table [6, 8] must have a row for each token of x [5, 24] but the first 0");
    refuse_rotary(7, (att_rotary_options){.heads = 2, .prefix = 2}, ATT_ERR_MISMATCH,
                  "rotary: table [6, 8] must have a row for each token of x [7, 24] but the first 2");
    refuse_rotary(7, (att_rotary_options){.heads = 4, .prefix = 1}, ATT_ERR_ARGUMENT,
                  "rotary: 4 heads of table [6, 8] do not fit into the rows of x [7, 24]");
    refuse_cosine(
        (att_cosine_options){.heads = 2, .key_heads = 2, .width = 8, .eps = 1e-12},
        "cosine_heads: 2 heads of queries and 2 of keys, of 8 channels, do not fit into the rows of x [7, 24]");
    refuse_cosine((att_cosine_options){.heads = 3, .width = 8}, "cosine_heads: eps is 0, must be positive");
}
