#include <math.h>
#include <string.h>

#include <attscope/lab/json.h>

#include "base/core/error.h"
#include "lab/papers/ode/system.h"
#include "lab/report/page.h"
#include <attscope/lab/json.h>

enum { MOST_POINTS = 2000 };

static void write_empty_list(att_json_writer *json, const char *key)
{
    att_json_put_array(json, key);
    att_json_end_array(json);
}

/* Writes every stride-th step as [t, h, SI, SAI, NSI]. */
static void write_steps(att_json_writer *json, const att_ode_trajectory *trajectory, int64_t stride)
{
    att_json_put_array(json, "steps");
    for (int64_t i = 0; i < trajectory->count; i += stride) {
        const att_ode_step *step = &trajectory->steps[i];
        const double values[] = {step->t, step->h, step->stiffness_index, step->sai, step->nsi};
        att_json_begin_array(json);
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            att_json_number(json, values[v]);
        att_json_end_array(json);
    }
    att_json_end_array(json);
}

static double limit_of(const char *method)
{
    for (int i = 0; i < att_ode_method_count(); i++)
        if (strcmp(att_ode_method_at(i).name, method) == 0)
            return att_ode_method_at(i).limit;
    return NAN;
}

/* A trajectory is shown like a run without training and measurements. */
static void write_line(att_json_writer *json, const att_ode_line *line)
{
    const att_ode_trajectory *trajectory = line->trajectory;
    int64_t stride = (trajectory->count + MOST_POINTS - 1) / MOST_POINTS;
    att_json_begin_object(json);
    att_json_put_string(json, "name", line->method);
    att_json_put_string(json, "setting", NULL);
    att_json_put_string(json, "begin", NULL);
    att_json_put_string(json, "measured_begin", NULL);
    write_empty_list(json, "measured");
    att_json_put_object(json, "trajectory");
    att_json_put_number(json, "limit", limit_of(line->method));
    att_json_put_number(json, "count", (double)trajectory->count);
    att_json_put_number(json, "rejected", (double)trajectory->rejected);
    att_json_put_number(json, "rate_calls", (double)trajectory->rate_calls);
    att_json_put_number(json, "above_limit", (double)trajectory->above_limit);
    att_json_put_number(json, "stride", (double)stride);
    att_json_put_bool(json, "diverged", trajectory->diverged);
    write_steps(json, trajectory, stride > 0 ? stride : 1);
    att_json_end_object(json);
    att_json_end_object(json);
}

static void write_data(att_json_writer *json, const att_ode *ode, const att_ode_line *lines, int count)
{
    att_json_begin_object(json);
    att_json_put_string(json, "attscope", att_version());
    att_json_put_string(json, "title", ode->info.name);
    write_empty_list(json, "instruments");
    write_empty_list(json, "tasks");
    att_json_put_object(json, "ode");
    att_json_put_string(json, "formula", ode->info.formula);
    att_json_put_string(json, "source", ode->info.source);
    att_json_put_number(json, "size", ode->info.size);
    att_json_end_object(json);
    att_json_put_array(json, "runs");
    for (int i = 0; i < count; i++)
        write_line(json, &lines[i]);
    att_json_end_array(json);
    att_json_end_object(json);
}

att_status att_ode_page_write(const att_ode *ode, const att_ode_line *lines, int count, const char *path)
{
    att_json_writer *json = NULL;
    const char *text;
    size_t length;
    ATT_TRY(att_require(ode->context, path, "the path of the page"));
    ATT_TRY(att_page_check(ode->context, path));
    ATT_TRY(att_json_writer_create(ode->context, false, &json));
    write_data(json, ode, lines, count);
    att_status status = att_json_writer_finish(json, &text, &length);
    if (status == ATT_OK)
        status = att_page_write(ode->context, path, text, length, NULL);
    att_json_writer_destroy(&json);
    return status;
}
