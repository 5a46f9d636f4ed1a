/* HTTP through libcurl. */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/hub/certificates.h"
#include "networks/hub/transport.h"

enum { MOST_HEADER_BYTES = 1 << 18, MOST_REDIRECT_BODY = 1 << 20, BUFFER = 1 << 18 };

struct att_transport {
    att_context *context;
    CURL *curl;
    char why[CURL_ERROR_SIZE];
};

/* One request under way. */
typedef struct exchange {
    att_transport *transport;
    const att_request *request;
    att_reply *reply;
    size_t header_bytes, passed_over;
    bool has_headers;    /* all headers of the last reply have arrived */
    bool ended, stopped; /* ended: by the body's reader */
} exchange;

/* --- headers ------------------------------------------------------------------------------------------------------ */

/* A status line begins the headers of a reply; an interim reply (100) precedes the final one. */
static size_t take_header(char *bytes, size_t one, size_t size, void *user)
{
    exchange *e = user;
    char line[1024];
    (void)one;
    e->header_bytes += size;
    if (e->header_bytes > MOST_HEADER_BYTES)
        return 0;
    e->has_headers = size <= 2; /* the empty line behind them */
    if (size < sizeof line) {
        memcpy(line, bytes, size);
        line[size] = '\0';
        if (strncmp(line, "HTTP/", 5) == 0)
            att_reply_clear(e->reply);
        else
            att_reply_add(e->reply, line);
    }
    return size;
}

static void take_code(const exchange *e)
{
    long code = 0;
    curl_easy_getinfo(e->transport->curl, CURLINFO_RESPONSE_CODE, &code);
    e->reply->code = (int)code;
}

/* --- the transfer ------------------------------------------------------------------------------------------------- */

static size_t take_body(char *bytes, size_t one, size_t size, void *user)
{
    exchange *e = user;
    (void)one;
    take_code(e);
    if (e->reply->code >= 300 && e->reply->code < 400) { /* libcurl reads the target of a redirect after the body */
        e->passed_over += size;
        return e->passed_over <= MOST_REDIRECT_BODY ? size : 0;
    }
    e->ended = !e->request->body || !e->request->body(e->request->user, e->reply, bytes, size);
    return e->ended ? 0 : size;
}

/* libcurl calls this about once a second, also while nothing arrives. */
static int check_stop(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    exchange *e = user;
    (void)a, (void)b, (void)c, (void)d;
    e->stopped = att_stop_asked(e->transport->context);
    return e->stopped;
}

/* What is the same for all requests. libcurl takes the size of its buffer before the first request only. */
static bool set_constants(CURL *curl, int seconds)
{
    const curl_version_info_data *about = curl_version_info(CURLVERSION_NOW);
    const att_certificates trusted = att_certificates_find(about->cainfo, att_certificate_files);
    bool ok = true;
    ok &= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)seconds) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)seconds) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_USERAGENT, "attscope/" ATT_VERSION) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)BUFFER) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_stop) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
    if (trusted.file)
        ok &= curl_easy_setopt(curl, CURLOPT_CAINFO, trusted.file) == CURLE_OK;
    if (trusted.folder) {
        ok &= curl_easy_setopt(curl, CURLOPT_CAINFO, NULL) == CURLE_OK;
        ok &= curl_easy_setopt(curl, CURLOPT_CAPATH, trusted.folder) == CURLE_OK;
    }
    return ok;
}

static bool set_request(exchange *e, struct curl_slist *headers)
{
    CURL *curl = e->transport->curl;
    const char *url = e->request->url;
    const uint64_t from = e->request->from, to = e->request->to;
    char range[48];
    bool ok = true;
    const int length = snprintf(range, sizeof range, "%" PRIu64 "-", from);
    if (to > 0)
        snprintf(range + length, sizeof range - (size_t)length, "%" PRIu64, to - 1);
    ok &= curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, strncmp(url, "https:", 6) == 0 ? "https" : "http") == CURLE_OK;
    ok &= curl_easy_setopt(curl, e->request->head ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1L) == CURLE_OK;
    /* Not CURLOPT_RESUME_FROM, with which a server that sends the whole file is an error. */
    ok &= curl_easy_setopt(curl, CURLOPT_RANGE, from > 0 || to > 0 ? range : NULL) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_HEADERDATA, e) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_WRITEDATA, e) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_XFERINFODATA, e) == CURLE_OK;
    ok &= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, e->transport->why) == CURLE_OK;
    return ok;
}

att_status att_transport_open(att_context *context, int seconds, att_transport **transport)
{
    att_transport *made;
    ATT_TRY(att_new(context, &made, 1, "a connection"));
    *made = (att_transport){.context = context, .curl = curl_easy_init()};
    if (!made->curl || !set_constants(made->curl, seconds)) {
        att_transport_close(&made);
        return att_fail(context, ATT_ERR_INTERNAL, "libcurl could not be initialised");
    }
    *transport = made;
    return ATT_OK;
}

void att_transport_close(att_transport **transport)
{
    if (!transport || !*transport)
        return;
    if ((*transport)->curl)
        curl_easy_cleanup((*transport)->curl);
    att_free((*transport)->context, *transport);
    *transport = NULL;
}

/* Appends a header; on failure frees the list and returns NULL. */
static struct curl_slist *append(struct curl_slist *list, const char *header)
{
    struct curl_slist *longer = curl_slist_append(list, header);
    if (!longer)
        curl_slist_free_all(list);
    return longer;
}

static struct curl_slist *list_headers(const att_request *request)
{
    char authorization[600];
    struct curl_slist *list = append(NULL, "Accept-Encoding: identity"); /* sizes and hashes are of the plain file */
    snprintf(authorization, sizeof authorization, "Authorization: Bearer %s", request->token);
    return list && *request->token ? append(list, authorization) : list;
}

static bool may_succeed_later(CURLcode code)
{
    static const CURLcode codes[] = {
        CURLE_COULDNT_CONNECT,   CURLE_OPERATION_TIMEDOUT,  CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING,
        CURLE_SEND_ERROR,        CURLE_RECV_ERROR,          CURLE_HTTP2,        CURLE_HTTP2_STREAM,
        CURLE_SSL_CONNECT_ERROR, CURLE_COULDNT_RESOLVE_HOST};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* Whether a line among the headers is longer than libcurl accepts. Older versions report this as a lack of memory. */
static bool is_long_line(const exchange *e, CURLcode code)
{
    long sent = 0;
    curl_easy_getinfo(e->transport->curl, CURLINFO_REQUEST_SIZE, &sent);
    if (sent == 0 || e->has_headers)
        return false;
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE)
        return true;
#endif
    return code == CURLE_OUT_OF_MEMORY && att_memory_require(e->transport->context, BUFFER, "a connection") == ATT_OK;
}

static att_status judge(const exchange *e, CURLcode code, bool *again)
{
    att_context *context = e->transport->context;
    const char *about = e->request->about;
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && e->ended))
        return ATT_OK;
    if (e->stopped)
        return att_fail(context, ATT_ERR_STOPPED, "%s: the download was stopped", about);
    if (is_long_line(e, code))
        return att_fail(context, ATT_ERR_FORMAT, "%s: the server sends a header of more than %d bytes", about,
                        CURL_MAX_HTTP_HEADER);
    if (code == CURLE_OUT_OF_MEMORY)
        return att_fail_memory(context, BUFFER, "a connection");
    if (e->header_bytes > MOST_HEADER_BYTES)
        return att_fail(context, ATT_ERR_FORMAT, "%s: the server sends headers of more than %d bytes", about,
                        MOST_HEADER_BYTES);
    *again = may_succeed_later(code);
    return att_fail(context, ATT_ERR_IO, "%s: %s%s", about,
                    *e->transport->why ? e->transport->why : curl_easy_strerror(code),
                    code == CURLE_SSL_CACERT_BADFILE
                        ? "; install the system's certificates (the package ca-certificates) or set SSL_CERT_FILE"
                        : "");
}

/* A server that closes the connection must not end the process: with CURLOPT_NOSIGNAL, libcurl leaves SIGPIPE to its
 * caller. The signal of this thread is removed before the old mask comes back. */
static CURLcode perform(CURL *curl)
{
    const struct timespec none = {0};
    sigset_t pipe, old, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&before);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    CURLcode code = curl_easy_perform(curl);
    while (!sigismember(&before, SIGPIPE) && sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

static void take_location(const exchange *e)
{
    const char *location = NULL;
    curl_easy_getinfo(e->transport->curl, CURLINFO_REDIRECT_URL, &location);
    if (location && strlen(location) < sizeof e->reply->location)
        snprintf(e->reply->location, sizeof e->reply->location, "%s", location);
}

att_status att_transport_send(att_transport *transport, const att_request *request, att_reply *reply, bool *again)
{
    exchange e = {.transport = transport, .request = request, .reply = reply};
    att_reply_clear(reply);
    *again = false;
    *transport->why = '\0';
    struct curl_slist *headers = list_headers(request);
    if (!headers || !set_request(&e, headers)) {
        curl_slist_free_all(headers);
        return att_fail_memory(transport->context, BUFFER, "a connection");
    }
    CURLcode code = perform(transport->curl);
    curl_slist_free_all(headers);
    take_code(&e);
    take_location(&e);
    return judge(&e, code, again);
}
