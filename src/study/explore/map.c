#include <math.h>

#include "base/core/error.h"
#include "study/explore/explorer.h"

static att_status check(const att_explorer *explorer, int layer, int head)
{
    if (layer < 0 || layer >= explorer->layer_count)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT,
                        "attention layer %d does not exist: the network has %d, from 0", layer, explorer->layer_count);
    const att_explored_layer *explored = &explorer->layers[layer];
    const att_attention_attrs *attrs = &explored->attrs;
    if (head < -1 || head >= attrs->heads)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "head %d of %s does not exist: it has %d, from 0", head,
                        explored->scope, attrs->heads);
    if (explored->tokens != attrs->prefix + (int64_t)attrs->grid_h * attrs->grid_w)
        return att_fail(explorer->context, ATT_ERR_UNSUPPORTED, "the tokens of %s fill no grid", explored->scope);
    return ATT_OK;
}

/* Writes rows [H, N] of a query, or their mean over the queries (query -1). */
static att_status find_rows(const att_explorer *explorer, int layer, int query, double *rows)
{
    const att_explored_layer *explored = &explorer->layers[layer];
    const int64_t count = explored->attrs.heads * explored->tokens;
    att_status status;
    if (query < 0) {
        double *weights;
        ATT_TRY(att_new(explorer->context, &weights, (size_t)explored->queries, "the weights of queries"));
        for (int64_t i = 0; i < explored->queries; i++)
            weights[i] = 1 / (double)explored->queries;
        status = att_explorer_sum(explorer, layer, weights, rows);
        att_free(explorer->context, weights);
        return status;
    }
    float *narrow;
    ATT_TRY(att_new(explorer->context, &narrow, (size_t)count, "rows of an attention map"));
    status = att_explorer_row(explorer, layer, query, NULL, narrow);
    for (int64_t i = 0; i < count; i++)
        rows[i] = (double)narrow[i];
    att_free(explorer->context, narrow);
    return status;
}

att_status att_explorer_map(const att_explorer *explorer, int layer, int head, int query, double *map)
{
    double *rows;
    ATT_TRY(check(explorer, layer, head));
    const att_explored_layer *explored = &explorer->layers[layer];
    const int heads = explored->attrs.heads;
    const int64_t patches = explored->tokens - explored->attrs.prefix;
    ATT_TRY(att_new(explorer->context, &rows, (size_t)(heads * explored->tokens), "rows of an attention map"));
    const att_status status = find_rows(explorer, layer, query, rows);
    for (int64_t j = 0; j < patches && status == ATT_OK; j++) {
        map[j] = 0;
        for (int h = head < 0 ? 0 : head; h < (head < 0 ? heads : head + 1); h++)
            map[j] += rows[h * explored->tokens + explored->attrs.prefix + j] / (head < 0 ? heads : 1);
    }
    att_free(explorer->context, rows);
    return status;
}
