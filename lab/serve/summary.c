#include "lab/serve/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/lab/runs.h>
#include <attscope/lab/yaml.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/yaml.h"
#include "lab/report/run.h"
#include "lab/serve/record.h"
#include "study/store/lines.h"

/* --- records ------------------------------------------------------------------------------------------------------ */

typedef struct reader {
    att_context *context;
    att_run_summary *summary;
    att_metric metric;    /* name NULL: the task is unknown */
    double epoch_updates; /* of an epoch, if evaluations are counted in updates; else 0 */
} reader;

/* What has a column of its own in the list of runs, or is no option. */
static bool is_shown_elsewhere(const char *key)
{
    static const char *const keys[] = {"event", "model", "task", "epochs", "updates", "listing", "fingerprint"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Copies the texts of run_begin that a user has chosen. */
static json_t *settings_of(const json_t *object)
{
    json_t *settings = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_is_string(value) && !is_shown_elsewhere(key))
            json_object_set(settings, key, value);
    }
    return settings;
}

static void begin(reader *r, const json_t *object)
{
    att_run_summary *s = r->summary;
    att_record_text(object, "model", s->model, sizeof s->model);
    att_record_text(object, "task", s->task, sizeof s->task);
    const double wanted = att_record_number(object, "epochs");
    s->epochs_wanted = wanted >= 0 ? (int64_t)wanted : -1;
    json_decref(s->settings);
    s->settings = settings_of(object);
    s->epochs = 0;
    s->step = 0;
    r->epoch_updates = att_record_number(object, "eval_every") > 0 ? att_record_number(object, "epoch_updates") : 0;
    s->best = NAN;
    s->end[0] = '\0';
    r->metric = (att_metric){.name = NULL};
    for (int i = 0; i < att_task_count(r->context); i++) {
        const att_task_info task = att_task_at(r->context, i);
        /* Records of the first versions do not name their task, which is the first one. */
        if (strcmp(task.name, s->task) == 0 || (s->task[0] == '\0' && i == 0))
            r->metric = task.metrics[task.best];
    }
    s->metric = r->metric.name != NULL ? r->metric.label : NULL;
    s->unit = r->metric.unit;
}

static void epoch(reader *r, const att_line_event *event)
{
    att_run_summary *s = r->summary;
    s->epochs = r->epoch_updates > 0 ? (double)event->step / r->epoch_updates : (double)event->epoch + 1;
    if (r->metric.name == NULL)
        return;
    char key[64];
    snprintf(key, sizeof key, "eval_%s", r->metric.name);
    const double value = att_record_number(event->object, key);
    if (isnan(s->best) || (r->metric.larger_is_better ? value > s->best : value < s->best))
        s->best = value;
}

static att_status visit(void *user, const att_line_event *event)
{
    reader *r = user;
    r->summary->step = event->step;
    const double seconds = att_record_number(event->object, "seconds");
    if (!isnan(seconds))
        r->summary->seconds = seconds;
    if (strcmp(event->kind, "run_begin") == 0)
        begin(r, event->object);
    else if (strcmp(event->kind, "epoch") == 0)
        epoch(r, event);
    else if (strcmp(event->kind, "run_end") == 0)
        att_record_text(event->object, "status", r->summary->end, sizeof r->summary->end);
    return ATT_OK;
}

/* --- args.yaml ---------------------------------------------------------------------------------------------------- */

static att_status add_option(att_context *context, const att_yaml_entry *entry, json_t *settings)
{
    att_text text = {.context = context};
    for (int i = 0; i < entry->value_count; i++)
        att_text_append(&text, "%s%s", i > 0 ? " " : "", entry->values[i]);
    const bool kept =
        !text.failed && json_object_set_new(settings, entry->key, json_string(text.data ? text.data : "")) == 0;
    att_text_free(&text);
    return kept ? ATT_OK : att_fail_memory(context, sizeof *entry, "the options of a run");
}

static att_status add_options(att_context *context, const att_yaml *yaml, json_t *settings)
{
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        const att_yaml_entry entry = att_yaml_at(yaml, i);
        if (entry.kind != ATT_YAML_NULL && !is_shown_elsewhere(entry.key) && !att_run_is_volatile(entry.key))
            ATT_TRY(add_option(context, &entry, settings));
    }
    return ATT_OK;
}

/* Replaces the settings by the options in args.yaml, if the run has it: these include options of the network, which
 * run_begin lacks. */
static att_status read_options(att_context *context, const char *folder, att_run_summary *summary)
{
    char path[ATT_RUN_PATH];
    att_yaml *yaml = NULL;
    if (!att_file_exists_in(folder, "args.yaml"))
        return ATT_OK;
    ATT_TRY(att_path_join(context, folder, "args.yaml", path, sizeof path));
    ATT_TRY(att_yaml_read(context, path, &yaml));
    json_decref(summary->settings);
    summary->settings = json_object();
    const att_status status = add_options(context, yaml, summary->settings);
    att_yaml_destroy(&yaml);
    return status;
}

/* --- summaries ---------------------------------------------------------------------------------------------------- */

att_status att_run_summary_read(att_context *context, const char *folder, att_run_summary *summary)
{
    char path[ATT_RUN_PATH];
    *summary = (att_run_summary){.epochs_wanted = -1, .best = NAN, .seconds = NAN};
    summary->measured = att_file_exists_in(folder, "measure.jsonl");
    summary->trained = att_file_exists_in(folder, "metrics.jsonl");
    if (!summary->trained)
        return ATT_OK;
    ATT_TRY(att_path_join(context, folder, "metrics.jsonl", path, sizeof path));
    reader r = {.context = context, .summary = summary};
    att_status status = att_lines_read(context, path, visit, &r);
    if (status == ATT_OK)
        status = read_options(context, folder, summary);
    if (status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED) {
        att_run_summary_free(summary);
        return status;
    }
    if (status != ATT_OK)
        snprintf(summary->problem, sizeof summary->problem, "%s", att_context_message(context));
    return ATT_OK;
}

void att_run_summary_free(att_run_summary *summary)
{
    json_decref(summary->settings);
    summary->settings = NULL;
}

/* --- locked files ------------------------------------------------------------------------------------------------- */

/* Reads a line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 2252 fe:00:10952783 0 EOF". The file system's number is not
 * compared, because some file systems show another one to stat(). */
static att_status read_lock(att_context *context, const char *line, att_locked_files *files)
{
    unsigned long inode;
    if (sscanf(line, "%*d: FLOCK %*s WRITE %*d %*x:%*x:%lu", &inode) != 1)
        return ATT_OK;
    if (!att_list_grow(context, &files->inodes, files->count, &files->capacity, sizeof *files->inodes))
        return att_fail_memory(context, sizeof *files->inodes, "the locked files");
    files->inodes[files->count++] = (ino_t)inode;
    return ATT_OK;
}

att_status att_locked_files_read(att_context *context, att_locked_files *files)
{
    char line[256];
    FILE *locks = fopen("/proc/locks", "re");
    att_status status = ATT_OK;
    while (locks != NULL && status == ATT_OK && fgets(line, sizeof line, locks) != NULL)
        status = read_lock(context, line, files);
    if (locks != NULL)
        fclose(locks);
    return status;
}

bool att_locked_files_have(const att_locked_files *files, ino_t inode)
{
    for (int i = 0; i < files->count; i++)
        if (files->inodes[i] == inode)
            return true;
    return false;
}

void att_locked_files_free(att_context *context, att_locked_files *files)
{
    att_free(context, files->inodes);
    *files = (att_locked_files){.inodes = NULL};
}
