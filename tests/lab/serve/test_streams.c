/* Streams of events, and computations whose client goes. */
#include "lab/serve/routes.h"

static int open_stream(const served *self)
{
    char head[512];
    snprintf(head, sizeof head, "GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n",
             self->token);
    const int connection = dial(self);
    send_text(connection, head);
    received[0] = '\0';
    receive_until(connection, "event: test\ndata: first\n\n", received);
    return connection;
}

SERVED_TEST(a_stream_sends_events_as_they_come)
{
    const int stream = open_stream(self);
    assert_int_equal(status_in(received), 200);
    assert_header("Content-Type", "text/event-stream");
    assert_safe_headers();
    assert_null(strstr(received, "second"));
    atomic_store(&event_ready, true);
    receive_until(stream, "event: test\ndata: second\n\n", received);
    close(stream);
}

TEST(a_stream_without_events_sends_comments)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.heartbeat_seconds = 2.5;
    limits.idle_seconds = 1; /* silence of a stream is not that of a client */
    served self;
    start_limited(&self, &limits);
    const int stream = open_stream(&self);
    receive_until(stream, ":\n\n", received);
    atomic_store(&event_ready, true);
    receive_until(stream, "data: second\n\n", received);
    close(stream);
    served_stop(&self);
}

TEST(a_client_that_goes_ends_its_stream)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.heartbeat_seconds = 1e6; /* a comment would fail, and end the stream, too */
    served self;
    start_limited(&self, &limits);
    close(open_stream(&self));
    for (double end = att_seconds_now() + 60; atomic_load(&streams_open) > 0 && att_seconds_now() < end;)
        att_sleep(0.01);
    assert_int_equal(atomic_load(&streams_open), 0);
    served_stop(&self);
}

static void wait_for_computation(int wanted)
{
    const double start = att_seconds_now();
    while (atomic_load(&computation) != wanted) {
        assert_true(att_seconds_now() - start < PATIENCE_MS / 1000.0);
        att_sleep(0.01);
    }
}

SERVED_TEST(a_client_that_goes_ends_its_computation)
{
    char text[512];
    snprintf(text, sizeof text, "GET /api/computation HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n",
             self->token);
    atomic_store(&computation, 0);
    const int connection = dial(self);
    send_text(connection, text);
    wait_for_computation(1);
    att_sleep(0.1);
    assert_int_equal(atomic_load(&computation), 1); /* it goes on while its client waits */
    close(connection);
    wait_for_computation(2);
}

TEST(the_end_of_the_server_ends_streams)
{
    const att_serve_limits limits = att_serve_limits_defaults();
    served self;
    start_limited(&self, &limits);
    int streams[30];
    for (int i = 0; i < 30; i++)
        streams[i] = open_stream(&self);
    const int idle = dial(&self), half = dial(&self);
    send_text(half, "GET / HT");
    served_stop(&self);
    assert_int_equal(atomic_load(&streams_open), 0);
    for (int i = 0; i < 30; i++)
        receive_all(streams[i], received);
    receive_all(idle, received);
    receive_all(half, received);
}

/* A HEAD request must not open a stream that nobody reads. */
SERVED_TEST(the_head_of_a_stream_ends)
{
    assert_int_equal(ask(self, "HEAD /api/stream"), 200);
    assert_header("Content-Type", "text/event-stream");
}
