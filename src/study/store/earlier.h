/* store/earlier.h - reads the earlier contents of measure.jsonl and keeps those that a new measurement does not
 * replace.
 *
 * Earlier figures are kept if the fields of the new ATT_EVENT_RUN_BEGIN equal those in the file. Exceptions:
 * "checkpoint", "use_ema", epoch and step may differ if the field "weights", a digest of the weights, is equal; "data"
 * may differ if "contents", a digest of the images, is equal. A kept figure is replaced if the new measurement has the
 * same instrument, statistic and node.
 */
#ifndef ATT_STORE_EARLIER_H
#define ATT_STORE_EARLIER_H

#include "study/store/measured_figures.h"

/* Zero-initialise, then set `context`. */
typedef struct att_earlier {
    att_context *context;
    struct att_earlier_event *events;
    int count, capacity;
} att_earlier;

/* Reads the file at `path` if it exists. begin: the new ATT_EVENT_RUN_BEGIN. If the file's figures cannot be kept, or
 * the file is damaged, adds the file's lines to `previous` and logs the reason. Errors: ERR_IO, ERR_MEMORY. */
att_status att_earlier_read(att_earlier *earlier, const char *path, const char *previous, const att_event *begin);
/* Drops the figures that the new event replaces: those with the same instrument, statistic and node. */
void att_earlier_drop_replaced(att_earlier *earlier, const att_event *measured);
/* Emits the kept figures, grouped into the same events as in the file. */
att_status att_earlier_emit(const att_earlier *earlier, const att_sink *sink);
void att_earlier_free(att_earlier *earlier);

#endif
