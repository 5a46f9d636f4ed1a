#include "networks/hub/cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/system.h"

enum { MOST_REF = 1 << 10 };

/* Writes "CACHE/models--ORG--NAME". */
static att_status join_repository(att_context *context, const char *cache, const char *repository, char *path)
{
    char name[128];
    const char *slash = strchr(repository, '/');
    snprintf(name, sizeof name, "models--%.*s--%s", (int)(slash - repository), repository, slash + 1);
    return att_path_join(context, cache, name, path, ATT_HUB_PATH);
}

att_status att_hub_cache_of(att_context *context, const att_hub_settings *settings, const char *repository,
                            att_hub_cache *cache)
{
    char locks[ATT_HUB_PATH];
    cache->context = context;
    cache->root = strlen(settings->cache);
    ATT_TRY(att_hub_settings_require(context, settings->cache, "HF_HUB_CACHE"));
    ATT_TRY(join_repository(context, settings->cache, repository, cache->folder));
    ATT_TRY(att_path_join(context, settings->cache, ".locks", locks, sizeof locks));
    return join_repository(context, locks, repository, cache->locks);
}

/* Writes "FOLDER/AREA/BETWEEN/FILE". */
static att_status join(const att_hub_cache *cache, const char *area, const char *between, const char *file, char *path,
                       size_t size)
{
    char in_area[ATT_HUB_PATH], in_between[ATT_HUB_PATH];
    ATT_TRY(att_path_join(cache->context, cache->folder, area, in_area, sizeof in_area));
    ATT_TRY(att_path_join(cache->context, in_area, between, in_between, sizeof in_between));
    return att_path_join(cache->context, in_between, file, path, size);
}

static bool exists(const att_hub_cache *cache, const char *area, const char *commit, const char *file)
{
    char path[ATT_HUB_PATH];
    return *commit && join(cache, area, commit, file, path, sizeof path) == ATT_OK && att_file_exists(path);
}

att_status att_hub_cache_commit(const att_hub_cache *cache, const char *revision, char commit[ATT_COMMIT])
{
    char path[ATT_HUB_PATH], *text;
    size_t size;
    *commit = '\0';
    if (att_hub_is_commit(revision)) {
        memcpy(commit, revision, ATT_COMMIT);
        return ATT_OK;
    }
    ATT_TRY(join(cache, "refs", "", revision, path, sizeof path));
    if (!att_file_exists(path) || att_file_is_folder(path))
        return ATT_OK;
    ATT_TRY(att_file_read(cache->context, path, MOST_REF, &text, &size));
    text[strcspn(text, "\r\n")] = '\0';
    if (att_hub_is_commit(text))
        memcpy(commit, text, ATT_COMMIT);
    att_free(cache->context, text);
    return ATT_OK;
}

att_status att_hub_cache_path(const att_hub_cache *cache, const char *commit, const char *file, char *path, size_t size)
{
    return join(cache, "snapshots", commit, file, path, size);
}

bool att_hub_cache_has(const att_hub_cache *cache, const char *commit, const char *file)
{
    return exists(cache, "snapshots", commit, file);
}

bool att_hub_cache_lacks(const att_hub_cache *cache, const char *commit, const char *file)
{
    return exists(cache, ".no_exist", commit, file);
}

/* The cache may have come from somebody else, and a link in it may lead to any folder of the user. */
static att_status check_folders(const att_hub_cache *cache, char *path)
{
    for (char *end = path + cache->root; end;) {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        if (att_system_is_link(path))
            return att_fail(cache->context, ATT_ERR_IO,
                            "%s is a symbolic link, which is not followed for writing: remove it, or put the folder "
                            "that it leads to in its place",
                            path);
        if (end)
            *end = '/';
    }
    return ATT_OK;
}

static att_status make_folder_of(const att_hub_cache *cache, const char *path)
{
    char folder[ATT_HUB_PATH];
    ATT_TRY(att_path_folder(cache->context, path, folder, sizeof folder));
    ATT_TRY(check_folders(cache, folder));
    return att_file_make_folders(cache->context, folder);
}

att_status att_hub_cache_set_commit(const att_hub_cache *cache, const char *revision, const char *commit)
{
    char path[ATT_HUB_PATH], known[ATT_COMMIT];
    ATT_TRY(att_hub_cache_commit(cache, revision, known));
    if (strcmp(known, commit) == 0)
        return ATT_OK;
    ATT_TRY(join(cache, "refs", "", revision, path, sizeof path));
    ATT_TRY(make_folder_of(cache, path));
    return att_file_replace(cache->context, path, commit, strlen(commit));
}

att_status att_hub_cache_set_lacks(const att_hub_cache *cache, const char *commit, const char *file)
{
    char path[ATT_HUB_PATH];
    ATT_TRY(join(cache, ".no_exist", commit, file, path, sizeof path));
    ATT_TRY(make_folder_of(cache, path));
    return att_file_replace(cache->context, path, "", 0);
}

att_status att_hub_cache_blob(const att_hub_cache *cache, const char *hash, char *blob, char *lock, size_t size)
{
    char name[80];
    snprintf(name, sizeof name, "%.70s.lock", hash);
    ATT_TRY(join(cache, "blobs", "", hash, blob, size));
    ATT_TRY(make_folder_of(cache, blob));
    ATT_TRY(att_path_join(cache->context, cache->locks, name, lock, size));
    return make_folder_of(cache, lock);
}

/* A link of the same name is replaced in one step, so that other processes always find one. */
att_status att_hub_cache_link(const att_hub_cache *cache, const char *commit, const char *file, const char *hash)
{
    char path[ATT_HUB_PATH], made[ATT_HUB_PATH + 32], target[128];
    ATT_TRY(att_hub_cache_path(cache, commit, file, path, sizeof path));
    ATT_TRY(make_folder_of(cache, path));
    snprintf(made, sizeof made, "%s.%ld.link", path, (long)getpid());
    snprintf(target, sizeof target, "../../blobs/%.70s", hash);
    unlink(made);
    if (symlink(target, made) == 0 && rename(made, path) == 0)
        return ATT_OK;
    int code = errno;
    unlink(made);
    return att_fail(cache->context, ATT_ERR_IO,
                    "%s could not be linked to its contents: %s; the cache needs a file system "
                    "with symbolic links (HF_HUB_CACHE)",
                    path, strerror(code));
}
