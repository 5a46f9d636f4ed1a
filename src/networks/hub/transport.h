/* hub/transport.h - sends one HTTP request. curl.c is the only file of attscope that opens a connection; a build
 * without libcurl compiles without_curl.c in its place. */
#ifndef ATT_HUB_TRANSPORT_H
#define ATT_HUB_TRANSPORT_H

#include <attscope/context.h>

enum { ATT_URL = 4096 };

/* A connection that is kept between requests. */
typedef struct att_transport att_transport;
/* seconds: to wait for a connection, and for the next byte. On success the caller owns *transport. Errors:
 * ERR_UNSUPPORTED (a build without libcurl), ERR_MEMORY. */
att_status att_transport_open(att_context *context, int seconds, att_transport **transport);
void att_transport_close(att_transport **transport);

/* The status line and headers of a reply. Numbers are -1 and texts "" if the header is missing, malformed or too long.
 */
typedef struct att_reply {
    int code;                         /* 0: none was received */
    char location[ATT_URL];           /* absolute target of a redirect */
    char etag[128], linked_etag[128]; /* without W/ and quotes */
    char commit[64], error[64];       /* X-Repo-Commit, X-Error-Code */
    int64_t length, linked_size;      /* Content-Length, X-Linked-Size */
    int64_t range_begin, range_total; /* Content-Range */
} att_reply;

/* reply.c: a reply without headers, and what one line of headers ("ETag: \"x\"\r\n") adds to it. */
void att_reply_clear(att_reply *reply);
void att_reply_add(att_reply *reply, const char *line);

/* Receives a part of the body, after all headers. Returns false to end the transfer. */
typedef bool (*att_body_fn)(void *user, const att_reply *reply, const void *bytes, size_t size);

typedef struct att_request {
    const char *url;   /* https:// or http://, checked by the caller */
    const char *about; /* what messages begin with: the file and the host. The rest of the URL may be a secret */
    const char *token; /* "": none */
    bool head;         /* request the headers only */
    uint64_t from, to; /* the body's first byte to send and the one behind the last; to 0: its end */
    att_body_fn body;  /* NULL: the body is not read */
    void *user;
} att_request;

/* Sends the request; follows no redirect. Succeeds with any status code once the headers are there, also if `body` ends
 * the transfer. Errors: ERR_IO (no connection, a certificate that is not trusted, a transfer that breaks off; *reply
 * then holds what was received); ERR_FORMAT (headers without end); ERR_STOPPED; ERR_MEMORY. *again: whether the same
 * request may succeed later. */
att_status att_transport_send(att_transport *transport, const att_request *request, att_reply *reply, bool *again);

#endif
