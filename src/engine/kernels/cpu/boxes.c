/* box_proposals and box_detections, as the reference kernels: they take little time beside the network. */
#include "engine/ops/boxes.h"

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

static att_status prepare_proposals(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes =
        att_box_proposals_scratch(ATT_ATTRS(problem, box_proposals), problem->in, problem->in_count);
    return ATT_OK;
}

/* Parts share the samples. */
static att_status run_proposals(const att_call *call)
{
    const att_problem *problem = call->problem;
    att_range share = att_part_of(call, problem->group, 1);
    att_box_proposals_run(ATT_ATTRS(problem, box_proposals), problem->in, problem->in_count, call->in, call->out,
                          share.begin, share.end, call->scratch);
    return ATT_OK;
}

static att_status prepare_detections(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = att_box_detections_scratch(ATT_ATTRS(problem, box_detections), problem->in);
    return ATT_OK;
}

static att_status run_detections(const att_call *call)
{
    const att_problem *problem = call->problem;
    att_range share = att_part_of(call, problem->group, 1);
    att_box_detections_run(ATT_ATTRS(problem, box_detections), problem->in, call->in, call->out, share.begin, share.end,
                           call->scratch);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(box_proposals, .prepare = prepare_proposals, .run = run_proposals);
ATT_PLAIN_KERNEL(box_detections, .prepare = prepare_detections, .run = run_detections);
