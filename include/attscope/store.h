/* attscope/store.h - sinks that write the events of runs to files: a program gives them to att_train().
 *
 * Files in the folder of a run:
 *
 *   metrics.jsonl   every event, one JSON object per line: event ("run_begin", "step", "measure", "epoch", "warning",
 *                   "alert", "run_end"), epoch, step, seconds, then its fields; NaN and infinity are null. "measure"
 *                   has measurements: an array of instrument, node, head (missing for all heads together), statistic,
 *                   mean, deviation, n (samples), and samples, if they were kept: values of the first samples, to 5
 *                   digits
 *   summary.csv     every ATT_EVENT_EPOCH, as in timm: epoch, fields named train_..., fields named eval_..., lr; then
 *                   update, the number of updates done. The first event determines the columns
 *   events.out.tfevents.attscope
 *                   scalars for TensorBoard: fields of steps; train_... and eval_... of epochs, and the epoch's number
 *                   as "epoch"; measurements of all heads together, as "entropy/blocks.3.attn/mean"
 *   measure.jsonl   figures of a checkpoint (att_store_open_measured()): "run_begin", "measure" and "run_end" as above
 *
 * Optionally an SQLite database for many runs, with application_id 0x61747473 and user_version 1:
 *
 *   runs            id, folder (unique; relative to the database's folder), model, started (UTC, ISO 8601), status and
 *                   message of the end (NULL before the end), settings (JSON object with the fields of
 *                   ATT_EVENT_RUN_BEGIN): those of the training if the folder has one, else those of the measurement
 *   scalars         run (runs.id), step (updates done), epoch (0-based), event ("step", "epoch"), name, value
 *   measurements    run, source ("train": during training; "measure": of a checkpoint), step, split, instrument, node
 *                   ("": the whole network), head (-1: all together), statistic, unit, value (mean over n samples),
 *                   deviation, n
 *
 *   imports         folder (as runs.folder), files: size and time of the records from which a sweep made the rows; only
 *                   in databases of sweeps
 *
 * NaN is stored as NULL. Several processes may write to one database at the same time. It uses a write-ahead log, so
 * several machines must not write to it through a network file system. In a step of a sweep (attscope/lab/sweep_plan.h)
 * no database is written: the sweep copies the records of finished runs into it, which works on network file systems.
 *
 * An event is written completely or not at all. Written events survive if the process is killed at any moment; after
 * every epoch the files are flushed to the disk.
 */
#ifndef ATTSCOPE_STORE_H
#define ATTSCOPE_STORE_H

#include <attscope/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* JSON key of a measurement: true if another instrument leaves the figure out (att_measurement.excluded), else missing.
 */
#define ATT_EXCLUDED_KEY "excluded_from_tns"

/* Where a resumed training run continues (from att_checkpoint_info). */
typedef struct att_store_resume {
    int64_t epoch;    /* epochs finished */
    int64_t step;     /* updates done */
    bool unevaluated; /* updates have been made since the last evaluation: an ATT_EVENT_EPOCH at `step` is dropped */
} att_store_resume;

typedef struct att_store_options {
    const att_store_resume *resume; /* NULL: a new run */
    const char *database; /* path of the database, created if missing, in an existing folder; NULL: none. A library
                             built without SQLite (-DATT_SQLITE=OFF) writes no database, and logs it */
} att_store_options;

/* Opens the records of a training run in `folder`, which is created if missing. options: NULL means the defaults (all
 * members zero). A new run replaces existing records. A resumed run drops the records after the point where it
 * continues, including the earlier end of the run, and does not write its ATT_EVENT_RUN_BEGIN: except for times, the
 * records are those of an uninterrupted run.
 *
 * On success the caller owns *sink and ends it with sink->close(sink->user). sink->emit fails with ERR_ARGUMENT (two
 * fields of an event have the same name, or a field has one of the names above), ERR_IO, ERR_MEMORY. Errors of this
 * call: ERR_FORMAT (summary.csv or the database has other contents, or the database is damaged), ERR_IO (also if the
 * database stays locked for a minute), ERR_MEMORY.
 */
ATT_API ATT_MUST_CHECK att_status att_store_open(att_context *context, const char *folder,
                                                 const att_store_options *options, att_sink *sink);

/* Opens the records of figures measured on a checkpoint of the run in `folder`, which is created if missing. Emit
 * ATT_EVENT_RUN_BEGIN, any number of ATT_EVENT_MEASURE, then ATT_EVENT_RUN_END. The figures of an earlier measurement
 * stay in the file until ATT_EVENT_RUN_END. If the earlier RUN_BEGIN had the same fields, the earlier figures of
 * statistics and nodes that were not measured again are kept beside the new ones. If the fields differ, all earlier
 * figures are replaced: the log says why, and the lines of the earlier file are added to measure.previous.jsonl. The
 * following fields are not compared: epoch, step, "checkpoint" and "use_ema" if a field "weights" identifies the
 * weights by their digest; "data" if a field "contents" identifies the images. database: see att_store_options.
 * Ownership and errors: as for att_store_open(). */
ATT_API ATT_MUST_CHECK att_status att_store_open_measured(att_context *context, const char *folder,
                                                          const char *database, att_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
