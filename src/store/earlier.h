/* store/earlier.h - what measure.jsonl held before, and which of it a new measurement keeps.
 *
 * Figures of other statistics and other nodes stay where everything else is as it was: each field of the new
 * ATT_EVENT_RUN_BEGIN is the file's. "checkpoint", "use_ema", epoch and step may differ where "weights", a digest, says
 * which weights they are; so may "data" where "contents" says which images.
 */
#ifndef ATT_STORE_EARLIER_H
#define ATT_STORE_EARLIER_H

#include "store/measured_figures.h"

/* Zero-initialise, then set `context`. */
typedef struct att_earlier {
    att_context *context;
    struct att_earlier_event *events;
    int count, capacity;
} att_earlier;

/* Reads the file at `path`, where there is one. The log says what is kept or why nothing is; then, and where the file
 * is damaged, the file at `previous` becomes a copy of it. ERR_IO, ERR_MEMORY. */
att_status att_earlier_read(att_earlier *earlier, const char *path, const char *previous, const att_event *begin);
/* Forgets the figures of which the new event has others: of the same instrument, statistic and node. */
void att_earlier_supersede(att_earlier *earlier, const att_event *measured);
/* Emits what is left, event by event as it was. */
att_status att_earlier_emit(const att_earlier *earlier, const att_sink *sink);
void att_earlier_free(att_earlier *earlier);

#endif
