#include <math.h>
#include <string.h>

#include "core/error.h"
#include "session/session.h"

/* What torch.nn.utils.clip_grad_norm_ adds to the norm it divides by. */
static const double CLIP_EPSILON = 1e-6;

void att_session_flat(att_session *session, const att_unit *unit, const void *const *in, void *const *out, int part)
{
    att_call call = {.problem = &unit->problem,
                     .in = in,
                     .out = out,
                     .state = unit->prepared.state,
                     .part = part,
                     .parts = unit->problem.parts,
                     .run = &session->batch.run};
    att_status status = att_session_call(session, unit, &call, part);
    if (status != ATT_OK)
        att_session_fail(session, status);
}

/* --- reduction --------------------------------------------------------------------------------------------------- */

static void reduce_thread(void *user, int thread)
{
    att_session *session = user;
    const void *in[] = {session->gradient};
    void *out[] = {session->squares};
    att_session_flat(session, session->plan->sum_squares, in, out, thread);
}

att_status att_session_reduce(att_session *session, double *norm)
{
    const att_plan *plan = session->plan;
    if (plan->purpose != ATT_TRAIN || session->batch.count == 0)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "nothing was accumulated");
    atomic_store(&session->status, ATT_OK);
    att_threads_run(session->context, att_context_threads(session->context), reduce_thread, session);
    ATT_TRY((att_status)atomic_load(&session->status));
    session->memory->copy_out(session->squares_host, session->squares, (size_t)session->square_count * sizeof(double));
    double sum = 0;
    for (int64_t i = 0; i < session->square_count; i++)
        sum += session->squares_host[i];
    session->norm = sqrt(sum);
    if (norm)
        *norm = session->norm;
    if (!isfinite(session->norm))
        return att_fail(session->context, ATT_ERR_NONFINITE, "the gradient's norm is %g", session->norm);
    session->reduced = true;
    return ATT_OK;
}

att_status att_session_gradient(const att_session *session, int index, void *host, int64_t count)
{
    const att_plan *plan = session->plan;
    if (!session->reduced)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "there is no gradient before att_session_reduce()");
    if (index < 0 || index >= plan->parameter_count || plan->parameters[index].buffer ||
        att_shape_count(plan->parameters[index].shape) != count)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "there is no trained parameter %d of %lld elements", index,
                        (long long)count);
    size_t element = att_dtype_size(plan->dtype);
    session->memory->copy_out(host, session->gradient + (size_t)plan->layout.offsets[index] * element,
                              (size_t)count * element);
    return ATT_OK;
}

/* --- update ------------------------------------------------------------------------------------------------------ */

static char *range(att_session *session, void *block, int64_t offset)
{
    return (char *)block + (size_t)offset * att_dtype_size(session->plan->dtype);
}

static bool is_ema(const att_update_step *update)
{
    return strcmp(update->unit->problem.op, "ema") == 0;
}

static void update_thread(void *user, int thread)
{
    att_session *session = user;
    const att_plan *plan = session->plan;
    for (int i = 0; i < plan->updates.count; i++) {
        const att_update_step *update = &plan->updates.items[i];
        if (is_ema(update))
            continue;
        const void *in[] = {range(session, session->gradient, update->offset)};
        void **out = session->operands + (size_t)thread * (size_t)plan->most_operands;
        out[0] = range(session, session->weights->values, update->offset);
        for (int slot = 0; slot < plan->slot_count; slot++)
            out[1 + slot] = range(session, att_weights_slot(session->weights, plan->slots[slot]), update->offset);
        att_session_flat(session, update->unit, in, out, thread);
    }
}

/* After the update, as other threads' shares of the weights are read. */
static void ema_thread(void *user, int thread)
{
    att_session *session = user;
    for (int i = 0; i < session->plan->updates.count; i++) {
        const att_update_step *update = &session->plan->updates.items[i];
        if (!is_ema(update))
            continue;
        const void *in[] = {session->weights->values};
        void *out[] = {att_weights_slot(session->weights, "ema")};
        att_session_flat(session, update->unit, in, out, thread);
    }
}

att_status att_session_update(att_session *session, const att_hyper *hyper)
{
    if (!session->reduced || session->plan->slot_count == 0)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "%s",
                        session->plan->slot_count ? "an update follows att_session_reduce()"
                                                  : "the plan was compiled without an optimiser");
    int threads = att_context_threads(session->context);
    att_run *run = &session->batch.run;
    double clip = hyper->clip_norm > 0 ? hyper->clip_norm / (session->norm + CLIP_EPSILON) : 1;
    run->hyper = hyper;
    run->gradient_scale = clip < 1 ? clip : 1;
    atomic_store(&session->status, ATT_OK);
    att_threads_run(session->context, threads, update_thread, session);
    if (session->plan->ema)
        att_threads_run(session->context, threads, ema_thread, session);
    run->hyper = NULL;
    session->weights->version++;
    session->reduced = false;
    return (att_status)atomic_load(&session->status);
}
