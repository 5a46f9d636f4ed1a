/* sweep_steps.h - for commands that run a sweep: its seeds, its steps as child processes, its failed runs. */
#ifndef CLI_SWEEP_STEPS_H
#define CLI_SWEEP_STEPS_H

#include "cli.h"

typedef struct sweep_seeds {
    uint64_t values[ATT_SWEEP_MOST_RUNS];
    int count;
} sweep_seeds;
/* Reads "1,2,3", the value of --seeds. Returns CLI_OK or an exit code. */
int sweep_seeds_read(const char *list, sweep_seeds *seeds);

typedef struct sweep_steps {
    cli_app *cli;
    att_sweep_plan *plan;
    char said[64]; /* set by sweep_steps_of(): notes that the children print once (said.h); "": each prints them */
} sweep_steps;
/* Steps for att_sweep_plan_run(): each is "attscope train" or "attscope measure" in a child process. `steps` must
 * outlive the call. */
att_sweep_steps sweep_steps_of(sweep_steps *steps);

bool sweep_run_has_failed(const att_sweep_plan *plan, int run);
int sweep_count_failed(const att_sweep_plan *plan);
/* Lists the folders of failed runs on stderr, if there are any. */
void sweep_report_failed(const att_sweep_plan *plan);

#endif
