#include "sweep_steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "paths.h"
#include "said.h"

int sweep_seeds_read(const char *list, sweep_seeds *seeds)
{
    for (const char *at = list;; at++) {
        char *end;
        errno = 0;
        unsigned long long seed = strtoull(at, &end, 10);
        if (end == at || *at == '-' || *at == '+' || *at == ' ' || errno || seed > INT64_MAX || (*end && *end != ','))
            return cli_usage("--seeds: \"%s\" is not a list of whole numbers such as 1,2,3", list);
        if (seeds->count == ATT_SWEEP_MOST_RUNS)
            return cli_usage("--seeds: more than %d seeds", (int)ATT_SWEEP_MOST_RUNS);
        seeds->values[seeds->count++] = seed;
        if (!*end)
            return CLI_OK;
        at = end;
    }
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

static bool has_claim(const void *plan)
{
    return att_sweep_plan_has_claim(plan);
}

/* The child writes files only while this worker holds its claim on the run; when it is lost, the child is killed. */
static int run_step(const sweep_steps *steps, const att_planned_run *run, const char *const *arguments)
{
    if (setenv(CLI_LEASE_VARIABLE, run->lease, 1) != 0 ||
        (*steps->said && setenv(CLI_SAID_VARIABLE, steps->said, 1) != 0))
        return cli_failure("a child process could not be started: %s", strerror(errno));
    int code = cli_child(arguments, has_claim, steps->plan);
    unsetenv(CLI_LEASE_VARIABLE);
    unsetenv(CLI_SAID_VARIABLE);
    return code;
}

/* Converts the exit status of a step to a status and a reason. */
static att_status status_of(int code, char reason[ATT_SWEEP_REASON])
{
    if (code == CLI_STOPPED)
        return ATT_ERR_STOPPED;
    if (code > 128)
        snprintf(reason, ATT_SWEEP_REASON, "signal %d", code - 128);
    else if (code != CLI_OK)
        snprintf(reason, ATT_SWEEP_REASON, "exit status %d", code);
    return code == CLI_OK ? ATT_OK : ATT_ERR_IO;
}

/* Replaces an exit status by the failure that the training recorded, if it recorded one. */
static void read_failure(att_context *context, const att_planned_run *run, char reason[ATT_SWEEP_REASON])
{
    att_run_state state;
    if (att_run_state_read(context, run->folder, run->measure, &state) == ATT_OK && *state.failure)
        snprintf(reason, ATT_SWEEP_REASON, "%s", state.failure);
}

static att_status train(void *user, const att_planned_run *run, const att_recipe *recipe, char reason[ATT_SWEEP_REASON])
{
    const sweep_steps *steps = user;
    char path[CLI_PATH];
    (void)recipe; /* the child reads it from the file */
    cli_join(run->folder, "recipe.yaml", path, sizeof path);
    const char *const arguments[] = {"attscope", "train", "--config", path, "--resume", "auto", "--mpi", "none", NULL};
    att_status status = status_of(run_step(steps, run, arguments), reason);
    if (status != ATT_OK && status != ATT_ERR_STOPPED)
        read_failure(steps->cli->context, run, reason);
    return status;
}

/* Measures the last checkpoint, not the best one: if the data set has no third split, the best checkpoint was selected
 * on the images that are measured. */
static att_status measure(void *user, const att_planned_run *run, const att_recipe *recipe,
                          char reason[ATT_SWEEP_REASON])
{
    const sweep_steps *steps = user;
    char last[CLI_PATH], threads[16], workers[16], cache[24], reduce[16], ignore[16];
    cli_join(run->folder, "last.safetensors", last, sizeof last);
    snprintf(threads, sizeof threads, "%d", recipe->engine.threads);
    snprintf(workers, sizeof workers, "%d", recipe->train.workers);
    snprintf(cache, sizeof cache, "%" PRId64, recipe->data.cache_bytes);
    snprintf(reduce, sizeof reduce, "%d", recipe->data.reduce_zero_label);
    snprintf(ignore, sizeof ignore, "%d", recipe->data.ignore_label);
    const char *arguments[32] = {"attscope", "measure", last, recipe->data.data_dir};
    const char *const flags[][2] = {{"--split", "test"},
                                    {"--with", run->measure},
                                    {"--samples", "64"},
                                    {"--threads", threads},
                                    {"--workers", workers},
                                    {"--cache-bytes", cache},
                                    {"--reduce-zero-label", reduce},
                                    {"--ignore-label", ignore},
                                    {"--backend", recipe->engine.backend},
                                    {"--mpi", "none"}};
    int count = 4;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        arguments[count++] = flags[i][0];
        arguments[count++] = flags[i][1];
    }
    if (recipe->train.skip_corrupt)
        arguments[count++] = "--skip-corrupt";
    if (recipe->data.coarse_labels)
        arguments[count++] = "--coarse-labels";
    if (recipe->data.class_map) {
        arguments[count++] = "--class-map";
        arguments[count++] = recipe->data.class_map;
    }
    return status_of(run_step(steps, run, arguments), reason);
}

att_sweep_steps sweep_steps_of(sweep_steps *steps)
{
    cli_said_share(steps->said, sizeof steps->said);
    return (att_sweep_steps){.train = train, .measure = measure, .user = steps};
}

/* --- failures ----------------------------------------------------------------------------------------------------- */

bool sweep_run_has_failed(const att_sweep_plan *plan, int run)
{
    return strcmp(att_sweep_plan_at(plan, run).status, "failed") == 0;
}

int sweep_count_failed(const att_sweep_plan *plan)
{
    int failed = 0;
    for (int i = 0; i < att_sweep_plan_count(plan); i++)
        failed += sweep_run_has_failed(plan, i);
    return failed;
}

void sweep_report_failed(const att_sweep_plan *plan)
{
    int failed = sweep_count_failed(plan);
    if (failed == 0)
        return;
    cli_say("%d of %d runs failed; the same command retries them, from the beginning if their folder is removed:",
            failed, att_sweep_plan_count(plan));
    for (int i = 0; i < att_sweep_plan_count(plan); i++)
        if (sweep_run_has_failed(plan, i))
            cli_say_item("%s", att_sweep_plan_at(plan, i).folder);
}
