#include "ops/attention.h"
#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

/* One head of one sample. */
typedef struct head {
    int64_t sample, number, heads, tokens, width;
} head;

static head head_at(const att_call *call, int qkv, int64_t index)
{
    int64_t heads = ATT_ATTRS(call->problem, attention)->heads;
    return (head){index / heads, index % heads, heads, ref_dim(call, qkv, 0), ref_dim(call, qkv, 1) / (3 * heads)};
}

/* Index in qkv of channel c of token i. which: 0 for q, 1 for k, 2 for v. */
static int64_t qkv_index(const head *h, int which, int64_t i, int64_t c)
{
    return (((h->sample * h->tokens + i) * 3 + which) * h->heads + h->number) * h->width + c;
}

/* Index in o [N, H d]. */
static int64_t o_index(const head *h, int64_t i, int64_t c)
{
    return ((h->sample * h->tokens + i) * h->heads + h->number) * h->width + c;
}

/* Index of row i in values with one row per head and query. */
static int64_t row_index(const head *h, int64_t i)
{
    return (h->sample * h->heads + h->number) * h->tokens + i;
}

static double score(const att_call *call, int qkv, const head *h, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t c = 0; c < h->width; c++)
        sum += ref_in(call, qkv, qkv_index(h, 0, i, c)) * ref_in(call, qkv, qkv_index(h, 1, j, c));
    return ATT_ATTRS(call->problem, attention)->scale * sum;
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
static void put_statistics(const att_call *call, const head *h, int64_t i, const double *scores, double lse)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    double stat[ATT_STAT_COUNT] = {[ATT_STAT_MAX] = -1};
    for (int64_t j = 0; j < h->tokens; j++) {
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
    stat[ATT_STAT_SELF] = exp(scores[i] - lse);
    for (int s = 0; s < ATT_STAT_COUNT; s++)
        ref_out(call, 2, row_index(h, i) * ATT_STAT_COUNT + s, stat[s]);
}

static void attend(const att_call *call, const head *h, int64_t i, double *scores)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < h->tokens; j++) {
        scores[j] = score(call, 0, h, i, j);
        largest = fmax(largest, scores[j]);
    }
    for (int64_t j = 0; j < h->tokens; j++)
        sum += exp(scores[j] - largest);
    double lse = largest + log(sum);
    ref_out(call, 1, row_index(h, i), lse);
    for (int64_t c = 0; c < h->width; c++) {
        double o = 0;
        for (int64_t j = 0; j < h->tokens; j++)
            o += exp(scores[j] - lse) * ref_in(call, 0, qkv_index(h, 2, j, c));
        ref_out(call, 0, o_index(h, i, c), o);
    }
    if (call->out[2])
        put_statistics(call, h, i, scores, lse);
    for (int64_t j = 0; j < h->tokens; j++)
        ref_out(call, 3, row_index(h, i) * h->tokens + j, exp(scores[j] - lse));
}

static att_status prepare_attention(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)problem->in[0].shape.dims[0] * sizeof(double);
    return ATT_OK;
}

static att_status run_attention(const att_call *call)
{
    int64_t tokens = ref_dim(call, 0, 0), heads = ATT_ATTRS(call->problem, attention)->heads;
    ref_range share = ref_share(call, call->problem->group * heads * tokens);
    for (int64_t row = share.begin; row < share.end; row++) {
        head h = head_at(call, 0, row / tokens);
        attend(call, &h, row % tokens, call->scratch);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention = {
    .op = "attention", .name = "ref", .prepare = prepare_attention, .run = run_attention};

enum { DO, QKV, O, LSE };

/* Row i of the gradient of q, k or v in the f64 buffer [3, N, d] of one head. */
static double *gradient_at(const head *h, double *gradient, int which, int64_t i)
{
    return gradient + (which * h->tokens + i) * h->width;
}

/* Adds the contribution of query i and key j to the gradients. */
static void add_pair(const att_call *call, const head *h, int64_t i, int64_t j, double *gradient)
{
    double scale = ATT_ATTRS(call->problem, attention)->scale;
    double a = exp(score(call, QKV, h, i, j) - ref_in(call, LSE, row_index(h, i)));
    double da = 0; /* do_i . v_j - do_i . o_i */
    for (int64_t c = 0; c < h->width; c++)
        da += ref_in(call, DO, o_index(h, i, c)) *
              (ref_in(call, QKV, qkv_index(h, 2, j, c)) - ref_in(call, O, o_index(h, i, c)));
    double ds = scale * a * da;
    double *dq = gradient_at(h, gradient, 0, i), *dk = gradient_at(h, gradient, 1, j),
           *dv = gradient_at(h, gradient, 2, j);
    for (int64_t c = 0; c < h->width; c++) {
        dq[c] += ds * ref_in(call, QKV, qkv_index(h, 1, j, c));
        dk[c] += ds * ref_in(call, QKV, qkv_index(h, 0, i, c));
        dv[c] += a * ref_in(call, DO, o_index(h, i, c));
    }
}

static void head_gradient(const att_call *call, const head *h, double *gradient)
{
    memset(gradient, 0, (size_t)(3 * h->tokens * h->width) * sizeof *gradient);
    for (int64_t i = 0; i < h->tokens; i++)
        for (int64_t j = 0; j < h->tokens; j++)
            add_pair(call, h, i, j, gradient);
    for (int which = 0; which < 3; which++)
        for (int64_t i = 0; i < h->tokens; i++)
            for (int64_t c = 0; c < h->width; c++)
                ref_out(call, 0, qkv_index(h, which, i, c), gradient_at(h, gradient, which, i)[c]);
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    int64_t one_head = att_shape_count(problem->in[QKV].shape) / ATT_ATTRS(problem, attention)->heads;
    prepared->scratch_bytes = (size_t)one_head * sizeof(double);
    return ATT_OK;
}

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, call->problem->group * ATT_ATTRS(call->problem, attention)->heads);
    for (int64_t index = share.begin; index < share.end; index++) {
        head h = head_at(call, QKV, index);
        head_gradient(call, &h, call->scratch);
    }
    return ATT_OK;
}

const att_kernel att_ref_attention_grad = {
    .op = "attention_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
