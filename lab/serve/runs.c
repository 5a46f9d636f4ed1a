/* The list of runs: GET /api/runs. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "lab/serve/list.h"
#include "lab/serve/summary.h"
#include <attscope/lab/json.h>

/* What identifies the contents of a run's records, so that they are read again only after a change. */
typedef struct stamp {
    ino_t inode; /* of metrics.jsonl; 0: there is none */
    off_t size;
    struct timespec changed; /* of metrics.jsonl or, if there is none, of measure.jsonl */
    bool measured;           /* whether there is a measure.jsonl */
} stamp;

typedef struct known_run {
    bool read;
    stamp at;
    att_run_summary summary;
} known_run;

/* The runs that were read, by their numbers. */
typedef struct known_runs {
    att_context *context;
    pthread_mutex_t lock;
    known_run *runs;
    int count, capacity;
} known_runs;

static att_status open_runs(att_context *context, att_site *site, void **state)
{
    (void)site;
    known_runs *known;
    ATT_TRY(att_new(context, &known, 1, "the list of runs"));
    known->context = context;
    pthread_mutex_init(&known->lock, NULL);
    *state = known;
    return ATT_OK;
}

static void close_runs(void *state)
{
    known_runs *known = state;
    pthread_mutex_destroy(&known->lock);
    for (int i = 0; i < known->count; i++)
        att_run_summary_free(&known->runs[i].summary);
    att_free(known->context, known->runs);
    att_free(known->context, known);
}

static bool find_file(att_context *context, const char *folder, const char *name, struct stat *info)
{
    char path[ATT_RUN_PATH];
    return att_path_join(context, folder, name, path, sizeof path) == ATT_OK && stat(path, info) == 0;
}

static stamp stamp_of(att_context *context, const char *folder)
{
    struct stat info;
    stamp found = {.measured = find_file(context, folder, "measure.jsonl", &info)};
    if (found.measured)
        found.changed = info.st_mtim;
    if (!find_file(context, folder, "metrics.jsonl", &info))
        return found;
    found.inode = info.st_ino;
    found.size = info.st_size;
    found.changed = info.st_mtim;
    return found;
}

static bool is_same(const stamp *a, const stamp *b)
{
    return a->inode == b->inode && a->size == b->size && a->measured == b->measured &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Finds the summary of a run, and reads it if its records have changed. */
static att_status update(known_runs *known, att_context *context, int number, const char *folder)
{
    while (known->count <= number) {
        if (!att_list_grow(known->context, &known->runs, known->count, &known->capacity, sizeof *known->runs))
            return att_fail_memory(context, sizeof *known->runs, folder);
        known->runs[known->count++] = (known_run){.read = false};
    }
    known_run *run = &known->runs[number];
    const stamp now = stamp_of(context, folder);
    if (run->read && is_same(&run->at, &now))
        return ATT_OK;
    att_run_summary summary;
    ATT_TRY(att_run_summary_read(context, folder, &summary));
    att_run_summary_free(&run->summary);
    run->summary = summary;
    run->at = now;
    run->read = true;
    return ATT_OK;
}

static const char *state_of(const known_run *run, const att_locked_files *locked)
{
    const att_run_summary *s = &run->summary;
    if (!s->trained)
        return s->measured ? "measured" : "unfinished";
    if (att_locked_files_have(locked, run->at.inode))
        return "running";
    if (s->end[0] == '\0')
        return "unfinished";
    return strcmp(s->end, att_status_name(ATT_OK)) == 0            ? "finished"
           : strcmp(s->end, att_status_name(ATT_ERR_STOPPED)) == 0 ? "stopped"
                                                                   : "failed";
}

/* An empty text is written as null. */
static void write_known(att_json_writer *json, const char *key, const char *text)
{
    att_json_put_string(json, key, text[0] != '\0' ? text : NULL);
}

static void write_best(att_json_writer *json, const att_run_summary *s)
{
    att_json_key(json, "best");
    if (s->metric == NULL || isnan(s->best)) {
        att_json_string(json, NULL);
        return;
    }
    att_json_begin_object(json);
    write_known(json, "metric", s->metric);
    write_known(json, "unit", s->unit);
    att_json_put_number(json, "value", s->best);
    att_json_end_object(json);
}

/* Whether att_network_open() finds a checkpoint in the folder. */
static bool has_checkpoint(const char *folder)
{
    return att_file_exists_in(folder, "model_best.safetensors") || att_file_exists_in(folder, "last.safetensors") ||
           att_file_exists_in(folder, "model.safetensors");
}

/* The settings in which the runs differ, as the keys of an object: two runs have recorded different values. */
static json_t *find_varied(const known_runs *known)
{
    json_t *varied = json_object(), *first = json_object(), *value;
    const char *key;
    for (int i = 0; i < known->count; i++)
        json_object_foreach(known->runs[i].summary.settings, key, value)
        {
            const json_t *other = json_object_get(first, key);
            if (other == NULL)
                json_object_set(first, key, value);
            else if (!json_equal(other, value))
                json_object_set(varied, key, value);
        }
    json_decref(first);
    return varied;
}

static void write_settings(att_json_writer *json, const json_t *settings, const json_t *varied)
{
    const char *key;
    json_t *value;
    att_json_put_object(json, "settings");
    json_object_foreach((json_t *)settings, key, value)
    {
        if (json_object_get(varied, key) != NULL)
            write_known(json, key, json_string_value(value));
    }
    att_json_end_object(json);
}

/* When the process that wrote the records began, in seconds since 1970: the file's time less that of its last record. A
 * run without records was measured at this time. */
static double started(const known_run *run)
{
    const double changed = (double)run->at.changed.tv_sec, seconds = run->summary.seconds;
    return run->at.changed.tv_sec == 0 ? NAN : round(changed - (seconds > 0 ? seconds : 0));
}

static void write_run(att_json_writer *json, const char *name, const char *folder, const known_run *run,
                      const json_t *varied, const att_locked_files *locked)
{
    const att_run_summary *s = &run->summary;
    att_json_begin_object(json);
    write_known(json, "run", name);
    write_known(json, "state", state_of(run, locked));
    write_known(json, "model", s->model);
    att_json_put_number(json, "epochs", s->trained ? s->epochs : NAN);
    att_json_put_number(json, "epochs_wanted", s->epochs_wanted >= 0 ? (double)s->epochs_wanted : NAN);
    att_json_put_number(json, "step", s->trained ? (double)s->step : NAN);
    att_json_put_number(json, "seconds", s->seconds);
    att_json_put_number(json, "started", started(run));
    write_best(json, s);
    write_settings(json, s->settings, varied);
    att_json_put_bool(json, "trained", s->trained);
    att_json_put_bool(json, "measured", s->measured);
    att_json_put_bool(json, "checkpoint", has_checkpoint(folder));
    write_known(json, "problem", s->problem);
    att_json_end_object(json);
}

/* Reads the records of all runs that are new or have changed. */
static att_status update_all(known_runs *known, const att_request *request)
{
    int count;
    ATT_TRY(att_site_count_runs(request->site, request->context, &count));
    for (int i = 0; i < count; i++) {
        char folder[ATT_RUN_PATH];
        ATT_TRY(att_site_run(request->site, request->context, i, folder));
        ATT_TRY(update(known, request->context, i, folder));
    }
    return ATT_OK;
}

static att_status write_runs(known_runs *known, const att_request *request, const att_locked_files *locked,
                             att_json_writer *json)
{
    ATT_TRY(update_all(known, request));
    json_t *varied = find_varied(known);
    att_status status = ATT_OK;
    att_json_put_array(json, "runs");
    for (int i = 0; i < known->count && status == ATT_OK; i++) {
        char folder[ATT_RUN_PATH];
        status = att_site_run(request->site, request->context, i, folder);
        if (status == ATT_OK)
            write_run(json, att_site_run_name(request->site, i), folder, &known->runs[i], varied, locked);
    }
    att_json_end_array(json);
    json_decref(varied);
    return status;
}

static void write_models(const att_site *site, att_json_writer *json)
{
    att_json_put_array(json, "models");
    for (int i = 0; i < att_site_model_count(site); i++) {
        att_json_begin_object(json);
        write_known(json, "name", att_site_model_at(site, i).name);
        att_json_end_object(json);
    }
    att_json_end_array(json);
}

static att_status write_list(const att_request *request, att_json_writer *json)
{
    known_runs *known = request->state;
    att_locked_files locked = {.inodes = NULL};
    att_json_begin_object(json);
    write_known(json, "attscope", att_version());
    att_status status = att_locked_files_read(request->context, &locked);
    pthread_mutex_lock(&known->lock);
    if (status == ATT_OK)
        status = write_runs(known, request, &locked, json);
    pthread_mutex_unlock(&known->lock);
    att_locked_files_free(request->context, &locked);
    write_models(request->site, json);
    att_json_end_object(json);
    return status;
}

static att_status get_runs(const att_request *request, att_response *response)
{
    att_json_writer *json = NULL;
    ATT_TRY(att_json_writer_create(request->context, false, &json));
    att_status status = write_list(request, json);
    if (status == ATT_OK)
        status = att_response_json(response, json);
    att_json_writer_destroy(&json);
    return status;
}

static const att_route routes[] = {{"/api/runs", ATT_GET, get_runs}};

const att_route_group att_routes_runs = {routes, 1, open_runs, close_runs};
