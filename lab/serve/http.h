/* serve/http.h - the HTTP server. lab/serve/http.c is the only file that includes libmicrohttpd; in a build without it,
 * without_microhttpd.c takes its place. */
#ifndef ATT_SERVE_HTTP_H
#define ATT_SERVE_HTTP_H

#include "lab/serve/dispatch.h"

/* Limits for clients, also hostile ones. */
typedef struct att_serve_limits {
    int connections;          /* at the same time; further ones are closed at once */
    size_t head;              /* bytes of a request's line and headers, together with buffers */
    size_t body;              /* bytes of one body */
    size_t bodies;            /* bytes of all bodies together */
    size_t memory;            /* bytes that all requests have together: bodies, what their handlers allocate from the
                                 contexts of requests, and answers until they are sent */
    double head_seconds;      /* from the opening of a connection, or the last answer, to the end of a request's head */
    int idle_seconds;         /* without any byte, while a body is received or an answer is sent */
    double heartbeat_seconds; /* without an event, until a comment is sent */
} att_serve_limits;

typedef struct att_http att_http;

/* Fails with ERR_UNSUPPORTED in a build without libmicrohttpd. */
att_status att_http_check(att_context *context);

/* Answers the connections to the listening socket, on threads of its own. site, table and access: must outlive the
 * server. The socket is closed in any case. On success the caller owns *http. Errors: ERR_IO, ERR_MEMORY. */
att_status att_http_start(att_context *context, int socket, att_site *site, const att_table *table,
                          const att_access *access, const att_serve_limits *limits, att_http **http);
/* Ends event streams, waits for handlers in progress, closes all connections, frees the server. */
void att_http_stop(att_http **http);

#endif
