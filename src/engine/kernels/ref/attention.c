#include "engine/ops/attention.h"
#include "engine/kernels/ref/drop.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/ref/shifts.h"

enum { Q = ATT_ATTENTION_Q, K = ATT_ATTENTION_K, V = ATT_ATTENTION_V, OPERANDS = ATT_ATTENTION_OPERANDS };
enum { RELATIVE = ATT_ATTENTION_RELATIVE, ROWS = ATT_ATTENTION_ROWS, COLUMNS = ATT_ATTENTION_COLUMNS };
enum { KEYS = ATT_ATTENTION_KEYS };
enum { OUT, LSE, STATS, MAP };

/* One head of one sample. Without windows all tokens are in window 0; queries and keys are counted in the window. */
typedef struct head {
    const att_call *call;
    int first; /* the node's input q */
    att_attention_operand operand[OPERANDS];
    int64_t place[OPERANDS]; /* of the head's first channel in a row of q, k and v */
    int64_t sample, number, window;
    int64_t queries, keys; /* of a window */
} head;

static head divide(const att_call *call, int first)
{
    head h = {.call = call, .first = first};
    att_attention_divide(call->problem->in + first, call->problem->attrs, h.operand);
    int64_t windows = att_attention_windows(call->problem->attrs);
    h.queries = h.operand[Q].tokens / windows, h.keys = h.operand[K].tokens / windows;
    return h;
}

static const att_attention_attrs *attrs_of(const head *h)
{
    return h->call->problem->attrs;
}

static void choose(head *h, int64_t sample, int64_t number, int64_t window)
{
    h->sample = sample, h->number = number, h->window = window;
    for (int o = 0; o < OPERANDS; o++) {
        const att_attention_operand *operand = &h->operand[o];
        h->place[o] = operand->offset + number / (h->operand[Q].heads / operand->heads) * operand->width;
    }
}

/* The index in the sample of token i of the window. */
static int64_t token_of(const head *h, int64_t i)
{
    return att_attention_token_at(attrs_of(h), h->window, i).index;
}

/* Index of the first channel of token i of q, k or v, within the rows of a sample. */
static int64_t row_at(const head *h, int which, int64_t i)
{
    return token_of(h, i) * h->operand[which].stride + h->place[which];
}

/* Channel c of the row that begins at index `row`, see row_at(). */
static double element(const head *h, int which, int64_t row, int64_t c)
{
    const att_attention_operand *operand = &h->operand[which];
    return ref_in(h->call, h->first + operand->input, h->sample * operand->tokens * operand->stride + row + c);
}

/* Index of the first channel of token i in o [N, H e]. */
static int64_t o_at(const head *h, int64_t i)
{
    int64_t row = h->sample * h->operand[Q].tokens + token_of(h, i);
    return (row * h->operand[Q].heads + h->number) * h->operand[V].width;
}

/* Index of row i in values with one row per head and query. */
static int64_t row_index(const head *h, int64_t i)
{
    return (h->sample * h->operand[Q].heads + h->number) * h->operand[Q].tokens + token_of(h, i);
}

/* Whether input `which` of the attention is present. */
static bool has_term(const head *h, int which)
{
    return h->first + which < h->call->problem->in_count && ref_has(h->call, h->first + which);
}

/* Index in `relative` of the number of query i and key j; -1 if it has none. */
static int64_t relative_index(const head *h, int64_t i, int64_t j)
{
    int64_t shift = att_attention_shift_of(attrs_of(h), ref_dim(h->call, h->first + RELATIVE, 0), i, j);
    return shift < 0 ? -1 : shift * attrs_of(h)->heads + h->number;
}

/* Indices of the numbers of query i and of row or column `at` of keys, of which there are `count`. */
static int64_t axis_index(const head *h, int64_t i, int64_t count, int64_t at)
{
    return ((h->sample * h->operand[Q].tokens + i) * h->operand[Q].heads + h->number) * count + at;
}

static double term(const head *h, int64_t i, int64_t j)
{
    const att_attention_attrs *attrs = attrs_of(h);
    double sum = 0;
    int64_t relative = has_term(h, RELATIVE) ? relative_index(h, i, j) : -1, key = j - attrs->prefix;
    if (relative >= 0)
        sum += ref_in(h->call, h->first + RELATIVE, relative);
    if (has_term(h, ROWS) && key >= 0)
        sum += ref_in(h->call, h->first + ROWS, axis_index(h, i, attrs->grid_h, key / attrs->grid_w)) +
               ref_in(h->call, h->first + COLUMNS, axis_index(h, i, attrs->grid_w, key % attrs->grid_w));
    if (has_term(h, KEYS))
        sum += ref_in(h->call, h->first + KEYS, h->sample * h->keys + j);
    if (attrs->window_h &&
        att_attention_token_at(attrs, h->window, i).region != att_attention_token_at(attrs, h->window, j).region)
        sum += ATT_ATTENTION_MASK;
    return sum;
}

static double score(const head *h, int64_t i, int64_t j)
{
    double sum = 0;
    int64_t q = row_at(h, Q, i), k = row_at(h, K, j);
    if (attrs_of(h)->causal && j > i)
        return -INFINITY;
    for (int64_t c = 0; c < h->operand[Q].width; c++)
        sum += element(h, Q, q, c) * element(h, K, k, c);
    return attrs_of(h)->scale * sum + term(h, i, j);
}

/* Factor by which dropout changes the weight of query i and key j. */
static double drop_factor(const head *h, int64_t i, int64_t j)
{
    const att_attention_attrs *attrs = attrs_of(h);
    if (!attrs->drops)
        return 1;
    int64_t row = h->number * h->operand[Q].tokens + token_of(h, i);
    return ref_drop_factor(h->call, attrs->drop_rate, attrs->drop_stream, h->sample,
                           att_attention_first_draw(row, h->keys) + j);
}

static double grid_distance(const att_attention_attrs *attrs, int64_t i, int64_t j)
{
    if (i < attrs->prefix || j < attrs->prefix || attrs->grid_w == 0)
        return 0;
    int64_t width = att_attention_width(attrs);
    i -= attrs->prefix, j -= attrs->prefix;
    int64_t rows = i / width - j / width, columns = i % width - j % width;
    return hypot((double)rows * attrs->step_h, (double)columns * attrs->step_w);
}

/* Sets the moments of the shifts from query i, whose keys have the weights exp(score - lse). */
static void put_shifts(const head *h, int64_t i, const double *scores, double lse, double stat[ATT_STAT_COUNT])
{
    const att_attention_attrs *attrs = attrs_of(h);
    const int64_t prefix = attrs->prefix, width = att_attention_width(attrs), place = i - prefix;
    if (place < 0 || attrs->grid_w == 0)
        return;
    int64_t strongest = 0;
    for (int64_t key = 0; key < h->keys - prefix; key++)
        if (scores[prefix + key] > scores[prefix + strongest])
            strongest = key;
    ref_shift_sums sums = {.origin_y = (double)(strongest / width - place / width),
                           .origin_x = (double)(strongest % width - place % width)};
    for (int64_t key = 0; key < h->keys - prefix; key++)
        ref_add_shift(&sums, (double)(key / width - place / width), (double)(key % width - place % width),
                      exp(scores[prefix + key] - lse));
    ref_put_shifts(&sums, stat);
}

/* Writes the statistics of query i from its scores. */
static void put_statistics(const head *h, int64_t i, const double *scores, double lse)
{
    const att_attention_attrs *attrs = attrs_of(h);
    int64_t keys = h->keys;
    double stat[ATT_STAT_COUNT] = {0};
    stat[ATT_STAT_ARGMAX] = (double)token_of(h, 0);
    for (int64_t j = 0; j < keys; j++) {
        double a = exp(scores[j] - lse);
        stat[ATT_STAT_ENTROPY] -= a > 0 ? a * (scores[j] - lse) : 0;
        stat[ATT_STAT_DISTANCE] += a * grid_distance(attrs, i, j);
        stat[ATT_STAT_PREFIX] += j < attrs->prefix ? a : 0;
        if (att_stat_add_weight(stat, a))
            stat[ATT_STAT_ARGMAX] = (double)token_of(h, j);
    }
    put_shifts(h, i, scores, lse, stat);
    stat[ATT_STAT_SELF] = h->queries == keys ? exp(scores[i] - lse) : 0;
    for (int s = 0; s < ATT_STAT_COUNT; s++)
        ref_out(h->call, STATS, row_index(h, i) * ATT_STAT_COUNT + s, stat[s]);
}

/* factors: scratch */
static void attend(const head *h, int64_t i, double *scores, double *factors)
{
    double largest = -INFINITY, sum = 0;
    int64_t keys = h->keys;
    bool has_key = false;
    for (int64_t j = 0; j < keys; j++) {
        scores[j] = score(h, i, j);
        largest = fmax(largest, scores[j]);
        has_key = has_key || !(scores[j] <= ATT_ATTENTION_NO_SCORE);
    }
    for (int64_t j = 0; j < keys; j++)
        sum += exp(scores[j] - largest);
    double lse = has_key ? largest + log(sum) : INFINITY;
    ref_out(h->call, LSE, row_index(h, i), lse);
    for (int64_t j = 0; j < keys; j++)
        factors[j] = drop_factor(h, i, j);
    for (int64_t c = 0; c < h->operand[V].width; c++) {
        double o = 0;
        for (int64_t j = 0; j < keys; j++)
            o += factors[j] * exp(scores[j] - lse) * element(h, V, row_at(h, V, j), c);
        ref_out(h->call, OUT, o_at(h, i) + c, o);
    }
    if (h->call->out[STATS])
        put_statistics(h, i, scores, lse);
    for (int64_t j = 0; j < keys; j++)
        ref_out(h->call, MAP, row_index(h, i) * keys + j, exp(scores[j] - lse));
}

static att_status prepare_attention(const att_problem *problem, att_prepared *prepared)
{
    att_attention_operand operand[OPERANDS];
    att_attention_divide(problem->in, problem->attrs, operand);
    prepared->scratch_bytes = 2 * (size_t)operand[K].tokens * sizeof(double);
    return ATT_OK;
}

static att_status run_attention(const att_call *call)
{
    head h = divide(call, 0);
    int64_t tokens = h.operand[Q].tokens, heads = h.operand[Q].heads;
    ref_range share = ref_share(call, call->problem->group * heads * tokens);
    for (int64_t row = share.begin; row < share.end; row++) {
        choose(&h, row / tokens / heads, row / tokens % heads, row % tokens / h.queries);
        attend(&h, row % h.queries, call->scratch, (double *)call->scratch + h.keys);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention = {
    .op = "attention", .name = "ref", .prepare = prepare_attention, .run = run_attention};

enum { GRAD_DO, GRAD_O, GRAD_LSE, GRAD_Q };

/* The gradients of all inputs for one sample, in f64. */
typedef struct gradients {
    double *of[ATT_ATTENTION_INPUTS]; /* of the input that holds q, k or v; of a term */
    int64_t count[ATT_ATTENTION_INPUTS];
} gradients;

static gradients divide_scratch(const head *h, double *scratch)
{
    gradients g = {{NULL}, {0}};
    for (int i = 0; i < ATT_ATTENTION_INPUTS && h->first + i < h->call->problem->in_count; i++) {
        const att_desc *in = &h->call->problem->in[h->first + i];
        g.count[i] = att_desc_present(in) ? att_shape_count(in->shape) : 0;
        g.of[i] = i >= OPERANDS || h->operand[i].input == i ? scratch : g.of[h->operand[i].input];
        scratch += g.count[i];
    }
    return g;
}

/* Adds the gradient of the term of query i and key j. */
static void add_to_terms(const head *h, int64_t i, int64_t j, double dt, const gradients *g)
{
    const att_attention_attrs *attrs = attrs_of(h);
    int64_t relative = has_term(h, RELATIVE) ? relative_index(h, i, j) : -1, key = j - attrs->prefix;
    int64_t row = i * h->operand[Q].heads + h->number;
    if (relative >= 0)
        g->of[RELATIVE][relative] += dt;
    if (has_term(h, ROWS) && key >= 0) {
        g->of[ROWS][row * attrs->grid_h + key / attrs->grid_w] += dt;
        g->of[COLUMNS][row * attrs->grid_w + key % attrs->grid_w] += dt;
    }
}

/* Adds the contribution of query i and key j. Returns the gradient of their score. */
static double add_pair(const head *h, int64_t i, int64_t j, const gradients *g)
{
    double a = exp(score(h, i, j) - ref_in(h->call, GRAD_LSE, row_index(h, i)));
    double factor = drop_factor(h, i, j), da = 0; /* factor do_i . v_j - do_i . o_i */
    int64_t q = row_at(h, Q, i), k = row_at(h, K, j), v = row_at(h, V, j), o = o_at(h, i);
    for (int64_t c = 0; c < h->operand[V].width; c++)
        da += ref_in(h->call, GRAD_DO, o + c) * (factor * element(h, V, v, c) - ref_in(h->call, GRAD_O, o + c));
    double ds = attrs_of(h)->scale * a * da;
    add_to_terms(h, i, j, a * da, g);
    for (int64_t c = 0; c < h->operand[Q].width; c++) {
        g->of[Q][q + c] += ds * element(h, K, k, c);
        g->of[K][k + c] += ds * element(h, Q, q, c);
    }
    for (int64_t c = 0; c < h->operand[V].width; c++)
        g->of[V][v + c] += factor * a * ref_in(h->call, GRAD_DO, o + c);
    return a * da;
}

/* Adds the contribution of query i. norms: the output for the norms of the gradient of scores */
static void add_query(const head *h, int64_t i, const gradients *g, int norms)
{
    double squares = 0;
    for (int64_t j = 0; j < h->keys; j++) {
        double ds = add_pair(h, i, j, g);
        squares += ds * ds;
    }
    ref_out(h->call, norms, row_index(h, i), sqrt(squares));
}

static void sample_gradient(head *h, int64_t sample, const gradients *g)
{
    int64_t windows = att_attention_windows(attrs_of(h));
    int norms = 0; /* the last output */
    for (int input = 0; input < ATT_ATTENTION_INPUTS; input++)
        norms += g->count[input] > 0;
    for (int64_t part = 0; part < h->operand[Q].heads * windows; part++) {
        choose(h, sample, part / windows, part % windows);
        for (int64_t i = 0; i < h->queries; i++)
            add_query(h, i, g, norms);
    }
    for (int input = 0, out = 0; input < ATT_ATTENTION_INPUTS; input++) {
        for (int64_t e = 0; e < g->count[input]; e++)
            ref_out(h->call, out, sample * g->count[input] + e, g->of[input][e]);
        out += g->count[input] > 0;
    }
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    for (int i = GRAD_Q; i < problem->in_count && i < GRAD_Q + ATT_ATTENTION_INPUTS; i++)
        if (att_desc_present(&problem->in[i]))
            prepared->scratch_bytes += (size_t)att_shape_count(problem->in[i].shape) * sizeof(double);
    return ATT_OK;
}

static att_status run_grad(const att_call *call)
{
    head h = divide(call, GRAD_Q);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        gradients g = divide_scratch(&h, call->scratch);
        for (int i = 0; i < ATT_ATTENTION_INPUTS; i++)
            if (g.count[i] > 0)
                memset(g.of[i], 0, (size_t)g.count[i] * sizeof(double));
        sample_gradient(&h, sample, &g);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention_grad = {
    .op = "attention_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
