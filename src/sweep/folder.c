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

static const char *first_value(const att_yaml_entry *entry)
{
    return entry->value_count > 0 ? entry->values[0] : "nothing";
}

static bool is_same_entry(const att_yaml_entry *a, const att_yaml_entry *b)
{
    bool same = a->value_count == b->value_count;
    for (int i = 0; same && i < a->value_count; i++)
        same = strcmp(a->values[i], b->values[i]) == 0;
    return same;
}

/* Ignores settings that only one of the files has: another version of the program wrote the other file. */
static att_status compare(const att_sweep_plan *plan, const att_plan_run *run, const att_yaml *before,
                          const att_yaml *now)
{
    for (int i = 0; i < att_yaml_count(before); i++)
        for (int k = 0; k < att_yaml_count(now); k++) {
            att_yaml_entry a = att_yaml_at(before, i), b = att_yaml_at(now, k);
            if (strcmp(a.key, b.key) == 0 && !may_change(a.key) && !is_same_entry(&a, &b))
                return att_fail(plan->context, ATT_ERR_MISMATCH,
                                "%s was begun with %s: %s, here it is %s; use another --experiment to keep both",
                                run->folder, a.key, first_value(&a), first_value(&b));
        }
    return ATT_OK;
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

/* If the file at before_path is damaged, only this run fails, not the sweep. */
static att_status compare_files(const att_sweep_plan *plan, att_plan_run *run, const char *before_path,
                                const char *now_path)
{
    att_yaml *before = NULL, *now = NULL;
    att_status status = att_yaml_read(plan->context, before_path, &before);
    if (status == ATT_ERR_MEMORY)
        return status;
    if (status != ATT_OK) {
        att_plan_mark_damaged(plan, run);
        return ATT_OK;
    }
    status = att_yaml_read(plan->context, now_path, &now);
    if (status == ATT_OK)
        status = compare(plan, run, before, now);
    att_yaml_destroy(&now);
    att_yaml_destroy(&before);
    return status;
}

att_status att_plan_write(att_sweep_plan *plan, att_plan_run *run)
{
    char path[ATT_RUN_PATH], fresh[ATT_RUN_PATH];
    ATT_TRY(att_file_make_folders(plan->context, run->folder));
    ATT_TRY(att_plan_build_recipe(plan, run));
    ATT_TRY(att_path_join(plan->context, run->folder, "recipe.yaml", path, sizeof path));
    ATT_TRY(att_path_join(plan->context, run->folder, "recipe.new.yaml", fresh, sizeof fresh));
    att_status status = att_flags_write(plan->flags, &plan->recipe, fresh);
    if (status == ATT_OK && att_file_exists(path) && att_file_exists_in(run->folder, "metrics.jsonl"))
        status = compare_files(plan, run, path, fresh);
    bool replaces = status == ATT_OK && strcmp(run->status, "failed") != 0;
    if (replaces && rename(fresh, path) != 0) {
        replaces = false;
        status = att_fail(plan->context, ATT_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (!replaces)
        unlink(fresh);
    return status;
}
