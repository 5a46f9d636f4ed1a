/* Ranks, singular values and similarity of tokens against closed forms. test_collapse.c compares whole networks with
 * PyTorch. */
#include <attscope/attscope.h>

#include "context.h"

SHARED_CONTEXT(threads, 0)

enum { TOKENS = 6, WIDTH = 8 };

/* x + branch, whose figures of the node "input" are those of x itself. */
typedef struct tokens {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
} tokens;

typedef att_value build_branch(att_graph *graph, att_value x, att_value attention);

static void branch_open(tokens *t, const char *with, build_branch *build)
{
    memset(t, 0, sizeof *t);
    must(att_graph_create(context, ATT_F32, &t->graph));
    att_value x = att_graph_input(t->graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    att_graph_scope(t->graph, "attn");
    const att_attention_options options = {.heads = 2, .scale = 1};
    att_value branch = build(t->graph, x, att_attention(t->graph, x, x, x, &options));
    att_graph_scope(t->graph, "add");
    att_graph_output(t->graph, "y", att_add(t->graph, x, branch));
    must(att_measure_create(t->graph, with, "*", &t->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(t->graph, &plan, &t->plan));
    must(att_weights_create(t->graph, "cpu", &t->weights));
    must(att_session_create(t->plan, t->weights, 1, &t->session));
}

static att_value attention_alone(att_graph *graph, att_value x, att_value attention)
{
    (void)graph, (void)x;
    return attention;
}

static void tokens_open(tokens *t, const char *with)
{
    branch_open(t, with, attention_alone);
}

static void tokens_close(tokens *t)
{
    att_session_destroy(&t->session);
    att_weights_destroy(&t->weights);
    att_plan_destroy(&t->plan);
    att_measure_destroy(&t->measure);
    att_graph_destroy(&t->graph);
}

static void tokens_run(tokens *t, float x[TOKENS][WIDTH])
{
    att_measure_clear(t->measure);
    must(att_session_bind(t->session, "x", x));
    must(att_session_run(t->session, 1));
    must(att_measure_observe(t->measure, t->session, 1, NULL));
}

static double figure(const tokens *t, const char *node, const char *statistic)
{
    for (int i = 0; i < att_measure_count(t->measure); i++) {
        const att_measurement m = att_measure_at(t->measure, i);
        if (strcmp(m.node, node) == 0 && strcmp(m.statistic, statistic) == 0)
            return m.mean;
    }
    fail_msg("no figure %s of %s", statistic, node);
    return NAN;
}

/* f32 input; f64 inside. Measured: 3e-8. */
static void is_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-5 * fmax(1, fabs(expected))))
        fail_msg("%.12g instead of %.12g", value, expected);
}

TEST(equal_tokens_have_rank_one)
{
    float x[TOKENS][WIDTH];
    tokens t;
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < WIDTH; c++)
            x[i][c] = (float)(i + 1) * (float)(c - 2); /* multiples of one token */
    tokens_open(&t, "rank,similarity");
    tokens_run(&t, x);
    is_near(figure(&t, "input", "effective both"), 1);
    is_near(figure(&t, "input", "stable both"), 1);
    is_near(figure(&t, "input", "cosine both"), 1);
    is_near(figure(&t, "add", "stable both"), 1);
    tokens_close(&t);
}

TEST(orthonormal_tokens_have_full_rank)
{
    float x[TOKENS][WIDTH] = {{0}};
    tokens t;
    for (int i = 0; i < TOKENS; i++)
        x[i][i] = 1;
    tokens_open(&t, "rank:spectrum=quantiles,similarity");
    tokens_run(&t, x);
    is_near(figure(&t, "input", "effective both"), TOKENS);
    is_near(figure(&t, "input", "stable both"), TOKENS);
    is_near(figure(&t, "input", "cosine both"), 0);
    is_near(figure(&t, "input", "quantile10 both"), 1);
    tokens_close(&t);
}

/* Rows of a diagonal matrix, rotated in the plane of the first two channels: the spectrum stays. */
TEST(a_known_spectrum_is_found)
{
    static const double spectrum[TOKENS] = {5, 3, 1, 0.5, 0.25, 1e-9};
    float x[TOKENS][WIDTH] = {{0}};
    double sum = 0, squares = 0, entropy = 0;
    tokens t;
    for (int i = 0; i < TOKENS; i++) {
        x[i][i] = (float)spectrum[i];
        sum += spectrum[i];
        squares += spectrum[i] * spectrum[i];
    }
    for (int i = 0; i < TOKENS; i++)
        entropy -= spectrum[i] / sum * log(spectrum[i] / sum);
    for (int i = 0; i < 2; i++) {
        const float a = x[i][0], b = x[i][1];
        x[i][0] = 0.6F * a - 0.8F * b;
        x[i][1] = 0.8F * a + 0.6F * b;
    }
    tokens_open(&t, "rank:spectrum=first");
    tokens_run(&t, x);
    is_near(figure(&t, "input", "effective both"), exp(entropy));
    is_near(figure(&t, "input", "stable both"), squares / 25);
    is_near(figure(&t, "input", "share1 both"), 5 / sum);
    is_near(figure(&t, "input", "share4 both"), 0.5 / sum);
    /* A Gram matrix would lose this one: (1e-9 / 5)^2 is below the precision of f64. */
    is_near(figure(&t, "input", "share6 both") * sum / 1e-9, 1);
    assert_true(isnan(figure(&t, "input", "share7 both")));
    tokens_close(&t);
}

TEST(quantiles_interpolate)
{
    static const double spectrum[TOKENS] = {10, 8, 6, 4, 2, 1};
    float x[TOKENS][WIDTH] = {{0}};
    tokens t;
    for (int i = 0; i < TOKENS; i++)
        x[i][i] = (float)spectrum[i];
    tokens_open(&t, "rank:spectrum=quantiles");
    tokens_run(&t, x);
    is_near(figure(&t, "input", "quantile10 both"), 0.15);
    is_near(figure(&t, "input", "quantile50 both"), 0.5);
    is_near(figure(&t, "input", "quantile90 both"), 0.9);
    tokens_close(&t);
}

TEST(tokens_without_a_rank_are_undefined)
{
    static float x[TOKENS][WIDTH];
    tokens t;
    tokens_open(&t, "rank");
    tokens_run(&t, x);
    assert_true(isnan(figure(&t, "input", "effective both")));
    x[2][3] = INFINITY;
    tokens_run(&t, x);
    assert_true(isnan(figure(&t, "input", "stable both")));
    x[2][3] = 1e30F; /* no overflow of squares in f32 */
    tokens_run(&t, x);
    is_near(figure(&t, "input", "stable both"), 1);
    tokens_close(&t);
}

TEST(parts_of_the_network_are_switched_off)
{
    float x[TOKENS][WIDTH] = {{0}};
    tokens t;
    for (int i = 0; i < TOKENS; i++)
        x[i][i] = 1e-3F; /* scores near 0: attention alone averages the tokens */
    tokens_open(&t, "rank:parts=all,similarity:parts=all");
    tokens_run(&t, x);
    assert_true(figure(&t, "add", "cosine attention") > 0.999);
    assert_true(figure(&t, "add", "stable attention") < 1.001);
    assert_true(figure(&t, "add", "stable skip") > 1.5);
    is_near(figure(&t, "add", "stable skip"), figure(&t, "add", "stable both"));
    tokens_close(&t);
}

static att_value quarter_of_attention(att_graph *graph, att_value x, att_value attention)
{
    (void)x;
    return att_combine(graph, 0.25, attention, 0, ATT_NONE);
}

static att_value mlp_after_attention(att_graph *graph, att_value x, att_value attention)
{
    return att_combine(graph, 0.25, attention, 3, att_gelu(graph, x));
}

static att_value mlp_before_attention(att_graph *graph, att_value x, att_value attention)
{
    return att_combine(graph, 3, att_gelu(graph, x), 0.25, attention);
}

/* Figures of a network with the branch `build`: of all parts, and without the MLP. */
static void ranks_of(build_branch *build, double *both, double *skip)
{
    float x[TOKENS][WIDTH];
    tokens t;
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < WIDTH; c++)
            x[i][c] = (float)((3 * i * i + 5 * i * c + 2 * c) % 7 - 3);
    branch_open(&t, "rank:parts=all", build);
    tokens_run(&t, x);
    *both = figure(&t, "add", "effective both"), *skip = figure(&t, "add", "effective skip");
    tokens_close(&t);
}

TEST(an_mlp_beside_attention_is_left_out_and_attention_keeps_its_weight)
{
    double expected, both, skip;
    ranks_of(quarter_of_attention, &expected, &skip);
    ranks_of(mlp_after_attention, &both, &skip);
    assert_true(fabs(both - expected) > 0.05); /* 0.11 */
    is_near(skip, expected);
    ranks_of(mlp_before_attention, &both, &skip);
    is_near(skip, expected);
}
