#include "lab/serve/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/serve/query.h"

enum { METHODS = 3, TOKEN_MOST = 256 };

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void append_html(att_text *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            att_text_append(out, "&lt;");
            break;
        case '&':
            att_text_append(out, "&amp;");
            break;
        default:
            att_text_append_bytes(out, text, 1);
        }
}

static void make_error_page(att_response *response, int status, const char *sentence)
{
    att_context *context = response->body.context;
    att_text_free(&response->body);
    response->body = (att_text){.context = context};
    response->status = status;
    response->type = "text/html; charset=utf-8";
    response->nonce[0] = '\0';
    att_text_append(&response->body,
                    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>attscope</title>\n"
                    "<h1>attscope</h1>\n<p>");
    append_html(&response->body, sentence);
    /* The link lets a browser send its cookie, which it keeps back after a link from another site. */
    att_text_append(&response->body, "</p>\n<p><a href=\"/\">Runs and models</a></p>\n</html>\n");
}

void att_refuse(const char *target, int status, const char *sentence, att_response *response)
{
    if (att_is_api(target))
        att_response_error(response, status, sentence);
    else
        make_error_page(response, status, sentence);
}

/* Returns false, so that a rule can `return refuse(...)`. */
static bool refuse(const att_head *head, int status, const char *sentence, att_response *response)
{
    att_refuse(head->target, status, sentence, response);
    return false;
}

static bool refuse_method(const att_head *head, const char *allow, att_response *response)
{
    char sentence[96];
    response->allow = allow;
    snprintf(sentence, sizeof sentence, "This address does not answer %.20s requests, only %s.", head->method, allow);
    return refuse(head, 405, sentence, response);
}

/* --- routes ------------------------------------------------------------------------------------------------------- */

static bool find_route(const att_table *table, const char *target, att_call *call)
{
    const size_t length = strcspn(target, "?");
    for (int g = 0; g < table->count; g++)
        for (int r = 0; r < table->groups[g]->count; r++) {
            const att_route *route = &table->groups[g]->routes[r];
            if (strlen(route->path) != length || strncmp(route->path, target, length) != 0)
                continue;
            const char *query = target + length + (target[length] == '?');
            *call = (att_call){route, table->states[g], query};
            return true;
        }
    return false;
}

/* The methods of a route as the header Allow lists them. */
static const char *allowed(int methods)
{
    static const char *const texts[METHODS + 1] = {"", "GET, HEAD", "POST", "GET, HEAD, POST"};
    return texts[methods];
}

/* 0 for a method that no route has. */
static int method_of(const char *name)
{
    return strcmp(name, "GET") == 0 || strcmp(name, "HEAD") == 0 ? ATT_GET : strcmp(name, "POST") == 0 ? ATT_POST : 0;
}

/* --- the token in the query --------------------------------------------------------------------------------------- */

/* Sends the browser to the same page without the token, with a cookie. */
static void redirect(const att_access *access, const att_call *call, att_response *response)
{
    att_context *context = response->body.context;
    att_text location = {.context = context}, cookie = {.context = context}, rest = {.context = context};
    att_query_without(call->query, "token", &rest);
    att_text_append(&location, "%s%s%s", call->route->path, rest.length > 0 ? "?" : "",
                    rest.length > 0 ? rest.data : "");
    att_text_append(&cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", access->cookie, access->token);
    response->status = 303;
    response->location = location.data;
    response->cookie = cookie.data;
    att_text_free(&rest);
}

/* Whether the request was answered because of a token in its query. */
static bool answer_token(const att_access *access, const att_head *head, bool found, const att_call *call,
                         att_response *response)
{
    char token[TOKEN_MOST];
    const char *query = strchr(head->target, '?');
    const att_query_found given =
        query != NULL ? att_query_find(query + 1, "token", token, sizeof token) : ATT_QUERY_ABSENT;
    if (given == ATT_QUERY_ABSENT)
        return false;
    if (given != ATT_QUERY_FOUND || !att_access_is_token(access, token, strlen(token)))
        refuse(head, 403,
               "The token in this address is not the one of this server: open the address that attscope "
               "serve printed when it was started.",
               response);
    else if (method_of(head->method) != ATT_GET)
        refuse(head, 403,
               "A token in the address is for opening pages only: send the header \"Authorization: token "
               "TOKEN\".",
               response);
    else if (!found)
        refuse(head, 404, "There is no such page.", response);
    else
        redirect(access, call, response);
    return true;
}

/* --- all rules ---------------------------------------------------------------------------------------------------- */

static bool check_body(const att_head *head, size_t most, att_response *response)
{
    if (method_of(head->method) == ATT_GET)
        return head->length == 0 && !head->encoded
                   ? true
                   : refuse(head, 400, "A request with this method has no body.", response);
    if (!head->has_length || head->encoded)
        return refuse(head, 411, "A body needs the header Content-Length, and no Transfer-Encoding.", response);
    if (head->length < 0)
        return refuse(head, 400, "Content-Length is not a whole number of bytes.", response);
    if ((uint64_t)head->length <= most)
        return true;
    char sentence[128];
    snprintf(sentence, sizeof sentence, "The body has %lld bytes; this server takes at most %zu.",
             (long long)head->length, most);
    return refuse(head, 413, sentence, response);
}

bool att_dispatch(const att_table *table, const att_access *access, size_t most, const att_head *head, att_call *call,
                  att_response *response)
{
    att_refusal refusal = att_access_check_sender(access, head);
    if (refusal.status != 0)
        return refuse(head, refusal.status, refusal.sentence, response);
    const bool found = find_route(table, head->target, call);
    if (answer_token(access, head, found, call, response))
        return false;
    refusal = att_access_check_token(access, head);
    if (refusal.status != 0)
        return refuse(head, refusal.status, refusal.sentence, response);
    const int method = method_of(head->method);
    if (method == 0)
        return refuse_method(head, allowed(found ? call->route->methods : ATT_GET | ATT_POST), response);
    if (!found)
        return refuse(head, 404, "There is no such page.", response);
    if (!(call->route->methods & method))
        return refuse_method(head, allowed(call->route->methods), response);
    return check_body(head, most, response);
}

static int status_of(att_status status)
{
    switch (status) {
    case ATT_ERR_NOT_FOUND:
        return 404;
    case ATT_ERR_ARGUMENT:
        return 400;
    case ATT_ERR_FORMAT:
    case ATT_ERR_UNSUPPORTED:
        return 422;
    case ATT_ERR_MEMORY:
    case ATT_ERR_STOPPED:
        return 503;
    default:
        return 500;
    }
}

void att_dispatch_call(const att_call *call, att_request *request, att_response *response)
{
    response->status = 200;
    const att_status status = call->route->handle(request, response);
    if (status != ATT_OK)
        att_refuse(call->route->path, status_of(status), att_context_message(request->context), response);
}
