/* Who is answered: the token, hosts and origins, each with a request that passes and one that is refused. */
#include "lab/serve/routes.h"

/* --- the token ---------------------------------------------------------------------------------------------------- */

static int with_cookie(const served *self, const char *cookies)
{
    char headers[2048];
    snprintf(headers, sizeof headers, "Host: localhost\r\nCookie: %s\r\n", cookies);
    return request(self, "GET /api/text", headers);
}

SERVED_TEST(requests_need_the_token)
{
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

SERVED_TEST(the_header_must_have_the_whole_token)
{
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

SERVED_TEST(the_cookie_must_have_name_and_token)
{
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

SERVED_TEST(the_address_with_the_token_gives_the_cookie)
{
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

SERVED_TEST(tokens_differ_between_servers)
{
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

SERVED_TEST(only_allowed_hosts_are_answered)
{
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

SERVED_TEST(the_origin_must_be_this_server)
{
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

SERVED_TEST(other_sites_may_only_link_to_pages)
{
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

SERVED_TEST(frames_are_for_pages_of_this_host_if_they_are_allowed)
{
    const att_serve_limits limits = att_serve_limits_defaults();
    att_serve_options options = att_serve_options_defaults();
    served framed;
    assert_int_equal(fetched(self, "GET /", "same-site", "navigate", "iframe"), 403);
    assert_int_equal(fetched(self, "GET /", "same-origin", "navigate", "document"), 200);
    assert_non_null(strstr(received, "frame-ancestors 'none'"));
    options.framed = true;
    served_start(&framed, &options, &limits, groups, 1);
    assert_int_equal(fetched(&framed, "GET /", "same-site", "navigate", "iframe"), 200);
    assert_non_null(strstr(received, "frame-ancestors http://localhost:* http://127.0.0.1:*;"));
    assert_int_equal(fetched(&framed, "GET /", "cross-site", "navigate", "iframe"), 403);
    assert_int_equal(fetched(&framed, "GET /api/text", "same-site", "navigate", "iframe"), 403);
    assert_int_equal(fetched(&framed, "GET /", "same-site", "no-cors", "script"), 403);
    assert_int_equal(request(&framed, "GET /", "Host: localhost\r\n"), 403); /* the token is still needed */
    served_stop(&framed);
}

SERVED_TEST(only_the_loopback_address_is_open)
{
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
