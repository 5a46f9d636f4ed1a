/* Attention without content, and quadratic encodings, against attention with zero queries and keys, and against sums
 * over shifts; in f64. */
#include "engine/ops/finite_difference.h"
#include "engine/ops/mixing.h"
#include "engine/plan/plan.h"

TEST_GROUP(fd_setup, close_context)

enum { HEADS = 4, VALUE_HEADS = 2, WIDTH = 3, HEIGHT = 3, BREADTH = 2, MOST = 4096 };

static att_value parameter(att_graph *graph, const char *name, att_shape shape)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, 0.8}, true);
}

/* Terms of both kinds, as a test asks for them. */
typedef enum term_kind { AXES, TABLE, BOTH, KINDS } term_kind;

static att_attention_terms terms_of(att_graph *graph, term_kind kind, int prefix)
{
    att_attention_terms terms = att_attention_no_terms();
    int64_t shifts = (2 * HEIGHT - 1) * (2 * BREADTH - 1);
    if (kind != TABLE)
        att_isotropic_shifts(graph, HEIGHT, BREADTH, parameter(graph, "centers", att_shape_of(HEADS, 2)),
                             parameter(graph, "sharpness", att_shape_of(HEADS)), &terms);
    if (kind == TABLE && !prefix)
        terms.relative =
            att_quadratic_shifts(graph, HEIGHT, BREADTH, parameter(graph, "centers", att_shape_of(HEADS, 2)),
                                 parameter(graph, "factors", att_shape_of(HEADS, 2, 2)));
    else if (kind != AXES)
        terms.relative = parameter(graph, "relative", att_shape_of(shifts + (prefix ? 3 : 0), HEADS));
    return terms;
}

static att_attention_options options_of(const att_attention_terms *terms, int prefix)
{
    return (att_attention_options){.heads = HEADS,
                                   .value_heads = VALUE_HEADS,
                                   .prefix = prefix,
                                   .grid_h = HEIGHT,
                                   .grid_w = BREADTH,
                                   .step_w = 2,
                                   .terms = terms};
}

static att_shape values_shape(int prefix)
{
    return att_shape_of(prefix + HEIGHT * BREADTH, VALUE_HEADS * WIDTH);
}

/* The op that computes a value. */
static const char *op_of(const att_graph *graph, att_value value)
{
    return att_graph_producer(graph, value)->op->name;
}

static double check_gradients(term_kind kind, int prefix, double drop_rate)
{
    fd_model model = fd_create();
    att_value x = fd_input(&model, ATT_F64, values_shape(prefix), 1, 0, 0);
    att_value v = att_add(model.graph, x, parameter(model.graph, "v", values_shape(prefix)));
    att_attention_terms terms = terms_of(model.graph, kind, prefix);
    att_attention_options options = options_of(&terms, prefix);
    options.drop_rate = drop_rate;
    att_value y = att_attention(model.graph, ATT_NONE, ATT_NONE, v, &options);
    must(att_graph_status(model.graph));
    assert_string_equal(op_of(model.graph, y), kind == AXES && !prefix ? "mix_axes" : "mix_tokens");
    fd_loss_of(&model, y);
    double worst = fd_check(&model, "mixing", 1, 1e-8);
    fd_destroy(&model);
    return worst;
}

TEST(gradients_are_those_of_finite_differences)
{
    double worst = 0;
    for (int prefix = 0; prefix < 3; prefix += 2)
        for (term_kind kind = 0; kind < KINDS; kind++)
            worst = fmax(worst, fmax(check_gradients(kind, prefix, 0), check_gradients(kind, prefix, 0.4)));
    print_message("largest error of a gradient %.2g\n", worst);
}

/* Numbers for the shifts on each axis are also terms of scores with content. */
TEST(axes_are_terms_of_scores_with_content)
{
    fd_model model = fd_create();
    att_attention_terms terms = terms_of(model.graph, BOTH, 1);
    att_attention_options options = options_of(&terms, 1);
    options.value_heads = 0;
    att_value x = fd_input(&model, ATT_F64, att_shape_of(7, 3 * HEADS * WIDTH), 1, 0, 0);
    fd_loss_of(&model, att_attention(model.graph, x, ATT_NONE, ATT_NONE, &options));
    print_message("largest error of a gradient %.2g\n", fd_check(&model, "content", 1, 1e-8));
    fd_destroy(&model);
}

/* Compares an output of both samples in two scopes. */
static double difference_of(fd_run *run, const char *suffix)
{
    static double free_of_content[2 * MOST], full[2 * MOST];
    char name[2][64];
    snprintf(name[0], sizeof name[0], "free.%s", suffix), snprintf(name[1], sizeof name[1], "full.%s", suffix);
    int64_t count = 0;
    for (int i = 0; att_plan_output_at(run->plan, i).name; i++)
        if (!strcmp(att_plan_output_at(run->plan, i).name, name[1]))
            count = att_shape_count(att_plan_output_at(run->plan, i).shape);
    assert_in_range(count, 1, MOST);
    must(att_session_output(run->session, name[0], 0, 2, free_of_content));
    must(att_session_output(run->session, name[1], 0, 2, full));
    double worst = 0;
    for (int64_t i = 0; i < 2 * count; i++)
        worst = fmax(worst, isnan(free_of_content[i]) ? INFINITY : fabs(free_of_content[i] - full[i]));
    return worst;
}

/* Output and probes are those of attention whose queries and keys are 0. */
TEST(mixing_is_attention_with_zero_queries)
{
    static const char *const outputs[] = {"o", "map", "stats", "summary"};
    for (int prefix = 0; prefix < 3; prefix += 2)
        for (term_kind kind = 0; kind < KINDS; kind++) {
            fd_model model = fd_create();
            att_graph *graph = model.graph;
            att_value v = fd_input(&model, ATT_F64, values_shape(prefix), 1, 0, 0);
            att_value q = fd_input(&model, ATT_F64, att_shape_of(prefix + HEIGHT * BREADTH, HEADS), 0, 0, 0);
            att_attention_terms terms = terms_of(graph, kind, prefix);
            const att_attention_options options = options_of(&terms, prefix);
            att_graph_scope(graph, "free");
            att_graph_output(graph, "free.o", att_attention(graph, ATT_NONE, ATT_NONE, v, &options));
            att_graph_scope(graph, "full");
            att_graph_output(graph, "full.o", att_attention(graph, q, q, v, &options));
            must(att_graph_probe_attention_map(graph, "*"));
            must(att_graph_probe_attention_stats(graph, "*"));
            must(att_graph_probe_attention_summary(graph, "*"));
            fd_run run = fd_run_inference(&model);
            for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
                double difference = difference_of(&run, outputs[i]);
                if (!(difference < 1e-14)) /* 9e-16 */
                    fail_msg("%s of terms %d with %d prefix tokens differs by %g", outputs[i], kind, prefix,
                             difference);
            }
            fd_close(&run);
            fd_destroy(&model);
        }
}

/* --- encodings ---------------------------------------------------------------------------------------------------- */

/* Reads a derived value of two axes: zeros with the value added. */
static void read_derived(fd_model *model, att_value value, double *numbers)
{
    att_value zeros = fd_input(model, ATT_F64, att_value_shape(model->graph, value), 0, 0, 0);
    assert_int_equal(att_value_kind(model->graph, value), ATT_SHARED);
    att_graph_output(model->graph, "y", att_add(model->graph, zeros, value));
    fd_run run = fd_run_inference(model);
    must(att_session_output(run.session, "y", 0, 1, numbers));
    fd_close(&run);
}

/* Two heads on a grid of 2 x 3. */
static const double centers[] = {0.5, -1, -2, 0.25}, sharpness[] = {2, -0.5};
static const double factors[] = {1, 0.5, -0.25, 2, 0.3, 0, 1, -1};

static double quadratic(const double *s, const double *center, double y, double x)
{
    double dy = y - center[0], dx = x - center[1];
    double a = dy * s[0] + dx * s[2], b = dy * s[1] + dx * s[3];
    return -0.5 * (a * a + b * b);
}

/* Head m's number for the shift from a query at (0, 0) to a key at (y, x) is in row (1 - y) 5 + 2 - x: the table is
 * indexed by query minus key. */
TEST(quadratic_shifts_follow_their_formula)
{
    double table[15 * 2];
    fd_model model = fd_create();
    att_value c = att_graph_constant(model.graph, ATT_F64, att_shape_of(2, 2), centers);
    att_value s = att_graph_constant(model.graph, ATT_F64, att_shape_of(2, 2, 2), factors);
    read_derived(&model, att_quadratic_shifts(model.graph, 2, 3, c, s), table);
    for (int head = 0; head < 2; head++)
        for (int y = -1; y <= 1; y++)
            for (int x = -2; x <= 2; x++) {
                double expected = quadratic(factors + 4 * head, centers + 2 * head, y, x);
                assert_true(fabs(table[((1 - y) * 5 + 2 - x) * 2 + head] - expected) < 1e-13);
            }
    fd_destroy(&model);
}

TEST(isotropic_shifts_follow_their_formula)
{
    for (int axis = 0; axis < 2; axis++) {
        double table[5 * 2];
        int length = axis ? 3 : 2;
        fd_model model = fd_create();
        att_attention_terms terms = att_attention_no_terms();
        att_isotropic_shifts(model.graph, 2, 3, att_graph_constant(model.graph, ATT_F64, att_shape_of(2, 2), centers),
                             att_graph_constant(model.graph, ATT_F64, att_shape_of(2), sharpness), &terms);
        read_derived(&model, axis ? terms.column_shifts : terms.row_shifts, table);
        for (int head = 0; head < 2; head++)
            for (int d = 1 - length; d < length; d++) {
                double scaled = sharpness[head] * (d - centers[2 * head + axis]);
                assert_true(fabs(table[(length - 1 - d) * 2 + head] + 0.5 * scaled * scaled) < 1e-14);
            }
        fd_destroy(&model);
    }
}

/* A table of the grid is the sum of both axes and of the rest; prefix tokens only have numbers of the rest. */
TEST(joined_shifts_are_sums)
{
    static const double rest[18] = {[4] = 0.5, [15] = 7, [16] = 8, [17] = 9};
    static const double rows[] = {100, 200, 300}, columns[] = {1, 2, 3, 4, 5};
    double table[18];
    fd_model model = fd_create();
    att_attention_terms terms = att_attention_no_terms();
    terms.relative = att_graph_constant(model.graph, ATT_F64, att_shape_of(18, 1), rest);
    terms.row_shifts = att_graph_constant(model.graph, ATT_F64, att_shape_of(3, 1), rows);
    terms.column_shifts = att_graph_constant(model.graph, ATT_F64, att_shape_of(5, 1), columns);
    const att_attention_attrs attrs = {.heads = 1, .prefix = 1, .grid_h = 2, .grid_w = 3};
    read_derived(&model, att_join_shifts(model.graph, &attrs, &terms), table);
    for (int i = 0; i < 18; i++)
        assert_true(table[i] == rest[i] + (i < 15 ? rows[i / 5] + columns[i % 5] : 0));
    fd_destroy(&model);
}

/* A sharp head copies the token at its center: row 1, column 1 of the grid sees row 0, column 2 at the shift (-1, 1).
 */
TEST(a_sharp_head_selects_its_center)
{
    static const double one_center[] = {-1, 1}, sharp[] = {9};
    fd_model model = fd_create();
    att_value v = fd_input(&model, ATT_F64, att_shape_of(9, 1), 1, 0, 0);
    att_attention_terms terms = att_attention_no_terms();
    att_isotropic_shifts(model.graph, 3, 3, att_graph_constant(model.graph, ATT_F64, att_shape_of(1, 2), one_center),
                         att_graph_constant(model.graph, ATT_F64, att_shape_of(1), sharp), &terms);
    const att_attention_options options = {.heads = 1, .grid_h = 3, .grid_w = 3, .terms = &terms};
    att_graph_output(model.graph, "y", att_attention(model.graph, ATT_NONE, ATT_NONE, v, &options));
    fd_run run = fd_run_inference(&model);
    double y[9];
    must(att_session_output(run.session, "y", 0, 1, y));
    assert_true(fabs(y[4] - ((const double *)model.input[0].rows)[2]) < 1e-12);
    fd_close(&run);
    fd_destroy(&model);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void assert_refused(att_attention_terms (*terms_in)(att_graph *graph), att_attention_options options,
                           const char *message)
{
    fd_model model = fd_create();
    att_value v = fd_input(&model, ATT_F64, att_shape_of(6, 2), 1, 0, 0);
    att_attention_terms terms = terms_in(model.graph);
    options.heads = 2, options.terms = &terms;
    assert_int_equal(att_attention(model.graph, ATT_NONE, ATT_NONE, v, &options), ATT_NONE);
    assert_message(context, message);
    fd_destroy(&model);
}

static att_attention_terms none(att_graph *graph)
{
    (void)graph;
    return att_attention_no_terms();
}

static att_attention_terms table_of_2_x_3(att_graph *graph)
{
    att_attention_terms terms = att_attention_no_terms();
    terms.relative = parameter(graph, "relative", att_shape_of(15, 2));
    return terms;
}

static att_attention_terms one_axis(att_graph *graph)
{
    att_attention_terms terms = att_attention_no_terms();
    terms.row_shifts = parameter(graph, "rows", att_shape_of(3, 2));
    return terms;
}

static att_attention_terms of_the_image(att_graph *graph)
{
    att_attention_terms terms = table_of_2_x_3(graph);
    terms.rows = terms.columns = 0;
    return terms;
}

static att_attention_terms wrong_axes(att_graph *graph)
{
    att_attention_terms terms = table_of_2_x_3(graph);
    terms.row_shifts = parameter(graph, "rows", att_shape_of(5, 2));
    terms.column_shifts = parameter(graph, "columns", att_shape_of(5, 2));
    return terms;
}

TEST(what_has_no_meaning_is_refused)
{
    const att_attention_options grid = {.grid_h = 2, .grid_w = 3};
    assert_refused(none, grid, "without q and k scores need terms: relative, or row_shifts and column_shifts");
    assert_refused(one_axis, grid, "row_shifts and column_shifts must be given both or not at all");
    assert_refused(of_the_image, grid, "rows, columns and keys depend on the image");
    assert_refused(table_of_2_x_3, (att_attention_options){0}, "attention: terms need a grid");
    assert_refused(table_of_2_x_3, (att_attention_options){.grid_h = 2, .grid_w = 3, .causal = true},
                   "neither windows nor causality");
    assert_refused(table_of_2_x_3, (att_attention_options){.grid_h = 2, .grid_w = 3, .window_h = 1, .window_w = 3},
                   "neither windows nor causality");
    assert_refused(table_of_2_x_3, (att_attention_options){.grid_h = 3, .grid_w = 3},
                   "shift_scores: table [15, 2] does not fit a grid of 3 x 3");
    assert_refused(table_of_2_x_3, (att_attention_options){.grid_h = 2, .grid_w = 3, .prefix = 1},
                   "mix_tokens: 6 tokens without 1 prefix tokens do not fill a grid of 2 x 3");
    assert_refused(wrong_axes, grid, "attention: row_shifts [5, 2] must be a shared value [2 x 2 - 1, 2]");
}
