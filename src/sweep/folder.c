/* The folders of a sweep and of its runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "io/file.h"
#include "sweep/plan.h"

att_status att_plan_lock(att_sweep_plan *plan, int *lock)
{
    ATT_TRY(att_file_make_folders(plan->context, plan->folder));
    *lock = open(plan->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return att_fail(plan->context, ATT_ERR_IO, "%s: %s", plan->folder, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return ATT_OK;
    close(*lock);
    return att_fail(plan->context, ATT_ERR_IO,
                    "%s: another sweep is at work in this folder; wait for it, or name another --experiment",
                    plan->folder);
}

/* Settings that may change between two calls: they do not change the weights, or the training checks them itself. */
static bool may_change(const char *key)
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
    if (!place.flag || place.flag->old || may_change(before->key))
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

att_status att_plan_write(att_sweep_plan *plan, att_plan_run *run)
{
    ATT_TRY(att_file_make_folders(plan->context, run->folder));
    att_status status = att_plan_compare(plan, run);
    if (status == ATT_OK)
        return write_recipe(plan, run);
    if (status == ATT_ERR_MISMATCH || status == ATT_ERR_MEMORY)
        return status;
    att_plan_mark_damaged(plan, run);
    return ATT_OK;
}
