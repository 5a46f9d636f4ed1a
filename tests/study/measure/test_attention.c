/* Instruments of attention against closed forms: an attention whose queries, keys and values are inputs. */
#include "context.h"
#include "networks/models/family.h"
#include "study/measure/run.h"

SHARED_CONTEXT(threads, 0)

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
    const att_measurement m = figure(b->measure, instrument, "attn", statistic, head);
    assert_int_equal(m.count, SAMPLES);
    assert_true(m.deviation <= 1e-6);
    return m.mean;
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

TEST(uniform_attention_has_its_known_figures)
{
    uniform_attention_over(SIDE, SIDE);
    uniform_attention_over(SIDE * SIDE, 1);
    uniform_attention_over(1, SIDE * SIDE);
}

/* Patches of 8 x 16 pixels in a column: distances are in units of the image's height, 72 pixels, and not of its width.
 * The same in a row with an image 144 pixels wide, and with SIDE x SIDE patches, which are twice as wide as high. */
TEST(patches_that_are_not_square_have_their_own_steps)
{
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
TEST(the_unit_of_distance_is_no_larger_than_the_image)
{
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
TEST(sharp_rows_keep_their_digits)
{
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
TEST(one_hot_attention_has_its_known_figures)
{
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

TEST(entropy_is_bounded_by_the_keys_of_each_layer)
{
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
TEST(causal_entropy_is_bounded_by_the_keys_before)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F32, &graph));
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(5, 6));
    att_graph_scope(graph, "attn");
    att_graph_output(graph, "y",
                     att_attention(graph, x, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 1, .causal = true}));
    assert_true(fabs(bound_of(graph, "attn") - log(1 * 2 * 3 * 4 * 5) / 5) < 1e-12);
    att_graph_destroy(&graph);
}
