/* Compiled in place of curl.c if libcurl is not there. */
#include "base/core/error.h"
#include "networks/hub/transport.h"

static att_status fail_missing(att_context *context)
{
    return att_fail(
        context, ATT_ERR_UNSUPPORTED,
        "this build of attscope has no downloads; install libcurl (libcurl4-openssl-dev) and configure with "
        "-DATT_HUB=ON");
}

att_status att_transport_open(att_context *context, int seconds, att_transport **transport)
{
    (void)seconds;
    (void)transport;
    return fail_missing(context);
}

void att_transport_close(att_transport **transport)
{
    (void)transport;
}

/* Never called: there is no open transport. */
att_status att_transport_send(att_transport *transport, const att_request *request, att_reply *reply, bool *again)
{
    (void)transport;
    (void)request;
    (void)reply;
    (void)again;
    return ATT_ERR_UNSUPPORTED;
}
