/* sweep_table.h - what the runs of a sweep found, for people and as JSON. */
#ifndef CLI_SWEEP_TABLE_H
#define CLI_SWEEP_TABLE_H

#include "cli.h"

/* A row for each setting: runs, parameters, seconds. Then a column for each setting, by its number where names are
 * long, and a row for each figure that was measured, of some instruments one statistic only; then rank correlations;
 * formulas and readings beside them. Last, what the table leaves out and the sweep's folder has. */
int sweep_table_print(const att_sweep *sweep, const char *folder);

#endif
