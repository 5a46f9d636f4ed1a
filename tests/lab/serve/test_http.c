/* Answers and bodies, over plain sockets: each rule with a request that passes and one that is refused. */
#include "lab/serve/routes.h"

/* --- answers ------------------------------------------------------------------------------------------------------ */

static const char without_scripts[] =
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

SERVED_TEST(every_answer_has_the_safe_headers)
{
    const struct {
        const char *line, *headers;
        int status;
    } cases[] = {{"GET /api/text", "", 200},    {"HEAD /api/text", "", 200},        {"GET /nothing", "", 404},
                 {"GET /api/nothing", "", 404}, {"GET /failure", "", 404},          {"PUT /api/text", "", 405},
                 {"POST /api/sum", "", 411},    {"GET /", "Origin: null\r\n", 403}, {"GET /?token=0", "", 403}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ask_with(self, cases[i].line, cases[i].headers), cases[i].status);
        assert_safe_headers();
        assert_header("Content-Security-Policy", without_scripts);
    }
    assert_int_equal(open_address(self, "GET", "/?token=", self->token), 303);
    assert_safe_headers();
}

SERVED_TEST(scripts_of_a_page_have_a_nonce_of_their_own)
{
    char first[33], policy[512], tag[128];
    assert_int_equal(ask(self, "GET /"), 200);
    assert_safe_headers();
    for (int i = 0; i < 2; i++) {
        const char *nonce = strstr(received, "script-src 'nonce-");
        assert_non_null(nonce);
        char own[33];
        snprintf(own, sizeof own, "%s", nonce + strlen("script-src 'nonce-"));
        assert_int_equal(strspn(own, "0123456789abcdef"), 32);
        snprintf(tag, sizeof tag, "<p>page</p><script nonce=\"%s\">1</script>", own);
        snprintf(policy, sizeof policy,
                 "default-src 'none'; script-src 'nonce-%s'; style-src 'unsafe-inline'; img-src 'self' data: blob:; "
                 "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
                 own);
        assert_header("Content-Security-Policy", policy);
        assert_string_equal(body(), tag);
        if (i == 1)
            assert_string_not_equal(first, own);
        strcpy(first, own);
        assert_int_equal(ask(self, "GET /"), 200);
    }
}

SERVED_TEST(failures_of_handlers_are_sentences)
{
    assert_int_equal(ask(self, "GET /failure"), 404);
    assert_non_null(strstr(body(), "<p>there is no &lt;b>such&lt;/b> thing &amp; that is \"it\"</p>"));
    assert_null(strstr(body(), "half an answer"));
    assert_int_equal(ask(self, "GET /api/failure"), 404);
    assert_string_equal(body(), "{\"error\":\"there is no <b>such</b> thing & that is \\\"it\\\"\"}");
    assert_header("Content-Type", "application/json");
}

SERVED_TEST(parameters_are_decoded_and_checked)
{
    assert_int_equal(ask(self, "GET /api/text?name=a%2Bb+c"), 200);
    assert_string_equal(body(), "hello a+b c");
    const char *const bad[] = {"other=1",  "name=a&name=b",        "name=%", "name=%4", "name=%g0",
                               "name=%00", "name=0123456789012345"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[100];
        snprintf(line, sizeof line, "GET /api/text?%s", bad[i]);
        assert_int_equal(ask(self, line), 400);
        assert_non_null(strstr(body(), "the parameter name is "));
    }
}

SERVED_TEST(only_the_methods_of_a_route_are_answered)
{
    assert_int_equal(ask(self, "GET /api/text"), 200);
    assert_string_equal(body(), "hello ");
    assert_int_equal(ask(self, "HEAD /api/text"), 200);
    assert_header("Content-Length", "6");
    assert_string_equal(body(), "");
    const char *const others[] = {"PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "GETX"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char line[64];
        snprintf(line, sizeof line, "%s /api/text", others[i]);
        assert_int_equal(ask(self, line), 405);
        snprintf(line, sizeof line, "not answer %s requests, only GET, HEAD.", others[i]);
        assert_non_null(strstr(body(), line));
        assert_header("Allow", "GET, HEAD");
    }
    assert_int_equal(ask_with(self, "POST /api/text", "Content-Length: 0\r\n"), 405);
    assert_header("Allow", "GET, HEAD");
    assert_int_equal(ask(self, "GET /api/sum"), 405);
    assert_header("Allow", "POST");
    assert_int_equal(ask(self, "PUT /api/both"), 405);
    assert_header("Allow", "GET, HEAD, POST");
    assert_int_equal(ask(self, "GET /api/both"), 200);
}

SERVED_TEST(paths_are_exact)
{
    const char *const paths[] = {
        "/api/text/",  "/api//text",       "/api/text%00",      "/API/text",       "/api/tex", "/api/textx",
        "/%61pi/text", "/api/../api/text", "/../../etc/passwd", "/web/report.css", "//"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char line[64];
        snprintf(line, sizeof line, "GET %s", paths[i]);
        if (ask(self, line) != 404)
            fail_msg("%s: %s", paths[i], received);
    }
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

/* Posts `size` bytes 1, of which `sent` are sent. Returns the connection. */
static int post(const served *self, const char *path, size_t size, size_t sent)
{
    char head[1024];
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n",
             path, self->token, size);
    const int connection = dial(self);
    send_text(connection, head);
    char *bytes = malloc(sent + 1);
    assert_non_null(bytes);
    memset(bytes, 1, sent);
    send_bytes(connection, bytes, sent);
    free(bytes);
    return connection;
}

SERVED_TEST(bodies_arrive_whole)
{
    const size_t sizes[] = {0, 1, 1000, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "%zu bytes, sum %zu", sizes[i], sizes[i]);
        assert_int_equal(status_in(receive_all(post(self, "/api/sum", sizes[i], sizes[i]), received)), 200);
        assert_string_equal(body(), expected);
    }
}

SERVED_TEST(bodies_are_refused_before_they_are_read)
{
    assert_int_equal(status_in(receive_all(post(self, "/api/sum", (64 << 20) + 1, 0), received)), 413);
    assert_non_null(strstr(body(), "The body has 67108865 bytes; this server takes at most 67108864."));
    assert_int_equal(status_in(receive_all(post(self, "/api/text", 1 << 20, 0), received)), 405);
    assert_int_equal(status_in(receive_all(post(self, "/nothing", 1 << 20, 0), received)), 404);
    assert_int_equal(ask(self, "POST /api/sum"), 411);
    assert_int_equal(ask_with(self, "POST /api/sum", "Transfer-Encoding: chunked\r\n"), 411);
    assert_int_equal(ask_with(self, "POST /api/sum", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 411);
    assert_int_equal(ask_with(self, "GET /api/text", "Content-Length: 5\r\n"), 400);
    assert_int_equal(ask_with(self, "GET /api/text", "Transfer-Encoding: chunked\r\n"), 400);
    const char *const lengths[] = {"-1", "1x", "99999999999999999999999999", "0x10", "+5"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char header[64];
        snprintf(header, sizeof header, "Content-Length: %s\r\n", lengths[i]);
        const int status = ask_with(self, "POST /api/sum", header);
        if (status < 400 || status >= 500)
            fail_msg("Content-Length: %s: %s", lengths[i], received);
    }
    assert_int_equal(ask(self, "GET /api/text"), 200);
}

/* Bodies and answers share the memory. */
TEST(all_requests_together_have_a_limit_of_memory)
{
    enum { BODY = 100000 };
    att_serve_limits limits = att_serve_limits_defaults();
    limits.memory = 350000;
    served self;
    start_limited(&self, &limits);
    assert_int_equal(ask(&self, "GET /api/large"), 200);
    int held[3] = {-1, -1, -1}, status = 200;
    /* All have reserved their memory when a further request is refused. If that came before one of them, that one was
     * refused in its place, so all begin again. */
    for (double end = att_seconds_now() + 60; status == 200 && att_seconds_now() < end;) {
        for (int i = 0; i < 3; i++) {
            if (held[i] >= 0)
                close(held[i]);
            held[i] = post(&self, "/api/sum", BODY, 10);
        }
        poll(NULL, 0, 20); /* gives them time; without it there are more attempts */
        status = status_in(receive_all(post(&self, "/api/sum", BODY, BODY), received));
    }
    assert_int_equal(status, 503);
    assert_non_null(strstr(body(), "need all the memory that it gives to requests; try again later."));
    assert_int_equal(ask(&self, "GET /api/large"), 503);
    assert_non_null(strstr(body(), "need all the memory that it gives to requests; try again later."));
    assert_int_equal(ask(&self, "GET /api/block"), 503);
    assert_non_null(strstr(body(), "need all the memory that it gives to requests; try again later."));
    assert_int_equal(status_in(receive_all(post(&self, "/api/sum", 500, 500), received)), 200);
    /* A client that has gone gives its memory back. */
    close(held[0]);
    for (double end = att_seconds_now() + 60; status == 503 && att_seconds_now() < end;)
        status = status_in(receive_all(post(&self, "/api/sum", BODY, BODY), received));
    assert_int_equal(status, 200);
    close(held[1]);
    close(held[2]);
    served_stop(&self);
    assert_int_equal(atomic_load(&streams_open), 0); /* the refusal closed the stream of /api/block */
}

TEST(stalled_bodies_leave_memory_to_other_requests)
{
    att_serve_limits limits = att_serve_limits_defaults();
    limits.memory = 1000000;
    limits.bodies = 250000;
    served self;
    start_limited(&self, &limits);
    int held[6];
    for (int i = 0; i < 6; i++)
        held[i] = post(&self, "/api/sum", 100000, 10);
    int status = 200;
    for (double end = att_seconds_now() + 60; status == 200 && att_seconds_now() < end;)
        status = status_in(receive_all(post(&self, "/api/sum", 100000, 100000), received));
    assert_int_equal(status, 503);
    assert_non_null(strstr(body(), "need all the memory that it gives to uploads; try again later."));
    assert_int_equal(ask(&self, "GET /api/large"), 200);
    for (int i = 0; i < 6; i++)
        close(held[i]);
    for (double end = att_seconds_now() + 60; status == 503 && att_seconds_now() < end;)
        status = status_in(receive_all(post(&self, "/api/sum", 200000, 200000), received));
    assert_int_equal(status, 200);
    served_stop(&self);
}
