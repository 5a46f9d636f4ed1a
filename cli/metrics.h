/* metrics.h - the figures of an evaluation, for people and as JSON. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "cli.h"

/* Whether a metric is in per cent, so that 100 minus it is an error. */
bool cli_metric_is_share(const att_metric *metric);

/* "top-1 97.00 %", "loss 0.1234". Returns `text`. */
char *cli_metric_format(const att_metric *metric, double value, char *text, size_t size);

/* metrics: of the task, in its order. One line without its end, shares first: "top-1 97.00 %   top-5 100.00 %   loss
 * 0.1234". */
void cli_metrics_print(const att_task_info *task, const double *metrics);

/* Members of the object that is open: each metric under `prefix` and its name. */
void cli_metrics_json(att_json_writer *writer, const att_task_info *task, const char *prefix, const double *metrics);

#endif
