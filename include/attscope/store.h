/* attscope/store.h - the logs of a run's folder, written from the stream of events.
 *
 *   metrics.jsonl   every event, one JSON object a line: event ("run_begin", "step", "measure", "epoch", "warning",
 *                   "run_end"), epoch, step, seconds, then its fields; NaN and infinities are null. "measure" has
 *                   measurements: an array of instrument, node, head (left out where it concerns none alone),
 *                   statistic, mean, deviation, n (samples)
 *   summary.csv     every ATT_EVENT_EPOCH, as timm's: epoch, fields named train_..., those named eval_..., lr; the
 *                   first epoch fixes the columns
 *
 * A line is written whole or not at all. Both files are on the disk after every epoch.
 */
#ifndef ATTSCOPE_STORE_H
#define ATTSCOPE_STORE_H

#include <attscope/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a training that continues stood (as att_checkpoint_info says it). */
typedef struct att_store_resume {
    int64_t epoch; /* epochs finished */
    int64_t step;  /* updates made */
} att_store_resume;

/* Opens the logs in `folder`, which is made if missing. resume: NULL starts new logs in place of any that are there;
 * otherwise lines that came after that point are dropped, with the end of the earlier run, and the continued run's
 * ATT_EVENT_RUN_BEGIN is not written: apart from times, the logs become those of a run that never stopped.
 *
 * On success *sink is the caller's, to be ended by sink->close(sink->user); emit fails with ERR_ARGUMENT where two
 * fields of an event have the same name or one of those above, ERR_IO, ERR_MEMORY. Errors: ERR_FORMAT where summary.csv
 * is something else; ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_store_open(att_context *context, const char *folder,
                                                 const att_store_resume *resume, att_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
