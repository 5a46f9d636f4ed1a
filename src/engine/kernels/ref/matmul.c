#include "engine/ops/matmul.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { A, B };

static att_status run(const att_call *call)
{
    const att_matmul_attrs *attrs = call->problem->attrs;
    const att_shape *y = &call->problem->out[0].shape;
    int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
    int64_t inner = ref_dim(call, A, attrs->a_transposed ? -2 : -1);
    ref_range share = ref_share(call, att_shape_count(*y) * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t matrix = e / (rows * columns), row = e / columns % rows, column = e % columns;
        double sum = 0;
        for (int64_t k = 0; k < inner; k++)
            sum += ref_in(call, A, matrix * rows * inner + (attrs->a_transposed ? k * rows + row : row * inner + k)) *
                   ref_in(call, B,
                          matrix * inner * columns + (attrs->b_transposed ? column * inner + k : k * columns + column));
        ref_out(call, 0, e, attrs->scale * sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_matmul = {.op = "matmul", .name = "ref", .run = run};
