/* Writes measure.jsonl. The file is replaced atomically at ATT_EVENT_RUN_END. */
#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"
#include "store/log.h"

typedef struct measured {
    att_context *context;
    att_file_writer *file; /* NULL after the file was replaced */
    att_json_writer *json;
    att_text line;
} measured;

static void close_measured(void *log)
{
    measured *m = log;
    att_file_writer_abort(&m->file);
    att_json_writer_destroy(&m->json);
    att_text_free(&m->line);
    att_free(m->context, m);
}

static att_status open_measured(att_context *context, const att_log_place *place, void **log)
{
    measured *m = att_allocate(context, sizeof *m);
    if (!m)
        return att_fail_memory(context, sizeof *m, place->path);
    m->context = m->line.context = context;
    att_status status = att_json_writer_create(context, false, &m->json);
    if (status == ATT_OK)
        status = att_file_writer_open(context, place->path, &m->file);
    if (status != ATT_OK)
        close_measured(m);
    else
        *log = m;
    return status;
}

static att_status emit_measured(void *log, const att_event *event)
{
    measured *m = log;
    if (!m->file)
        return att_fail(m->context, ATT_ERR_ARGUMENT, "an event after the end of the measurement");
    ATT_TRY(att_log_json_line(m->json, event, &m->line));
    ATT_TRY(att_file_writer_write(m->file, m->line.data, m->line.length));
    return event->kind == ATT_EVENT_RUN_END ? att_file_writer_commit(&m->file) : ATT_OK;
}

const att_log_format att_log_measured = {
    .file = "measure.jsonl", .open = open_measured, .emit = emit_measured, .close = close_measured};
