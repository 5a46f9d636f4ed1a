/* hub/cache.h - the cache of the Hub's Python client (huggingface_hub). In the folder models--ORG--NAME:
 *
 *   blobs/HASH              contents of a file; HASH: SHA-256 of a large file, git's SHA-1 of another
 *   snapshots/COMMIT/FILE   symbolic link to the blob
 *   refs/REVISION           commit of a branch or tag
 *   .no_exist/COMMIT/FILE   empty: the commit has no such file
 *
 * Beside it, .locks/models--ORG--NAME/HASH.lock locks a blob while it is written.
 */
#ifndef ATT_HUB_CACHE_H
#define ATT_HUB_CACHE_H

#include "networks/hub/name.h"
#include "networks/hub/settings.h"

enum { ATT_COMMIT = 41 };

typedef struct att_hub_cache {
    att_context *context;
    char folder[ATT_HUB_PATH]; /* of the repository */
    char locks[ATT_HUB_PATH];
    size_t root; /* length of the path of the whole cache, with which both begin */
} att_hub_cache;

/* Errors: ERR_ARGUMENT (an unknown cache; a path that is too long). */
att_status att_hub_cache_of(att_context *context, const att_hub_settings *settings, const char *repository,
                            att_hub_cache *cache);

/* Writes the commit of the revision; "" if the cache does not know it. */
att_status att_hub_cache_commit(const att_hub_cache *cache, const char *revision, char commit[ATT_COMMIT]);
/* Writes the path that the file of the commit has, whether it exists or not. */
att_status att_hub_cache_path(const att_hub_cache *cache, const char *commit, const char *file, char *path,
                              size_t size);
bool att_hub_cache_has(const att_hub_cache *cache, const char *commit, const char *file);
/* Whether the cache records that the commit has no such file. */
bool att_hub_cache_lacks(const att_hub_cache *cache, const char *commit, const char *file);

/* These create missing folders, and write nothing through a folder of the cache that is a symbolic link; the cache
 * itself may be one. Errors: ERR_IO, ERR_ARGUMENT (a path that is too long), ERR_MEMORY. */
att_status att_hub_cache_set_commit(const att_hub_cache *cache, const char *revision, const char *commit);
att_status att_hub_cache_set_lacks(const att_hub_cache *cache, const char *commit, const char *file);
/* Writes the paths of the blob with this hash and of its lock. */
att_status att_hub_cache_blob(const att_hub_cache *cache, const char *hash, char *blob, char *lock, size_t size);
/* Makes the link of the file to the blob. */
att_status att_hub_cache_link(const att_hub_cache *cache, const char *commit, const char *file, const char *hash);

#endif
