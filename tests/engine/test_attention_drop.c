/* Dropout of attention maps in whole plans. Values are unit vectors, so that the output of attention is its map. */
#include "engine/fixture.h"

enum { HEADS = 2, HEIGHT = 2, BREADTH = 3, TOKENS = HEIGHT * BREADTH, WIDTH = 4, BATCH = 4 };
enum { MAP = HEADS * TOKENS * TOKENS, STEPS = 500 };
static const double RATE = 0.3;

/* Scores by content; by position, as one table, and as rows and columns. */
typedef enum kind { CONTENT, TABLE, AXES, KINDS } kind;
static const char *const backends[] = {"ref", "cpu"};

static att_value parameter(att_graph *graph, const char *name, att_shape shape, double deviation)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, deviation}, false);
}

/* name: of the parameters, which differ between layers */
static att_attention_terms terms_of(att_graph *graph, kind which, const char *name)
{
    char rows[32], columns[32];
    att_attention_terms terms = att_attention_no_terms();
    snprintf(rows, sizeof rows, "%s.rows", name), snprintf(columns, sizeof columns, "%s.columns", name);
    if (which == TABLE)
        terms.relative = parameter(graph, name, att_shape_of((2 * HEIGHT - 1) * (2 * BREADTH - 1), HEADS), 1);
    if (which == AXES) {
        terms.row_shifts = parameter(graph, rows, att_shape_of(2 * HEIGHT - 1, HEADS), 1);
        terms.column_shifts = parameter(graph, columns, att_shape_of(2 * BREADTH - 1, HEADS), 1);
    }
    return terms;
}

static att_value attend(att_graph *graph, kind which, const char *name, att_value x, att_value v, double rate)
{
    const att_attention_terms terms = terms_of(graph, which, name);
    const att_attention_options options = {
        .heads = HEADS, .value_heads = 1, .grid_h = HEIGHT, .grid_w = BREADTH, .terms = &terms, .drop_rate = rate};
    att_value q = which == CONTENT ? x : ATT_NONE;
    return att_attention(graph, q, q, v, &options);
}

/* Adds the output "o" [N, H N], the maps of all heads, and a loss; with two layers, which have one scope, also the
 * output "second" of the other one. */
static void build(att_graph *graph, kind which, double rate, int layers)
{
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, HEADS * WIDTH));
    att_value units = att_graph_input(graph, "units", ATT_F32, att_shape_of(TOKENS, TOKENS));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value v = att_add(graph, units, parameter(graph, "v", att_shape_of(TOKENS, TOKENS), 0));
    att_graph_scope(graph, "attn");
    att_value o = attend(graph, which, "first", x, v, rate);
    att_graph_output(graph, "o", o);
    if (layers > 1)
        att_graph_output(graph, "second", attend(graph, which, "second", x, v, rate));
    att_graph_output(graph, "loss", att_cross_entropy(graph, att_token_mean(graph, o, 0), target, 0));
}

static void bind(att_session *session)
{
    static float x[BATCH * TOKENS * HEADS * WIDTH], units[BATCH * TOKENS * TOKENS];
    static int32_t targets[BATCH];
    for (int i = 0; i < BATCH * TOKENS * HEADS * WIDTH; i++)
        x[i] = (float)((i * 7919 + 13) % 1009) / 504.5F - 1;
    for (int i = 0; i < BATCH * TOKENS; i++)
        units[i * TOKENS + i % TOKENS] = 1;
    assert_int_equal(att_session_bind(session, "x", x), ATT_OK);
    assert_int_equal(att_session_bind(session, "units", units), ATT_OK);
    assert_int_equal(att_session_bind(session, "target", targets), ATT_OK);
}

typedef struct network {
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_gradient *gradient;
} network;

/* Takes ownership of the graph. */
static network open(att_graph *graph, const char *backend, att_purpose purpose)
{
    network n = {.plan = NULL};
    att_plan_options options = att_plan_options_defaults();
    options.backend = backend;
    options.purpose = purpose;
    if (att_graph_status(graph) != ATT_OK || att_plan_compile(graph, &options, &n.plan) != ATT_OK)
        fail_msg("%s", att_context_message(context));
    assert_int_equal(att_weights_create(graph, backend, &n.weights), ATT_OK);
    assert_int_equal(att_weights_initialise(n.weights, 3), ATT_OK);
    assert_int_equal(att_session_create(n.plan, n.weights, BATCH, &n.session), ATT_OK);
    if (purpose == ATT_TRAIN)
        assert_int_equal(att_gradient_create(n.weights, &n.gradient), ATT_OK);
    bind(n.session);
    att_graph_destroy(&graph);
    return n;
}

static network open_kind(kind which, double rate, const char *backend, att_purpose purpose)
{
    att_graph *graph = make_graph();
    build(graph, which, rate, 2);
    return open(graph, backend, purpose);
}

static void close(network *n)
{
    att_gradient_destroy(&n->gradient);
    att_session_destroy(&n->session);
    att_weights_destroy(&n->weights);
    att_plan_destroy(&n->plan);
}

/* The maps of `count` samples in an update, from position `first` of the update on. */
static void update(network *n, int64_t step, int count, int64_t first, float *maps)
{
    att_gradient_begin(n->gradient);
    assert_int_equal(att_session_accumulate(n->session, n->gradient, count, 1, 7, step, first), ATT_OK);
    assert_int_equal(att_session_output(n->session, "o", 0, count, maps), ATT_OK);
}

static void evaluate(network *n, float *maps)
{
    assert_int_equal(att_session_run(n->session, BATCH), ATT_OK);
    assert_int_equal(att_session_output(n->session, "o", 0, BATCH, maps), ATT_OK);
}

static int count_different(const float *a, const float *b, int count)
{
    int different = 0;
    for (int i = 0; i < count; i++)
        different += (a[i] == 0) != (b[i] == 0);
    return different;
}

/* Of all updates: each weight is 0 or 1 / (1 - rate) times that of inference, and the mean is that of inference. The
 * deviation of a mean of n draws is a sqrt(rate / (1 - rate) / n). Without content all samples have the same draws. */
static void check_draws(kind which, const char *backend)
{
    static float whole[BATCH * MAP], dropped[BATCH * MAP];
    static double sum[BATCH * MAP];
    network evaluation = open_kind(which, RATE, backend, ATT_INFER),
            training = open_kind(which, RATE, backend, ATT_TRAIN);
    double worst = 0;
    int zeros = 0;
    evaluate(&evaluation, whole);
    memset(sum, 0, sizeof sum);
    for (int step = 0; step < STEPS; step++) {
        update(&training, step, BATCH, 0, dropped);
        for (int i = 0; i < BATCH * MAP; i++) {
            double kept = whole[i] / (1 - RATE);
            if (dropped[i] != 0 && !(fabs(dropped[i] - kept) < 1e-6)) /* 1.2e-7 */
                fail_msg("%s: %g is neither 0 nor %g", backend, (double)dropped[i], kept);
            zeros += dropped[i] == 0;
            sum[i] += dropped[i];
        }
    }
    for (int i = 0; i < BATCH * MAP; i++)
        worst = fmax(worst, fabs(sum[i] / STEPS / whole[i] - 1) / sqrt(RATE / (1 - RATE) / STEPS));
    double share = zeros / ((double)BATCH * MAP * STEPS);
    printf("%s, kind %d: a mean is off by %.2g deviations, %.4g are dropped\n", backend, which, worst, share);
    assert_true(worst < 4.5);               /* 2.8, of 288 means */
    assert_true(fabs(share - RATE) < 0.01); /* 0.0029; without content its deviation is 0.0024 */
    close(&evaluation);
    close(&training);
}

TEST(the_mean_of_many_draws_is_the_map)
{
    for (kind which = 0; which < KINDS; which++)
        for (int b = 0; b < 2; b++)
            check_draws(which, backends[b]);
}

TEST(evaluation_does_not_drop)
{
    static float with[BATCH * MAP], without[BATCH * MAP];
    for (kind which = 0; which < KINDS; which++) {
        network dropping = open_kind(which, RATE, "cpu", ATT_INFER), plain = open_kind(which, 0, "cpu", ATT_INFER);
        evaluate(&dropping, with);
        evaluate(&plain, without);
        assert_memory_equal(with, without, sizeof with);
        close(&dropping);
        close(&plain);
    }
}

TEST(draws_belong_to_update_and_sample)
{
    static float all[BATCH * MAP], again[BATCH * MAP], next[BATCH * MAP], one[MAP];
    for (kind which = 0; which < KINDS; which++)
        for (int b = 0; b < 2; b++) {
            network n = open_kind(which, RATE, backends[b], ATT_TRAIN);
            update(&n, 3, BATCH, 0, all);
            update(&n, 4, BATCH, 0, next); /* the same weights */
            update(&n, 3, BATCH, 0, again);
            assert_memory_equal(all, again, sizeof all);
            assert_true(count_different(all, next, BATCH * MAP) > BATCH * MAP / 4); /* of 42 % */
            assert_int_equal(count_different(all, all + MAP, MAP) > 0, which == CONTENT);
            for (int sample = 0; sample < BATCH; sample++) {
                update(&n, 3, 1, sample, one); /* alone, at its place of the update */
                assert_int_equal(count_different(one, all + sample * MAP, MAP), 0);
            }
            close(&n);
        }
}

TEST(backends_drop_the_same_weights)
{
    static float maps[2][BATCH * MAP];
    for (kind which = 0; which < KINDS; which++) {
        for (int b = 0; b < 2; b++) {
            network n = open_kind(which, RATE, backends[b], ATT_TRAIN);
            update(&n, 3, BATCH, 0, maps[b]);
            close(&n);
        }
        assert_int_equal(count_different(maps[0], maps[1], BATCH * MAP), 0);
    }
}

TEST(attentions_of_one_scope_draw_apart)
{
    static float first[BATCH * MAP], second[BATCH * MAP];
    for (kind which = 0; which < KINDS; which++) {
        network n = open_kind(which, RATE, "cpu", ATT_TRAIN);
        update(&n, 3, BATCH, 0, first);
        assert_int_equal(att_session_output(n.session, "second", 0, BATCH, second), ATT_OK);
        assert_true(count_different(first, second, BATCH * MAP) > BATCH * MAP / 4); /* of 42 % */
        close(&n);
    }
}

/* Probes show the map without dropout, also in a training run. */
TEST(maps_for_probes_are_whole)
{
    static float whole[BATCH * MAP], probed[BATCH * MAP], dropped[BATCH * MAP];
    for (kind which = 0; which < KINDS; which++) {
        network evaluation = open_kind(which, 0, "cpu", ATT_INFER);
        att_graph *graph = make_graph();
        build(graph, which, RATE, 1);
        assert_int_equal(att_graph_probe_attention_map(graph, "attn"), ATT_OK);
        network training = open(graph, "cpu", ATT_TRAIN);
        evaluate(&evaluation, whole);
        update(&training, 3, BATCH, 0, dropped);
        assert_int_equal(att_session_output(training.session, "attn.map", 0, BATCH, probed), ATT_OK);
        for (int i = 0; i < BATCH * MAP; i++) {
            int sample = i / MAP, head = i / (TOKENS * TOKENS) % HEADS, query = i / TOKENS % TOKENS, key = i % TOKENS;
            float expected = whole[((sample * TOKENS + query) * HEADS + head) * TOKENS + key];
            if (!(fabsf(probed[i] - expected) < 1e-6F)) /* 6e-8 */
                fail_msg("weight %d of the map is %g, expected %g", i, (double)probed[i], (double)expected);
        }
        assert_true(count_different(dropped, whole, BATCH * MAP) > 0);
        close(&evaluation);
        close(&training);
    }
}

TEST(rates_outside_their_range_are_refused)
{
    static const double rates[] = {-0.1, 1, NAN};
    for (kind which = 0; which < KINDS; which++)
        for (int i = 0; i < 3; i++) {
            att_graph *graph = make_graph();
            build(graph, which, rates[i], 1);
            assert_fails(context, att_graph_status(graph), ATT_ERR_ARGUMENT, "drop_rate is");
            att_graph_destroy(&graph);
        }
}
