/* store/import.h - copies the records of runs into the database of all runs. */
#ifndef ATT_STORE_IMPORT_H
#define ATT_STORE_IMPORT_H

#include <attscope/context.h>

#include "base/core/export.h"

/* Brings the database up to date with metrics.jsonl and measure.jsonl in the folders: its rows are then those that the
 * training and the measurement would have written. Each run is imported in one transaction, which replaces its earlier
 * rows. The table `imports` holds size and time of the imported files; a run whose files have not changed is skipped.
 * A run whose records are damaged keeps its earlier rows. Works on network file systems, but not while another machine
 * writes. Creates the database if it does not exist, also for count 0. Errors: as for att_store_open(). */
ATT_FOR_LAB att_status att_store_import(att_context *context, const char *database, const char *const *folders,
                                        int count);

#endif
