#include "report/folders.h"

#include <dirent.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/text.h"
#include "io/file.h"

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

/* Returns whether the entry is a run. */
static bool log_run(att_context *context, const char *folder, const char *name)
{
    att_text path = {.context = context};
    att_text_append(&path, "%s/%s", folder, name);
    const bool is_run = !path.failed && name[0] != '.' && has_records(path.data);
    if (is_run)
        att_log(context, ATT_LOG_INFO, "it contains the run %s", path.data);
    att_text_free(&path);
    return is_run;
}

void att_report_log_runs_in(att_context *context, const char *folder)
{
    struct dirent **entries;
    const int found = has_records(folder) ? 0 : scandir(folder, &entries, NULL, alphasort);
    int runs = 0;
    for (int i = 0; i < found; i++) {
        runs += log_run(context, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (found > 0)
        free(entries);
    if (runs > 1)
        att_log(context, ATT_LOG_INFO, "for all of them, give %s/*", folder);
}
