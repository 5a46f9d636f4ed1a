#include "lab/serve/site.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/hub.h>
#include <attscope/models.h>
#include <attscope/network.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/tensors.h"
#include "lab/runs/records/folder.h"

/* The most runs that a site lists. A folder with more is hardly a folder of runs. */
enum { MOST_RUNS = 10000 };

typedef struct entry {
    const char *path;
    const char *name;    /* the end of the path that links hold; NULL: not given yet, or a folder */
    const char *network; /* of a checkpoint that was named as NETWORK=FILE; NULL: none */
} entry;

typedef struct entries {
    entry *items;
    int count, capacity;
} entries;

struct att_site {
    att_context *context;
    att_arena arena; /* all strings; used with the lock held */
    entries folders, runs, models;
    const char *images, *texts, *tokenizer, *network, *labels; /* NULL: none */
    pthread_mutex_t lock;                                      /* of arena and runs */
};

static att_status add(att_site *site, entries *list, const char *path, const char *network)
{
    if (!att_list_grow(site->context, &list->items, list->count, &list->capacity, sizeof *list->items))
        return att_fail_memory(site->context, sizeof *list->items, path);
    const char *kept = att_arena_string(&site->arena, path);
    const char *named = network != NULL ? att_arena_string(&site->arena, network) : NULL;
    if (kept == NULL || (network != NULL && named == NULL))
        return att_fail_memory(site->context, strlen(path), path);
    list->items[list->count++] = (entry){.path = kept, .network = named};
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

static const entry *find_path(const entries *list, const char *path)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return &list->items[i];
    return NULL;
}

static const entry *find_name(const entries *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].name != NULL && strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

/* network: the name before '=' of the operand; NULL: none. */
static att_status add_once(att_site *site, entries *list, const char *path, const char *network)
{
    const entry *listed = find_path(list, path);
    if (listed == NULL)
        return add(site, list, path, network);
    if ((network == NULL) == (listed->network == NULL) && (network == NULL || strcmp(network, listed->network) == 0))
        return ATT_OK;
    return att_fail(site->context, ATT_ERR_ARGUMENT,
                    "%s is given twice, for different networks (%s and %s): give it once", path,
                    listed->network != NULL ? listed->network : "none named", network != NULL ? network : "none named");
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Whether the path is `end`, or ends in "/" and it. */
static bool ends_in(const char *path, const char *end)
{
    const size_t whole = strlen(path), part = strlen(end);
    return whole >= part && strcmp(path + whole - part, end) == 0 &&
           (whole == part || path[whole - part - 1] == '/' || *end == '/');
}

/* The start of the last component of path[0..end). */
static size_t component_before(const char *path, size_t end)
{
    while (end > 0 && path[end - 1] != '/')
        end--;
    return end;
}

/* Whether the path of a model other than model `except` ends in `end`. */
static bool others_end_in(const entries *models, int except, const char *end)
{
    for (int i = 0; i < models->count; i++)
        if (i != except && ends_in(models->items[i].path, end))
            return true;
    return false;
}

/* Gives names to the models: of each the shortest end of its path that no other model's path has. */
static void name_models(att_site *site)
{
    for (int i = 0; i < site->models.count; i++) {
        entry *model = &site->models.items[i];
        size_t begin = component_before(model->path, strlen(model->path));
        while (begin > 0 && others_end_in(&site->models, i, model->path + begin))
            begin = component_before(model->path, begin - 1);
        model->name = model->path + begin;
    }
}

/* Gives names to the runs that have none: of each the shortest end of its path that is no name so far. Names never
 * change, so that links stay valid while further runs appear. */
static void name_runs(att_site *site)
{
    for (int i = 0; i < site->runs.count; i++) {
        entry *run = &site->runs.items[i];
        if (run->name != NULL)
            continue;
        size_t begin = component_before(run->path, strlen(run->path));
        while (begin > 0 && (find_name(&site->models, run->path + begin) || find_name(&site->runs, run->path + begin)))
            begin = component_before(run->path, begin - 1);
        run->name = run->path + begin;
    }
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

/* A network's name, for random weights, or a name of pretrained weights, which are downloaded if necessary. */
static att_status add_name(att_site *site, const char *name, const char *network)
{
    char file[ATT_RUN_PATH];
    ATT_TRY(att_network_find_file(site->context, name, file, sizeof file));
    return add_once(site, &site->models, name, network);
}

/* The list to which a file or folder belongs. */
static entries *list_of(att_site *site, const char *path)
{
    return !att_file_is_folder(path) ? &site->models
           : is_run(path)            ? &site->runs
           : is_checkpoint(path)     ? &site->models
                                     : &site->folders;
}

/* realpath(), for "PATH#PART", too, which keeps its part. */
static char *real_path(const char *path)
{
    const size_t length = att_tensors_path_length(path);
    char file[ATT_RUN_PATH];
    if (!path[length] || length >= sizeof file)
        return realpath(path, NULL);
    memcpy(file, path, length);
    file[length] = '\0';
    char *real = realpath(file, NULL);
    char *whole = real != NULL ? malloc(strlen(real) + strlen(path + length) + 1) : NULL;
    if (whole != NULL)
        strcat(strcpy(whole, real), path + length);
    free(real);
    return whole;
}

/* Keeps the real path, so that a folder is listed once, and "." has a name. */
static att_status add_path(att_site *site, const char *path, const char *network)
{
    char *real = real_path(path);
    if (real == NULL && errno == ENOENT && ((network == NULL && strchr(path, '/') == NULL) || att_hub_is_name(path)))
        return add_name(site, path, network);
    if (real == NULL)
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: %s", path,
                        errno == ENOENT ? "there is no such file or folder" : strerror(errno));
    entries *list = list_of(site, real);
    att_status status = ATT_OK;
    if (network != NULL && list != &site->models)
        status = att_fail(site->context, ATT_ERR_ARGUMENT,
                          "%s=%s: expected a checkpoint after %s=, which is a network's name; %s is a folder of %s",
                          network, path, network, path, list == &site->runs ? "a run" : "runs");
    if (status == ATT_OK)
        status = add_once(site, list, real, network);
    free(real);
    return status;
}

/* PATH, or NETWORK=PATH for a checkpoint that does not name its network. A path may contain '=', too. */
static att_status add_operand(att_site *site, const char *operand)
{
    att_network_name name;
    char network[ATT_RUN_PATH];
    ATT_TRY(att_require(site->context, operand, "a path to serve"));
    const char *equals = strchr(operand, '=');
    if (equals == NULL || memchr(operand, '/', (size_t)(equals - operand)) != NULL || att_file_exists(operand))
        return add_path(site, operand, NULL);
    snprintf(network, sizeof network, "%.*s", (int)(equals - operand), operand);
    const att_status status = att_model_resolve(site->context, network, &name);
    if (status == ATT_OK)
        return add_path(site, equals + 1, network);
    char why[1024];
    snprintf(why, sizeof why, "%s", att_context_message(site->context));
    return att_fail(site->context, status, "%s: expected NETWORK=CHECKPOINT; %s", operand, why);
}

/* --- folders of runs ---------------------------------------------------------------------------------------------- */

static att_status add_entry(att_site *site, const char *folder, const char *name)
{
    char path[ATT_RUN_PATH];
    if (name[0] == '.' || att_path_join(site->context, folder, name, path, sizeof path) != ATT_OK || !is_run(path) ||
        site->runs.count == MOST_RUNS)
        return ATT_OK;
    return add_once(site, &site->runs, path, NULL);
}

/* A folder that was removed since the start has no runs. */
static att_status add_runs_in(att_site *site, att_context *context, const char *folder)
{
    struct dirent **found;
    const int count = scandir(folder, &found, NULL, alphasort);
    if (count < 0)
        return errno == ENOENT ? ATT_OK : att_fail(context, ATT_ERR_IO, "%s: %s", folder, strerror(errno));
    att_status status = ATT_OK;
    for (int i = 0; i < count; i++) {
        if (status == ATT_OK)
            status = add_entry(site, folder, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    name_runs(site);
    return status == ATT_OK ? ATT_OK : att_fail(context, status, "%s: its runs could not be listed", folder);
}

static bool has_runs_in(const att_site *site, const char *folder)
{
    const size_t length = strlen(folder);
    for (int i = 0; i < site->runs.count; i++)
        if (strncmp(site->runs.items[i].path, folder, length) == 0 && site->runs.items[i].path[length] == '/')
            return true;
    return false;
}

/* Lists the runs of the folders, and warns of folders without any. */
static att_status look_into_folders(att_site *site)
{
    for (int i = 0; i < site->folders.count; i++) {
        const char *folder = site->folders.items[i].path;
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
        status = add_runs_in(site, context, site->folders.items[i].path);
    *count = site->runs.count;
    pthread_mutex_unlock(&site->lock);
    return status;
}

att_status att_site_run(att_site *site, att_context *context, int run, char folder[static ATT_RUN_PATH])
{
    pthread_mutex_lock(&site->lock);
    const char *found = site->runs.items[run].path;
    pthread_mutex_unlock(&site->lock);
    return att_path_copy(context, found, folder, ATT_RUN_PATH);
}

const char *att_site_run_name(att_site *site, int run)
{
    pthread_mutex_lock(&site->lock);
    const char *name = site->runs.items[run].name;
    pthread_mutex_unlock(&site->lock);
    return name;
}

static const char *path_of_run(att_site *site, const char *name)
{
    pthread_mutex_lock(&site->lock);
    const entry *found = find_name(&site->runs, name);
    const char *path = found != NULL ? found->path : NULL;
    pthread_mutex_unlock(&site->lock);
    return path;
}

att_status att_site_find_run(att_site *site, att_context *context, const char *name, char folder[static ATT_RUN_PATH])
{
    int count;
    const char *found = path_of_run(site, name);
    if (found == NULL) { /* it may have appeared since the last look */
        ATT_TRY(att_site_count_runs(site, context, &count));
        found = path_of_run(site, name);
    }
    if (found == NULL)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no run \"%s\"", name);
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

att_site_model att_site_model_at(const att_site *site, int model)
{
    const entry *of = &site->models.items[model];
    return (att_site_model){of->path, of->name, of->network};
}

att_status att_site_find_model(att_site *site, att_context *context, const char *name, char path[static ATT_RUN_PATH])
{
    const entry *model = find_name(&site->models, name);
    if (model != NULL)
        return att_path_copy(context, model->path, path, ATT_RUN_PATH);
    const att_status status = att_site_find_run(site, context, name, path);
    return status != ATT_ERR_NOT_FOUND ? status : att_fail(context, status, "there is no checkpoint \"%s\"", name);
}

const char *att_site_images(const att_site *site)
{
    return site->images;
}

const char *att_site_texts(const att_site *site)
{
    return site->texts;
}

const char *att_site_tokenizer(const att_site *site)
{
    return site->tokenizer;
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
    name_models(site);
    name_runs(site);
    ATT_TRY(look_into_folders(site));
    ATT_TRY(keep_text(site, options->network, &site->network));
    ATT_TRY(check_labels(site, options->labels));
    ATT_TRY(keep_text(site, options->labels, &site->labels));
    if (options->images != NULL && !att_file_exists(options->images))
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: there is no such folder of images", options->images);
    if (options->texts != NULL && !att_file_exists(options->texts))
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: there is no such file of texts", options->texts);
    if (options->tokenizer != NULL && !att_file_exists(options->tokenizer))
        return att_fail(site->context, ATT_ERR_NOT_FOUND, "%s: there is no such tokenizer", options->tokenizer);
    ATT_TRY(keep_text(site, options->texts, &site->texts));
    ATT_TRY(keep_text(site, options->tokenizer, &site->tokenizer));
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
