/* Closed forms of the instruments that read whole rows of maps, the types of heads, the weights of scores, and the
 * scale of CB_S. */
#include <attscope/ops.h>

#include "context.h"
#include "study/measure/run.h"

SHARED_CONTEXT(threads, 0)

static const double LIMIT = 5e-7; /* measured: at most 2e-7 */

/* A head of width N, whose queries are unit vectors, has the scores that its keys hold. */
enum { HEIGHT = 3, WIDTH = 4, PREFIX = 1, N = PREFIX + HEIGHT * WIDTH };
#define FAR (-1e4f) /* added to the scores of keys without weight */

/* Measures one head with the scores[i][j] of query i and key j. */
static run measure(const char *with, float scores[N][N])
{
    static float qkv[N * 3 * N];
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(N, 3 * N));
    const att_attention_options options = {.heads = 1, .scale = 1, .prefix = PREFIX, .grid_h = HEIGHT, .grid_w = WIDTH};
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &options));
    memset(qkv, 0, sizeof qkv);
    for (int i = 0; i < N; i++) {
        qkv[i * 3 * N + i] = 1;
        for (int j = 0; j < N; j++)
            qkv[j * 3 * N + N + i] = scores[i][j];
    }
    compile(&r, with);
    must(att_session_bind(r.session, "qkv", qkv));
    observe(&r);
    return r;
}

/* Scores of 0 for the `count` keys from i + first on, cyclically, and no weight on others. */
static void spread_over(float scores[N][N], int first, int count)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            scores[i][j] = (j - i - first + 2 * N) % N < count ? 0 : FAR;
}

/* --- density, norm and step --------------------------------------------------------------------------------------- */

static double entropy_of_two(double p)
{
    return -p * log(p) - (1 - p) * log(1 - p);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

TEST(uniform_rows)
{
    const double t = 2, factor = t / sqrt(1 - 1.0 / N), p = 1 / (1 + (N - 1) * exp(-factor));
    const double lost = log(N) - entropy_of_two(p) - (1 - p) * log(N - 1);
    static float scores[N][N];
    run r = measure("density,jacobian_spectral,entropy_step:length=2", scores);
    for (int head = -1; head < 1; head++) {
        expect(&r, "density", "mean", head, 0, 0);
        expect(&r, "jacobian_spectral", "spectral", head, 1.0 / N, LIMIT);
        expect(&r, "entropy_step", "learned length", head, lost, LIMIT);
    }
    expect(&r, "entropy_step", "uniform length", -1, lost, 1e-12);
    end(&r);
    r = measure("density:eps=0.999,entropy_step:length=0.01", scores);
    expect(&r, "density", "mean", 0, 1, 0);
    expect(&r, "entropy_step", "uniform length", -1, 1e-4 / (2 * N), 1e-7); /* t^2 / 2N; the next term has t^3 */
    expect(&r, "entropy_step", "uniform rate", -1, 1e-4 * (1 - 1.0 / N) / (2 * N * N * N), 1e-10);
    end(&r);
}

/* After one layer half of the class token comes from the skip connection, the rest from all tokens alike. The flow to a
 * token is then the capacity of its only edge. */
TEST(uniform_rows_leave_the_skip_and_a_flat_grid)
{
    static const char *const instruments[] = {"rollout", "flow"};
    static float scores[N][N];
    for (int from_mean = 0; from_mean < 2; from_mean++) {
        run r = measure(from_mean ? "rollout:from=mean,flow:from=mean" : "rollout,flow", scores);
        const double prefix = from_mean ? (double)PREFIX / N : 0.5 + 0.5 * PREFIX / N;
        for (int i = 0; i < 2; i++) {
            const double expected[] = {log(HEIGHT * WIDTH), 1.0 / (HEIGHT * WIDTH), 0.25, prefix};
            static const char *const statistics[] = {"entropy", "largest", "centre", "prefix"};
            for (int s = 0; s < 4; s++)
                assert_true(fabs(figure(r.measure, instruments[i], "", statistics[s], -1).mean - expected[s]) < LIMIT);
        }
        end(&r);
    }
}

/* Refuses a network whose maps have no common tokens, one whose maps are too large, and one with too many tokens. */
TEST(networks_that_cannot_be_followed_are_refused)
{
    static const struct {
        const char *model, *with, *reason;
        double side;
    } cases[] = {
        {"swin_tiny_patch4_window7_224", "rollout", "which attend to 49 keys each", 224},
        {"vit_tiny_patch16_224", "rollout", "with 16385 tokens have more than 2147483647 weights", 2048},
        {"vit_tiny_patch16_224", "flow", "290 tokens are more than 256", 272},
        {"resnet18", "flow", "no attention", 224},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_option_values options = att_options_none();
        att_model *model;
        att_measure *refused;
        att_options_set(&options, "img_size", cases[i].side);
        must(att_model_create(context, cases[i].model, strcmp(cases[i].model, "resnet18") ? &options : NULL, ATT_F32,
                              &model));
        assert_fails(context, att_measure_create(att_model_graph(model), cases[i].with, "*", &refused),
                     ATT_ERR_NOT_FOUND, cases[i].reason);
        att_model_destroy(&model);
    }
}

TEST(rows_with_two_equal_weights)
{
    const double t = 1.5;
    static float scores[N][N];
    spread_over(scores, 3, 2);
    run r = measure("density,jacobian_spectral,entropy_step:length=1.5", scores);
    expect(&r, "density", "mean", 0, 2.0 / N, LIMIT);
    expect(&r, "jacobian_spectral", "spectral", 0, 0.5, LIMIT);
    const double of_length = log(2) - entropy_of_two(logistic(sqrt(2) * t));
    const double of_rate = log(2) - entropy_of_two(logistic(t / 2));
    assert_true(fabs(figure(r.measure, "entropy_step", "", "sharp length", -1).mean - of_length) < 1e-12);
    assert_true(fabs(figure(r.measure, "entropy_step", "", "sharp rate", -1).mean - of_rate) < 1e-12);
    expect(&r, "entropy_step", "learned length", 0, of_length, LIMIT);
    expect(&r, "entropy_step", "learned rate", 0, of_rate, LIMIT);
    end(&r);
}

TEST(rows_with_one_weight)
{
    static float scores[N][N];
    spread_over(scores, 1, 1);
    run r = measure("density,jacobian_spectral,entropy_step", scores);
    expect(&r, "density", "mean", 0, 1.0 / N, LIMIT);
    expect(&r, "jacobian_spectral", "spectral", 0, 0, 0);
    expect(&r, "entropy_step", "learned length", 0, 0, 0);
    expect(&r, "entropy_step", "learned rate", 0, 0, 0);
    end(&r);
}

/* Two weights p and 1 - p have the eigenvalue 2 p (1 - p): exact digits, although 1 - p is known to 6e-8 only. */
TEST(a_nearly_sharp_row_keeps_its_digits)
{
    static float scores[N][N];
    spread_over(scores, 0, 2);
    for (int i = 0; i < N; i++)
        scores[i][(i + 1) % N] = -14;
    run r = measure("jacobian_spectral", scores);
    const double p = logistic(-14), expected = 2 * p * (1 - p);
    expect(&r, "jacobian_spectral", "spectral", 0, expected, 1e-6 * expected);
    end(&r);
}

/* --- types of heads ----------------------------------------------------------------------------------------------- */

static void expect_type(const char *type, const char *with, float scores[N][N])
{
    static const char *const types[] = {"local", "previous", "global", "uniform", "degenerate"};
    run r = measure(with, scores);
    for (int i = 0; i < 5; i++) {
        expect(&r, "head_types", types[i], 0, strcmp(types[i], type) == 0, 0);
        assert_true(figure(r.measure, "head_types", "", types[i], -1).mean == (strcmp(types[i], type) == 0));
    }
    end(&r);
}

/* All weight of grid queries on the token that is `down` and `right` away, within the grid. */
static void shift_by(float scores[N][N], int down, int right)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int y = (i - PREFIX) / WIDTH + down, x = (i - PREFIX) % WIDTH + right;
            y = y < 0 ? 0 : y >= HEIGHT ? HEIGHT - 1 : y, x = x < 0 ? 0 : x >= WIDTH ? WIDTH - 1 : x;
            scores[i][j] = i >= PREFIX && j == PREFIX + y * WIDTH + x ? 0 : FAR;
        }
}

TEST(each_type_of_head)
{
    static float scores[N][N];
    expect_type("uniform", "head_types", scores);
    expect_type("global", "head_types:uniform=1,local=0.9", (scores[3][2] = 4, scores));
    shift_by(scores, 0, -1); /* at the left edge, the distance from the previous token is 1 */
    expect_type("previous", "head_types:previous=0.51", scores);
    expect_type("local", "head_types:previous=0.49", scores);
    shift_by(scores, 1, 0);
    expect_type("local", "head_types", scores);
    shift_by(scores, 2, 3);
    expect_type("degenerate", "head_types", scores);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            scores[i][j] = j < PREFIX ? 0 : -10;
    expect_type("degenerate", "head_types", scores);
}

TEST(heads_without_a_grid_have_no_type)
{
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(N, 3 * N));
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 1}));
    assert_fails(context, att_measure_create(r.graph, "head_types", "*", &r.measure), ATT_ERR_NOT_FOUND,
                 "attention over a grid");
    end(&r);
}

/* --- weights of scores -------------------------------------------------------------------------------------------- */

enum { WIDE = 6, HEADS = 2, HALF = WIDE / HEADS };

/* Attention whose queries, keys and values are one linear layer. */
static run begin_layer(void)
{
    run r = begin();
    const att_init zero = {.rule = ATT_INIT_CONSTANT};
    att_value x = att_graph_input(r.graph, "x", ATT_F32, att_shape_of(N, WIDE));
    att_value weight = att_graph_parameter(r.graph, "qkv.weight", att_shape_of(3 * WIDE, WIDE), zero, true);
    att_value qkv = att_linear(r.graph, x, weight, ATT_NONE);
    att_graph_output(r.graph, "o",
                     att_attention(r.graph, qkv, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = HEADS}));
    return r;
}

static void observe_weights(run *r, const float weights[3 * WIDE][WIDE])
{
    static float x[N * WIDE];
    compile(r, "score_weights");
    must(att_weights_set(r->weights, -1, 0, weights, 3 * WIDE * WIDE));
    must(att_session_bind(r->session, "x", x));
    observe(r);
}

/* Rows of queries and keys that are multiples of unit vectors: the products of those with the same vector. */
TEST(weights_with_known_singular_values)
{
    static float weights[3 * WIDE][WIDE];
    for (int i = 0; i < HALF; i++) {
        weights[i][i] = 2, weights[WIDE + i][WIDE - 1 - i] = 3;                  /* head 0: 6 of each */
        weights[HALF + i][i] = (float)(i + 1), weights[WIDE + HALF + i][i] = -2; /* head 1: 2, 4, 6 */
    }
    weights[WIDE + HALF + 2][2] = 0; /* head 1: 2, 4, 0 */
    run r = begin_layer();
    observe_weights(&r, (const float(*)[WIDE])weights);
    expect(&r, "score_weights", "spectral", 0, 6 / sqrt(HALF), 1e-6);
    expect(&r, "score_weights", "spectral", 1, 4 / sqrt(HALF), 1e-6);
    expect(&r, "score_weights", "spectral", -1, 5 / sqrt(HALF), 1e-6);
    end(&r);
}

TEST(weights_that_are_not_finite_have_no_norm)
{
    static float weights[3 * WIDE][WIDE];
    weights[1][2] = NAN;
    run r = begin_layer();
    observe_weights(&r, (const float(*)[WIDE])weights);
    assert_int_equal(figure(r.measure, "score_weights", "attn", "spectral", 0).undefined, 1);
    expect(&r, "score_weights", "spectral", 1, 0, 0);
    end(&r);
}

TEST(scores_without_weights_are_refused)
{
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(N, 3 * N));
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &(att_attention_options){.heads = 1}));
    assert_fails(context, att_measure_create(r.graph, "score_weights", "*", &r.measure), ATT_ERR_NOT_FOUND,
                 "products of tokens with weights");
    end(&r);
}

/* --- the scale of CB_S -------------------------------------------------------------------------------------------- */

/* Tokens [2, count] with context broadcasting; scaled: CB_S. */
static run begin_broadcast(int count, bool scaled)
{
    run r = begin();
    const att_init zero = {.rule = ATT_INIT_CONSTANT};
    att_value x = att_graph_input(r.graph, "x", ATT_F32, att_shape_of(2, count));
    att_value scale = scaled ? att_graph_parameter(r.graph, "scale", att_shape_of(count), zero, false) : ATT_NONE;
    att_graph_output(r.graph, "y", att_context_broadcast(r.graph, x, scaled ? 1 : 0.5, 0.5, scale));
    return r;
}

TEST(quantiles_of_a_scale)
{
    static const float scale[] = {-4, 0.5F, 3, -1, 2, 5}, x[12];
    run r = begin_broadcast(6, true);
    compile(&r, "cbs_scale");
    must(att_weights_set(r.weights, -1, 0, scale, 6));
    must(att_session_bind(r.session, "x", x));
    observe(&r);
    expect(&r, "cbs_scale", "quantile 0.1", -1, 0.75, LIMIT); /* between 0.5 and 1 */
    expect(&r, "cbs_scale", "quantile 0.9", -1, 4.5, LIMIT);
    expect(&r, "cbs_scale", "ratio", -1, 0.75 / 4.5, LIMIT);
    expect(&r, "cbs_scale", "mean", -1, 15.5 / 6, LIMIT);
    end(&r);
}

TEST(broadcasting_without_a_scale_is_refused)
{
    run r = begin_broadcast(3, false);
    assert_fails(context, att_measure_create(r.graph, "cbs_scale", "*", &r.measure), ATT_ERR_NOT_FOUND,
                 "learned scale");
    end(&r);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Compiles one head of 256 tokens with the instrument in a context of its own. */
static run compile_long(const char *with, size_t limit)
{
    enum { TOKENS = 256, CHANNELS = 8 };
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.memory_limit = limit;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(TOKENS, 3 * CHANNELS));
    const att_attention_options options = {.heads = 1, .scale = 1, .grid_h = 16, .grid_w = 16};
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &options));
    must(att_measure_create(r.graph, with, "*", &r.measure));
    const att_plan_options planned = att_plan_options_defaults();
    must(att_plan_compile(r.graph, &planned, &r.plan));
    must(att_weights_create(r.graph, "cpu", &r.weights));
    return r;
}

static void expect_refused(const char *with)
{
    enum { BATCH = 1024 };
    att_context *shared = context;
    run r = compile_long(with, 0);
    const size_t peak = att_context_allocations(context).bytes_peak;
    must(att_session_create(r.plan, r.weights, BATCH, &r.session));
    const size_t needed = att_context_allocations(context).bytes_peak;
    end(&r);
    att_context_destroy(&context);
    assert_true(needed > peak + (1 << 20));
    r = compile_long(with, needed - (needed - peak) / 4);
    const size_t before = att_context_allocations(context).bytes_now;
    assert_int_equal(att_session_create(r.plan, r.weights, BATCH, &r.session), ATT_ERR_MEMORY);
    assert_null(r.session);
    assert_message(context, "memory");
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    assert_true(att_context_allocations(context).bytes_peak <= peak);
    end(&r);
    att_context_destroy(&context);
    context = shared;
}

TEST(sizes_beyond_the_memory_limit_are_refused_before_allocating)
{
    expect_refused("density");
    expect_refused("jacobian_spectral");
    expect_refused("entropy_step");
}
