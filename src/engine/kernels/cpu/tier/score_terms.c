#include "engine/ops/score_terms.h"
#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"

/* One head of one sample, see kernels/ref/score_terms.c. */
typedef struct head {
    const att_call *call;
    const att_score_terms_attrs *attrs;
    int64_t sample, number, window, tokens, in_window, padded, terms;
    int relative;
    float *keys;   /* [key_parts][width][padded]: the keys of the window, channels first */
    float *scores; /* [terms][padded]: the terms of one query */
} head;

static att_attention_token token_at(const head *h, int64_t i)
{
    return att_attention_token_at(&h->attrs->attention, h->window, i);
}

/* The columns of a head of token i in part `input`. */
static const float *row_of(const head *h, int input, int64_t offset, int64_t number, int64_t i)
{
    int64_t row = h->sample * h->tokens + token_at(h, i).index;
    return (const float *)h->call->in[input] + row * h->call->problem->in[input].shape.dims[1] + offset +
           number * h->attrs->width;
}

static void copy_keys(const head *h)
{
    const att_score_terms_attrs *attrs = h->attrs;
    int64_t key_head = h->number / (attrs->attention.heads / attrs->attention.key_heads);
    for (int b = 0; b < attrs->key_parts; b++)
        for (int64_t j = 0; j < h->in_window; j++) {
            const float *from = row_of(h, (int)attrs->query_parts + b, attrs->k_offset, key_head, j);
            for (int64_t c = 0; c < attrs->width; c++)
                h->keys[(b * attrs->width + c) * h->padded + j] = from[c];
        }
}

/* scores[j] = scale q . k_j. Keys behind the last one are 0. */
static void add_products(const head *h, const float *q, const float *keys, float *scores)
{
    float scale = (float)h->attrs->attention.scale;
    for (int64_t j = 0; j < h->padded; j += VW) {
        vf sum = {0};
        for (int64_t c = 0; c < h->attrs->width; c++)
            sum = v_fma(v_set(q[c]), v_load(keys + c * h->padded + j), sum);
        v_store(scores + j, sum * scale);
    }
}

static void put_relative(const head *h, int64_t i, float *scores)
{
    const att_attention_attrs *attention = &h->attrs->attention;
    const float *table = h->call->in[h->relative];
    int64_t rows = h->call->problem->in[h->relative].shape.dims[0];
    for (int64_t j = 0; j < h->in_window; j++) {
        int64_t shift = att_attention_shift_of(attention, rows, i, j);
        scores[j] = shift < 0 ? 0 : table[shift * attention->heads + h->number];
    }
}

static void put_axes(const head *h, int64_t i, float *scores)
{
    const att_attention_attrs *attention = &h->attrs->attention;
    int64_t at = (h->sample * h->tokens + i) * attention->heads + h->number;
    const float *rows = (const float *)h->call->in[h->relative + 1] + at * attention->grid_h;
    const float *columns = (const float *)h->call->in[h->relative + 2] + at * attention->grid_w;
    for (int64_t j = 0; j < h->in_window; j++) {
        int64_t key = j - attention->prefix;
        scores[j] = key < 0 ? 0 : rows[key / attention->grid_w] + columns[key % attention->grid_w];
    }
}

/* Writes the terms of query i. */
static void find_terms(const head *h, int64_t i)
{
    const att_score_terms_attrs *attrs = h->attrs;
    float *scores = h->scores;
    for (int a = 0; a < attrs->query_parts; a++)
        for (int b = 0; b < attrs->key_parts; b++, scores += h->padded)
            add_products(h, row_of(h, a, attrs->q_offset, h->number, i), h->keys + b * attrs->width * h->padded,
                         scores);
    if (h->call->in[h->relative]) {
        put_relative(h, i, scores);
        scores += h->padded;
    }
    if (h->call->in[h->relative + 1])
        put_axes(h, i, scores);
}

/* Moves the keys that query i may attend to the front. Returns their number. */
static int64_t keep_keys(const head *h, int64_t i)
{
    const att_attention_attrs *attention = &h->attrs->attention;
    int64_t region = token_at(h, i).region, end = attention->causal ? i + 1 : h->in_window, kept = 0;
    if (!attention->window_h)
        return end;
    for (int64_t j = 0; j < end; j++)
        if (token_at(h, j).region == region) {
            for (int64_t t = 0; t < h->terms; t++)
                h->scores[t * h->padded + kept] = h->scores[t * h->padded + j];
            kept++;
        }
    return kept;
}

static double mean_product(const float *x, const float *z, int64_t count)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += (double)x[j] * (double)z[j];
    return sum / (double)count;
}

static void subtract_mean(float *x, int64_t count)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += (double)x[j];
    for (int64_t j = 0; j < count; j++)
        x[j] = (float)((double)x[j] - sum / (double)count);
}

/* Adds the covariances over the keys of query i. */
static void add_covariances(const head *h, int64_t i, double *covariances)
{
    find_terms(h, i);
    int64_t keys = keep_keys(h, i);
    for (int64_t t = 0; t < h->terms; t++)
        subtract_mean(h->scores + t * h->padded, keys);
    for (int64_t s = 0; s < h->terms; s++)
        for (int64_t t = 0; t <= s; t++)
            covariances[s * h->terms + t] += mean_product(h->scores + s * h->padded, h->scores + t * h->padded, keys);
}

static int64_t elements_of(const att_problem *problem, int64_t *keys)
{
    const att_score_terms_attrs *attrs = problem->attrs;
    int64_t padded = whole_vectors(problem->in[0].shape.dims[0] / att_attention_windows(&attrs->attention));
    *keys = attrs->key_parts * attrs->width * padded;
    return *keys + problem->out[0].shape.dims[1] * padded;
}

static att_status score_terms_prepare(const att_problem *problem, att_prepared *prepared)
{
    int64_t keys;
    prepared->scratch_bytes = (size_t)elements_of(problem, &keys) * sizeof(float);
    return ATT_OK;
}

/* Parts share the heads of all samples. */
static att_status score_terms_run(const att_call *call)
{
    const att_score_terms_attrs *attrs = call->problem->attrs;
    int64_t windows = att_attention_windows(&attrs->attention), heads = attrs->attention.heads, keys;
    int64_t elements = elements_of(call->problem, &keys);
    head h = {.call = call,
              .attrs = attrs,
              .tokens = call->problem->in[0].shape.dims[0],
              .terms = call->problem->out[0].shape.dims[1],
              .relative = att_score_relative(attrs),
              .keys = call->scratch};
    h.scores = h.keys + keys;
    h.in_window = h.tokens / windows, h.padded = whole_vectors(h.in_window);
    memset(call->scratch, 0, (size_t)elements * sizeof(float));
    att_range part = att_part_of(call, call->problem->group * heads, 1);
    for (int64_t at = part.begin; at < part.end; at++) {
        double covariances[ATT_SCORE_MOST_TERMS * ATT_SCORE_MOST_TERMS] = {0};
        float *out = (float *)call->out[0] + at * h.terms * h.terms;
        h.sample = at / heads, h.number = at % heads;
        for (h.window = 0; h.window < windows; h.window++) {
            copy_keys(&h);
            for (int64_t i = 0; i < h.in_window; i++)
                add_covariances(&h, i, covariances);
        }
        for (int64_t s = 0; s < h.terms; s++)
            for (int64_t t = 0; t < h.terms; t++)
                out[s * h.terms + t] =
                    (float)(covariances[s > t ? s * h.terms + t : t * h.terms + s] / (double)h.tokens);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(score_terms, .prepare = score_terms_prepare, .run = score_terms_run);
