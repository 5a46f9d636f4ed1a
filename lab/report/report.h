/* report/report.h - pages about runs in memory. */
#ifndef ATT_REPORT_REPORT_H
#define ATT_REPORT_REPORT_H

#include <attscope/lab/report.h>

#include "lab/report/page.h"

/* Appends `page` with the data of the runs in `folders` to `out`. names: of the runs on a server, [count], of which the
 * page makes links; NULL: the page is not served. Other arguments and errors as for att_report_write(). */
att_status att_report_append(att_context *context, const char *const *folders, const char *const *names, int count,
                             const att_report_options *options, const att_page *page, att_text *out);

#endif
