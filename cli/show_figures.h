/* show_figures.h - instruments and what they found, for people and as JSON. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "cli.h"

/* Every instrument there is: name, meaning, formula, source. */
void cli_figures_explain(FILE *out);

/* Whether --with or --measure names instruments that there are. CLI_OK or a code, CLI_USAGE where not. */
int cli_instruments_check(cli_app *cli, const char *with);

/* The most that attention's entropy can be in this network: ln of its tokens; NaN where nothing attends. */
double cli_entropy_bound(const att_model *model);

/* Each instrument with formula, source and reading, then a line a node: mean and deviation over images, n, heads. */
void cli_figures_print(const att_model *model, const att_measure *measure);

/* The mark behind the name of a figure that another instrument leaves out, and the line that says so. */
#define CLI_EXCLUDED_MARK " *"
void cli_excluded_print(const att_instrument_info *info);

/* Members "instruments" and "measurements" of the object that is open. */
void cli_figures_json(att_json_writer *writer, const att_measure *measure);

#endif
