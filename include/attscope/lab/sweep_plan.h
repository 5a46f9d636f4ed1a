/* attscope/lab/sweep_plan.h - running a sweep: one recipe, trained with several seeds and settings.
 *
 *     const uint64_t seeds[] = {1, 2, 3};
 *     const char *const vary[] = {"modules=none,cb,cb_s"};
 *     const att_sweep_options options = {.recipe = "recipe.yaml", .data = "images", .seeds = seeds, .seed_count = 3,
 *                                        .vary = vary, .vary_count = 1, .output = "output"};
 *     att_sweep_plan *plan = NULL;
 *     if (att_sweep_plan_open(context, &options, &plan) == ATT_OK)
 *         status = att_sweep_plan_run(plan, NULL);
 *     ... att_sweep_plan_results(plan) ...
 *     att_sweep_plan_close(&plan);
 *
 * Each combination of the varied values is a setting. A run trains one setting with one seed, then measures the last
 * checkpoint on the test split. The run's folder is OUTPUT/EXPERIMENT/FLAG=VALUE-seedS; sweep.json in the folder above
 * describes the runs of the last call (attscope/lab/sweep.h). These folders hold the whole state of a sweep. A later
 * call, also in another process, continues stopped runs, repeats failed ones, and adds runs for new seeds and values.
 * Runs of earlier calls stay in sweep.json only if the later call names their seeds and values, too.
 *
 * Several processes, also on several machines, can carry out one sweep together: the workers. Each of them opens the
 * same plan and calls att_sweep_plan_run(); the sweep's folder must be on a file system that all of them share, such as
 * NFS. Each run is carried out by one worker at a time. A worker renews its claims four times in options.lease seconds.
 * If it did not renew them for that time, by the clock of the file system, or if its process on the same machine has
 * ended, another worker takes over its runs; they continue from their last checkpoints. One worker at a time writes
 * sweep.json and runs.sqlite. The workers must agree on recipe, settings, seeds, instruments and correlations, and must
 * have the same images; data_dir, output, threads and workers may differ. The hidden folder .workers in the sweep's
 * folder exists while there are workers; if the last one was killed, until the next call.
 */
#ifndef ATTSCOPE_LAB_SWEEP_PLAN_H
#define ATTSCOPE_LAB_SWEEP_PLAN_H

#include <attscope/lab/recipe.h>
#include <attscope/lab/sweep.h>
#include <attscope/progress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All arrays and texts must outlive the plan. For output, experiment and measure, "" means the
 * same as NULL. */
typedef struct att_sweep_options {
    const char *recipe;    /* YAML file with the settings of a training run; required */
    const char *data;      /* the data set; NULL: data_dir of the recipe */
    const uint64_t *seeds; /* one run per seed and setting */
    int seed_count;
    const char *const *vary; /* each "FLAG=VALUE,VALUE"; a comma within a value is "\,". NULL if the count is 0 */
    int vary_count;
    const char *const *set; /* each "FLAG=VALUE": replaces the recipe's value in all runs. NULL if the count is 0 */
    int set_count;
    const char *output;          /* folder for sweeps; required */
    const char *experiment;      /* name of the sweep's folder in `output`; NULL: the recipe's file name */
    const char *measure;         /* instruments, separated by commas; NULL: those of ATT_SWEEP_MEASURE that find
                                    something to observe in at least one network of the sweep */
    const att_sweep_pair *pairs; /* figures to correlate, as in att_collection_sweep() */
    int pair_count;
    double lease; /* seconds, at most ATT_SWEEP_MOST_LEASE, after which a worker that did not renew its claims loses
                     them; 0: ATT_SWEEP_LEASE */
} att_sweep_options;

enum { ATT_SWEEP_LEASE = 60, ATT_SWEEP_MOST_LEASE = 86400 };
#define ATT_SWEEP_MEASURE "accuracy,entropy,distance,nsi,tns,gate"

/* A run. Its texts live as long as the plan.
 *
 * status:
 *   "waiting"   not trained to the end; after att_sweep_plan_open() this includes runs that failed or were stopped
 *   "running"   a worker is carrying it out: this one or another one
 *   "trained"   trained, but not measured with these instruments
 *   "measured"  done
 *   "failed"    this run failed during the last att_sweep_plan_run() of this plan, in this worker or another one
 *   "stopped"   this run was stopped during the last att_sweep_plan_run() of this plan
 */
typedef struct att_planned_run {
    const char *setting; /* "lr=0.1", "modules=se:ratio=8" */
    const char *name;    /* of the folder: "lr=0.1-seed3", "modules=se_ratio=8-seed3" */
    const char *folder;  /* its path */
    uint64_t seed;
    const char *status;
    const char *measure; /* the instruments to measure with: those that find something to observe in its network */
    const char *failure; /* for status "failed": the reason that the failed step gave; "" otherwise */
    const char *worker;  /* for status "running": who carries it out, "node7:4711" (host and process); "" otherwise */
    const char *lease;   /* in a step: for att_sweep_guard_step(); "" otherwise */
} att_planned_run;

typedef struct att_sweep_plan att_sweep_plan;

/* Reads the recipe and lists the runs. For each setting with a run to do, it opens the data sets, builds the network
 * and checks the instruments, so that errors show before the first training run. Writes no files. Settings with the
 * same meaning ("modules=se" and "modules=se:ratio=16") count as one. The log lists the settings, and the instruments
 * that are left out. On success the caller owns *plan and frees it with att_sweep_plan_close() before the context.
 * Errors: ERR_ARGUMENT (a required option is NULL; a flag or value that training runs do not have; a flag that is given
 * twice); ERR_MISMATCH (a run's folder has records of other data, or a training run with other settings); the errors of
 * opening data sets and networks, with the setting in the message. */
ATT_API ATT_MUST_CHECK att_status att_sweep_plan_open(att_context *context, const att_sweep_options *options,
                                                      att_sweep_plan **plan);
ATT_API void att_sweep_plan_close(att_sweep_plan **plan);

/* Path of the sweep's folder. */
ATT_API const char *att_sweep_plan_folder(const att_sweep_plan *plan);
ATT_API int att_sweep_plan_count(const att_sweep_plan *plan);
/* Run 0..count-1. The runs of a setting follow each other, in the order of the seeds. All zero for other numbers. */
ATT_API att_planned_run att_sweep_plan_at(const att_sweep_plan *plan, int run);

/* The two steps of a run. A step that is NULL runs in this process: training as att_training_run(), measuring as
 * att_measure_checkpoint().
 *
 * train() trains with `recipe` and leaves its records in run->folder. `recipe` has the run's seed, names run->folder by
 * files.output and files.experiment, and has files.resume "auto": att_training_open() with this recipe begins a new
 * training, or continues a stopped one. run->folder also has the recipe as recipe.yaml, without files.resume.
 *
 * measure() measures run->folder/last.safetensors on the split "test" with the instruments run->measure, and leaves its
 * records in run->folder.
 *
 * During both steps, files are written through the plan's context only while this worker holds its claim on the run;
 * then writing fails with ERR_IO, and the run is left to the worker that took it over. Training runs and measurements
 * leave the database to the sweep. A step that works in another process or with another context calls
 * att_sweep_guard_step() there.
 *
 * Both return ATT_OK or an error. ERR_STOPPED ends the sweep; any other error ends this run only. A step that fails may
 * write the reason to `reason`, which is "" before; otherwise the context's message is the reason. */
enum { ATT_SWEEP_REASON = 256 };
typedef struct att_sweep_steps {
    att_status (*train)(void *user, const att_planned_run *run, const att_recipe *recipe,
                        char reason[ATT_SWEEP_REASON]);
    att_status (*measure)(void *user, const att_planned_run *run, const att_recipe *recipe,
                          char reason[ATT_SWEEP_REASON]);
    void *user;               /* for train() and measure() */
    att_progress_fn progress; /* of steps that are NULL: called after each batch; false stops the sweep. NULL: none */
    void *progress_user;
} att_sweep_steps;

/* Carries out the steps that the runs still lack, together with other workers of the same sweep if there are any, and
 * returns when all runs are finished: if others still carry out runs, it waits for them, takes over the runs of those
 * that die, and names in the log the runs for which it waits. steps: NULL means that both steps run in this process.
 * sweep.json and the database are written before the first run and whenever a run begins or ends. Must not be called
 * from a step of the same sweep.
 *
 * A run that fails gets the status "failed" and a line in the log; the sweep goes on and the result is ATT_OK. Another
 * call repeats failed runs and continues stopped ones. While there are workers, no other worker tries a failed run.
 *
 * A program stops a sweep by its progress callback, by ERR_STOPPED from a step of its own, or by att_settings.stop,
 * which is called before each run, while waiting, and after each batch of a step in this process. A training run in
 * progress writes a checkpoint first. The claim on its run ends at once, so that other workers may continue the run.
 *
 * If this worker loses its claims, because it stood still for longer than the lease, it leaves its run with a warning
 * in the log, and works on as a new worker.
 *
 * Errors: ERR_STOPPED; ERR_IO; ERR_FORMAT (the folder .workers or the database is damaged); ERR_MISMATCH (a run's
 * folder has a training run with other settings, or the workers in the folder have another recipe, other settings or
 * images; the message names the first difference). */
ATT_API att_status att_sweep_plan_run(att_sweep_plan *plan, const att_sweep_steps *steps);
/* For steps that wait for another process: whether this worker still holds its claim on the run. If not, the step ends
 * that process and returns any error. False outside att_sweep_plan_run(). */
ATT_API bool att_sweep_plan_has_claim(const att_sweep_plan *plan);
/* For a step in another process or with another context: from now on, files are written through `context` only while
 * the claim on the run is held. lease: att_planned_run.lease, which must outlive the context. Error: ERR_ARGUMENT for
 * NULL.
 */
ATT_API att_status att_sweep_guard_step(att_context *context, const char *lease);

/* Returns the results of the measured runs; NULL before the first att_sweep_plan_run() that could read them. The plan
 * owns them; they are valid until the next att_sweep_plan_run(). */
ATT_API const att_sweep *att_sweep_plan_results(const att_sweep_plan *plan);
/* Writes the contents of sweep.json as one object, without the results if att_sweep_plan_results() is NULL. */
ATT_API void att_sweep_plan_write_json(const att_sweep_plan *plan, att_json_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
