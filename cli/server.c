#include "server.h"

#include <string.h>
#include <time.h>

#include "stop.h"

static void wait_for_stop(void)
{
    const struct timespec moment = {.tv_nsec = 100000000}; /* a signal ends it early */
    while (!cli_stop_asked())
        nanosleep(&moment, NULL);
}

int cli_run_server(cli_app *cli, const att_serve_options *options, const char *page)
{
    att_server *server = NULL;
    cli_stop_on_signals();
    int code = cli_check(cli, att_server_start(cli->context, options, &server));
    if (code != CLI_OK)
        return code;
    /* The address is http://HOST:PORT/?token=TOKEN. */
    const char *address = att_server_url(server), *query = strchr(address, '?');
    cli_print("%.*s%s%s\n", (int)(query - address - 1), address, page, query);
    cli_flush();
    cli_note(cli,
             "Open this address in a browser on this machine. It contains a secret token. Ctrl-C ends the server.");
    wait_for_stop();
    att_server_close(&server);
    return CLI_OK;
}
