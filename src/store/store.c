#include <attscope/store.h>

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"
#include "store/log.h"

static const att_log_format *const formats[] = {&att_log_jsonl, &att_log_csv};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

struct store {
    att_context *context;
    void *logs[FORMATS]; /* NULL: not open */
};

static att_status open_log(struct store *store, int index, const char *folder, const att_store_resume *resume)
{
    att_text path = {.context = store->context};
    att_text_append(&path, "%s/%s", folder, formats[index]->file);
    att_status status = path.failed ? att_fail_memory(store->context, strlen(folder), folder)
                                    : formats[index]->open(store->context, path.data, resume, &store->logs[index]);
    att_text_free(&path);
    return status;
}

static att_status emit(void *user, const att_event *event)
{
    struct store *store = user;
    for (int i = 0; i < FORMATS; i++)
        ATT_TRY(formats[i]->emit(store->logs[i], event));
    return ATT_OK;
}

static void close_store(void *user)
{
    struct store *store = user;
    for (int i = 0; i < FORMATS; i++)
        if (store->logs[i] != NULL)
            formats[i]->close(store->logs[i]);
    att_free(store->context, store);
}

att_status att_store_open(att_context *context, const char *folder, const att_store_resume *resume, att_sink *sink)
{
    ATT_TRY(att_file_make_folders(context, folder));
    struct store *store = att_allocate(context, sizeof(*store));
    if (store == NULL)
        return att_fail_memory(context, sizeof(*store), folder);
    store->context = context;
    att_status status = ATT_OK;
    for (int i = 0; i < FORMATS && status == ATT_OK; i++)
        status = open_log(store, i, folder, resume);
    if (status != ATT_OK)
        close_store(store);
    else
        *sink = (att_sink){.emit = emit, .close = close_store, .user = store};
    return status;
}
