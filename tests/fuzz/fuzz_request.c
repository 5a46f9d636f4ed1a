/* The head of a request to `attscope serve`, one part per line: without the token, nothing is answered; a redirection
 * leads to a path of the server, and has no token. */
#include "fuzz.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/serve/dispatch.h"

/* Whoever knows these 64 digits is let in. */
#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { PARTS = 10, VALUE = 16 };

static att_status handle(const att_request *request, att_response *response)
{
    char text[VALUE];
    int64_t number;
    ATT_TRY(att_request_text(request, "name", text, sizeof text));
    fuzz_require(strlen(text) < VALUE, "a value fits");
    ATT_TRY(att_request_integer(request, "run", 0, 9, &number));
    fuzz_require(number >= 0 && number <= 9, "a number is in its range");
    att_text_append(&response->body, "%s", text);
    return ATT_OK;
}

static const att_route routes[] = {
    {"/", ATT_GET, handle}, {"/api/text", ATT_GET, handle}, {"/api/body", ATT_GET | ATT_POST, handle}};
static const att_route_group group = {routes, sizeof routes / sizeof *routes, .open = NULL};

/* Splits the input into lines. A part that is missing or "-" is NULL. */
static void split(char *text, const char *parts[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        parts[i] = text;
        if (text != NULL && (text = strchr(text, '\n')) != NULL)
            *text++ = '\0';
        if (parts[i] != NULL && strcmp(parts[i], "-") == 0)
            parts[i] = NULL;
    }
}

static att_head head_of(const char *const parts[PARTS])
{
    att_head head = {.method = parts[0] != NULL ? parts[0] : "GET",
                     .target = parts[1] != NULL ? parts[1] : "/",
                     .host = parts[2],
                     .origin = parts[3],
                     .fetch_site = parts[4],
                     .fetch_mode = parts[5],
                     .fetch_dest = parts[6],
                     .authorization = parts[7],
                     .cookie = parts[8],
                     .has_length = parts[9] != NULL};
    if (parts[9] != NULL && !att_text_to_i64(parts[9], &head.length))
        head.length = -1;
    return head;
}

/* Whether the input has the token, also with digits in the encoding of URLs. */
static bool knows_token(const uint8_t *data, size_t size)
{
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        const bool coded = data[i] == '%' && i + 2 < size;
        const char code[3] = {coded ? (char)data[i + 1] : '0', coded ? (char)data[i + 2] : '0', '\0'};
        const int c = coded ? (int)strtol(code, NULL, 16) : data[i];
        i += coded ? 2 : 0;
        if (c != TOKEN[digits]) /* digits repeat every 16, so that what matched matches again, less 16 */
            digits = c == TOKEN[0] ? 0 : SIZE_MAX;
        digits = digits == SIZE_MAX ? 0 : digits + 1;
        if (digits == sizeof TOKEN - 1)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void *state;
    static const att_route_group *const groups[] = {&group};
    const att_table table = {groups, &state, 1};
    const att_access access = {.token = TOKEN, .cookie = "attscope-1"};
    const size_t before = fuzz_begin();
    char *text = malloc(size + 1);
    const char *parts[PARTS];
    fuzz_require(text != NULL, "memory");
    memcpy(text, data, size);
    text[size] = '\0';
    split(text, parts);
    const att_head head = head_of(parts);
    att_call call;
    att_response response = {.body.context = fuzz_context()};
    const bool called = att_dispatch(&table, &access, 1000, &head, &call, &response);
    fuzz_require(!(called || response.status == 303) || knows_token(data, size), "only the token lets in");
    fuzz_require(called || response.status >= 300, "a request is answered or refused");
    if (response.location != NULL)
        fuzz_require(response.location[0] == '/' && response.location[1] != '/', "a redirection stays on this server");
    if (called) {
        att_request request = {.context = fuzz_context(), .query = call.query};
        att_dispatch_call(&call, &request, &response);
    }
    att_free(fuzz_context(), response.location);
    att_free(fuzz_context(), response.cookie);
    att_text_free(&response.body);
    free(text);
    fuzz_end(before);
    return 0;
}
