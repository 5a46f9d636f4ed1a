/* serve/client.h - for tests: a server with routes of the test, and clients on plain sockets. */
#ifndef TESTS_SERVE_CLIENT_H
#define TESTS_SERVE_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/io/scratch.h"
#include "lab/serve/http.h"
#include "lab/serve/server.h"

enum { PATIENCE_MS = 60000, ANSWER = 1 << 20 };

typedef struct served {
    att_context *context;
    att_server *server;
    size_t before; /* bytes that were allocated before the server was started */
    char token[65];
    int port;
} served;

static inline void served_start(served *self, const att_serve_options *options, const att_serve_limits *limits,
                                const att_route_group *const *groups, int count)
{
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    assert_int_equal(att_context_create(&settings, &self->context), ATT_OK);
    self->before = att_context_allocations(self->context).bytes_now;
    const att_status status = limits != NULL
                                  ? att_server_start_with(self->context, options, limits, groups, count, &self->server)
                                  : att_server_start(self->context, options, &self->server);
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    assert_int_equal(sscanf(att_server_url(self->server), "http://127.0.0.1:%d/", &self->port), 1);
    const char *token = strstr(att_server_url(self->server), "?token=");
    assert_non_null(token);
    snprintf(self->token, sizeof self->token, "%s", token + strlen("?token="));
    assert_int_equal(strlen(self->token), 64);
}

/* Closes the server and checks that it leaves no memory behind. */
static inline void served_stop(served *self)
{
    att_server_close(&self->server);
    assert_null(self->server);
    assert_int_equal(att_context_allocations(self->context).bytes_now, self->before);
    att_context_destroy(&self->context);
}

/* --- one connection ----------------------------------------------------------------------------------------------- */

static inline int dial(const served *self)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)self->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(made >= 0);
    assert_int_equal(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

/* Sends as much as the server takes before it closes the connection. */
static inline void send_bytes(int connection, const void *bytes, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        const ssize_t count = send(connection, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);
        if (count <= 0)
            return;
        sent += (size_t)count;
    }
}

static inline void send_text(int connection, const char *text)
{
    send_bytes(connection, text, strlen(text));
}

/* Receives some bytes. Returns how many; 0: the server has closed the connection. Fails the test if nothing comes. */
static inline size_t receive_some(int connection, char *out, size_t most)
{
    struct pollfd ready = {.fd = connection, .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MS) != 1)
        fail_msg("the server neither answers nor closes the connection");
    const ssize_t count = recv(connection, out, most, 0);
    return count > 0 ? (size_t)count : 0;
}

/* Receives everything until the server closes the connection, and closes it. Returns `out`. */
static inline char *receive_all(int connection, char out[static ANSWER])
{
    size_t size = 0, count;
    while (size + 1 < ANSWER && (count = receive_some(connection, out + size, ANSWER - 1 - size)) > 0)
        size += count;
    out[size] = '\0';
    close(connection);
    return out;
}

/* Receives until the text is there. */
static inline void receive_until(int connection, const char *text, char out[static ANSWER])
{
    size_t size = strlen(out);
    while (strstr(out, text) == NULL) {
        const size_t count = receive_some(connection, out + size, ANSWER - 1 - size);
        if (count == 0)
            fail_msg("the server closed the connection before it sent \"%s\": %s", text, out);
        out[size += count] = '\0';
    }
}

/* --- one request -------------------------------------------------------------------------------------------------- */

static char received[ANSWER];

/* The HTTP status of an answer; 0: there is none. */
static inline int status_in(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

/* Sends a request with a Host and these headers, "Name: value\r\n" each. Returns the status; `received` has all. */
static inline int request(const served *self, const char *line, const char *headers)
{
    char text[8192];
    snprintf(text, sizeof text, "%s HTTP/1.1\r\n%sConnection: close\r\n\r\n", line, headers);
    const int connection = dial(self);
    send_text(connection, text);
    return status_in(receive_all(connection, received));
}

/* The same with Host and token. */
static inline int ask_with(const served *self, const char *line, const char *headers)
{
    char all[2048];
    snprintf(all, sizeof all, "Host: 127.0.0.1:%d\r\nAuthorization: token %s\r\n%s", self->port, self->token, headers);
    return request(self, line, all);
}

static inline int ask(const served *self, const char *line)
{
    return ask_with(self, line, "");
}

/* Checks that `received` has a header with this value. */
static inline void assert_header(const char *name, const char *value)
{
    char line[1024];
    snprintf(line, sizeof line, "\r\n%s: %s\r\n", name, value);
    if (strstr(received, line) == NULL)
        fail_msg("no header \"%s: %s\" in %s", name, value, received);
}

/* The body in `received`. */
static inline const char *body(void)
{
    const char *end = strstr(received, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

/* Ends the program as skipped, with a sentence, in a build without a server. */
static inline void require_server(void)
{
    att_context *context = NULL;
    if (att_context_create(NULL, &context) != ATT_OK)
        exit(1);
    const bool has_server = att_http_check(context) == ATT_OK;
    if (!has_server)
        printf("skipped: %s\n", att_context_message(context));
    att_context_destroy(&context);
    if (!has_server)
        exit(77);
}

int main(void)
{
    require_server();
    return test_run("serve");
}

#endif
