/* The way of relevance through an attention layer, from tiles of queries. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/threads.h"
#include "study/relevance/method.h"

/* Partial sums: queries i, i + LANES, ... belong to a lane. The lanes are added in order, whichever thread computed
 * them. */
enum { LANES = 32 };

typedef struct product {
    const att_relevance *relevance;
    const att_explored_layer *layer;
    int number, threads;
    const double *weights;
    double *rows; /* [threads, N]: scratch */
    double *sums; /* [LANES, N] */
} product;

att_status att_relevance_check_tokens(const att_relevance_job *job, int layer)
{
    const att_relevance *r = job->relevance;
    const char *name = "relevance along attention";
    if (r->explorer->layer_count == 0)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: the network has no attention layer", name);
    ATT_TRY(att_explorer_check_tokens(r->explorer, layer, name));
    const att_attention_attrs *attrs = &r->explorer->layers[layer].attrs;
    if (r->read.reason)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s does not apply to this network: %s", name, r->read.reason);
    if (r->explorer->layers[layer].tokens != attrs->prefix + (int64_t)attrs->grid_h * attrs->grid_w)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: the tokens of %s fill no grid", name,
                        r->explorer->layers[layer].scope);
    return ATT_OK;
}

void att_relevance_begin(const att_relevance *r, double *weights)
{
    memset(weights, 0, (size_t)r->explorer->layers[att_relevance_last_layer(r)].tokens * sizeof *weights);
    for (int64_t i = r->read.first; i < r->read.first + r->read.count; i++)
        weights[i] = 1 / (double)r->read.count;
}

/* sum_j += weight / H (a_ij dy/da_ij)_+ of one head. */
static void add_head(const product *p, int64_t i, int head, double *row, double *sum)
{
    const att_attention_attrs *attrs = &p->layer->attrs;
    const att_explored_layer *layer = p->layer;
    const int64_t width = layer->keep.count / attrs->heads, value_head = head / (attrs->heads / attrs->value_heads);
    const float *gradient = p->relevance->gradient + i * layer->keep.count + head * width;
    const float *values = p->relevance->values + value_head * width;
    att_explorer_head_row(p->relevance->explorer, p->number, i, head, row);
    for (int64_t j = 0; j < layer->tokens; j++) {
        const double relevance = row[j] * att_explorer_dot(gradient, values + j * width * attrs->value_heads, width);
        if (relevance > 0)
            sum[j] += p->weights[i] / attrs->heads * relevance;
    }
}

static void work(void *user, int thread)
{
    const product *p = user;
    const int64_t tokens = p->layer->tokens;
    for (int lane = thread; lane < LANES; lane += p->threads)
        for (int64_t i = lane; i < tokens; i += LANES)
            for (int head = 0; p->weights[i] != 0 && head < p->layer->attrs.heads; head++)
                if (p->layer->changes[head] != ATT_HEAD_REMOVED)
                    add_head(p, i, head, p->rows + thread * tokens, p->sums + lane * tokens);
}

att_status att_relevance_attention(const att_relevance_job *job, int layer, const double *weights, double *sums)
{
    const att_relevance *r = job->relevance;
    product p = {.relevance = r,
                 .layer = &r->explorer->layers[layer],
                 .number = layer,
                 .threads = att_context_threads(r->context),
                 .weights = weights};
    const size_t tokens = (size_t)p.layer->tokens;
    ATT_TRY(att_relevance_read(r, "output", layer));
    if (att_stop_asked(r->context))
        return att_fail(r->context, ATT_ERR_STOPPED, "%s: stopped on request", p.layer->scope);
    ATT_TRY(att_new(r->context, &p.sums, (LANES + (size_t)p.threads) * tokens, "rows of relevance"));
    p.rows = p.sums + LANES * tokens;
    att_threads_run(r->context, p.threads, work, &p);
    memset(sums, 0, tokens * sizeof *sums);
    for (size_t e = 0; e < LANES * tokens; e++)
        sums[e % tokens] += p.sums[e];
    att_free(r->context, p.sums);
    return ATT_OK;
}

att_status att_relevance_take_patches(const att_relevance_job *job, int layer, const double *tokens)
{
    const att_attention_attrs *attrs = &job->relevance->explorer->layers[layer].attrs;
    double *map = att_relevance_begin_map(job, attrs->grid_h, attrs->grid_w);
    memcpy(map, tokens + attrs->prefix, (size_t)attrs->grid_h * (size_t)attrs->grid_w * sizeof *map);
    return ATT_OK;
}
