#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "study/relevance/method.h"

/* Whether the plan has an input of this name. */
static bool has_input(const att_plan *plan, const char *name)
{
    att_field field;
    for (int i = 0; (field = att_plan_input_at(plan, i)).name; i++)
        if (strcmp(field.name, name) == 0)
            return true;
    return false;
}

static att_status bind(const att_relevance_job *job, const float *image)
{
    const att_relevance *r = job->relevance;
    for (int f = 0; f < job->inputs->field_count; f++) {
        const char *name = job->inputs->fields[f].name;
        if (has_input(r->plan, name))
            ATT_TRY(
                att_session_bind(r->session, name, strcmp(name, r->image_name) == 0 ? image : job->inputs->data[f]));
    }
    ATT_TRY(att_explorer_bind(r->explorer, r->session));
    memset(r->seed, 0, (size_t)r->classes * sizeof *r->seed);
    r->seed[job->target] = 1;
    return att_session_bind(r->session, "relevance.seed", r->seed);
}

att_status att_relevance_differentiate(const att_relevance_job *job, const float *image)
{
    ATT_TRY(bind(job, image));
    const att_status status = att_session_accumulate(job->relevance->session, NULL, 1, 1, 0, 0, 0);
    if (status == ATT_ERR_STOPPED)
        return att_fail(job->relevance->context, status, "stopped on request while a gradient was computed");
    return status;
}

att_status att_relevance_read(const att_relevance *r, const char *what, int number)
{
    char name[ATT_RELEVANCE_NAME + 8], values[ATT_RELEVANCE_NAME];
    if (number < 0) {
        snprintf(values, sizeof values, "relevance.%s", what);
        snprintf(name, sizeof name, "relevance.%s.grad", what);
    } else {
        snprintf(values, sizeof values, "relevance.values.%d", number);
        snprintf(name, sizeof name, "relevance.%s.%d.grad", what, number);
    }
    ATT_TRY(att_session_output(r->session, values, 0, 1, r->values));
    return att_session_output(r->session, name, 0, 1, r->gradient);
}

att_status att_relevance_read_image(const att_relevance *r)
{
    char name[128];
    snprintf(name, sizeof name, "%s.grad", r->image_name);
    return att_session_output(r->session, name, 0, 1, r->gradient);
}
