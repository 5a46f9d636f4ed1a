#include "engine/ops/window_pad.h"
#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

static att_window_pad_attrs attrs_of(const att_window_pad_options *o)
{
    return (att_window_pad_attrs){.grid_h = o->grid_h,
                                  .grid_w = o->grid_w,
                                  .window_h = o->window_h,
                                  .window_w = o->window_w,
                                  .shift_h = o->shift_h,
                                  .shift_w = o->shift_w};
}

att_value att_window_pad(att_graph *graph, att_value x, const att_window_pad_options *options)
{
    att_window_pad_attrs attrs = attrs_of(options);
    return att_emit(graph, "window_pad", &attrs, &x, 1, NULL);
}

att_value att_window_crop(att_graph *graph, att_value x, const att_window_pad_options *options)
{
    att_window_pad_attrs attrs = attrs_of(options);
    return att_emit(graph, "window_crop", &attrs, &x, 1, NULL);
}

static att_status check_attrs(const att_infer *infer)
{
    enum { MOST = 1 << 24 };
    const att_window_pad_attrs *a = infer->attrs;
    if (a->grid_h < 1 || a->grid_w < 1 || a->grid_h > MOST || a->grid_w > MOST || a->window_h < 1 || a->window_w < 1 ||
        a->window_h > MOST || a->window_w > MOST)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "a grid of %d x %d in windows of %d x %d", a->grid_h, a->grid_w,
                             a->window_h, a->window_w);
    if (a->shift_h < 0 || a->shift_w < 0 || a->shift_h >= a->window_h || a->shift_w >= a->window_w)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT,
                             "shifts of %d and %d must be from 0 to less than the window's size %d x %d", a->shift_h,
                             a->shift_w, a->window_h, a->window_w);
    return ATT_OK;
}

/* Checks the input [from, C] and sets the output to [to, C]. */
static att_status infer_tokens(att_infer *infer, bool pads)
{
    const att_window_pad_attrs *a = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "x", ATT_SAMPLE, 2));
    ATT_TRY(check_attrs(infer));
    int64_t tokens = (int64_t)a->grid_h * a->grid_w;
    int64_t padded = att_window_padded(a->grid_h, a->window_h) * att_window_padded(a->grid_w, a->window_w);
    const int64_t *x = infer->in[0].shape.dims;
    if (x[0] != (pads ? tokens : padded))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "x %s must have %lld tokens", ATT_SHOWN(&infer->in[0]),
                             (long long)(pads ? tokens : padded));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(pads ? padded : tokens, x[1]));
}

static att_status pad_infer(att_infer *infer)
{
    return infer_tokens(infer, true);
}

static att_status crop_infer(att_infer *infer)
{
    return infer_tokens(infer, false);
}

static void add_gradient(att_backward *backward, const char *op)
{
    att_rule_add_of_dy(backward, op, att_backward_attrs(backward));
}

static void pad_backward(att_backward *backward)
{
    add_gradient(backward, "window_crop");
}

static void crop_backward(att_backward *backward)
{
    add_gradient(backward, "window_pad");
}

#define GRID(h, w, wh, ww, sh, sw)                                                                       \
    ATTRS(window_pad, .grid_h = (h), .grid_w = (w), .window_h = (wh), .window_w = (ww), .shift_h = (sh), \
          .shift_w = (sw))
static const att_op_case pad_cases[] = {
    {.name = "no_shift", GRID(3, 5, 2, 4, 0, 0), IN(SAMPLE(15, 3)), .gradient = true},
    {.name = "shift", GRID(5, 6, 4, 4, 2, 2), IN(SAMPLE(30, 2)), .gradient = true},
    {.name = "larger_window", GRID(2, 3, 7, 4, 3, 2), IN(SAMPLE(6, 5))},
    {.name = "fits", GRID(4, 4, 2, 4, 1, 2), IN(SAMPLE(16, 3))},
    {.name = "swin_tiny_256", GRID(64, 64, 7, 7, 3, 3), IN(SAMPLE(4096, 96)), .bench = true},
};

const att_op att_op_window_pad = {
    .name = "window_pad",
    .attrs_size = sizeof(att_window_pad_attrs),
    .help = "y: the tokens x of a grid, with zeros up to whole windows",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = pad_infer,
    .backward = pad_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(pad_cases),
};

static const att_op_case crop_cases[] = {
    {.name = "no_shift", GRID(3, 5, 2, 4, 0, 0), IN(SAMPLE(32, 3)), .gradient = true},
    {.name = "shift", GRID(5, 6, 4, 4, 2, 2), IN(SAMPLE(64, 2)), .gradient = true},
    {.name = "larger_window", GRID(2, 3, 7, 4, 3, 2), IN(SAMPLE(28, 5))},
    {.name = "fits", GRID(4, 4, 2, 4, 1, 2), IN(SAMPLE(16, 3))},
    {.name = "swin_tiny_256", GRID(64, 64, 7, 7, 3, 3), IN(SAMPLE(4900, 96)), .bench = true},
};

const att_op att_op_window_crop = {
    .name = "window_crop",
    .attrs_size = sizeof(att_window_pad_attrs),
    .help = "the inverse of window_pad",
    .autocast_in = 1,
    .autocast_out = 1,
    .infer = crop_infer,
    .backward = crop_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(crop_cases),
};
