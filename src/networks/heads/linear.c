#include <attscope/ops.h>

#include "networks/heads/heads.h"

/* [h, w, channels of all stages of this size] */
static att_value join_stages(att_graph *graph, const att_features *features)
{
    const att_shape last = att_value_shape(graph, features->stages[features->stage_count - 1]);
    att_value joined = ATT_NONE;
    for (int i = 0; i < features->stage_count; i++) {
        const att_shape shape = att_value_shape(graph, features->stages[i]);
        if (shape.dims[0] != last.dims[0] || shape.dims[1] != last.dims[1])
            continue;
        joined = joined == ATT_NONE ? features->stages[i] : att_concat(graph, joined, features->stages[i]);
    }
    return joined;
}

att_value att_head_linear(const att_scope *scope, const att_backbone *backbone, int64_t outputs)
{
    att_graph *graph = scope->graph;
    if (!att_head_has_stages(graph, backbone))
        return ATT_NONE;
    att_value x = join_stages(graph, &backbone->features);
    const att_shape map = att_value_shape(graph, x);
    const att_scope norm = att_scope_in(scope, "bn"), linear = att_scope_in(scope, "linear");
    x = att_nn_batch_norm(&norm, x, 1);
    att_scope_enter(&linear);
    x = att_dropout(graph, x, backbone->drop_rate);
    x = att_reshape(graph, x, att_shape_of(map.dims[0] * map.dims[1], map.dims[2]));
    x = att_nn_linear(&linear, x, outputs, true);
    return att_reshape(graph, x, att_shape_of(map.dims[0], map.dims[1], outputs));
}
