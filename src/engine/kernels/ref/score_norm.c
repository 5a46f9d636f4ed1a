#include "engine/ops/score_norm.h"

#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Power iteration on M'M with M = scale W_q' W_k, until the length of M v no longer grows. */
enum { MOST_STEPS = 10000 };
#define GROWTH 1e-15

/* The rows of one head in both weights. */
typedef struct head {
    const att_call *call;
    int64_t first[2]; /* element of each input */
    int64_t width, columns;
    double *narrow, *wide; /* [width], [columns] */
} head;

/* narrow = W wide, with the weights of input `of`. */
static void put_narrow(const head *h, int of)
{
    for (int64_t i = 0; i < h->width; i++) {
        h->narrow[i] = 0;
        for (int64_t c = 0; c < h->columns; c++)
            h->narrow[i] += ref_in(h->call, of, h->first[of] + i * h->columns + c) * h->wide[c];
    }
}

/* wide = W' narrow; returns its length. */
static double put_wide(const head *h, int of)
{
    double squares = 0;
    for (int64_t c = 0; c < h->columns; c++) {
        h->wide[c] = 0;
        for (int64_t i = 0; i < h->width; i++)
            h->wide[c] += ref_in(h->call, of, h->first[of] + i * h->columns + c) * h->narrow[i];
        squares += h->wide[c] * h->wide[c];
    }
    return sqrt(squares);
}

/* Replaces v, of length 1, by M'M v of length 1. Returns |M v|. */
static double step(const head *h)
{
    put_narrow(h, 1);
    double found = put_wide(h, 0);
    put_narrow(h, 0);
    double length = put_wide(h, 1);
    for (int64_t c = 0; c < h->columns; c++)
        h->wide[c] = length > 0 ? h->wide[c] / length : 0;
    return found;
}

static double norm_of(const head *h)
{
    double found = 0;
    for (int64_t c = 0; c < h->columns; c++)
        h->wide[c] = (1 + 0.5 * fmod(0.618034 * (double)(c + 1), 1)) / sqrt((double)h->columns);
    for (int i = 0; i < MOST_STEPS; i++) {
        double next = step(h);
        if (i > 1 && !(next > found * (1 + GROWTH)))
            return next;
        found = next;
    }
    return found;
}

static att_status prepare_norm(const att_problem *problem, att_prepared *prepared)
{
    const att_score_norm_attrs *attrs = problem->attrs;
    prepared->scratch_bytes = (size_t)(attrs->width + problem->in[0].shape.dims[1]) * sizeof(double);
    return ATT_OK;
}

static att_status run_norm(const att_call *call)
{
    const att_score_norm_attrs *attrs = call->problem->attrs;
    head h = {.call = call, .width = attrs->width, .columns = ref_dim(call, 0, 1), .narrow = call->scratch};
    h.wide = h.narrow + h.width;
    ref_range share = ref_share(call, ref_count(call, 0) / ref_dim(call, 0, 0) / h.columns * attrs->heads);
    for (int64_t at = share.begin; at < share.end; at++) {
        int64_t sample = at / attrs->heads, q = at % attrs->heads, k = q / (attrs->heads / attrs->key_heads);
        h.first[0] = (sample * ref_dim(call, 0, 0) + attrs->q_offset + q * h.width) * h.columns;
        h.first[1] = (sample * ref_dim(call, 1, 0) + attrs->k_offset + k * h.width) * h.columns;
        ref_out(call, 0, at, attrs->scale * norm_of(&h));
    }
    return ATT_OK;
}

const att_kernel att_ref_score_norm = {.op = "score_norm", .name = "ref", .prepare = prepare_norm, .run = run_norm};
