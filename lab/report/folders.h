/* report/folders.h - the folders given for a report. */
#ifndef ATT_REPORT_FOLDERS_H
#define ATT_REPORT_FOLDERS_H

#include <attscope/context.h>

/* Copies the folders without duplicates to `distinct`, which has space for all, and logs the duplicates. Returns the
 * number of distinct folders. */
int att_report_distinct(att_context *context, const char *const *folders, int count, const char **distinct);

/* After a failure: if `folder` contains no records of a run, but has subfolders that do, adds to the message what to
 * give instead. Returns `status`. */
att_status att_report_advise(att_context *context, const char *folder, att_status status);

#endif
