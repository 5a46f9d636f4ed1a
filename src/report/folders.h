/* report/folders.h - the folders that a report is asked for. */
#ifndef ATT_REPORT_FOLDERS_H
#define ATT_REPORT_FOLDERS_H

#include <attscope/context.h>

/* Writes each folder once to `distinct`, which has room for all; the log tells which are left out. Returns how many
 * there are. */
int att_report_distinct(att_context *context, const char *const *folders, int count, const char **distinct);

/* Where `folder` holds no records of a run but has folders that do, as an output folder, the log names these. */
void att_report_log_runs_in(att_context *context, const char *folder);

#endif
