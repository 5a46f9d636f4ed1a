/* In place of http.c in a build without libmicrohttpd. */
#include "base/core/error.h"
#include "lab/serve/http.h"

att_status att_http_check(att_context *context)
{
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "this build of attscope has no web server; install libmicrohttpd (libmicrohttpd-dev) and configure "
                    "with -DATT_SERVE=ON");
}

att_status att_http_start(att_context *context, int socket, att_site *site, const att_table *table,
                          const att_access *access, const att_serve_limits *limits, att_http **http)
{
    (void)socket, (void)site, (void)table, (void)access, (void)limits, (void)http;
    return att_http_check(context);
}

void att_http_stop(att_http **http)
{
    (void)http;
}
