/* serve/server.h - a server with other limits and routes than those of `attscope serve`, for tests. */
#ifndef ATT_SERVE_SERVER_H
#define ATT_SERVE_SERVER_H

#include <attscope/lab/serve.h>

#include "lab/serve/http.h"

/* 256 connections, 32 KiB for a head, 64 MiB for a body, 256 MiB for all bodies, 1 GiB for all requests, 20 s for a
 * head, 30 s of silence, a comment after 15 s. */
att_serve_limits att_serve_limits_defaults(void);

/* As att_server_start(). groups [count]: must outlive the server. */
att_status att_server_start_with(att_context *context, const att_serve_options *options, const att_serve_limits *limits,
                                 const att_route_group *const *groups, int count, att_server **server);

#endif
