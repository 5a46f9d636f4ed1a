/* Headers of a reply. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/text.h"
#include "networks/hub/transport.h"

void att_reply_clear(att_reply *reply)
{
    *reply = (att_reply){.length = -1, .linked_size = -1, .range_begin = -1, .range_total = -1};
}

/* Returns the value if the line is this header, without blanks around it, as a new text in `value`. */
static bool is_header(const char *line, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':')
        return false;
    line += length + 1;
    line += strspn(line, " \t");
    length = strlen(line);
    while (length > 0 && strchr(" \t\r\n", line[length - 1]))
        length--;
    if (length < size) {
        memcpy(value, line, length);
        value[length] = '\0';
    } else {
        value[0] = '\0';
    }
    return true;
}

static void read_number(const char *text, int64_t *number)
{
    if (!att_text_to_i64(text, number) || *number < 0)
        *number = -1;
}

static void read_etag(const char *text, char *etag)
{
    text += strncmp(text, "W/", 2) == 0 ? 2 : 0;
    size_t length = strlen(text);
    bool quoted = length >= 2 && text[0] == '"' && text[length - 1] == '"';
    memmove(etag, text + quoted, length - 2U * quoted);
    etag[length - 2U * quoted] = '\0';
}

/* "bytes 100-199/200" */
static void read_range(const char *text, att_reply *reply)
{
    int64_t begin, end, total;
    int parsed = 0;
    if (sscanf(text, "bytes %18" SCNd64 "-%18" SCNd64 "/%18" SCNd64 "%n", &begin, &end, &total, &parsed) == 3 &&
        !text[parsed] && begin >= 0 && begin <= end && end < total) {
        reply->range_begin = begin;
        reply->range_total = total;
    }
}

void att_reply_add(att_reply *reply, const char *line)
{
    char value[128];
    if (is_header(line, "ETag", value, sizeof value))
        read_etag(value, reply->etag);
    else if (is_header(line, "X-Linked-Etag", value, sizeof value))
        read_etag(value, reply->linked_etag);
    else if (is_header(line, "X-Linked-Size", value, sizeof value))
        read_number(value, &reply->linked_size);
    else if (is_header(line, "Content-Length", value, sizeof value))
        read_number(value, &reply->length);
    else if (is_header(line, "Content-Range", value, sizeof value))
        read_range(value, reply);
    else if (!is_header(line, "X-Repo-Commit", reply->commit, sizeof reply->commit))
        is_header(line, "X-Error-Code", reply->error, sizeof reply->error);
}
