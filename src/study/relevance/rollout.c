#include "base/core/error.h"
#include "study/relevance/list.h"

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int last = att_relevance_last_layer(r);
    double *way;
    ATT_TRY(att_relevance_check_tokens(job, last));
    ATT_TRY(att_new(r->context, &way, (size_t)r->explorer->layers[last].tokens, "a row of attention"));
    att_relevance_begin(r, way);
    att_status status = att_explorer_follow(r->explorer, last, way);
    if (status == ATT_OK)
        status = att_relevance_take_patches(job, last, way);
    att_free(r->context, way);
    return status;
}

const att_relevance_method att_relevance_rollout = {
    .info = {.name = "rollout",
             .title = "Rollout",
             .summary = "weights of attention, multiplied through all layers; the same for every class",
             .source = "Abnar and Zuidema, ACL 2020"},
    .compute = compute};
