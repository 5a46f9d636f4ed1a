#include "networks/models/relative_bias.h"

#include <math.h>

#include <attscope/ops.h>

#include "networks/models/patches.h"

int64_t att_relative_shifts(const int sides[2])
{
    return (2 * (int64_t)sides[0] - 1) * (2 * (int64_t)sides[1] - 1);
}

int att_relative_side(int64_t rows)
{
    int side = (att_patches_side(rows) + 1) / 2;
    return att_relative_shifts((const int[]){side, side}) == rows ? side : 0;
}

static att_value build_table(const att_scope *scope, const att_relative_form *form, const int sides[2], int prefix,
                             int heads)
{
    int64_t rows = att_relative_shifts(sides) + (prefix > 0 ? ATT_RELATIVE_PREFIX_ROWS : 0);
    return att_scope_parameter(scope, "relative_position_bias_table", att_shape_of(rows, heads), form->start,
                               form->decay);
}

static att_value build_mlp(const att_scope *scope, const att_relative_form *form, const int sides[2], int heads)
{
    /* With this window as the reference, the coordinates of att_log_shifts() are those of the formula over 3 ln 2. */
    enum { REFERENCE = 9 };
    att_scope mlp = att_scope_in(scope, "%s", form->mlp ? form->mlp : "mlp"), fc1 = att_scope_in(&mlp, "fc1"),
              fc2 = att_scope_in(&mlp, "fc2");
    att_graph *graph = scope->graph;
    att_scope_enter(scope);
    att_value x = att_log_shifts(graph, sides[0], sides[1], REFERENCE, REFERENCE);
    x = att_nn_classifier(&fc1, att_combine(graph, 3 * log(2), x, 0, ATT_NONE), form->hidden);
    return att_nn_classifier(&fc2, att_relu(graph, x), heads);
}

/* timm decays none of these weights. */
static att_value build_sigmoid(const att_scope *scope, const att_relative_form *form, const int sides[2], int heads)
{
    static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
    const int64_t hidden = form->hidden;
    att_graph *graph = scope->graph;
    att_scope in = att_scope_in(scope, "cpb_mlp.0"), out = att_scope_in(scope, "cpb_mlp.2");
    att_value in_weight = att_scope_parameter(&in, "weight", att_shape_of(hidden, 2), att_init_linear(), false);
    att_value in_bias = att_scope_parameter(&in, "bias", att_shape_of(hidden), zeros, false);
    att_value out_weight = att_scope_parameter(&out, "weight", att_shape_of(heads, hidden), att_init_linear(), false);
    att_scope_enter(scope);
    att_value x = att_log_shifts(graph, sides[0], sides[1], form->pretrained, form->pretrained);
    x = att_linear(graph, att_relu(graph, att_linear(graph, x, in_weight, in_bias)), out_weight, ATT_NONE);
    return att_combine(graph, 16, att_sigmoid(graph, x), 0, ATT_NONE);
}

att_value att_relative_bias(const att_scope *scope, const att_relative_form *form, const int sides[2], int prefix,
                            int heads)
{
    att_scope own = form->scope ? att_scope_in(scope, "%s", form->scope) : *scope;
    switch (form->kind) {
    case ATT_RELATIVE_TABLE:
        return build_table(&own, form, sides, prefix, heads);
    case ATT_RELATIVE_MLP:
        return build_mlp(&own, form, sides, heads);
    case ATT_RELATIVE_SIGMOID:
        return build_sigmoid(&own, form, sides, heads);
    case ATT_RELATIVE_SHARED:
        return form->shared;
    case ATT_RELATIVE_NONE:
        break;
    }
    return ATT_NONE;
}
