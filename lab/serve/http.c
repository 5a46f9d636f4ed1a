#include "lab/serve/http.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <microhttpd.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"

enum { POLL_MS = 250, WATCH_MS = 1000, STREAM_BLOCK = 8 << 10, LARGE = 1 << 20 };

static const char no_memory[] =
    "The requests that this server answers now need all the memory that it gives to requests; try again later.";
static const char no_memory_for_bodies[] =
    "The uploads that this server receives now need all the memory that it gives to uploads; try again later.";

/* A connection, and the time by which the head of its next request must be complete; 0: it is complete. */
typedef struct guard {
    bool used;
    int socket;
    double deadline;
} guard;

struct att_http {
    att_context *context;
    att_site *site;
    const att_table *table;
    const att_access *access;
    att_serve_limits limits;
    struct MHD_Daemon *daemon;
    atomic_bool stopping;
    int stop_pipe[2];     /* the writing end is closed to stop: the reading end then wakes all who poll it */
    atomic_size_t memory; /* bytes that all requests have together */
    atomic_size_t bodies; /* those of them that are reserved for bodies */
    pthread_mutex_t lock; /* of the guards */
    guard *guards;        /* [limits.connections] */
    pthread_t watch;
    bool watched;
};

/* A request and its answer. */
typedef struct exchange {
    att_http *http;
    char *target;         /* as sent */
    bool decided, called; /* whether att_dispatch() was called, and accepted the request */
    att_call call;
    att_context *context; /* of the request; NULL before it is accepted */
    bool refused;         /* whether an allocation would have exceeded limits.memory */
    att_response response;
    char *body;  /* [size], from `context` */
    size_t size; /* counts among http->bodies while it is not 0 */
    size_t received;
    /* An event stream sends response.body, in which its events are collected. */
    size_t sent;
    double last; /* when something was sent */
    int socket;
    bool ended;
} exchange;

att_status att_http_check(att_context *context)
{
    (void)context;
    return ATT_OK;
}

/* --- slow clients ------------------------------------------------------------------------------------------------- */

/* libmicrohttpd gives up a client that sends nothing, but not one that sends a byte now and then. */
static void close_late(att_http *http)
{
    const double now = att_seconds_now();
    pthread_mutex_lock(&http->lock);
    for (int i = 0; i < http->limits.connections; i++) {
        guard *g = &http->guards[i];
        if (g->used && g->deadline > 0 && now > g->deadline) {
            shutdown(g->socket, SHUT_RDWR); /* libmicrohttpd notices this and closes the connection */
            g->deadline = 0;
        }
    }
    pthread_mutex_unlock(&http->lock);
}

/* Waits until the server stops, at most `ms`. Returns whether it stops. */
static bool wait_for_stop(att_http *http, int ms)
{
    struct pollfd stop = {.fd = http->stop_pipe[0], .events = POLLIN};
    poll(&stop, 1, ms);
    return atomic_load(&http->stopping);
}

static void *watch(void *user)
{
    att_http *http = user;
    const double quarter = 250 * http->limits.head_seconds;
    while (!wait_for_stop(http, quarter < WATCH_MS ? (int)quarter : WATCH_MS))
        close_late(http);
    return NULL;
}

static void set_deadline(att_http *http, guard *g, double deadline)
{
    if (g == NULL)
        return;
    pthread_mutex_lock(&http->lock);
    g->deadline = deadline;
    pthread_mutex_unlock(&http->lock);
}

static int socket_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

static guard *guard_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static guard *take_guard(att_http *http, int socket)
{
    guard *taken = NULL;
    pthread_mutex_lock(&http->lock);
    for (int i = 0; i < http->limits.connections && taken == NULL; i++)
        if (!http->guards[i].used)
            taken = &http->guards[i];
    if (taken != NULL)
        *taken = (guard){true, socket, att_seconds_now() + http->limits.head_seconds};
    pthread_mutex_unlock(&http->lock);
    return taken;
}

static void notice_connection(void *user, struct MHD_Connection *connection, void **place,
                              enum MHD_ConnectionNotificationCode code)
{
    att_http *http = user;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *place = take_guard(http, socket_of(connection));
        return;
    }
    pthread_mutex_lock(&http->lock);
    if (*place != NULL)
        *(guard *)*place = (guard){.used = false};
    pthread_mutex_unlock(&http->lock);
}

/* --- the head of a request ---------------------------------------------------------------------------------------- */

/* A header of att_head. */
typedef struct head_field {
    const char *name;
    const char **value;
} head_field;

typedef struct head_reader {
    att_head *head;
    const head_field *fields;
    int count;
} head_reader;

static enum MHD_Result visit_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    const head_reader *reader = user;
    for (int i = 0; i < reader->count; i++) {
        if (strcasecmp(name, reader->fields[i].name) != 0)
            continue;
        if (*reader->fields[i].value != NULL)
            reader->head->repeated = reader->fields[i].name;
        *reader->fields[i].value = value != NULL ? value : "";
    }
    return MHD_YES;
}

static void read_head(struct MHD_Connection *connection, const char *method, const char *target, att_head *head)
{
    const char *length = NULL, *encoding = NULL;
    *head = (att_head){.method = method, .target = target};
    const head_field fields[] = {{"Host", &head->host},
                                 {"Origin", &head->origin},
                                 {"Sec-Fetch-Site", &head->fetch_site},
                                 {"Sec-Fetch-Mode", &head->fetch_mode},
                                 {"Sec-Fetch-Dest", &head->fetch_dest},
                                 {"Authorization", &head->authorization},
                                 {"Cookie", &head->cookie},
                                 {"Content-Length", &length},
                                 {"Transfer-Encoding", &encoding}};
    head_reader reader = {head, fields, sizeof fields / sizeof *fields};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, visit_header, &reader);
    head->has_length = length != NULL;
    head->encoded = encoding != NULL;
    if (length != NULL && !att_text_to_i64(length, &head->length))
        head->length = -1;
}

/* --- event streams ------------------------------------------------------------------------------------------------ */

static bool has_peer(int socket)
{
    char byte;
    const ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

/* Collects new events. Without any, waits a moment. */
static void collect(exchange *e)
{
    att_response *r = &e->response;
    att_text_free(&r->body); /* so that a silent stream holds no memory */
    e->sent = 0;
    e->ended = r->stream.next(r->stream.user, &r->body) != ATT_OK || r->body.failed;
    if (e->ended || r->body.length > 0)
        return;
    e->ended = wait_for_stop(e->http, POLL_MS) || !has_peer(e->socket);
    if (!e->ended && att_seconds_now() - e->last >= e->http->limits.heartbeat_seconds)
        att_text_append(&r->body, ":\n\n");
}

static ssize_t send_events(void *user, uint64_t position, char *out, size_t most)
{
    (void)position;
    exchange *e = user;
    while (e->sent == e->response.body.length)
        if (e->ended || atomic_load(&e->http->stopping))
            return MHD_CONTENT_READER_END_OF_STREAM;
        else
            collect(e);
    const size_t left = e->response.body.length - e->sent, size = left < most ? left : most;
    memcpy(out, e->response.body.data + e->sent, size);
    e->sent += size;
    e->last = att_seconds_now();
    return (ssize_t)size;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void add_header(struct MHD_Response *answer, const char *name, const char *value)
{
    if (value != NULL)
        MHD_add_response_header(answer, name, value);
}

static void add_headers(struct MHD_Response *answer, const att_response *response, bool framed)
{
    char policy[400];
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src %s%s%s; style-src 'unsafe-inline'; img-src 'self' data: blob:; "
             "connect-src 'self'; frame-ancestors %s; base-uri 'none'; form-action 'none'",
             response->nonce[0] != '\0' ? "'nonce-" : "'none", response->nonce, "'",
             framed ? "http://localhost:* http://127.0.0.1:*" : "'none'");
    add_header(answer, "Content-Security-Policy", policy);
    add_header(answer, "X-Content-Type-Options", "nosniff");
    add_header(answer, "Referrer-Policy", "no-referrer");
    add_header(answer, "Cache-Control", "no-store");
    add_header(answer, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(answer, "Cross-Origin-Opener-Policy", "same-origin");
    add_header(answer, "Content-Type", response->stream.next != NULL ? "text/event-stream" : response->type);
    add_header(answer, "Allow", response->allow);
    add_header(answer, "Location", response->location);
    add_header(answer, "Set-Cookie", response->cookie);
}

static struct MHD_Response *make_answer(exchange *e)
{
    att_response *r = &e->response;
    if (r->stream.next != NULL) {
        e->last = att_seconds_now();
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, send_events, e, NULL);
    }
    if (r->body.failed)
        r->body.length = 0;
    return MHD_create_response_from_buffer(r->body.length, r->body.data, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_answer(exchange *e, struct MHD_Connection *connection)
{
    struct MHD_Response *answer = make_answer(e);
    if (answer == NULL)
        return MHD_NO;
    add_headers(answer, &e->response, e->http->access->framed);
    if (e->response.stream.next != NULL) /* its silence is not the client's */
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    const enum MHD_Result result = MHD_queue_response(connection, (unsigned)e->response.status, answer);
    MHD_destroy_response(answer);
    return result;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Whether an answer is no longer wanted: the server ends, or the client has gone. */
static bool is_unwanted(void *user)
{
    const exchange *e = user;
    return atomic_load(&e->http->stopping) || !has_peer(e->socket);
}

/* Adds to the bytes of a limit. Returns whether they fit; the caller takes them back in any case. */
static bool add_bytes(atomic_size_t *bytes, size_t more, size_t limit)
{
    const size_t used = atomic_fetch_add(bytes, more);
    return more <= limit && used <= limit - more;
}

/* The allocator of a request's context: takes memory from the server's context, while all requests together stay within
 * the limit. */
static void *allocate_for_request(void *user, void *old, size_t old_size, size_t size)
{
    exchange *e = user;
    att_http *http = e->http;
    const size_t more = size > old_size ? size - old_size : 0, less = old_size > size ? old_size - size : 0;
    const bool fits = add_bytes(&http->memory, more, http->limits.memory);
    void *block = fits && size > 0 ? att_reallocate(http->context, old, size) : NULL;
    e->refused |= !fits;
    if (size == 0)
        att_free(http->context, old);
    atomic_fetch_sub(&http->memory, block != NULL || size == 0 ? less : more);
    return block;
}

static att_status open_context(exchange *e)
{
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.memory_limit = e->http->limits.memory;
    settings.allocate = allocate_for_request;
    settings.stop = is_unwanted;
    settings.allocate_user = settings.stop_user = e;
    return att_context_create(&settings, &e->context);
}

/* glibc keeps freed blocks for the threads of later connections. When many streams or large requests end, these blocks
 * are far more than is in use then. */
static void return_memory(att_http *http)
{
#ifdef __GLIBC__
    /* Two threads at a time would set up glibc's heap twice where another allocator, as that of sanitizers, is used. */
    pthread_mutex_lock(&http->lock);
    malloc_trim(0);
    pthread_mutex_unlock(&http->lock);
#else
    (void)http;
#endif
}

static void free_body(exchange *e)
{
    att_free(e->context, e->body);
    atomic_fetch_sub(&e->http->bodies, e->size);
    e->body = NULL;
    e->size = 0;
}

/* Reserves the memory for a body. Bodies have only a part of the memory, because stalled uploads must not take that of
 * other requests. Returns NULL, or the sentence that says why there is no memory. */
static const char *reserve_body(exchange *e, size_t size)
{
    const bool fits = add_bytes(&e->http->bodies, size, e->http->limits.bodies);
    e->size = size;
    if (fits && size > 0)
        e->body = att_reallocate(e->context, NULL, size);
    if (e->body != NULL || size == 0)
        return NULL;
    free_body(e);
    return fits ? no_memory : no_memory_for_bodies;
}

/* Frees what the request has from its context. */
static void close_context(exchange *e)
{
    if (e->context == NULL)
        return;
    free_body(e);
    const bool large = att_context_allocations(e->context).bytes_peak >= LARGE;
    att_context_destroy(&e->context);
    if (large || e->response.stream.next != NULL)
        return_memory(e->http);
}

/* Frees what the response owns. */
static void free_response(att_response *response)
{
    if (response->stream.close != NULL)
        response->stream.close(response->stream.user);
    att_free(response->body.context, response->location);
    att_free(response->body.context, response->cookie);
    att_text_free(&response->body);
}

/* Makes the answer a refusal, in the server's memory, because the request gets no more. */
static void refuse_for_memory(exchange *e, const char *sentence)
{
    free_response(&e->response);
    e->response = (att_response){.body.context = e->http->context};
    att_refuse(e->target, 503, sentence, &e->response);
}

/* Decides by the head of a request. */
static enum MHD_Result decide(exchange *e, struct MHD_Connection *connection, const char *method)
{
    att_http *http = e->http;
    att_head head;
    e->decided = true;
    e->socket = socket_of(connection);
    set_deadline(http, guard_of(connection), 0);
    read_head(connection, method, e->target, &head);
    e->response = (att_response){.body.context = http->context};
    if (!att_dispatch(http->table, http->access, http->limits.body, &head, &e->call, &e->response))
        return send_answer(e, connection);
    const char *problem = open_context(e) != ATT_OK ? no_memory : reserve_body(e, (size_t)head.length);
    if (problem != NULL) {
        refuse_for_memory(e, problem);
        return send_answer(e, connection);
    }
    e->called = true;
    return MHD_YES;
}

static enum MHD_Result call_handler(exchange *e, struct MHD_Connection *connection)
{
    att_request request = {.context = e->context,
                           .site = e->http->site,
                           .state = e->call.state,
                           .query = e->call.query,
                           .body = e->body,
                           .body_size = e->received};
    e->response = (att_response){.body.context = e->context};
    e->refused = false;
    att_dispatch_call(&e->call, &request, &e->response);
    free_body(e);
    if (e->response.body.failed || (e->refused && e->response.status == 503))
        refuse_for_memory(e, no_memory);
    return send_answer(e, connection);
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **place)
{
    (void)user, (void)url, (void)version;
    exchange *e = *place;
    if (e == NULL)
        return MHD_NO; /* there was no memory for it */
    if (!e->decided)
        return decide(e, connection, method);
    if (!e->called)
        return MHD_NO;
    if (*upload_size == 0)
        return call_handler(e, connection);
    if (*upload_size > e->size - e->received)
        return MHD_NO;
    memcpy(e->body + e->received, upload, *upload_size);
    e->received += *upload_size;
    *upload_size = 0;
    return MHD_YES;
}

/* Called with the target as it was sent, before everything else. Its result becomes *place of the other functions. */
static void *begin_exchange(void *user, const char *target, struct MHD_Connection *connection)
{
    (void)connection;
    att_http *http = user;
    exchange *e = att_allocate(http->context, sizeof *e);
    char *copy = att_allocate(http->context, strlen(target) + 1);
    if (e == NULL || copy == NULL) {
        att_free(http->context, e);
        att_free(http->context, copy);
        return NULL;
    }
    e->http = http;
    e->target = strcpy(copy, target);
    return e;
}

static void end_exchange(void *user, struct MHD_Connection *connection, void **place,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    att_http *http = user;
    exchange *e = *place;
    *place = NULL;
    if (e == NULL)
        return;
    if (e->decided)
        free_response(&e->response);
    close_context(e);
    att_free(http->context, e->target);
    att_free(http->context, e);
    set_deadline(http, guard_of(connection), att_seconds_now() + http->limits.head_seconds);
}

/* --- the server --------------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(att_http *http, int socket)
{
    const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC;
    return MHD_start_daemon(flags, 0, NULL, NULL, answer, http,                                 /* the options: */
                            MHD_OPTION_LISTEN_SOCKET, socket,                                   //
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)http->limits.connections,    //
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, http->limits.head,              //
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)http->limits.idle_seconds, //
                            MHD_OPTION_STRICT_FOR_CLIENT, 1,                                    //
                            MHD_OPTION_URI_LOG_CALLBACK, begin_exchange, http,                  //
                            MHD_OPTION_NOTIFY_COMPLETED, end_exchange, http,                    //
                            MHD_OPTION_NOTIFY_CONNECTION, notice_connection, http,              //
                            MHD_OPTION_END);
}

static att_status open_http(att_http *http, int socket)
{
    if (pipe(http->stop_pipe) != 0) {
        http->stop_pipe[0] = http->stop_pipe[1] = -1;
        close(socket);
        return att_fail(http->context, ATT_ERR_IO, "the server has no pipe: %s", strerror(errno));
    }
    /* Signals go to the caller's threads. SIGPIPE: a client that has gone must not end the process. */
    sigset_t before;
    att_signals_hold(&before);
    http->watched = pthread_create(&http->watch, NULL, watch, http) == 0;
    http->daemon = http->watched ? start_daemon(http, socket) : NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (http->daemon != NULL)
        return ATT_OK;
    close(socket);
    return att_fail(http->context, ATT_ERR_IO, "the web server could not be started: the system has no threads left");
}

att_status att_http_start(att_context *context, int socket, att_site *site, const att_table *table,
                          const att_access *access, const att_serve_limits *limits, att_http **http)
{
    att_http *created = att_allocate(context, sizeof *created);
    guard *guards = att_allocate_array(context, (size_t)limits->connections, sizeof *guards);
    if (created == NULL || guards == NULL) {
        close(socket);
        att_free(context, created);
        att_free(context, guards);
        return att_fail_memory(context, sizeof *created, "the web server");
    }
    created->context = context;
    created->site = site;
    created->table = table;
    created->access = access;
    created->limits = *limits;
    created->guards = guards;
    pthread_mutex_init(&created->lock, NULL);
    const att_status status = open_http(created, socket);
    if (status != ATT_OK)
        att_http_stop(&created);
    else
        *http = created;
    return status;
}

void att_http_stop(att_http **http)
{
    if (http == NULL || *http == NULL)
        return;
    att_http *closing = *http;
    atomic_store(&closing->stopping, true);
    if (closing->stop_pipe[1] >= 0)
        close(closing->stop_pipe[1]);
    if (closing->daemon != NULL)
        MHD_stop_daemon(closing->daemon);
    if (closing->watched)
        pthread_join(closing->watch, NULL);
    if (closing->stop_pipe[0] >= 0)
        close(closing->stop_pipe[0]);
    pthread_mutex_destroy(&closing->lock);
    att_free(closing->context, closing->guards);
    att_free(closing->context, closing);
    *http = NULL;
}
