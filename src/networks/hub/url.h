/* hub/url.h - which addresses may be connected to, and which of them get the token. */
#ifndef ATT_HUB_URL_H
#define ATT_HUB_URL_H

#include <stdbool.h>

enum { ATT_URL_HOST = 256 };

/* Scheme, host and port of an address. Two addresses with the same parts are the same server. */
typedef struct att_origin {
    bool secure;             /* https */
    char host[ATT_URL_HOST]; /* lower case */
    int port;
} att_origin;

/* Returns false unless the address is https:// or http://, a host of letters, digits, dots and dashes (or [::1]), and
 * optionally a port and a path of printable characters without blanks and backslashes. An address with a user name is
 * refused. Stricter than the standard, so that no other parser finds another host in the address. */
bool att_url_parse(const char *url, att_origin *origin);
bool att_origin_same(const att_origin *a, const att_origin *b);
/* Whether a request to `to` is allowed if `endpoint` is where downloads begin: https always; http only between
 * addresses of this machine. */
bool att_origin_allowed(const att_origin *endpoint, const att_origin *to);

#endif
