#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/gate.h"

enum { X, MATRIX, GATE, RESIDUAL };
enum { SUMS_X = 1, SUMS_MATRIX, SUMS_GATE, SUMS_RESIDUAL };

static int64_t rows_of_sample(const att_call *call, int i)
{
    return ref_rows(call, i) / call->problem->group;
}

/* The gate of a column of a sample; 1 if there is no gate. */
static double gate_at(const att_call *call, int gate, int64_t sample, int64_t column)
{
    return ref_has(call, gate) ? ref_in(call, gate, sample * ref_dim(call, gate, -1) + column) : 1;
}

static double product(const att_call *call, int64_t row, int64_t column)
{
    int64_t inputs = ref_dim(call, X, -1), outputs = ref_dim(call, MATRIX, 1);
    double sum = ref_in(call, MATRIX, inputs * outputs + column);
    for (int64_t j = 0; j < inputs; j++)
        sum += ref_in(call, X, row * inputs + j) * ref_in(call, MATRIX, j * outputs + column);
    return sum;
}

static att_status run_affine(const att_call *call)
{
    int64_t outputs = ref_dim(call, MATRIX, 1), rows = rows_of_sample(call, X);
    ref_range share = ref_share(call, ref_rows(call, X));
    for (int64_t row = share.begin; row < share.end; row++)
        for (int64_t o = 0; o < outputs; o++) {
            double y = product(call, row, o) * gate_at(call, GATE, row / rows, o);
            if (ref_has(call, RESIDUAL))
                y += ref_in(call, RESIDUAL, row * outputs + o);
            ref_out(call, 0, row * outputs + o, ref_act(ATT_ATTRS(call->problem, gate)->activation, y));
        }
    return ATT_OK;
}

const att_kernel att_ref_affine = {.op = "affine", .name = "ref", .run = run_affine};

static att_status run_data_grad(const att_call *call)
{
    int64_t inputs = ref_dim(call, MATRIX, 0) - 1, outputs = ref_dim(call, MATRIX, 1), rows = rows_of_sample(call, 0);
    ref_range share = ref_share(call, ref_rows(call, 0));
    for (int64_t row = share.begin; row < share.end; row++)
        for (int64_t j = 0; j < inputs; j++) {
            double sum = ref_has(call, RESIDUAL) ? ref_in(call, RESIDUAL, row * inputs + j) : 0;
            for (int64_t o = 0; o < outputs; o++)
                sum += ref_in(call, 0, row * outputs + o) * gate_at(call, GATE, row / rows, o) *
                       ref_in(call, MATRIX, j * outputs + o);
            ref_out(call, 0, row * inputs + j, sum);
        }
    return ATT_OK;
}

const att_kernel att_ref_affine_data_grad = {.op = "affine_data_grad", .name = "ref", .run = run_data_grad};

/* Row j, column o of a sample's [x 1]' dy. */
static double sum_at(const att_call *call, int64_t sample, int64_t j, int64_t o)
{
    int64_t inputs = ref_dim(call, SUMS_X, -1), outputs = ref_dim(call, 0, -1), rows = rows_of_sample(call, 0);
    double sum = 0;
    for (int64_t row = sample * rows; row < (sample + 1) * rows; row++)
        sum += ref_in(call, 0, row * outputs + o) * (j < inputs ? ref_in(call, SUMS_X, row * inputs + j) : 1);
    return sum;
}

static att_status run_sums(const att_call *call)
{
    int64_t height = ref_dim(call, SUMS_MATRIX, 0), outputs = ref_dim(call, SUMS_MATRIX, 1);
    ref_range share = ref_share(call, call->problem->group * outputs);
    for (int64_t number = share.begin; number < share.end; number++) {
        int64_t sample = number / outputs, o = number % outputs;
        double dot = 0, gate = gate_at(call, SUMS_GATE, sample, o);
        for (int64_t j = 0; j < height; j++) {
            double sum = sum_at(call, sample, j, o);
            int64_t e = (sample * height + j) * outputs + o;
            dot += sum * ref_in(call, SUMS_MATRIX, j * outputs + o);
            ref_out(call, 0, e, sum * gate + (ref_has(call, SUMS_RESIDUAL) ? ref_in(call, SUMS_RESIDUAL, e) : 0));
        }
        ref_out(call, 1, number, dot);
    }
    return ATT_OK;
}

const att_kernel att_ref_affine_sums = {.op = "affine_sums", .name = "ref", .run = run_sums};
