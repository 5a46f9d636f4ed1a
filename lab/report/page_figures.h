/* report/page_figures.h - writes figures of instruments as JSON for the page. */
#ifndef ATT_REPORT_PAGE_FIGURES_H
#define ATT_REPORT_PAGE_FIGURES_H

#include <attscope/lab/json.h>

#include "study/store/measured_figures.h"

/* Writes {epoch, step, split, images, figures: [[instrument, node, head, statistic, mean, deviation, n,
 * excluded, bound, uniform], ...]}; bound and uniform 0: not known. A figure with recorded samples has one more item,
 * the array of samples.
 */
void att_figures_write(att_json_writer *json, const att_figures *figures);
/* Writes the figures of `count` events: {step: [...], epoch: [...], images: [...], series: [{instrument, node,
 * head, statistic, excluded, mean: [...], deviation: [...], n: [...]}, ...]}. There is one series for each figure of
 * the last event. */
void att_figures_write_series(att_json_writer *json, att_figures *const *events, int count);

#endif
