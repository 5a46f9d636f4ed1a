#include "lab/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/measure.h>
#include <attscope/task.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/report/folders.h"
#include "lab/report/map_choice.h"
#include "lab/report/run.h"
#include "lab/report/sweep.h"

enum { DEFAULT_MAP_BYTES = 16 << 20 };

typedef struct report {
    att_context *context;
    att_arena arena;        /* owns the strings of the members below */
    att_sweep_run *sources; /* one per run; its `setting` is NULL if it is not from a sweep's folder */
    int source_count;
    att_sweep_failure *failures; /* failed runs of the sweeps */
    int failure_count;
    att_sweep_pair pairs[ATT_SWEEP_MOST_PAIRS]; /* rank correlations requested in the sweeps */
    int pair_count;
    const char *sweep;     /* name of the sweep, if the page shows exactly one sweep; else NULL */
    att_report_run *runs;  /* one per source */
    att_map_file *maps;    /* one per run; without a file if the run has no maps */
    att_map_choice *shown; /* one per run: the images to show */
    int count;
    int reference;                             /* index of the reference run; -1: none */
    const char *const *folders, *const *names; /* [served_count], of a server; NULL: the page is not served */
    int served_count;
    att_report_result result;
} report;

att_report_options att_report_options_defaults(void)
{
    return (att_report_options){.map_bytes = DEFAULT_MAP_BYTES};
}

/* --- list of runs ------------------------------------------------------------------------------------------------- */

/* Returns the folder's name: the last component of its real path. NULL if out of memory. */
static const char *folder_name(report *r, const char *path)
{
    char *whole = realpath(path, NULL);
    const char *slash = whole != NULL ? strrchr(whole, '/') : NULL;
    const char *kept = att_arena_string(&r->arena, slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    free(whole);
    return kept;
}

/* Prefixes the setting with the sweep's name if there are several sweeps, because two sweeps may use the same names for
 * settings. */
static const char *setting_name(report *r, const char *folder, const char *setting, bool single_sweep)
{
    att_text name = {.context = r->context};
    const char *sweep = single_sweep ? "" : folder_name(r, folder);
    if (sweep == NULL)
        return NULL;
    if (!single_sweep)
        att_text_append(&name, "%s: ", sweep);
    att_text_append(&name, "%s", setting);
    const char *kept = name.failed ? NULL : att_arena_string(&r->arena, name.data);
    att_text_free(&name);
    return kept;
}

static att_status add_source(report *r, const char *folder, const char *setting, uint64_t seed)
{
    if (r->source_count == ATT_REPORT_MAX_RUNS)
        return att_fail(r->context, ATT_ERR_ARGUMENT, "a report of more than %d runs: name those to show",
                        (int)ATT_REPORT_MAX_RUNS);
    att_sweep_run *source = &r->sources[r->source_count++];
    *source = (att_sweep_run){att_arena_string(&r->arena, folder), setting, seed};
    return source->folder != NULL ? ATT_OK : att_fail_memory(r->context, strlen(folder), folder);
}

static att_status add_failures(report *r, const char *folder, const att_sweep_file *file, bool single_sweep)
{
    size_t bytes = ((size_t)(r->failure_count + file->failure_count) + 1) * sizeof(*r->failures);
    att_sweep_failure *all = att_arena_allocate(&r->arena, bytes);
    if (all == NULL)
        return att_fail_memory(r->context, bytes, folder);
    if (r->failure_count > 0)
        memcpy(all, r->failures, (size_t)r->failure_count * sizeof(*all));
    r->failures = all;
    for (int i = 0; i < file->failure_count; i++) {
        const att_sweep_failure *failed = &file->failures[i];
        all[r->failure_count] = (att_sweep_failure){setting_name(r, folder, failed->setting, single_sweep),
                                                    att_arena_string(&r->arena, failed->reason)};
        if (all[r->failure_count].setting == NULL || all[r->failure_count].reason == NULL)
            return att_fail_memory(r->context, bytes, folder);
        r->failure_count++;
    }
    return ATT_OK;
}

static bool has_pair(const report *r, const att_sweep_pair *pair)
{
    for (int i = 0; i < r->pair_count; i++)
        if (strcmp(r->pairs[i].x, pair->x) == 0 && strcmp(r->pairs[i].y, pair->y) == 0)
            return true;
    return false;
}

/* Adds the correlations of a sweep that are not listed yet. */
static att_status add_pairs(report *r, const char *folder, const att_sweep_file *file)
{
    for (int i = 0; i < file->pair_count && r->pair_count < ATT_SWEEP_MOST_PAIRS; i++) {
        att_sweep_pair *pair = &r->pairs[r->pair_count];
        if (has_pair(r, &file->pairs[i]))
            continue;
        *pair = (att_sweep_pair){att_arena_string(&r->arena, file->pairs[i].x),
                                 att_arena_string(&r->arena, file->pairs[i].y)};
        if (pair->x == NULL || pair->y == NULL)
            return att_fail_memory(r->context, strlen(file->pairs[i].x), folder);
        r->pair_count++;
    }
    return ATT_OK;
}

static att_status add_sweep(report *r, const char *folder, const att_sweep_file *file, bool single_sweep)
{
    if (file->count == 0)
        return att_fail(r->context, ATT_ERR_NOT_FOUND, "%s/sweep.json lists no measured run", folder);
    for (int i = 0; i < file->count; i++) {
        const char *setting = setting_name(r, folder, file->runs[i].setting, single_sweep);
        if (setting == NULL)
            return att_fail_memory(r->context, strlen(file->runs[i].setting), folder);
        ATT_TRY(add_source(r, file->runs[i].folder, setting, file->runs[i].seed));
    }
    ATT_TRY(add_pairs(r, folder, file));
    return add_failures(r, folder, file, single_sweep);
}

/* Adds a run of a folder of runs, unless it is listed. */
static att_status add_found(void *user, const char *run)
{
    report *r = user;
    for (int i = 0; i < r->source_count; i++)
        if (att_file_is_same(r->sources[i].folder, run))
            return ATT_OK;
    return add_source(r, run, NULL, 0);
}

/* Adds a folder that is not a sweep's: that of a run, or one that contains runs. */
static att_status add_folder(report *r, const char *folder)
{
    int runs;
    ATT_TRY(att_report_runs_in(folder, add_found, r, &runs));
    return runs > 0 ? ATT_OK : add_found(r, folder);
}

/* Lists the runs of all folders. */
static att_status find_sources(report *r, const char *const *folders, int count)
{
    r->sources = att_arena_allocate(&r->arena, ATT_REPORT_MAX_RUNS * sizeof(*r->sources));
    if (r->sources == NULL)
        return att_fail_memory(r->context, ATT_REPORT_MAX_RUNS * sizeof(*r->sources), "a report");
    for (int i = 0; i < count; i++) {
        att_sweep_file file = {.count = 0};
        bool sweep = false;
        ATT_TRY(att_sweep_file_read(r->context, folders[i], &sweep, &file));
        if (sweep && count == 1 && (r->sweep = folder_name(r, folders[i])) == NULL) {
            att_sweep_file_free(&file);
            return att_fail_memory(r->context, strlen(folders[i]), folders[i]);
        }
        att_status status = sweep ? add_sweep(r, folders[i], &file, count == 1) : add_folder(r, folders[i]);
        att_sweep_file_free(&file);
        ATT_TRY(status);
    }
    return ATT_OK;
}

/* Finds the reference run among the sources, or adds it. folder NULL: there is none. */
static att_status find_reference(report *r, const char *folder)
{
    r->reference = -1;
    for (int i = 0; folder != NULL && i < r->source_count && r->reference < 0; i++)
        r->reference = att_file_is_same(r->sources[i].folder, folder) ? i : -1;
    if (folder == NULL || r->reference >= 0)
        return ATT_OK;
    r->reference = r->source_count;
    return add_source(r, folder, NULL, 0);
}

/* Refuses to replace a file that the report reads. */
static att_status check_path(const report *r, const char *const *folders, int count, const char *path)
{
    static const char *const names[] = {"metrics.jsonl", "measure.jsonl", "args.yaml", "maps.safetensors",
                                        "sweep.json"};
    for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
        bool found = false;
        for (int i = 0; i < count && !found; i++)
            found = att_file_is_in(folders[i], names[n], path);
        for (int i = 0; i < r->source_count && !found; i++)
            found = att_file_is_in(r->sources[i].folder, names[n], path);
        if (found)
            return att_fail(r->context, ATT_ERR_ARGUMENT,
                            "%s is the %s of a run or sweep in the report: write the page to another file", path,
                            names[n]);
    }
    return ATT_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static att_status read_maps(report *r, const char *folder, att_map_file *maps)
{
    att_text path = {.context = r->context};
    att_text_append(&path, "%s/maps.safetensors", folder);
    att_status status = path.failed                  ? att_fail_memory(r->context, strlen(folder), folder)
                        : att_file_exists(path.data) ? att_map_file_open(r->context, path.data, maps)
                                                     : ATT_OK;
    att_text_free(&path);
    return status;
}

static void drop_maps(report *r, int index, const char *reason)
{
    att_map_file_close(&r->maps[index]);
    r->runs[index].maps_left_out = reason;
}

/* Drops maps that are of other weights than the run's figures: showing both together would mislead. */
static void drop_mismatched_maps(report *r, int index)
{
    const att_report_run *run = &r->runs[index];
    const att_map_file *maps = &r->maps[index];
    const char *of = maps->file != NULL ? att_tensors_metadata(maps->file, "weights") : NULL;
    const char *figures = json_string_value(json_object_get(run->measured_begin, "weights"));
    if (of == NULL || figures == NULL || strcmp(of, figures) == 0)
        return;
    att_log(r->context, ATT_LOG_WARNING, "%s is of other weights than the figures, so the report omits it",
            att_tensors_path(maps->file));
    drop_maps(r, index, "of other weights than the figures");
}

static att_status read_runs(report *r)
{
    size_t count = (size_t)r->source_count;
    r->runs = att_allocate_array(r->context, count, sizeof(*r->runs));
    r->maps = att_allocate_array(r->context, count, sizeof(*r->maps));
    r->shown = att_allocate_array(r->context, count, sizeof(*r->shown));
    if (r->runs == NULL || r->maps == NULL || r->shown == NULL)
        return att_fail_memory(r->context, count * sizeof(*r->runs), "a report");
    for (; r->count < r->source_count; r->count++) {
        const char *folder = r->sources[r->count].folder;
        att_status status = att_report_run_read(r->context, folder, &r->runs[r->count]);
        if (status != ATT_OK)
            return att_report_advise(r->context, folder, status);
        r->maps[r->count].context = r->context;
        status = read_maps(r, folder, &r->maps[r->count]);
        if (status == ATT_ERR_UNSUPPORTED) {
            att_log(r->context, ATT_LOG_WARNING, "%s; the report omits them", att_context_message(r->context));
            drop_maps(r, r->count, "in an unsupported version of the format");
        } else if (status != ATT_OK) {
            att_report_run_free(&r->runs[r->count]);
            return status;
        }
        drop_mismatched_maps(r, r->count);
    }
    return ATT_OK;
}

static void free_report(report *r)
{
    for (int i = 0; i < r->count; i++) {
        att_report_run_free(&r->runs[i]);
        att_map_file_close(&r->maps[i]);
        att_free(r->context, r->shown[i].images);
    }
    att_free(r->context, r->runs);
    att_free(r->context, r->maps);
    att_free(r->context, r->shown);
    att_arena_free(&r->arena);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_instruments(const att_context *context, att_json_writer *json)
{
    att_json_put_array(json, "instruments");
    for (int i = 0; i < att_instrument_count(context); i++) {
        att_instrument_info info = att_instrument_at(context, i);
        att_instrument_write_json(&info, json);
    }
    att_json_end_array(json);
}

static void write_metric(att_json_writer *json, const att_metric *metric)
{
    att_json_begin_object(json);
    att_json_put_string(json, "name", metric->name);
    att_json_put_string(json, "label", metric->label);
    att_json_put_string(json, "unit", metric->unit);
    att_json_end_object(json);
}

/* Writes [{name, best, metrics: [{name, label, unit}]}]. The first task applies to records without a task. */
static void write_tasks(const att_context *context, att_json_writer *json)
{
    att_json_put_array(json, "tasks");
    for (int t = 0; t < att_task_count(context); t++) {
        const att_task_info task = att_task_at(context, t);
        att_json_begin_object(json);
        att_json_put_string(json, "name", task.name);
        att_json_put_string(json, "best", task.metrics[task.best].name);
        att_json_put_array(json, "metrics");
        for (int i = 0; i < task.metric_count; i++)
            write_metric(json, &task.metrics[i]);
        att_json_end_array(json);
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

/* A run is named by the last component of its folder, or by the whole path if another run has the same name. */
static const char *name_of(const report *r, int index)
{
    for (int i = 0; i < r->count; i++)
        if (i != index && strcmp(r->runs[i].name, r->runs[index].name) == 0)
            return r->runs[index].folder;
    return r->runs[index].name;
}

static att_status write_maps(att_json_writer *json, report *r, int index)
{
    const att_map_file *maps = &r->maps[index];
    att_json_key(json, "maps");
    if (maps->file == NULL) {
        att_json_string(json, NULL);
        return ATT_OK;
    }
    r->result.images += r->shown[index].count;
    r->result.images_wanted += maps->images;
    return att_map_file_write(json, maps, r->shown[index].images, r->shown[index].count);
}

/* Writes {name, settings, correlations, methods}; all but the name are as in sweep.json. A run that is not from a sweep
 * is a setting of its own. */
static att_status write_sweep(att_json_writer *json, const report *r)
{
    att_sweep_member members[ATT_REPORT_MAX_RUNS];
    att_sweep *sweep = NULL;
    for (int i = 0; i < r->count; i++) {
        const att_sweep_run *source = &r->sources[i];
        members[i] =
            (att_sweep_member){&r->runs[i], source->setting != NULL ? source->setting : name_of(r, i), source->seed};
    }
    ATT_TRY(att_sweep_from_runs(r->context, members, r->count, r->pairs, r->pair_count, 0, &sweep));
    att_json_put_object(json, "sweep");
    att_json_put_string(json, "name", r->sweep);
    att_sweep_write_json(sweep, json);
    att_json_end_object(json);
    att_sweep_destroy(&sweep);
    return ATT_OK;
}

static void write_failures(att_json_writer *json, const report *r)
{
    att_json_put_array(json, "failed");
    for (int i = 0; i < r->failure_count; i++) {
        att_json_begin_object(json);
        att_json_put_string(json, "setting", r->failures[i].setting);
        att_json_put_string(json, "reason", r->failures[i].reason);
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

/* Whether two records have equal strings under the key, or both have none. */
static bool have_same_text(const json_t *one, const json_t *other, const char *key)
{
    const char *a = json_string_value(json_object_get(one, key)), *b = json_string_value(json_object_get(other, key));
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

/* Whether images with the same name in both runs are the same image. The page uses the same rule (web/maps.js). */
static bool have_same_images(const att_report_run *one, const att_report_run *other)
{
    const json_t *a = one->measured_begin, *b = other->measured_begin;
    return have_same_text(a, b, "data") || (json_object_get(a, "contents") != NULL && have_same_text(a, b, "contents"));
}

static att_status choose_maps(report *r, size_t bytes)
{
    int *collections;
    ATT_TRY(att_new(r->context, &collections, (size_t)r->count, "the images of a report"));
    for (int i = 0; i < r->count; i++) {
        int first = 0;
        while (first < i && !have_same_images(&r->runs[first], &r->runs[i]))
            first++;
        collections[i] = first < i ? collections[first] : i;
    }
    att_status status = att_map_choices_make(r->context, r->maps, collections, r->count, bytes, r->shown);
    att_free(r->context, collections);
    return status;
}

/* Writes the run's name on the server. */
static void write_served(att_json_writer *json, const report *r, int index)
{
    for (int i = 0; r->names != NULL && i < r->served_count; i++)
        if (strcmp(r->folders[i], r->sources[index].folder) == 0)
            att_json_put_string(json, "served", r->names[i]);
}

static att_status write_data(att_json_writer *json, report *r, const att_report_options *options)
{
    ATT_TRY(choose_maps(r, options->map_bytes));
    att_json_begin_object(json);
    att_json_put_string(json, "attscope", att_version());
    att_json_put_string(json, "title", options->title);
    att_json_put_number(json, "reference", r->reference < 0 ? NAN : r->reference);
    write_instruments(r->context, json);
    write_tasks(r->context, json);
    att_json_put_array(json, "runs");
    for (int i = 0; i < r->count; i++) {
        att_json_begin_object(json);
        att_json_put_string(json, "name", name_of(r, i));
        att_json_put_string(json, "setting", r->sources[i].setting);
        write_served(json, r, i);
        att_report_run_write(json, &r->runs[i]);
        ATT_TRY(write_maps(json, r, i));
        att_json_end_object(json);
    }
    att_json_end_array(json);
    ATT_TRY(write_sweep(json, r));
    write_failures(json, r);
    att_json_end_object(json);
    return ATT_OK;
}

/* Where a page goes: to the file at `path`, or to `text`. */
typedef struct target {
    const char *path; /* NULL: to `text` */
    const att_page *page;
    att_text *text;
    const char *const *names; /* of the runs on a server; NULL: the page is not served */
} target;

static att_status write_page(report *r, const target *to, const char *data, size_t length)
{
    return to->path != NULL ? att_page_write(r->context, to->path, data, length, &r->result.bytes)
                            : att_page_append(to->page, data, length, to->text);
}

static att_status write_report(report *r, const att_report_options *options, const target *to)
{
    att_json_writer *json = NULL;
    ATT_TRY(att_json_writer_create(r->context, false, &json));
    const char *text;
    size_t length;
    att_status status = write_data(json, r, options);
    if (status == ATT_OK)
        status = att_json_writer_finish(json, &text, &length);
    if (status == ATT_OK)
        status = write_page(r, to, text, length);
    att_json_writer_destroy(&json);
    return status;
}

static att_status make_report(att_context *context, const char *const *folders, int count,
                              const att_report_options *options, const target *to, att_report_result *result)
{
    const att_report_options defaults = att_report_options_defaults();
    options = options != NULL ? options : &defaults;
    if (count < 1 || count > ATT_REPORT_MAX_RUNS)
        return att_fail(context, ATT_ERR_ARGUMENT, "a report of %d runs, expected 1 to %d", count,
                        (int)ATT_REPORT_MAX_RUNS);
    ATT_TRY(att_require_texts(context, folders, count, "the folder of a run"));
    const char *distinct[ATT_REPORT_MAX_RUNS];
    report r = {.context = context,
                .arena = {.context = context},
                .folders = folders,
                .names = to->names,
                .served_count = count};
    count = att_report_distinct(context, folders, count, distinct);
    att_status status = find_sources(&r, distinct, count);
    if (status == ATT_OK)
        status = find_reference(&r, options->reference);
    if (status == ATT_OK && to->path != NULL)
        status = check_path(&r, distinct, count, to->path);
    if (status == ATT_OK)
        status = read_runs(&r);
    r.result.runs = r.count;
    if (status == ATT_OK)
        status = write_report(&r, options, to);
    free_report(&r);
    if (status == ATT_OK && result != NULL)
        *result = r.result;
    return status;
}

att_status att_report_write(att_context *context, const char *const *folders, int count,
                            const att_report_options *options, const char *path, att_report_result *result)
{
    ATT_TRY(att_require(context, path, "the path of the page"));
    ATT_TRY(att_page_check(context, path));
    return make_report(context, folders, count, options, &(target){.path = path}, result);
}

att_status att_report_append(att_context *context, const char *const *folders, const char *const *names, int count,
                             const att_report_options *options, const att_page *page, att_text *out)
{
    return make_report(context, folders, count, options, &(target){.page = page, .text = out, .names = names}, NULL);
}
