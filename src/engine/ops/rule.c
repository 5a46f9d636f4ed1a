#include "engine/ops/rule.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/list.h"
#include "engine/ops/sum_samples.h"

att_status att_rule_fail(const att_infer *infer, att_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return att_fail(infer->context, status, "%s: %s", infer->op->name, text);
}

static const char *kind_name(att_kind kind)
{
    static const char *const names[] = {
#define ATT_KIND_TEXT(name, text) text,
        ATT_KIND_LIST(ATT_KIND_TEXT)
#undef ATT_KIND_TEXT
    };
    return names[kind];
}

att_status att_rule_count(const att_infer *infer, int count)
{
    if (infer->in_count != count)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "got %d inputs, takes %d", infer->in_count, count);
    return ATT_OK;
}

static bool is_float(att_dtype dtype)
{
    return dtype == ATT_F32 || dtype == ATT_F64 || dtype == ATT_BF16;
}

bool att_rule_is(const att_infer *infer, int i, att_kind kind)
{
    return infer->in[i].kind == kind || (infer->derived && kind == ATT_SAMPLE && infer->in[i].kind == ATT_SHARED);
}

att_status att_rule_require(const att_infer *infer, int i, const char *name, att_kind kind)
{
    const att_desc *in = &infer->in[i];
    if (!att_desc_present(in))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%s is missing", name);
    if (!att_rule_is(infer, i, kind))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s is a %s value, must be %s", name, ATT_SHOWN(in),
                             kind_name(in->kind), kind_name(kind));
    if (!is_float(in->dtype))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s is %s, must be a float type", name,
                             att_dtype_name(in->dtype));
    if (in->dtype != infer->in[0].dtype)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s is %s, must be %s as the first input", name,
                             att_dtype_name(in->dtype), att_dtype_name(infer->in[0].dtype));
    if (att_shape_count(in->shape) < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s has no elements", name, ATT_SHOWN(in));
    return ATT_OK;
}

att_status att_rule_require_rank(const att_infer *infer, int i, const char *name, att_kind kind, int rank)
{
    ATT_TRY(att_rule_require(infer, i, name, kind));
    if (infer->in[i].shape.rank != rank)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have %d axes", name, ATT_SHOWN(&infer->in[i]), rank);
    return ATT_OK;
}

att_status att_rule_require_rows(const att_infer *infer, int i, const char *name)
{
    ATT_TRY(att_rule_require(infer, i, name, ATT_SAMPLE));
    if (infer->in[i].shape.rank < 1)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s is a scalar, must have rows", name);
    return ATT_OK;
}

att_status att_rule_require_shape(const att_infer *infer, int i, const char *name, att_kind kind, att_shape shape)
{
    ATT_TRY(att_rule_require(infer, i, name, kind));
    if (!att_shape_equal(infer->in[i].shape, shape))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have the shape %s", name, ATT_SHOWN(&infer->in[i]),
                             att_shape_format(shape, (char[96]){0}, 96));
    return ATT_OK;
}

att_status att_rule_require_like(const att_infer *infer, int i, const char *name, att_kind kind, int j)
{
    return att_rule_require_shape(infer, i, name, kind, infer->in[j].shape);
}

att_status att_rule_require_target(const att_infer *infer, int logits, double smoothing)
{
    const att_desc *target = &infer->in[logits + 1];
    bool is_class = att_desc_present(target) && target->dtype == ATT_I32;
    if (!(smoothing >= 0 && smoothing < 1))
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "smoothing is %g, must be in [0, 1)", smoothing);
    if (!is_class)
        ATT_TRY(att_rule_require_like(infer, logits + 1, "target", ATT_SAMPLE, logits));
    else if (target->kind != ATT_SAMPLE || target->shape.rank != 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "integer target %s must be one number per sample",
                             ATT_SHOWN(target));
    if (!is_class && smoothing != 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "smoothing is %g, must be 0 with a target for each class",
                             smoothing);
    return ATT_OK;
}

att_status att_rule_require_eps(const att_infer *infer, double eps)
{
    if (!isfinite(eps) || eps <= 0)
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "eps is %g, must be positive", eps);
    return ATT_OK;
}

att_status att_rule_require_vector(const att_infer *infer, int i, const char *name, int j)
{
    ATT_TRY(att_rule_require(infer, i, name, ATT_SHARED));
    int64_t columns = att_rule_columns(&infer->in[j]);
    if (att_shape_count(infer->in[i].shape) != columns)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "%s %s must have %lld elements, as many as the last axis of %s",
                             name, ATT_SHOWN(&infer->in[i]), (long long)columns, ATT_SHOWN(&infer->in[j]));
    return ATT_OK;
}

att_status att_rule_require_count(const att_infer *infer, int i)
{
    const att_desc *count = i < infer->in_count ? &infer->in[i] : NULL;
    if (!count || !att_desc_present(count) || count->dtype != ATT_I32 || !att_rule_is(infer, i, ATT_SAMPLE) ||
        count->shape.rank != 0)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "count must be a number of type %s for each sample",
                             att_dtype_name(ATT_I32));
    return ATT_OK;
}

int64_t att_rule_columns(const att_desc *desc)
{
    return desc->shape.dims[desc->shape.rank - 1];
}

int64_t att_rule_rows(const att_desc *desc)
{
    return att_shape_count(desc->shape) / att_rule_columns(desc);
}

att_shape att_rule_reduced_shape(const att_desc *desc)
{
    att_shape shape = desc->shape;
    shape.dims[shape.rank - 1] = 1;
    return shape;
}

att_status att_rule_out(att_infer *infer, att_dtype dtype, att_kind kind, att_shape shape)
{
    if (infer->derived && kind == ATT_SAMPLE)
        kind = ATT_SHARED;
    if (infer->out_count < infer->room)
        infer->out[infer->out_count] = (att_desc){dtype, kind, shape};
    infer->out_count++;
    return ATT_OK;
}

att_status att_rule_update(att_infer *infer, int slots)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require_rank(infer, 0, "the gradient", ATT_SHARED, 1));
    ATT_TRY(att_rule_require_shape(infer, 1, "the scale", ATT_SHARED, att_shape_of(1)));
    for (int i = 0; i < slots; i++)
        att_rule_out(infer, infer->in[0].dtype, ATT_SHARED, infer->in[0].shape);
    return ATT_OK;
}

att_status att_rule_infer_like_x(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "x", ATT_SAMPLE));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

static att_status infer_grad(att_infer *infer, const char *name)
{
    ATT_TRY(att_rule_count(infer, 2));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    ATT_TRY(att_rule_require_like(infer, 1, name, ATT_SAMPLE, 0));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, infer->in[0].shape);
}

att_status att_rule_infer_grad_x(att_infer *infer)
{
    return infer_grad(infer, "x");
}

att_status att_rule_infer_grad_y(att_infer *infer)
{
    return infer_grad(infer, "y");
}

/* dx = <op>_grad(dy, in...) */
static void add_op_grad(att_backward *backward, att_value first, att_value second, int in_count)
{
    char op[64];
    snprintf(op, sizeof op, "%s_grad", att_backward_op(backward)->name);
    att_value in[] = {att_backward_gradient(backward, 0), first, second};
    att_rule_add_node(backward, 0, op, NULL, in, in_count);
}

void att_rule_backward_x(att_backward *backward)
{
    add_op_grad(backward, att_backward_in(backward, 0), ATT_NONE, 2);
}

void att_rule_backward_y(att_backward *backward)
{
    add_op_grad(backward, att_backward_out(backward, 0), ATT_NONE, 2);
}

void att_rule_backward_xy(att_backward *backward)
{
    add_op_grad(backward, att_backward_in(backward, 0), att_backward_out(backward, 0), 3);
}

void att_rule_add_node(att_backward *backward, int i, const char *op, const void *attrs, const att_value *in,
                       int in_count)
{
    att_backward_add_gradient(backward, i, att_emit(att_backward_graph(backward), op, attrs, in, in_count, NULL));
}

void att_rule_add_of_dy(att_backward *backward, const char *op, const void *attrs)
{
    att_value dy = att_backward_gradient(backward, 0);
    att_rule_add_node(backward, 0, op, attrs, &dy, 1);
}

void att_rule_add_product(att_backward *backward, int i, const char *op, const void *attrs, int other)
{
    if (!att_backward_needs_gradient(backward, i))
        return;
    att_value in[] = {att_backward_gradient(backward, 0), att_backward_in(backward, other)};
    att_rule_add_node(backward, i, op, attrs, in, 2);
}

void att_rule_add_outputs(att_backward *backward, const char *op, const void *attrs, const att_value *in, int in_count,
                          int outputs)
{
    enum { MOST_OUTPUTS = 8 };
    att_value out[MOST_OUTPUTS];
    att_emit(att_backward_graph(backward), op, attrs, in, in_count, out);
    for (int i = 0; i < outputs; i++)
        if (att_backward_needs_gradient(backward, i))
            att_backward_add_gradient(backward, i, out[i]);
}

void att_rule_add_sum(att_backward *backward, int i, att_value gradient, int axes)
{
    att_graph *graph = att_backward_graph(backward);
    att_sum_attrs attrs = {.axes = att_value_shape(graph, gradient).rank - axes};
    att_backward_add_gradient(backward, i, att_emit(graph, "sum_samples", &attrs, &gradient, 1, NULL));
}

void att_rule_copy_cost(const att_desc *in, const att_desc *out, const void *attrs, att_cost *cost)
{
    (void)in, (void)out, (void)attrs;
    cost->flops = 0;
}

bool att_rule_absorb_added(att_node *producer, const att_node *consumer, int i)
{
    const att_add_attrs *add = consumer->attrs;
    if (producer->in[i] != ATT_NONE || consumer->op != &att_op_add || add->axes != 0 || add->activation != ATT_ACT_NONE)
        return false;
    bool first = consumer->in[0] == producer->out[0], second = consumer->in[1] == producer->out[0];
    if (first == second)
        return false;
    producer->in[i] = consumer->in[first ? 1 : 0];
    return true;
}

bool att_rule_absorb_relu(att_activation *activation, const att_node *consumer)
{
    if (consumer->op != &att_op_relu || *activation != ATT_ACT_NONE)
        return false;
    *activation = ATT_ACT_RELU;
    return true;
}

bool att_rule_absorb_finish(att_node *producer, att_activation *activation, const att_node *consumer, int i)
{
    return *activation == ATT_ACT_NONE &&
           (att_rule_absorb_relu(activation, consumer) || att_rule_absorb_added(producer, consumer, i));
}
