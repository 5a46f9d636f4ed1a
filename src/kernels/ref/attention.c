#include "ops/attention.h"
#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

enum { Q = ATT_ATTENTION_Q, K = ATT_ATTENTION_K, V = ATT_ATTENTION_V, OPERANDS = ATT_ATTENTION_OPERANDS };
enum { OUT, LSE, STATS, MAP };

/* One head of one sample. */
typedef struct head {
    const att_call *call;
    int first; /* the node's input q */
    att_attention_operand operand[OPERANDS];
    int64_t place[OPERANDS]; /* of the head's first channel in a row of q, k and v */
    int64_t sample, number;
} head;

static head divide(const att_call *call, int first)
{
    head h = {.call = call, .first = first};
    att_attention_divide(call->problem->in + first, call->problem->attrs, h.operand);
    return h;
}

static void choose(head *h, int64_t sample, int64_t number)
{
    h->sample = sample, h->number = number;
    for (int o = 0; o < OPERANDS; o++) {
        const att_attention_operand *operand = &h->operand[o];
        h->place[o] = operand->offset + number / (h->operand[Q].heads / operand->heads) * operand->width;
    }
}

/* Index of channel c of token i of q, k or v, within the rows of a sample. */
static int64_t place_of(const head *h, int which, int64_t i, int64_t c)
{
    return i * h->operand[which].stride + h->place[which] + c;
}

static double element(const head *h, int which, int64_t i, int64_t c)
{
    const att_attention_operand *operand = &h->operand[which];
    return ref_in(h->call, h->first + operand->input,
                  h->sample * operand->tokens * operand->stride + place_of(h, which, i, c));
}

/* Index in o [N, H e]. */
static int64_t o_index(const head *h, int64_t i, int64_t c)
{
    return ((h->sample * h->operand[Q].tokens + i) * h->operand[Q].heads + h->number) * h->operand[V].width + c;
}

/* Index of row i in values with one row per head and query. */
static int64_t row_index(const head *h, int64_t i)
{
    return (h->sample * h->operand[Q].heads + h->number) * h->operand[Q].tokens + i;
}

static double score(const head *h, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t c = 0; c < h->operand[Q].width; c++)
        sum += element(h, Q, i, c) * element(h, K, j, c);
    return ATT_ATTRS(h->call->problem, attention)->scale * sum;
}

static double grid_distance(const att_attention_attrs *attrs, int64_t i, int64_t j)
{
    if (i < attrs->prefix || j < attrs->prefix || attrs->grid_w == 0)
        return 0;
    i -= attrs->prefix, j -= attrs->prefix;
    int64_t rows = i / attrs->grid_w - j / attrs->grid_w, columns = i % attrs->grid_w - j % attrs->grid_w;
    return hypot((double)rows * attrs->step_h, (double)columns * attrs->step_w);
}

/* Writes the statistics of query i from its scores. */
static void put_statistics(const head *h, int64_t i, const double *scores, double lse)
{
    const att_attention_attrs *attrs = h->call->problem->attrs;
    int64_t keys = h->operand[K].tokens;
    double stat[ATT_STAT_COUNT] = {[ATT_STAT_MAX] = -1};
    for (int64_t j = 0; j < keys; j++) {
        double a = exp(scores[j] - lse);
        stat[ATT_STAT_ENTROPY] -= a * (scores[j] - lse);
        stat[ATT_STAT_SUM2] += a * a;
        stat[ATT_STAT_SUM3] += a * a * a;
        stat[ATT_STAT_DISTANCE] += a * grid_distance(attrs, i, j);
        stat[ATT_STAT_PREFIX] += j < attrs->prefix ? a : 0;
        if (a > stat[ATT_STAT_MAX]) {
            stat[ATT_STAT_MAX] = a;
            stat[ATT_STAT_ARGMAX] = (double)j;
        }
    }
    stat[ATT_STAT_SELF] = h->operand[Q].tokens == keys ? exp(scores[i] - lse) : 0;
    for (int s = 0; s < ATT_STAT_COUNT; s++)
        ref_out(h->call, STATS, row_index(h, i) * ATT_STAT_COUNT + s, stat[s]);
}

static void attend(const head *h, int64_t i, double *scores)
{
    double largest = -INFINITY, sum = 0;
    int64_t keys = h->operand[K].tokens;
    for (int64_t j = 0; j < keys; j++) {
        scores[j] = score(h, i, j);
        largest = fmax(largest, scores[j]);
    }
    for (int64_t j = 0; j < keys; j++)
        sum += exp(scores[j] - largest);
    double lse = largest + log(sum);
    ref_out(h->call, LSE, row_index(h, i), lse);
    for (int64_t c = 0; c < h->operand[V].width; c++) {
        double o = 0;
        for (int64_t j = 0; j < keys; j++)
            o += exp(scores[j] - lse) * element(h, V, j, c);
        ref_out(h->call, OUT, o_index(h, i, c), o);
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
    prepared->scratch_bytes = (size_t)operand[K].tokens * sizeof(double);
    return ATT_OK;
}

static att_status run_attention(const att_call *call)
{
    head h = divide(call, 0);
    int64_t tokens = h.operand[Q].tokens, heads = h.operand[Q].heads;
    ref_range share = ref_share(call, call->problem->group * heads * tokens);
    for (int64_t row = share.begin; row < share.end; row++) {
        choose(&h, row / tokens / heads, row / tokens % heads);
        attend(&h, row % tokens, call->scratch);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention = {
    .op = "attention", .name = "ref", .prepare = prepare_attention, .run = run_attention};

enum { GRAD_DO, GRAD_O, GRAD_LSE, GRAD_Q };

/* The gradients of all inputs for one sample, in f64. */
typedef struct gradients {
    double *of[OPERANDS]; /* of the input that holds q, k or v */
    int64_t count[OPERANDS];
} gradients;

static gradients divide_scratch(const head *h, double *scratch)
{
    gradients g = {{NULL}, {0}};
    for (int o = 0; o < OPERANDS; o++) {
        const att_attention_operand *operand = &h->operand[o];
        g.count[o] = operand->input == o ? operand->tokens * operand->stride : 0;
        g.of[o] = operand->input == o ? scratch : g.of[operand->input];
        scratch += g.count[o];
    }
    return g;
}

/* Adds the contribution of query i and key j. */
static void add_pair(const head *h, int64_t i, int64_t j, const gradients *g)
{
    double scale = ATT_ATTRS(h->call->problem, attention)->scale;
    double a = exp(score(h, i, j) - ref_in(h->call, GRAD_LSE, row_index(h, i)));
    double da = 0; /* do_i . v_j - do_i . o_i */
    for (int64_t c = 0; c < h->operand[V].width; c++)
        da += ref_in(h->call, GRAD_DO, o_index(h, i, c)) *
              (element(h, V, j, c) - ref_in(h->call, GRAD_O, o_index(h, i, c)));
    double ds = scale * a * da;
    for (int64_t c = 0; c < h->operand[Q].width; c++) {
        g->of[Q][place_of(h, Q, i, c)] += ds * element(h, K, j, c);
        g->of[K][place_of(h, K, j, c)] += ds * element(h, Q, i, c);
    }
    for (int64_t c = 0; c < h->operand[V].width; c++)
        g->of[V][place_of(h, V, j, c)] += a * ref_in(h->call, GRAD_DO, o_index(h, i, c));
}

static void sample_gradient(head *h, int64_t sample, const gradients *g)
{
    for (int64_t number = 0; number < h->operand[Q].heads; number++) {
        choose(h, sample, number);
        for (int64_t i = 0; i < h->operand[Q].tokens; i++)
            for (int64_t j = 0; j < h->operand[K].tokens; j++)
                add_pair(h, i, j, g);
    }
    for (int o = 0, out = 0; o < OPERANDS; o++) {
        for (int64_t e = 0; e < g->count[o]; e++)
            ref_out(h->call, out, sample * g->count[o] + e, g->of[o][e]);
        out += h->operand[o].input == o;
    }
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    for (int o = 0; o < OPERANDS; o++)
        if (att_desc_present(&problem->in[GRAD_Q + o]))
            prepared->scratch_bytes += (size_t)att_shape_count(problem->in[GRAD_Q + o].shape) * sizeof(double);
    return ATT_OK;
}

static att_status run_grad(const att_call *call)
{
    head h = divide(call, GRAD_Q);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        gradients g = divide_scratch(&h, call->scratch);
        for (int o = 0; o < OPERANDS; o++)
            memset(g.of[o], 0, (size_t)g.count[o] * sizeof(double));
        sample_gradient(&h, sample, &g);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention_grad = {
    .op = "attention_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
