/* experiment.h - the output of attscope experiment. */
#ifndef CLI_EXPERIMENT_H
#define CLI_EXPERIMENT_H

#include "cli.h"

/* Prints the tables. */
void experiment_print(const att_experiment_info *info, const att_experiment_options *options,
                      const att_experiment_result *result);
/* Writes the result as JSON; path: as cli_file_write(). Returns CLI_OK or an exit code. */
int experiment_write(cli_app *cli, const char *path, const att_experiment_info *info,
                     const att_experiment_options *options, const att_experiment_result *result);

#endif
