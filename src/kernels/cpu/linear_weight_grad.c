#include "core/error.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tiered.h"

enum { DY, X };
enum { DW, DB };

static int64_t all_rows(const att_problem *problem, int64_t columns)
{
    return att_problem_count(problem, &problem->in[DY]) / columns;
}

/* dW [O, I] += dy' [O, rows] x [rows, I]. One part does it all: oneDNN is fast on dense matrices only, and a share of
 * dy's columns is none. Parts share db. */
static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    if (!att_desc_present(&problem->out[DW]))
        return ATT_OK;
    int64_t outputs = att_columns(&problem->in[DY]), inputs = att_columns(&problem->in[X]);
    att_product_spec spec = {.rows = outputs,
                             .inner = all_rows(problem, outputs),
                             .columns = inputs,
                             .a_transposed = true,
                             .accumulate = true};
    att_product *product;
    ATT_TRY(att_product_create(problem->context, &spec, &product));
    prepared->state = product;
    prepared->scratch_bytes = att_product_scratch_bytes(product);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t outputs = att_columns(&problem->in[DY]);
    if (call->out[DB]) {
        att_range part = att_part_of(call, outputs, 16);
        att_cpu_functions(problem->context)
            ->add_rows(call->in[DY], all_rows(problem, outputs), outputs, part.begin, part.end, call->out[DB]);
    }
    if (!call->out[DW] || call->part != 0)
        return ATT_OK;
    return att_product_run(call->state, call->in[DY], call->in[X], NULL, call->out[DW], call->scratch);
}

static void release(att_context *context, void *state)
{
    att_product_destroy(context, state);
}

const att_kernel att_cpu_linear_weight_grad = {.op = "linear_weight_grad",
                                               .name = "onednn",
                                               .accepts = att_takes_f32,
                                               .prepare = prepare,
                                               .run = run,
                                               .release = release};
