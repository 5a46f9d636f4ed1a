#include "engine/ops/windows.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_windows_attrs attrs_of(const att_window_options *options)
{
    return (att_windows_attrs){
        .height = options->height, .width = options->width, .shift_y = options->shift_y, .shift_x = options->shift_x};
}

att_value att_windows(att_graph *graph, att_value x, const att_window_options *options)
{
    att_windows_attrs attrs = attrs_of(options);
    return att_emit(graph, "windows", &attrs, &x, 1, NULL);
}

att_value att_windows_reverse(att_graph *graph, att_value windows, int height, int width,
                              const att_window_options *options)
{
    att_windows_attrs attrs = attrs_of(options);
    attrs.map_height = height;
    attrs.map_width = width;
    return att_emit(graph, "windows_back", &attrs, &windows, 1, NULL);
}

/* The shape of the windows of a map [rows, columns, channels]. */
static att_status windows_of(const att_infer *infer, int64_t rows, int64_t columns, int64_t channels,
                             att_shape *windows)
{
    const att_windows_attrs *attrs = infer->attrs;
    if (attrs->height < 1 || attrs->width < 1 || rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX ||
        rows % attrs->height || columns % attrs->width)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "a map of %lld x %lld does not divide into windows of %d x %d",
                             (long long)rows, (long long)columns, attrs->height, attrs->width);
    if (attrs->shift_y < 0 || attrs->shift_y >= rows || attrs->shift_x < 0 || attrs->shift_x >= columns)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "the shift is %d rows and %d columns, must be from 0 to less than the map's size %lld x "
                             "%lld",
                             attrs->shift_y, attrs->shift_x, (long long)rows, (long long)columns);
    *windows =
        att_shape_of(rows / attrs->height * (columns / attrs->width), (int64_t)attrs->height * attrs->width, channels);
    return ATT_OK;
}

static att_status windows_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 3));
    const int64_t *x = infer->in[0].shape.dims;
    att_shape windows;
    ATT_TRY(windows_of(infer, x[0], x[1], x[2], &windows));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, windows);
}

static void windows_backward(att_backward *backward)
{
    att_windows_attrs attrs = *(const att_windows_attrs *)att_backward_attrs(backward);
    att_shape x = att_backward_in_desc(backward, 0).shape;
    attrs.map_height = (int32_t)x.dims[0];
    attrs.map_width = (int32_t)x.dims[1];
    att_rule_add_of_dy(backward, "windows_back", &attrs);
}

#define WINDOW(h, w, y, x) .height = (h), .width = (w), .shift_y = (y), .shift_x = (x)
#define OF(h, w) .map_height = (h), .map_width = (w)
static const att_op_case windows_cases[] = {
    {.name = "odd", ATTRS(windows, WINDOW(2, 3, 0, 0)), IN(SAMPLE(4, 9, 5)), .gradient = true},
    {.name = "shifted", ATTRS(windows, WINDOW(2, 3, 1, 5)), IN(SAMPLE(6, 9, 2)), .gradient = true},
    {.name = "one_window", ATTRS(windows, WINDOW(3, 5, 2, 0)), IN(SAMPLE(3, 5, 17))},
    {.name = "pixels", ATTRS(windows, WINDOW(1, 1, 0, 4)), IN(SAMPLE(3, 5, 1))},
    {.name = "swin_tiny", ATTRS(windows, WINDOW(7, 7, 0, 0)), IN(SAMPLE(56, 56, 96)), .bench = true},
    {.name = "swin_tiny_shifted", ATTRS(windows, WINDOW(7, 7, 3, 3)), IN(SAMPLE(56, 56, 96)), .bench = true},
};

const att_op att_op_windows = {
    .name = "windows",
    .attrs_size = sizeof(att_windows_attrs),
    .help = "y [windows, h w, C]: the h x w windows of a map [H, W, C], shifted cyclically, row by row",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = windows_infer,
    .backward = windows_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(windows_cases),
};

static att_status back_infer(att_infer *infer)
{
    const att_windows_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "windows", ATT_SAMPLE, 3));
    int64_t channels = infer->in[0].shape.dims[2];
    att_shape windows;
    ATT_TRY(windows_of(infer, attrs->map_height, attrs->map_width, channels, &windows));
    ATT_TRY(att_rule_require_shape(infer, 0, "windows", ATT_SAMPLE, windows));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE,
                        att_shape_of(attrs->map_height, attrs->map_width, channels));
}

static void back_backward(att_backward *backward)
{
    att_rule_add_of_dy(backward, "windows", att_backward_attrs(backward));
}

static const att_op_case back_cases[] = {
    {.name = "odd", ATTRS(windows, WINDOW(2, 3, 0, 0), OF(4, 9)), IN(SAMPLE(6, 6, 5)), .gradient = true},
    {.name = "shifted", ATTRS(windows, WINDOW(2, 3, 1, 5), OF(6, 9)), IN(SAMPLE(9, 6, 2)), .gradient = true},
    {.name = "one_window", ATTRS(windows, WINDOW(3, 5, 2, 0), OF(3, 5)), IN(SAMPLE(1, 15, 17))},
    {.name = "swin_tiny_shifted",
     ATTRS(windows, WINDOW(7, 7, 3, 3), OF(56, 56)),
     IN(SAMPLE(64, 49, 96)),
     .bench = true},
};

const att_op att_op_windows_back = {
    .name = "windows_back",
    .attrs_size = sizeof(att_windows_attrs),
    .help = "y [H, W, C]: the map from its windows [windows, h w, C]; the inverse of windows",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = back_infer,
    .backward = back_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(back_cases),
};
