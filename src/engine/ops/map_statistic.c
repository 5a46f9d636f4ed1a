#include "engine/ops/map_statistic.h"
#include <attscope/ops.h>

#include <math.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_map_statistic(att_graph *graph, att_value map, att_map_statistic_kind kind, double parameter)
{
    const att_map_statistic_attrs attrs = {.kind = (int64_t)kind, .parameter = parameter};
    return att_emit(graph, "map_statistic", &attrs, &map, 1, NULL);
}

static att_status statistic_infer(att_infer *infer)
{
    const att_map_statistic_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "map", ATT_SAMPLE, 3));
    if (attrs->kind < 0 || attrs->kind >= ATT_MAP_STATISTICS)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "kind is %lld, must be 0 to %d", (long long)attrs->kind,
                             ATT_MAP_STATISTICS - 1);
    if (!isfinite(attrs->parameter) || attrs->parameter < 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "parameter is %g, must be at least 0 and finite",
                             attrs->parameter);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(infer->in[0].shape.dims[0]));
}

static void statistic_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    /* For each weight: a comparison; steps of Newton's method; an exponential and two logarithms. */
    static const double each[ATT_MAP_STATISTICS] = {1, 40, 60, 60};
    (void)out;
    cost->flops = each[((const att_map_statistic_attrs *)attrs)->kind] * (double)att_shape_count(in->shape);
}

/* Weights whose rows add up to about 1. The rows of "sharp" have some that are negative, which count as 0. */
#define STATISTIC(kind_, parameter_) ATTRS(map_statistic, .kind = ATT_MAP_##kind_, .parameter = (parameter_))
#define MAP(scale, shift, ...) IN(DRAWN(ATT_SAMPLE, scale, shift, __VA_ARGS__))
static const att_op_case statistic_cases[] = {
    {.name = "density", STATISTIC(DENSITY, 1), MAP(0.02, 0.2, 2, 3, 5)},
    {.name = "spectral", STATISTIC(SPECTRAL, 0), MAP(0.02, 0.2, 2, 3, 5)},
    {.name = "spectral_sharp", STATISTIC(SPECTRAL, 0), MAP(0.1, 0, 3, 7, 17)},
    {.name = "spectral_one_key", STATISTIC(SPECTRAL, 0), MAP(0, 1, 2, 3, 1)},
    {.name = "spectral_uniform", STATISTIC(SPECTRAL, 0), MAP(0, 0.125, 2, 3, 8)},
    {.name = "step_length", STATISTIC(STEP_LENGTH, 1), MAP(0.02, 0.2, 2, 3, 5)},
    {.name = "step_length_sharp", STATISTIC(STEP_LENGTH, 3), MAP(0.1, 0, 3, 7, 17)},
    {.name = "step_length_one_key", STATISTIC(STEP_LENGTH, 1), MAP(0, 1, 2, 3, 1)},
    {.name = "step_rate", STATISTIC(STEP_RATE, 2), MAP(0.02, 0.2, 2, 3, 5)},
    {.name = "density_tiny", STATISTIC(DENSITY, 1), MAP(0.001, 0.005, 3, 197, 197), .bench = true},
    {.name = "spectral_tiny", STATISTIC(SPECTRAL, 0), MAP(0.001, 0.005, 3, 197, 197), .bench = true},
    {.name = "step_tiny", STATISTIC(STEP_LENGTH, 1), MAP(0.001, 0.005, 3, 197, 197), .bench = true},
};

const att_op att_op_map_statistic = {
    .name = "map_statistic",
    .attrs_size = sizeof(att_map_statistic_attrs),
    .help = "means over queries of figures of whole rows of attention maps, one for each head",
    .infer = statistic_infer,
    .cost = statistic_cost,
    ATT_CASES(statistic_cases),
};
