/* Style-based recalibration. Lee, Kim, Nam: "SRM: A Style-based Recalibration Module for Convolutional Neural
 * Networks", ICCV 2019. Names and shapes as in the authors' public code. */
#include <attscope/ops.h>

#include "networks/nn/gates.h"

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    (void)values;
    static const att_init zeros = {ATT_INIT_CONSTANT, 0};
    att_shape shape = att_shape_of(att_width_of(scope, site->branch), 2);
    att_value weight = att_scope_parameter(scope, "cfc", shape, zeros, true);
    att_value style = att_gates_style(scope, site->branch);
    att_value z = att_channel_linear(scope->graph, style, weight);
    return att_gates_apply(scope, site->branch, att_gates_norm(scope, z), ATT_START_RANDOM);
}

extern const att_module att_module_srm;

const att_module att_module_srm = {
    .name = "srm",
    .meaning = "mean and deviation, weighted per channel, batch norm, sigmoid (Lee et al., ICCV 2019)",
    .places = ATT_ON_MAPS,
    .scope = "srm",
    .parameter = "cfc",
    .apply = apply,
};
