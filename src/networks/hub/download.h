/* hub/download.h - requests with redirects, and the download of one verified file. */
#ifndef ATT_HUB_DOWNLOAD_H
#define ATT_HUB_DOWNLOAD_H

#include "networks/hub/digest.h"
#include "networks/hub/settings.h"
#include "networks/hub/transport.h"
#include "networks/hub/url.h"

/* The connections of one look-up. */
typedef struct att_hub_session {
    att_context *context;
    const att_hub_settings *settings;
    att_origin endpoint; /* of the Hub: the server that gets the token */
    att_transport *transport;
} att_hub_session;

/* what: the weights that are not in a cache, for messages. Fails with ERR_UNSUPPORTED in a build without libcurl. */
att_status att_hub_session_open(att_context *context, const att_hub_settings *settings, const char *what,
                                att_hub_session *session);
void att_hub_session_close(att_hub_session *session);

/* Requests the headers at `url`. shown: for messages, as in att_hub_file. Follows redirects within the same server, as
 * the Hub uses for renamed repositories. A redirect that describes a large file, or leads to another server, is the
 * reply. Repeats the request if the server
 * cannot be reached or is overloaded. Errors: ERR_IO, ERR_UNSUPPORTED (an address that is not allowed), ERR_FORMAT,
 * ERR_STOPPED, ERR_MEMORY. */
att_status att_hub_head(att_hub_session *session, const char *shown, const char *url, att_reply *reply);

typedef struct att_hub_file {
    const char *shown; /* for messages: "model.safetensors of timm/..." */
    const char *url;
    uint64_t size;
    att_digest_kind kind;
    const char *hash; /* hexadecimal, in lower case; SHA-256 may be shortened to its first digits */
    const char *path; /* of the finished file */
    /* Called when the header of a safetensors file of more than 1 MiB is in the file `part`, before the rest is
     * requested; an error ends the download and removes what is there. NULL: not called. */
    att_status (*check)(void *user, const char *part);
    void *user;
} att_hub_file;

/* Downloads the file to "<path>.incomplete", continues such a file if it exists, verifies it and renames it to `path`.
 * The caller has the lock of the file. After a failure "<path>.incomplete" stays, unless its contents are wrong.
 * Errors: as above; ERR_FORMAT also if size or hash differ; ERR_IO also if the disk is full. */
att_status att_hub_download(att_hub_session *session, const att_hub_file *file);

#endif
