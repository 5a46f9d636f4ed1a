#include "base/core/clock.h"
#include "base/core/error.h"
#include "engine/session/block.h"
#include "engine/session/session.h"

/* --- one call ---------------------------------------------------------------------------------------------------- */

char *att_session_arena(const att_session *session, const att_program *program, int team)
{
    enum { ALIGN = 64 };
    const size_t teams = (size_t)(att_plan_threads(session->plan) / program->parts);
    return session->room + program->base + (session->room_bytes - program->base) / teams / ALIGN * ALIGN * (size_t)team;
}

/* arena: of the team. */
static char *resolve(const att_session *session, const att_ref *ref, char *arena, int64_t row, int lane)
{
    if (ref->observed && !session->observing)
        return NULL;
    switch (ref->place) {
    case ATT_AT_ARENA:
        return arena + ref->offset;
    case ATT_AT_STORE:
        return session->store + ref->offset * session->max_rows + row * ref->row_bytes;
    case ATT_AT_BATCH:
        return session->batch_values + ref->offset;
    case ATT_AT_WEIGHTS:
        return session->parameters[ref->offset].values;
    case ATT_AT_GRADIENT: {
        int spare = lane - att_first_spare_lane(session->plan);
        return spare < 0 ? session->sums[ref->offset] : session->spare + ref->spare + spare * ref->row_bytes;
    }
    case ATT_AT_DERIVED:
        return session->derived + ref->offset;
    case ATT_AT_INPUT:
        if (session->staged[ref->offset])
            return session->staged[ref->offset] + row * ref->row_bytes;
        return (char *)(uintptr_t)session->bound[ref->offset] + row * ref->row_bytes;
    case ATT_AT_OUTPUT:
        return session->outputs[ref->offset] + (session->batch.first_row + row) * ref->row_bytes;
    case ATT_AT_GATHERED:
        return session->gathered + ref->offset * session->max_batch;
    case ATT_AT_NONE:
        break;
    }
    return NULL;
}

const char *att_session_rows(const att_session *session, const att_ref *ref)
{
    return resolve(session, ref, NULL, 0, 0);
}

/* The pointers of the step's inputs, then of its outputs, in memory of the thread. */
static void **resolve_operands(const att_session *session, const att_step *step, int thread, char *arena, int64_t row,
                               int lane)
{
    const att_problem *problem = &step->unit->problem;
    void **operands = att_runner_operands(&session->runner, thread);
    for (int i = 0; i < problem->in_count; i++)
        operands[i] = resolve(session, &step->in[i], arena, row, lane);
    for (int i = 0; i < problem->out_count; i++)
        operands[problem->in_count + i] = resolve(session, &step->out[i], arena, row, lane);
    return operands;
}

static char *packed_at(const att_session *session, const att_pack *pack)
{
    if (pack->segment < 0)
        return session->packed + pack->offset;
    return session->room + session->plan->segments[pack->segment].lane_bytes + pack->offset;
}

void att_session_step(att_session *session, const att_program *program, const att_step *step, int team, int part,
                      int64_t row, int lane)
{
    const att_unit *unit = step->unit;
    int thread = team * program->parts + part;
    char *arena = att_session_arena(session, program, team);
    double begin = session->trace ? att_seconds_now() : 0;
    void **operands = resolve_operands(session, step, thread, arena, row, lane);
    att_call call = {.problem = &unit->problem,
                     .in = (const void *const *)operands,
                     .out = operands + unit->problem.in_count,
                     .packed = step->packed < 0 ? NULL : packed_at(session, &session->plan->packs.items[step->packed]),
                     .state = unit->prepared.state,
                     .scratch = arena + step->scratch + (size_t)part * att_unit_scratch(unit),
                     .part = part,
                     .parts = program->parts,
                     .position = session->batch.first + session->batch.first_row + row,
                     .run = &session->batch.run,
                     .samples = unit->problem.group};
    att_runner_call(&session->runner, unit, &call, thread);
    if (session->trace)
        session->trace(session->trace_user, part, step->scope, unit->kernel->op, unit->kernel->name,
                       att_seconds_now() - begin);
}

/* Whether reductions read the samples of all processes. Without sync_statistics they never do, and what they add to
 * gradients is a share of the sum, in the first lane of this process. */
static bool sees_all(const att_session *session)
{
    return !session->exchange || (session->plan->sync_statistics && !session->alone);
}

void att_session_reduction(att_session *session, const att_step *step, int part)
{
    const att_unit *unit = step->unit;
    const att_body_batch *batch = &session->batch;
    bool of_all = sees_all(session);
    void **operands =
        resolve_operands(session, step, part, NULL, 0, session->plan->sync_statistics ? 0 : session->plan->first_lane);
    att_call call = {.problem = &unit->problem,
                     .in = (const void *const *)operands,
                     .out = operands + unit->problem.in_count,
                     .state = unit->prepared.state,
                     .scratch =
                         session->scratch ? session->scratch + (size_t)part * session->plan->scratch_bytes : NULL,
                     .part = part,
                     .parts = unit->problem.parts,
                     .position = batch->first + (of_all ? 0 : batch->first_row),
                     .run = &batch->run,
                     .samples = of_all ? batch->count : batch->rows};
    att_runner_call(&session->runner, unit, &call, part);
}

/* --- packs -------------------------------------------------------------------------------------------------------- */

static void run_pack(att_session *session, const att_pack *pack, int thread)
{
    void **in = att_runner_operands(&session->runner, thread);
    for (int j = 0; j < pack->unit->problem.in_count; j++)
        in[j] = att_is_shared(&pack->in[j]) ? resolve(session, &pack->in[j], NULL, 0, 0) : NULL;
    if (session->memory->enter)
        session->memory->enter();
    att_status status = pack->unit->kernel->pack(&pack->unit->problem, pack->unit->prepared.state,
                                                 (const void *const *)in, packed_at(session, pack));
    if (session->memory->leave)
        session->memory->leave();
    if (status != ATT_OK)
        att_runner_fail(&session->runner, status);
}

void att_session_pack(att_session *session, const att_segment *segment, int thread, int threads)
{
    for (int i = thread; i < segment->pack_count; i += threads)
        run_pack(session, &session->plan->packs.items[segment->first_pack + i], thread);
}

/* --- the body ---------------------------------------------------------------------------------------------------- */

int att_session_group(int count, int group, int index, int64_t *row)
{
    int full = count / group;
    if (index < full) {
        *row = (int64_t)index * group;
        return group;
    }
    *row = (int64_t)full * group;
    int remainder = count - full * group;
    for (int size = group / 2; size >= 1; size /= 2) {
        if (!(remainder & size))
            continue;
        if (index-- == full)
            return size;
        *row += size;
    }
    return 0;
}

/* Whether to leave out the steps that remain of a run that stops. All threads then go on to the end. */
static bool is_stopped(att_session *session, int thread)
{
    if (!session->stops)
        return false;
    if (thread == 0 && att_stop_asked(session->context))
        att_runner_fail(&session->runner, ATT_ERR_STOPPED);
    return atomic_load(&session->runner.status) != ATT_OK;
}

/* Waits for the other threads of a team of `parts` threads. */
static void meet_team(att_session *session, int parts, int team)
{
    if (parts > 1)
        att_barrier_wait(parts == att_plan_threads(session->plan) ? &session->all_threads : &session->barriers[team]);
}

/* After a failed step the team continues, so that its threads keep meeting at the barrier; the outputs are undefined.
 * reports: this is the last group of the team's lanes, whose progress the exchange follows. */
static void run_group(att_session *session, const att_segment *segment, int group, int parts, int team, int part,
                      int64_t row, int lane, bool reports)
{
    const att_program *program = att_segment_program(segment, group, parts);
    int completed = 0;
    for (int i = 0; i < program->step_count; i++) {
        const att_step *step = &program->steps[i];
        if (step->observer && !session->observing)
            continue;
        if (!is_stopped(session, team * parts + part))
            att_session_step(session, program, step, team, part, row, lane);
        meet_team(session, parts, team);
        if (reports && part == 0 && step->completed > completed) {
            completed = step->completed;
            att_exchange_progress(session->exchange, segment, team, completed);
        }
    }
}

/* Clears a lane before a segment. Lane 0 is not cleared: it accumulates over segments and calls. */
static void clear_lane(att_session *session, const att_segment *segment, int lane)
{
    int spare = lane - att_first_spare_lane(session->plan);
    for (int i = 0; spare >= 0 && i < segment->sum_count; i++) {
        const att_lane_sum *sum = &segment->sums[i];
        session->memory->clear(session->spare + sum->spare + (size_t)spare * sum->bytes, sum->bytes);
    }
}

static void run_lane(att_session *session, const att_segment *segment, int lane, int team, int part, bool is_last)
{
    const att_plan *plan = session->plan;
    int64_t row, batch = session->batch.count;
    int64_t begin = batch * lane / plan->lanes, end = batch * (lane + 1) / plan->lanes;
    int size;
    if (part == 0)
        clear_lane(session, segment, lane);
    if (segment->sum_count > 0)
        meet_team(session, segment->parts, team);
    for (int i = 0; (size = att_session_group((int)(end - begin), segment->group, i, &row)) > 0; i++) {
        const int64_t first = begin + row - session->batch.first_row;
        const bool is_first = segment == plan->segments;
        if (is_first && att_remembered_give(session, first, size, part == 0))
            continue;
        run_group(session, segment, size, segment->parts, team, part, first, lane,
                  is_last && begin + row + size == end);
        if (is_first && part == 0)
            att_remembered_take(session, first, size);
    }
}

/* How many of the segment's gradients are complete when its lanes are: not those that reductions add to. */
static int completed_by_lanes(const att_segment *segment)
{
    const att_program *program = &segment->programs[0];
    return program->step_count > 0 ? program->steps[program->step_count - 1].completed : 0;
}

/* Lane l of L has samples [B l / L, B (l + 1) / L) of a batch of B, whichever team or process computes it. */
static void run_lanes(att_session *session, const att_segment *segment, int thread)
{
    const att_plan *plan = session->plan;
    int team = thread / segment->parts, part = thread % segment->parts, teams = att_segment_teams(plan, segment);
    int end = plan->first_lane + plan->local_lanes;
    bool reports = session->exchange && segment->sum_count > 0;
    for (int lane = plan->first_lane + team; lane < end; lane += teams)
        run_lane(session, segment, lane, team, part, reports && lane + teams >= end);
    if (reports && part == 0)
        att_exchange_progress(session->exchange, segment, team, completed_by_lanes(segment));
}

static void sum_lanes(att_session *session, const att_segment *segment, int thread)
{
    for (int i = 0; i < segment->sum_count; i++) {
        const att_lane_sum *sum = &segment->sums[i];
        const void *in[] = {session->spare + sum->spare};
        void *out[] = {session->sums[sum->index]};
        att_call call = {.problem = &sum->sum->problem,
                         .in = in,
                         .out = out,
                         .state = sum->sum->prepared.state,
                         .part = thread,
                         .parts = sum->sum->problem.parts,
                         .run = &session->batch.run};
        att_runner_call(&session->runner, sum->sum, &call, thread);
    }
}

/* All threads share each reduction and then wait, because the next reduction may read the result. */
static void run_reductions(att_session *session, const att_segment *segment, int thread)
{
    for (int i = 0; i < segment->reduction_count; i++) {
        const att_step *step = &segment->reductions[i];
        if (step->observer && !session->observing)
            continue;
        att_session_reduction(session, step, thread);
        att_barrier_wait(&session->all_threads);
    }
}

/* The threads meet before and after this. */
static void begin_reductions(att_session *session, const att_segment *segment)
{
    att_session_gather(session, segment);
    if (session->exchange && segment->reductions_repeat)
        att_exchange_wait(session->exchange);
}

/* Sums the lanes and runs the reductions of a segment. The exchange with other processes sums the lanes itself. */
static void finish_segment(att_session *session, const att_segment *segment, int thread)
{
    att_barrier_wait(&session->all_threads);
    if (!session->exchange)
        sum_lanes(session, segment, thread);
    else if (segment->reduction_count > 0) {
        if (thread == 0)
            begin_reductions(session, segment);
        att_barrier_wait(&session->all_threads);
    }
    run_reductions(session, segment, thread);
    if (session->exchange && segment->sum_count > 0 && thread % segment->parts == 0)
        att_exchange_progress(session->exchange, segment, thread / segment->parts, segment->sum_count);
}

static void begin_segment(att_session *session, const att_segment *segment)
{
    if (session->exchange && segment->sum_count > 0)
        att_exchange_begin(session->exchange, segment);
}

/* Packs use the memory of the segment before, which all threads have left. */
static void enter_segment(att_session *session, const att_segment *segment, int thread)
{
    const bool is_first = segment == session->plan->segments;
    att_session_pack(session, segment, thread, att_plan_threads(session->plan));
    if (!is_first && thread == 0)
        begin_segment(session, segment);
    if (!is_first || segment->pack_count > 0)
        att_barrier_wait(&session->all_threads);
}

static void train_thread(void *user, int thread)
{
    att_session *session = user;
    const att_plan *plan = session->plan;
    for (int i = 0; i < plan->segment_count; i++) {
        const att_segment *segment = &plan->segments[i];
        enter_segment(session, segment, thread);
        run_lanes(session, segment, thread);
        if (segment->reduction_count > 0 || segment->sum_count > 0)
            finish_segment(session, segment, thread);
        if (i + 1 < plan->segment_count)
            att_barrier_wait(&session->all_threads);
    }
}

/* Whether to split each of the `leftover` samples across all threads. Otherwise each runs on its own thread, and all
 * take the time of one sample. A split sample takes about 1 / threads + 1 / 16 of that time, and split samples run one
 * after the other. */
static bool splits_leftover(int leftover, int threads)
{
    return leftover * (16 + threads) < 16 * threads;
}

static void infer_leftover(att_session *session, int thread)
{
    const att_segment *body = &session->plan->segments[0];
    int teams = session->plan->teams, count = session->batch.rows, leftover = count % teams;
    if (leftover == 0)
        return;
    if (!splits_leftover(leftover, teams)) {
        if (thread < leftover)
            run_group(session, body, 1, 1, thread, 0, count - leftover + thread, 0, false);
        return;
    }
    /* Split samples use the first team's memory: wait until its thread has finished its own group. */
    att_barrier_wait(&session->all_threads);
    for (int row = count - leftover; row < count; row++)
        run_group(session, body, 1, teams, 0, thread, row, 0, false);
}

/* Inference with one thread per team. A thread takes the next group when it is free. batch / teams samples are split
 * into groups (att_session_group()), and each of these groups occurs once per team; the leftover batch % teams samples
 * come last. Inference plans have one segment. */
static void infer_thread(void *user, int thread)
{
    att_session *session = user;
    const att_plan *plan = session->plan;
    const att_segment *body = &plan->segments[0];
    for (;;) {
        int64_t row;
        int index = atomic_fetch_add(&session->next_group, 1), turn = index / plan->teams, team = index % plan->teams;
        int size = att_session_group(session->batch.rows / plan->teams, body->group, turn, &row);
        if (size == 0)
            break;
        run_group(session, body, size, 1, thread, 0, row * plan->teams + (int64_t)team * size, 0, false);
    }
    infer_leftover(session, thread);
}

/* --- steps that run once ----------------------------------------------------------------------------------------- */

void att_session_once(att_session *session, const att_step *step, int thread)
{
    const att_plan *plan = session->plan;
    const att_unit *unit = step->unit;
    const att_pack *pack = step->packed < 0 ? NULL : &plan->packs.items[step->packed];
    if (pack)
        run_pack(session, pack, thread);
    void **operands = resolve_operands(session, step, thread, NULL, 0, 0);
    att_call call = {.problem = &unit->problem,
                     .in = (const void *const *)operands,
                     .out = operands + unit->problem.in_count,
                     .packed = pack ? packed_at(session, pack) : NULL,
                     .state = unit->prepared.state,
                     .scratch = session->scratch ? session->scratch + (size_t)thread * plan->scratch_bytes : NULL,
                     .parts = 1,
                     .run = &session->batch.run,
                     .samples = 1};
    att_runner_call(&session->runner, unit, &call, thread);
}

static void run_once(att_session *session, const att_once_steps *once, int thread)
{
    for (int i = 0; i < once->count; i++)
        if (once->chains[i] % att_plan_threads(session->plan) == thread)
            att_session_once(session, &once->steps[i], thread);
}

static void derive_thread(void *user, int thread)
{
    att_session *session = user;
    run_once(session, &session->plan->prologue, thread);
}

static void pack_thread(void *user, int thread)
{
    att_session *session = user;
    const att_plan *plan = session->plan;
    for (int i = thread; i < plan->packs.count; i += att_plan_threads(session->plan)) {
        const att_pack *pack = &plan->packs.items[i];
        if (pack->once || pack->segment >= 0)
            continue;
        run_pack(session, pack, thread);
        att_session_give_back(session, pack);
    }
}

static void epilogue_thread(void *user, int thread)
{
    att_session *session = user;
    run_once(session, &session->plan->epilogue, thread);
}

/* If another session ran in the same memory, nothing of an earlier run is left. */
static void take_block(att_session *session)
{
    if (!session->block || session->block->last == session)
        return;
    session->block->last = session;
    session->packed_version = 0;
    att_session_upload(session);
}

static void run_prologue(att_session *session)
{
    const att_plan *plan = session->plan;
    uint64_t version = att_weights_version(session->weights) + 1;
    bool is_done = session->packed_version == version && !plan->prologue_draws;
    att_status status =
        att_weights_lack(session->weights, is_done ? session : NULL) ? att_weights_complete(session->weights) : ATT_OK;
    if (status != ATT_OK)
        att_runner_fail(&session->runner, status);
    if (is_done || status != ATT_OK)
        return;
    if (plan->prologue.count > 0)
        att_threads_run(session->context, att_plan_threads(session->plan), derive_thread, session);
    att_session_begin_give_back(session);
    if (plan->packs.count > 0)
        att_threads_run(session->context, att_plan_threads(session->plan), pack_thread, session);
    att_session_give_back(session, NULL);
    if (atomic_load(&session->runner.status) == ATT_OK)
        session->packed_version = version;
}

static void stage_inputs(att_session *session)
{
    for (int i = 0; i < session->plan->input_count; i++)
        if (session->staged[i])
            session->memory->copy_in(session->staged[i], session->bound[i],
                                     (size_t)session->batch.rows * (size_t)session->plan->inputs[i].row_bytes);
}

/* Inference with teams of one thread. */
static bool is_single(const att_plan *plan)
{
    return plan->purpose == ATT_INFER && plan->parts == 1;
}

/* The body and the epilogue. */
static void run_body(att_session *session)
{
    const att_plan *plan = session->plan;
    bool single = is_single(plan);
    if (plan->total_bytes > 0)
        session->memory->clear(session->totals, plan->total_bytes);
    if (!single)
        begin_segment(session, &plan->segments[0]);
    att_threads_run(session->context, att_plan_threads(plan), single ? infer_thread : train_thread, session);
    att_status exchanged = session->exchange ? att_exchange_finish(session->exchange) : ATT_OK;
    if (exchanged != ATT_OK)
        att_runner_fail(&session->runner, exchanged);
    if (plan->epilogue.count > 0)
        att_threads_run(session->context, att_plan_threads(session->plan), epilogue_thread, session);
}

att_status att_session_body(att_session *session)
{
    const att_plan *plan = session->plan;
    atomic_store(&session->runner.status, ATT_OK);
    atomic_store(&session->next_group, 0);
    take_block(session);
    stage_inputs(session);
    run_prologue(session);
    att_barrier_init(&session->all_threads, att_plan_threads(plan));
    att_session_repeat(session, run_body);
    att_runner_wait(&session->runner);
    return (att_status)atomic_load(&session->runner.status);
}
