#include "networks/hub/repository.h"

#include <attscope/models.h>

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "networks/hub/cache.h"
#include "networks/hub/download.h"
#include "networks/layouts/layout.h"
#include "networks/models/family.h"

enum { MOST_INDEX = 16 << 20, MOST_SHARDS = 1000, MOST_VOCABULARY = 64 << 20 };

static const char CONFIG[] = "config.json", TOKENIZER[] = "tokenizer.json";

/* A file that says how images are prepared or texts are divided for a network of the transformers library. None of them
 * must exist. */
typedef struct side_file {
    const char *name;
    att_layout_reads reads; /* for networks that read this */
    int64_t most;           /* bytes */
    bool replaced;          /* TOKENIZER, listed before, replaces it */
} side_file;
static const side_file side_files[] = {
    {"preprocessor_config.json", ATT_READS_IMAGES, ATT_JSON_SETTINGS_BYTES, false},
    {"processor_config.json", ATT_READS_IMAGES, ATT_JSON_SETTINGS_BYTES, false},
    {TOKENIZER, ATT_READS_TEXTS, MOST_VOCABULARY, false},
    {"vocab.txt", ATT_READS_TEXTS, MOST_VOCABULARY, true},
    {"special_tokens_map.json", ATT_READS_TEXTS, ATT_JSON_SETTINGS_BYTES, true},
    {"tokenizer_config.json", ATT_READS_TEXTS, ATT_JSON_SETTINGS_BYTES, false},
    {"sentence_bert_config.json", ATT_READS_TEXTS, ATT_JSON_SETTINGS_BYTES, false},
};
enum { SIDE_FILES = sizeof side_files / sizeof *side_files };

/* Files of weights, the preferred one first. */
static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                      "pytorch_model.bin.index.json"};
enum { KINDS = sizeof weights / sizeof *weights };

typedef struct search {
    att_context *context;
    const att_hub_settings *settings;
    const att_hub_name *name;
    att_hub_cache cache;
    att_hub_session session;
    char commit[ATT_COMMIT]; /* "" before the cache or the Hub has named it */
    int shards;              /* files of an index that were downloaded */
} search;

/* --- files of an index -------------------------------------------------------------------------------------------- */

static bool is_index(const char *file)
{
    static const char ending[] = ".index.json";
    size_t length = strlen(file);
    return length >= sizeof ending && strcmp(file + length - (sizeof ending - 1), ending) == 0;
}

/* The most bytes of the file. */
static int64_t most_of(const char *file)
{
    if (strcmp(file, CONFIG) == 0)
        return ATT_JSON_SETTINGS_BYTES;
    for (int i = 0; i < SIDE_FILES; i++)
        if (strcmp(file, side_files[i].name) == 0)
            return side_files[i].most;
    return is_index(file) ? MOST_INDEX : INT64_MAX;
}

/* Calls `use` for each file that the index names, until it fails. A file may come several times. */
static att_status each_shard(search *s, const char *index,
                             att_status (*use)(search *s, const char *index, const char *file))
{
    char path[ATT_HUB_PATH], *text;
    size_t size;
    json_t *root = NULL, *name;
    const char *tensor;
    ATT_TRY(att_hub_cache_path(&s->cache, s->commit, index, path, sizeof path));
    ATT_TRY(att_file_read(s->context, path, MOST_INDEX, &text, &size));
    att_status status = att_json_parse(s->context, path, text, size, &root);
    att_free(s->context, text);
    json_object_foreach(json_object_get(root, "weight_map"), tensor, name)
    {
        const char *file = json_string_value(name);
        if (status == ATT_OK && (!file || !att_hub_is_file(file)))
            status = att_fail(s->context, ATT_ERR_FORMAT,
                              "%s: its \"weight_map\" names \"%.80s\"; expected a file of the same repository", path,
                              file ? file : "");
        if (status == ATT_OK)
            status = use(s, index, file);
    }
    json_decref(root);
    return status;
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

static att_status require_shard(search *s, const char *index, const char *file)
{
    (void)index;
    return att_hub_cache_has(&s->cache, s->commit, file) ? ATT_OK : ATT_ERR_NOT_FOUND;
}

static bool is_cached(search *s, const char *file)
{
    return att_hub_cache_has(&s->cache, s->commit, file) &&
           (!is_index(file) || each_shard(s, file, require_shard) == ATT_OK);
}

/* Returns the file of weights in the cache; NULL if there is none. */
static const char *find_cached(search *s)
{
    for (int i = 0; i < KINDS; i++)
        if (is_cached(s, weights[i]))
            return weights[i];
    return NULL;
}

/* Whether the cache holds the file, or knows that there is none. */
static bool knows(const search *s, const char *file)
{
    return att_hub_cache_has(&s->cache, s->commit, file) || att_hub_cache_lacks(&s->cache, s->commit, file);
}

/* What the network of the cache's configuration reads, if it is of the transformers library, whose networks have side
 * files. Fails for a network that attscope lacks. */
static att_status check_config(const search *s, att_layout_reads *reads)
{
    char path[ATT_HUB_PATH];
    *reads = ATT_READS_NONE;
    if (!att_hub_cache_has(&s->cache, s->commit, CONFIG))
        return ATT_OK;
    ATT_TRY(att_hub_cache_path(&s->cache, s->commit, CONFIG, path, sizeof path));
    return att_layout_check_config(s->context, path, reads);
}

/* Whether the file is used for a network that reads this, and the cache does not know it. */
static bool is_wanted(const search *s, const side_file *file, att_layout_reads reads)
{
    const bool replaced = file->replaced && att_hub_cache_has(&s->cache, s->commit, TOKENIZER);
    return file->reads == reads && !replaced && !knows(s, file->name);
}

static bool knows_side_files(const search *s)
{
    att_layout_reads reads;
    bool known = knows(s, CONFIG);
    if (!known || check_config(s, &reads) != ATT_OK)
        return known;
    for (int i = 0; i < SIDE_FILES; i++)
        known &= !is_wanted(s, &side_files[i], reads);
    return known;
}

/* --- errors of the Hub -------------------------------------------------------------------------------------------- */

/* The sentence about a network of timm's that has no such name or tag, with the nearest one. */
static const char *suggest(const search *s)
{
    att_network_name found;
    return *s->name->network && att_model_resolve(s->context, s->name->network, &found) != ATT_OK
               ? att_context_message(s->context)
               : NULL;
}

static att_status fail_with_suggestion(const search *s, const char *what)
{
    char why[1024] = "";
    const char *suggestion = suggest(s);
    if (suggestion)
        snprintf(why, sizeof why, ": %s", suggestion);
    return att_fail(s->context, ATT_ERR_NOT_FOUND, "%s: %s%s", s->name->repository, what, why);
}

enum { TOKEN_TEXT = sizeof((att_hub_settings *)0)->token_fault + 128 };

/* What is said about the access token of a user who seems to need one. */
static const char *describe_token(const search *s, char text[TOKEN_TEXT])
{
    const char *fault = s->settings->token_fault;
    if (*s->settings->token)
        return "there is no repository of this name that your access token may read";
    snprintf(text, TOKEN_TEXT, "there is no public repository of this name; a private one needs %s%s",
             *fault ? "your access token, which cannot be read: " : "HF_TOKEN", fault);
    return text;
}

static att_status fail_gated(const search *s)
{
    const char *repository = s->name->repository, *fault = s->settings->token_fault;
    return att_fail(s->context, ATT_ERR_NOT_FOUND,
                    "%s is open only to users who accepted its terms: accept them at %s/%s, and set HF_TOKEN to your "
                    "access token%s%s",
                    repository, s->settings->endpoint, repository, *fault ? "; the present one cannot be read: " : "",
                    fault);
}

static att_status fail_code(const search *s, const char *file, const att_reply *reply)
{
    const char *repository = s->name->repository;
    char what[TOKEN_TEXT];
    if (strcmp(reply->error, "GatedRepo") == 0)
        return fail_gated(s);
    if (strcmp(reply->error, "RevisionNotFound") == 0)
        return att_fail(s->context, ATT_ERR_NOT_FOUND, "%s has no revision \"%s\"", repository, s->name->revision);
    if (strcmp(reply->error, "RepoNotFound") == 0 || reply->code == 401 || reply->code == 403 || reply->code == 404)
        return fail_with_suggestion(s, describe_token(s, what));
    return att_fail(s->context, ATT_ERR_IO, "%s of %s: %s answers with HTTP status %d", file, repository,
                    s->session.endpoint.host, reply->code);
}

/* --- downloads ---------------------------------------------------------------------------------------------------- */

/* Writes the address of the file. A slash in the revision would begin another part of the address. */
static void address(const search *s, const char *file, char url[ATT_URL])
{
    char revision[3 * sizeof s->name->revision];
    size_t length = 0;
    for (const char *at = *s->commit ? s->commit : s->name->revision; *at; at++)
        length += (size_t)snprintf(revision + length, sizeof revision - length, *at == '/' ? "%%2F" : "%c", *at);
    snprintf(url, ATT_URL, "%s/%s/resolve/%s/%s", s->settings->endpoint, s->name->repository, revision, file);
}

static bool is_hash(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* Takes size and hash of the file from the headers. */
static att_status describe(const search *s, const char *name, const att_reply *reply, att_hub_file *file)
{
    const bool large = *reply->linked_etag;
    const bool elsewhere = reply->code >= 300; /* then the length is not that of the file */
    const int64_t size = reply->linked_size >= 0 ? reply->linked_size : elsewhere ? -1 : reply->length;
    file->hash = large ? reply->linked_etag : reply->etag;
    file->kind = is_hash(file->hash, 64) ? ATT_SHA256 : ATT_GIT_SHA1;
    file->size = (uint64_t)size;
    if (file->kind == ATT_GIT_SHA1 && !is_hash(file->hash, 40))
        return att_fail(s->context, ATT_ERR_FORMAT,
                        "%s: %s states no hash; expected SHA-256 in X-Linked-Etag or git's SHA-1 in ETag", file->shown,
                        s->session.endpoint.host);
    if (size < 0)
        return att_fail(s->context, ATT_ERR_FORMAT, "%s: %s states no size", file->shown, s->session.endpoint.host);
    const int64_t most = most_of(name);
    if (size > most)
        return att_fail(s->context, ATT_ERR_FORMAT, "%s has %lld bytes; expected at most %lld", file->shown,
                        (long long)size, (long long)most);
    return ATT_OK;
}

/* Writes the path of the blob and takes its lock. */
static att_status open_blob(search *s, const att_hub_file *file, char blob[ATT_HUB_PATH], att_file_lock **lock)
{
    char lock_path[ATT_HUB_PATH], why[512];
    att_status status = att_hub_cache_blob(&s->cache, file->hash, blob, lock_path, sizeof lock_path);
    if (status == ATT_OK)
        status = att_file_lock_take(s->context, lock_path, file->shown, lock);
    if (status != ATT_ERR_IO)
        return status;
    snprintf(why, sizeof why, "%s", att_context_message(s->context));
    return att_fail(s->context, status, "%s cannot be downloaded into the cache: %s (HF_HUB_CACHE names another one)",
                    file->shown, why);
}

/* Another process may have finished the blob while this one waited for the lock. */
static att_status get_blob(search *s, att_hub_file *file)
{
    char blob[ATT_HUB_PATH];
    att_file_lock *lock = NULL;
    ATT_TRY(open_blob(s, file, blob, &lock));
    file->path = blob;
    att_status status = att_file_exists(blob) ? ATT_OK : att_hub_download(&s->session, file);
    att_file_lock_release(&lock);
    return status;
}

/* What the cache records only saves later requests, so a cache without write permission need not take it. */
static att_status may_fail(search *s, att_status status)
{
    if (status != ATT_ERR_IO)
        return status;
    att_log(s->context, ATT_LOG_INFO, "%s", att_context_message(s->context));
    return ATT_OK;
}

/* The first reply names the commit, which all later requests use. */
static att_status take_commit(search *s, const char *file, const att_reply *reply)
{
    if (*s->commit)
        return ATT_OK;
    if (!att_hub_is_commit(reply->commit))
        return att_fail(s->context, ATT_ERR_FORMAT,
                        "%s of %s: the reply of %s is not that of a Hub: it has no X-Repo-Commit", file,
                        s->name->repository, s->session.endpoint.host);
    memcpy(s->commit, reply->commit, sizeof s->commit);
    return ATT_OK;
}

/* The header of a file of weights that is being downloaded. */
typedef struct checking {
    search *search;
    const char *name;
    uint64_t size;
} checking;

/* Refuses weights of a network that attscope lacks. */
static att_status check_header(void *user, const char *part)
{
    const checking *c = user;
    att_context *context = c->search->context;
    char path[ATT_HUB_PATH];
    att_tensors *file;
    ATT_TRY(att_hub_cache_path(&c->search->cache, c->search->commit, c->name, path, sizeof path));
    ATT_TRY(att_tensors_open_part(context, part, path, c->size, &file));
    att_status status = att_layout_take(file, NULL);
    if (status == ATT_OK)
        status = att_family_check_tensors(context, file);
    att_tensors_close(&file);
    return status;
}

/* *found: false if the commit has no such file. */
static att_status get(search *s, const char *name, bool *found)
{
    char url[ATT_URL], shown[400];
    att_reply reply;
    *found = true;
    if (att_hub_cache_has(&s->cache, s->commit, name))
        return ATT_OK;
    snprintf(shown, sizeof shown, "%s of %s", name, s->name->repository);
    address(s, name, url);
    ATT_TRY(att_hub_head(&s->session, shown, url, &reply));
    *found = reply.code < 400;
    if (!*found && !(reply.code == 404 && strcmp(reply.error, "EntryNotFound") == 0))
        return fail_code(s, name, &reply);
    ATT_TRY(take_commit(s, name, &reply));
    if (!*found)
        return may_fail(s, att_hub_cache_set_lacks(&s->cache, s->commit, name));
    if (att_hub_cache_has(&s->cache, s->commit, name)) /* under another name of the commit */
        return ATT_OK;
    address(s, name, url);
    checking check = {s, name, 0};
    att_hub_file file = {.shown = shown, .url = url, .user = &check};
    ATT_TRY(describe(s, name, &reply, &file));
    check.size = file.size;
    if (strcmp(name, weights[0]) == 0)
        file.check = check_header;
    ATT_TRY(get_blob(s, &file));
    return att_hub_cache_link(&s->cache, s->commit, name, file.hash);
}

static att_status get_shard(search *s, const char *index, const char *file)
{
    bool found;
    if (att_hub_cache_has(&s->cache, s->commit, file))
        return ATT_OK;
    if (s->shards++ == MOST_SHARDS)
        return att_fail(s->context, ATT_ERR_FORMAT, "%s: its %s names more than %d files", s->name->repository, index,
                        MOST_SHARDS);
    ATT_TRY(get(s, file, &found));
    return found ? ATT_OK
                 : att_fail(s->context, ATT_ERR_FORMAT, "%s: its %s names %s, which it does not have",
                            s->name->repository, index, file);
}

/* Downloads the configuration if there is one, and what belongs to it. */
static att_status get_side_files(search *s)
{
    att_layout_reads reads;
    bool found;
    if (!knows(s, CONFIG))
        ATT_TRY(get(s, CONFIG, &found));
    ATT_TRY(check_config(s, &reads));
    for (int i = 0; i < SIDE_FILES; i++)
        if (is_wanted(s, &side_files[i], reads))
            ATT_TRY(get(s, side_files[i].name, &found));
    return ATT_OK;
}

/* Downloads side files and the preferred file of weights. */
static att_status get_weights(search *s, const char **file)
{
    bool found = false;
    ATT_TRY(get_side_files(s));
    *file = find_cached(s);
    for (int i = 0; i < KINDS && !*file; i++) {
        ATT_TRY(get(s, weights[i], &found));
        *file = found ? weights[i] : NULL;
    }
    if (!*file)
        return att_fail(s->context, ATT_ERR_NOT_FOUND,
                        "%s has no weights; expected model.safetensors or pytorch_model.bin, or the index of either",
                        s->name->repository);
    if (is_index(*file))
        ATT_TRY(each_shard(s, *file, get_shard));
    return att_hub_is_commit(s->name->revision)
               ? ATT_OK
               : may_fail(s, att_hub_cache_set_commit(&s->cache, s->name->revision, s->commit));
}

static att_status download(search *s, const char **file)
{
    att_status status = att_hub_session_open(s->context, s->settings, s->name->repository, &s->session);
    if (status == ATT_OK)
        status = get_weights(s, file);
    att_hub_session_close(&s->session);
    return status;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static att_status fail_offline(const search *s)
{
    char what[ATT_HUB_PATH + 128];
    snprintf(what, sizeof what, "not in the cache %s, and HF_HUB_OFFLINE forbids to download it", s->settings->cache);
    return fail_with_suggestion(s, what);
}

/* A download that fails does not matter if the cache has weights, and only side files are missing. */
static att_status find(search *s, const char **file)
{
    ATT_TRY(att_hub_cache_commit(&s->cache, s->name->revision, s->commit));
    *file = find_cached(s);
    const char *cached = *file;
    if (cached && (s->settings->offline || knows_side_files(s)))
        return ATT_OK;
    ATT_TRY(att_hub_name_check(s->context, s->name));
    if (s->settings->offline)
        return fail_offline(s);
    if (!cached && !att_hub_is_commit(s->name->revision))
        *s->commit = '\0'; /* the branch may have moved */
    att_status status = download(s, file);
    if (!cached || status == ATT_OK || status == ATT_ERR_STOPPED || status == ATT_ERR_MEMORY)
        return status;
    att_log(s->context, ATT_LOG_WARNING, "%s is used with those of its settings that are in the cache: %s",
            s->name->repository, att_context_message(s->context));
    *file = cached;
    return ATT_OK;
}

att_status att_hub_repository_find(att_context *context, const att_hub_settings *settings, const att_hub_name *name,
                                   char *path, size_t size)
{
    search s = {.context = context, .settings = settings, .name = name};
    const char *file;
    ATT_TRY(att_hub_cache_of(context, settings, name->repository, &s.cache));
    ATT_TRY(find(&s, &file));
    return att_hub_cache_path(&s.cache, s.commit, file, path, size);
}
