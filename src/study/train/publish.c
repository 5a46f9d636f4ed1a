#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/train/checkpoint.h"

att_status att_checkpoint_path(att_context *context, const char *output, const char *name, char **path)
{
    att_text text = {.context = context};
    att_text_append(&text, "%s/%s.safetensors", output, name);
    if (text.failed) {
        att_text_free(&text);
        return att_fail_memory(context, strlen(output), "a checkpoint's path");
    }
    *path = text.data;
    return ATT_OK;
}

/* Makes `path` a hard link to `source`, atomically. Returns false if this fails, for example because the file system
 * has no hard links. */
static bool link_file(att_context *context, const char *source, const char *path)
{
    att_text temporary = {.context = context};
    att_text_append(&temporary, "%s.tmp", path);
    bool linked = false;
    if (!temporary.failed) {
        unlink(temporary.data);
        linked = link(source, temporary.data) == 0 && rename(temporary.data, path) == 0;
        /* rename() does nothing if both names are links to the same file. */
        unlink(temporary.data);
    }
    att_text_free(&temporary);
    return linked;
}

static att_status link_as(const att_train_run *run, const att_train_state *state, const char *source, const char *name)
{
    char *path = NULL;
    ATT_TRY(att_checkpoint_path(run->context, run->options->output, name, &path));
    att_status status = ATT_OK;
    if (strcmp(source, path) != 0 && !link_file(run->context, source, path))
        status = att_checkpoint_write(run, state, path);
    att_free(run->context, path);
    return status;
}

int64_t att_train_state_number(const att_train_options *options, const att_train_state *state)
{
    return options->eval_every > 0 ? state->update : state->epoch - (state->batch == 0);
}

static char *numbered_name(int64_t number, char name[32])
{
    snprintf(name, 32, "checkpoint-%" PRId64, number);
    return name;
}

static att_status remove_evicted(const att_train_run *run, int64_t number)
{
    char name[32], *path = NULL;
    ATT_TRY(att_checkpoint_path(run->context, run->options->output, numbered_name(number, name), &path));
    if (unlink(path) != 0 && errno != ENOENT)
        att_log(run->context, ATT_LOG_WARNING, "%s could not be removed: %s", path, strerror(errno));
    att_free(run->context, path);
    return ATT_OK;
}

att_status att_checkpoint_link(const att_train_run *run, const att_train_state *state, const char *source)
{
    char name[32];
    const int64_t number = att_train_state_number(run->options, state);
    if (state->history.evicted >= 0)
        ATT_TRY(remove_evicted(run, state->history.evicted));
    if (att_history_keeps(&state->history, number))
        ATT_TRY(link_as(run, state, source, numbered_name(number, name)));
    if (state->history.best == number)
        ATT_TRY(link_as(run, state, source, "model_best"));
    return ATT_OK;
}

att_status att_checkpoint_publish(const att_train_run *run, const att_train_state *state)
{
    char *last = NULL;
    ATT_TRY(att_checkpoint_path(run->context, run->options->output, "last", &last));
    att_status status = att_checkpoint_write(run, state, last);
    if (status == ATT_OK)
        status = att_checkpoint_link(run, state, last);
    att_free(run->context, last);
    return status;
}
