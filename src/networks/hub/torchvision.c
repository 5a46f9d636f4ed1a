#include "networks/hub/torchvision.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "networks/hub/download.h"
#include "networks/models/torchvision.h"

enum { FULL_NAME = 128, HASH_DIGITS = 8 };

/* --- names -------------------------------------------------------------------------------------------------------- */

static const char *network_name(const void *user, int index)
{
    (void)user;
    return att_torchvision_all[index].network;
}

static att_status fail_network(att_context *context, const char *network)
{
    const char *nearest = att_text_nearest(network, network_name, NULL, att_torchvision_count);
    if (nearest)
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "torchvision has no network \"%.64s\" that attscope can load; did you mean \"%s\"?", network,
                        nearest);
    att_text known = {.context = context};
    for (int i = 0; i < att_torchvision_count; i++)
        if (i == 0 || strcmp(att_torchvision_all[i].network, att_torchvision_all[i - 1].network) != 0)
            att_text_append(&known, "%s%s", i ? ", " : "", att_torchvision_all[i].network);
    att_status status = known.failed
                            ? att_fail_memory(context, 256, "a message")
                            : att_fail(context, ATT_ERR_NOT_FOUND,
                                       "torchvision has no network \"%.64s\" that attscope can load; these are %s",
                                       network, known.data);
    att_text_free(&known);
    return status;
}

/* first: the network's first entry of `count`. */
static att_status fail_weights(att_context *context, const att_torchvision *first, int count, const char *weights)
{
    att_text known = {.context = context};
    for (int i = 0; i < count; i++)
        att_text_append(&known, "%s%s", i == 0 ? "" : i < count - 1 ? ", " : " and ", first[i].weights);
    att_status status =
        known.failed ? att_fail_memory(context, 256, "a message")
                     : att_fail(context, ATT_ERR_NOT_FOUND, "torchvision's %s has no weights \"%.64s\"; it has %s",
                                first->network, weights, known.data);
    att_text_free(&known);
    return status;
}

/* Finds the entry of "NETWORK.WEIGHTS". */
static att_status find_entry(att_context *context, const char *text, const att_torchvision **found)
{
    char network[FULL_NAME];
    const char *dot = strchr(text, '.');
    int first = 0, count = 0;
    snprintf(network, sizeof network, "%.*s", dot ? (int)(dot - text) : (int)sizeof network - 1, text);
    while (first < att_torchvision_count && strcmp(att_torchvision_all[first].network, network) != 0)
        first++;
    if (first == att_torchvision_count)
        return fail_network(context, network);
    const att_torchvision *entry = &att_torchvision_all[first];
    while (first + count < att_torchvision_count && strcmp(entry[count].network, network) == 0)
        count++;
    *found = entry;
    if (!dot || strcmp(dot + 1, "DEFAULT") == 0)
        return ATT_OK;
    for (*found = entry; *found < entry + count; (*found)++)
        if (strcmp((*found)->weights, dot + 1) == 0)
            return ATT_OK;
    return fail_weights(context, entry, count, dot + 1);
}

/* --- downloads ---------------------------------------------------------------------------------------------------- */

static att_status describe(att_hub_session *session, att_hub_file *file)
{
    att_reply reply;
    ATT_TRY(att_hub_head(session, file->shown, file->url, &reply));
    if (reply.code != 200)
        return att_fail(session->context, ATT_ERR_IO, "%s: the server answers with HTTP status %d", file->shown,
                        reply.code);
    if (reply.length < 0)
        return att_fail(session->context, ATT_ERR_FORMAT, "%s: the server states no size", file->shown);
    file->size = (uint64_t)reply.length;
    return ATT_OK;
}

static att_status download(att_context *context, const att_hub_settings *settings, att_hub_file *file)
{
    att_hub_session session;
    att_status status = att_hub_session_open(context, settings, file->shown, &session);
    if (status == ATT_OK)
        status = describe(&session, file);
    if (status == ATT_OK)
        status = att_hub_download(&session, file);
    att_hub_session_close(&session);
    return status;
}

/* Downloads the entry's file to `path`. Another process may have done that while this one waited for the lock. */
static att_status get(att_context *context, const att_hub_settings *settings, const att_torchvision *entry,
                      const char *path)
{
    char url[ATT_URL], shown[FULL_NAME], hash[HASH_DIGITS + 1], lock_path[ATT_HUB_PATH + 8];
    att_file_lock *lock = NULL;
    snprintf(url, sizeof url, "%s/%s", settings->torch_server, entry->file);
    snprintf(shown, sizeof shown, "torchvision's %s", entry->file);
    snprintf(hash, sizeof hash, "%s", strrchr(entry->file, '-') + 1);
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    att_hub_file file = {.shown = shown, .url = url, .kind = ATT_SHA256, .hash = hash, .path = path};
    ATT_TRY(att_file_make_folders(context, settings->torch));
    ATT_TRY(att_file_lock_take(context, lock_path, shown, &lock));
    att_status status = att_file_exists(path) ? ATT_OK : download(context, settings, &file);
    unlink(lock_path); /* torch.hub knows no such files */
    att_file_lock_release(&lock);
    return status;
}

att_status att_hub_torchvision_find(att_context *context, const att_hub_settings *settings, const char *text,
                                    char *path, size_t size)
{
    const att_torchvision *entry = NULL;
    char file[ATT_HUB_PATH];
    ATT_TRY(find_entry(context, text, &entry));
    ATT_TRY(att_hub_settings_require(context, settings->torch, "TORCH_HOME"));
    ATT_TRY(att_path_join(context, settings->torch, entry->file, file, sizeof file));
    if (!att_file_exists(file) && settings->offline)
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "torchvision's %s is not in %s, and HF_HUB_OFFLINE forbids to download it", entry->file,
                        settings->torch);
    if (!att_file_exists(file))
        ATT_TRY(get(context, settings, entry, file));
    return att_path_copy(context, file, path, size);
}
