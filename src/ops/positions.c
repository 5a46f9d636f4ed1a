/* Positions of grids of tokens, as constants and as derived values. */
#include <attscope/ops.h>

#include <math.h>

#include "core/error.h"
#include "core/memory.h"
#include "graph/graph.h"

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
