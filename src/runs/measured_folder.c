/* The folder of the records of a measurement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/store.h>

#include "core/error.h"
#include "io/file.h"
#include "runs/measuring.h"

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

/* Writes "deit_tiny" for "weights/deit_tiny.safetensors" and for "deit_tiny/model.safetensors". */
static att_status name_after(att_context *context, const char *checkpoint, char *name, size_t size)
{
    char folder[ATT_RUN_PATH];
    take_stem(checkpoint, name, size);
    if (!is_common(name))
        return ATT_OK;
    ATT_TRY(att_path_folder(context, checkpoint, folder, sizeof folder));
    char *whole = realpath(folder, NULL);
    const char *last = whole ? att_path_last(whole) : "";
    if (*last)
        snprintf(name, size, "%s", last);
    free(whole);
    return ATT_OK;
}

static att_status folder_in_output(att_context *context, const char *checkpoint, const att_measuring_options *options,
                                   char folder[ATT_RUN_PATH])
{
    char name[256];
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
        return folder_in_output(context, checkpoint, options, folder);
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
                        "%s holds a training, and the figures of random weights need a folder of their own; choose "
                        "another experiment",
                        folder);
    if (att_run_is_folder(folder) && m->from_memory)
        belongs = false;
    else if (att_run_is_folder(folder))
        ATT_TRY(att_run_owns(m->context, folder, m->checkpoint, &belongs));
    if (belongs)
        return ATT_OK;
    return att_fail(m->context, ATT_ERR_MISMATCH,
                    "%s holds a training that %s does not belong to; choose another experiment", folder, m->checkpoint);
}

att_status att_measuring_open_records(att_measuring *m)
{
    char database[ATT_RUN_PATH];
    const char *folder = m->found->folder;
    if (!*folder)
        return ATT_OK;
    ATT_TRY(check_owner(m));
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
