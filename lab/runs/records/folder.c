/* The folder of a training run, and the checkpoint that it continues. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <attscope/lab/runs.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "lab/runs/records/folder.h"
#include "lab/runs/records/given.h"

static const char last_name[] = "last.safetensors", output_folder[] = "the output folder of runs";

/* Returns the place with NULL for empty texts. */
static att_run_place complete(const att_run_place *place)
{
    return (att_run_place){att_given(place->output), att_given(place->experiment), att_given(place->resume)};
}

static bool is_auto(const att_run_place *place)
{
    return place->resume && strcmp(place->resume, "auto") == 0;
}

static bool is_path(const char *experiment)
{
    return strchr(experiment, '/') || strcmp(experiment, ".") == 0 || strcmp(experiment, "..") == 0;
}

att_status att_run_place_check(att_context *context, const att_run_place *place)
{
    ATT_TRY(att_require(context, place, "the place of a run"));
    const char *name = att_given(place->experiment);
    if (is_auto(place) && !name)
        return att_fail(context, ATT_ERR_ARGUMENT, "resume auto needs an experiment, the name of the run to continue");
    if (name && is_path(name))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "experiment: \"%.*s\" is a path; expected the name of a folder in output", NAME_MAX, name);
    if (name && strlen(name) > NAME_MAX)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "experiment: \"%.32s...\" has %zu bytes; the name of a folder has at most %d", name,
                        strlen(name), NAME_MAX);
    return ATT_OK;
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static att_status find_auto(att_context *context, const att_run_place *place, char *path, size_t size)
{
    char folder[ATT_RUN_PATH];
    ATT_TRY(att_require(context, place->output, output_folder));
    ATT_TRY(att_path_join(context, place->output, place->experiment, folder, sizeof folder));
    ATT_TRY(att_path_join(context, folder, last_name, path, size));
    if (!att_file_exists(path))
        *path = '\0';
    return ATT_OK;
}

att_status att_run_find_resume(att_context *context, const att_run_place *given, char *path, size_t size)
{
    ATT_TRY(att_run_place_check(context, given));
    const att_run_place place = complete(given);
    if (is_auto(&place))
        return find_auto(context, &place, path, size);
    if (place.resume && is_folder(place.resume))
        return att_path_join(context, place.resume, last_name, path, size);
    return att_path_copy(context, place.resume ? place.resume : "", path, size);
}

static att_status name_by_time(att_context *context, const char *model, int height, int width, char *name, size_t size)
{
    char stamp[sizeof "20260131-235959"], sides[24];
    time_t now = time(NULL);
    struct tm local;
    if (!localtime_r(&now, &local) || strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local) == 0)
        return att_fail(context, ATT_ERR_INTERNAL, "the clock gives no date to name the run by");
    snprintf(sides, sizeof sides, height == width ? "%d" : "%dx%d", height, width);
    snprintf(name, size, "%s-%.200s-%s", stamp, model, sides);
    return ATT_OK;
}

/* Whether a training run writes checkpoints of this name. */
static bool is_trained_checkpoint(const char *name)
{
    const char *number = strncmp(name, "checkpoint-", strlen("checkpoint-")) == 0 ? name + strlen("checkpoint-") : "";
    return strcmp(name, last_name) == 0 || strcmp(name, "model_best.safetensors") == 0 ||
           strcmp(number + strspn(number, "0123456789"), ".safetensors") == 0;
}

/* Writes the name of a checkpoint of a training run in the folder: the last one if it exists; "" if there is none. */
static void find_checkpoint(DIR *files, char *name, size_t size)
{
    *name = '\0';
    for (struct dirent *entry; strcmp(name, last_name) != 0 && (entry = readdir(files));)
        if (is_trained_checkpoint(entry->d_name))
            snprintf(name, size, "%s", entry->d_name);
}

/* Refuses a folder with checkpoints that a new training would replace. */
static att_status refuse_second_training(att_context *context, const char *folder)
{
    char name[NAME_MAX + 1], path[ATT_RUN_PATH];
    DIR *files = opendir(folder);
    if (!files && errno == ENOENT)
        return ATT_OK;
    if (!files)
        return att_fail(context, ATT_ERR_IO, "%s cannot be the folder of a run: %s", folder, strerror(errno));
    find_checkpoint(files, name, sizeof name);
    closedir(files);
    if (!*name)
        return ATT_OK;
    ATT_TRY(att_path_join(context, folder, name, path, sizeof path));
    return att_fail(context, ATT_ERR_MISMATCH,
                    "%s holds a training run already; use another --experiment for a new one, or resume %s to "
                    "continue this one if it is not finished",
                    folder, path);
}

static att_status check_output(att_context *context, const char *output)
{
    struct stat found;
    int code = stat(output, &found) != 0 ? errno : S_ISDIR(found.st_mode) ? 0 : ENOTDIR;
    if (code != ENOTDIR)
        return ATT_OK;
    return att_fail(context, ATT_ERR_IO, "%s cannot be the folder of runs: %s", output, strerror(code));
}

static att_status choose_new(att_context *context, const att_run_place *place, const char *model, int height, int width,
                             att_run_folder *run)
{
    char name[NAME_MAX + 1];
    ATT_TRY(att_require(context, place->output, output_folder));
    ATT_TRY(check_output(context, place->output));
    run->unnamed = !place->experiment;
    if (run->unnamed)
        ATT_TRY(att_require(context, model, "the name of the network of a run without a name"));
    if (run->unnamed)
        ATT_TRY(name_by_time(context, model, height, width, name, sizeof name));
    ATT_TRY(att_path_join(context, place->output, run->unnamed ? name : place->experiment, run->folder,
                          sizeof run->folder));
    return run->unnamed ? ATT_OK : refuse_second_training(context, run->folder);
}

att_status att_run_folder_choose(att_context *context, const att_run_place *given, const char *model, int height,
                                 int width, att_run_folder *run)
{
    att_run_folder chosen = {0};
    ATT_TRY(att_run_find_resume(context, given, chosen.resume, sizeof chosen.resume));
    const att_run_place place = complete(given);
    if (*chosen.resume)
        ATT_TRY(att_path_folder(context, chosen.resume, chosen.folder, sizeof chosen.folder));
    else
        ATT_TRY(choose_new(context, &place, model, height, width, &chosen));
    ATT_TRY(att_run_database(context, chosen.folder, chosen.database, sizeof chosen.database));
    *run = chosen;
    return ATT_OK;
}

att_status att_run_folder_claim(att_context *context, att_run_folder *run)
{
    enum { TRIES = 1000, NUMBER = 8 };
    char above[ATT_RUN_PATH], name[ATT_RUN_PATH + NUMBER];
    ATT_TRY(att_require(context, run, "the folder of a run"));
    if (!run->unnamed)
        return *run->resume ? ATT_OK : refuse_second_training(context, run->folder);
    ATT_TRY(att_path_folder(context, run->folder, above, sizeof above));
    ATT_TRY(att_file_make_folders(context, above));
    snprintf(name, sizeof name, "%s", run->folder);
    for (int i = 2; mkdir(name, 0777) != 0; i++) {
        if (errno != EEXIST || i > TRIES)
            return att_fail(context, ATT_ERR_IO, "%s could not be made a folder: %s", name, strerror(errno));
        snprintf(name, sizeof name, "%s-%d", run->folder, i);
    }
    return att_path_copy(context, name, run->folder, sizeof run->folder);
}
