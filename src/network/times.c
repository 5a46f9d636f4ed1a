/* Times of the operations of one run. */
#include "core/error.h"
#include "network/network.h"

typedef struct timed {
    const char *scope, *op, *kernel;
    double seconds; /* of all runs */
} timed;

/* One image is one group of samples, whose operations run in order: the n-th call of a run is always that of the same
 * operation. */
typedef struct timing {
    att_context *context;
    timed *rows;
    int count, room;
    int next; /* operation of this run */
    bool failed;
} timing;

static void add(void *user, const char *scope, const char *op, const char *kernel, double seconds)
{
    timing *t = user;
    if (t->next == t->count) {
        if (!att_list_grow(t->context, &t->rows, t->count, &t->room, sizeof *t->rows)) {
            t->failed = true;
            return;
        }
        t->rows[t->count++] = (timed){scope, op, kernel, 0};
    }
    t->rows[t->next++].seconds += seconds;
}

static att_status run_once(att_network *network, const float *pixels, timing *t, bool counts)
{
    const att_preprocess *own = &network->identity.preprocess;
    att_network_view *view;
    att_batch answers;
    ATT_TRY(att_network_get_view(network, own->height, own->width, 1, &view));
    t->next = 0;
    att_session_trace(view->inference.session, counts ? add : NULL, t);
    att_status status = att_inference_run(&view->inference, pixels, 1, &answers);
    att_session_trace(view->inference.session, NULL, NULL);
    return t->failed ? att_fail_memory(network->context, sizeof *t->rows, "the times of operations") : status;
}

att_status att_network_time(att_network *network, int runs, att_trace_fn row, void *user)
{
    const att_preprocess *own = &network->identity.preprocess;
    const size_t count = (size_t)own->height * (size_t)own->width * (size_t)own->in_chans;
    timing t = {.context = network->context};
    if (runs < 1)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "%d runs, expected at least 1", runs);
    float *pixels = att_allocate_array(network->context, count, sizeof *pixels);
    if (!pixels)
        return att_fail_memory(network->context, count * sizeof *pixels, "an image");
    att_status status = run_once(network, pixels, &t, false);
    for (int i = 0; i < runs && status == ATT_OK; i++)
        status = att_stop_asked(network->context)
                     ? att_fail(network->context, ATT_ERR_STOPPED, "stopped on request while times were measured")
                     : run_once(network, pixels, &t, true);
    for (int i = 0; i < t.count && status == ATT_OK; i++)
        row(user, t.rows[i].scope, t.rows[i].op, t.rows[i].kernel, t.rows[i].seconds / runs);
    att_free(network->context, t.rows);
    att_free(network->context, pixels);
    return status;
}
