#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "engine/session/session.h"

/* Index of the first element that is not finite; -1: all are finite. */
static int64_t first_nonfinite(const void *data, att_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (dtype == ATT_F32 && !isfinite(((const float *)data)[i]))
            return i;
        if (dtype == ATT_BF16 && (((const uint16_t *)data)[i] & 0x7f80) == 0x7f80)
            return i;
        if (dtype == ATT_F64 && !isfinite(((const double *)data)[i]))
            return i;
    }
    return -1;
}

/* Search for the first value that is not finite. */
typedef struct nonfinite_search {
    att_session *session;
    void *host;        /* room for the largest value */
    const char *arena; /* of the program that runs */
    char *text;
    size_t size;
    bool found;
} nonfinite_search;

static int64_t max_elements(int64_t most, const att_step *steps, int count)
{
    for (int i = 0; i < count; i++) {
        const att_problem *problem = &steps[i].unit->problem;
        for (int j = 0; j < problem->out_count; j++)
            if (att_desc_present(&problem->out[j]) && att_problem_count(problem, &problem->out[j]) > most)
                most = att_problem_count(problem, &problem->out[j]);
    }
    return most;
}

static int64_t largest_value(const att_session *session)
{
    int64_t largest = 1;
    for (int i = 0; i < session->plan->segment_count; i++) {
        const att_segment *segment = &session->plan->segments[i];
        for (int j = 0; j < segment->program_count; j++)
            largest = max_elements(largest, segment->programs[j].steps, segment->programs[j].step_count);
        largest = max_elements(largest, segment->reductions, segment->reduction_count);
    }
    largest = max_elements(largest, session->plan->prologue.steps, session->plan->prologue.count);
    largest = max_elements(largest, session->plan->epilogue.steps, session->plan->epilogue.count);
    for (int i = 0; i < session->plan->input_count; i++)
        if (att_shape_count(session->plan->inputs[i].desc.shape) > largest)
            largest = att_shape_count(session->plan->inputs[i].desc.shape);
    for (int i = 0; i < session->weights->count; i++)
        if (att_shape_count(session->weights->parameters[i].shape) > largest)
            largest = att_shape_count(session->weights->parameters[i].shape);
    return largest;
}

static void check_inputs(nonfinite_search *search)
{
    att_session *session = search->session;
    for (int i = 0; i < session->plan->input_count; i++) {
        const att_port *port = &session->plan->inputs[i];
        for (int row = 0; row < session->batch.rows && !search->found; row++) {
            const char *data = (const char *)session->bound[i] + row * port->row_bytes;
            memcpy(search->host, data, (size_t)port->row_bytes);
            if (first_nonfinite(search->host, port->desc.dtype, att_shape_count(port->desc.shape)) < 0)
                continue;
            snprintf(search->text, search->size, "input \"%s\", sample %d", port->name, session->batch.first_row + row);
            search->found = true;
        }
    }
}

/* Whether runs of the plan change the parameter (a buffer). If so, a buffer that is not finite is a result of the run,
 * not the cause. */
static bool is_assigned(const att_session *session, int parameter)
{
    for (int i = 0; i < session->plan->assigned_count; i++)
        if (session->parameters[session->plan->assigned[i]].index == parameter)
            return true;
    return false;
}

static void check_weights(nonfinite_search *search)
{
    att_session *session = search->session;
    for (int i = 0; i < session->weights->count && !search->found; i++) {
        if (is_assigned(session, i))
            continue;
        const att_parameter_info *parameter = &session->weights->parameters[i];
        int64_t count = att_shape_count(parameter->shape);
        if (att_weights_get(session->weights, -1, i, search->host, count) != ATT_OK ||
            first_nonfinite(search->host, session->plan->dtype, count) < 0)
            continue;
        snprintf(search->text, search->size, "parameter \"%s\"", parameter->name);
        search->found = true;
    }
}

static const char *address_of(const nonfinite_search *search, const att_ref *ref, int64_t row)
{
    const att_session *session = search->session;
    if (ref->observed)
        return NULL;
    if (ref->place == ATT_AT_ARENA)
        return search->arena + ref->offset;
    if (ref->place == ATT_AT_GRADIENT)
        return session->sums[ref->offset];
    if (ref->place == ATT_AT_DERIVED)
        return session->derived + ref->offset;
    if (ref->place == ATT_AT_STORE)
        return session->store + ref->offset * session->max_rows + row * ref->row_bytes;
    if (ref->place == ATT_AT_BATCH)
        return session->batch_values + ref->offset;
    return ref->place == ATT_AT_OUTPUT
               ? session->outputs[ref->offset] + (session->batch.first_row + row) * ref->row_bytes
               : NULL;
}

/* Writes "blocks.3.attn (attention), sample 17", or "attention, sample 17" if the scope is empty; sample -1: none. */
static void write_step(const nonfinite_search *search, const att_step *step, int64_t sample)
{
    const char *op = step->unit->problem.op;
    bool named = *step->scope;
    char which[32] = "";
    if (sample >= 0)
        snprintf(which, sizeof which, ", sample %lld", (long long)sample);
    snprintf(search->text, search->size, named ? "%s (%s)%s" : "%s%s%s", step->scope, op, which);
}

/* row, size: of the group of samples. */
static void check_step(nonfinite_search *search, const att_step *step, int64_t row, int size)
{
    att_session *session = search->session;
    att_runner_wait(&session->runner);
    const att_problem *problem = &step->unit->problem;
    for (int i = 0; i < problem->out_count && !search->found; i++) {
        const char *address = address_of(search, &step->out[i], row);
        if (!address || !att_desc_present(&problem->out[i]))
            continue;
        int64_t count = att_problem_count(problem, &problem->out[i]);
        session->memory->copy_out(search->host, address, (size_t)count * att_dtype_size(problem->out[i].dtype));
        int64_t at = first_nonfinite(search->host, problem->out[i].dtype, count);
        if (at < 0)
            continue;
        search->found = true;
        if (problem->out[i].kind == ATT_SAMPLE)
            write_step(search, step, session->batch.first_row + row + at / (count / size));
        else
            write_step(search, step, -1);
    }
}

/* One thread computes all parts in turn. This is correct because no part of a call reads another part's results. */
static att_status replay_groups(nonfinite_search *search, const att_segment *segment)
{
    att_session *session = search->session;
    int64_t row;
    int size;
    for (int i = 0; (size = att_session_group(session->batch.rows, segment->group, i, &row)) > 0; i++) {
        const att_program *program = att_segment_program(segment, size, segment->parts);
        search->arena = att_session_arena(session, program, 0);
        for (int j = 0; j < program->step_count && !search->found; j++) {
            if (program->steps[j].observer)
                continue;
            for (int part = 0; part < program->parts; part++)
                att_session_step(session, program, &program->steps[j], 0, part, row, session->plan->first_lane);
            ATT_TRY((att_status)atomic_load(&session->runner.status));
            check_step(search, &program->steps[j], row, size);
        }
    }
    return ATT_OK;
}

/* Assigns buffers again; replay_and_restore() undoes this. */
static att_status replay_reductions(nonfinite_search *search, const att_segment *segment)
{
    att_session_gather(search->session, segment);
    for (int i = 0; i < segment->reduction_count && !search->found; i++) {
        const att_step *step = &segment->reductions[i];
        if (step->observer)
            continue;
        for (int part = 0; part < step->unit->problem.parts; part++)
            att_session_reduction(search->session, step, part);
        ATT_TRY((att_status)atomic_load(&search->session->runner.status));
        check_step(search, step, 0, 1);
    }
    return ATT_OK;
}

static att_status replay_once(nonfinite_search *search, const att_once_steps *once)
{
    for (int i = 0; i < once->count && !search->found; i++) {
        att_session_once(search->session, &once->steps[i], 0);
        ATT_TRY((att_status)atomic_load(&search->session->runner.status));
        check_step(search, &once->steps[i], 0, 1);
    }
    return ATT_OK;
}

static att_status replay(nonfinite_search *search)
{
    att_session *session = search->session;
    const att_plan *plan = session->plan;
    atomic_store(&session->runner.status, ATT_OK);
    if (session->gradient)
        att_gradient_begin(session->gradient);
    if (plan->total_bytes > 0)
        session->memory->clear(session->totals, plan->total_bytes);
    ATT_TRY(replay_once(search, &plan->prologue));
    for (int i = 0; i < plan->segment_count && !search->found; i++) {
        att_session_pack(session, &plan->segments[i], 0, 1);
        ATT_TRY(replay_groups(search, &plan->segments[i]));
        ATT_TRY(replay_reductions(search, &plan->segments[i]));
    }
    return replay_once(search, &plan->epilogue);
}

static size_t buffer_bytes(const att_session *session, int assigned)
{
    const att_plan *plan = session->plan;
    return (size_t)att_shape_count(plan->parameters[plan->assigned[assigned]].shape) * att_dtype_size(plan->dtype);
}

static char *buffer_at(const att_session *session, int assigned)
{
    return session->parameters[session->plan->assigned[assigned]].values;
}

/* Runs the batch again and restores the buffers that the run assigns. */
static att_status replay_and_restore(nonfinite_search *search)
{
    att_session *session = search->session;
    size_t bytes = 0;
    for (int i = 0; i < session->plan->assigned_count; i++)
        bytes += buffer_bytes(session, i);
    char *kept = att_allocate(session->context, bytes + 1), *at = kept;
    if (!kept)
        return att_fail_memory(session->context, bytes, "the search for a non-finite value");
    for (int i = 0; i < session->plan->assigned_count; at += buffer_bytes(session, i++))
        session->memory->copy_out(at, buffer_at(session, i), buffer_bytes(session, i));
    session->alone = true;
    att_status status = replay(search);
    session->alone = false;
    att_runner_wait(&session->runner);
    at = kept;
    for (int i = 0; i < session->plan->assigned_count; at += buffer_bytes(session, i++))
        session->memory->copy_in(buffer_at(session, i), at, buffer_bytes(session, i));
    att_free(session->context, kept);
    return status;
}

att_status att_session_find_nonfinite(att_session *session, char *text, size_t size)
{
    if (session->plan->purpose == ATT_INFER || session->batch.count == 0)
        return att_fail(session->context, ATT_ERR_ARGUMENT,
                        "there is no accumulation to replay; call att_session_accumulate() first");
    nonfinite_search search = {.session = session, .text = text, .size = size};
    size_t bytes = (size_t)largest_value(session) * sizeof(double);
    search.host = att_allocate(session->context, bytes);
    if (!search.host)
        return att_fail_memory(session->context, bytes, "the search for a non-finite value");
    if (size)
        text[0] = '\0';
    check_inputs(&search);
    check_weights(&search);
    att_status status = search.found ? ATT_OK : replay_and_restore(&search);
    att_free(session->context, search.host);
    return status;
}
