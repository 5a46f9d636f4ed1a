#include <string.h>

#include "engine/session/session.h"

static const att_recorder *recorder_of(const att_session *session)
{
    return session->memory->recorder;
}

/* Random draws differ between updates. A profile, a trace and a run that may stop need the calls themselves. */
static bool may_record(const att_session *session)
{
    return recorder_of(session) && !session->plan->draws && !session->plan->prologue_draws && !session->exchange &&
           !session->runner.profiling && !session->trace && !session->stops;
}

static att_body_key key_of(const att_session *session)
{
    const att_body_batch *batch = &session->batch;
    att_body_key key;
    memset(&key, 0, sizeof key); /* keys are compared with their padding */
    key.count = batch->count;
    key.first = batch->first;
    key.scale = batch->run.scale;
    key.gradient = session->gradient;
    key.observed = batch->observed;
    return key;
}

void att_recorded_release(att_session *session)
{
    if (session->recorded.recording)
        recorder_of(session)->release(session->recorded.recording);
    session->recorded.recording = NULL;
}

static att_status record(att_session *session, void (*work)(att_session *session))
{
    const att_recorder *recorder = recorder_of(session);
    att_status status = recorder->begin(session->context);
    if (status != ATT_OK)
        return status;
    work(session);
    return recorder->end(session->context, &session->recorded.recording);
}

void att_session_repeat(att_session *session, void (*work)(att_session *session))
{
    const att_body_key key = key_of(session);
    bool same = memcmp(&key, &session->recorded.last, sizeof key) == 0;
    att_status status = ATT_OK;
    if (!same)
        att_recorded_release(session);
    memcpy(&session->recorded.last, &key, sizeof key);
    if (!may_record(session) || !same) {
        work(session);
        return;
    }
    if (!session->recorded.recording)
        status = record(session, work);
    if (status == ATT_OK)
        status = recorder_of(session)->replay(session->context, session->recorded.recording);
    if (status != ATT_OK)
        att_runner_fail(&session->runner, status);
}
