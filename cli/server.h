/* server.h - runs the server of attscope/lab/serve.h until a signal ends it. */
#ifndef CLI_SERVER_H
#define CLI_SERVER_H

#include <attscope/lab/serve.h>

#include "cli.h"

/* Starts the server, prints the address of `page` ("/explore"), waits for Ctrl-C or SIGTERM, and ends the server. */
int cli_run_server(cli_app *cli, const att_serve_options *options, const char *page);

#endif
