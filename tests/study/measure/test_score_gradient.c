/* The gradient of the scores against finite differences of the loss in f64. */
#include "context.h"
#include "study/measure/run.h"

SHARED_CONTEXT(threads, 0)

enum { TOKENS = 5, HEADS = 2, WIDTH = 2, CHANNELS = HEADS * WIDTH, CLASSES = CHANNELS, IMAGES = 3, BINS = 10 };
enum { ROWS = HEADS * TOKENS };

static const int32_t labels[IMAGES] = {1, -1, 3};
static const char *const bins[BINS] = {"norm 0.0-0.1", "norm 0.1-0.2", "norm 0.2-0.3", "norm 0.3-0.4", "norm 0.4-0.5",
                                       "norm 0.5-0.6", "norm 0.6-0.7", "norm 0.7-0.8", "norm 0.8-0.9", "norm 0.9-1.0"};

/* Queries, keys and values of an image. The length of the queries grows with the token: the rows of the first are
 * uniform, those of the last sharp. */
typedef struct image {
    float q[TOKENS * CHANNELS], k[TOKENS * CHANNELS], v[TOKENS * CHANNELS];
} image;

static image draw(int number)
{
    image x;
    for (uint32_t i = 0; i < TOKENS * CHANNELS; i++) {
        uint32_t at = (uint32_t)number * TOKENS * CHANNELS + i;
        x.q[i] = (float)(4 * (i / CHANNELS) * formula("q", at));
        x.k[i] = (float)(4 * formula("k", at));
        x.v[i] = (float)(4 * formula("v", at));
    }
    return x;
}

/* --- the expected figures ----------------------------------------------------------------------------------------- */

typedef struct scores {
    double of[ROWS][TOKENS];
} scores;

static scores scores_of(const image *x)
{
    scores s = {{{0}}};
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < TOKENS; j++)
            for (int c = 0; c < WIDTH; c++) {
                int head = row / TOKENS, i = row % TOKENS;
                s.of[row][j] += (double)x->q[i * CHANNELS + head * WIDTH + c] *
                                (double)x->k[j * CHANNELS + head * WIDTH + c] / sqrt(WIDTH);
            }
    return s;
}

static void softmax(const double *from, double *to, int count)
{
    double sum = 0, largest = from[0];
    for (int i = 0; i < count; i++)
        largest = fmax(largest, from[i]);
    for (int i = 0; i < count; i++)
        sum += to[i] = exp(from[i] - largest);
    for (int i = 0; i < count; i++)
        to[i] /= sum;
}

/* The logits are the mean of attention's output over the tokens. */
static double loss_of(const image *x, const scores *s, int label)
{
    double logits[CLASSES] = {0}, p[CLASSES];
    for (int row = 0; row < ROWS; row++) {
        double a[TOKENS];
        softmax(s->of[row], a, TOKENS);
        for (int j = 0; j < TOKENS; j++)
            for (int c = 0; c < WIDTH; c++) {
                int channel = row / TOKENS * WIDTH + c;
                logits[channel] += a[j] * (double)x->v[j * CHANNELS + channel] / TOKENS;
            }
    }
    softmax(logits, p, CLASSES);
    return -log(p[label]);
}

static double norm_of(const image *x, scores *s, int row, int label)
{
    const double step = 1e-4; /* an error of about step^2 times third derivatives, which are below 1 */
    double squares = 0;
    for (int j = 0; j < TOKENS; j++) {
        const double at = s->of[row][j];
        s->of[row][j] = at + step;
        double above = loss_of(x, s, label);
        s->of[row][j] = at - step;
        double slope = (above - loss_of(x, s, label)) / (2 * step);
        s->of[row][j] = at;
        squares += slope * slope;
    }
    return sqrt(squares);
}

static double normalised_entropy(const double *row)
{
    double a[TOKENS], entropy = 0;
    softmax(row, a, TOKENS);
    for (int j = 0; j < TOKENS; j++)
        entropy -= a[j] > 0 ? a[j] * log(a[j]) : 0;
    return fmin(1, entropy / log(TOKENS));
}

/* All rows of the images that have a class. */
typedef struct rows {
    double entropy[IMAGES * ROWS], norm[IMAGES * ROWS];
    int count;
} rows;

static rows expected_rows(void)
{
    rows all = {.count = 0};
    for (int i = 0; i < IMAGES; i++) {
        const image x = draw(i);
        scores s = scores_of(&x);
        for (int row = 0; row < ROWS && labels[i] >= 0; row++) {
            all.entropy[all.count] = normalised_entropy(s.of[row]);
            all.norm[all.count++] = norm_of(&x, &s, row, labels[i]);
        }
    }
    return all;
}

static double correlation_of(const rows *all)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < all->count; i++) {
        x += all->entropy[i] / all->count;
        y += log(all->norm[i]) / all->count;
    }
    for (int i = 0; i < all->count; i++) {
        double dx = all->entropy[i] - x, dy = log(all->norm[i]) - y;
        xx += dx * dx, yy += dy * dy, xy += dx * dy;
    }
    return xy / sqrt(xx * yy);
}

/* --- the measured figures ----------------------------------------------------------------------------------------- */

static run measured(const char *with)
{
    run r = begin();
    att_value x[3];
    static const char *const names[3] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++)
        x[i] = att_graph_input(r.graph, names[i], ATT_F32, att_shape_of(TOKENS, CHANNELS));
    const att_attention_options options = {.heads = HEADS};
    att_graph_output(r.graph, "logits", att_global_mean(r.graph, att_attention(r.graph, x[0], x[1], x[2], &options)));
    compile(&r, with);
    for (int i = 0; i < IMAGES; i++) {
        const image drawn = draw(i);
        must(att_session_bind(r.session, "q", drawn.q));
        must(att_session_bind(r.session, "k", drawn.k));
        must(att_session_bind(r.session, "v", drawn.v));
        must(att_session_run(r.session, 1));
        must(att_measure_observe(r.measure, r.session, 1, &labels[i]));
    }
    return r;
}

static double worst;

static void close_to(const char *what, double found, double expected)
{
    const double limit = 5e-6; /* measured: 9.8e-7 */
    double error = fabs(found - expected) / fabs(expected);
    worst = fmax(worst, error);
    if (!(error <= limit))
        fail_msg("%s is %.9g, should be %.9g", what, found, expected);
}

TEST(norms_are_those_of_finite_differences)
{
    run r = measured("score_gradient");
    const rows all = expected_rows();
    int filled = 0;
    assert_int_equal(all.count, 2 * ROWS);
    for (int b = 0; b < BINS; b++) {
        double sum = 0, squares = 0;
        int count = 0;
        for (int i = 0; i < all.count; i++)
            if (all.entropy[i] >= 0.1 * b && (b == BINS - 1 || all.entropy[i] < 0.1 * (b + 1)))
                sum += all.norm[i], count++;
        for (int i = 0; i < all.count; i++)
            if (all.entropy[i] >= 0.1 * b && (b == BINS - 1 || all.entropy[i] < 0.1 * (b + 1)))
                squares += (all.norm[i] - sum / count) * (all.norm[i] - sum / count);
        const char *const nodes[] = {"attn", ""};
        for (int n = 0; n < 2; n++) {
            att_measurement m = figure(r.measure, "score_gradient", nodes[n], bins[b], -1);
            assert_int_equal(m.count, count);
            if (count > 0)
                close_to(bins[b], m.mean, sum / count);
            if (count > 1)
                close_to("a deviation", m.deviation, sqrt(squares / (count - 1)));
        }
        filled += count > 0;
    }
    assert_true(filled >= 7);
    att_measurement m = figure(r.measure, "score_gradient", "attn", "correlation", -1);
    assert_int_equal(m.count, all.count);
    close_to("the correlation", m.mean, correlation_of(&all));
    printf("%d of %d bins, largest relative error %.1e\n", filled, BINS, worst);
    end(&r);
}

/* Two equal layers, all of whose scores are equal: row i of a causal map has i + 1 keys, the first of which has no
 * entropy that could be less. The figures of the network join the rows of both layers. */
TEST(the_network_joins_layers_and_rows_of_one_key_are_left_out)
{
    static const float zeros[TOKENS * CHANNELS];
    static const int32_t label = 2;
    const image drawn = draw(0);
    run r = begin();
    att_value x[3], o[2];
    static const char *const names[3] = {"q", "k", "v"}, *const layers[2] = {"one", "two"};
    for (int i = 0; i < 3; i++)
        x[i] = att_graph_input(r.graph, names[i], ATT_F32, att_shape_of(TOKENS, CHANNELS));
    for (int i = 0; i < 2; i++) {
        const att_attention_options options = {.heads = HEADS, .causal = true};
        att_graph_scope(r.graph, layers[i]);
        o[i] = att_attention(r.graph, x[0], x[1], x[2], &options);
    }
    att_graph_output(r.graph, "logits", att_global_mean(r.graph, att_add(r.graph, o[0], o[1])));
    compile(&r, "score_gradient");
    must(att_session_bind(r.session, "q", zeros));
    must(att_session_bind(r.session, "k", zeros));
    must(att_session_bind(r.session, "v", drawn.v));
    must(att_session_run(r.session, 1));
    must(att_measure_observe(r.measure, r.session, 1, &label));
    const att_measurement one = figure(r.measure, "score_gradient", "one", bins[BINS - 1], -1);
    const att_measurement two = figure(r.measure, "score_gradient", "two", bins[BINS - 1], -1);
    const att_measurement all = figure(r.measure, "score_gradient", "", bins[BINS - 1], -1);
    assert_int_equal(one.count, HEADS * (TOKENS - 1));
    assert_int_equal(all.count, 2 * one.count);
    assert_true(one.mean > 0 && one.mean == two.mean && fabs(all.mean - one.mean) < 1e-12 * one.mean);
    const att_measurement correlation = figure(r.measure, "score_gradient", "", "correlation", -1);
    assert_true(isnan(correlation.mean)); /* all entropies are the largest */
    assert_int_equal(correlation.count, 2 * HEADS * TOKENS);
    end(&r);
}

TEST(attention_without_queries_and_keys_is_refused)
{
    run r = begin();
    att_attention_terms terms = att_attention_no_terms();
    terms.relative =
        att_graph_parameter(r.graph, "t", att_shape_of(2 * TOKENS - 1, HEADS), (att_init){ATT_INIT_CONSTANT, 0}, false);
    att_value v = att_graph_input(r.graph, "v", ATT_F32, att_shape_of(TOKENS, CHANNELS));
    const att_attention_options options = {.heads = HEADS, .grid_h = 1, .grid_w = TOKENS, .terms = &terms};
    att_value o = att_attention(r.graph, ATT_NONE, ATT_NONE, v, &options);
    att_graph_output(r.graph, "logits", att_global_mean(r.graph, o));
    assert_fails(context, att_measure_create(r.graph, "score_gradient", "*", &r.measure), ATT_ERR_NOT_FOUND,
                 "attention with queries and keys");
    end(&r);
}

TEST(it_needs_logits)
{
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(TOKENS, 3 * CHANNELS));
    const att_attention_options options = {.heads = HEADS};
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &options));
    assert_fails(context, att_measure_create(r.graph, "score_gradient", "*", &r.measure), ATT_ERR_NOT_FOUND, "logits");
    end(&r);
}
