#include "networks/hub/download.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/safetensors.h"

enum { MOST_REDIRECTS = 10, MOST_FAILURES = 5, READ_BYTES = 1 << 16 };

att_status att_hub_session_open(att_context *context, const att_hub_settings *settings, const char *what,
                                att_hub_session *session)
{
    char why[512];
    *session = (att_hub_session){.context = context, .settings = settings};
    if (!att_url_parse(settings->endpoint, &session->endpoint))
        return att_fail(context, ATT_ERR_INTERNAL, "%s is no address", settings->endpoint);
    att_status status = att_transport_open(context, settings->seconds, &session->transport);
    if (status != ATT_ERR_UNSUPPORTED)
        return status;
    snprintf(why, sizeof why, "%s", att_context_message(context));
    return att_fail(context, status, "%s: not in the cache, and %s", what, why);
}

void att_hub_session_close(att_hub_session *session)
{
    att_transport_close(&session->transport);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static bool is_redirect(int code)
{
    return code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
}

/* Whether the server asks to come back later. */
static bool is_overloaded(int code)
{
    return code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
}

static att_status check_address(const att_hub_session *s, const char *url, const char *about, att_origin *to)
{
    if (!att_url_parse(url, to))
        return att_fail(s->context, ATT_ERR_UNSUPPORTED, "%s: redirected to \"%.60s\"; expected an https:// address",
                        about, url);
    if (!att_origin_allowed(&s->endpoint, to))
        return att_fail(s->context, ATT_ERR_UNSUPPORTED,
                        "%s: redirected to http://%s, which is not encrypted; expected an https:// address", about,
                        to->host);
    return ATT_OK;
}

/* Whether the headers of a redirect have all that a Hub says about a large file. The target has less. */
static bool describes_file(const att_reply *reply)
{
    return *reply->linked_etag && *reply->commit && reply->linked_size >= 0;
}

enum { ABOUT = 600 };

/* Sends the request, and those that redirects lead to. everywhere: follow redirects to other servers, too. about: what
 * messages begin with, here the file; afterwards also the server that replied last. */
static att_status follow(const att_hub_session *s, const char *url, bool everywhere, att_request request,
                         att_reply *reply, char about[ABOUT], bool *again)
{
    char address[ATT_URL], shown[ABOUT / 2];
    att_origin at, to;
    *again = false;
    snprintf(shown, sizeof shown, "%.290s", about);
    snprintf(address, sizeof address, "%s", url);
    ATT_TRY(check_address(s, address, about, &at));
    for (int redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
        snprintf(about, ABOUT, "%s: %s", shown, at.host);
        request.url = address;
        request.about = about;
        request.token = att_origin_same(&at, &s->endpoint) ? s->settings->token : "";
        ATT_TRY(att_transport_send(s->transport, &request, reply, again));
        if (!is_redirect(reply->code))
            return ATT_OK;
        if (!*reply->location)
            return att_fail(s->context, ATT_ERR_FORMAT, "%s: redirected to no address or to one that is too long",
                            about);
        ATT_TRY(check_address(s, reply->location, about, &to));
        if (!everywhere && (describes_file(reply) || !att_origin_same(&at, &to)))
            return ATT_OK;
        snprintf(address, sizeof address, "%s", reply->location);
        at = to;
    }
    return att_fail(s->context, ATT_ERR_FORMAT, "%s: more than %d redirects", about, MOST_REDIRECTS);
}

/* Waits before the next attempt, the longer the more attempts have failed. */
static att_status pause_after(const att_hub_session *s, int failures)
{
    enum { STEP_MS = 100 };
    for (int left = s->settings->pause_ms << (failures - 1); left > 0; left -= STEP_MS) {
        const struct timespec some = {.tv_nsec = 1000 * 1000 * (left < STEP_MS ? left : STEP_MS)};
        ATT_TRY(att_check_stop(s->context, "a download"));
        nanosleep(&some, NULL);
    }
    return ATT_OK;
}

att_status att_hub_head(att_hub_session *session, const char *shown, const char *url, att_reply *reply)
{
    for (int failures = 1;; failures++) {
        char about[ABOUT];
        bool again;
        snprintf(about, sizeof about, "%s", shown);
        att_status status = follow(session, url, false, (att_request){.head = true}, reply, about, &again);
        bool retry = status == ATT_OK ? is_overloaded(reply->code) : again;
        if (!retry || failures == MOST_FAILURES)
            return status;
        ATT_TRY(pause_after(session, failures));
    }
}

/* --- progress ----------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- the transfer ------------------------------------------------------------------------------------------------- */

typedef struct transfer {
    att_hub_session *session;
    const att_hub_file *file;
    char part[ATT_HUB_PATH]; /* "<path>.incomplete" */
    att_file_appender *appender;
    att_digest digest;      /* of what the part holds */
    uint64_t have, resumed; /* bytes in the part, and those that it had at first */
    uint64_t most;          /* bytes that it had at any time */
    uint64_t goal;          /* bytes that it shall have; the whole file or its beginning */
    double begun;
    att_status status; /* of the body's reader */
    bool replied;      /* the reply to the present attempt was checked */
} transfer;

static att_status fail_size(const transfer *t, const char *what, int64_t size)
{
    return att_fail(t->session->context, ATT_ERR_FORMAT, "%s: %s %" PRId64 " bytes; expected %" PRIu64, t->file->shown,
                    what, size, t->file->size);
}

/* Reports the progress; `have` bytes are there. */
static att_status report(const transfer *t, uint64_t have)
{
    double seconds = now() - t->begun;
    double speed = seconds > 0 ? (double)(t->have - t->resumed) / seconds : 0;
    const att_progress progress = {.stage = "download",
                                   .batch = (int64_t)have,
                                   .batches = (int64_t)t->file->size,
                                   .done = (int64_t)(have / 1000000),
                                   .total = (int64_t)(t->file->size / 1000000),
                                   .images_per_second = speed / 1e6,
                                   .seconds_left = speed > 0 ? (double)(t->file->size - have) / speed : NAN,
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .unit = "MB"};
    if (!att_context_show_progress(t->session->context, &progress))
        return att_fail(t->session->context, ATT_ERR_STOPPED, "the download of %s was stopped", t->file->shown);
    return ATT_OK;
}

/* Empties the part. */
static att_status start_over(transfer *t)
{
    att_file_appender_close(&t->appender);
    ATT_TRY(att_file_appender_open(t->session->context, t->part, 0, &t->appender));
    att_digest_begin(&t->digest, t->file->kind, t->file->size);
    t->have = t->resumed = 0;
    return ATT_OK;
}

static att_status check_reply(transfer *t, const att_reply *reply)
{
    t->replied = true;
    if (reply->code == 200 && t->have > 0)
        ATT_TRY(start_over(t)); /* the server does not continue files */
    if (reply->code == 206 && (reply->range_begin != (int64_t)t->have || reply->range_total != (int64_t)t->file->size))
        return att_fail(t->session->context, ATT_ERR_FORMAT,
                        "%s: the server sends bytes from %" PRId64 " of %" PRId64 "; expected from %" PRIu64
                        " of %" PRIu64,
                        t->file->shown, reply->range_begin, reply->range_total, t->have, t->file->size);
    if (reply->code == 200 && reply->length >= 0 && reply->length != (int64_t)t->file->size)
        return fail_size(t, "the server sends", reply->length);
    return ATT_OK;
}

static att_status take(transfer *t, const att_reply *reply, const void *bytes, size_t size)
{
    if (!t->replied)
        ATT_TRY(check_reply(t, reply));
    if (size > t->file->size - t->have)
        return fail_size(t, "the server sends more than", (int64_t)t->file->size);
    ATT_TRY(att_file_appender_write(t->appender, bytes, size));
    att_digest_add(&t->digest, bytes, size);
    t->have += size;
    return report(t, t->have);
}

static bool take_body(void *user, const att_reply *reply, const void *bytes, size_t size)
{
    transfer *t = user;
    if (reply->code != 200 && reply->code != 206)
        return false;
    t->status = take(t, reply, bytes, size);
    return t->status == ATT_OK && (t->have < t->goal || t->goal == t->file->size);
}

/* Requests what the part lacks. *again: whether another attempt may succeed. */
static att_status attempt(transfer *t, bool *again)
{
    const uint64_t end = t->goal < t->file->size ? t->goal : 0;
    const att_request request = {.from = t->have, .to = end, .body = take_body, .user = t};
    att_reply reply;
    char about[ABOUT];
    t->replied = false;
    t->status = ATT_OK;
    snprintf(about, sizeof about, "%s", t->file->shown);
    att_status status = follow(t->session, t->file->url, true, request, &reply, about, again);
    if (t->status != ATT_OK)
        return t->status;
    if (status != ATT_OK || t->have >= t->goal)
        return status;
    *again = is_overloaded(reply.code) || reply.code == 200 || reply.code == 206 || reply.code == 416;
    if (reply.code == 416) /* the part has more bytes than the server's file */
        ATT_TRY(start_over(t));
    if (reply.code == 200 || reply.code == 206)
        return att_fail(t->session->context, ATT_ERR_IO, "%s: the server ends after %" PRIu64 " of %" PRIu64 " bytes",
                        t->file->shown, t->have, t->file->size);
    return att_fail(t->session->context, ATT_ERR_IO, "%s: answers with HTTP status %d", about, reply.code);
}

/* Requests the file up to byte `goal`. */
static att_status transfer_to(transfer *t, uint64_t goal)
{
    t->goal = goal;
    for (int failures = 0; t->have < t->goal;) {
        bool again;
        att_status status = attempt(t, &again);
        if (status == ATT_OK)
            continue;
        failures = t->have > t->most ? 1 : failures + 1; /* bytes that come once more, after an empty part, are none */
        t->most = t->have > t->most ? t->have : t->most;
        if (!again || failures == MOST_FAILURES)
            return status;
        ATT_TRY(pause_after(t->session, failures));
    }
    return ATT_OK;
}

/* --- the part ----------------------------------------------------------------------------------------------------- */

/* Adds what an earlier download left to the digest. */
static att_status digest_part(transfer *t, uint64_t size)
{
    uint8_t bytes[READ_BYTES];
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(t->session->context, t->part, &reader));
    att_status status = ATT_OK;
    while (t->have < size && status == ATT_OK) {
        size_t some = size - t->have < sizeof bytes ? (size_t)(size - t->have) : sizeof bytes;
        status = att_file_reader_read(reader, t->have, bytes, some);
        att_digest_add(&t->digest, bytes, some);
        t->have += some;
    }
    att_file_reader_close(&reader);
    return status;
}

static att_status open_part(transfer *t)
{
    struct stat found;
    uint64_t size = lstat(t->part, &found) == 0 && S_ISREG(found.st_mode) ? (uint64_t)found.st_size : 0;
    if (size > t->file->size)
        size = 0;
    att_digest_begin(&t->digest, t->file->kind, t->file->size);
    if (size > 0)
        ATT_TRY(digest_part(t, size));
    t->resumed = t->most = t->have;
    return att_file_appender_open(t->session->context, t->part, size, &t->appender);
}

static att_status check_room(const transfer *t)
{
    char folder[ATT_HUB_PATH], needs[32], has[32];
    ATT_TRY(att_path_folder(t->session->context, t->part, folder, sizeof folder));
    uint64_t room = att_file_free_bytes(folder);
    if (room >= t->file->size - t->have)
        return ATT_OK;
    return att_fail(t->session->context, ATT_ERR_IO, "%s does not fit on the disk: it needs %s in %s, which has %s",
                    t->file->shown, att_size_format((size_t)(t->file->size - t->have), needs, sizeof needs), folder,
                    att_size_format((size_t)room, has, sizeof has));
}

static bool is_right(const transfer *t)
{
    char hash[ATT_DIGEST_TEXT];
    att_digest digest = t->digest;
    att_digest_end(&digest, hash);
    return strncmp(hash, t->file->hash, strlen(t->file->hash)) == 0;
}

/* The part of an earlier download may have been damaged, so it is replaced once. */
static att_status get_right(transfer *t)
{
    ATT_TRY(transfer_to(t, t->file->size));
    if (is_right(t))
        return ATT_OK;
    if (t->resumed > 0) {
        ATT_TRY(start_over(t));
        t->most = 0;
        ATT_TRY(transfer_to(t, t->file->size));
        if (is_right(t))
            return ATT_OK;
    }
    unlink(t->part);
    return att_fail(t->session->context, ATT_ERR_FORMAT, "%s: what the server sent is damaged: its %s is not %s",
                    t->file->shown, t->file->kind == ATT_SHA256 ? "SHA-256" : "SHA-1 (git's)", t->file->hash);
}

/* Reads the length of a safetensors header at the beginning of the part. */
static att_status read_header_length(const transfer *t, uint64_t *length)
{
    uint8_t bytes[ATT_SAFETENSORS_LENGTH_BYTES];
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(t->session->context, t->part, &reader));
    att_status status = att_file_reader_read(reader, 0, bytes, sizeof bytes);
    att_file_reader_close(&reader);
    *length = 0;
    for (int i = ATT_SAFETENSORS_LENGTH_BYTES; i-- > 0;)
        *length = *length << 8 | bytes[i];
    return status;
}

/* Downloads the header of a large file, and has it checked. */
static att_status check_beginning(transfer *t)
{
    enum { SMALL = 1 << 20, FIRST = 1 << 16 };
    uint64_t header;
    if (!t->file->check || t->file->size <= SMALL)
        return ATT_OK;
    ATT_TRY(transfer_to(t, FIRST));
    ATT_TRY(read_header_length(t, &header));
    if (header > ATT_SAFETENSORS_MAX_HEADER || header > t->file->size - ATT_SAFETENSORS_LENGTH_BYTES)
        return ATT_OK; /* no safetensors file: the reader will say what it is */
    ATT_TRY(transfer_to(t, ATT_SAFETENSORS_LENGTH_BYTES + header));
    att_status status = t->file->check(t->file->user, t->part);
    if (status != ATT_OK)
        unlink(t->part);
    return status;
}

static att_status finish(transfer *t)
{
    ATT_TRY(att_file_appender_sync(t->appender));
    if (rename(t->part, t->file->path) != 0)
        return att_fail(t->session->context, ATT_ERR_IO, "%s could not be moved to %s", t->part, t->file->path);
    return ATT_OK;
}

static att_status run(transfer *t)
{
    char size[32];
    ATT_TRY(open_part(t));
    ATT_TRY(check_room(t));
    att_log(t->session->context, ATT_LOG_INFO, "downloading %s (%s%s)", t->file->shown,
            att_size_format((size_t)t->file->size, size, sizeof size), t->have > 0 ? ", continued" : "");
    t->begun = now();
    ATT_TRY(check_beginning(t));
    ATT_TRY(report(t, 0));
    ATT_TRY(get_right(t));
    ATT_TRY(report(t, t->file->size));
    return finish(t);
}

att_status att_hub_download(att_hub_session *session, const att_hub_file *file)
{
    transfer t = {.session = session, .file = file};
    int length = snprintf(t.part, sizeof t.part, "%s.incomplete", file->path);
    if (length < 0 || length >= (int)sizeof t.part)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "the path of the cache is too long: %.100s...", file->path);
    att_status status = run(&t);
    att_file_appender_close(&t.appender);
    return status;
}
