#include "engine/ops/shift_scores.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Index in all tables of the number of element e of y; -1 if it has none. */
static int64_t number_of(const att_shift_scores_attrs *attrs, int64_t e, int64_t heads, int64_t rows)
{
    int64_t tokens = att_shift_tokens(attrs), matrix = e / tokens / tokens;
    int64_t shift = att_shift_between(attrs, e / tokens % tokens, e % tokens);
    return shift < rows ? (matrix / heads * rows + shift) * heads + matrix % heads : -1;
}

static att_status run_scores(const att_call *call)
{
    int64_t rows = ref_dim(call, 0, 0), heads = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, att_problem_count(call->problem, &call->problem->out[0]));
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t number = number_of(call->problem->attrs, e, heads, rows);
        ref_out(call, 0, e, number >= 0 ? ref_in(call, 0, number) : 0);
    }
    return ATT_OK;
}

const att_kernel att_ref_shift_scores = {.op = "shift_scores", .name = "ref", .run = run_scores};

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_problem_count(problem, &problem->out[0]) * sizeof(double);
    return ATT_OK;
}

/* One part computes everything. */
static att_status run_grad(const att_call *call)
{
    int64_t rows = ((const att_shift_scores_attrs *)call->problem->attrs)->rows, heads = ref_dim(call, 0, 0);
    int64_t count = att_problem_count(call->problem, &call->problem->out[0]);
    double *sums = call->scratch;
    if (call->part > 0)
        return ATT_OK;
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t e = 0; e < ref_count(call, 0); e++) {
        int64_t number = number_of(call->problem->attrs, e, heads, rows);
        if (number >= 0)
            sums[number] += ref_in(call, 0, e);
    }
    for (int64_t i = 0; i < count; i++)
        ref_out(call, 0, i, sums[i]);
    return ATT_OK;
}

const att_kernel att_ref_shift_scores_grad = {
    .op = "shift_scores_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
