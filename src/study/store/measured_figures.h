/* store/measured_figures.h - reads the figures (measured values) of one "measure" event from JSON. */
#ifndef ATT_STORE_MEASURED_FIGURES_H
#define ATT_STORE_MEASURED_FIGURES_H

#include <attscope/event.h>

#include "base/core/export.h"
#include "base/core/memory.h"
#include "study/store/lines.h"

typedef struct att_figures {
    att_arena arena; /* owns all texts and arrays below */
    int64_t epoch, step;
    const char *split;      /* "" if the event lacks it */
    double images;          /* NaN if the event lacks it */
    att_measurement *items; /* [count]; unit is NULL, because the event does not contain it */
    int count;
    const att_measurement **sorted; /* [count] items, sorted by instrument, node, statistic and head */
} att_figures;

/* Reads a "measure" event. heads: whether to include all figures of single heads; else only those in by_head of
 * their instrument. Caller frees *figures with att_figures_free(). Errors: ERR_FORMAT, ERR_MEMORY. */
ATT_FOR_LAB att_status att_figures_read(att_context *context, const att_line_event *event, bool heads,
                                        att_figures **figures);
/* Sets the units of the figures, which the event does not contain. NULL for instruments that the context lacks. */
void att_figures_set_units(const att_context *context, att_figures *figures);
ATT_FOR_LAB void att_figures_free(att_context *context, void *figures);

/* Returns the figure with the same instrument, node, head and statistic as `wanted`, or NULL. */
ATT_FOR_LAB const att_measurement *att_figures_find(const att_figures *figures, const att_measurement *wanted);

#endif
