#include <attscope/store.h>

#include <string.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/store/earlier.h"
#include "study/store/import.h"
#include "study/store/log.h"
#include "study/store/run_list.h"

enum { MOST_FORMATS = 4 };
static const att_log_format *const training[] = {
    &att_log_jsonl,
    &att_log_csv,
    &att_log_tensorboard,
#ifndef ATT_WITHOUT_SQLITE
    &att_log_runs,
#endif
};
static const att_log_format *const measuring[] = {
    &att_log_measured,
#ifndef ATT_WITHOUT_SQLITE
    &att_log_measured_runs,
#endif
};
_Static_assert(sizeof training <= MOST_FORMATS * sizeof *training, "a store has room for a run's logs");
_Static_assert(sizeof measuring <= MOST_FORMATS * sizeof *measuring, "a store has room for a measurement's logs");

struct store {
    att_context *context;
    const att_log_format *const *formats;
    int count;
    void *logs[MOST_FORMATS]; /* NULL: not open */
    /* Members that only a measurement uses: */
    att_text measured; /* path of measure.jsonl */
    att_text previous; /* path of the file that gets the lines of an earlier measure.jsonl whose figures are not kept */
    att_earlier earlier; /* figures of the earlier measure.jsonl */
};

static att_status open_in_folder(struct store *store, int index, att_log_place *place)
{
    att_text path = {.context = store->context};
    att_text_append(&path, "%s/%s", place->folder, store->formats[index]->file);
    place->path = path.data;
    att_status status = path.failed ? att_fail_memory(store->context, strlen(place->folder), place->folder)
                                    : store->formats[index]->open(store->context, place, &store->logs[index]);
    att_text_free(&path);
    return status;
}

static att_status open_log(struct store *store, int index, const char *folder, const att_store_options *options)
{
    att_log_place place = {.folder = folder, .path = options->database, .resume = options->resume};
    if (store->formats[index]->file)
        return open_in_folder(store, index, &place);
    /* A sweep that has set a guard writes the database itself (store/import.h). */
    const bool writes = options->database && !att_context_is_guarded(store->context);
    return writes ? store->formats[index]->open(store->context, &place, &store->logs[index]) : ATT_OK;
}

static att_status emit(void *user, const att_event *event)
{
    struct store *store = user;
    for (int i = 0; i < store->count; i++)
        if (store->logs[i])
            ATT_TRY(store->formats[i]->emit(store->logs[i], event));
    return ATT_OK;
}

/* Emits the events of a measurement and, before its end, the earlier figures that are kept (store/earlier.h). */
static att_status emit_measured(void *user, const att_event *event)
{
    struct store *store = user;
    const att_sink logs = {.emit = emit, .user = store};
    if (event->kind == ATT_EVENT_RUN_BEGIN) {
        ATT_TRY(emit(store, event)); /* locks measure.jsonl before it is read */
        return att_earlier_read(&store->earlier, store->measured.data, store->previous.data, event);
    }
    if (event->kind == ATT_EVENT_MEASURE)
        att_earlier_drop_replaced(&store->earlier, event);
    if (event->kind == ATT_EVENT_RUN_END)
        ATT_TRY(att_earlier_emit(&store->earlier, &logs));
    return emit(store, event);
}

static void close_store(void *user)
{
    struct store *store = user;
    for (int i = 0; i < store->count; i++)
        if (store->logs[i])
            store->formats[i]->close(store->logs[i]);
    att_earlier_free(&store->earlier);
    att_text_free(&store->measured);
    att_text_free(&store->previous);
    att_free(store->context, store);
}

#ifdef ATT_WITHOUT_SQLITE
static void log_without_sqlite(att_context *context, const char *database)
{
    att_log(context, ATT_LOG_INFO, "%s is not written: this build of attscope has no SQLite (-DATT_SQLITE=OFF)",
            database);
}

att_status att_store_import(att_context *context, const char *database, const char *const *folders, int count)
{
    (void)folders;
    if (count == 0)
        log_without_sqlite(context, database);
    return ATT_OK;
}

att_status att_store_list_runs(att_context *context, const char *database,
                               att_status (*visit)(void *user, const char *folder), void *user)
{
    (void)visit, (void)user;
    return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: this build of attscope has no SQLite (-DATT_SQLITE=OFF)",
                    database);
}
#endif

static att_status open_store(att_context *context, const char *folder, const att_store_options *options,
                             const att_log_format *const *formats, int count,
                             att_status (*emit_event)(void *user, const att_event *event), att_sink *sink)
{
    ATT_TRY(att_file_make_folders(context, folder));
#ifdef ATT_WITHOUT_SQLITE
    if (options->database && !att_context_is_guarded(context))
        log_without_sqlite(context, options->database);
#endif
    struct store *store;
    ATT_TRY(att_new(context, &store, 1, folder));
    store->context = store->measured.context = store->previous.context = store->earlier.context = context;
    store->formats = formats;
    store->count = count;
    att_text_append(&store->measured, "%s/%s", folder, att_log_measured.file);
    att_text_append(&store->previous, "%s/measure.previous.jsonl", folder);
    bool has_paths = !store->measured.failed && !store->previous.failed;
    att_status status = has_paths ? ATT_OK : att_fail_memory(context, strlen(folder), folder);
    for (int i = 0; i < count && status == ATT_OK; i++)
        status = open_log(store, i, folder, options);
    if (status != ATT_OK)
        close_store(store);
    else
        *sink = (att_sink){.emit = emit_event, .close = close_store, .user = store};
    return status;
}

att_status att_store_open(att_context *context, const char *folder, const att_store_options *options, att_sink *sink)
{
    att_store_options none = {0};
    return open_store(context, folder, options ? options : &none, training, sizeof training / sizeof *training, emit,
                      sink);
}

att_status att_store_open_measured(att_context *context, const char *folder, const char *database, att_sink *sink)
{
    att_store_options options = {.database = database};
    return open_store(context, folder, &options, measuring, sizeof measuring / sizeof *measuring, emit_measured, sink);
}
