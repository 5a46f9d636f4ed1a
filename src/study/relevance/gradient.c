#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "engine/plan/plan.h"
#include "study/measure/study.h"
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

/* In F64; the only inputs are the seed and the image. */
static att_status bind_wide(const att_relevance_job *job, const float *image)
{
    const att_relevance *r = job->relevance;
    double *pixels = r->wide_in + r->classes;
    for (int c = 0; c < r->classes; c++)
        r->wide_in[c] = c == job->target;
    for (int64_t e = 0; e < (int64_t)r->height * r->width * r->channels; e++)
        pixels[e] = (double)image[e];
    ATT_TRY(att_explorer_bind(r->explorer, r->session));
    ATT_TRY(att_session_bind(r->session, r->image_name, pixels));
    return att_session_bind(r->session, "relevance.seed", r->wide_in);
}

static att_status bind(const att_relevance_job *job, const float *image)
{
    const att_relevance *r = job->relevance;
    if (r->wide)
        return bind_wide(job, image);
    for (int f = 0; f < job->inputs->field_count; f++) {
        const char *name = job->inputs->fields[f].name;
        const bool is_image = r->image_name && strcmp(name, r->image_name) == 0;
        if (has_input(r->plan, name))
            ATT_TRY(att_session_bind(r->session, name, is_image ? image : job->inputs->data[f]));
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

/* Copies an output of the sample, numbers in F32. */
static att_status read_output(const att_relevance *r, const char *name, float *rows)
{
    att_field field = {0};
    ATT_TRY(att_session_output(r->session, name, 0, 1, rows));
    for (int i = 0; r->wide && (field = att_plan_output_at(r->plan, i)).name; i++)
        if (strcmp(field.name, name) == 0)
            att_study_narrow(rows, att_shape_count(field.shape));
    return ATT_OK;
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
    ATT_TRY(read_output(r, values, r->values));
    return read_output(r, name, r->gradient);
}

att_status att_relevance_read_image(const att_relevance *r)
{
    char name[128];
    snprintf(name, sizeof name, "%s.grad", r->image_name);
    return read_output(r, name, r->gradient);
}
