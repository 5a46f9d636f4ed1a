/* box_proposals, box_detections, anchor_sample and box_sample. */
#include "engine/ops/boxes.h"
#include "engine/ops/box_targets.h"

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Parts share the samples. */
static att_box_work work_of(const att_call *call)
{
    const att_problem *problem = call->problem;
    const ref_range share = ref_share(call, problem->group);
    return (att_box_work){.attrs = problem->attrs,
                          .in = problem->in,
                          .in_count = problem->in_count,
                          .data = call->in,
                          .out = call->out,
                          .begin = share.begin,
                          .end = share.end,
                          .seed = call->run->seed,
                          .step = call->run->step,
                          .position = call->position,
                          .scratch = call->scratch};
}

#define BOX_KERNEL(op_)                                                                                \
    static att_status prepare_##op_(const att_problem *problem, att_prepared *prepared)                \
    {                                                                                                  \
        prepared->scratch_bytes = att_##op_##_scratch(problem->attrs, problem->in, problem->in_count); \
        return ATT_OK;                                                                                 \
    }                                                                                                  \
    static att_status run_##op_(const att_call *call)                                                  \
    {                                                                                                  \
        const att_box_work work = work_of(call);                                                       \
        att_##op_##_run(&work);                                                                        \
        return ATT_OK;                                                                                 \
    }                                                                                                  \
    const att_kernel att_ref_##op_ = {.op = #op_, .name = "ref", .prepare = prepare_##op_, .run = run_##op_};
BOX_KERNEL(box_proposals)
BOX_KERNEL(box_detections)
BOX_KERNEL(anchor_sample)
BOX_KERNEL(box_sample)
