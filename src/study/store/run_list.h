/* store/run_list.h - the runs in the database of all runs. */
#ifndef ATT_STORE_RUN_LIST_H
#define ATT_STORE_RUN_LIST_H

#include <attscope/context.h>

#include "base/core/export.h"

/* Calls visit() for each run of the database, in the order in which they were recorded. folder: as in the database,
 * relative to the database's folder or absolute; valid during the call. An error of visit() ends the list and is
 * returned. Errors: ERR_NOT_FOUND (there is no such file), ERR_FORMAT, ERR_IO, ERR_MEMORY; ERR_UNSUPPORTED in a library
 * without SQLite. */
ATT_FOR_LAB att_status att_store_list_runs(att_context *context, const char *database,
                                           att_status (*visit)(void *user, const char *folder), void *user);

#endif
