/* model_costs.h - attscope models: what options of a network cost, in parameters and operations. */
#ifndef CLI_MODEL_COSTS_H
#define CLI_MODEL_COSTS_H

#include "cli.h"
#include "flags.h"

/* Values of --modules to compare. */
typedef struct cli_comparison {
    att_texts modules;
} cli_comparison;
extern const att_flag_group cli_group_comparison;

/* Prints the head of the table. */
void cli_costs_print_head(void);
/* Prints the costs of a network as named and what `options` add; or, if modules are compared, the costs of the network
 * with `options` and what each of the modules adds. Writes the same as an object to `writer`, unless it is NULL.
 * Returns CLI_OK or an exit code. */
int cli_costs_list(cli_app *cli, const char *name, const att_option_values *options, const cli_comparison *comparison,
                   att_json_writer *writer, bool prints);

#endif
