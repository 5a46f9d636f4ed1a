#include "base/core/error.h"
#include "study/relevance/list.h"

enum { LAYER };
static const att_detail options[] = {
    {"layer", "attention layer, from 0; -1: the last", -1, -1, 9999, NULL, true},
};

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int last = att_relevance_last_layer(r), layer = job->options[LAYER] < 0 ? last : (int)job->options[LAYER];
    double *weights;
    if (layer > last)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "attention layer %d does not exist: the network has %d, from 0",
                        layer, last + 1);
    ATT_TRY(att_relevance_check_tokens(job, last));
    ATT_TRY(att_relevance_differentiate(job, job->image));
    const size_t tokens = (size_t)r->explorer->layers[layer].tokens;
    ATT_TRY(att_new(r->context, &weights, 2 * tokens, "rows of relevance"));
    att_relevance_begin(r, weights);
    att_status status = att_relevance_attention(job, layer, weights, weights + tokens);
    if (status == ATT_OK)
        status = att_relevance_take_patches(job, layer, weights + tokens);
    att_free(r->context, weights);
    return status;
}

const att_relevance_method att_relevance_attention_gradient = {
    .info = {.name = "attention_gradient",
             .title = "Attention x gradient of one layer",
             .summary = "weights of attention of one layer times their gradients",
             .source = "Chefer, Gur and Wolf, ICCV 2021",
             .options = options,
             .option_count = sizeof options / sizeof *options},
    .compute = compute};
