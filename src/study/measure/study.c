#include "study/measure/study.h"

#include <math.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/text.h"

att_status att_study_tell(const att_study_job *job, int64_t done, int64_t all)
{
    bool stop = att_stop_asked(job->context);
    if (job->progress && !stop) {
        const double elapsed = att_seconds_now() - job->started;
        const att_progress progress = {.stage = job->instrument->info.name,
                                       .batch = done,
                                       .batches = all,
                                       .images_per_second = elapsed > 0 ? (double)done / elapsed : 0,
                                       .seconds_left = done > 0 ? elapsed / (double)done * (double)(all - done) : NAN,
                                       .loss = NAN,
                                       .lr = NAN,
                                       .slowest_rank = -1,
                                       .unit = "parts"};
        stop = !job->progress(job->progress_user, &progress);
    }
    if (!stop)
        return ATT_OK;
    return att_fail(job->context, ATT_ERR_STOPPED, "the instrument \"%s\" was stopped on request",
                    job->instrument->info.name);
}

/* The row of a sample of the last run in the input `name` of the network, in the type of the graph; rows of later
 * samples follow. NULL if that run had no such input. */
static const void *input_rows(const att_study_job *job, const char *name, int sample)
{
    const att_plan *plan = job->session->plan;
    for (int i = 0; i < plan->input_count; i++)
        if (strcmp(plan->inputs[i].name, name) == 0 && job->session->bound[i])
            return (const char *)job->session->bound[i] + sample * plan->inputs[i].row_bytes;
    return NULL;
}

att_status att_study_bind(const att_study_job *job, att_session *session, int sample)
{
    for (int i = 0; i < session->plan->input_count; i++) {
        const char *name = session->plan->inputs[i].name;
        const void *rows = input_rows(job, name, sample);
        if (rows)
            ATT_TRY(att_session_bind(session, name, rows));
    }
    return ATT_OK;
}

void att_study_narrow(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)values + (size_t)i * sizeof value, sizeof value);
        values[i] = (float)value;
    }
}

att_plan_options att_study_plan_options(const att_study_job *job)
{
    att_plan_options options = att_plan_options_defaults();
    options.backend = job->session->plan->units.backend->name;
    return options;
}

bool att_study_selects(const att_study_job *job, const att_residual_step *step)
{
    return att_text_matches_any(job->nodes, job->graph->nodes.items[step->node].scope);
}
