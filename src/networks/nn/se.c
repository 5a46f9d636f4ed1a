/* Squeeze and excitation. Hu, Shen, Sun: "Squeeze-and-Excitation Networks", CVPR 2018. Names and shapes as in timm. */
#include <attscope/ops.h>

#include "networks/nn/gates.h"

enum { RATIO, BIAS, DIVISOR, HIDDEN, START };

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    int64_t channels = att_width_of(scope, site->branch);
    att_bottleneck_options options = {
        .names = {"fc1", "fc2"},
        .inputs = channels,
        .hidden = att_bottleneck_hidden(channels, values[RATIO], values[DIVISOR] > 0 ? 8 : 0, values[HIDDEN]),
        .outputs = channels,
        .bias = values[BIAS] > 0,
        .convolution = true,
        .zero = values[START] == ATT_START_IDENTITY,
    };
    att_bottleneck bottleneck = att_bottleneck_declare(scope, &options);
    att_scope_enter(scope);
    att_value pooled = att_global_mean(scope->graph, site->branch);
    att_value z = att_bottleneck_apply(scope, &bottleneck, pooled);
    return att_gates_apply(scope, site->branch, z, (int)values[START]);
}

static const char *const no_yes[] = {"0", "1", NULL}, *const divisors[] = {"1", "8", NULL};

extern const att_module att_module_se;

const att_module att_module_se = {
    .name = "se",
    .meaning = "mean, C -> C / ratio, ReLU, -> C, sigmoid: a gate per channel (Hu et al., CVPR 2018)",
    .places = ATT_ON_TOKENS | ATT_ON_MAPS,
    .options =
        {[RATIO] = {.name = "ratio", .meaning = "C over the hidden width", .start = 16, .low = 1, .high = 1024},
         [BIAS] = {.name = "bias", .meaning = "linear layers with a bias", .start = 1, .high = 1, .choices = no_yes},
         [DIVISOR] = {.name = "divisor",
                      .meaning = "of the hidden width: 1 rounds down, as in CIFAR's SE networks; 8 to the nearest "
                                 "multiple, as in timm's",
                      .high = 1,
                      .choices = divisors},
         [HIDDEN] = ATT_HIDDEN_OPTION,
         [START] = ATT_START_OPTION},
    .option_count = 5,
    .scope = "se",
    .parameter = "fc1.weight",
    .other_names = {{"fc1", "fc.0"}, {"fc2", "fc.2"}},
    .other_scope = "se_module", /* in Cadene's pretrained-models.pytorch */
    .apply = apply,
};
