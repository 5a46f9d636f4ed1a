#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/wide.h"
#include "engine/kernels/cpu/wide.h"
#include "engine/ops/attention.h"

enum { Q = ATT_ATTENTION_Q, K = ATT_ATTENTION_K, V = ATT_ATTENTION_V, OPERANDS = ATT_ATTENTION_OPERANDS };
enum { OUT, LSE };

/* Whole-grid attention by content; terms of the scores, windows, dropout, statistics and maps are left to the
 * reference. */
static bool attention_wide_accepts(const att_problem *problem)
{
    const att_attention_attrs *attrs = problem->attrs;
    for (int i = OPERANDS; i < problem->in_count; i++)
        if (att_desc_present(&problem->in[i]))
            return false;
    for (int i = LSE + 1; i < problem->out_count; i++)
        if (att_desc_present(&problem->out[i]))
            return false;
    return att_desc_present(&problem->in[Q]) && problem->in[Q].dtype == ATT_F64 && attrs->window_h == 0 &&
           !attrs->drops;
}

static att_status attention_wide_prepare(const att_problem *problem, att_prepared *prepared)
{
    att_attention_operand operand[OPERANDS];
    att_attention_divide(problem->in, problem->attrs, operand);
    prepared->scratch_bytes = (size_t)operand[K].tokens * sizeof(double);
    return ATT_OK;
}

/* The first channel of a head in token 0 of a sample. */
static const double *head_of(const att_call *call, const att_attention_operand *operand, int64_t sample, int64_t head)
{
    const double *x = call->in[operand->input];
    return x + sample * operand->tokens * operand->stride + operand->offset + head * operand->width;
}

/* Replaces scores by their softmax; returns the logarithm of the sum of their exponentials. */
static double softmax(double *scores, int64_t count)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++)
        largest = fmax(largest, scores[j]);
    for (int64_t j = 0; j < count; j++)
        sum += scores[j] = exp(scores[j] - largest);
    for (int64_t j = 0; j < count; j++)
        scores[j] /= sum;
    return largest + log(sum);
}

static void attend(const att_call *call, const att_attention_operand operand[OPERANDS], int64_t sample, int64_t head)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    const att_attention_operand *q = &operand[Q], *k = &operand[K], *v = &operand[V];
    const double *queries = head_of(call, q, sample, head);
    const double *keys = head_of(call, k, sample, head / (q->heads / k->heads));
    const double *values = head_of(call, v, sample, head / (q->heads / v->heads));
    double *scores = call->scratch, *out = call->out[OUT], *lse = call->out[LSE];
    for (int64_t i = 0; i < q->tokens; i++) {
        const int64_t count = attrs->causal && i + 1 < k->tokens ? i + 1 : k->tokens;
        double *row = out + ((sample * q->tokens + i) * q->heads + head) * v->width;
        for (int64_t j = 0; j < count; j++)
            scores[j] = attrs->scale * wide_dot(queries + i * q->stride, keys + j * k->stride, q->width);
        double total = softmax(scores, count);
        if (lse)
            lse[(sample * q->heads + head) * q->tokens + i] = total;
        for (int64_t c = 0; c < v->width; c++)
            row[c] = 0;
        for (int64_t j = 0; j < count; j++)
            for (int64_t c = 0; c < v->width; c++)
                row[c] += scores[j] * values[j * v->stride + c];
    }
}

static att_status attention_wide_run(const att_call *call)
{
    att_attention_operand operand[OPERANDS];
    att_attention_divide(call->problem->in, call->problem->attrs, operand);
    const int64_t heads = operand[Q].heads;
    const att_range share = att_part_of(call, call->problem->group * heads, 1);
    for (int64_t i = share.begin; i < share.end; i++)
        attend(call, operand, i / heads, i % heads);
    return ATT_OK;
}

ATT_TIER_KERNEL(attention_wide, "attention", "f64", .accepts = attention_wide_accepts,
                .prepare = attention_wide_prepare, .run = attention_wide_run);
