/* hub/hub.h - att_hub_find() with given settings. */
#ifndef ATT_HUB_HUB_H
#define ATT_HUB_HUB_H

#include <attscope/hub.h>

#include "networks/hub/settings.h"

/* As att_hub_find(), with settings that do not come from the environment. */
att_status att_hub_find_with(att_context *context, const att_hub_settings *settings, const char *name, char *path,
                             size_t size);

/* Finds the weights of a name in the caches, or downloads them, and writes the path of their file. The log says what is
 * downloaded.
 * Errors, each with one sentence: ERR_ARGUMENT (not such a name, or `path` is too small); ERR_NOT_FOUND (no such
 * repository, revision, weights or network, with the nearest known name; or not in the cache and HF_HUB_OFFLINE is
 * set); ERR_UNSUPPORTED (a network of timm's that attscope lacks; a build without libcurl; an address that is not
 * HTTPS); ERR_FORMAT (a reply that is no Hub's; wrong sizes or hashes); ERR_IO (no connection, a full disk);
 * ERR_STOPPED (att_settings.stop, or the callback below); ERR_MEMORY. */
ATT_MUST_CHECK att_status att_hub_find(att_context *context, const char *name, char *path, size_t size);

#endif
