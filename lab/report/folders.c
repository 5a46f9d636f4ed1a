#include "lab/report/folders.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"

/* Returns the first of the `count` folders that is the same folder on disk as `folder`; NULL if there is none. */
static const char *find_same(const char *const *folders, int count, const char *folder)
{
    for (int i = 0; i < count; i++)
        if (att_file_is_same(folders[i], folder))
            return folders[i];
    return NULL;
}

int att_report_distinct(att_context *context, const char *const *folders, int count, const char **distinct)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        const char *earlier = find_same(distinct, kept, folders[i]);
        if (earlier != NULL)
            att_log(context, ATT_LOG_INFO, "%s is the same folder as %s and is read once", folders[i], earlier);
        else
            distinct[kept++] = folders[i];
    }
    return kept;
}

static bool has_records(const char *folder)
{
    return att_file_exists_in(folder, "metrics.jsonl") || att_file_exists_in(folder, "measure.jsonl");
}

/* Writes the path of an entry of the folder. Returns false for hidden entries and paths that are too long. */
static bool join(const char *folder, const char *name, char path[static PATH_MAX])
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return name[0] != '.' && snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name) < PATH_MAX;
}

att_status att_report_runs_in(const char *folder, att_status (*add)(void *user, const char *run), void *user,
                              int *count)
{
    char run[PATH_MAX];
    struct dirent **entries;
    const int found = has_records(folder) ? 0 : scandir(folder, &entries, NULL, alphasort);
    att_status status = ATT_OK;
    *count = 0;
    for (int i = 0; i < found; i++) {
        if (status == ATT_OK && join(folder, entries[i]->d_name, run) && has_records(run)) {
            status = add(user, run);
            (*count)++;
        }
        free(entries[i]);
    }
    if (found > 0)
        free(entries);
    return status;
}

/* Finds the first folder at most `depth` levels below `folder` that is a sweep's or contains runs. */
static bool find_below(const char *folder, int depth, char found[static PATH_MAX])
{
    char path[PATH_MAX];
    struct dirent **entries;
    const int count = depth > 0 ? scandir(folder, &entries, NULL, alphasort) : 0;
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (!any && join(folder, entries[i]->d_name, path)) {
            any = has_records(path) || att_file_exists_in(path, "sweep.json");
            snprintf(found, PATH_MAX, "%s", has_records(path) ? folder : path);
            any = any || find_below(path, depth - 1, found);
        }
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
    return any;
}

att_status att_report_advise(att_context *context, const char *folder, att_status status)
{
    enum { DEPTH = 3 };
    char message[1024], found[PATH_MAX];
    if (has_records(folder) || !find_below(folder, DEPTH, found))
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(context));
    return att_fail(context, status, "%s, nor does it contain one, but there are runs in %s: give that folder", message,
                    found);
}
