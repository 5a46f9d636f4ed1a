#include "engine/ops/score_terms.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* One head of one sample. Queries and keys are counted in the window; without windows all tokens are window 0. */
typedef struct head {
    const att_call *call;
    const att_score_terms_attrs *attrs;
    int64_t sample, number, window, tokens, in_window, terms;
    int relative; /* the input */
} head;

static att_attention_token token_at(const head *h, int64_t i)
{
    return att_attention_token_at(&h->attrs->attention, h->window, i);
}

/* Channel c of token i in part `input`, whose heads begin at column `offset`. */
static double channel(const head *h, int input, int64_t offset, int64_t number, int64_t i, int64_t c)
{
    int64_t row = h->sample * h->tokens + token_at(h, i).index;
    return ref_in(h->call, input, row * ref_dim(h->call, input, 1) + offset + number * h->attrs->width + c);
}

static double product(const head *h, int a, int b, int64_t i, int64_t j)
{
    const att_score_terms_attrs *attrs = h->attrs;
    const att_attention_attrs *attention = &attrs->attention;
    int64_t key_head = h->number / (attention->heads / attention->key_heads);
    double sum = 0;
    for (int64_t c = 0; c < attrs->width; c++)
        sum += channel(h, a, attrs->q_offset, h->number, i, c) *
               channel(h, (int)attrs->query_parts + b, attrs->k_offset, key_head, j, c);
    return attention->scale * sum;
}

static double on_axis(const head *h, int input, int64_t i, int64_t count, int64_t at)
{
    return ref_in(h->call, input, ((h->sample * h->tokens + i) * h->attrs->attention.heads + h->number) * count + at);
}

/* Writes the terms of query i and key j. */
static void find_terms(const head *h, int64_t i, int64_t j, double *term)
{
    const att_attention_attrs *attention = &h->attrs->attention;
    int rows = h->relative + 1, columns = h->relative + 2;
    for (int a = 0; a < h->attrs->query_parts; a++)
        for (int b = 0; b < h->attrs->key_parts; b++)
            *term++ = product(h, a, b, i, j);
    if (ref_has(h->call, h->relative)) {
        int64_t shift = att_attention_shift_of(attention, ref_dim(h->call, h->relative, 0), i, j);
        *term++ = shift < 0 ? 0 : ref_in(h->call, h->relative, shift * attention->heads + h->number);
    }
    if (ref_has(h->call, rows)) {
        int64_t key = j - attention->prefix;
        *term = key < 0 ? 0
                        : on_axis(h, rows, i, attention->grid_h, key / attention->grid_w) +
                              on_axis(h, columns, i, attention->grid_w, key % attention->grid_w);
    }
}

static bool attends(const head *h, int64_t i, int64_t j)
{
    return token_at(h, i).region == token_at(h, j).region && !(h->attrs->attention.causal && j > i);
}

/* Adds the covariances over the keys of query i, divided by the number of queries. */
static void add_covariances(const head *h, int64_t i, double *covariances)
{
    double mean[ATT_SCORE_MOST_TERMS] = {0}, term[ATT_SCORE_MOST_TERMS];
    int64_t keys = 0;
    for (int64_t j = 0; j < h->in_window; j++)
        keys += attends(h, i, j);
    for (int64_t j = 0; j < h->in_window; j++) {
        find_terms(h, i, j, term);
        for (int64_t t = 0; t < h->terms && attends(h, i, j); t++)
            mean[t] += term[t] / (double)keys;
    }
    for (int64_t j = 0; j < h->in_window; j++) {
        find_terms(h, i, j, term);
        for (int64_t e = 0; e < h->terms * h->terms && attends(h, i, j); e++) {
            int64_t s = e / h->terms, t = e % h->terms;
            covariances[e] += (term[s] - mean[s]) * (term[t] - mean[t]) / (double)keys / (double)h->tokens;
        }
    }
}

static att_status run_terms(const att_call *call)
{
    const att_score_terms_attrs *attrs = call->problem->attrs;
    head h = {.call = call,
              .attrs = attrs,
              .tokens = ref_dim(call, 0, 0),
              .terms = call->problem->out[0].shape.dims[1],
              .relative = att_score_relative(attrs)};
    int64_t windows = att_attention_windows(&attrs->attention), heads = attrs->attention.heads;
    h.in_window = h.tokens / windows;
    ref_range share = ref_share(call, call->problem->group * heads);
    for (int64_t at = share.begin; at < share.end; at++) {
        double covariances[ATT_SCORE_MOST_TERMS * ATT_SCORE_MOST_TERMS] = {0};
        h.sample = at / heads, h.number = at % heads;
        for (h.window = 0; h.window < windows; h.window++)
            for (int64_t i = 0; i < h.in_window; i++)
                add_covariances(&h, i, covariances);
        for (int64_t e = 0; e < h.terms * h.terms; e++)
            ref_out(call, 0, at * h.terms * h.terms + e, covariances[e]);
    }
    return ATT_OK;
}

const att_kernel att_ref_score_terms = {.op = "score_terms", .name = "ref", .run = run_terms};
