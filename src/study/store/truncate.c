#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "study/store/log.h"

void att_log_unreadable(att_context *context, const char *path, size_t kept, size_t dropped)
{
    att_log(context, ATT_LOG_WARNING, "%s: unreadable at byte %zu; the %zu bytes from there on are dropped", path, kept,
            dropped);
}

static att_status count_kept(att_context *context, const char *path, att_file_window *window,
                             att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept)
{
    uint64_t size = att_file_reader_size(window->reader);
    for (*kept = 0;;) {
        const char *line;
        size_t length;
        bool whole;
        att_status status = att_file_window_line(window, *kept, ATT_LOG_LONGEST_LINE, &line, &length, &whole);
        att_line verdict = status == ATT_ERR_FORMAT ? ATT_LINE_UNREADABLE : ATT_LINE_DROP;
        if (status != ATT_OK && status != ATT_ERR_FORMAT)
            return status;
        if (status == ATT_OK && line && whole)
            verdict = judge(user, line, length);
        if (verdict == ATT_LINE_UNREADABLE)
            att_log_unreadable(context, path, *kept, (size_t)(size - *kept));
        if (verdict != ATT_LINE_KEEP)
            return ATT_OK;
        *kept += length + 1;
    }
}

att_status att_log_truncate(att_context *context, const char *path,
                            att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept)
{
    *kept = 0;
    if (!att_file_exists(path))
        return ATT_OK;
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(context, path, &reader));
    att_file_window window = {.reader = reader};
    att_status status = count_kept(context, path, &window, judge, user, kept);
    att_file_window_free(&window);
    att_file_reader_close(&reader);
    return status;
}
