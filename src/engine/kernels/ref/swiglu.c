#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Where the elements of result `e`, column `e` % columns, lie in a and b. */
typedef struct operands {
    int a, b; /* numbers of the inputs */
    int64_t columns, at_a, at_b;
} operands;

static operands operands_of(const att_call *call, int a, int64_t columns, int64_t e)
{
    if (ref_has(call, a + 1))
        return (operands){a, a + 1, columns, e, e};
    int64_t at = e / columns * 2 * columns + e % columns;
    return (operands){a, a, columns, at, at + columns};
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static att_status run_swiglu(const att_call *call)
{
    const att_shape *shape = &call->problem->out[0].shape;
    ref_range share = ref_share(call, att_problem_count(call->problem, &call->problem->out[0]));
    for (int64_t e = share.begin; e < share.end; e++) {
        operands o = operands_of(call, 0, shape->dims[shape->rank - 1], e);
        double a = ref_in(call, o.a, o.at_a);
        ref_out(call, 0, e, a * sigmoid(a) * ref_in(call, o.b, o.at_b));
    }
    return ATT_OK;
}

const att_kernel att_ref_swiglu = {.op = "swiglu", .name = "ref", .run = run_swiglu};

static att_status run_grad(const att_call *call)
{
    enum { DY, A };
    ref_range share = ref_share(call, ref_count(call, DY));
    for (int64_t e = share.begin; e < share.end; e++) {
        operands o = operands_of(call, A, ref_dim(call, DY, -1), e);
        double dy = ref_in(call, DY, e), a = ref_in(call, o.a, o.at_a), s = sigmoid(a);
        ref_out(call, o.a - A, o.at_a, dy * ref_in(call, o.b, o.at_b) * s * (1 + a * (1 - s)));
        ref_out(call, o.b - A, o.at_b, dy * a * s);
    }
    return ATT_OK;
}

const att_kernel att_ref_swiglu_grad = {.op = "swiglu_grad", .name = "ref", .run = run_grad};
