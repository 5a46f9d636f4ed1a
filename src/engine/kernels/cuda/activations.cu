/* Elementwise functions of one value, and their gradients dx = dy f'(x), or f' in terms of y. */
#include "engine/kernels/cuda/cuda.cuh"
#include "engine/kernels/cuda/gelu.cuh"

__device__ static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static const float quick_slope = 1.702f;

/* sqrt(2 / pi) (x + 0.044715 x^3) */
__device__ static float tanh_argument(float x)
{
    return 0.79788456080286535588f * (x + 0.044715f * x * x * x);
}

/* A kernel att_cuda_<op> of an expression in x, and one of an expression in dy and x. */
#define UNARY(op, expression)                        \
    struct f_##op {                                  \
        __device__ float operator()(float x) const   \
        {                                            \
            return expression;                       \
        }                                            \
    };                                               \
    static att_status run_##op(const att_call *call) \
    {                                                \
        return att_cuda_map1(call, f_##op{});        \
    }                                                \
    ATT_CUDA_KERNEL(op, run_##op)

#define BINARY(op, expression)                               \
    struct f_##op {                                          \
        __device__ float operator()(float dy, float x) const \
        {                                                    \
            return expression;                               \
        }                                                    \
    };                                                       \
    static att_status run_##op(const att_call *call)         \
    {                                                        \
        return att_cuda_map2(call, f_##op{});                \
    }                                                        \
    ATT_CUDA_KERNEL(op, run_##op)

UNARY(cast, x);
UNARY(reshape, x);
UNARY(relu, x < 0 ? 0 : x);
BINARY(relu_grad, x > 0 ? dy : 0);
UNARY(gelu, cuda_gelu(x));
BINARY(gelu_grad, dy *cuda_gelu_slope(x));
UNARY(sigmoid, sigmoid(x));
BINARY(sigmoid_grad, dy *x *(1 - x));
UNARY(silu, x *sigmoid(x));
BINARY(silu_grad, dy *sigmoid(x) * (1 + x * (1 - sigmoid(x))));
UNARY(quick_gelu, x *sigmoid(quick_slope *x));
BINARY(quick_gelu_grad, dy *sigmoid(quick_slope *x) * (1 + quick_slope * x * (1 - sigmoid(quick_slope * x))));
UNARY(tanh, tanhf(x));
BINARY(tanh_grad, dy *(1 - x * x));
UNARY(exp, expf(x));
BINARY(exp_grad, dy *x);
UNARY(gelu_tanh, 0.5f * x * (1 + tanhf(tanh_argument(x))));

__device__ static float gelu_tanh_slope(float x)
{
    float t = tanhf(tanh_argument(x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
}

BINARY(gelu_tanh_grad, dy *gelu_tanh_slope(x));

/* --- swiglu ------------------------------------------------------------------------------------------------------- */

/* a and b are two values, or (together) side by side in one. */
template <class Y, class A, class B> struct swiglu_forward {
    Y *y;
    const A *a;
    const B *b;
    int64_t columns;
    bool together;
    __device__ void operator()(int64_t i) const
    {
        int64_t at = together ? i / columns * 2 * columns + i % columns : i;
        float first = load(a, at), second = together ? load(a, at + columns) : load(b, i);
        store(y, i, first * sigmoid(first) * second);
    }
};

static att_status run_swiglu(const att_call *call)
{
    bool together = !call->in[1];
    int64_t columns = att_cuda_dim(&call->problem->out[0], -1), count = att_cuda_out_count(call, 0);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *a) {
            att_cuda_in(call, together ? 0 : 1, [&](auto *b) {
                att_cuda_each(count, swiglu_forward{y, a, b, columns, together});
            });
        });
    });
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(swiglu, run_swiglu);

template <class DY, class A, class B, class DA, class DB> struct swiglu_backward {
    const DY *dy;
    const A *a;
    const B *b;
    DA *da;
    DB *db;
    int64_t columns;
    bool together;
    __device__ void operator()(int64_t i) const
    {
        int64_t at = together ? i / columns * 2 * columns + i % columns : i;
        float first = load(a, at), second = together ? load(a, at + columns) : load(b, i);
        float g = load(dy, i), s = sigmoid(first);
        if (da)
            store(da, at, g * second * s * (1 + first * (1 - s)));
        if (together && da)
            store(da, at + columns, g * first * s);
        else if (!together && db)
            store(db, i, g * first * s);
    }
};

static att_status run_swiglu_grad(const att_call *call)
{
    enum { DY, A, B };
    bool together = !call->in[B];
    int64_t columns = att_cuda_dim(&call->problem->in[DY], -1), count = att_cuda_in_count(call, DY);
    att_cuda_in(call, DY, [&](auto *dy) {
        att_cuda_in(call, A, [&](auto *a) {
            att_cuda_in(call, together ? A : B, [&](auto *b) {
                att_cuda_out(call, 0, [&](auto *da) {
                    att_cuda_out(call, together ? 0 : 1, [&](auto *db) {
                        att_cuda_each(count, swiglu_backward{dy, a, b, da, db, columns, together});
                    });
                });
            });
        });
    });
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(swiglu_grad, run_swiglu_grad);
