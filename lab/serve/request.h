/* serve/request.h - routes of `attscope serve`: what a handler receives and returns. Nothing here depends on the HTTP
 * library; lab/serve/http.c does.
 *
 * A group of routes is a file lab/serve/<group>.c that ends in an att_route_group, and a line in lab/serve/list.h:
 *
 *     static att_status get_layers(const att_request *request, att_response *response)
 *     {
 *         const models *m = request->state;
 *         int64_t model;
 *         ATT_TRY(att_request_integer(request, "model", 0, m->count - 1, &model));
 *         ...
 *         return att_response_json(response, writer);
 *     }
 *     static const att_route routes[] = {{"/api/layers", ATT_GET, get_layers}};
 *     const att_route_group att_routes_models = {routes, 1, .open = open_models, .close = close_models};
 *
 * Access (token, Host, Origin), methods, sizes and headers are checked before a handler is called. Handlers are called
 * on many threads at once: a group locks its own state. A handler that computes for long polls att_stop_asked() of its
 * context, which is true when the server ends or the client has gone. The server waits for handlers when it ends.
 */
#ifndef ATT_SERVE_REQUEST_H
#define ATT_SERVE_REQUEST_H

#include <attscope/lab/json.h>

#include "base/core/text.h"
#include "lab/report/page.h"
#include "lab/serve/site.h"

typedef struct att_request {
    att_context *context; /* of this request, with one thread */
    att_site *site;       /* runs and models */
    void *state;          /* of the route's group, as its `open` made it */
    const char *query;    /* the part of the target after '?', still encoded; "" if there is none */
    const void *body;     /* of a POST; NULL if empty */
    size_t body_size;
} att_request;

/* The value of the parameter `name` of the query, decoded, in `text` [size]. Errors, ERR_ARGUMENT: it is missing, given
 * twice, malformed, or too long. */
att_status att_request_text(const att_request *request, const char *name, char *text, size_t size);
/* The same for a whole number in [low, high]. */
att_status att_request_integer(const att_request *request, const char *name, int64_t low, int64_t high, int64_t *value);

/* The runs that the parameters `run` name, by their names, each once, in their order. */
enum { ATT_REQUEST_RUNS = 32 };
typedef struct att_request_runs {
    int count; /* at least 1 */
    char names[ATT_REQUEST_RUNS][ATT_RUN_PATH], folders[ATT_REQUEST_RUNS][ATT_RUN_PATH];
} att_request_runs;
/* On success the caller frees *runs with att_free() and the request's context. Errors: ERR_ARGUMENT (none, a malformed
 * one, more than ATT_REQUEST_RUNS), ERR_NOT_FOUND, ERR_MEMORY. */
att_status att_request_find_runs(const att_request *request, att_request_runs **runs);

/* A source of server-sent events. next() appends the events that are new, if there are any, to `out`, and returns at
 * once; it is called a few times per second on one thread. After a failure the stream ends. If memory is short for a
 * moment, next() appends nothing and returns ATT_OK: a later call sends the events. close() frees `user`. */
typedef struct att_stream {
    att_status (*next)(void *user, att_text *out);
    void (*close)(void *user);
    void *user;
} att_stream;

typedef struct att_response {
    int status;        /* HTTP status: 200 unless a handler changes it */
    const char *type;  /* Content-Type: a static string */
    att_text body;     /* allocated from the request's context */
    att_stream stream; /* if next is set: an event stream in place of `body` */
    /* Set by the access rules only. */
    const char *allow;       /* Allow; NULL: none */
    char *location, *cookie; /* allocated from the request's context; NULL: none */
    char nonce[33];          /* of the page's scripts; "": the answer has no scripts */
} att_response;

/* Copies the writer's document to the body. The caller keeps the writer. */
att_status att_response_json(att_response *response, att_json_writer *writer);
/* Makes the HTML text in the body a page: its <script> elements, and no other scripts, may run. */
att_status att_response_page(att_response *response);
/* Fills the body with a page that shows no run, and makes it a page. */
att_status att_response_empty_page(const att_request *request, const att_page *page, att_response *response);
/* Makes the body {"error": text}. */
void att_response_error(att_response *response, int status, const char *text);

/* Methods of a route. A route with ATT_GET answers HEAD as well. */
enum { ATT_GET = 1, ATT_POST = 2 };

typedef struct att_route {
    /* Exact: "/api/runs". Paths below "/api/" are for the scripts of our own pages; others are pages. */
    const char *path;
    int methods;
    /* On failure the answer is {"error": the context's message}, or a page with that sentence: 404 for ERR_NOT_FOUND,
     * 400 for ERR_ARGUMENT, 422 for ERR_UNSUPPORTED, 503 for ERR_MEMORY and ERR_STOPPED, else 500. `response` is zero
     * except for `status` and the body's context. */
    att_status (*handle)(const att_request *request, att_response *response);
} att_route;

typedef struct att_route_group {
    const att_route *routes;
    int count;
    /* Called when the server starts, before the first request; context: the server's, with which close() is called too.
     * *state: for att_request.state. NULL: no state. */
    att_status (*open)(att_context *context, att_site *site, void **state);
    void (*close)(void *state); /* after the last request; not called if `open` failed */
} att_route_group;

#endif
