/* Instruments of residual steps against closed forms: a sum whose branches are inputs. */
#include "context.h"
#include "study/measure/run.h"

SHARED_CONTEXT(threads, 0)

enum { STEPS = 4, COLUMNS = 5, LINES = 6 };

/* x + f1 + f2 + ...: every branch is an input; the third has two gates of 2. */
typedef struct steps {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    float rows[STEPS + 1][2][LINES][COLUMNS];
} steps;

/* in_block: number of additions that share a name, "b0.f1" and "b0.f2"; 0: each has its own, "f1". */
static void steps_make_in(steps *s, const char *with, int in_block)
{
    memset(s, 0, sizeof *s);
    must(att_graph_create(context, ATT_F32, &s->graph));
    att_value x = ATT_NONE, gamma = att_graph_parameter(s->graph, "gamma", att_shape_of(COLUMNS),
                                                        (att_init){ATT_INIT_CONSTANT, 2}, false);
    for (int i = 0; i <= STEPS; i++) {
        char name[16], scope[40];
        snprintf(name, sizeof name, "f%d", i);
        if (in_block > 0)
            snprintf(scope, sizeof scope, "b%d.%s", (i - 1) / in_block, name);
        else
            snprintf(scope, sizeof scope, "%s", name);
        att_value f = att_graph_input(s->graph, name, ATT_F32, att_shape_of(LINES, COLUMNS));
        att_graph_scope(s->graph, scope);
        x = i == 0 ? f : att_add(s->graph, x, i == 3 ? att_scale(s->graph, att_scale(s->graph, f, gamma), gamma) : f);
    }
    att_graph_output(s->graph, "x", x);
    must(att_measure_create(s->graph, with, "*", &s->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(s->graph, &plan, &s->plan));
    must(att_weights_create(s->graph, "cpu", &s->weights));
    must(att_weights_initialise(s->weights, 1));
    must(att_session_create(s->plan, s->weights, 2, &s->session));
    for (int i = 0; i <= STEPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        must(att_session_bind(s->session, name, s->rows[i]));
    }
}

static void steps_make(steps *s, const char *with)
{
    steps_make_in(s, with, 0);
}

static double steps_figure(steps *s, const char *instrument, const char *node, const char *statistic)
{
    return figure(s->measure, instrument, node, statistic, -1).mean;
}

static void steps_free(steps *s)
{
    att_session_destroy(&s->session);
    att_weights_destroy(&s->weights);
    att_plan_destroy(&s->plan);
    att_measure_destroy(&s->measure);
    att_graph_destroy(&s->graph);
}

static double norm(const float *x)
{
    double sum = 0;
    for (int i = 0; i < LINES * COLUMNS; i++)
        sum += (double)x[i] * x[i];
    return sqrt(sum);
}

/* Integrates 1[zeta* >= max(mu (1 + M1), M2)] over a grid, with midpoints. */
static double tns_by_grid(double largest, double mean)
{
    enum { CELLS = 2000 };
    double width1 = 2 * (largest / mean) / CELLS, width2 = 2 * largest / CELLS, sum = 0;
    for (int i = 0; i < CELLS; i++)
        for (int j = 0; j < CELLS; j++)
            sum += largest >= fmax(mean * (1 + (i + 0.5) * width1), (j + 0.5) * width2);
    return sum * width1 * width2;
}

/* The factor of the third branch counts as dt if all factors do; it is no gate of a module. */
static void steps_tell_their_stiffness_by(const char *with, bool all_factors)
{
    static steps s;
    steps_make(&s, with);
    for (int i = 0; i <= STEPS; i++)
        for (int e = 0; e < LINES * COLUMNS; e++)
            (&s.rows[i][0][0][0])[e] = (float)sin(1.7 * i + e) * (float)(1 + 0.3 * i);
    must(att_session_run(s.session, 1));
    must(att_measure_observe(s.measure, s.session, 1, NULL));

    float x[LINES * COLUMNS];
    memcpy(x, s.rows[0][0], sizeof x);
    double largest = 0, mean = 0;
    for (int i = 1; i <= STEPS; i++) {
        char node[16];
        snprintf(node, sizeof node, "f%d", i);
        const float *f = &s.rows[i][0][0][0];
        double gate = i == 3 ? 4 : 1, added = gate * norm(f) / norm(x), zeta = all_factors ? added / gate : added;
        assert_true(fabs(steps_figure(&s, "nsi", node, "attention") - zeta) < 1e-6 * zeta);
        assert_true(fabs(steps_figure(&s, "nsi", node, "gated") - added) < 1e-6 * added);
        assert_true(fabs(steps_figure(&s, "nsi", node, "unit") - added) < 1e-6 * added);
        if (i > 1) {
            largest = fmax(largest, zeta);
            mean += zeta / (STEPS - 1);
        }
        for (int e = 0; e < LINES * COLUMNS; e++)
            x[e] += (float)gate * f[e];
    }
    double tns = steps_figure(&s, "tns", "", "tns attention");
    assert_true(fabs(tns - largest * (largest / mean - 1)) < 1e-5);
    assert_true(fabs(tns - tns_by_grid(largest, mean)) < 2e-3 * largest * largest / mean); /* the edge cuts cells */
    assert_true(fabs(steps_figure(&s, "tns", "", "zeta* attention") - largest) < 1e-6);
    assert_true(fabs(steps_figure(&s, "tns", "", "mu attention") - mean) < 1e-6);
    assert_true(fabs(steps_figure(&s, "tns", "", "zeta*/mu attention") - largest / mean) < 1e-5);
    steps_free(&s);
}

TEST(steps_tell_their_stiffness)
{
    steps_tell_their_stiffness_by("nsi,tns", false);
    steps_tell_their_stiffness_by("nsi:dt=all,tns:dt=all", true);
}

/* From before the first addition of a block to after its last. */
TEST(blocks_tell_their_stiffness)
{
    static steps s;
    steps_make_in(&s, "nsi:per=block", 2);
    for (int i = 0; i <= STEPS; i++)
        for (int e = 0; e < LINES * COLUMNS; e++)
            (&s.rows[i][0][0][0])[e] = (float)sin(1.7 * i + e) * (float)(1 + 0.3 * i);
    must(att_session_run(s.session, 1));
    must(att_measure_observe(s.measure, s.session, 1, NULL));
    assert_int_equal(att_measure_count(s.measure), 2);
    float x[LINES * COLUMNS], change[LINES * COLUMNS];
    memcpy(x, s.rows[0][0], sizeof x);
    for (int block = 0; block < 2; block++) {
        char node[16];
        snprintf(node, sizeof node, "b%d", block);
        for (int e = 0; e < LINES * COLUMNS; e++)
            change[e] = (block == 1 ? 4.0f : 1.0f) * (&s.rows[2 * block + 1][0][0][0])[e] +
                        (&s.rows[2 * block + 2][0][0][0])[e];
        double zeta = norm(change) / norm(x);
        assert_true(fabs(steps_figure(&s, "nsi", node, "block") - zeta) < 1e-6 * zeta);
        for (int e = 0; e < LINES * COLUMNS; e++)
            x[e] += change[e];
    }
    steps_free(&s);
}

TEST(equal_tokens_have_no_residual)
{
    static steps s;
    steps_make(&s, "residual");
    for (int i = 0; i <= STEPS; i++)
        for (int e = 0; e < LINES * COLUMNS; e++)
            (&s.rows[i][0][0][0])[e] = (float)(1 + e % COLUMNS);
    s.rows[4][0][0][0] += 6; /* one token differs in one channel: the mean changes by 1 */
    must(att_session_run(s.session, 1));
    must(att_measure_observe(s.measure, s.session, 1, NULL));
    assert_true(steps_figure(&s, "residual", "input", "composite") < 1e-7);
    assert_true(steps_figure(&s, "residual", "f3", "frobenius") < 1e-7);
    /* X = 8 (1..5) in each row, and one element is 6 larger: column sums 48 k, the first 54; row sums 120, one 126.
     * res: first column (5, -1, -1, -1, -1, -1). */
    double composite = sqrt(10.0 * 5.0) / sqrt(fmax(240.0, 54.0) * 126.0);
    assert_true(fabs(steps_figure(&s, "residual", "f4", "composite") - composite) < 1e-6);
    double frobenius = sqrt(30.0) / sqrt(6 * 64 * 55.0 - 64 + 196);
    assert_true(fabs(steps_figure(&s, "residual", "f4", "frobenius") - frobenius) < 1e-6);
    steps_free(&s);
}

/* One different token of six changes the mean but not the median. */
TEST(a_deviating_token_moves_the_mean_and_not_the_median)
{
    static steps s;
    steps_make(&s, "residual:centre=median");
    for (int i = 0; i <= STEPS; i++)
        for (int e = 0; e < LINES * COLUMNS; e++)
            (&s.rows[i][0][0][0])[e] = (float)(1 + e % COLUMNS);
    s.rows[4][0][0][0] += 6;
    must(att_session_run(s.session, 1));
    must(att_measure_observe(s.measure, s.session, 1, NULL));
    assert_true(steps_figure(&s, "residual", "input", "composite median") == 0);
    double composite = sqrt(6.0 * 6.0) / sqrt(240.0 * 126.0);
    assert_true(fabs(steps_figure(&s, "residual", "f4", "composite median") - composite) < 1e-6);
    double frobenius = 6 / sqrt(6 * 64 * 55.0 - 64 + 196);
    assert_true(fabs(steps_figure(&s, "residual", "f4", "frobenius median") - frobenius) < 1e-6);
    steps_free(&s);
}
