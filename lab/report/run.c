#include "lab/report/run.h"

#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"

/* Maximum number of records that the page shows; a chart has no more pixels. */
enum { MAX_STEPS = 1000, MAX_EPOCHS = 1000, MAX_MEASURES = 100, MAX_WARNINGS = 200 };

static void release_json(att_context *context, void *record)
{
    (void)context;
    json_decref(record);
}

static void store_event(json_t **place, json_t *object)
{
    json_decref(*place);
    *place = json_incref(object);
}

static att_status add_figures(att_report_run *run, const att_line_event *event)
{
    att_figures *figures = NULL;
    ATT_TRY(att_figures_read(run->context, event, true, &figures));
    return att_downsampled_add(&run->measured, figures);
}

static att_status visit_training(void *user, const att_line_event *event)
{
    att_report_run *run = user;
    if (strcmp(event->kind, "run_begin") == 0)
        store_event(&run->begin, event->object);
    else if (strcmp(event->kind, "run_end") == 0)
        store_event(&run->end, event->object);
    else if (strcmp(event->kind, "step") == 0)
        return att_downsampled_add(&run->steps, json_incref(event->object));
    else if (strcmp(event->kind, "epoch") == 0)
        return att_downsampled_add(&run->epochs, json_incref(event->object));
    else if (strcmp(event->kind, "warning") == 0 || strcmp(event->kind, "alert") == 0)
        return att_downsampled_add(&run->warnings, json_incref(event->object));
    if (strcmp(event->kind, "measure") != 0)
        return ATT_OK;
    att_figures *figures = NULL;
    ATT_TRY(att_figures_read(run->context, event, false, &figures));
    ATT_TRY(att_downsampled_add(&run->development, figures));
    att_downsampled_free(&run->measured);
    return add_figures(run, event);
}

static att_status visit_measured(void *user, const att_line_event *event)
{
    att_report_run *run = user;
    if (strcmp(event->kind, "run_begin") == 0)
        store_event(&run->measured_begin, event->object);
    if (strcmp(event->kind, "measure") != 0)
        return ATT_OK;
    if (!run->has_measure_file)
        att_downsampled_free(&run->measured);
    run->has_measure_file = true;
    return add_figures(run, event);
}

/* Calls read() with the file's path if the file exists. */
static att_status read_file(att_report_run *run, const char *name, bool *found,
                            att_status (*read)(att_report_run *run, const char *path))
{
    att_text path = {.context = run->context};
    att_text_append(&path, "%s/%s", run->folder, name);
    att_status status = ATT_OK;
    if (path.failed)
        status = att_fail_memory(run->context, strlen(run->folder), run->folder);
    else if (att_file_exists(path.data)) {
        *found = true;
        status = read(run, path.data);
    }
    att_text_free(&path);
    return status;
}

static att_status read_metrics(att_report_run *run, const char *path)
{
    return att_lines_read(run->context, path, visit_training, run);
}

static att_status read_measure(att_report_run *run, const char *path)
{
    return att_lines_read(run->context, path, visit_measured, run);
}

static att_status read_settings(att_report_run *run, const char *path)
{
    return att_yaml_read(run->context, path, &run->settings);
}

/* Copies the last component of the path, without trailing slashes. */
static char *copy_name(att_context *context, const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/')
        begin--;
    if (begin == end)
        begin = 0;
    char *name = att_allocate(context, end - begin + 1);
    if (name != NULL)
        memcpy(name, folder + begin, end - begin);
    return name;
}

static att_status read_run(att_report_run *run)
{
    struct stat info;
    bool found = false, settings = false;
    if (stat(run->folder, &info) != 0)
        return att_fail(run->context, ATT_ERR_NOT_FOUND, "%s: there is no such folder", run->folder);
    if (!S_ISDIR(info.st_mode))
        return att_fail(run->context, ATT_ERR_FORMAT, "%s is a file, expected a run's folder", run->folder);
    run->name = copy_name(run->context, run->folder);
    if (run->name == NULL)
        return att_fail_memory(run->context, strlen(run->folder), run->folder);
    ATT_TRY(read_file(run, "metrics.jsonl", &found, read_metrics));
    ATT_TRY(read_file(run, "measure.jsonl", &found, read_measure));
    if (!found)
        return att_fail(run->context, ATT_ERR_FORMAT,
                        "%s holds neither metrics.jsonl nor measure.jsonl: it is not a run's folder", run->folder);
    return read_file(run, "args.yaml", &settings, read_settings);
}

att_status att_report_run_read(att_context *context, const char *folder, att_report_run *run)
{
    *run = (att_report_run){
        .context = context,
        .folder = folder,
        .steps = {.context = context, .capacity = MAX_STEPS, .release = release_json},
        .epochs = {.context = context, .capacity = MAX_EPOCHS, .release = release_json},
        .development = {.context = context, .capacity = MAX_MEASURES, .release = att_figures_free},
        .measured = {.context = context, .capacity = MAX_MEASURES, .release = att_figures_free},
        .warnings = {.context = context, .capacity = MAX_WARNINGS, .release = release_json},
    };
    att_status status = read_run(run);
    if (status != ATT_OK)
        att_report_run_free(run);
    return status;
}

void att_report_run_free(att_report_run *run)
{
    json_decref(run->begin);
    json_decref(run->end);
    json_decref(run->measured_begin);
    att_downsampled_free(&run->steps);
    att_downsampled_free(&run->epochs);
    att_downsampled_free(&run->development);
    att_downsampled_free(&run->measured);
    att_downsampled_free(&run->warnings);
    att_yaml_destroy(&run->settings);
    att_free(run->context, run->name);
    *run = (att_report_run){.context = run->context};
}

bool att_run_is_volatile(const char *option)
{
    static const char *const options[] = {"output",
                                          "experiment",
                                          "resume",
                                          "threads",
                                          "workers",
                                          "lanes",
                                          "cache_bytes",
                                          "log_interval",
                                          "mpi",
                                          "json",
                                          "measure",
                                          "measure_every",
                                          "backend",
                                          "measure_nodes",
                                          "skip_corrupt",
                                          "recovery_interval",
                                          "checkpoint_hist",
                                          "eval_plain_every"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(option, options[i]) == 0)
            return true;
    return false;
}
