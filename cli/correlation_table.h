/* correlation_table.h - prints rank correlations over runs. */
#ifndef CLI_CORRELATION_TABLE_H
#define CLI_CORRELATION_TABLE_H

#include "cli.h"

/* Prints the methods, then a table for each y: for each scope and x one line per run point and one per setting mean.
 * Below each scope whose settings are too few it says so, with the smallest p that is possible. Prints nothing without
 * correlations. across: leave out correlations within a setting. */
void correlation_table_print(const att_sweep *sweep, bool across);

#endif
