#include "engine/ops/linear.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/gelu.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/activation.h"

enum { X, WEIGHT, BIAS, RESIDUAL };

static double product(const att_call *call, int64_t row, int64_t output, int64_t inputs, int64_t outputs)
{
    bool transposed = ATT_ATTRS(call->problem, linear)->transposed;
    double sum = ref_has(call, BIAS) ? ref_in(call, BIAS, output) : 0;
    for (int64_t i = 0; i < inputs; i++)
        sum += ref_in(call, X, row * inputs + i) *
               ref_in(call, WEIGHT, transposed ? i * outputs + output : output * inputs + i);
    return sum;
}

static att_status run_linear(const att_call *call)
{
    int64_t inputs = ref_dim(call, X, -1);
    int64_t outputs = call->problem->out[0].shape.dims[call->problem->out[0].shape.rank - 1];
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        for (int64_t o = 0; o < outputs; o++) {
            double y = product(call, row, o, inputs, outputs);
            if (ATT_ATTRS(call->problem, linear)->activation == ATT_ACT_GELU)
                y = ref_gelu(y);
            if (ref_has(call, RESIDUAL))
                y += ref_in(call, RESIDUAL, row * outputs + o);
            ref_out(call, 0, row * outputs + o, y);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_linear = {.op = "linear", .name = "ref", .run = run_linear};

static att_status run_weight_grad(const att_call *call)
{
    enum { DY, X_OF_GRAD };
    int64_t outputs = ref_dim(call, DY, -1), inputs = ref_dim(call, X_OF_GRAD, -1), rows = ref_rows(call, DY);
    ref_range share = ref_share(call, outputs);
    for (int64_t o = share.begin; o < share.end; o++) {
        double bias = 0;
        for (int64_t row = 0; row < rows; row++)
            bias += ref_in(call, DY, row * outputs + o);
        ref_sum(call, 1, o, bias);
        for (int64_t i = 0; i < inputs && call->out[0]; i++) {
            double sum = 0;
            for (int64_t row = 0; row < rows; row++)
                sum += ref_in(call, DY, row * outputs + o) * ref_in(call, X_OF_GRAD, row * inputs + i);
            ref_sum(call, 0, o * inputs + i, sum);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_linear_weight_grad = {.op = "linear_weight_grad", .name = "ref", .run = run_weight_grad};
