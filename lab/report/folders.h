/* report/folders.h - the folders given for a report. */
#ifndef ATT_REPORT_FOLDERS_H
#define ATT_REPORT_FOLDERS_H

#include <attscope/context.h>

/* Copies the folders without duplicates to `distinct`, which has space for all, and logs the duplicates. Returns the
 * number of distinct folders. */
int att_report_distinct(att_context *context, const char *const *folders, int count, const char **distinct);

/* Calls add() with the path of each run that is an entry of `folder`, in the order of names, and stops at the first
 * failure, which it returns. *count: the number of calls; 0 if the folder itself has records of a run. */
att_status att_report_runs_in(const char *folder, att_status (*add)(void *user, const char *run), void *user,
                              int *count);

/* After a failure: if `folder` contains no records of a run, but there are runs below its entries, adds to the message
 * which folder to give instead. Returns `status`. */
att_status att_report_advise(att_context *context, const char *folder, att_status status);

#endif
