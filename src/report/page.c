#include "report/page.h"

#include <string.h>

#include "core/error.h"
#include "io/file.h"

att_status att_page_check(att_context *context, const char *path)
{
    if (att_page_before_size > 0)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s is not written: this build of attscope has no page for reports (-DATT_REPORT=OFF)", path);
}

/* Writes JSON with '<' escaped, so that no text can close the HTML element that contains the data. In JSON, '<' occurs
 * in strings only. */
static att_status write_escaped(att_file_writer *file, const char *text, size_t length, size_t *written)
{
    static const char escape[] = "\\u003c";
    const char *end = text + length;
    while (text < end) {
        const char *found = memchr(text, '<', (size_t)(end - text));
        const char *stop = found != NULL ? found : end;
        ATT_TRY(att_file_writer_write(file, text, (size_t)(stop - text)));
        *written += (size_t)(stop - text);
        if (found != NULL) {
            ATT_TRY(att_file_writer_write(file, escape, sizeof(escape) - 1));
            *written += sizeof(escape) - 1;
        }
        text = stop + (found != NULL);
    }
    return ATT_OK;
}

att_status att_page_write(att_context *context, const char *path, const char *text, size_t length, size_t *bytes)
{
    att_file_writer *file = NULL;
    size_t data = 0;
    ATT_TRY(att_file_writer_open(context, path, &file));
    att_status status = att_file_writer_write(file, att_page_before, att_page_before_size);
    if (status == ATT_OK)
        status = write_escaped(file, text, length, &data);
    if (status == ATT_OK)
        status = att_file_writer_write(file, att_page_after, att_page_after_size);
    if (bytes != NULL)
        *bytes = att_page_before_size + data + att_page_after_size;
    if (status == ATT_OK)
        return att_file_writer_commit(&file);
    att_file_writer_abort(&file);
    return status;
}
