/* result_steps.h - executes the commands of a run on which published results are judged. */
#ifndef CLI_RESULT_STEPS_H
#define CLI_RESULT_STEPS_H

#include "cli.h"

typedef struct result_place {
    const char *root;           /* folder of all runs */
    const char *data, *weights; /* the run's data set and pretrained weights; NULL: it needs none */
    bool only_print;            /* print the commands that are left, and execute none */
} result_place;

/* Executes the commands that are left, in order. The first that fails ends the run. *seconds: how long all commands of
 * the run took together, those of earlier calls included. Returns CLI_OK or an exit code. */
int result_run(cli_app *cli, const att_result_run *run, const result_place *place, double *seconds);

#endif
