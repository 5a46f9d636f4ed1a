/* Positions of grids of tokens, as constants and as derived values. */
#include "engine/ops/mixing.h"
#include <attscope/ops.h>

#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"

enum { AXES = 2 };

/* Zeros of the graph's type; NULL after a failure. */
static void *allocate_numbers(att_graph *graph, att_shape shape)
{
    if (att_graph_status(graph) != ATT_OK)
        return NULL;
    int64_t count = att_shape_count(shape);
    size_t size = att_dtype_size(att_graph_dtype(graph));
    void *numbers = count < 1 ? NULL : att_allocate_array(att_graph_context(graph), (size_t)count, size);
    if (!numbers)
        att_graph_fail(graph, att_fail_memory(att_graph_context(graph),
                                              att_size_product(count < 1 ? SIZE_MAX : (size_t)count, size),
                                              "a table of positions"));
    return numbers;
}

static void set_number(const att_graph *graph, void *numbers, int64_t i, double value)
{
    if (att_graph_dtype(graph) == ATT_F32)
        ((float *)numbers)[i] = (float)value;
    else
        ((double *)numbers)[i] = value;
}

/* The constant, after which the numbers are freed. */
static att_value constant_of(att_graph *graph, att_shape shape, void *numbers)
{
    att_value value = att_graph_constant(graph, att_graph_dtype(graph), shape, numbers);
    att_free(att_graph_context(graph), numbers);
    return value;
}

att_value att_zeros(att_graph *graph, att_shape shape)
{
    void *zeros = allocate_numbers(graph, shape);
    return zeros ? constant_of(graph, shape, zeros) : ATT_NONE;
}

static bool grid_is_valid(att_graph *graph, const att_rotary_grid *grid)
{
    att_context *context = att_graph_context(graph);
    att_status status = ATT_OK;
    bool referred = grid->reference_h || grid->reference_w;
    if (att_graph_status(graph) != ATT_OK)
        return false;
    if (grid->height < 1 || grid->width < 1)
        status = att_fail(context, ATT_ERR_ARGUMENT, "rotary: the grid is %d x %d, must be at least 1 x 1",
                          grid->height, grid->width);
    else if (!isfinite(grid->offset))
        status =
            att_fail(context, ATT_ERR_ARGUMENT, "rotary: the offset of the grid is %g, must be finite", grid->offset);
    else if (referred && (grid->reference_h < 1 || grid->reference_w < 1 || grid->centered))
        status =
            att_fail(context, ATT_ERR_ARGUMENT,
                     "rotary: the reference is %d x %d, must be at least 1 x 1, or 0 x 0 for none; a centered grid "
                     "has none",
                     grid->reference_h, grid->reference_w);
    if (status != ATT_OK)
        att_graph_fail(graph, status);
    return status == ATT_OK;
}

/* Position of row i of the grid or, with `across`, of column i. */
static double position_on(const att_rotary_grid *grid, bool across, int64_t i)
{
    int size = across ? grid->width : grid->height, reference = across ? grid->reference_w : grid->reference_h;
    double p = (double)i + grid->offset;
    if (grid->centered)
        return 2 * (p + 0.5) / size - 1;
    return reference ? p / size * reference : p;
}

/* p_0 and p_1 of a token. */
static void position_of(const att_rotary_grid *grid, int64_t token, double p[AXES])
{
    double y = position_on(grid, false, token / grid->width), x = position_on(grid, true, token % grid->width);
    p[0] = grid->columns_first ? x : y;
    p[1] = grid->columns_first ? y : x;
}

/* The cosines and sines of a token. */
static void set_turns(const att_graph *graph, const double p[AXES], int channels, double temperature, double factor,
                      int64_t at, void *numbers)
{
    int bands = channels / 4;
    for (int axis = 0; axis < AXES; axis++)
        for (int i = 0; i < bands; i++) {
            double angle = p[axis] * factor * pow(temperature, -(double)i / bands);
            int64_t cosine = at + axis * bands + i;
            set_number(graph, numbers, cosine, cos(angle));
            set_number(graph, numbers, cosine + channels / 2, sin(angle));
        }
}

att_value att_rotary_table(att_graph *graph, const att_rotary_grid *grid, int channels, double temperature)
{
    static const double circle = 6.283185307179586477;
    if (!grid_is_valid(graph, grid))
        return ATT_NONE;
    if (channels < 4 || channels % 4)
        return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                              "rotary: a head has %d channels, must be a multiple of 4", channels));
    if (!isfinite(temperature) || temperature <= 0)
        return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                              "rotary: the temperature is %g, must be positive", temperature));
    int64_t tokens = (int64_t)grid->height * grid->width;
    att_shape shape = att_shape_of(tokens, channels);
    void *numbers = allocate_numbers(graph, shape);
    if (!numbers)
        return ATT_NONE;
    for (int64_t token = 0; token < tokens; token++) {
        double p[AXES];
        position_of(grid, token, p);
        set_turns(graph, p, channels, temperature, grid->centered ? circle : 1, token * channels, numbers);
    }
    return constant_of(graph, shape, numbers);
}

/* Constant [height width, 2]. */
static att_value positions_of(att_graph *graph, const att_rotary_grid *grid)
{
    int64_t tokens = (int64_t)grid->height * grid->width;
    att_shape shape = att_shape_of(tokens, AXES);
    void *numbers = allocate_numbers(graph, shape);
    if (!numbers)
        return ATT_NONE;
    for (int64_t token = 0; token < tokens; token++) {
        double p[AXES];
        position_of(grid, token, p);
        for (int axis = 0; axis < AXES; axis++)
            set_number(graph, numbers, token * AXES + axis, p[axis]);
    }
    return constant_of(graph, shape, numbers);
}

att_value att_rotary_mixed(att_graph *graph, const att_rotary_grid *grid, att_value frequencies, int block)
{
    static const int block_first[] = {1, 0, 2, 3};
    if (!grid_is_valid(graph, grid))
        return ATT_NONE;
    att_shape shape = att_value_shape(graph, frequencies);
    if (shape.rank != 4 || shape.dims[0] != AXES)
        return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_MISMATCH,
                                              "rotary: frequencies %s must have the shape [2, depth, heads, channels]",
                                              att_shape_format(shape, (char[96]){0}, 96)));
    int64_t depth = shape.dims[1], heads = shape.dims[2], angles = shape.dims[3];
    if (block < 0 || block >= depth)
        return att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                              "rotary: frequencies of %lld blocks have none of block %d",
                                              (long long)depth, block));
    att_value of_blocks = att_transpose(graph, frequencies, block_first, 4);
    att_value rows = att_reshape(graph, of_blocks, att_shape_of(AXES * depth, heads * angles));
    att_value own = att_slice_tokens(graph, rows, AXES * block, AXES);
    att_value turned = att_matmul(graph, positions_of(graph, grid), own, false, 1);
    int64_t tokens = (int64_t)grid->height * grid->width;
    return att_cos_sin(graph, att_reshape(graph, turned, att_shape_of(tokens, heads, angles)));
}

/* sign(t) log2(|t| + 1) / log2(8), t = 8 shift / max(reference - 1, 1). */
static double log_shift(int shift, int reference)
{
    double t = 8.0 * shift / (reference > 2 ? reference - 1 : 1);
    return copysign(log2(fabs(t) + 1) / 3, t);
}

att_value att_log_shifts(att_graph *graph, int height, int width, int reference_h, int reference_w)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    bool referred = reference_h || reference_w;
    if (height < 1 || width < 1 || (referred && (reference_h < 1 || reference_w < 1)))
        return att_graph_fail(
            graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                            "log_shifts: the window is %d x %d, must be at least 1 x 1; its reference is %d x %d, must "
                            "be that, too, or 0 x 0 for none",
                            height, width, reference_h, reference_w));
    int64_t rows = 2 * (int64_t)height - 1, columns = 2 * (int64_t)width - 1;
    att_shape shape = att_shape_of(rows * columns, AXES);
    void *numbers = allocate_numbers(graph, shape);
    if (!numbers)
        return ATT_NONE;
    for (int64_t i = 0; i < rows * columns; i++) {
        int y = (int)(i / columns) - height + 1, x = (int)(i % columns) - width + 1;
        set_number(graph, numbers, i * AXES, log_shift(y, referred ? reference_h : height));
        set_number(graph, numbers, i * AXES + 1, log_shift(x, referred ? reference_w : width));
    }
    return constant_of(graph, shape, numbers);
}

/* --- terms of scores that depend on the shift --------------------------------------------------------------------- */

/* Constant [shifts, 2 length - 1] that selects, for each shift of a grid of 2 dimensions, its number on one axis.
 * rows: of the result; those behind all shifts select nothing. across: the axis of the columns. */
static att_value selection(att_graph *graph, int64_t rows, int64_t height, int64_t width, bool across)
{
    int64_t columns = 2 * width - 1, numbers = across ? columns : 2 * height - 1;
    att_shape shape = att_shape_of(rows, numbers);
    void *selected = allocate_numbers(graph, shape);
    if (!selected)
        return ATT_NONE;
    for (int64_t s = 0; s < (2 * height - 1) * columns; s++)
        set_number(graph, selected, s * numbers + (across ? s % columns : s / columns), 1);
    return constant_of(graph, shape, selected);
}

/* A table of numbers for the shifts on one axis: [2 length - 1, heads]. */
static bool axis_fits(att_graph *graph, att_value table, const char *name, int64_t length, int heads)
{
    att_shape shape = att_value_shape(graph, table);
    bool fits = att_shape_equal(shape, att_shape_of(2 * length - 1, heads));
    if (!fits || att_value_kind(graph, table) != ATT_SHARED)
        att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_MISMATCH,
                                       "attention: %s %s must be a shared value [2 x %lld - 1, %d]", name,
                                       att_shape_format(shape, (char[96]){0}, 96), (long long)length, heads));
    return att_graph_status(graph) == ATT_OK;
}

att_value att_join_shifts(att_graph *graph, const att_attention_attrs *attrs, const att_attention_terms *terms)
{
    int64_t height = att_attention_height(attrs), width = att_attention_width(attrs);
    if (height < 1 || width < 1)
        return att_graph_fail(graph,
                              att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT, "attention: terms need a grid"));
    if (!axis_fits(graph, terms->row_shifts, "row_shifts", height, attrs->heads) ||
        !axis_fits(graph, terms->column_shifts, "column_shifts", width, attrs->heads))
        return ATT_NONE;
    int64_t shifts = (2 * height - 1) * (2 * width - 1);
    int64_t rows = terms->relative == ATT_NONE ? shifts : att_value_shape(graph, terms->relative).dims[0];
    if (rows != shifts && rows != shifts + ATT_ATTENTION_PREFIX_SHIFTS)
        return terms->relative; /* which the shape rule refuses */
    att_value of_rows = att_matmul(graph, selection(graph, rows, height, width, false), terms->row_shifts, false, 1);
    att_value of_columns =
        att_matmul(graph, selection(graph, rows, height, width, true), terms->column_shifts, false, 1);
    att_value sum = att_add(graph, of_rows, of_columns);
    return terms->relative == ATT_NONE ? sum : att_add(graph, sum, terms->relative);
}

/* Constant [shifts, heads, axes]: for each shift of a grid, the distances from query to key in rows and, with two axes,
 * in columns. They are the same for all heads. */
static att_value distances(att_graph *graph, int height, int width, int64_t heads, int axes)
{
    int64_t rows = 2 * (int64_t)height - 1, columns = 2 * (int64_t)width - 1;
    att_shape shape = att_shape_of(rows * columns, heads, axes);
    void *all = allocate_numbers(graph, shape);
    if (!all)
        return ATT_NONE;
    for (int64_t i = 0; i < rows * columns * heads * axes; i++) {
        int64_t shift = i / axes / heads;
        set_number(graph, all, i, (double)(i % axes ? width - 1 - shift % columns : height - 1 - shift / columns));
    }
    return constant_of(graph, shape, all);
}

static bool is_encoding(att_graph *graph, int height, int width, att_value centers)
{
    att_shape shape = att_value_shape(graph, centers);
    if (att_graph_status(graph) == ATT_OK &&
        (height < 1 || width < 1 || shape.rank != 2 || shape.dims[1] != AXES || shape.dims[0] < 1))
        att_graph_fail(graph, att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                                       "quadratic encoding: centers %s on a grid of %d x %d, must be [heads, 2] and "
                                       "at least 1 x 1",
                                       att_shape_format(shape, (char[96]){0}, 96), height, width));
    return att_graph_status(graph) == ATT_OK;
}

/* -1/2 |x|^2 of each row of x [.., C]: y [rows, 1]. */
static att_value minus_half_square(att_graph *graph, att_value x)
{
    att_shape shape = att_value_shape(graph, x);
    int64_t columns = shape.rank > 0 ? shape.dims[shape.rank - 1] : 1, rows = att_shape_count(shape) / columns;
    att_value row = att_reshape(graph, x, att_shape_of(rows, 1, columns));
    return att_reshape(graph, att_matmul(graph, row, row, true, -0.5), att_shape_of(rows, 1));
}

/* The table of one axis: -1/2 (s (d - c))^2. */
static att_value square_on_axis(att_graph *graph, int length, att_value centers, int axis, att_value sharpness)
{
    static const int swap[] = {1, 0};
    int64_t heads = att_value_shape(graph, centers).dims[0];
    att_value center = att_slice_tokens(graph, att_transpose(graph, centers, swap, 2), axis, 1);
    att_value from_center =
        att_add(graph, distances(graph, length, 1, heads, 1),
                att_reshape(graph, att_combine(graph, -1, center, 0, ATT_NONE), att_shape_of(heads, 1)));
    int64_t shifts = 2 * (int64_t)length - 1;
    att_value scaled = att_scale(graph, att_reshape(graph, from_center, att_shape_of(shifts, heads)), sharpness);
    att_value one_by_one = att_reshape(graph, scaled, att_shape_of(shifts * heads, 1));
    return att_reshape(graph, minus_half_square(graph, one_by_one), att_shape_of(shifts, heads));
}

void att_isotropic_shifts(att_graph *graph, int height, int width, att_value centers, att_value sharpness,
                          att_attention_terms *terms)
{
    terms->row_shifts = terms->column_shifts = ATT_NONE;
    if (!is_encoding(graph, height, width, centers))
        return;
    att_value rows = square_on_axis(graph, height, centers, 0, sharpness);
    att_value columns = square_on_axis(graph, width, centers, 1, sharpness);
    if (att_graph_status(graph) == ATT_OK)
        terms->row_shifts = rows, terms->column_shifts = columns;
}

att_value att_quadratic_shifts(att_graph *graph, int height, int width, att_value centers, att_value factors)
{
    static const int heads_first[] = {1, 0, 2}, shifts_first[] = {1, 0};
    if (!is_encoding(graph, height, width, centers))
        return ATT_NONE;
    int64_t heads = att_value_shape(graph, centers).dims[0];
    int64_t shifts = (2 * (int64_t)height - 1) * (2 * (int64_t)width - 1);
    att_value from_center =
        att_add(graph, distances(graph, height, width, heads, AXES), att_combine(graph, -1, centers, 0, ATT_NONE));
    att_value scaled = att_matmul(graph, att_transpose(graph, from_center, heads_first, 3), factors, false, 1);
    att_value table = att_reshape(graph, minus_half_square(graph, scaled), att_shape_of(heads, shifts));
    return att_transpose(graph, table, shifts_first, 2);
}

/* Constant [queries keys, heads]: the shift from query to key, the same for all heads. keys: with the ring. */
static att_value shifts_on_axis(att_graph *graph, int64_t queries, int64_t keys, int ring, int stride, int64_t heads)
{
    att_shape shape = att_shape_of(queries * keys, heads);
    void *all = allocate_numbers(graph, shape);
    if (!all)
        return ATT_NONE;
    for (int64_t i = 0; i < queries * keys * heads; i++)
        set_number(graph, all, i, (double)(i / heads % keys - ring - stride * (i / heads / keys)));
    return constant_of(graph, shape, all);
}

att_value att_axis_scores(att_graph *graph, int queries, int keys, int ring, int stride, att_value centers,
                          att_value sharpness)
{
    static const int swap[] = {1, 0};
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    att_shape shape = att_value_shape(graph, centers);
    int64_t with_ring = keys + 2 * (int64_t)ring, heads = shape.dims[0];
    if (queries < 1 || keys < 1 || ring < 0 || stride < 1 || shape.rank != 1 || heads < 1 ||
        att_shape_count(att_shape_of(heads, queries, with_ring)) < 0)
        return att_graph_fail(
            graph,
            att_fail(att_graph_context(graph), ATT_ERR_ARGUMENT,
                     "axis scores: centers %s, %d queries, %d keys, ring %d, stride %d; must be [heads], at least "
                     "1, 1, 0 and 1, and not too many",
                     att_shape_format(shape, (char[96]){0}, 96), queries, keys, ring, stride));
    att_value shifts = shifts_on_axis(graph, queries, with_ring, ring, stride, heads);
    att_value from_center = att_add(graph, shifts, att_combine(graph, -1, centers, 0, ATT_NONE));
    int64_t count = queries * with_ring * heads;
    att_value scaled = att_reshape(graph, att_scale(graph, from_center, sharpness), att_shape_of(count));
    att_value squares = att_scale(graph, att_reshape(graph, scaled, att_shape_of(1, count)), scaled);
    att_value scores =
        att_reshape(graph, att_combine(graph, -0.5, squares, 0, ATT_NONE), att_shape_of(queries * with_ring, heads));
    return att_reshape(graph, att_transpose(graph, scores, swap, 2), att_shape_of(heads, queries, with_ring));
}
