/* Clients that are malformed, slow or many. */
#include "lab/serve/routes.h"

/* --- malformed and slow ------------------------------------------------------------------------------------------- */

SERVED_TEST(malformed_requests_are_refused)
{
    const char *const requests[] = {
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET  /api/text  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n",
        "POST /api/sum HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "GET /#fragment HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const int connection = dial(self);
        send_text(connection, requests[i]);
        shutdown(connection, SHUT_WR);
        const int status = status_in(receive_all(connection, received));
        if (status == 200 || status == 303)
            fail_msg("request %zu: %s", i, received);
    }
    assert_alive(self);
}

SERVED_TEST(random_bytes_do_no_harm)
{
    uint32_t seed = 1;
    for (int i = 0; i < 300; i++) {
        char bytes[2000];
        size_t size = (size_t)snprintf(bytes, sizeof bytes,
                                       "GET /api/text?name=x HTTP/1.1\r\nHost: localhost\r\n"
                                       "Authorization: token %s\r\nCookie: a=b; c\r\n\r\n",
                                       self->token);
        for (int change = 0; change < 3; change++) {
            seed = seed * 1664525 + 1013904223;
            bytes[(seed >> 8) % size] = (char)(seed >> 24);
        }
        const int connection = dial(self);
        send_bytes(connection, bytes, size);
        shutdown(connection, SHUT_WR);
        receive_all(connection, received);
    }
    assert_alive(self);
}

SERVED_TEST(long_heads_are_refused)
{
    enum { LONG = 1 << 20 };
    char *text = malloc(LONG + 100);
    assert_non_null(text);
    for (int i = 0; i < 2; i++) {
        const char *begin = i == 0 ? "GET /" : "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: ";
        memset(text, 'a', LONG);
        memcpy(text, begin, strlen(begin));
        strcpy(text + LONG, i == 0 ? " HTTP/1.1\r\n\r\n" : "\r\n\r\n");
        const int connection = dial(self);
        send_text(connection, text);
        const int status = status_in(receive_all(connection, received));
        if (status != 0 && (status < 400 || status >= 500))
            fail_msg("%d: %.100s", status, received);
    }
    free(text);
    assert_alive(self);
}

TEST(a_slow_head_is_given_up)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.head_seconds = 0.3;
    served self;
    start_limited(&self, &limits);
    /* Each byte comes in time for a limit of silence, which this limit is not. */
    const int silent = dial(&self), slow = dial(&self);
    struct pollfd closed = {.fd = slow, .events = POLLIN};
    send_text(slow, "GET / HTTP/1.1\r\nX: ");
    for (double end = att_seconds_now() + 60; poll(&closed, 1, 50) == 0 && att_seconds_now() < end;)
        send_text(slow, "a");
    assert_int_equal(closed.revents & POLLIN, POLLIN);
    assert_int_not_equal(status_in(receive_all(slow, received)), 200);
    receive_all(silent, received);
    assert_string_equal(received, "");
    assert_alive(&self);
    served_stop(&self);
}

TEST(a_slow_handler_is_not_a_slow_client)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.head_seconds = 0.3;
    limits.idle_seconds = 1;
    served self;
    start_limited(&self, &limits);
    atomic_store(&handler_slow, true);
    assert_int_equal(ask(&self, "GET /api/text"), 200);
    assert_string_equal(body(), "hello ");
    served_stop(&self);
}

/* --- many clients ------------------------------------------------------------------------------------------------- */

enum { CLIENTS = 100, REQUESTS = 10 };

typedef struct client {
    const served *self;
    pthread_t thread;
    int answered;
} client;

/* Asks on one connection that stays open. */
static void *ask_often(void *user)
{
    client *c = user;
    char head[512], answer[4096];
    snprintf(head, sizeof head, "GET /api/text?name=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n",
             c->self->token);
    const int connection = dial(c->self);
    for (int i = 0; i < REQUESTS; i++) {
        send_text(connection, head);
        size_t size = 0, count = 1;
        answer[0] = '\0';
        while (strstr(answer, "hello x") == NULL && count > 0) {
            count = receive_some(connection, answer + size, sizeof answer - 1 - size);
            answer[size += count] = '\0';
        }
        c->answered += status_in(answer) == 200;
    }
    close(connection);
    return NULL;
}

SERVED_TEST(a_hundred_clients_are_answered_beside_open_streams)
{
    static client clients[CLIENTS];
    int streams[20];
    char head[512];
    snprintf(head, sizeof head, "GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n",
             self->token);
    for (int i = 0; i < 20; i++) {
        streams[i] = dial(self);
        send_text(streams[i], head);
        received[0] = '\0';
        receive_until(streams[i], "data: first", received);
    }
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.self = self};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, ask_often, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].answered, REQUESTS);
    }
    for (int i = 0; i < 20; i++)
        close(streams[i]);
}

TEST(connections_are_bounded)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.connections = 4;
    served self;
    start_limited(&self, &limits);
    int held[4];
    for (int i = 0; i < 4; i++) {
        held[i] = dial(&self);
        send_text(held[i], "GET /api/text HTTP/1.1\r\n");
    }
    const int fifth = dial(&self);
    send_text(fifth, "GET /api/text HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(status_in(receive_all(fifth, received)), 0);
    send_text(held[0], "Host: localhost\r\nConnection: close\r\n\r\n");
    assert_int_equal(status_in(receive_all(held[0], received)), 403);
    for (int i = 1; i < 4; i++)
        close(held[i]);
    int status = 0;
    for (double end = att_seconds_now() + 60; status == 0 && att_seconds_now() < end;)
        status = ask(&self, "GET /api/text");
    assert_int_equal(status, 200);
    served_stop(&self);
}
