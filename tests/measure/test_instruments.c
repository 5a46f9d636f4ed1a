/* Instruments against closed forms, and that observing changes no result. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attscope/attscope.h>

#include "models/loss.h"

static att_context *context;

static void must(att_status status)
{
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(context));
}

static const att_measurement *find(const att_measurement *all, int count, const char *instrument, const char *node,
                                   const char *statistic, int head)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(all[i].instrument, instrument) && !strcmp(all[i].node, node) &&
            !strcmp(all[i].statistic, statistic) && all[i].head == head)
            return &all[i];
    fail_msg("no figure %s %s %s %d", instrument, node, statistic, head);
    return NULL;
}

/* --- closed forms: an attention whose q, k and v are inputs ------------------------------------------------------- */

enum { SIDE = 3, TOKENS = SIDE * SIDE + 1, HEADS = 2, WIDTH = 4, ROW = 3 * HEADS * WIDTH, SAMPLES = 3 };

typedef struct bare {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    float rows[SAMPLES][TOKENS][ROW];
} bare;

/* image: height and width of an image that nothing reads; NULL: none */
static void bare_make_of_image(bare *b, const char *with, int height, int width, double step_h, double step_w,
                               const int image[2])
{
    memset(b, 0, sizeof *b);
    must(att_graph_create(context, ATT_F32, &b->graph));
    if (image)
        att_graph_input(b->graph, "image", ATT_F32, att_shape_of(image[0], image[1], 1));
    att_value qkv = att_graph_input(b->graph, "qkv", ATT_F32, att_shape_of(TOKENS, ROW));
    att_graph_scope(b->graph, "attn");
    att_attention_options options = {
        .heads = HEADS, .scale = 1, .prefix = 1, .grid_h = height, .grid_w = width, .step_h = step_h, .step_w = step_w};
    att_graph_output(b->graph, "o", att_attention(b->graph, qkv, ATT_NONE, ATT_NONE, &options));
    must(att_measure_create(b->graph, with, "*", &b->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(b->graph, &plan, &b->plan));
    must(att_weights_create(b->graph, "cpu", &b->weights));
    must(att_session_create(b->plan, b->weights, SAMPLES, &b->session));
    must(att_session_bind(b->session, "qkv", b->rows));
}

static void bare_make_stepped(bare *b, const char *with, int height, int width, double step_h, double step_w)
{
    bare_make_of_image(b, with, height, width, step_h, step_w, NULL);
}

static void bare_make(bare *b, const char *with, int height, int width)
{
    bare_make_stepped(b, with, height, width, 0, 0);
}

static void bare_run(bare *b)
{
    must(att_session_run(b->session, SAMPLES));
    must(att_measure_observe(b->measure, b->session, SAMPLES, NULL));
}

static double bare_figure(bare *b, const char *instrument, const char *statistic, int head)
{
    const att_measurement *m =
        find(att_measure_all(b->measure), att_measure_count(b->measure), instrument, "attn", statistic, head);
    assert_int_equal(m->count, SAMPLES);
    assert_true(m->deviation <= 1e-6);
    return m->mean;
}

static void bare_free(bare *b)
{
    att_session_destroy(&b->session);
    att_weights_destroy(&b->weights);
    att_plan_destroy(&b->plan);
    att_measure_destroy(&b->measure);
    att_graph_destroy(&b->graph);
}

static const char *const attention_instruments = "entropy,distance,jacobian";

/* Returns the mean distance between two different positions of the grid, in its longer sides; with others_only false,
 * over all pairs of positions, including equal ones. */
static double mean_distance(int width, int longer, bool others_only)
{
    double sum = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int j = 0; j < SIDE * SIDE; j++)
            sum += hypot(i / width - j / width, i % width - j % width) / longer;
    return sum / (SIDE * SIDE) / (others_only ? SIDE * SIDE - 1 : TOKENS);
}

static void uniform_attention_over(int height, int width)
{
    static bare b;
    int longer = height > width ? height : width;
    bare_make(&b, attention_instruments, height, width);
    bare_run(&b); /* q = k = 0 */
    for (int head = -1; head < HEADS; head++) {
        double n = TOKENS;
        assert_true(fabs(bare_figure(&b, "entropy", "mean", head) - log(n)) < 1e-6);          /* measured: 0 to 2e-7 */
        assert_true(fabs(bare_figure(&b, "jacobian", "nuclear", head) - (1 - 1 / n)) < 1e-6); /* measured: 3e-8 */
        assert_true(fabs(bare_figure(&b, "jacobian", "frobenius", head) - sqrt(1 / n - 1 / (n * n))) < 1e-6);
        assert_true(fabs(bare_figure(&b, "distance", "mean", head) - mean_distance(width, longer, false)) <
                    1e-6); /* measured: 3e-8 */
        assert_true(fabs(bare_figure(&b, "distance", "renormalised", head) - mean_distance(width, longer, true)) <
                    1e-6);
    }
    for (int i = 0; i < att_measure_count(b.measure); i++) { /* the known value stands beside each figure */
        att_measurement m = att_measure_at(b.measure, i);
        assert_true(m.uniform > 0 && fabs(m.mean - m.uniform) < 1e-6); /* measured: at most 2e-7 */
    }
    bare_free(&b);
}

static void uniform_attention_has_its_known_figures(void **state)
{
    (void)state;
    uniform_attention_over(SIDE, SIDE);
    uniform_attention_over(SIDE * SIDE, 1);
    uniform_attention_over(1, SIDE * SIDE);
}

/* Patches of 8 x 16 pixels in a column: distances are in units of the image's height, 72 pixels, and not of its width.
 * The same in a row with an image 144 pixels wide, and with SIDE x SIDE patches, which are twice as wide as high. */
static void patches_that_are_not_square_have_their_own_steps(void **state)
{
    (void)state;
    static const struct {
        int height, width;
        double longer; /* longer side of the image */
    } grids[] = {{SIDE * SIDE, 1, 72}, {1, SIDE * SIDE, 144}, {SIDE, SIDE, 48}};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        static bare b;
        double sum = 0;
        for (int from = 0; from < SIDE * SIDE; from++)
            for (int to = 0; to < SIDE * SIDE; to++) {
                int width = grids[i].width;
                sum += hypot(8 * (from / width - to / width), 16 * (from % width - to % width)) / grids[i].longer;
            }
        bare_make_stepped(&b, "distance", grids[i].height, grids[i].width, 8, 16);
        bare_run(&b);
        double mean = bare_figure(&b, "distance", "mean", -1), others = bare_figure(&b, "distance", "renormalised", -1);
        assert_true(fabs(mean - sum / (SIDE * SIDE) / TOKENS) < 1e-6); /* measured: 3e-8 */
        assert_true(fabs(others - sum / (SIDE * SIDE) / (SIDE * SIDE - 1)) < 1e-6);
        bare_free(&b);
    }
}

/* 3 x 3 patches of 8 x 16 pixels cover 24 x 48 pixels. If the image has 20 x 40, the grid was padded, and the unit is
 * still the image's side. If it has 28 x 60, the patches leave out its edges, and the unit is the side of the rest. */
static void the_unit_of_distance_is_no_larger_than_the_image(void **state)
{
    (void)state;
    static const int padded[] = {20, 40}, cut[] = {28, 60};
    static bare b;
    double distances[2];
    for (int i = 0; i < 2; i++) {
        bare_make_of_image(&b, "distance", SIDE, SIDE, 8, 16, i ? cut : padded);
        static const float image[SAMPLES * 28 * 60];
        must(att_session_bind(b.session, "image", image));
        bare_run(&b);
        distances[i] = bare_figure(&b, "distance", "mean", -1);
        bare_free(&b);
    }
    assert_true(fabs(distances[0] / distances[1] - 48.0 / 40) < 1e-6); /* measured: 2e-8 */
}

/* Sums over a row of `equal` weights in the ratio 1 and others in the ratio e, of the terms of the norms of diag(a) -
 * a a', without a difference of near numbers: the largest weight's 1 - a is the sum of the others. */
static void norms_of_row(int equal, double e, double *nuclear, double *frobenius, double *entropy)
{
    double a[TOKENS], total = equal + (TOKENS - equal) * e, squares = 0;
    for (int i = 0; i < TOKENS; i++)
        a[i] = (i < equal ? 1 : e) / total;
    *nuclear = *entropy = 0;
    for (int i = 0; i < TOKENS; i++) {
        double rest = 0;
        for (int j = 0; j < TOKENS; j++)
            if (j != i) {
                rest += a[j];
                squares += a[i] * a[j] * a[i] * a[j];
            }
        squares += a[i] * rest * a[i] * rest;
        *nuclear += a[i] * rest;
        *entropy += a[i] > 0.5 ? -a[i] * log1p(-rest) : -a[i] * log(a[i]);
    }
    *frobenius = sqrt(squares);
}

/* One key (head 0) or two (head 1) have a score that is higher by `gap` than those of all others. The norms of the
 * Jacobian and the entropy keep their digits: the weight beside one key is 1e-7 at a gap of 18. */
static void sharp_rows_keep_their_digits(void **state)
{
    (void)state;
    for (int gap = 2; gap <= 18; gap += 4) {
        static bare b;
        bare_make(&b, attention_instruments, SIDE, SIDE);
        float *row = &b.rows[0][0][0];
        for (int sample = 0; sample < SAMPLES; sample++)
            for (int i = 0; i < TOKENS; i++, row += ROW)
                for (int head = 0; head < HEADS; head++) {
                    row[head * WIDTH] = 1;
                    row[(HEADS + head) * WIDTH] = (float)(i == 4 || (head == 1 && i == 7) ? gap : 0);
                }
        bare_run(&b);
        for (int head = 0; head < HEADS; head++) {
            double nuclear, frobenius, entropy;
            norms_of_row(head + 1, exp(-gap), &nuclear, &frobenius, &entropy);
            /* measured: 4.0e-7 */
            assert_true(fabs(bare_figure(&b, "jacobian", "nuclear", head) / nuclear - 1) < 1e-6);
            assert_true(fabs(bare_figure(&b, "jacobian", "frobenius", head) / frobenius - 1) < 1e-6);
            assert_true(fabs(bare_figure(&b, "entropy", "mean", head) / entropy - 1) < 1e-6);
            if (getenv("ATT_SHOW_ERRORS"))
                print_message("gap %d, head %d: %.1e %.1e %.1e\n", gap, head,
                              bare_figure(&b, "jacobian", "nuclear", head) / nuclear - 1,
                              bare_figure(&b, "jacobian", "frobenius", head) / frobenius - 1,
                              bare_figure(&b, "entropy", "mean", head) / entropy - 1);
        }
        bare_free(&b);
    }
}

/* q_i . k_j = 1000 [j = i + 1]: in head 0, each token attends to the next one, the last to the first; in head 1, to
 * itself. */
static void one_hot_attention_has_its_known_figures(void **state)
{
    (void)state;
    static bare b;
    bare_make(&b, attention_instruments, SIDE, SIDE);
    float *row = &b.rows[0][0][0];
    for (int sample = 0; sample < SAMPLES; sample++)
        for (int i = 0; i < TOKENS; i++, row += ROW)
            for (int head = 0; head < HEADS; head++) {
                double angle = 2 * acos(-1) / TOKENS;
                float *q = row + head * WIDTH, *k = row + (HEADS + head) * WIDTH;
                int wanted = head == 0 ? (i + 1) % TOKENS : i;
                q[0] = (float)(1000 * cos(angle * wanted)), q[1] = (float)(1000 * sin(angle * wanted));
                k[0] = (float)cos(angle * i), k[1] = (float)sin(angle * i);
            }
    bare_run(&b);
    for (int head = 0; head < HEADS; head++) {
        assert_true(fabs(bare_figure(&b, "entropy", "mean", head)) < 1e-6);
        assert_true(fabs(bare_figure(&b, "jacobian", "nuclear", head)) < 1e-6);
        assert_true(fabs(bare_figure(&b, "jacobian", "frobenius", head)) < 1e-6);
    }
    /* Token i attends to i + 1: a distance of 1 within a row, hypot(1, SIDE - 1) at its end, and 0 for the last token.
     * */
    double steps = SIDE * (SIDE - 1) + (SIDE - 1) * hypot(1, SIDE - 1);
    assert_true(fabs(bare_figure(&b, "distance", "mean", 0) - steps / SIDE / (SIDE * SIDE)) < 1e-6);
    assert_true(fabs(bare_figure(&b, "distance", "mean", 1)) < 1e-6);
    assert_true(fabs(bare_figure(&b, "distance", "renormalised", 1)) < 1e-6);
    bare_free(&b);
}

/* --- residual steps ------------------------------------------------------------------------------------------------
 */

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
    return find(att_measure_all(s->measure), att_measure_count(s->measure), instrument, node, statistic, -1)->mean;
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

static void steps_tell_their_stiffness(void **state)
{
    (void)state;
    steps_tell_their_stiffness_by("nsi,tns", false);
    steps_tell_their_stiffness_by("nsi:dt=all,tns:dt=all", true);
}

/* From before the first addition of a block to after its last. */
static void blocks_tell_their_stiffness(void **state)
{
    (void)state;
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

static void equal_tokens_have_no_residual(void **state)
{
    (void)state;
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
static void a_deviating_token_moves_the_mean_and_not_the_median(void **state)
{
    (void)state;
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

/* --- bounds of entropy ------------------------------------------------------------------------------------------- */

/* The bound of an attention layer's entropy, which all heads have. */
static double bound_of(att_graph *graph, const char *node)
{
    att_measure *measure;
    must(att_measure_create(graph, "entropy", node, &measure));
    assert_true(att_measure_count(measure) > 1);
    double bound = att_measure_at(measure, 0).bound;
    for (int i = 0; i < att_measure_count(measure); i++)
        assert_true(att_measure_at(measure, i).bound == bound);
    att_measure_destroy(&measure);
    return bound;
}

/* text: the value of the option `key` beside the sides of images, "img_size". */
static att_model *model_of(const char *name, int img_size, const char *key, const char *text)
{
    att_option_values options = att_options_none();
    att_model *model;
    att_options_set(&options, "img_size", img_size);
    att_options_set_text(&options, key, text);
    must(att_model_create(context, name, &options, ATT_F32, &model));
    return model;
}

static void entropy_is_bounded_by_the_keys_of_each_layer(void **state)
{
    (void)state;
    att_model *model = model_of("swin_tiny_patch4_window7_224", 64, "window_size", "8,4,4,2");
    att_graph *graph = att_model_graph(model);
    assert_true(bound_of(graph, "layers.0.blocks.0.attn") == log(64));
    assert_true(bound_of(graph, "layers.1.blocks.1.attn") == log(16));
    assert_true(bound_of(graph, "layers.3.blocks.1.attn") == log(4));
    att_model_destroy(&model);
    model = model_of("vit_tiny_patch16_224", 48, "global_pool", "map");
    graph = att_model_graph(model);
    assert_true(bound_of(graph, "blocks.3.attn") == log(10));
    assert_true(bound_of(graph, "attn_pool") == log(9)); /* one query, without the class token */
    att_model_destroy(&model);
    model = model_of("resnet18", 32, "attention_layers", "layer1.0.conv1"); /* 8 x 8 pixels and a ring of zeros */
    assert_true(bound_of(att_model_graph(model), "layer1.0.conv1*") == log(100));
    assert_int_equal(att_model_tokens(model), 100);
    att_model_destroy(&model);
}

/* Query i of a causal attention has i + 1 keys. */
static void causal_entropy_is_bounded_by_the_keys_before(void **state)
{
    (void)state;
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(5, 6));
    att_graph_scope(graph, "attn");
    att_graph_output(graph, "y",
                     att_attention(graph, x, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 1, .causal = true}));
    assert_true(fabs(bound_of(graph, "attn") - log(1 * 2 * 3 * 4 * 5) / 5) < 1e-12);
    att_graph_destroy(&graph);
}

/* --- networks ------------------------------------------------------------------------------------------------------
 */

enum { BATCH = 13, SIZE = 16, CLASSES = 7 };

static att_model *make_model(const char *broadcast, double init_values, double drop_path, bool loss)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIZE), att_options_set(&options, "patch_size", 4),
        att_options_set(&options, "in_chans", 3), att_options_set(&options, "num_classes", CLASSES);
    att_options_set(&options, "embed_dim", 48), att_options_set(&options, "num_heads", 3),
        att_options_set(&options, "depth", 3);
    att_options_set(&options, "init_values", init_values), att_options_set(&options, "drop_path_rate", drop_path);
    att_options_set_text(&options, "broadcast", broadcast);
    att_model *model;
    must(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model));
    if (loss)
        loss_add(model, 0);
    return model;
}

static float images[BATCH * SIZE * SIZE * 3];
static int32_t labels[BATCH];

static void fill_images(void)
{
    for (int i = 0; i < BATCH * SIZE * SIZE * 3; i++)
        images[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    for (int i = 0; i < BATCH; i++)
        labels[i] = i * 3 % CLASSES;
}

typedef enum observing { WITHOUT, WATCHED, LOOKED_AWAY } observing;

/* Returns the weights after three updates, which belong to the caller, and the plan's fingerprint. */
static float *train(const char *broadcast, double init_values, att_precision precision, observing how,
                    char *fingerprint, size_t size)
{
    att_model *model = make_model(broadcast, init_values, 0.2, true);
    att_measure *measure = NULL;
    if (how != WITHOUT)
        must(att_measure_create(att_model_graph(model), "all", "*", &measure));
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.precision = precision;
    att_update_options with = att_update_options_defaults();
    att_gradient *gradient;
    att_update *update;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    must(att_session_create(plan, weights, BATCH, &session));
    must(att_gradient_create(weights, &gradient));
    must(att_update_create(gradient, &with, &update));
    att_session_observe(session, how == WATCHED);
    must(att_session_bind(session, "image", images));
    must(att_session_bind(session, "target", labels));
    for (int step = 0; step < 3; step++) {
        att_hyper hyper = {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .update = step + 1};
        att_gradient_begin(gradient);
        must(att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 5, step, 0));
        must(att_update_reduce(update, NULL));
        must(att_update_apply(update, &hyper));
        if (how == WATCHED)
            must(att_measure_observe(measure, session, BATCH, labels));
    }
    if (how == LOOKED_AWAY)
        assert_int_equal(att_measure_observe(measure, session, BATCH, labels), ATT_ERR_ARGUMENT);
    snprintf(fingerprint, size, "%s", att_plan_fingerprint(plan));
    int64_t count = att_graph_parameter_elements(att_model_graph(model)), at = 0;
    float *values = malloc((size_t)count * sizeof *values);
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t own = att_shape_count(att_weights_at(weights, i).shape);
        must(att_weights_get(weights, -1, i, values + at, own));
        at += own;
    }
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return values;
}

static void observing_leaves_training_as_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *broadcast;
        double init_values;
    } networks[] = {{"none", 0}, {"cb", 0}, {"none", 0.3}, {"cb_s:init=0.1", 0.3}};
    int precisions = att_context_has_bf16(context) ? 2 : 1;
    if (precisions == 1)
        print_message("bf16 is left out: the processor has no AVX512_BF16\n");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int precision = 0; precision < precisions; precision++) {
            char names[3][512];
            float *weights[3];
            for (int how = 0; how < 3; how++)
                weights[how] = train(networks[i].broadcast, networks[i].init_values, (att_precision)precision,
                                     (observing)how, names[how], sizeof names[how]);
            att_model *model = make_model(networks[i].broadcast, networks[i].init_values, 0.2, true);
            size_t bytes = (size_t)att_graph_parameter_elements(att_model_graph(model)) * sizeof(float);
            att_model_destroy(&model);
            for (int how = 1; how < 3; how++) {
                assert_string_equal(names[how], names[0]);
                assert_memory_equal(weights[how], weights[0], bytes);
            }
            for (int how = 0; how < 3; how++)
                free(weights[how]);
        }
}

/* Computes figures and logits of an evaluation in batches of `batch`. */
static att_measurement *evaluate(const char *with, int batch, float *logits, int *count)
{
    att_model *model = make_model("cb", 0, 0, false);
    att_measure *measure = NULL;
    if (with)
        must(att_measure_create(att_model_graph(model), with, "*", &measure));
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    must(att_plan_compile(att_model_graph(model), &options, &plan));
    must(att_weights_create(att_model_graph(model), "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    must(att_session_create(plan, weights, batch, &session));
    for (int first = 0; first < BATCH; first += batch) {
        int size = BATCH - first < batch ? BATCH - first : batch;
        must(att_session_bind(session, "image", images + first * SIZE * SIZE * 3));
        must(att_session_run(session, size));
        must(att_session_output(session, "logits", 0, size, logits + first * CLASSES));
        if (with)
            must(att_measure_observe(measure, session, size, labels + first));
    }
    att_measurement *copy = NULL;
    if (with) {
        *count = att_measure_count(measure);
        copy = malloc((size_t)*count * sizeof *copy);
        memcpy(copy, att_measure_all(measure), (size_t)*count * sizeof *copy);
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_measure_destroy(&measure);
    att_model_destroy(&model);
    return copy;
}

/* Who reads a number wants to know whether it is large. */
static void every_instrument_has_a_scale(void **state)
{
    (void)state;
    for (int i = 0; i < att_instrument_count(NULL); i++) {
        const att_instrument_info info = att_instrument_at(NULL, i);
        if (!info.scales || !info.scales[0].text || !info.scales[0].source)
            fail_msg("%s has no scale", info.name);
    }
}

static void observing_leaves_logits_as_they_are(void **state)
{
    (void)state;
    float plain[BATCH * CLASSES], observed[BATCH * CLASSES];
    int count;
    evaluate(NULL, BATCH, plain, &count);
    free(evaluate("all", BATCH, observed, &count));
    assert_memory_equal(observed, plain, sizeof plain);
}

/* Ranks are counted here from the logits alone. */
static void accuracy_counts_ranks(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    int count, first = 0, among_five = 0, sixth = 0;
    att_measurement *all = evaluate("accuracy", BATCH, logits, &count);
    for (int i = 0; i < BATCH; i++) {
        int before = 0;
        for (int c = 0; c < CLASSES; c++)
            before += logits[i * CLASSES + c] > logits[i * CLASSES + labels[i]];
        first += before == 0;
        among_five += before < 5;
        sixth += before == 5;
    }
    assert_true(sixth > 0); /* otherwise the test would not check the limit of five */
    assert_float_equal(all[0].mean, 100.0 * first / BATCH, 1e-9);
    assert_float_equal(all[1].mean, 100.0 * among_five / BATCH, 1e-9);
    free(all);
}

static void figures_do_not_depend_on_batches(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    int whole_count, part_count;
    att_measurement *whole = evaluate("all", BATCH, logits, &whole_count);
    double most = 0;
    for (int batch = 1; batch < BATCH; batch += 4) {
        att_measurement *parts = evaluate("all", batch, logits, &part_count);
        assert_int_equal(part_count, whole_count);
        for (int i = 0; i < whole_count; i++) {
            assert_int_equal(parts[i].count, BATCH);
            assert_true(isfinite(parts[i].mean) && isfinite(parts[i].deviation) == isfinite(whole[i].deviation));
            most = fmax(most, fabs(parts[i].mean - whole[i].mean) / (1e-3 + fabs(whole[i].mean)));
        }
        free(parts);
    }
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("largest relative difference between batch sizes %.2g\n", most);
    assert_true(most < 1e-5);
    free(whole);
}

/* --- names ---------------------------------------------------------------------------------------------------------
 */

static void refused(const char *with, const char *nodes, att_status status, const char *words)
{
    att_model *model = make_model("none", 0, 0, false);
    att_measure *measure = NULL;
    assert_int_equal(att_measure_create(att_model_graph(model), with, nodes, &measure), status);
    assert_null(measure);
    if (!strstr(att_context_message(context), words))
        fail_msg("\"%s\" does not say \"%s\"", att_context_message(context), words);
    att_model_destroy(&model);
}

static void wrong_names_are_refused(void **state)
{
    (void)state;
    refused("entorpy", "*", ATT_ERR_NOT_FOUND, "did you mean \"entropy\"?");
    refused("entropy,", "*", ATT_ERR_NOT_FOUND, "available: accuracy");
    refused("", "*", ATT_ERR_NOT_FOUND, "there is no instrument \"\"");
    refused("nsi,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("all,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("accuracy,-accuracy", "*", ATT_ERR_ARGUMENT, "\"accuracy,-accuracy\" selects no instrument");
    refused("nsi:per=blocks", "*", ATT_ERR_ARGUMENT,
            "instrument nsi: per cannot be \"blocks\"; did you mean \"block\"?");
    refused("nsi:block", "*", ATT_ERR_ARGUMENT, "\"block\" is not option=value; did you mean \"per=block\"?");
    refused("entropy:per=block", "*", ATT_ERR_ARGUMENT, "instrument entropy has no options, and so no \"per\"");
    refused("nsi:per=block,per=block", "*", ATT_ERR_ARGUMENT, "instrument nsi: per is given twice");
    refused("path_samples:count=65", "*", ATT_ERR_ARGUMENT, "path_samples: count must be in 1..64, not 65");
    refused("path_samples:count=2,sead=1", "*", ATT_ERR_ARGUMENT, "has no option \"sead\"; did you mean \"seed\"?");
    refused("path_samples:count=2,seed=x,nsi", "*", ATT_ERR_ARGUMENT, "path_samples: seed must be a number");
    refused("all:count=2", "*", ATT_ERR_ARGUMENT, "\"all\" has no options");
    refused("nsi:per=block,nsi", "*", ATT_ERR_ARGUMENT, "named twice");
    refused("entropy", "layers.*", ATT_ERR_NOT_FOUND, "no attention that matches \"layers.*\"");
    refused("nsi", "blocks.9.*", ATT_ERR_NOT_FOUND, "no residual addition that matches");
}

static void patterns_choose_nodes(void **state)
{
    (void)state;
    att_model *model = make_model("none", 0, 0, false);
    att_measure *measure;
    must(att_measure_create(att_model_graph(model), "entropy", "blocks.1.*", &measure));
    assert_int_equal(att_measure_count(measure), 4); /* three heads, and all heads together */
    assert_string_equal(att_measure_at(measure, 0).node, "blocks.1.attn");
    assert_true(isnan(att_measure_at(measure, 0).mean));
    assert_int_equal(att_measure_instrument_count(measure), 1);
    assert_string_equal(att_measure_instrument_at(measure, 0).name, "entropy");
    att_measure_destroy(&measure);
    att_model_destroy(&model);
}

static int setup(void **state)
{
    (void)state;
    fill_images();
    att_settings settings = att_settings_defaults();
    settings.tier_cap = ATT_TIER_AVX512_BF16;
    return att_context_create(&settings, &context) == ATT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    att_context_destroy(&context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_attention_has_its_known_figures),
        cmocka_unit_test(patches_that_are_not_square_have_their_own_steps),
        cmocka_unit_test(the_unit_of_distance_is_no_larger_than_the_image),
        cmocka_unit_test(one_hot_attention_has_its_known_figures),
        cmocka_unit_test(sharp_rows_keep_their_digits),
        cmocka_unit_test(steps_tell_their_stiffness),
        cmocka_unit_test(blocks_tell_their_stiffness),
        cmocka_unit_test(equal_tokens_have_no_residual),
        cmocka_unit_test(a_deviating_token_moves_the_mean_and_not_the_median),
        cmocka_unit_test(entropy_is_bounded_by_the_keys_of_each_layer),
        cmocka_unit_test(causal_entropy_is_bounded_by_the_keys_before),
        cmocka_unit_test(observing_leaves_training_as_it_is),
        cmocka_unit_test(every_instrument_has_a_scale),
        cmocka_unit_test(observing_leaves_logits_as_they_are),
        cmocka_unit_test(accuracy_counts_ranks),
        cmocka_unit_test(figures_do_not_depend_on_batches),
        cmocka_unit_test(wrong_names_are_refused),
        cmocka_unit_test(patterns_choose_nodes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
