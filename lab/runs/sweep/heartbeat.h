/* sweep/heartbeat.h - a thread that renews the mark of a worker (io/journal.h). */
#ifndef ATT_SWEEP_HEARTBEAT_H
#define ATT_SWEEP_HEARTBEAT_H

#include <attscope/context.h>

typedef struct att_heartbeat att_heartbeat;

/* Renews the mark at `path` four times in `lease` seconds. On success the caller ends the thread with
 * att_heartbeat_stop(). Errors: ERR_MEMORY; ERR_IO if no thread can be started. */
att_status att_heartbeat_start(att_context *context, const char *path, double lease, att_heartbeat **heartbeat);
void att_heartbeat_stop(att_heartbeat **heartbeat);

/* Whether the mark was found to be gone. Thread-safe. */
bool att_heartbeat_is_lost(const att_heartbeat *heartbeat);
/* Whether the mark was renewed in time during the last `lease` seconds. If it was not, the file system or this machine
 * stood still, and the marks of other workers may be old for the same reason. */
bool att_heartbeat_is_steady(const att_heartbeat *heartbeat);

#endif
