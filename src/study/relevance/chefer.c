#include "base/core/error.h"
#include "study/relevance/list.h"

/* way = way (I + B_l), from the last layer to the first. sums: scratch */
static att_status follow(const att_relevance_job *job, int last, double *way, double *sums)
{
    const int64_t tokens = job->relevance->explorer->layers[last].tokens;
    att_relevance_begin(job->relevance, way);
    for (int l = last; l >= 0; l--) {
        ATT_TRY(att_relevance_attention(job, l, way, sums));
        for (int64_t j = 0; j < tokens; j++)
            way[j] += sums[j];
    }
    return att_relevance_take_patches(job, last, way);
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int last = att_relevance_last_layer(r);
    double *way;
    ATT_TRY(att_relevance_check_tokens(job, last));
    ATT_TRY(att_relevance_differentiate(job, job->image));
    const size_t tokens = (size_t)r->explorer->layers[last].tokens;
    ATT_TRY(att_new(r->context, &way, 2 * tokens, "rows of relevance"));
    const att_status status = follow(job, last, way, way + tokens);
    att_free(r->context, way);
    return status;
}

const att_relevance_method att_relevance_chefer = {
    .info = {.name = "chefer",
             .title = "Attention x gradient through all layers",
             .summary = "weights of attention times their gradients, multiplied through all layers",
             .source = "Chefer, Gur and Wolf, ICCV 2021"},
    .compute = compute};
