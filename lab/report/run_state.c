#include <attscope/lab/sweep.h>

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "study/store/lines.h"

typedef struct run_reader {
    const char *with;
    att_run_state state;
    int64_t end;                                         /* step at which the training ended */
    char contents[sizeof((att_run_state *)0)->contents]; /* `contents` of the current measurement */
} run_reader;

static bool has_text(const att_line_event *event, const char *member, const char *text)
{
    const json_t *value = json_object_get(event->object, member);
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* Copies a string member; "" if it is missing. */
static void copy_text(const att_line_event *event, const char *member, char *text, size_t size)
{
    const json_t *value = json_object_get(event->object, member);
    snprintf(text, size, "%s", json_is_string(value) ? json_string_value(value) : "");
}

static att_status visit_training(void *user, const att_line_event *event)
{
    run_reader *r = user;
    if (strcmp(event->kind, "run_begin") == 0) {
        copy_text(event, "listing", r->state.listing, sizeof r->state.listing);
        r->state.failure[0] = '\0';
    }
    if (strcmp(event->kind, "run_end") == 0) {
        copy_text(event, "message", r->state.failure, sizeof r->state.failure);
        r->state.trained = has_text(event, "status", att_status_name(ATT_OK));
        r->end = event->step;
    }
    return ATT_OK;
}

static att_status visit_measured(void *user, const att_line_event *event)
{
    run_reader *r = user;
    if (strcmp(event->kind, "run_begin") == 0)
        copy_text(event, "contents", r->contents, sizeof r->contents);
    if (strcmp(event->kind, "measure") == 0 && event->step == r->end && has_text(event, "with", r->with)) {
        r->state.measured = r->state.trained;
        memcpy(r->state.contents, r->contents, sizeof r->contents);
        copy_text(event, "split", r->state.split, sizeof r->state.split);
    }
    return ATT_OK;
}

static att_status read_file(att_context *context, const char *folder, const char *name,
                            att_status (*visit)(void *user, const att_line_event *event), run_reader *r)
{
    att_text path = {.context = context};
    att_text_append(&path, "%s/%s", folder, name);
    att_status status = path.failed                  ? att_fail_memory(context, strlen(folder), folder)
                        : att_file_exists(path.data) ? att_lines_read(context, path.data, visit, r)
                                                     : ATT_OK;
    att_text_free(&path);
    return status;
}

att_status att_run_state_read(att_context *context, const char *folder, const char *with, att_run_state *state)
{
    run_reader r = {.with = with ? with : "all"};
    ATT_TRY(att_require(context, folder, "the folder of a run"));
    ATT_TRY(read_file(context, folder, "metrics.jsonl", visit_training, &r));
    ATT_TRY(read_file(context, folder, "measure.jsonl", visit_measured, &r));
    *state = r.state;
    return ATT_OK;
}
