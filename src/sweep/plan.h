/* sweep/plan.h - which runs a sweep is made of: every combination of values, with every seed. */
#ifndef ATT_SWEEP_PLAN_H
#define ATT_SWEEP_PLAN_H

#include <attscope/lab/runs.h>
#include <attscope/lab/sweep_plan.h>

#include "core/memory.h"

enum { ATT_SWEEP_AXES = 8, ATT_SWEEP_VALUES = 32, ATT_SWEEP_NAME = 200, ATT_SWEEP_FLAG = 64, ATT_SWEEP_LIST = 512 };

/* A flag of the training with one value, or with several that are varied. */
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
    int choice[ATT_SWEEP_AXES]; /* of each axis */
    const char *status;
    char measure[ATT_SWEEP_LIST];
    att_run_state found; /* by its records */
    char failure[ATT_SWEEP_REASON];
} att_plan_run;

struct att_sweep_plan {
    att_context *context;
    att_sweep_options options;
    const char *measure; /* what it is asked to measure */
    att_arena texts;
    char folder[ATT_RUN_PATH]; /* OUTPUT/EXPERIMENT */
    att_yaml *yaml;            /* the recipe */
    att_flags *flags;
    att_sweep_axis axes[ATT_SWEEP_AXES], sets[ATT_MOST_TEXTS];
    int axis_count, set_count;
    att_plan_run *runs; /* those of a setting lie one behind another */
    int run_count;
    att_recipe recipe; /* of the run whose recipe was built last */
    att_ignored_flags ignored;
    att_sweep *results; /* of the runs that are measured */
};

/* Lays out the runs. Every value is tried as the setting that it is. A setting that is another's again is taken once.
 */
att_status att_plan_lay_out(att_sweep_plan *plan);
/* Makes plan->recipe that of the run. */
att_status att_plan_build_recipe(att_sweep_plan *plan, const att_plan_run *run);

/* --- folders ------------------------------------------------------------------------------------------------------ */

/* Makes the sweep's folder and locks it against other sweeps. On success *lock is a file descriptor; closing it ends
 * the lock. */
att_status att_plan_lock(att_sweep_plan *plan, int *lock);
/* Makes the run's folder with recipe.yaml, every setting that it is trained with. One that was begun with others is
 * refused, what makes no difference to the weights left aside; one whose recipe.yaml is damaged gets the status
 * "failed", and the log says why. */
att_status att_plan_write(att_sweep_plan *plan, att_plan_run *run);
/* After a message about a damaged file: which folder to remove so that the run is made anew. */
void att_plan_advise_removal(const att_sweep_plan *plan, const att_plan_run *run);
/* After a message about a damaged file: the run has failed for this reason, and the log says so with the same advice.
 */
void att_plan_mark_damaged(const att_sweep_plan *plan, att_plan_run *run);

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Whether runs with these settings are the same to the bit because the settings are, seed and folders aside: modules in
 * the same places, with the same values of their options, whatever words say so; without a module, its places aside. */
bool att_recipes_same(const att_sweep_plan *plan, const att_recipe *a, const att_recipe *b);

/* Of every setting with a run that is still to do: its settings, its data sets, and whether its network can be built
 * and measured; instruments that have nothing to see in its network, but in another, are taken out of its runs'
 * `measure`. Those that have nothing to see in any network are left out, too, where the caller named none. */
att_status att_plan_check(att_sweep_plan *plan);
/* Then, with what the records say of those instruments: whether the images are those that each run was begun with and
 * measured on. */
att_status att_plan_check_images(att_sweep_plan *plan);
/* Whether the run's records can be read. */
att_status att_plan_check_records(const att_sweep_plan *plan, const att_plan_run *run);

#endif
