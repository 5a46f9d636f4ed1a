#include "engine/ops/cosine_heads.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { X, LOGITS, DY };

/* Elements of LOGITS; 0 without logits. */
static int64_t logits_of(const att_call *call)
{
    return ref_has(call, LOGITS) ? ref_count(call, LOGITS) : 0;
}

static double factor_of(const att_call *call, int64_t head)
{
    if (head >= logits_of(call))
        return 1;
    double logit = ref_in(call, LOGITS, head);
    return exp(logit > ATT_COSINE_HEADS_LIMIT ? ATT_COSINE_HEADS_LIMIT : logit);
}

/* Sum of the products of two heads, of inputs i and j. */
static double product_of(const att_call *call, int i, int j, int64_t at)
{
    double sum = 0;
    for (int64_t e = at; e < at + ATT_ATTRS(call->problem, cosine_heads)->width; e++)
        sum += ref_in(call, i, e) * ref_in(call, j, e);
    return sum;
}

static void copy_columns(const att_call *call, int from, int64_t row)
{
    const att_cosine_heads_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, X, 1);
    for (int64_t e = row * columns + att_cosine_heads_count(attrs) * attrs->width; e < (row + 1) * columns; e++)
        ref_out(call, 0, e, ref_in(call, from, e));
}

static att_status run_cosine_heads(const att_call *call)
{
    const att_cosine_heads_attrs *attrs = call->problem->attrs;
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t h = 0; h < att_cosine_heads_count(attrs); h++) {
            int64_t at = row * ref_dim(call, X, 1) + h * attrs->width;
            double norm = sqrt(product_of(call, X, X, at));
            double divisor = norm < attrs->eps ? attrs->eps : norm; /* NaN stays NaN */
            for (int64_t e = at; e < at + attrs->width; e++)
                ref_out(call, 0, e, ref_in(call, X, e) / divisor * factor_of(call, h));
        }
        copy_columns(call, X, row);
    }
    return ATT_OK;
}

const att_kernel att_ref_cosine_heads = {.op = "cosine_heads", .name = "ref", .run = run_cosine_heads};

static void add_logit(const att_call *call, int64_t head, double value)
{
    if (head < logits_of(call) && ref_in(call, LOGITS, head) <= ATT_COSINE_HEADS_LIMIT)
        ref_sum(call, 1, head, value);
}

static void run_head_grad(const att_call *call, int64_t row, int64_t h)
{
    const att_cosine_heads_attrs *attrs = call->problem->attrs;
    int64_t at = row * ref_dim(call, X, 1) + h * attrs->width;
    double norm = sqrt(product_of(call, X, X, at)), factor = factor_of(call, h);
    bool clamped = norm <= attrs->eps;
    double divisor = clamped ? attrs->eps : norm, product = product_of(call, X, DY, at) / divisor;
    for (int64_t e = at; e < at + attrs->width; e++) {
        double across = clamped ? 0 : ref_in(call, X, e) / divisor * product;
        ref_out(call, 0, e, factor * (ref_in(call, DY, e) - across) / divisor);
    }
    add_logit(call, h, factor * product);
}

/* Parts share the heads, and each has the rows of its heads. */
static att_status run_grad(const att_call *call)
{
    ref_range heads = ref_share(call, att_cosine_heads_count(call->problem->attrs));
    ref_range copied = ref_share(call, ref_rows(call, X));
    for (int64_t row = 0; row < ref_rows(call, X); row++)
        for (int64_t h = heads.begin; h < heads.end; h++)
            run_head_grad(call, row, h);
    for (int64_t row = copied.begin; row < copied.end; row++)
        copy_columns(call, DY, row);
    return ATT_OK;
}

const att_kernel att_ref_cosine_heads_grad = {.op = "cosine_heads_grad", .name = "ref", .run = run_grad};
