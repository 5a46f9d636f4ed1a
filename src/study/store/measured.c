/* Writes measure.jsonl. The file is replaced atomically at ATT_EVENT_RUN_END. Its temporary file exists only while
 * events are written: a measurement that is killed before leaves nothing. Meanwhile the folder is locked: if several
 * measurements end at once, each waits until the one before has written its figures, and keeps them if it can. */
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/store/log.h"

typedef struct measured {
    att_context *context;
    att_text folder, path;
    att_file_lock *lock;   /* of the folder, while `file` is open */
    att_file_writer *file; /* NULL before the first event, and after the file was replaced */
    bool ended;
    att_json_writer *json;
    att_text line;
} measured;

/* Waits until no other measurement writes to the folder, and keeps others from writing. */
static att_status open_file(measured *m)
{
    ATT_TRY(att_file_lock_take(m->context, m->folder.data, m->path.data, &m->lock));
    return att_file_writer_open(m->context, m->path.data, &m->file);
}

static void close_file(measured *m)
{
    att_file_writer_abort(&m->file);
    att_file_lock_release(&m->lock);
}

static void close_measured(void *log)
{
    measured *m = log;
    close_file(m);
    att_json_writer_destroy(&m->json);
    att_text_free(&m->line);
    att_text_free(&m->path);
    att_text_free(&m->folder);
    att_free(m->context, m);
}

static att_status open_measured(att_context *context, const att_log_place *place, void **log)
{
    measured *m;
    ATT_TRY(att_new(context, &m, 1, place->path));
    m->context = m->line.context = m->folder.context = m->path.context = context;
    att_text_append(&m->folder, "%s", place->folder);
    att_text_append(&m->path, "%s", place->path);
    att_status status = m->folder.failed || m->path.failed ? att_fail_memory(context, m->path.length, place->path)
                                                           : att_json_writer_create(context, false, &m->json);
    if (status == ATT_OK)
        status = open_file(m);
    close_file(m); /* was opened to fail at once, before the measurement, if the file cannot be written */
    if (status != ATT_OK)
        close_measured(m);
    else
        *log = m;
    return status;
}

static att_status emit_measured(void *log, const att_event *event)
{
    measured *m = log;
    if (m->ended)
        return att_fail(m->context, ATT_ERR_ARGUMENT, "an event after the end of the measurement");
    if (!m->file)
        ATT_TRY(open_file(m));
    ATT_TRY(att_log_json_line(m->json, event, &m->line));
    ATT_TRY(att_file_writer_write(m->file, m->line.data, m->line.length));
    m->ended = event->kind == ATT_EVENT_RUN_END;
    const att_status status = m->ended ? att_file_writer_commit(&m->file) : ATT_OK;
    if (m->ended)
        close_file(m);
    return status;
}

const att_log_format att_log_measured = {
    .file = "measure.jsonl", .open = open_measured, .emit = emit_measured, .close = close_measured};
