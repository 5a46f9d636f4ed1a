/* figures.h - instruments and what they found, for people and as JSON. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "cli.h"

/* Every instrument there is: name, meaning, formula, source. */
void cli_figures_explain(FILE *out);

/* The most that attention's entropy can be in this network: ln of its tokens; NaN where nothing attends. */
double cli_entropy_bound(const att_model *model);

/* Each instrument with formula, source and reading, then a line a node: mean and deviation over images, n, heads. */
void cli_figures_print(const att_model *model, const att_measure *measure);

/* Members "instruments" and "measurements" of the object that is open. */
void cli_figures_json(att_json_writer *writer, const att_measure *measure);

#endif
