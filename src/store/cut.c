#include <string.h>

#include "core/error.h"
#include "io/file.h"
#include "store/log.h"

void att_log_unreadable(att_context *context, const char *path, size_t kept, size_t dropped)
{
    att_log(context, ATT_LOG_WARNING, "%s: unreadable at byte %zu; the %zu bytes from there on are dropped", path, kept,
            dropped);
}

static size_t count_kept(att_context *context, const char *path, const att_file_map *map,
                         att_line (*judge)(void *user, const char *line, size_t length), void *user)
{
    size_t kept = 0;
    for (;;) {
        const char *line = (const char *)map->bytes + kept;
        const char *end = kept < map->size ? memchr(line, '\n', map->size - kept) : NULL;
        if (end == NULL)
            return kept;
        att_line verdict = judge(user, line, (size_t)(end - line));
        if (verdict == ATT_LINE_UNREADABLE)
            att_log_unreadable(context, path, kept, map->size - kept);
        if (verdict != ATT_LINE_KEEP)
            return kept;
        kept += (size_t)(end - line) + 1;
    }
}

att_status att_log_cut(att_context *context, const char *path,
                       att_line (*judge)(void *user, const char *line, size_t length), void *user, size_t *kept)
{
    *kept = 0;
    if (!att_file_exists(path))
        return ATT_OK;
    att_file_map map;
    ATT_TRY(att_file_map_open(context, path, &map));
    if (map.size > 0)
        *kept = count_kept(context, path, &map, judge, user);
    att_file_map_close(&map);
    return ATT_OK;
}
