/* sweep_table.h - what the runs of a sweep found, for people and as JSON. */
#ifndef CLI_SWEEP_TABLE_H
#define CLI_SWEEP_TABLE_H

#include "cli.h"

/* A row a setting: runs, parameters, seconds. Then a column a setting, by its number where names are long, and a row a
 * figure: accuracy, TNS and what it is made of, NSI and the mean gate by block; then
 * accuracy against TNS; formulas and readings beside them. Ends with what was measured besides, which the sweep's
 * folder has. */
int sweep_table_print(const att_sweep *sweep, const char *folder);

/* Members of the object that is open: settings, correlations, and what all of them mean. */
void sweep_table_json(att_json_writer *writer, const att_sweep *sweep);

#endif
