/* In inference, weights that kernels read in a packed copy are not needed a second time. */
#include "base/core/error.h"
#include "base/core/pages.h"
#include "engine/session/session.h"

static size_t bytes_of(const att_session *session, int parameter)
{
    const att_plan *plan = session->plan;
    return (size_t)att_shape_count(plan->parameters[parameter].shape) * att_dtype_size(plan->dtype);
}

/* Whether the step reads input i in its packed copy only. */
static bool reads_packed(const att_step *step, int i)
{
    return step->packed >= 0 && step->unit->kernel->packed_in >> i & 1;
}

/* Marks the parameters that the step reads as they are. */
static void mark_read(const att_step *step, bool *read)
{
    for (int i = 0; i < step->unit->problem.in_count; i++)
        if (step->in[i].place == ATT_AT_WEIGHTS && !reads_packed(step, i))
            read[step->in[i].offset] = true;
}

static void mark_segment(const att_segment *segment, bool *read)
{
    for (int i = 0; i < segment->program_count; i++)
        for (int j = 0; j < segment->programs[i].step_count; j++)
            mark_read(&segment->programs[i].steps[j], read);
    for (int i = 0; i < segment->reduction_count; i++)
        mark_read(&segment->reductions[i], read);
}

/* Small parameters share their pages with others. */
static void count_packs(att_session *session, const bool *read)
{
    enum { LEAST_BYTES = 1 << 16 };
    const att_plan *plan = session->plan;
    for (int i = 0; i < plan->packs.count; i++) {
        const att_pack *pack = &plan->packs.items[i];
        for (int j = 0; !pack->once && j < pack->unit->problem.in_count; j++) {
            const int parameter = pack->in[j].place == ATT_AT_WEIGHTS ? (int)pack->in[j].offset : -1;
            if (parameter >= 0 && !read[parameter] && bytes_of(session, parameter) >= LEAST_BYTES)
                session->packs_of[parameter]++;
        }
    }
}

att_status att_session_find_packed(att_session *session)
{
    const att_plan *plan = session->plan;
    const size_t count = (size_t)plan->parameter_count + 1;
    bool *read;
    ATT_TRY(att_new(session->context, &session->packs_of, count, "a session"));
    if (plan->purpose != ATT_INFER)
        return ATT_OK;
    ATT_TRY(att_new(session->context, &read, count, "a session"));
    for (int i = 0; i < plan->segment_count; i++)
        mark_segment(&plan->segments[i], read);
    for (int i = 0; i < plan->epilogue.count; i++)
        mark_read(&plan->epilogue.steps[i], read);
    count_packs(session, read);
    att_free(session->context, read);
    return ATT_OK;
}

void att_session_begin_give_back(const att_session *session)
{
    bool any = false;
    for (int i = 0; i < session->plan->parameter_count; i++)
        any |= session->packs_of[i] > 0;
    if (any)
        att_weights_give_back(session->weights, session);
}

static void give_back(const att_session *session, int parameter)
{
    const att_bound_parameter *bound = &session->parameters[parameter];
    if (att_weights_given_back(session->weights, bound->index, session))
        att_discard(session->context, bound->values, bytes_of(session, parameter));
}

size_t att_session_given_back(const att_session *session)
{
    size_t bytes = 0;
    for (int i = 0; i < session->plan->parameter_count; i++)
        if (session->packs_of[i] > 0 && att_weights_given_back(session->weights, session->parameters[i].index, session))
            bytes += bytes_of(session, i);
    return bytes;
}

void att_session_give_back(const att_session *session, const att_pack *pack)
{
    for (int i = 0; pack && i < pack->unit->problem.in_count; i++)
        if (pack->in[i].place == ATT_AT_WEIGHTS && session->packs_of[pack->in[i].offset] == 1)
            give_back(session, (int)pack->in[i].offset);
    for (int i = 0; !pack && i < session->plan->parameter_count; i++)
        if (session->packs_of[i] > 1)
            give_back(session, i);
}
