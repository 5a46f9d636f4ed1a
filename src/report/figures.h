/* report/figures.h - one "measure" event: figures of instruments. */
#ifndef ATT_REPORT_FIGURES_H
#define ATT_REPORT_FIGURES_H

#include <attscope/event.h>

#include "core/memory.h"
#include "report/lines.h"

typedef struct att_figures {
    att_arena arena; /* of texts */
    int64_t epoch, step;
    const char *split;      /* "" where the event does not say */
    double images;          /* NaN where it does not say */
    att_measurement *items; /* unit: NULL, the instrument has it */
    int count;
    const att_measurement **sorted; /* the items, by all that names them */
} att_figures;

/* On success *figures is the caller's, freed by att_figures_free(). heads: whether figures of single heads are kept.
 * Errors: ERR_FORMAT, ERR_MEMORY. */
att_status att_figures_read(att_context *context, const att_line_event *event, bool heads, att_figures **figures);
void att_figures_free(att_context *context, void *figures);

/* {epoch, step, split, images, figures: [[instrument, node, head, statistic, mean, deviation, n], ...]} */
void att_figures_write(att_json_writer *json, const att_figures *figures);
/* Of `count` events, {step: [...], epoch: [...], images: [...], series: [{instrument, node, statistic, mean: [...],
 * deviation: [...], n: [...]}, ...]}: one series for each figure of all heads together that the last event has. */
void att_figures_write_series(att_json_writer *json, att_figures *const *events, int count);

#endif
