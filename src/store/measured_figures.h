/* store/measured_figures.h - one "measure" event, read back: figures of instruments. */
#ifndef ATT_STORE_MEASURED_FIGURES_H
#define ATT_STORE_MEASURED_FIGURES_H

#include <attscope/event.h>

#include "core/export.h"
#include "core/memory.h"
#include "store/lines.h"

typedef struct att_figures {
    att_arena arena; /* of texts */
    int64_t epoch, step;
    const char *split, *nodes; /* "" where the event does not say */
    double images;             /* NaN where it does not say */
    att_measurement *items;    /* unit: NULL, the instrument has it */
    int count;
    const att_measurement **sorted; /* the items, by all that names them */
} att_figures;

/* On success *figures is the caller's, freed by att_figures_free(). heads: whether figures of single heads are kept.
 * Errors: ERR_FORMAT, ERR_MEMORY. */
ATT_FOR_LAB att_status att_figures_read(att_context *context, const att_line_event *event, bool heads,
                                        att_figures **figures);
ATT_FOR_LAB void att_figures_free(att_context *context, void *figures);

/* The figure of the same instrument, node, head and statistic; NULL where there is none. */
ATT_FOR_LAB const att_measurement *att_figures_find(const att_figures *figures, const att_measurement *wanted);

#endif
