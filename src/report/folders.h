/* report/folders.h - the folders given for a report. */
#ifndef ATT_REPORT_FOLDERS_H
#define ATT_REPORT_FOLDERS_H

#include <attscope/context.h>

/* Copies the folders without duplicates to `distinct`, which has space for all, and logs the duplicates. Returns the
 * number of distinct folders. */
int att_report_distinct(att_context *context, const char *const *folders, int count, const char **distinct);

/* If `folder` contains no records of a run, but has subfolders that do, logs these subfolders. */
void att_report_log_runs_in(att_context *context, const char *folder);

#endif
