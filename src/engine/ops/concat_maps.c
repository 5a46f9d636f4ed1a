#include "engine/ops/concat_maps.h"

#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

att_value att_concat_maps(att_graph *graph, const att_value *maps, int count)
{
    att_concat_maps_attrs attrs = {.count = count};
    for (int i = 0; i < count && i < ATT_CONCAT_MAPS; i++) {
        const att_shape shape = att_value_shape(graph, maps[i]);
        for (int axis = 0; axis < 3 && shape.rank == 3; axis++)
            attrs.size[i][axis] = (int32_t)shape.dims[axis];
    }
    return att_emit(graph, "concat_maps", &attrs, maps, count, NULL);
}

static att_status check_map(const att_infer *infer, int i)
{
    const att_concat_maps_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, i, i == 0 ? "the first map" : "a map", ATT_SAMPLE, 3));
    for (int axis = 0; axis < 3; axis++)
        if (infer->in[i].shape.dims[axis] != attrs->size[i][axis])
            return att_rule_fail(infer, ATT_ERR_MISMATCH, "map %d is %s, expected %d x %d pixels of %d channels", i,
                                 ATT_SHOWN(&infer->in[i]), attrs->size[i][0], attrs->size[i][1], attrs->size[i][2]);
    return ATT_OK;
}

static att_status concat_infer(att_infer *infer)
{
    const att_concat_maps_attrs *attrs = infer->attrs;
    int64_t channels = 0;
    if (infer->in_count < 1 || infer->in_count > ATT_CONCAT_MAPS || attrs->count != infer->in_count)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d maps, expected 1 to %d", infer->in_count, ATT_CONCAT_MAPS);
    for (int i = 0; i < infer->in_count; i++) {
        ATT_TRY(check_map(infer, i));
        channels += attrs->size[i][2];
    }
    const att_shape shape = att_shape_of(attrs->size[0][0], attrs->size[0][1], channels);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "maps of the size of %s with %lld channels together are too large",
                             ATT_SHOWN(&infer->in[0]), (long long)channels);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, shape);
}

static void concat_backward(att_backward *backward)
{
    const att_concat_maps_attrs attrs = *(const att_concat_maps_attrs *)att_backward_attrs(backward);
    att_value dy = att_backward_gradient(backward, 0);
    att_rule_add_outputs(backward, "concat_maps_grad", &attrs, &dy, 1, attrs.count);
}

/* As upsample_bilinear, as if every map were resized. */
static void concat_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in, (void)attrs;
    cost->flops = 8 * (double)att_shape_count(out->shape);
}

#define MAPS(count, ...) ATTRS(concat_maps, count, {__VA_ARGS__})
static const att_op_case concat_cases[] = {
    {.name = "pyramid",
     MAPS(3, {4, 6, 3}, {2, 3, 2}, {1, 1, 1}),
     IN(SAMPLE(4, 6, 3), SAMPLE(2, 3, 2), SAMPLE(1, 1, 1)),
     .gradient = true},
    {.name = "one_size", MAPS(2, {3, 2, 2}, {3, 2, 3}), IN(SAMPLE(3, 2, 2), SAMPLE(3, 2, 3)), .gradient = true},
    {.name = "one_map", MAPS(1, {2, 3, 4}), IN(SAMPLE(2, 3, 4)), .gradient = true},
    {.name = "larger_and_smaller",
     MAPS(3, {5, 7, 2}, {7, 4, 3}, {6, 9, 1}),
     IN(SAMPLE(5, 7, 2), SAMPLE(7, 4, 3), SAMPLE(6, 9, 1)),
     .gradient = true},
    {.name = "wide",
     MAPS(5, {6, 5, 70}, {3, 5, 17}, {6, 5, 16}, {2, 2, 1}, {1, 2, 19}),
     IN(SAMPLE(6, 5, 70), SAMPLE(3, 5, 17), SAMPLE(6, 5, 16), SAMPLE(2, 2, 1), SAMPLE(1, 2, 19))},
    {.name = "segmenter",
     MAPS(4, {56, 56, 128}, {28, 28, 128}, {14, 14, 128}, {7, 7, 128}),
     IN(SAMPLE(56, 56, 128), SAMPLE(28, 28, 128), SAMPLE(14, 14, 128), SAMPLE(7, 7, 128)),
     .bench = true},
};

const att_op att_op_concat_maps = {
    .name = "concat_maps",
    .attrs_size = sizeof(att_concat_maps_attrs),
    .help = "y [h, w, C1 + C2 + ..]: maps side by side, each resized to the first's h x w as by upsample_bilinear",
    .autocast_in = (1u << ATT_CONCAT_MAPS) - 1,
    .autocast_out = 1,
    .autocast_promote = (1u << ATT_CONCAT_MAPS) - 1,
    .infer = concat_infer,
    .backward = concat_backward,
    .cost = concat_cost,
    ATT_CASES(concat_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_concat_maps_attrs *attrs = infer->attrs;
    int64_t channels = 0;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "dy", ATT_SAMPLE, 3));
    for (int i = 0; i < attrs->count; i++)
        channels += attrs->size[i][2];
    if (infer->in[0].shape.dims[2] != channels)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s must have %lld channels", ATT_SHOWN(&infer->in[0]),
                             (long long)channels);
    for (int i = 0; i < attrs->count; i++)
        att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                     att_shape_of(attrs->size[i][0], attrs->size[i][1], attrs->size[i][2]));
    return ATT_OK;
}

static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out, (void)attrs;
    cost->flops = 8 * (double)att_shape_count(in->shape);
}

static const att_op_case grad_cases[] = {
    {.name = "pyramid", MAPS(3, {4, 6, 3}, {2, 3, 2}, {1, 1, 1}), IN(SAMPLE(4, 6, 6))},
    {.name = "larger_and_smaller", MAPS(3, {5, 7, 2}, {7, 4, 33}, {6, 9, 70}), IN(SAMPLE(5, 7, 105))},
    {.name = "segmenter",
     MAPS(4, {56, 56, 128}, {28, 28, 128}, {14, 14, 128}, {7, 7, 128}),
     IN(SAMPLE(56, 56, 512)),
     .bench = true},
};

const att_op att_op_concat_maps_grad = {
    .name = "concat_maps_grad",
    .attrs_size = sizeof(att_concat_maps_attrs),
    .help = "dx1, dx2, ..: the transpose of concat_maps on dy",
    .autocast_in = 1,
    .autocast_out = (1u << ATT_CONCAT_MAPS) - 1,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};
