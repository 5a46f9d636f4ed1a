/* The folders of a sweep and of its runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/flags/flags.h"
#include "base/io/file.h"
#include "base/io/yaml.h"
#include "lab/runs/sweep/plan.h"

bool att_plan_may_change(const char *key)
{
    static const char *const keys[] = {"output",       "data_dir",     "threads",          "workers",
                                       "log_interval", "skip_corrupt", "recovery_interval"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool is_same_value(const att_yaml_entry *before, const char *const *values, int count)
{
    bool same = before->value_count == count;
    for (int i = 0; same && i < count; i++)
        same = strcmp(before->values[i], values[i]) == 0;
    return same;
}

/* Compares the flag that the entry names with its value in plan->recipe. */
static att_status compare_entry(const att_sweep_plan *plan, const att_plan_run *run, const att_yaml_entry *before)
{
    const att_flag_place place = att_flags_find(plan->flags, before->key);
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *values[ATT_MOST_REALS];
    if (!place.flag || att_plan_may_change(before->key))
        return ATT_OK;
    int count = att_flag_format(&place, &plan->recipe, numbers, values);
    if (is_same_value(before, values, count))
        return ATT_OK;
    return att_fail(plan->context, ATT_ERR_MISMATCH,
                    "%s was begun with %s: %s, here it is %s; use another --experiment to keep both", run->folder,
                    before->key, before->value_count > 0 ? before->values[0] : "nothing",
                    count > 0 ? values[0] : "nothing");
}

att_status att_plan_compare(att_sweep_plan *plan, const att_plan_run *run)
{
    char path[ATT_RUN_PATH];
    att_yaml *before = NULL;
    ATT_TRY(att_plan_build_recipe(plan, run));
    ATT_TRY(att_path_join(plan->context, run->folder, "recipe.yaml", path, sizeof path));
    if (!att_file_exists(path) || !att_file_exists_in(run->folder, "metrics.jsonl"))
        return ATT_OK;
    att_status status = att_yaml_read(plan->context, path, &before);
    for (int i = 0; status == ATT_OK && i < att_yaml_count(before); i++) {
        const att_yaml_entry entry = att_yaml_at(before, i);
        status = compare_entry(plan, run, &entry);
    }
    att_yaml_destroy(&before);
    return status;
}

void att_plan_advise_removal(const att_sweep_plan *plan, const att_plan_run *run)
{
    att_log(plan->context, ATT_LOG_INFO,
            "if that file is damaged, remove the folder %s, then repeat the command to train this run again",
            run->folder);
}

void att_plan_mark_damaged(const att_sweep_plan *plan, att_plan_run *run)
{
    run->status = "failed";
    snprintf(run->failure, sizeof run->failure, "%s", att_context_message(plan->context));
    att_log(plan->context, ATT_LOG_WARNING, "%s", att_context_message(plan->context));
    att_plan_advise_removal(plan, run);
}

/* Writes the recipe of att_plan_compare() to recipe.yaml. */
static att_status write_recipe(const att_sweep_plan *plan, const att_plan_run *run)
{
    char path[ATT_RUN_PATH], fresh[ATT_RUN_PATH];
    ATT_TRY(att_path_join(plan->context, run->folder, "recipe.yaml", path, sizeof path));
    ATT_TRY(att_path_join(plan->context, run->folder, "recipe.new.yaml", fresh, sizeof fresh));
    att_status status = att_flags_write(plan->flags, &plan->recipe, fresh);
    if (status == ATT_OK && rename(fresh, path) != 0)
        status = att_fail(plan->context, ATT_ERR_IO, "%s: %s", path, strerror(errno));
    if (status != ATT_OK)
        unlink(fresh);
    return status;
}

att_status att_plan_make_folder(att_sweep_plan *plan, att_plan_run *run)
{
    ATT_TRY(att_file_make_folders(plan->context, run->folder));
    att_status status = att_plan_compare(plan, run);
    if (status == ATT_OK || status == ATT_ERR_MISMATCH || status == ATT_ERR_MEMORY)
        return status;
    att_plan_mark_damaged(plan, run);
    return ATT_OK;
}

static bool is_regular(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* Replaces a log by a copy of itself. A link is left to the training, which refuses it. */
static att_status renew_log(const att_sweep_plan *plan, const att_plan_run *run, const char *name)
{
    char path[ATT_RUN_PATH];
    ATT_TRY(att_path_join(plan->context, run->folder, name, path, sizeof path));
    return is_regular(path) ? att_file_copy(plan->context, path, path) : ATT_OK;
}

/* Whether this is the name of a file that att_file_writer is writing. */
static bool is_unfinished(const char *name)
{
    static const char *const ends[] = {".safetensors.tmp", ".json.tmp", ".jsonl.tmp",   ".csv.tmp",
                                       ".yaml.tmp",        ".txt.tmp",  ".attscope.tmp"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length > strlen(ends[i]) && strcmp(name + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

att_status att_plan_remove_unfinished(const att_sweep_plan *plan, const char *folder)
{
    DIR *files = opendir(folder);
    if (!files)
        return att_fail(plan->context, ATT_ERR_IO, "%s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(files));)
        if (is_unfinished(entry->d_name))
            unlinkat(dirfd(files), entry->d_name, 0);
    closedir(files);
    return ATT_OK;
}

att_status att_plan_begin(att_sweep_plan *plan, const att_plan_run *run)
{
    static const char *const logs[] = {"metrics.jsonl", "summary.csv", "events.out.tfevents.attscope"};
    ATT_TRY(att_file_make_folders(plan->context, run->folder));
    ATT_TRY(att_plan_remove_unfinished(plan, run->folder));
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        ATT_TRY(renew_log(plan, run, logs[i]));
    return write_recipe(plan, run);
}
