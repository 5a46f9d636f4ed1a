#include "lab/report/page.h"

#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"

/* Where the bytes of a page go. */
typedef struct page_sink {
    att_status (*put)(void *user, const void *bytes, size_t size);
    void *user;
    size_t bytes; /* so far */
} page_sink;

bool att_page_exists(void)
{
    return att_page_report.before_size > 0;
}

att_status att_page_check(att_context *context, const char *path)
{
    if (att_page_exists())
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s is not written: this build of attscope has no page for reports (-DATT_REPORT=OFF)", path);
}

static att_status put(page_sink *sink, const void *bytes, size_t size)
{
    sink->bytes += size;
    return sink->put(sink->user, bytes, size);
}

/* Puts JSON with '<' escaped, so that no text can close the HTML element that contains the data. In JSON, '<' occurs in
 * strings only. */
static att_status put_escaped(page_sink *sink, const char *text, size_t length)
{
    static const char escape[] = "\\u003c";
    const char *end = text + length;
    while (text < end) {
        const char *found = memchr(text, '<', (size_t)(end - text));
        const char *stop = found != NULL ? found : end;
        ATT_TRY(put(sink, text, (size_t)(stop - text)));
        if (found != NULL)
            ATT_TRY(put(sink, escape, sizeof(escape) - 1));
        text = stop + (found != NULL);
    }
    return ATT_OK;
}

static att_status put_page(page_sink *sink, const att_page *page, const char *text, size_t length)
{
    ATT_TRY(put(sink, page->before, page->before_size));
    ATT_TRY(put_escaped(sink, text, length));
    ATT_TRY(put(sink, att_page_middle, att_page_middle_size));
    return put(sink, page->after, page->after_size);
}

static att_status put_in_file(void *user, const void *bytes, size_t size)
{
    return att_file_writer_write(user, bytes, size);
}

att_status att_page_write(att_context *context, const char *path, const char *text, size_t length, size_t *bytes)
{
    att_file_writer *file = NULL;
    ATT_TRY(att_file_writer_open(context, path, &file));
    page_sink sink = {.put = put_in_file, .user = file};
    att_status status = put_page(&sink, &att_page_report, text, length);
    if (bytes != NULL)
        *bytes = sink.bytes;
    if (status == ATT_OK)
        return att_file_writer_commit(&file);
    att_file_writer_abort(&file);
    return status;
}

static att_status put_in_text(void *user, const void *bytes, size_t size)
{
    att_text *text = user;
    att_text_append_bytes(text, bytes, size);
    return text->failed ? att_fail_memory(text->context, size, "a page") : ATT_OK;
}

att_status att_page_append(const att_page *page, const char *text, size_t length, att_text *out)
{
    page_sink sink = {.put = put_in_text, .user = out};
    return put_page(&sink, page, text, length);
}
