#include "engine/ops/mix_pairs.h"
#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"
#include "engine/ops/two_maps_rule.h"

att_value att_pair_attention(att_graph *graph, att_value x, att_value row_scores, att_value column_scores,
                             const att_pair_attention_options *options)
{
    static const att_pair_attention_options none;
    const att_pair_attention_options o = options ? *options : none;
    const int32_t stride = o.stride == 0 ? 1 : o.stride;
    const att_shape rows = att_value_shape(graph, row_scores), columns = att_value_shape(graph, column_scores);
    att_mix_pairs_attrs attrs = {.ring = o.ring, .stride = stride, .groups = o.groups == 0 ? 1 : o.groups};
    attrs.attention = (att_attention_attrs){.heads = (int32_t)(rows.dims[0] * columns.dims[0]),
                                            .key_heads = 1,
                                            .value_heads = 1,
                                            .grid_h = (int32_t)rows.dims[1],
                                            .grid_w = (int32_t)columns.dims[1],
                                            .step_h = stride * (o.step_h == 0 ? 1 : o.step_h),
                                            .step_w = stride * (o.step_w == 0 ? 1 : o.step_w),
                                            .scale = 1};
    att_value in[IN_COUNT] = {x, att_softmax(graph, row_scores), att_softmax(graph, column_scores)};
    return att_emit(graph, "mix_pairs", &attrs, in, IN_COUNT, NULL);
}

/* A map [maps, queries, keys + 2 ring]. */
static att_status check_map(const att_infer *infer, int i, const char *name, int64_t queries, int64_t keys)
{
    const att_mix_pairs_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, i, name, ATT_SHARED, 3));
    return att_rule_require_shape(infer, i, name, ATT_SHARED,
                                  att_shape_of(infer->in[i].shape.dims[0], queries, keys + 2 * (int64_t)attrs->ring));
}

/* first: the node's input v */
static att_status check_inputs(const att_infer *infer, int first)
{
    const att_mix_pairs_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, first + V, "x", ATT_SAMPLE, 3));
    if (attrs->ring < 0 || attrs->stride < 1 || attrs->groups < 1)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "ring is %d, stride %d, groups %d; must be at least 0, 1 and 1",
                             attrs->ring, attrs->stride, attrs->groups);
    const int64_t *dims = infer->in[first + V].shape.dims;
    if (dims[2] % attrs->groups)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "the channels of x %s do not divide into %d groups",
                             ATT_SHOWN(&infer->in[first + V]), attrs->groups);
    ATT_TRY(check_map(infer, first + ROW_MAP, "the map of rows", attrs->attention.grid_h, dims[0]));
    ATT_TRY(check_map(infer, first + COLUMN_MAP, "the map of columns", attrs->attention.grid_w, dims[1]));
    if (infer->in[first + ROW_MAP].shape.dims[0] * infer->in[first + COLUMN_MAP].shape.dims[0] !=
        attrs->attention.heads)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "maps %s and %s do not make %d heads",
                             ATT_SHOWN(&infer->in[first + ROW_MAP]), ATT_SHOWN(&infer->in[first + COLUMN_MAP]),
                             attrs->attention.heads);
    return ATT_OK;
}

/* [h', w', H C] */
static att_shape out_shape(const att_infer *infer, int v)
{
    const att_attention_attrs *attrs = infer->attrs;
    return att_shape_of(attrs->grid_h, attrs->grid_w, attrs->heads * infer->in[v].shape.dims[2]);
}

static att_status pairs_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, IN_COUNT));
    ATT_TRY(check_inputs(infer, V));
    att_shape shape = out_shape(infer, V);
    if (att_shape_count(shape) < 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%d heads of x %s are too many",
                             ((const att_attention_attrs *)infer->attrs)->heads, ATT_SHOWN(&infer->in[V]));
    return att_rule_out(infer, infer->in[V].dtype, ATT_SAMPLE, shape);
}

static void pairs_backward(att_backward *backward)
{
    att_two_maps_backward(backward, "mix_pairs_grad");
}

/* Products along the rows, R h' h of w C numbers, then along the columns, R S h' w' w of C numbers. in: from v on */
static double macs_of(const att_desc *in, const att_attention_attrs *attrs)
{
    const int64_t *dims = in[V].shape.dims;
    double rows = (double)in[ROW_MAP].shape.dims[0] * attrs->grid_h * (double)dims[0] * (double)dims[1];
    double columns = (double)attrs->heads * attrs->grid_h * attrs->grid_w * (double)dims[1];
    return (rows + columns) * (double)dims[2];
}

static void pairs_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->macs = macs_of(in, attrs);
}

#define PAIRS(heads_, gh, gw, ring_, stride_, groups_) \
    ATTRS(mix_pairs,                                   \
          .attention = {.heads = (heads_),             \
                        .key_heads = 1,                \
                        .value_heads = 1,              \
                        .grid_h = (gh),                \
                        .grid_w = (gw),                \
                        .step_h = (stride_),           \
                        .step_w = (stride_),           \
                        .scale = 1},                   \
          .ring = (ring_), .stride = (stride_), .groups = (groups_))
#define MAP_OF(maps, queries, keys) DRAWN(ATT_SHARED, 0.3, 0, maps, queries, keys)
static const att_op_case pairs_cases[] = {
    {.name = "odd", PAIRS(6, 3, 4, 1, 1, 1), IN(SAMPLE(3, 4, 3), MAP_OF(2, 3, 5), MAP_OF(3, 4, 6)), .gradient = true},
    {.name = "groups",
     PAIRS(4, 2, 3, 0, 2, 2),
     IN(SAMPLE(3, 5, 4), MAP_OF(2, 2, 3), MAP_OF(2, 3, 5)),
     .gradient = true},
    {.name = "one_pixel", PAIRS(1, 1, 1, 1, 1, 1), IN(SAMPLE(1, 1, 3), MAP_OF(1, 1, 3), MAP_OF(1, 1, 3))},
    {.name = "fewer_queries", PAIRS(9, 4, 5, 1, 2, 1), IN(SAMPLE(8, 9, 19), MAP_OF(3, 4, 10), MAP_OF(3, 5, 11))},
    {.name = "wide", PAIRS(2, 3, 3, 0, 1, 1), IN(SAMPLE(3, 3, 147), MAP_OF(1, 3, 3), MAP_OF(2, 3, 3))},
    {.name = "resnet20_stage3",
     PAIRS(9, 8, 8, 1, 1, 1),
     IN(SAMPLE(8, 8, 64), MAP_OF(3, 8, 10), MAP_OF(3, 8, 10)),
     .bench = true},
};

const att_op att_op_mix_pairs = {
    .name = "mix_pairs",
    .attrs_size = sizeof(att_mix_pairs_attrs),
    .help =
        "o_yx = sum_y' r_yy' sum_x' c_xx' v_y'x', for each pair of a row map r and a column map c, which are the "
        "same for all samples",
    .autocast_in = 1u << V,
    .autocast_out = 1,
    .infer = pairs_infer,
    .backward = pairs_backward,
    .cost = pairs_cost,
    ATT_CASES(pairs_cases),
};

static att_status grad_infer(att_infer *infer)
{
    static const att_two_maps_rule rule = {check_inputs, out_shape};
    return att_two_maps_infer_grad(infer, &rule);
}

/* The forward product along the rows, and the gradients of values and of maps along each axis. */
static void grad_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)out;
    cost->macs = 3 * macs_of(in + GRAD_V, attrs);
}

static const att_op_case grad_cases[] = {
    {.name = "odd", PAIRS(6, 3, 4, 1, 1, 1), IN(SAMPLE(3, 4, 18), SAMPLE(3, 4, 3), MAP_OF(2, 3, 5), MAP_OF(3, 4, 6))},
    {.name = "groups",
     PAIRS(4, 2, 3, 0, 2, 2),
     IN(SAMPLE(2, 3, 16), SAMPLE(3, 5, 4), MAP_OF(2, 2, 3), MAP_OF(2, 3, 5))},
    {.name = "one_pixel",
     PAIRS(1, 1, 1, 1, 1, 1),
     IN(SAMPLE(1, 1, 3), SAMPLE(1, 1, 3), MAP_OF(1, 1, 3), MAP_OF(1, 1, 3))},
    {.name = "fewer_queries",
     PAIRS(9, 4, 5, 1, 2, 1),
     IN(SAMPLE(4, 5, 171), SAMPLE(8, 9, 19), MAP_OF(3, 4, 10), MAP_OF(3, 5, 11))},
    {.name = "wide",
     PAIRS(2, 3, 3, 0, 1, 1),
     IN(SAMPLE(3, 3, 294), SAMPLE(3, 3, 147), MAP_OF(1, 3, 3), MAP_OF(2, 3, 3))},
    {.name = "resnet20_stage3",
     PAIRS(9, 8, 8, 1, 1, 1),
     IN(SAMPLE(8, 8, 576), SAMPLE(8, 8, 64), MAP_OF(3, 8, 10), MAP_OF(3, 8, 10)),
     .bench = true},
};

const att_op att_op_mix_pairs_grad = {
    .name = "mix_pairs_grad",
    .attrs_size = sizeof(att_mix_pairs_attrs),
    .help =
        "dv_y'x' = sum of r_yy' g_yx', g_yx' = sum of c_xx' do_yx; dr_yy' = sum of g_yx' . v_y'x' over x'; dc_xx' = "
        "sum of do_yx . (sum_y' r_yy' v_y'x') over y; 0 for a weight that is 0, which softmax multiplies with it",
    .autocast_in = 1u << GRAD_DY | 1u << GRAD_V,
    .autocast_out = 1u << V,
    .infer = grad_infer,
    .cost = grad_cost,
    ATT_CASES(grad_cases),
};

/* --- for probes --------------------------------------------------------------------------------------------------- */

/* rows: the map of rows, so that the node's attributes are those of mix_pairs */
static att_status maps_infer(att_infer *infer)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "the map of rows", ATT_SAMPLE, 3));
    ATT_TRY(att_rule_require_rank(infer, 1, "the map of columns", ATT_SAMPLE, 3));
    const int64_t *rows = infer->in[0].shape.dims, *columns = infer->in[1].shape.dims;
    int64_t heads = rows[0] * columns[0], queries = rows[1] * columns[1];
    att_shape map = att_shape_of(heads, queries, rows[2] * columns[2]);
    if (heads != attrs->heads || rows[1] != attrs->grid_h || columns[1] != attrs->grid_w || att_shape_count(map) < 0)
        return att_rule_fail(
            infer, ATT_ERR_MISMATCH, "maps %s and %s do not make %d heads of %d x %d queries, or make too many weights",
            ATT_SHOWN(&infer->in[0]), ATT_SHOWN(&infer->in[1]), attrs->heads, attrs->grid_h, attrs->grid_w);
    att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(heads, queries, ATT_STAT_COUNT));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, map);
}

static void maps_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in, (void)attrs;
    cost->flops = 16 * (double)att_shape_count(out[ATT_PAIR_MAPS_MAP].shape);
}

#define WEIGHTS_OF(maps, queries, keys) DRAWN(ATT_SAMPLE, 0.04, 0.3, maps, queries, keys)
static const att_op_case maps_cases[] = {
    {.name = "odd", PAIRS(6, 3, 4, 1, 1, 1), IN(WEIGHTS_OF(2, 3, 5), WEIGHTS_OF(3, 4, 6))},
    {.name = "fewer_queries", PAIRS(2, 2, 3, 0, 2, 1), IN(WEIGHTS_OF(1, 2, 4), WEIGHTS_OF(2, 3, 5))},
    {.name = "one_pixel", PAIRS(1, 1, 1, 0, 1, 1), IN(WEIGHTS_OF(1, 1, 1), WEIGHTS_OF(1, 1, 1))},
    {.name = "resnet20_stage3", PAIRS(9, 8, 8, 1, 1, 1), IN(WEIGHTS_OF(3, 8, 10), WEIGHTS_OF(3, 8, 10)), .bench = true},
};

const att_op att_op_pair_maps = {
    .name = "pair_maps",
    .attrs_size = sizeof(att_mix_pairs_attrs),
    .help = "a_yx,y'x' = r_yy' c_xx', for each pair of maps, and statistics of each row",
    .infer = maps_infer,
    .cost = maps_cost,
    ATT_CASES(maps_cases),
};
