/* Frequency channel attention. Qin et al.: "FcaNet", ICCV 2021. Names and shapes as in the authors' public code. */
#include "networks/nn/gates.h"

enum { RATIO, SHRINK, HIDDEN };

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    int64_t channels = att_width_of(scope, site->branch);
    att_bottleneck_options options = {.names = {"fc.0", "fc.2"},
                                      .inputs = channels,
                                      .hidden = att_bottleneck_hidden(channels, values[RATIO], 0, values[HIDDEN]),
                                      .outputs = channels};
    att_bottleneck bottleneck = att_bottleneck_declare(scope, &options);
    att_value pooled = att_gates_dct(scope, site->branch, values[SHRINK]);
    att_value z = att_bottleneck_apply(scope, &bottleneck, pooled);
    return att_gates_apply(scope, site->branch, z, ATT_START_RANDOM);
}

extern const att_module att_module_fca;

const att_module att_module_fca = {
    .name = "fca",
    .meaning = "as se without biases, each of 16 groups of channels pooled with its own cosine (Qin et al., ICCV 2021)",
    .places = ATT_ON_MAPS,
    .options = {[RATIO] = {.name = "ratio", .meaning = "C over the hidden width", .start = 16, .low = 1, .high = 1024},
                [SHRINK] = {.name = "shrink",
                            .meaning = "image size divided by that of the training: maps are averaged to the size that "
                                       "they had there",
                            .start = 1,
                            .low = 1,
                            .high = 64},
                [HIDDEN] = ATT_HIDDEN_OPTION},
    .option_count = 3,
    .scope = "att",
    .parameter = "fc.0.weight",
    .constant = "dct_layer.weight",
    .constant_at = att_gates_dct_at,
    .apply = apply,
};
