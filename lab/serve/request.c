#include "lab/serve/request.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "lab/serve/access.h"
#include "lab/serve/query.h"

/* --- parameters --------------------------------------------------------------------------------------------------- */

att_status att_request_text(const att_request *request, const char *name, char *text, size_t size)
{
    switch (att_query_find(request->query, name, text, size)) {
    case ATT_QUERY_FOUND:
        return ATT_OK;
    case ATT_QUERY_ABSENT:
        return att_fail(request->context, ATT_ERR_ARGUMENT, "the parameter %s is missing", name);
    case ATT_QUERY_REPEATED:
        return att_fail(request->context, ATT_ERR_ARGUMENT, "the parameter %s is given twice", name);
    default:
        return att_fail(request->context, ATT_ERR_ARGUMENT, "the parameter %s is malformed, or has more than %zu bytes",
                        name, size - 1);
    }
}

att_status att_request_integer(const att_request *request, const char *name, int64_t low, int64_t high, int64_t *value)
{
    char text[24];
    int64_t found;
    ATT_TRY(att_request_text(request, name, text, sizeof text));
    if (!att_text_to_i64(text, &found) || found < low || found > high)
        return att_fail(request->context, ATT_ERR_ARGUMENT, "the parameter %s is not a whole number from %lld to %lld",
                        name, (long long)low, (long long)high);
    *value = found;
    return ATT_OK;
}

static bool has_run(const att_request_runs *runs, const char *name)
{
    for (int i = 0; i < runs->count; i++)
        if (strcmp(runs->names[i], name) == 0)
            return true;
    return false;
}

static att_status add_run(const att_request *request, const char *name, att_request_runs *runs)
{
    if (has_run(runs, name))
        return ATT_OK;
    if (runs->count == ATT_REQUEST_RUNS)
        return att_fail(request->context, ATT_ERR_ARGUMENT, "more than %d runs together: choose fewer",
                        (int)ATT_REQUEST_RUNS);
    ATT_TRY(att_site_find_run(request->site, request->context, name, runs->folders[runs->count]));
    return att_path_copy(request->context, name, runs->names[runs->count++], ATT_RUN_PATH);
}

static att_status find_runs(const att_request *request, att_request_runs *runs)
{
    char name[ATT_RUN_PATH];
    att_query_found found;
    for (const char *at = request->query;
         (found = att_query_find_next(&at, "run", name, sizeof name)) != ATT_QUERY_ABSENT;) {
        if (found != ATT_QUERY_FOUND || *name == '\0')
            return att_fail(request->context, ATT_ERR_ARGUMENT, "a parameter run is malformed, or empty");
        ATT_TRY(add_run(request, name, runs));
    }
    return runs->count > 0 ? ATT_OK : att_fail(request->context, ATT_ERR_ARGUMENT, "the parameter run is missing");
}

att_status att_request_find_runs(const att_request *request, att_request_runs **runs)
{
    att_request_runs *found;
    ATT_TRY(att_new(request->context, &found, 1, "the names of runs"));
    const att_status status = find_runs(request, found);
    if (status == ATT_OK)
        *runs = found;
    else
        att_free(request->context, found);
    return status;
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

att_status att_response_json(att_response *response, att_json_writer *writer)
{
    const char *text;
    size_t length;
    ATT_TRY(att_json_writer_finish(writer, &text, &length));
    response->type = "application/json";
    att_text_append_bytes(&response->body, text, length);
    return response->body.failed ? att_fail_memory(response->body.context, length, "a response") : ATT_OK;
}

/* Gives each script of the page the nonce that the header Content-Security-Policy names. No text of a page's data can
 * contain "<script>" (report/page.h). */
att_status att_response_page(att_response *response)
{
    static const char tag[] = "<script>";
    att_text plain = response->body, marked = {.context = plain.context};
    ATT_TRY(att_random_text(plain.context, response->nonce, sizeof response->nonce));
    for (const char *at = plain.data; at != NULL && *at != '\0';) {
        const char *found = strstr(at, tag);
        att_text_append_bytes(&marked, at, found != NULL ? (size_t)(found - at) : strlen(at));
        if (found != NULL)
            att_text_append(&marked, "<script nonce=\"%s\">", response->nonce);
        at = found != NULL ? found + sizeof tag - 1 : NULL;
    }
    att_text_free(&plain);
    response->type = "text/html; charset=utf-8";
    response->body = marked;
    return marked.failed ? att_fail_memory(marked.context, 0, "a page") : ATT_OK;
}

static void write_empty_list(att_json_writer *json, const char *key)
{
    att_json_put_array(json, key);
    att_json_end_array(json);
}

/* The scripts that the pages share expect the data of a report, here one without runs. */
static att_status append_empty(att_json_writer *json, const att_page *page, att_text *body)
{
    const char *text;
    size_t length;
    att_json_begin_object(json);
    att_json_put_string(json, "attscope", att_version());
    write_empty_list(json, "instruments");
    write_empty_list(json, "tasks");
    write_empty_list(json, "runs");
    att_json_end_object(json);
    ATT_TRY(att_json_writer_finish(json, &text, &length));
    return att_page_append(page, text, length, body);
}

att_status att_response_empty_page(const att_request *request, const att_page *page, att_response *response)
{
    att_json_writer *json = NULL;
    ATT_TRY(att_json_writer_create(request->context, false, &json));
    att_status status = append_empty(json, page, &response->body);
    att_json_writer_destroy(&json);
    return status == ATT_OK ? att_response_page(response) : status;
}

void att_response_error(att_response *response, int status, const char *text)
{
    att_json_writer *json = NULL;
    att_context *context = response->body.context;
    att_text_free(&response->body);
    response->body = (att_text){.context = context};
    response->status = status;
    response->nonce[0] = '\0';
    if (att_json_writer_create(context, false, &json) != ATT_OK)
        return;
    att_json_begin_object(json);
    att_json_put_string(json, "error", text);
    att_json_end_object(json);
    if (att_response_json(response, json) != ATT_OK)
        att_text_free(&response->body);
    att_json_writer_destroy(&json);
}
