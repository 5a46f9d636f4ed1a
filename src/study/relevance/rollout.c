#include "base/core/error.h"
#include "study/relevance/list.h"

/* way = way / 2 + way A / 2, A the mean over heads, from the last layer to the first. rows: scratch [H, N] */
static att_status follow(const att_relevance_job *job, int last, double *way, double *rows)
{
    const att_explorer *e = job->relevance->explorer;
    att_relevance_begin(job->relevance, way);
    for (int l = last; l >= 0; l--) {
        const att_explored_layer *layer = &e->layers[l];
        ATT_TRY(att_explorer_sum(e, l, way, rows));
        for (int64_t j = 0; j < layer->tokens; j++) {
            double mean = 0;
            for (int head = 0; head < layer->attrs.heads; head++)
                mean += rows[head * layer->tokens + j] / layer->attrs.heads;
            way[j] = way[j] / 2 + mean / 2;
        }
    }
    return att_relevance_take_patches(job, last, way);
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int last = att_relevance_last_layer(r);
    size_t heads = 1;
    double *way;
    ATT_TRY(att_relevance_check_tokens(job, last));
    for (int l = 0; l <= last; l++)
        heads = (size_t)r->explorer->layers[l].attrs.heads > heads ? (size_t)r->explorer->layers[l].attrs.heads : heads;
    const size_t tokens = (size_t)r->explorer->layers[last].tokens;
    ATT_TRY(att_new(r->context, &way, (heads + 1) * tokens, "rows of attention"));
    const att_status status = follow(job, last, way, way + tokens);
    att_free(r->context, way);
    return status;
}

const att_relevance_method att_relevance_rollout = {
    .info = {.name = "rollout",
             .title = "Rollout",
             .summary = "weights of attention, multiplied through all layers; the same for every class",
             .source = "Abnar and Zuidema, ACL 2020"},
    .compute = compute};
