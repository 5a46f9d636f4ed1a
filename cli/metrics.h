/* metrics.h - prints the metrics of an evaluation, and writes them as JSON. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include "cli.h"

/* Whether a metric is in per cent; 100 minus the metric is then an error. */
bool cli_metric_is_share(const att_metric *metric);

/* Writes "top-1 97.00 %", "loss 0.1234", or "loss -" for NaN. Returns `text`. */
char *cli_metric_format(const att_metric *metric, double value, char *text, size_t size);

/* Prints one line without a newline, metrics in per cent first: "top-1 97.00 %   top-5 100.00 %   loss 0.1234".
 * metrics: in the task's order. */
void cli_metrics_print(const att_task_info *task, const double *metrics);

/* Writes members of the current JSON object: each metric under `prefix` and its name. */
void cli_metrics_json(att_json_writer *writer, const att_task_info *task, const char *prefix, const double *metrics);

#endif
