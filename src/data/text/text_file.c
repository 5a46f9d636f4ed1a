#include <string.h>

#include <attscope/tokenizer.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"

enum { MOST_BYTES = 1 << 30 };

/* Checks that the line is UTF-8. */
static att_status check_line(att_context *context, const char *path, const char *line, int number)
{
    for (const char *at = line; *at;) {
        const size_t length = att_utf8_length(at);
        if (length == 0)
            return att_fail(context, ATT_ERR_FORMAT,
                            "%s: line %d is not UTF-8 at byte %zu (0x%02X); convert it to UTF-8", path, number,
                            (size_t)(at - line), (unsigned)(unsigned char)*at);
        at += length;
    }
    return ATT_OK;
}

/* Divides file->bytes into its lines. */
static att_status take_lines(att_context *context, const char *path, size_t size, att_text_file *file)
{
    att_arena arena = {.context = context};
    const char **lines;
    att_status status = att_text_all_lines(&arena, path, file->bytes, size, &lines, &file->count);
    if (status == ATT_OK && file->count == 0)
        status = att_fail(context, ATT_ERR_ARGUMENT, "%s: there are no texts", path);
    if (status == ATT_OK)
        status = att_new(context, &file->texts, (size_t)file->count + 1, path);
    for (int i = 0; i < file->count && status == ATT_OK; i++) {
        file->texts[i] = (att_encode_text){lines[i], strlen(lines[i])};
        status = check_line(context, path, lines[i], i + 1);
    }
    att_arena_free(&arena);
    return status;
}

att_status att_text_file_read(att_context *context, const char *path, att_text_file *file)
{
    att_text_file read = {.count = 0};
    size_t size;
    ATT_TRY(att_require(context, path, "the path of the texts"));
    ATT_TRY(att_file_read(context, path, MOST_BYTES, &read.bytes, &size));
    att_status status = take_lines(context, path, size, &read);
    if (status == ATT_OK)
        *file = read;
    else
        att_text_file_free(context, &read);
    return status;
}

void att_text_file_free(att_context *context, att_text_file *file)
{
    att_free(context, file->texts);
    att_free(context, file->bytes);
    *file = (att_text_file){.count = 0};
}
