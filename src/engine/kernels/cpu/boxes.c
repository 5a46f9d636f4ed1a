/* box_proposals, box_detections, anchor_sample and box_sample, as the reference kernels: they take little time beside
 * the network. */
#include "engine/ops/boxes.h"
#include "engine/ops/box_targets.h"

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

static att_box_draws draws_of(const att_call *call)
{
    return (att_box_draws){call->run->seed, call->run->step, call->position};
}

static att_status prepare_anchors(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = att_anchor_sample_scratch(ATT_ATTRS(problem, anchor_sample), problem->in);
    return ATT_OK;
}

static att_status run_anchors(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_box_draws draws = draws_of(call);
    att_range share = att_part_of(call, problem->group, 1);
    att_anchor_sample_run(ATT_ATTRS(problem, anchor_sample), problem->in, call->in, call->out, share.begin, share.end,
                          &draws, call->scratch);
    return ATT_OK;
}

static att_status prepare_samples(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = att_box_sample_scratch(ATT_ATTRS(problem, box_sample), problem->in);
    return ATT_OK;
}

static att_status run_samples(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_box_draws draws = draws_of(call);
    att_range share = att_part_of(call, problem->group, 1);
    att_box_sample_run(ATT_ATTRS(problem, box_sample), problem->in, call->in, call->out, share.begin, share.end, &draws,
                       call->scratch);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(box_proposals, .prepare = prepare_proposals, .run = run_proposals);
ATT_PLAIN_KERNEL(box_detections, .prepare = prepare_detections, .run = run_detections);
ATT_PLAIN_KERNEL(anchor_sample, .prepare = prepare_anchors, .run = run_anchors);
ATT_PLAIN_KERNEL(box_sample, .prepare = prepare_samples, .run = run_samples);
