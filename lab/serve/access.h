/* serve/access.h - who may send which request: the rules that hold for every route. */
#ifndef ATT_SERVE_ACCESS_H
#define ATT_SERVE_ACCESS_H

#include <attscope/context.h>

/* The head of a request. A header that is missing is NULL. */
typedef struct att_head {
    const char *method, *target; /* target: as sent, "/report?run=1" */
    const char *host, *origin, *fetch_site, *fetch_mode, *fetch_dest, *authorization, *cookie;
    const char *repeated;     /* name of a header of this list that was sent twice; NULL: none */
    int64_t length;           /* Content-Length; 0: missing; -1: malformed */
    bool has_length, encoded; /* whether there is a Content-Length, a Transfer-Encoding */
} att_head;

enum { ATT_TOKEN_TEXT = 65 }; /* 64 hexadecimal digits and NUL */

typedef struct att_access {
    char token[ATT_TOKEN_TEXT];
    char cookie[32]; /* its name */
    const char *const *hosts;
    int host_count;
    bool framed; /* att_serve_options.framed */
} att_access;

/* Fills the text with random hexadecimal digits, size - 1 of them. Error: ERR_IO. */
att_status att_random_text(att_context *context, char *text, size_t size);

/* Whether a name may be allowed with --allow-host: a host name or an address, without a port. */
bool att_host_is_name(const char *name);

/* A refusal: HTTP status and a sentence. Status 0: not refused. */
typedef struct att_refusal {
    int status;
    const char *sentence;
} att_refusal;

/* Checks target, Host, Origin and the fetch metadata, which need no token. */
att_refusal att_access_check_sender(const att_access *access, const att_head *head);
/* Checks cookie and Authorization. */
att_refusal att_access_check_token(const att_access *access, const att_head *head);
/* Whether `text` is the token, in a time that does not depend on the text, except for its length. */
bool att_access_is_token(const att_access *access, const char *text, size_t length);
/* Whether the target of a request is for scripts (below "/api/"), not a page. */
bool att_is_api(const char *target);

#endif
