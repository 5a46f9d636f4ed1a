#include "engine/ops/frozen_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { X = ATT_FROZEN_X, GAMMA = ATT_FROZEN_GAMMA, STATS = ATT_FROZEN_STATS, BETA = ATT_FROZEN_BETA };

static double mean_of(const att_call *call, int64_t row, int64_t columns)
{
    double sum = 0;
    for (int64_t c = 0; c < columns; c++)
        sum += ref_in(call, X, row * columns + c);
    return sum / (double)columns;
}

static att_status run_frozen_norm(const att_call *call)
{
    const att_frozen_norm_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, X, -1), numbers = ATT_FROZEN_NUMBERS(attrs);
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double mean = attrs->centred ? mean_of(call, row, columns) : 0;
        double rstd = ref_in(call, STATS, row * numbers + numbers - 1);
        for (int64_t c = 0; c < columns; c++) {
            double y = (ref_in(call, X, row * columns + c) - mean) * rstd * ref_in(call, GAMMA, c);
            ref_out(call, 0, row * columns + c, y + (ref_has(call, BETA) ? ref_in(call, BETA, c) : 0));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_frozen_norm = {.op = "frozen_norm", .name = "ref", .run = run_frozen_norm};
