/* report/page_figures.h - figures of instruments, as the page has them. */
#ifndef ATT_REPORT_PAGE_FIGURES_H
#define ATT_REPORT_PAGE_FIGURES_H

#include <attscope/lab/json.h>

#include "store/measured_figures.h"

/* {epoch, step, split, nodes, images, figures: [[instrument, node, head, statistic, mean, deviation, n], ...]}, with an
 * eighth item, the array of samples, where the record has them. */
void att_figures_write(att_json_writer *json, const att_figures *figures);
/* Of `count` events, {step: [...], epoch: [...], images: [...], series: [{instrument, node, statistic, mean: [...],
 * deviation: [...], n: [...]}, ...]}: one series for each figure of all heads together that the last event has. */
void att_figures_write_series(att_json_writer *json, att_figures *const *events, int count);

#endif
