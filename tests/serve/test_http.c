/* The rules of the server, over plain sockets: each with a request that passes and one that is refused. */
#include "data/picture.h"
#include "serve/client.h"

/* --- routes of the test ------------------------------------------------------------------------------------------- */

static atomic_int streams_open;
static atomic_bool event_ready, handler_slow;

static att_status get_text(const att_request *request, att_response *response)
{
    char name[16];
    if (request->query[0] != '\0')
        ATT_TRY(att_request_text(request, "name", name, sizeof name));
    if (atomic_load(&handler_slow))
        att_sleep(2.5);
    response->type = "text/plain";
    att_text_append(&response->body, "hello %s", request->query[0] != '\0' ? name : "");
    return ATT_OK;
}

static att_status get_page(const att_request *request, att_response *response)
{
    (void)request;
    att_text_append(&response->body, "<p>page</p><script>1</script>");
    return att_response_page(response);
}

static att_status get_failure(const att_request *request, att_response *response)
{
    att_text_append(&response->body, "half an answer");
    return att_fail(request->context, ATT_ERR_NOT_FOUND, "there is no <b>such</b> thing & that is \"it\"");
}

static att_status post_sum(const att_request *request, att_response *response)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < request->body_size; i++)
        sum += ((const unsigned char *)request->body)[i];
    response->type = "text/plain";
    att_text_append(&response->body, "%zu bytes, sum %llu", request->body_size, (unsigned long long)sum);
    return ATT_OK;
}

/* 1 when a computation has begun, 2 when it was told to stop. */
static atomic_int computation;

static att_status get_computation(const att_request *request, att_response *response)
{
    (void)response;
    const double start = att_seconds_now();
    atomic_store(&computation, 1);
    while (!att_stop_asked(request->context) && att_seconds_now() - start < PATIENCE_MS / 1000.0)
        att_sleep(0.01);
    atomic_store(&computation, att_stop_asked(request->context) ? 2 : 3);
    return att_fail(request->context, ATT_ERR_STOPPED, "stopped");
}

static att_status next_event(void *user, att_text *out)
{
    bool *begun = user;
    if (!*begun || atomic_exchange(&event_ready, false))
        att_text_append(out, "event: test\ndata: %s\n\n", *begun ? "second" : "first");
    *begun = true;
    return ATT_OK;
}

static void close_stream(void *user)
{
    free(user);
    atomic_fetch_sub(&streams_open, 1);
}

static att_status get_stream(const att_request *request, att_response *response)
{
    (void)request;
    response->stream = (att_stream){next_event, close_stream, calloc(1, sizeof(bool))};
    atomic_fetch_add(&streams_open, 1);
    return ATT_OK;
}

static att_status open_group(att_context *context, att_site *site, void **state)
{
    (void)context, (void)site;
    *state = &streams_open;
    return ATT_OK;
}

static const att_route routes[] = {{"/", ATT_GET, get_page},
                                   {"/api/text", ATT_GET, get_text},
                                   {"/text", ATT_GET, get_text},
                                   {"/failure", ATT_GET, get_failure},
                                   {"/api/failure", ATT_GET, get_failure},
                                   {"/api/sum", ATT_POST, post_sum},
                                   {"/api/both", ATT_GET | ATT_POST, post_sum},
                                   {"/api/computation", ATT_GET, get_computation},
                                   {"/api/stream", ATT_GET, get_stream}};
static const att_route_group group = {routes, sizeof routes / sizeof *routes, .open = open_group};
static const att_route_group *const groups[] = {&group};

static void start_limited(served *self, const att_serve_limits *limits)
{
    static const char *const hosts[] = {"gpu.example.org", "[fe80::1]"};
    att_serve_options options = att_serve_options_defaults();
    options.hosts = hosts;
    options.host_count = 2;
    served_start(self, &options, limits, groups, 1);
}

static int setup(void **state)
{
    static served self;
    const att_serve_limits limits = att_serve_limits_defaults();
    atomic_store(&handler_slow, false);
    start_limited(&self, &limits);
    *state = &self;
    return 0;
}

static int teardown(void **state)
{
    served_stop(*state);
    assert_int_equal(atomic_load(&streams_open), 0);
    return 0;
}

/* --- the token ---------------------------------------------------------------------------------------------------- */

static int with_cookie(const served *self, const char *cookies)
{
    char headers[2048];
    snprintf(headers, sizeof headers, "Host: localhost\r\nCookie: %s\r\n", cookies);
    return request(self, "GET /api/text", headers);
}

static void requests_need_the_token(void **state)
{
    const served *self = *state;
    assert_int_equal(request(self, "GET /", "Host: localhost\r\n"), 403);
    assert_non_null(strstr(body(), "This server needs its token"));
    assert_int_equal(request(self, "GET /api/text", "Host: localhost\r\n"), 403);
    assert_non_null(strstr(body(), "{\"error\":\"This server needs its token"));
    /* Without the token, nobody learns which addresses exist, or their methods. */
    assert_int_equal(request(self, "GET /nothing", "Host: localhost\r\n"), 403);
    assert_int_equal(request(self, "PUT /api/text", "Host: localhost\r\n"), 403);
    assert_int_equal(ask(self, "GET /"), 200);
    assert_int_equal(ask(self, "GET /api/text"), 200);
    assert_int_equal(ask(self, "GET /nothing"), 404);
}

static void the_header_must_have_the_whole_token(void **state)
{
    const served *self = *state;
    char headers[512], token[65];
    for (int i = -1; i < 64; i += 13) {
        strcpy(token, self->token);
        if (i >= 0)
            token[i] = token[i] == '0' ? '1' : '0';
        snprintf(headers, sizeof headers, "Host: localhost\r\nAuthorization: token %s\r\n", token);
        assert_int_equal(request(self, "GET /api/text", headers), i < 0 ? 200 : 403);
    }
    snprintf(headers, sizeof headers, "Host: localhost\r\nAuthorization: token %.63s\r\n", self->token);
    assert_int_equal(request(self, "GET /api/text", headers), 403);
    snprintf(headers, sizeof headers, "Host: localhost\r\nAuthorization: token %s0\r\n", self->token);
    assert_int_equal(request(self, "GET /api/text", headers), 403);
    snprintf(headers, sizeof headers, "Host: localhost\r\nAuthorization: Basic %s\r\n", self->token);
    assert_int_equal(request(self, "GET /api/text", headers), 403);
}

static void the_cookie_must_have_name_and_token(void **state)
{
    const served *self = *state;
    char text[1024];
    snprintf(text, sizeof text, "attscope-%d=%s", self->port, self->token);
    assert_int_equal(with_cookie(self, text), 200);
    snprintf(text, sizeof text, "a=b;  attscope-%d=%s ;c", self->port, self->token);
    assert_int_equal(with_cookie(self, text), 200);
    snprintf(text, sizeof text, "attscope-%d=old; attscope-%d=%s", self->port, self->port, self->token);
    assert_int_equal(with_cookie(self, text), 200);
    snprintf(text, sizeof text, "attscope-%d=%s", self->port + 1, self->token);
    assert_int_equal(with_cookie(self, text), 403);
    snprintf(text, sizeof text, "attscope-%d=%.63sx", self->port, self->token);
    assert_int_equal(with_cookie(self, text), 403);
    snprintf(text, sizeof text, "xattscope-%d=%s", self->port, self->token);
    assert_int_equal(with_cookie(self, text), 403);
    snprintf(text, sizeof text, "attscope-%d:%s", self->port, self->token);
    assert_int_equal(with_cookie(self, text), 403);
    assert_int_equal(with_cookie(self, ";;=;==; ;"), 403);
    /* A wrong token in a header is not replaced by a right cookie; the password of a proxy is no token. */
    snprintf(text, sizeof text, "Host: localhost\r\nAuthorization: Basic x\r\nCookie: attscope-%d=%s\r\n", self->port,
             self->token);
    assert_int_equal(request(self, "GET /api/text", text), 200);
    snprintf(text, sizeof text, "Host: localhost\r\nAuthorization: token x\r\nCookie: attscope-%d=%s\r\n", self->port,
             self->token);
    assert_int_equal(request(self, "GET /api/text", text), 403);
}

static int open_address(const served *self, const char *method, const char *address, const char *token)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s%s", method, address, token);
    return request(self, line, "Host: localhost\r\n");
}

static void the_address_with_the_token_gives_the_cookie(void **state)
{
    const served *self = *state;
    char cookie[256];
    snprintf(cookie, sizeof cookie, "attscope-%d=%s; Path=/; HttpOnly; SameSite=Strict", self->port, self->token);
    assert_int_equal(open_address(self, "GET", "/?token=", self->token), 303);
    assert_header("Location", "/");
    assert_header("Set-Cookie", cookie);
    assert_int_equal(open_address(self, "GET", "/text?name=a%20b&token=", self->token), 303);
    assert_header("Location", "/text?name=a%20b");
    assert_int_equal(open_address(self, "GET", "/text?%74oken=", self->token), 303);
    assert_header("Location", "/text");
    /* Nothing else is redirected, and no wrong token gives a cookie. */
    const char *const refused[] = {"/?token=0&token=", "/?token=0", "/?token=%zz&x=", "/?token=%00", "/?token="};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(open_address(self, "GET", refused[i], i == 4 ? "" : self->token), 403);
        assert_null(strstr(received, "Set-Cookie"));
    }
    assert_int_equal(open_address(self, "GET", "//example.org/?token=", self->token), 404);
    assert_null(strstr(received, "Set-Cookie"));
    assert_int_equal(open_address(self, "GET", "/nothing?token=", self->token), 404);
    assert_int_equal(open_address(self, "POST", "/api/sum?token=", self->token), 403);
    assert_null(strstr(received, "Set-Cookie"));
}

static void tokens_differ_between_servers(void **state)
{
    const served *self = *state;
    const att_serve_limits limits = att_serve_limits_defaults();
    served other;
    start_limited(&other, &limits);
    assert_string_not_equal(self->token, other.token);
    assert_int_not_equal(self->port, other.port); /* the first one's port is in use */
    assert_int_equal(strspn(other.token, "0123456789abcdef"), 64);
    served_stop(&other);
}

/* --- other sites -------------------------------------------------------------------------------------------------- */

/* Sends a request with the token and these headers in place of Host. */
static int from(const served *self, const char *line, const char *format, ...) ATT_PRINTF(3, 4);
static int from(const served *self, const char *line, const char *format, ...)
{
    char headers[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = snprintf(headers, sizeof headers, "Authorization: token %s\r\n", self->token);
    vsnprintf(headers + length, sizeof headers - (size_t)length, format, arguments);
    va_end(arguments);
    return request(self, line, headers);
}

static void only_allowed_hosts_are_answered(void **state)
{
    const served *self = *state;
    const char *const good[] = {"localhost",     "LocalHost:1", "127.0.0.1",       "127.0.0.1:65535",
                                "[::1]",         "[::1]:80",    "gpu.example.org", "GPU.example.org:8765",
                                "[fe80::1]:8765"};
    const char *const bad[] = {"local",
                               "127.0.0",
                               "gpu.example.org.example.org",
                               "example.org",
                               "localhost.example.org",
                               "127.0.0.1.example.org",
                               "127.0.0.2",
                               "localhost:80:80",
                               "localhost:x",
                               "[::1",
                               "[::2]",
                               "gpu.example.org.:8765",
                               "xlocalhost",
                               "localhost@example.org",
                               "localhost/",
                               "",
                               ":8765",
                               "localhost:123456",
                               "[::1]x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (from(self, "GET /api/text", "Host: %s\r\n", good[i]) != 200)
            fail_msg("%s: %s", good[i], received);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (from(self, "GET /api/text", "Host: %s\r\n", bad[i]) != 421)
            fail_msg("%s: %s", bad[i], received);
    assert_int_not_equal(from(self, "GET /api/text", "X: y\r\n"), 200); /* no Host */
    assert_int_equal(from(self, "GET /api/text", "Host: localhost\r\nHost: localhost\r\n"), 400);
    assert_int_equal(from(self, "GET /api/text", "Host: localhost\r\nhost: example.org\r\n"), 400);
}

static void the_origin_must_be_this_server(void **state)
{
    const served *self = *state;
    const char *const lines[] = {"GET /api/text", "GET /", "POST /api/sum"};
    for (int i = 0; i < 3; i++) {
        const char *length = i == 2 ? "Content-Length: 0\r\n" : "";
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: http://localhost:1\r\n%s", length), 200);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: https://localhost:1\r\n%s", length), 200);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: http://localhost:2\r\n%s", length), 403);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: http://127.0.0.1:1\r\n%s", length), 403);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: http://example.org\r\n%s", length), 403);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: null\r\n%s", length), 403);
        assert_int_equal(from(self, lines[i], "Host: localhost:1\r\nOrigin: \r\n%s", length), 403);
    }
}

static int fetched(const served *self, const char *line, const char *site, const char *mode, const char *dest)
{
    return from(self, line,
                "Host: localhost\r\nContent-Length: 0\r\nSec-Fetch-Site: %s\r\nSec-Fetch-Mode: %s\r\nSec-Fetch-Dest: "
                "%s\r\n",
                site, mode, dest);
}

static void other_sites_may_only_link_to_pages(void **state)
{
    const served *self = *state;
    assert_int_equal(fetched(self, "GET /api/text", "same-origin", "cors", "empty"), 200);
    assert_int_equal(fetched(self, "GET /api/text", "none", "navigate", "document"), 200);
    assert_int_equal(fetched(self, "GET /api/text", "cross-site", "no-cors", "image"), 403);
    assert_int_equal(fetched(self, "GET /api/text", "cross-site", "navigate", "document"), 403);
    /* Another server on this machine is of the same site: only its port differs. */
    assert_int_equal(fetched(self, "GET /api/text", "same-site", "no-cors", "script"), 403);
    assert_int_equal(fetched(self, "GET /", "cross-site", "navigate", "document"), 200);
    assert_int_equal(fetched(self, "GET /", "cross-site", "navigate", "iframe"), 403);
    assert_int_equal(fetched(self, "GET /", "same-site", "no-cors", "script"), 403);
    assert_int_equal(fetched(self, "POST /text", "cross-site", "navigate", "document"), 403);
    assert_int_equal(fetched(self, "POST /api/sum", "same-origin", "cors", "empty"), 200);
    assert_int_equal(fetched(self, "POST /api/sum", "cross-site", "navigate", "document"), 403);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void assert_safe_headers(void)
{
    assert_header("X-Content-Type-Options", "nosniff");
    assert_header("Referrer-Policy", "no-referrer");
    assert_header("Cache-Control", "no-store");
    assert_header("Cross-Origin-Resource-Policy", "same-origin");
    assert_header("Cross-Origin-Opener-Policy", "same-origin");
    assert_null(strstr(received, "Access-Control-"));
    assert_null(strstr(received, "unsafe-eval"));
}

static const char without_scripts[] =
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

static void every_answer_has_the_safe_headers(void **state)
{
    const served *self = *state;
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

static void scripts_of_a_page_have_a_nonce_of_their_own(void **state)
{
    const served *self = *state;
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

static void failures_of_handlers_are_sentences(void **state)
{
    const served *self = *state;
    assert_int_equal(ask(self, "GET /failure"), 404);
    assert_non_null(strstr(body(), "<p>there is no &lt;b>such&lt;/b> thing &amp; that is \"it\"</p>"));
    assert_null(strstr(body(), "half an answer"));
    assert_int_equal(ask(self, "GET /api/failure"), 404);
    assert_string_equal(body(), "{\"error\":\"there is no <b>such</b> thing & that is \\\"it\\\"\"}");
    assert_header("Content-Type", "application/json");
}

static void parameters_are_decoded_and_checked(void **state)
{
    const served *self = *state;
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

static void only_the_methods_of_a_route_are_answered(void **state)
{
    const served *self = *state;
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

static void paths_are_exact(void **state)
{
    const served *self = *state;
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

static void bodies_arrive_whole(void **state)
{
    const served *self = *state;
    const size_t sizes[] = {0, 1, 1000, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "%zu bytes, sum %zu", sizes[i], sizes[i]);
        assert_int_equal(status_in(receive_all(post(self, "/api/sum", sizes[i], sizes[i]), received)), 200);
        assert_string_equal(body(), expected);
    }
}

static void bodies_are_refused_before_they_are_read(void **state)
{
    const served *self = *state;
    assert_int_equal(status_in(receive_all(post(self, "/api/sum", (64 << 20) + 1, 0), received)), 413);
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

static void all_bodies_together_are_bounded(void **state)
{
    (void)state;
    att_serve_limits limits = att_serve_limits_defaults();
    limits.body = 1000;
    limits.bodies = 2500;
    served self;
    start_limited(&self, &limits);
    int first = -1, second = -1, status = 200;
    /* Both have reserved their memory when a third one is refused. If the third came before one of them, that one was
     * refused in its place, so all begin again. */
    for (double end = att_seconds_now() + 60; status == 200 && att_seconds_now() < end;) {
        if (first >= 0) {
            close(first);
            close(second);
        }
        first = post(&self, "/api/sum", 1000, 10), second = post(&self, "/api/sum", 1000, 10);
        poll(NULL, 0, 20); /* gives them time; without it there are more attempts */
        status = status_in(receive_all(post(&self, "/api/sum", 1000, 1000), received));
    }
    assert_int_equal(status, 503);
    assert_int_equal(status_in(receive_all(post(&self, "/api/sum", 500, 500), received)), 200);
    /* A client that has gone gives its memory back. */
    close(first);
    for (double end = att_seconds_now() + 60; status == 503 && att_seconds_now() < end;)
        status = status_in(receive_all(post(&self, "/api/sum", 1000, 1000), received));
    assert_int_equal(status, 200);
    close(second);
    served_stop(&self);
}

/* --- malformed and slow ------------------------------------------------------------------------------------------- */

static void assert_alive(const served *self)
{
    assert_int_equal(ask(self, "GET /api/text"), 200);
}

static void malformed_requests_are_refused(void **state)
{
    const served *self = *state;
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

static void random_bytes_do_no_harm(void **state)
{
    const served *self = *state;
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

static void long_heads_are_refused(void **state)
{
    const served *self = *state;
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

static void a_slow_head_is_given_up(void **state)
{
    (void)state;
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

static void a_slow_handler_is_not_a_slow_client(void **state)
{
    (void)state;
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

static void a_hundred_clients_are_answered_beside_open_streams(void **state)
{
    const served *self = *state;
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

static void connections_are_bounded(void **state)
{
    (void)state;
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

/* --- event streams ------------------------------------------------------------------------------------------------ */

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

static void a_stream_sends_events_as_they_come(void **state)
{
    const served *self = *state;
    const int stream = open_stream(self);
    assert_int_equal(status_in(received), 200);
    assert_header("Content-Type", "text/event-stream");
    assert_safe_headers();
    assert_null(strstr(received, "second"));
    atomic_store(&event_ready, true);
    receive_until(stream, "event: test\ndata: second\n\n", received);
    close(stream);
}

static void a_stream_without_events_sends_comments(void **state)
{
    (void)state;
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

static void a_client_that_goes_ends_its_stream(void **state)
{
    (void)state;
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

static void a_client_that_goes_ends_its_computation(void **state)
{
    const served *self = *state;
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

static void the_end_of_the_server_ends_streams(void **state)
{
    (void)state;
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
static void the_head_of_a_stream_ends(void **state)
{
    const served *self = *state;
    assert_int_equal(ask(self, "HEAD /api/stream"), 200);
    assert_header("Content-Type", "text/event-stream");
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static att_status refuse_to_open(att_context *context, att_site *site, void **state)
{
    (void)site, (void)state;
    return att_fail(context, ATT_ERR_FORMAT, "this group does not open");
}

static void a_server_that_cannot_start_leaves_nothing(void **state)
{
    const served *self = *state;
    static const att_route_group bad = {routes, 1, .open = refuse_to_open};
    static const att_route_group *const both[] = {&group, &bad};
    const att_serve_limits limits = att_serve_limits_defaults();
    const char *const paths[] = {"/nowhere"}, *const names[] = {"nowhere"}, *const hosts[] = {"a b"},
                      *const ports[] = {"example.org:80"};
    const struct {
        att_serve_options options;
        int groups;
        att_status status;
        const char *message;
    } cases[] = {{{.port = self->port}, 1, ATT_ERR_IO, "is in use by another program: choose another --port"},
                 {{.port = 65536}, 1, ATT_ERR_ARGUMENT, "the port 65536 is outside 1..65535"},
                 {{.paths = paths, .path_count = 1}, 1, ATT_ERR_NOT_FOUND, "/nowhere: there is no such file or folder"},
                 {{.paths = names, .path_count = 1}, 1, ATT_ERR_NOT_FOUND, "there is no model \"nowhere\""},
                 {{.images = "/nowhere"}, 1, ATT_ERR_NOT_FOUND, "/nowhere: there is no such folder of images"},
                 {{.hosts = hosts, .host_count = 1}, 1, ATT_ERR_ARGUMENT, "\"a b\" is not the name of a host"},
                 {{.hosts = ports, .host_count = 1}, 1, ATT_ERR_ARGUMENT, "without a port"},
                 {{.port = 0}, 2, ATT_ERR_FORMAT, "this group does not open"}};
    const size_t before = att_context_allocations(self->context).bytes_now;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_server *server = NULL;
        assert_int_equal(
            att_server_start_with(self->context, &cases[i].options, &limits, both, cases[i].groups, &server),
            cases[i].status);
        assert_null(server);
        if (strstr(att_context_message(self->context), cases[i].message) == NULL)
            fail_msg("%s", att_context_message(self->context));
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
}

/* Writes a picture into the folder; path: its path. */
static void write_picture(const scratch *self, char *path, size_t size)
{
    void *bytes;
    size_t count;
    snprintf(path, size, "%s/picture.png", self->folder);
    picture_make(100, &bytes, &count);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

/* Fails each allocation of a start in turn. */
static void a_server_without_memory_leaves_nothing(void **state)
{
    scratch *self = *state;
    const size_t before = att_context_allocations(self->context).bytes_now;
    char picture[512];
    write_picture(self, picture, sizeof picture);
    const char *const paths[] = {self->folder}, *const hosts[] = {"example.org"};
    const att_serve_options options = {
        .paths = paths, .path_count = 1, .images = picture, .hosts = hosts, .host_count = 1};
    att_status status = ATT_ERR_MEMORY;
    int failures = 0;
    for (; status != ATT_OK; failures++) {
        att_server *server = NULL;
        self->allocations_left = failures;
        status = att_server_start(self->context, &options, &server);
        self->allocations_left = -1;
        if (status != ATT_OK && (status != ATT_ERR_MEMORY || server))
            fail_msg("status %d: %s", (int)status, att_context_message(self->context));
        att_server_close(&server);
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
    }
    assert_true(failures > 8);
}

static void only_the_loopback_address_is_open(void **state)
{
    const served *self = *state;
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)self->port)};
    const int other = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in elsewhere = address;
    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &elsewhere.sin_addr), 1);
    assert_int_equal(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    /* The port is free at another address: the server does not listen on all. */
    assert_int_equal(bind(other, (const struct sockaddr *)&elsewhere, sizeof elsewhere), 0);
    assert_int_equal(listen(other, 1), 0);
    close(other);
}

#define rule(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    require_server();
    const struct CMUnitTest tests[] = {
        rule(requests_need_the_token),
        rule(the_header_must_have_the_whole_token),
        rule(the_cookie_must_have_name_and_token),
        rule(the_address_with_the_token_gives_the_cookie),
        rule(tokens_differ_between_servers),
        rule(only_allowed_hosts_are_answered),
        rule(the_origin_must_be_this_server),
        rule(other_sites_may_only_link_to_pages),
        rule(every_answer_has_the_safe_headers),
        rule(scripts_of_a_page_have_a_nonce_of_their_own),
        rule(failures_of_handlers_are_sentences),
        rule(parameters_are_decoded_and_checked),
        rule(only_the_methods_of_a_route_are_answered),
        rule(paths_are_exact),
        rule(bodies_arrive_whole),
        rule(bodies_are_refused_before_they_are_read),
        cmocka_unit_test(all_bodies_together_are_bounded),
        rule(malformed_requests_are_refused),
        rule(random_bytes_do_no_harm),
        rule(long_heads_are_refused),
        cmocka_unit_test(a_slow_head_is_given_up),
        cmocka_unit_test(a_slow_handler_is_not_a_slow_client),
        rule(a_hundred_clients_are_answered_beside_open_streams),
        cmocka_unit_test(connections_are_bounded),
        rule(a_stream_sends_events_as_they_come),
        cmocka_unit_test(a_stream_without_events_sends_comments),
        cmocka_unit_test(a_client_that_goes_ends_its_stream),
        rule(a_client_that_goes_ends_its_computation),
        cmocka_unit_test(the_end_of_the_server_ends_streams),
        rule(the_head_of_a_stream_ends),
        rule(a_server_that_cannot_start_leaves_nothing),
        scratch_test(a_server_without_memory_leaves_nothing),
        rule(only_the_loopback_address_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
