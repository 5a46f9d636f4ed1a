/* attscope/store.h - the records of runs, written from the stream of events.
 *
 * In the folder of a run:
 *
 *   metrics.jsonl   every event, one JSON object a line: event ("run_begin", "step", "measure", "epoch", "warning",
 *                   "run_end"), epoch, step, seconds, then its fields; NaN and infinities are null. "measure" has
 *                   measurements: an array of instrument, node, head (left out where it concerns none alone),
 *                   statistic, mean, deviation, n (samples), and where some were kept samples, an array of the numbers
 *                   of the first of them, to 5 digits
 *   summary.csv     every ATT_EVENT_EPOCH, as timm's: epoch, fields named train_..., those named eval_..., lr; the
 *                   first epoch fixes the columns
 *   events.out.tfevents.attscope
 *                   scalars for TensorBoard: a step's fields; an epoch's train_..., eval_... and its number as "epoch";
 *                   measurements of all heads together as "entropy/blocks.3.attn/mean"
 *   measure.jsonl   figures of a checkpoint (att_store_open_measured()): "run_begin", "measure" and "run_end" as above
 *
 * Of several runs, where asked for: an SQLite database, its application_id 0x61747473 and user_version 1.
 *
 *   runs            id, folder (unique; as seen from the database's folder), model, started (UTC, ISO 8601), status and
 *                   message of the end (NULL before), settings (JSON object: the fields of ATT_EVENT_RUN_BEGIN); the
 *                   training's where the folder has one, else the measurement's
 *   scalars         run (runs.id), step (updates done), epoch (0-based), event ("step", "epoch"), name, value
 *   measurements    run, source ("train": while training; "measure": of a checkpoint), step, split, instrument, node
 *                   ("": of the network), head (-1: all together), statistic, unit, value (mean over n samples),
 *                   deviation, n
 *
 * Numbers that are NaN are NULL there. Several processes may write to one database at once; it uses a write-ahead log,
 * so that it must not lie on a file system that is shared over a network by several machines that write to it.
 *
 * An event is written whole or not at all. What was emitted survives the process's end at any moment; everything is on
 * the disk after every epoch.
 */
#ifndef ATTSCOPE_STORE_H
#define ATTSCOPE_STORE_H

#include <attscope/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The member of a measurement in JSON that is true where another instrument leaves the figure out
 * (att_measurement.excluded); others lack it. */
#define ATT_EXCLUDED_KEY "excluded_from_tns"

/* Where a training that continues stood (as att_checkpoint_info says it). */
typedef struct att_store_resume {
    int64_t epoch; /* epochs finished */
    int64_t step;  /* updates made */
} att_store_resume;

typedef struct att_store_options {
    const att_store_resume *resume; /* NULL: a new run */
    const char *database;           /* file, made if missing, in an existing folder; NULL: none. A library that was
                                       built without SQLite (-DATT_SQLITE=OFF) writes none, and says so in the log */
} att_store_options;

/* Opens the records of a training in `folder`, which is made if missing. options: NULL means none of them. A new run's
 * take the place of any that are there. For one that continues what came after that point is dropped, with the end of
 * the earlier run, and the continued run's ATT_EVENT_RUN_BEGIN is not written: apart from times, the records become
 * those of a run that never stopped.
 *
 * On success *sink is the caller's, to be ended by sink->close(sink->user); emit fails with ERR_ARGUMENT where two
 * fields of an event have the same name or one of those above, ERR_IO, ERR_MEMORY. Errors: ERR_FORMAT where summary.csv
 * or the database is something else, or the database is damaged; ERR_IO (also where it is locked for a minute),
 * ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_store_open(att_context *context, const char *folder,
                                                 const att_store_options *options, att_sink *sink);

/* For what was measured of a checkpoint of the run in `folder`, which is made if missing: ATT_EVENT_RUN_BEGIN, events
 * of ATT_EVENT_MEASURE, ATT_EVENT_RUN_END. All of an earlier call's figures stay until that end. Where that call's
 * begin had the same fields, those of statistics and nodes that were not measured again are kept beside the new ones.
 * Where the begin differs, all are replaced: the log says why, and the earlier file becomes measure.previous.jsonl.
 * Epoch, step, "checkpoint" and "use_ema" may differ where a field "weights" says by its digest which weights they are,
 * "data" where "contents" says which images. database: as above. The rest is as for att_store_open(). */
ATT_API ATT_MUST_CHECK att_status att_store_open_measured(att_context *context, const char *folder,
                                                          const char *database, att_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
