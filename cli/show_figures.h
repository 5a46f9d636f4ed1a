/* show_figures.h - prints instruments and their figures, and writes them as JSON. */
#ifndef CLI_SHOW_FIGURES_H
#define CLI_SHOW_FIGURES_H

#include "cli.h"

/* Prints a line for each instrument: name and summary. */
void cli_instruments_list(FILE *out);
/* Prints all instruments: name, summary, formula, source, options. */
void cli_figures_explain(FILE *out);

/* Checks the instruments of --with or --measure. Returns CLI_OK or an exit code, CLI_USAGE for unknown instruments. */
int cli_instruments_check(cli_app *cli, const char *with);

/* Prints each instrument with formula, source, reading and scale, then one line per node: mean and deviation over
 * images, n, the largest possible value or that of uniform attention if it is known, heads. brief: without
 * explanations. texts: the samples are texts, not images. */
void cli_figures_print(const att_measure *measure, bool brief, bool texts);

/* Prints an instrument's scale: a line for each value. */
void cli_scales_print(const att_instrument_info *info);

/* Mark after the name of a figure that another instrument excludes, and the line that explains it. */
#define CLI_EXCLUDED_MARK " *"
void cli_excluded_print(const att_instrument_info *info);

/* The figures of an evaluation beside its metrics, kept beyond it. Zero-initialise. */
typedef struct cli_details {
    att_measurement *items;
    int count;
} cli_details;
/* As att_evaluate_options.detailed; user: a cli_details. */
att_status cli_details_keep(void *user, const att_measurement *figures, int count);
void cli_details_free(cli_details *details);
/* Prints a line for each node. */
void cli_details_print(const cli_details *details);
/* Writes the member "measurements" of the current JSON object, if there are any. */
void cli_details_json(att_json_writer *writer, const cli_details *details);

/* Writes the members "instruments" and "measurements" of the current JSON object. texts: as above. */
void cli_figures_json(att_json_writer *writer, const att_measure *measure, bool texts);

#endif
