/* sweep_table.h - prints the results of a sweep. */
#ifndef CLI_SWEEP_TABLE_H
#define CLI_SWEEP_TABLE_H

#include "cli.h"

/* Prints: one row per setting with runs, parameters and seconds; a table of figures with one column per setting (headed
 * by numbers if names are long), with formulas and readings (for some instruments, one statistic only); rank
 * correlations; which figures the table omits. folder: the sweep's folder, for a hint. Returns CLI_OK or an exit code.
 */
int sweep_table_print(const att_sweep *sweep, const char *folder);

/* Heading of a setting's column: its name, or its number if names are long. */
const char *sweep_table_heading(const att_sweep *sweep, int setting, char number[16]);

#endif
