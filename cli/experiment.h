/* experiment.h - the output of attscope experiment. */
#ifndef CLI_EXPERIMENT_H
#define CLI_EXPERIMENT_H

#include "cli.h"

/* What was asked for, and what came out. */
typedef struct experiment {
    const att_experiment_info *info;
    att_experiment_options options;
    att_experiment_result result;
} experiment;

/* Prints the tables. */
void experiment_print(const experiment *experiment);
/* Writes the result, for cli_json_save(). from: the experiment. */
void experiment_write(att_json_writer *writer, const void *from);

#endif
