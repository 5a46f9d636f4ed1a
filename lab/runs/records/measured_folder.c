/* The folder of the records of a measurement. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/store.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "lab/runs/records/folder.h"
#include "lab/runs/records/measuring.h"
#include "study/store/lines.h"

bool att_measuring_wants_maps(const att_measuring_options *options)
{
    return options->maps > 0 || options->map_images;
}

/* Writes "deit_tiny" for "weights/deit_tiny.safetensors". */
static void take_stem(const char *checkpoint, char *name, size_t size)
{
    snprintf(name, size, "%s", att_path_last(checkpoint));
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
}

/* Returns whether many networks use this file name, each in a folder of its own. */
static bool is_common(const char *stem)
{
    static const char *const common[] = {"model", "pytorch_model", "open_clip_model", "open_clip_pytorch_model",
                                         "weights"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(stem, common[i]) == 0)
            return true;
    return false;
}

/* Whether the stem is that of a run's best or last checkpoint. */
static bool stands_for_run(const char *stem)
{
    return strcmp(stem, "model_best") == 0 || strcmp(stem, "last") == 0;
}

/* Writes "deit_tiny" for "weights/deit_tiny.safetensors" and for "deit_tiny/model.safetensors". Of a training run in
 * the folder "first", last and model_best are "first", and checkpoint-3 is "first-checkpoint-3". */
static att_status name_after(att_context *context, const char *checkpoint, char *name, size_t size)
{
    char folder[ATT_RUN_PATH], stem[NAME_MAX + 1];
    take_stem(checkpoint, stem, sizeof stem);
    ATT_TRY(att_path_folder(context, checkpoint, folder, sizeof folder));
    const bool of_run = att_run_is_folder(folder), alone = is_common(stem) || (of_run && stands_for_run(stem));
    char *whole = alone || of_run ? realpath(folder, NULL) : NULL;
    const char *last = whole ? att_path_last(whole) : "";
    if (*last)
        snprintf(name, size, "%s%s%s", last, alone ? "" : "-", alone ? "" : stem);
    else
        snprintf(name, size, "%s", stem);
    free(whole);
    return ATT_OK;
}

static att_status folder_in_output(att_context *context, const char *checkpoint, bool from_memory,
                                   const att_measuring_options *options, char folder[ATT_RUN_PATH])
{
    char name[2 * NAME_MAX];
    if (from_memory)
        snprintf(name, sizeof name, "%s", checkpoint);
    else
        ATT_TRY(name_after(context, checkpoint, name, sizeof name));
    const size_t length = strlen(name);
    if (att_measuring_initialises(options))
        snprintf(name + length, sizeof name - length, "-init-%d", options->init_seed);
    return att_path_join(context, options->output, options->experiment ? options->experiment : name, folder,
                         ATT_RUN_PATH);
}

att_status att_measuring_folder(att_context *context, const char *checkpoint, bool from_memory,
                                const att_measuring_options *options, char folder[ATT_RUN_PATH])
{
    const att_run_place place = {.output = options->output, .experiment = options->experiment};
    ATT_TRY(att_run_place_check(context, &place));
    if (options->output)
        return folder_in_output(context, checkpoint, from_memory, options, folder);
    if (options->experiment)
        return att_fail(context, ATT_ERR_ARGUMENT, "experiment names a folder in output, which is missing");
    if (!from_memory) {
        ATT_TRY(att_path_folder(context, checkpoint, folder, ATT_RUN_PATH));
        if (att_run_is_folder(folder) && !att_measuring_initialises(options))
            return ATT_OK;
    }
    *folder = '\0';
    if (att_measuring_wants_maps(options))
        return att_fail(context, ATT_ERR_ARGUMENT, "maps need an output folder: %s does not lie in a run's folder%s",
                        checkpoint, att_measuring_initialises(options) ? ", or has random weights" : "");
    return ATT_OK;
}

static att_status check_owner(const att_measuring *m)
{
    const char *folder = m->found->folder;
    bool belongs = true;
    if (att_run_is_folder(folder) && att_measuring_initialises(m->options))
        return att_fail(m->context, ATT_ERR_ARGUMENT,
                        "%s holds a training run, and the figures of random weights need a folder of their own; choose "
                        "another --experiment",
                        folder);
    if (att_run_is_folder(folder) && m->from_memory)
        belongs = false;
    else if (att_run_is_folder(folder))
        ATT_TRY(att_run_owns(m->context, folder, m->checkpoint, &belongs));
    if (belongs)
        return ATT_OK;
    return att_fail(m->context, ATT_ERR_MISMATCH,
                    "%s holds a training run that %s does not belong to; choose another --experiment", folder,
                    m->checkpoint);
}

/* The measurement that measure.jsonl has. */
typedef struct recorded {
    char weights[ATT_WEIGHTS_DIGEST], checkpoint[ATT_RUN_PATH]; /* "": not recorded */
} recorded;

static void copy_member(const att_line_event *event, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(event->object, key));
    snprintf(text, size, "%s", value ? value : "");
}

static att_status find_recorded(void *user, const att_line_event *event)
{
    recorded *r = user;
    if (strcmp(event->kind, "run_begin") != 0)
        return ATT_OK;
    copy_member(event, "weights", r->weights, sizeof r->weights);
    copy_member(event, "checkpoint", r->checkpoint, sizeof r->checkpoint);
    return ATT_OK;
}

/* Refuses to replace figures of other weights. In the folder of a training run, figures of one of its checkpoints
 * replace those of another. */
static att_status check_weights(const att_measuring *m)
{
    char path[ATT_RUN_PATH];
    recorded r = {"", ""};
    ATT_TRY(att_path_join(m->context, m->found->folder, "measure.jsonl", path, sizeof path));
    if (att_run_is_folder(m->found->folder) || !att_file_exists(path))
        return ATT_OK;
    const att_status status = att_lines_read(m->context, path, find_recorded, &r);
    if (status != ATT_OK && status != ATT_ERR_FORMAT) /* a damaged file is replaced, and a warning says so */
        return status;
    if (!*r.weights || strcmp(r.weights, m->weights) == 0)
        return ATT_OK;
    return att_fail(m->context, ATT_ERR_MISMATCH,
                    "%s has figures of other weights%s%s%s, which would be replaced; choose another --experiment",
                    m->found->folder, *r.checkpoint ? " (" : "", r.checkpoint, *r.checkpoint ? ")" : "");
}

att_status att_measuring_open_records(att_measuring *m)
{
    char database[ATT_RUN_PATH];
    const char *folder = m->found->folder;
    if (!*folder)
        return ATT_OK;
    ATT_TRY(check_owner(m));
    ATT_TRY(check_weights(m));
    ATT_TRY(att_run_database(m->context, folder, database, sizeof database));
    m->folder_is_new = !att_file_exists(folder);
    return att_store_open_measured(m->context, folder, database, &m->records);
}

void att_measuring_close_records(att_measuring *m)
{
    if (m->records.close)
        m->records.close(m->records.user);
    if (m->folder_is_new)
        rmdir(m->found->folder);
}
