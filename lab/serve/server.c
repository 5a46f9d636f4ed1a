#include "lab/serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/serve/list.h"

enum { MOST_PORTS = 100, BACKLOG = 128, URL = 128 };

struct att_server {
    att_context *context;
    att_arena arena; /* the names of hosts */
    att_site *site;
    att_access access;
    const att_route_group *const *groups;
    void **states; /* [opened] */
    int opened;    /* groups that are open */
    att_table table;
    att_http *http;
    int port;
    char url[URL];
};

att_serve_options att_serve_options_defaults(void)
{
    return (att_serve_options){.port = 0};
}

att_serve_limits att_serve_limits_defaults(void)
{
    return (att_serve_limits){.connections = 256,
                              .head = 32 << 10,
                              .body = 64 << 20,
                              .bodies = 256 << 20,
                              .memory = 1 << 30,
                              .head_seconds = 20,
                              .idle_seconds = 30,
                              .heartbeat_seconds = 15};
}

/* --- the socket --------------------------------------------------------------------------------------------------- */

/* Listens on 127.0.0.1. Returns the socket, or -1 with errno. */
static int listen_at(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    /* So that a server can be started again at once on the same port. */
    if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(made, (const struct sockaddr *)&address, sizeof address) == 0 && listen(made, BACKLOG) == 0)
        return made;
    const int reason = errno;
    close(made);
    errno = reason;
    return -1;
}

static att_status open_socket(att_server *server, int port, int *opened)
{
    const int first = port > 0 ? port : ATT_SERVE_PORT, last = port > 0 ? port : ATT_SERVE_PORT + MOST_PORTS;
    for (int at = first; at <= last; at++) {
        *opened = listen_at(at);
        server->port = at;
        if (*opened >= 0)
            return ATT_OK;
        if (errno != EADDRINUSE)
            return att_fail(server->context, ATT_ERR_IO, "port %d cannot be opened: %s", at, strerror(errno));
    }
    if (port > 0)
        return att_fail(server->context, ATT_ERR_IO, "port %d is in use by another program: choose another --port",
                        port);
    return att_fail(server->context, ATT_ERR_IO, "the ports from %d to %d are in use: choose another one with --port",
                    first, last);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static att_status check_options(att_context *context, const att_serve_options *options)
{
    if (options->port < 0 || options->port > 65535)
        return att_fail(context, ATT_ERR_ARGUMENT, "the port %d is outside 1..65535", options->port);
    for (int i = 0; i < options->host_count; i++)
        if (options->hosts[i] == NULL || !att_host_is_name(options->hosts[i]))
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "\"%s\" is not the name of a host: expected a name such as gpu.example.org, or an address, "
                            "without a port",
                            options->hosts[i] != NULL ? options->hosts[i] : "NULL");
    return ATT_OK;
}

static att_status copy_hosts(att_server *server, const att_serve_options *options)
{
    const size_t count = (size_t)options->host_count, bytes = count * sizeof(char *);
    const char **hosts = count > 0 ? att_arena_allocate(&server->arena, bytes) : NULL;
    if (count > 0 && hosts == NULL)
        return att_fail_memory(server->context, bytes, "the names of hosts");
    for (size_t i = 0; i < count; i++)
        if ((hosts[i] = att_arena_string(&server->arena, options->hosts[i])) == NULL)
            return att_fail_memory(server->context, strlen(options->hosts[i]), "the name of a host");
    server->access.hosts = hosts;
    server->access.host_count = options->host_count;
    server->access.framed = options->framed;
    return ATT_OK;
}

static att_status open_groups(att_server *server, int count)
{
    ATT_TRY(att_new(server->context, &server->states, (size_t)count, "the routes"));
    for (int i = 0; i < count; i++) {
        const att_route_group *group = server->groups[i];
        if (group->open != NULL)
            ATT_TRY(group->open(server->context, server->site, &server->states[i]));
        server->opened++;
    }
    server->table = (att_table){server->groups, server->states, count};
    return ATT_OK;
}

static att_status start(att_server *server, const att_serve_options *options, const att_serve_limits *limits, int count)
{
    int socket;
    ATT_TRY(check_options(server->context, options));
    ATT_TRY(copy_hosts(server, options));
    ATT_TRY(att_site_create(server->context, options, &server->site));
    ATT_TRY(att_random_text(server->context, server->access.token, sizeof server->access.token));
    ATT_TRY(open_groups(server, count));
    ATT_TRY(open_socket(server, options->port, &socket));
    snprintf(server->access.cookie, sizeof server->access.cookie, "attscope-%d", server->port);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d/?token=%s", server->port, server->access.token);
    return att_http_start(server->context, socket, server->site, &server->table, &server->access, limits,
                          &server->http);
}

/* --- the server --------------------------------------------------------------------------------------------------- */

att_status att_server_start_with(att_context *context, const att_serve_options *options, const att_serve_limits *limits,
                                 const att_route_group *const *groups, int count, att_server **server)
{
    const att_serve_options defaults = att_serve_options_defaults();
    ATT_TRY(att_http_check(context));
    if (!att_page_exists())
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "this build of attscope has no pages to serve (-DATT_REPORT=OFF)");
    att_server *created;
    ATT_TRY(att_new(context, &created, 1, "a server"));
    created->context = created->arena.context = context;
    created->groups = groups;
    const att_status status = start(created, options != NULL ? options : &defaults, limits, count);
    if (status != ATT_OK)
        att_server_close(&created);
    else
        *server = created;
    return status;
}

att_status att_server_start(att_context *context, const att_serve_options *options, att_server **server)
{
    static const att_route_group *const groups[] = {
#define ATT_ROUTE_GROUP_ENTRY(name) &att_routes_##name,
        ATT_ROUTE_GROUP_LIST(ATT_ROUTE_GROUP_ENTRY)
#undef ATT_ROUTE_GROUP_ENTRY
    };
    const att_serve_limits limits = att_serve_limits_defaults();
    return att_server_start_with(context, options, &limits, groups, sizeof groups / sizeof *groups, server);
}

const char *att_server_url(const att_server *server)
{
    return server->url;
}

void att_server_close(att_server **server)
{
    if (server == NULL || *server == NULL)
        return;
    att_server *closing = *server;
    att_http_stop(&closing->http);
    for (int i = closing->opened - 1; i >= 0; i--)
        if (closing->groups[i]->close != NULL)
            closing->groups[i]->close(closing->states[i]);
    att_free(closing->context, closing->states);
    att_site_destroy(&closing->site);
    att_arena_free(&closing->arena);
    explicit_bzero(&closing->access, sizeof closing->access);
    att_free(closing->context, closing);
    *server = NULL;
}
