#include <string.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/gelu.h"
#include "engine/kernels/ref/list.h"

static const double ROOT = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double CUBIC = 0.044715;
static const double SLOPE = 1.702; /* of quick_gelu */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double quick_gelu(double x)
{
    return x * sigmoid(SLOPE * x);
}

static double inner(double x)
{
    return ROOT * (x + CUBIC * x * x * x);
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(inner(x)));
}

/* --- gradients: dx for dy, and for x or y ------------------------------------------------------------------------- */

static double relu_grad(double dy, double y)
{
    return y > 0 ? dy : 0;
}

static double exp_grad(double dy, double y)
{
    return dy * y;
}

static double tanh_grad(double dy, double y)
{
    return dy * (1 - y * y);
}

static double sigmoid_grad(double dy, double y)
{
    return dy * y * (1 - y);
}

static double silu_grad(double dy, double x)
{
    double s = sigmoid(x);
    return dy * s * (1 + x * (1 - s));
}

static double quick_gelu_grad(double dy, double x)
{
    double s = sigmoid(SLOPE * x);
    return dy * s * (1 + SLOPE * x * (1 - s));
}

static double gelu_grad(double dy, double x)
{
    double density = 0.39894228040143267794 * exp(-0.5 * x * x); /* 1 / sqrt(2 pi) */
    return dy * (ref_normal_cdf(x) + x * density);
}

static double gelu_tanh_grad(double dy, double x)
{
    double t = tanh(inner(x));
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * CUBIC * x * x));
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static const struct activation {
    const char *op, *grad_op;
    double (*of)(double x), (*grad)(double dy, double x_or_y);
} activations[] = {
    {"relu", "relu_grad", ref_relu, relu_grad}, {"exp", "exp_grad", exp, exp_grad},
    {"tanh", "tanh_grad", tanh, tanh_grad},     {"sigmoid", "sigmoid_grad", sigmoid, sigmoid_grad},
    {"silu", "silu_grad", silu, silu_grad},     {"quick_gelu", "quick_gelu_grad", quick_gelu, quick_gelu_grad},
    {"gelu", "gelu_grad", ref_gelu, gelu_grad}, {"gelu_tanh", "gelu_tanh_grad", gelu_tanh, gelu_tanh_grad},
};

static att_status run(const att_call *call)
{
    const struct activation *a = activations;
    while (strcmp(call->problem->op, a->op) != 0 && strcmp(call->problem->op, a->grad_op) != 0)
        a++;
    bool grad = strcmp(call->problem->op, a->grad_op) == 0;
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double first = ref_in(call, 0, e);
        ref_out(call, 0, e, grad ? a->grad(first, ref_in(call, 1, e)) : a->of(first));
    }
    return ATT_OK;
}

#define KERNEL(name_) const att_kernel att_ref_##name_ = {.op = #name_, .name = "ref", .run = run}
#define KERNELS(name_) \
    KERNEL(name_);     \
    KERNEL(name_##_grad)
KERNELS(relu);
KERNELS(exp);
KERNELS(tanh);
KERNELS(sigmoid);
KERNELS(silu);
KERNELS(quick_gelu);
KERNELS(gelu);
KERNELS(gelu_tanh);
