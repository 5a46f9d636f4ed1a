/* Efficient channel attention. Wang et al.: "ECA-Net", CVPR 2020. Names and shapes as in timm. */
#include <attscope/ops.h>

#include "networks/nn/gates.h"

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    int64_t k = values[0] > 0 ? 1 + 2 * (int64_t)values[0] : 0;
    att_scope_enter(scope);
    att_value pooled = att_global_mean(scope->graph, site->branch);
    att_value z = att_gates_channel_conv(scope, "conv", pooled, k, false);
    return att_gates_apply(scope, site->branch, z, ATT_START_RANDOM);
}

/* The kernel size of choice i > 0 is 1 + 2 i. */
static const char *const kernels[] = {"auto", "3", "5", "7", "9", "11", "13", "15", NULL};

extern const att_module att_module_eca;

const att_module att_module_eca = {
    .name = "eca",
    .meaning = "mean, convolution of k channels, sigmoid: a gate per channel (Wang et al., CVPR 2020)",
    .places = ATT_ON_MAPS,
    .options = {{.name = "k",
                 .meaning =
                     "size of the convolution; auto: floor(log2(C) / 2 + 1 / 2), the next odd number, at least 3",
                 .high = 7,
                 .choices = kernels}},
    .option_count = 1,
    .scope = "se", /* timm gives the attention of a block this name, whatever its kind */
    .parameter = "conv.weight",
    .other_scope = "eca",
    .apply = apply,
};
