/* One layer, and what its bounds are made of, against a computation without logarithms. */
#include "formula.h"
#include "lab/papers/collapse/stacks.h"

/* A layer with two heads and an MLP, and what its bounds are made of, computed without logarithms. */
enum { OWN_TOKENS = 5, OWN_WIDTH = 4, OWN_HEADS = 2, OWN_HEAD = 2, OWN_HIDDEN = 7 };
typedef struct own_layer {
    double q[16], k[16], v[16], o[16], fc1[28], fc2[28];
    att_stack_weights weights;
    double tokens[OWN_TOKENS * OWN_WIDTH], rest[OWN_TOKENS * OWN_WIDTH];
    double spread[OWN_HEADS][OWN_TOKENS]; /* D_ii */
    double beta[OWN_HEADS], gamma[OWN_HEADS], output[OWN_HEADS], residual, lambda;
} own_layer;

static const att_stack_weights *own_weights(void *user, int index)
{
    (void)index;
    return &((own_layer *)user)->weights;
}

/* to [rows, columns] = x [rows, inner] w [inner, columns]; of_x and of_w: lengths of their rows. */
static void product(const double *x, int of_x, const double *w, int of_w, int rows, int inner, int columns, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            to[i * columns + j] = 0;
            for (int m = 0; m < inner; m++)
                to[i * columns + j] += x[i * of_x + m] * w[m * of_w + j];
        }
}

static double norm_one(const double *x, int rows, int columns)
{
    double most = 0;
    for (int j = 0; j < columns; j++) {
        double sum = 0;
        for (int i = 0; i < rows; i++)
            sum += fabs(x[i * columns + j]);
        most = fmax(most, sum);
    }
    return most;
}

static double norm_both(const double *x, int rows, int columns)
{
    double most = 0;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int j = 0; j < columns; j++)
            sum += fabs(x[i * columns + j]);
        most = fmax(most, sum);
    }
    return sqrt(most * norm_one(x, rows, columns));
}

static void subtract_mean(const double *x, double *to)
{
    for (int c = 0; c < OWN_WIDTH; c++) {
        double mean = 0;
        for (int i = 0; i < OWN_TOKENS; i++)
            mean += x[i * OWN_WIDTH + c] / OWN_TOKENS;
        for (int i = 0; i < OWN_TOKENS; i++)
            to[i * OWN_WIDTH + c] = x[i * OWN_WIDTH + c] - mean;
    }
}

/* x A x' / sqrt(d) for each pair of tokens */
static void scores_of(const double *x, const double *form, double *scores)
{
    double left[OWN_TOKENS * OWN_WIDTH];
    product(x, OWN_WIDTH, form, OWN_WIDTH, OWN_TOKENS, OWN_WIDTH, OWN_WIDTH, left);
    for (int i = 0; i < OWN_TOKENS; i++)
        for (int j = 0; j < OWN_TOKENS; j++) {
            scores[i * OWN_TOKENS + j] = 0;
            for (int c = 0; c < OWN_WIDTH; c++)
                scores[i * OWN_TOKENS + j] += left[i * OWN_WIDTH + c] * x[j * OWN_WIDTH + c] / sqrt(OWN_HEAD);
        }
}

/* beta, gamma, D_ii and the residual of the output of a head. */
static void write_head(own_layer *l, int head)
{
    double form[16], value[16], scores[25], keys[16], out[OWN_TOKENS * OWN_WIDTH], sum = 0, most = 0;
    int from = head * OWN_HEAD;
    for (int m = 0; m < OWN_HEAD; m++)
        for (int c = 0; c < OWN_WIDTH; c++)
            keys[m * OWN_WIDTH + c] = l->k[c * OWN_WIDTH + from + m];
    product(l->q + from, OWN_WIDTH, keys, OWN_WIDTH, OWN_WIDTH, OWN_HEAD, OWN_WIDTH, form);
    product(l->v + from, OWN_WIDTH, l->o + from * OWN_WIDTH, OWN_WIDTH, OWN_WIDTH, OWN_HEAD, OWN_WIDTH, value);
    l->beta[head] = norm_one(form, OWN_WIDTH, OWN_WIDTH) * norm_both(value, OWN_WIDTH, OWN_WIDTH);
    scores_of(l->rest, form, scores);
    for (int i = 0; i < OWN_TOKENS; i++) {
        double low = INFINITY, high = -INFINITY;
        for (int j = 0; j < OWN_TOKENS; j++)
            low = fmin(low, scores[i * OWN_TOKENS + j]), high = fmax(high, scores[i * OWN_TOKENS + j]);
        l->spread[head][i] = high - low;
        sum += high - low, most = fmax(most, high - low);
    }
    l->gamma[head] = sqrt(sum / most);
    scores_of(l->tokens, form, scores);
    for (int i = 0; i < OWN_TOKENS; i++) {
        double weights = 0;
        for (int j = 0; j < OWN_TOKENS; j++)
            weights += exp(scores[i * OWN_TOKENS + j]);
        for (int j = 0; j < OWN_TOKENS; j++)
            scores[i * OWN_TOKENS + j] = exp(scores[i * OWN_TOKENS + j]) / weights;
    }
    double mixed[OWN_TOKENS * OWN_WIDTH];
    product(scores, OWN_TOKENS, l->tokens, OWN_WIDTH, OWN_TOKENS, OWN_TOKENS, OWN_WIDTH, mixed);
    product(mixed, OWN_WIDTH, value, OWN_WIDTH, OWN_TOKENS, OWN_WIDTH, OWN_WIDTH, out);
    subtract_mean(out, out);
    l->output[head] = norm_both(out, OWN_TOKENS, OWN_WIDTH);
}

static void write_layer(own_layer *l, double scale)
{
    double *const matrices[] = {l->q, l->k, l->v, l->o, l->fc1, l->fc2, l->tokens};
    static const char *const names[] = {"q", "k", "v", "o", "fc1", "fc2", "tokens"};
    static const int counts[] = {16, 16, 16, 16, 28, 28, OWN_TOKENS * OWN_WIDTH};
    for (int m = 0; m < 7; m++)
        for (int i = 0; i < counts[m]; i++)
            matrices[m][i] = 2 * formula(names[m], (uint32_t)i) * (m == 6 ? scale : 1);
    l->weights = (att_stack_weights){.q = l->q, .k = l->k, .v = l->v, .o = l->o, .fc1 = l->fc1, .fc2 = l->fc2};
    subtract_mean(l->tokens, l->rest);
    l->residual = norm_both(l->rest, OWN_TOKENS, OWN_WIDTH);
    l->lambda = 1.129 * norm_both(l->fc1, OWN_WIDTH, OWN_HIDDEN) * norm_both(l->fc2, OWN_HIDDEN, OWN_WIDTH);
    for (int head = 0; head < OWN_HEADS; head++)
        write_head(l, head);
}

static att_stack_layer run_own(scratch *self, own_layer *l)
{
    att_stack_layer layers[2];
    att_stack_options o = small(1);
    o.tokens = OWN_TOKENS;
    o.width = OWN_WIDTH;
    o.heads = OWN_HEADS;
    o.hidden = OWN_HIDDEN;
    o.mlp = true;
    o.tokens_data = l->tokens;
    o.layer = own_weights;
    o.user = l;
    run(self, &o, layers, NULL);
    return layers[1];
}

/* One layer with one channel and one head: q k = v o = s^2. Returns ln r of its output. */
static double run_channel(scratch *self, double s, int count, const double *tokens)
{
    own_layer l = {.q = {s}, .k = {s}, .v = {s}, .o = {s}};
    l.weights = (att_stack_weights){.q = l.q, .k = l.k, .v = l.v, .o = l.o};
    att_stack_layer layers[2];
    att_stack_options o = small(1);
    o.tokens = count;
    o.width = 1;
    o.heads = 1;
    o.tokens_data = tokens;
    o.layer = own_weights;
    o.user = &l;
    run(self, &o, layers, NULL);
    return layers[1].residual.log;
}

/* Two tokens m + d and m - d: query i gives the second the weight exp(-2 d s^2 x_i). m + d is rounded. */
SCRATCH_TEST(the_residual_of_sharp_attention_is_not_0)
{
    const double m = 1, d = 1e-10, s = 1e15, tokens[] = {m + d, m - d};
    double expected = -2 * d * s * s * (m - d), found = run_channel(self, s, 2, tokens);
    if (!(fabs(found - expected) < 1e-6 * fabs(expected)))
        fail_msg("ln r %.17g, expected %.17g", found, expected);
}

typedef struct far_stack {
    double form[4], shift[2]; /* W_QK sqrt(2) of layer 1; what layer 0 adds to the tokens */
    att_stack_weights weights;
} far_stack;

static const att_stack_weights *far_layer(void *user, int index)
{
    static const double zeros[4] = {0}, unit[4] = {1, 0, 0, 1};
    far_stack *s = user;
    s->weights = index == 0 ? (att_stack_weights){.q = zeros, .k = zeros, .v = zeros, .o = zeros, .o_bias = s->shift}
                            : (att_stack_weights){.q = s->form, .k = unit, .v = unit, .o = unit};
    return &s->weights;
}

/* Runs both layers, with a skip, on three tokens of width 2. Returns ln r of the second layer's branch. */
static double run_far(void *self, far_stack *s, const double tokens[6])
{
    att_stack_layer layers[3];
    att_stack_options o = small(2);
    o.tokens = 3;
    o.width = 2;
    o.heads = 1;
    o.skip = true;
    o.tokens_data = tokens;
    o.layer = far_layer;
    o.user = s;
    run(self, &o, layers, NULL);
    return layers[2].branch.log;
}

/* Three tokens r_j at 0, 120 and 240 degrees around a mean m of norm 1e20. The form F is such that F (r_2 - r_1) = a
 * and F (r_3 - r_1) = b have the norm 2000 and point to 60 and 210 degrees. So each query's own scores prefer another
 * key than the first by 600 and more, but the shared ones prefer the first key to the second by -m.a = 6.8e22, and to
 * the third by -m.b = 3.5e22. */
SCRATCH_TEST(shared_scores_do_not_swallow_those_of_a_query)
{
    const double r = M_PI / 180, h = sqrt(0.75), a[] = {2000 * cos(60 * r), 2000 * sin(60 * r)},
                 b[] = {2000 * cos(210 * r), 2000 * sin(210 * r)};
    const double tokens[] = {1, 0, -0.5, h, -0.5, -h};
    far_stack s = {.shift = {1e20 * cos(310 * r), 1e20 * sin(310 * r)}};
    for (int i = 0; i < 2; i++) {
        s.form[2 * i] = -M_SQRT2 * (a[i] + b[i]) / 3;
        s.form[2 * i + 1] = M_SQRT2 * (a[i] - b[i]) / (2 * h);
    }
    const double expected = s.shift[0] * b[0] + s.shift[1] * b[1], found = run_far(self, &s, tokens);
    if (!(fabs(found - expected) < 2e-14 * fabs(expected))) /* 8.5e-15 */
        fail_msg("ln r %.17g, expected %.17g", found, expected);
}

/* The shared scores of 1e23 are the same for the first two tokens of (1, 1), (-1, 1), (0, -2), whose mean is (0, 1e20):
 * a query's own ones, which differ by 2000, decide between them. The first two tokens keep themselves, and the third
 * takes their mean (0, 1), so the residual has the rows (1, 0), (-1, 0), (0, 0). */
SCRATCH_TEST(own_scores_decide_between_equal_shared_ones)
{
    static const double tokens[] = {1, 1, -1, 1, 0, -2};
    far_stack s = {.form = {1000 * M_SQRT2, 0, 0, 1000 * M_SQRT2}, .shift = {0, 1e20}};
    assert_near(run_far(self, &s, tokens), log(M_SQRT2));
}

/* Each query shares its weight between the keys of its own sign: the tokens stay, times s^2. */
SCRATCH_TEST(equal_keys_share_the_weight_of_sharp_attention)
{
    const double s = 1e15, tokens[] = {1, 1, -1};
    assert_near(run_channel(self, s, 3, tokens), log(s * s * sqrt(32) / 3));
}

static double largest_spread(const own_layer *l)
{
    double most = 0;
    for (int head = 0; head < OWN_HEADS; head++)
        for (int i = 0; i < OWN_TOKENS; i++)
            most = fmax(most, l->spread[head][i]);
    return most;
}

SCRATCH_TEST(bounds_of_several_heads_and_an_mlp_have_their_closed_form)
{
    own_layer l;
    write_layer(&l, 1);
    att_stack_layer layer = run_own(self, &l);
    double beta = fmax(l.beta[0], l.beta[1]), gamma = fmax(l.gamma[0], l.gamma[1]), most = -INFINITY;
    double branch = log(4 * gamma * beta * OWN_HEADS / sqrt(OWN_HEAD) * pow(l.residual, 3));
    for (int head = 0; head < OWN_HEADS; head++)
        most =
            fmax(most, log(l.output[head] / (4 * l.gamma[head] * l.beta[head] / sqrt(OWN_HEAD))) - 3 * log(l.residual));
    assert_near(layer.beta, beta);
    assert_near(layer.gamma, gamma);
    assert_near(layer.lambda, l.lambda);
    assert_near(layer.branch_bound.paper.log, branch);
    assert_near(layer.bound.paper.log, branch + log(l.lambda));
    assert_near(layer.head_paper, most);
    assert_near(layer.head_safe, most + log(2));
}

SCRATCH_TEST(scores_that_differ_by_more_than_1_256_do_not_meet_the_condition)
{
    own_layer l;
    write_layer(&l, 1);
    double unit = largest_spread(&l);
    write_layer(&l, sqrt(1.25 / unit));
    assert_true(run_own(self, &l).condition == 1);
    write_layer(&l, sqrt(1.26 / unit));
    assert_near(run_own(self, &l).condition, 0.9); /* all rows but one of ten */
}
