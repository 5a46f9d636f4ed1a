#include "engine/ops/cosine_heads.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/norm_rows.h"
#include "engine/kernels/cpu/tiered.h"

enum { X, LOGITS, DY };

/* The scratch of a call holds the factor of each head, and one head of x in f32. */
typedef struct heads {
    const att_call *call;
    int64_t columns, width, count;
    float eps;
    float *factors, *widened;
} heads;

static heads heads_of(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_cosine_heads_attrs *attrs = problem->attrs;
    heads h = {.call = call,
               .columns = att_columns(&problem->in[X]),
               .width = attrs->width,
               .count = att_cosine_heads_count(attrs),
               .eps = (float)attrs->eps,
               .factors = call->scratch,
               .widened = (float *)call->scratch + att_cosine_heads_count(attrs)};
    const float *logits = call->in[LOGITS];
    int64_t with_logits = logits ? attrs->heads : 0;
    for (int64_t i = 0; i < h.count; i++)
        h.factors[i] = i < with_logits
                           ? expf(logits[i] > (float)ATT_COSINE_HEADS_LIMIT ? (float)ATT_COSINE_HEADS_LIMIT : logits[i])
                           : 1;
    return h;
}

static att_status heads_prepare(const att_problem *problem, att_prepared *prepared)
{
    const att_cosine_heads_attrs *attrs = problem->attrs;
    prepared->scratch_bytes = ((size_t)(att_cosine_heads_count(attrs) + attrs->width)) * sizeof(float);
    return ATT_OK;
}

/* The head that begins at element `at`. */
ATT_INLINE const float *head_at(const heads *h, int64_t at, bool x_is_bf16)
{
    if (!x_is_bf16)
        return (const float *)h->call->in[X] + at;
    att_float_move(h->call->in[X], at, true, h->widened, 0, false, h->width);
    return h->widened;
}

static void copy_rest(const heads *h, int from, int64_t row)
{
    const att_problem *problem = h->call->problem;
    int64_t at = row * h->columns + h->count * h->width, end = (row + 1) * h->columns;
    att_float_move(h->call->in[from], at, att_is_bf16(&problem->in[from]), h->call->out[0], at,
                   att_is_bf16(&problem->out[0]), end - at);
}

ATT_INLINE void cosine_heads_as(const heads *h, att_range rows, bool x_is_bf16, bool y_is_bf16)
{
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t i = 0; i < h->count; i++) {
            int64_t at = row * h->columns + i * h->width;
            const float *x = head_at(h, at, x_is_bf16);
            float norm = row_length(x, h->width), divisor = norm < h->eps ? h->eps : norm; /* NaN stays NaN */
            vf scale = v_set(h->factors[i] / divisor);
            for (int64_t c = 0; c < h->width; c += VW)
                v_put_until(h->call->out[0], at + c, at + h->width, v_get_until(x, c, h->width, false) * scale,
                            y_is_bf16);
        }
        copy_rest(h, X, row);
    }
}

static att_status cosine_heads_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[X]), y = att_is_bf16(&call->problem->out[0]);
    heads h = heads_of(call);
    att_range rows = att_part_of(call, att_rows(call, &call->problem->in[X]), 1);
    if (x && y)
        cosine_heads_as(&h, rows, true, true);
    else if (!x && !y)
        cosine_heads_as(&h, rows, false, false);
    else
        cosine_heads_as(&h, rows, x, y);
    return ATT_OK;
}

ATT_SIMD_KERNEL(cosine_heads, .bf16_in = 1 << X, .bf16_out = 1, .prepare = heads_prepare, .run = cosine_heads_run);

/* Writes dx = f (dy - n sum(dy n)) / |x|, n = x / |x|, or f dy / eps where the norm is at most eps. Returns sum(dy n).
 */
ATT_INLINE float head_dx(const heads *h, int64_t at, float factor, bool x_is_bf16, bool dy_is_bf16, bool dx_is_bf16)
{
    const float *x = head_at(h, at, x_is_bf16);
    const void *dy = h->call->in[DY];
    float norm = row_length(x, h->width);
    bool clamped = norm <= h->eps;
    float inverse = 1 / (clamped ? h->eps : norm);
    vf sum = {0};
    for (int64_t c = 0; c < h->width; c += VW)
        sum = v_fma(v_get_until(dy, at + c, at + h->width, dy_is_bf16), v_get_until(x, c, h->width, false) * inverse,
                    sum);
    float product = v_sum(sum);
    vf taken = v_set(clamped ? 0 : -product), scale = v_set(factor * inverse);
    for (int64_t c = 0; h->call->out[0] && c < h->width; c += VW) {
        vf n = v_get_until(x, c, h->width, false) * inverse;
        vf across = v_fma(n, taken, v_get_until(dy, at + c, at + h->width, dy_is_bf16));
        v_put_until(h->call->out[0], at + c, at + h->width, across * scale, dx_is_bf16);
    }
    return product;
}

/* Head i of all rows. */
ATT_INLINE void head_grad_as(const heads *h, int64_t i, bool x_is_bf16, bool dy_is_bf16, bool dx_is_bf16)
{
    const att_call *call = h->call;
    double sum = 0;
    for (int64_t row = 0; row < att_rows(call, &call->problem->in[X]); row++)
        sum += head_dx(h, row * h->columns + i * h->width, h->factors[i], x_is_bf16, dy_is_bf16, dx_is_bf16);
    const float *logits = call->in[LOGITS];
    float *dlogits = logits ? call->out[1] : NULL;
    if (dlogits && i < ATT_ATTRS(call->problem, cosine_heads)->heads && logits[i] <= (float)ATT_COSINE_HEADS_LIMIT)
        dlogits[i] += (float)(sum * h->factors[i]);
}

/* Parts share the heads, and each has the rows of its heads. */
static att_status cosine_heads_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    heads h = heads_of(call);
    bool x = att_is_bf16(&problem->in[X]), dy = att_is_bf16(&problem->in[DY]), dx = att_is_bf16(&problem->out[0]);
    att_range own = att_part_of(call, h.count, 1), copied = att_part_of(call, att_rows(call, &problem->in[X]), 1);
    for (int64_t i = own.begin; i < own.end; i++)
        if (x && dy && dx)
            head_grad_as(&h, i, true, true, true);
        else if (!x && !dy && !dx)
            head_grad_as(&h, i, false, false, false);
        else
            head_grad_as(&h, i, x, dy, dx);
    for (int64_t row = copied.begin; call->out[0] && row < copied.end; row++)
        copy_rest(&h, DY, row);
    return ATT_OK;
}

ATT_SIMD_KERNEL(cosine_heads_grad, .bf16_in = 1 << X | 1 << DY, .bf16_out = 1, .prepare = heads_prepare,
                .run = cosine_heads_grad_run);
