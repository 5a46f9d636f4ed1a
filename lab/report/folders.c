#include "lab/report/folders.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Writes the path of the entry to `run`, if it is a run. */
static bool find_run(const char *folder, const char *name, char *run, size_t size)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    const bool is_run = name[0] != '.' && length < (int)sizeof path && has_records(path);
    if (is_run)
        snprintf(run, size, "%s", path);
    return is_run;
}

att_status att_report_advise(att_context *context, const char *folder, att_status status)
{
    char message[1024], run[PATH_MAX];
    struct dirent **entries;
    const int found = has_records(folder) ? 0 : scandir(folder, &entries, NULL, alphasort);
    int runs = 0;
    for (int i = 0; i < found; i++) {
        runs += find_run(folder, entries[i]->d_name, run, sizeof run);
        free(entries[i]);
    }
    if (found > 0)
        free(entries);
    if (runs == 0)
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(context));
    if (runs == 1)
        return att_fail(context, status, "%s, but it contains the run %s; give that folder", message, run);
    return att_fail(context, status, "%s, but it contains %d runs; for all of them, give %s/*/", message, runs, folder);
}
