/* sweep/plan.h - the runs of a sweep: every combination of the varied values, with every seed. */
#ifndef ATT_SWEEP_PLAN_H
#define ATT_SWEEP_PLAN_H

#include <attscope/lab/runs.h>
#include <attscope/lab/sweep_plan.h>

#include "base/core/memory.h"
#include "base/io/json.h"
#include "lab/runs/sweep/process.h"

enum { ATT_SWEEP_AXES = 8, ATT_SWEEP_VALUES = 32, ATT_SWEEP_NAME = 200, ATT_SWEEP_FLAG = 64 };

/* A flag of the training with one value (--set) or several (--vary). */
typedef struct att_sweep_axis {
    char flag[ATT_SWEEP_FLAG];
    const char *values[ATT_SWEEP_VALUES];
    int count;
} att_sweep_axis;

typedef struct att_plan_run {
    char setting[ATT_SWEEP_NAME];
    char name[ATT_SWEEP_NAME + 32];
    char folder[ATT_RUN_PATH];
    uint64_t seed;
    int choice[ATT_SWEEP_AXES]; /* index of the value on each axis */
    const char *status;
    const char *measure; /* the instruments for this run */
    att_run_state found; /* the state that the records show */
    char failure[ATT_SWEEP_REASON];
    char worker[ATT_PROCESS_NAME]; /* for status "running": who carries it out */
    const char *lease;             /* for att_planned_run */
    bool told;                     /* the log has said that the run was done already */
    bool in_database;              /* this process has brought the database up to date with the run's records */
} att_plan_run;

struct att_sweep_plan {
    att_context *context;
    att_sweep_options options;
    const char *measure; /* the requested instruments */
    att_arena texts;
    char folder[ATT_RUN_PATH]; /* OUTPUT/EXPERIMENT */
    att_yaml *yaml;            /* the recipe */
    att_flags *flags;
    att_sweep_axis axes[ATT_SWEEP_AXES], sets[ATT_MOST_TEXTS];
    int axis_count, set_count;
    att_plan_run *runs; /* the runs of a setting follow each other */
    int run_count;
    att_recipe recipe; /* of the last att_plan_build_recipe() */
    att_ignored_flags ignored;
    att_sweep *results;                /* of the runs that are measured */
    att_status database;               /* status of the last attempt to write the database */
    bool has_database;                 /* this process has opened or made the database */
    bool results_are_old;              /* a run was measured since they were read */
    char listing[ATT_DATASET_LISTING]; /* digest of the training images of the first setting; "" if it has no run to do
                                        */
    struct att_workers *workers;       /* while att_sweep_plan_run() is at work */
};

/* Reads the options and the recipe, and lists the runs. Every value must be valid for its flag. A setting that repeats
 * another one is dropped. */
att_status att_plan_lay_out(att_sweep_plan *plan);
/* Makes plan->recipe the recipe of the run. */
att_status att_plan_build_recipe(att_sweep_plan *plan, const att_plan_run *run);

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* Refuses a run that began with other settings (ERR_MISMATCH), except for settings that do not change the weights.
 * Settings that only one version of the program has are ignored. Makes plan->recipe the recipe of the run. Other errors
 * than ERR_MEMORY mean that the run's recipe.yaml is damaged. */
att_status att_plan_compare(att_sweep_plan *plan, const att_plan_run *run);
/* Makes the run's folder, then att_plan_compare(). A run whose recipe.yaml is damaged gets the status "failed", and the
 * log has the reason. */
att_status att_plan_make_folder(att_sweep_plan *plan, att_plan_run *run);
/* Removes the files that another process has begun to write in the folder and not finished, so that it cannot rename
 * them any more. Call it only while no living worker writes there. */
att_status att_plan_remove_unfinished(const att_sweep_plan *plan, const char *folder);
/* Prepares the run's folder for its next step: writes recipe.yaml with all settings of plan->recipe, which is the
 * run's. Replaces the logs by copies and removes unfinished files, so that a process of an earlier worker that has not
 * ended yet no longer changes them. */
att_status att_plan_begin(att_sweep_plan *plan, const att_plan_run *run);
/* Logs, after a message about a damaged file, which folder to remove to repeat the run. */
void att_plan_advise_removal(const att_sweep_plan *plan, const att_plan_run *run);
/* Marks the run as failed because of a damaged file, of which the context's message tells, and logs the message and the
 * advice of att_plan_advise_removal(). */
void att_plan_mark_damaged(const att_sweep_plan *plan, att_plan_run *run);

/* --- the definition ----------------------------------------------------------------------------------------------- */

/* Returns whether the sweep sets this flag in every run by itself, such as the seed. */
bool att_plan_sets_flag(const char *name);
/* Returns whether a setting may differ between two calls: it does not change the weights, or the training checks it
 * itself. key: with underscores. */
bool att_plan_may_change(const char *key);
/* Writes an object of texts that are the same for all workers of the sweep. */
att_status att_plan_write_definition(att_sweep_plan *plan, att_json_writer *writer);
/* Refuses another definition than the plan's (ERR_MISMATCH); the message names the first difference. */
att_status att_plan_compare_definition(att_sweep_plan *plan, const json_t *other);

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* *same: whether two recipes mean the same, so that their runs are bit-identical. Seed and folders are not compared.
 * Modules are compared by their places and the values of their options, not by the text; without a module, places are
 * ignored. */
att_status att_recipes_same(const att_sweep_plan *plan, const att_recipe *a, const att_recipe *b, bool *same);

/* Checks, for every setting with a run to do, its recipe, its data sets, and whether its network can be built and
 * measured. If an instrument has nothing to observe in the setting's network, but in the network of another setting,
 * removes it from `measure` of the setting's runs. If the caller named no instruments, instruments with nothing to
 * observe in any network are removed, too. */
att_status att_plan_check(att_sweep_plan *plan);
/* Checks that each run was trained and measured on the images that the data sets have now. Call it after
 * att_plan_check(), once the runs' states have been read again for the instruments that remain. */
att_status att_plan_check_images(att_sweep_plan *plan);
/* Fails if the run's records cannot be read. Ignores requests to stop. */
att_status att_plan_check_records(const att_sweep_plan *plan, const att_plan_run *run);

#endif
