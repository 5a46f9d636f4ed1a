/* serve/routes.h - for tests: a server whose routes answer with text, a page, a failure, a sum, a computation and a
 * stream of events. */
#ifndef TESTS_SERVE_ROUTES_H
#define TESTS_SERVE_ROUTES_H

#include "base/core/memory.h"
#include "lab/serve/client.h"

static atomic_int streams_open;
static atomic_bool event_ready, handler_slow;

static inline att_status get_text(const att_request *request, att_response *response)
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

static inline att_status get_large(const att_request *request, att_response *response)
{
    (void)request;
    response->type = "text/plain";
    for (int i = 0; i < 10000; i++)
        att_text_append(&response->body, "0123456789");
    return ATT_OK;
}

static inline att_status get_page(const att_request *request, att_response *response)
{
    (void)request;
    att_text_append(&response->body, "<p>page</p><script>1</script>");
    return att_response_page(response);
}

static inline att_status get_failure(const att_request *request, att_response *response)
{
    att_text_append(&response->body, "half an answer");
    return att_fail(request->context, ATT_ERR_NOT_FOUND, "there is no <b>such</b> thing & that is \"it\"");
}

static inline att_status post_sum(const att_request *request, att_response *response)
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

static inline att_status get_computation(const att_request *request, att_response *response)
{
    (void)response;
    const double start = att_seconds_now();
    atomic_store(&computation, 1);
    while (!att_stop_asked(request->context) && att_seconds_now() - start < PATIENCE_MS / 1000.0)
        att_sleep(0.01);
    atomic_store(&computation, att_stop_asked(request->context) ? 2 : 3);
    return att_fail(request->context, ATT_ERR_STOPPED, "stopped");
}

static inline att_status next_event(void *user, att_text *out)
{
    bool *begun = user;
    if (!*begun || atomic_exchange(&event_ready, false))
        att_text_append(out, "event: test\ndata: %s\n\n", *begun ? "second" : "first");
    *begun = true;
    return ATT_OK;
}

static inline void close_stream(void *user)
{
    free(user);
    atomic_fetch_sub(&streams_open, 1);
}

static inline att_status get_stream(const att_request *request, att_response *response)
{
    (void)request;
    response->stream = (att_stream){next_event, close_stream, calloc(1, sizeof(bool))};
    atomic_fetch_add(&streams_open, 1);
    return ATT_OK;
}

/* Needs memory, and leaves a stream behind if there is none. */
static inline att_status get_block(const att_request *request, att_response *response)
{
    void *block = att_allocate(request->context, 100000);
    if (block == NULL) {
        ATT_TRY(get_stream(request, response));
        return att_fail_memory(request->context, 100000, "a block");
    }
    att_free(request->context, block);
    return get_text(request, response);
}

static inline att_status open_group(att_context *context, att_site *site, void **state)
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
                                   {"/api/large", ATT_GET, get_large},
                                   {"/api/block", ATT_GET, get_block},
                                   {"/api/both", ATT_GET | ATT_POST, post_sum},
                                   {"/api/computation", ATT_GET, get_computation},
                                   {"/api/stream", ATT_GET, get_stream}};
static const att_route_group group = {routes, sizeof routes / sizeof *routes, .open = open_group};
static const att_route_group *const groups[] = {&group};

static inline void start_limited(served *self, const att_serve_limits *limits)
{
    static const char *const hosts[] = {"gpu.example.org", "[fe80::1]"};
    att_serve_options options = att_serve_options_defaults();
    options.hosts = hosts;
    options.host_count = 2;
    served_start(self, &options, limits, groups, 1);
}

static inline int setup(void **state)
{
    static served self;
    const att_serve_limits limits = att_serve_limits_defaults();
    atomic_store(&handler_slow, false);
    start_limited(&self, &limits);
    *state = &self;
    return 0;
}

static inline int teardown(void **state)
{
    served_stop(*state);
    assert_int_equal(atomic_load(&streams_open), 0);
    return 0;
}

/* A test with a server, `self`. */
#define SERVED_TEST(name) TEST_WITH(name, served *self, setup, teardown)

static inline int open_address(const served *self, const char *method, const char *address, const char *token)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s%s", method, address, token);
    return request(self, line, "Host: localhost\r\n");
}

static inline void assert_alive(const served *self)
{
    assert_int_equal(ask(self, "GET /api/text"), 200);
}

static inline void assert_safe_headers(void)
{
    assert_header("X-Content-Type-Options", "nosniff");
    assert_header("Referrer-Policy", "no-referrer");
    assert_header("Cache-Control", "no-store");
    assert_header("Cross-Origin-Resource-Policy", "same-origin");
    assert_header("Cross-Origin-Opener-Policy", "same-origin");
    assert_null(strstr(received, "Access-Control-"));
    assert_null(strstr(received, "unsafe-eval"));
}

#endif
