/* The pages: the list of runs, the charts of training runs, the report of runs. */
#include <pthread.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "lab/report/report.h"
#include "lab/serve/list.h"

/* Pages about runs are made one at a time, because each reads all records of a run. */
typedef struct press {
    att_context *context;
    pthread_mutex_t lock;
} press;

static att_status open_press(att_context *context, att_site *site, void **state)
{
    (void)site;
    press *opened;
    ATT_TRY(att_new(context, &opened, 1, "the pages of the server"));
    opened->context = context;
    pthread_mutex_init(&opened->lock, NULL);
    *state = opened;
    return ATT_OK;
}

static void close_press(void *state)
{
    press *closing = state;
    pthread_mutex_destroy(&closing->lock);
    att_free(closing->context, closing);
}

static att_status get_start(const att_request *request, att_response *response)
{
    return att_response_empty_page(request, &att_page_start, response);
}

static att_status append_page(const att_request *request, const att_request_runs *runs, const att_page *page,
                              const att_report_options *options, att_response *response)
{
    press *state = request->state;
    const char *folders[ATT_REQUEST_RUNS], *names[ATT_REQUEST_RUNS];
    for (int i = 0; i < runs->count; i++) {
        folders[i] = runs->folders[i];
        names[i] = runs->names[i];
    }
    pthread_mutex_lock(&state->lock);
    att_status status =
        att_report_append(request->context, folders, names, runs->count, options, page, &response->body);
    pthread_mutex_unlock(&state->lock);
    return status == ATT_OK ? att_response_page(response) : status;
}

static att_status get_page(const att_request *request, const att_page *page, const att_report_options *options,
                           att_response *response)
{
    att_request_runs *runs;
    ATT_TRY(att_request_find_runs(request, &runs));
    const att_status status = append_page(request, runs, page, options, response);
    att_free(request->context, runs);
    return status;
}

static att_status get_report(const att_request *request, att_response *response)
{
    return get_page(request, &att_page_report, NULL, response);
}

static att_status get_live(const att_request *request, att_response *response)
{
    const att_report_options no_maps = {.map_bytes = 0};
    return get_page(request, &att_page_live, &no_maps, response);
}

static const att_route routes[] = {
    {"/", ATT_GET, get_start}, {"/report", ATT_GET, get_report}, {"/live", ATT_GET, get_live}};

const att_route_group att_routes_pages = {routes, sizeof routes / sizeof *routes, open_press, close_press};
