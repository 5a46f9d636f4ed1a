#include "lab/serve/site.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/hub.h>
#include <attscope/network.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/runs/records/folder.h"

/* The most runs that a site lists. A folder with more is hardly a folder of runs. */
enum { MOST_RUNS = 10000 };

typedef struct names {
    const char **items;
    int count, capacity;
} names;

struct att_site {
    att_context *context;
    att_arena arena; /* all strings; used with the lock held */
    names folders, runs, models;
    const char *images, *network, *labels; /* NULL: none */
    pthread_mutex_t lock;                  /* of arena and runs */
};

static att_status add(att_site *site, names *list, const char *path)
{
    if (!att_list_grow(site->context, &list->items, list->count, &list->capacity, sizeof *list->items))
        return att_fail_memory(site->context, sizeof *list->items, path);
    const char *kept = att_arena_string(&site->arena, path);
    if (kept == NULL)
        return att_fail_memory(site->context, strlen(path), path);
    list->items[list->count++] = kept;
    return ATT_OK;
}

static bool is_run(const char *folder)
{
    return att_run_is_folder(folder) || att_file_exists_in(folder, "measure.jsonl");
}

static bool is_checkpoint(const char *folder)
{
    return att_file_exists_in(folder, "model.safetensors") ||
           att_file_exists_in(folder, "model.safetensors.index.json") ||
           att_file_exists_in(folder, "pytorch_model.bin") ||
           att_file_exists_in(folder, "pytorch_model.bin.index.json");
}

static bool is_listed(const names *list, const char *path)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i], path) == 0)
            return true;
    return false;
}

static att_status add_once(att_site *site, names *list, const char *path)
{
    return is_listed(list, path) ? ATT_OK : add(site, list, path);
}

/* A network's name, for random weights, or a name of pretrained weights, which are downloaded if necessary. */
static att_status add_name(att_site *site, const char *name)
{
    char file[ATT_RUN_PATH];
    ATT_TRY(att_network_find_file(site->context, name, file, sizeof file));
    return add_once(site, &site->models, name);
}

/* Keeps the real path, so that a folder is listed once, and "." has a name. */
static att_status add_operand(att_site *site, const char *path)
{
    ATT_TRY(att_require(site->context, path, "a path to serve"));
    char *real = realpath(path, NULL);
    if (real == NULL && errno == ENOENT && (strchr(path, '/') == NULL || att_hub_is_name(path)))
        return add_name(site, path);
    if (real == NULL)
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: %s", path,
                        errno == ENOENT ? "there is no such file or folder" : strerror(errno));
    att_status status = add_once(site,
                                 !att_file_is_folder(real) ? &site->models
                                 : is_run(real)            ? &site->runs
                                 : is_checkpoint(real)     ? &site->models
                                                           : &site->folders,
                                 real);
    free(real);
    return status;
}

/* --- folders of runs ---------------------------------------------------------------------------------------------- */

static att_status add_entry(att_site *site, const char *folder, const char *name)
{
    char path[ATT_RUN_PATH];
    if (name[0] == '.' || att_path_join(site->context, folder, name, path, sizeof path) != ATT_OK || !is_run(path) ||
        site->runs.count == MOST_RUNS)
        return ATT_OK;
    return add_once(site, &site->runs, path);
}

/* A folder that was removed since the start has no runs. */
static att_status add_runs_in(att_site *site, att_context *context, const char *folder)
{
    struct dirent **entries;
    const int found = scandir(folder, &entries, NULL, alphasort);
    if (found < 0)
        return errno == ENOENT ? ATT_OK : att_fail(context, ATT_ERR_IO, "%s: %s", folder, strerror(errno));
    att_status status = ATT_OK;
    for (int i = 0; i < found; i++) {
        if (status == ATT_OK)
            status = add_entry(site, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status == ATT_OK ? ATT_OK : att_fail(context, status, "%s: its runs could not be listed", folder);
}

static bool has_runs_in(const att_site *site, const char *folder)
{
    const size_t length = strlen(folder);
    for (int i = 0; i < site->runs.count; i++)
        if (strncmp(site->runs.items[i], folder, length) == 0 && site->runs.items[i][length] == '/')
            return true;
    return false;
}

/* Lists the runs of the folders, and warns of folders without any. */
static att_status look_into_folders(att_site *site)
{
    for (int i = 0; i < site->folders.count; i++) {
        const char *folder = site->folders.items[i];
        ATT_TRY(add_runs_in(site, site->context, folder));
        if (!has_runs_in(site, folder))
            att_log(site->context, ATT_LOG_WARNING,
                    "%s has no runs so far; if it holds images to show models, give it as --images", folder);
    }
    return ATT_OK;
}

att_status att_site_count_runs(att_site *site, att_context *context, int *count)
{
    att_status status = ATT_OK;
    pthread_mutex_lock(&site->lock);
    for (int i = 0; i < site->folders.count && status == ATT_OK; i++)
        status = add_runs_in(site, context, site->folders.items[i]);
    *count = site->runs.count;
    pthread_mutex_unlock(&site->lock);
    return status;
}

static const char *find_run(att_site *site, int64_t run)
{
    pthread_mutex_lock(&site->lock);
    const char *found = run >= 0 && run < site->runs.count ? site->runs.items[run] : NULL;
    pthread_mutex_unlock(&site->lock);
    return found;
}

att_status att_site_run(att_site *site, att_context *context, int64_t run, char folder[static ATT_RUN_PATH])
{
    int count;
    const char *found = find_run(site, run);
    if (found == NULL) { /* it may have appeared since the last look */
        ATT_TRY(att_site_count_runs(site, context, &count));
        found = find_run(site, run);
    }
    if (found == NULL)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no run %lld", (long long)run);
    return att_path_copy(context, found, folder, ATT_RUN_PATH);
}

/* --- the site ----------------------------------------------------------------------------------------------------- */

bool att_site_has_runs(const att_site *site)
{
    return site->folders.count > 0 || site->runs.count > 0;
}

int att_site_model_count(const att_site *site)
{
    return site->models.count;
}

const char *att_site_model(const att_site *site, int model)
{
    return site->models.items[model];
}

const char *att_site_images(const att_site *site)
{
    return site->images;
}

static att_status check_labels(att_site *site, const char *labels)
{
    if (labels == NULL || att_known_classes_find(labels) != NULL || att_file_exists(labels))
        return ATT_OK;
    return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: there is no such file with names of classes", labels);
}

/* NULL stays NULL. */
static att_status keep_text(att_site *site, const char *text, const char **kept)
{
    *kept = text != NULL ? att_arena_string(&site->arena, text) : NULL;
    return text == NULL || *kept != NULL ? ATT_OK : att_fail_memory(site->context, strlen(text), text);
}

static att_status fill(att_site *site, const att_serve_options *options)
{
    for (int i = 0; i < options->path_count; i++)
        ATT_TRY(add_operand(site, options->paths[i]));
    ATT_TRY(look_into_folders(site));
    ATT_TRY(keep_text(site, options->network, &site->network));
    ATT_TRY(check_labels(site, options->labels));
    ATT_TRY(keep_text(site, options->labels, &site->labels));
    if (options->images != NULL && !att_file_exists(options->images))
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: there is no such folder of images", options->images);
    return keep_text(site, options->images, &site->images);
}

att_status att_site_create(att_context *context, const att_serve_options *options, att_site **site)
{
    att_site *created;
    ATT_TRY(att_new(context, &created, 1, "the list of runs"));
    created->context = created->arena.context = context;
    pthread_mutex_init(&created->lock, NULL);
    att_status status = fill(created, options);
    if (status == ATT_OK)
        *site = created;
    else
        att_site_destroy(&created);
    return status;
}

void att_site_destroy(att_site **site)
{
    if (site == NULL || *site == NULL)
        return;
    att_site *closing = *site;
    att_free(closing->context, closing->folders.items);
    att_free(closing->context, closing->runs.items);
    att_free(closing->context, closing->models.items);
    att_arena_free(&closing->arena);
    pthread_mutex_destroy(&closing->lock);
    att_free(closing->context, closing);
    *site = NULL;
}

const char *att_site_network(const att_site *site)
{
    return site->network;
}

const char *att_site_labels(const att_site *site)
{
    return site->labels;
}
