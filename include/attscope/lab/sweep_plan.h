/* attscope/lab/sweep_plan.h - carrying out a sweep: a recipe over seeds and settings.
 *
 *     const uint64_t seeds[] = {1, 2, 3};
 *     const char *const vary[] = {"modules=none,cb,cb_s"};
 *     const att_sweep_options options = {.recipe = "recipe.yaml", .data = "images", .seeds = seeds, .seed_count = 3,
 *                                        .vary = vary, .vary_count = 1, .output = "output"};
 *     if (att_sweep_plan_open(context, &options, &plan) == ATT_OK)
 *         status = att_sweep_plan_run(plan, NULL);
 *     ... att_sweep_plan_results(plan) ...
 *     att_sweep_plan_close(&plan);
 *
 * Every combination of the varied values is a setting; each setting is trained once with each seed, and the last
 * checkpoint of each training is measured on the test split. Runs lie in OUTPUT/EXPERIMENT/FLAG=VALUE-seedS, with
 * sweep.json beside them (attscope/lab/sweep.h). What stands between two calls is in these folders: a sweep that was
 * stopped or killed goes on where it was, failed runs are tried again, and more seeds or values add runs.
 */
#ifndef ATTSCOPE_LAB_SWEEP_PLAN_H
#define ATTSCOPE_LAB_SWEEP_PLAN_H

#include <attscope/lab/recipe.h>
#include <attscope/lab/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts must outlive the plan. */
typedef struct att_sweep_options {
    const char *recipe; /* YAML file of a training's settings */
    const char *data;   /* NULL: as the recipe says */
    const uint64_t *seeds;
    int seed_count;
    const char *const *vary; /* "FLAG=VALUE,VALUE" each; a comma within a value is "\," */
    int vary_count;
    const char *const *set; /* "FLAG=VALUE" each: over the recipe, for all runs */
    int set_count;
    const char *output;     /* where sweeps lie */
    const char *experiment; /* the sweep's folder in there; NULL: named after the recipe */
    const char *measure; /* instruments, by commas; NULL: ATT_SWEEP_MEASURE without those that no network has anything
                            for */
    const att_sweep_pair *pairs; /* as att_sweep_read() takes them */
    int pair_count;
} att_sweep_options;

#define ATT_SWEEP_MEASURE "accuracy,entropy,distance,nsi,tns,gate"

typedef struct att_planned_run {
    const char *setting; /* "lr=0.1", "modules=se:ratio=8" */
    const char *name;    /* the folder's: "lr=0.1-seed3", "modules=se_ratio=8-seed3" */
    const char *folder;
    uint64_t seed;
    const char *status;  /* "waiting", "trained", "measured", "failed" or "stopped" */
    const char *measure; /* the instruments for it: those that its network has something for */
    const char *failure; /* what its records say of a failure; "": nothing */
} att_planned_run;

typedef struct att_sweep_plan att_sweep_plan;

/* Reads the recipe, lays out the runs, and tries the data, network and instruments of every setting with a run to do,
 * so that what is wrong is refused before the first training. Writes nothing. A setting that is another's again is
 * taken once. The log has the settings, and what is left out. On success *plan is the caller's, freed by
 * att_sweep_plan_close() before the context. Errors: ERR_ARGUMENT for values that the training has not, ERR_MISMATCH
 * where a folder holds runs of other data, what opening data and networks says: the message names the setting. */
ATT_API ATT_MUST_CHECK att_status att_sweep_plan_open(att_context *context, const att_sweep_options *options,
                                                      att_sweep_plan **plan);
ATT_API void att_sweep_plan_close(att_sweep_plan **plan);

ATT_API const char *att_sweep_plan_folder(const att_sweep_plan *plan);
ATT_API int att_sweep_plan_count(const att_sweep_plan *plan);
/* Run 0..count-1: settings one after another, and within each the seeds. */
ATT_API att_planned_run att_sweep_plan_at(const att_sweep_plan *plan, int run);

/* How the steps of a run are carried out. They leave their records in the run's folder: the training by the settings in
 * FOLDER/recipe.yaml, going on where it stood, and the measurement of FOLDER/last.safetensors on the split "test" with
 * run->measure. recipe: those settings. A step that fails writes why to `reason` and returns a status; ERR_STOPPED ends
 * the sweep, anything else this run alone. */
enum { ATT_SWEEP_REASON = 256 };
typedef struct att_sweep_steps {
    att_status (*train)(void *user, const att_planned_run *run, const att_recipe *recipe,
                        char reason[ATT_SWEEP_REASON]);
    att_status (*measure)(void *user, const att_planned_run *run, const att_recipe *recipe,
                          char reason[ATT_SWEEP_REASON]);
    void *user;
} att_sweep_steps;

/* Brings every run as far as it goes, and writes sweep.json before the first and after each. While it works no other
 * sweep does in the folder. Runs that fail are named in the log and by att_sweep_plan_at(); they are no error. Errors:
 * ERR_STOPPED; ERR_IO (also where another sweep is at work in the folder), ERR_MISMATCH where a folder's run was begun
 * with other settings. */
ATT_API att_status att_sweep_plan_run(att_sweep_plan *plan, const att_sweep_steps *steps);
/* The measured runs taken together, after att_sweep_plan_run(); NULL before. The plan's. */
ATT_API const att_sweep *att_sweep_plan_results(const att_sweep_plan *plan);
/* Writes what sweep.json holds, as one object. */
ATT_API void att_sweep_plan_write_json(const att_sweep_plan *plan, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
