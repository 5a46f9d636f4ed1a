/* Times of the operations of one run. */
#include <stdlib.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "engine/session/session.h"
#include "study/network/network.h"

typedef struct timed {
    const char *scope, *op, *kernel;
    double seconds; /* of this run */
} timed;

/* The operations of one of the threads that share the image. One image is one group of samples: the n-th call of a run
 * is always that of the same operation, on every thread. */
typedef struct part {
    timed *rows;
    int count, room;
    int next; /* operation of this run */
    bool failed;
} part;

typedef struct timing {
    att_context *context;
    void *inputs[ATT_MAX_INPUTS]; /* zeros; of texts the number of their tokens */
    att_field fields[ATT_MAX_INPUTS];
    part *parts; /* [threads] */
    int threads;
    double *seconds; /* [operations][runs] */
} timing;

static void add(void *user, int number, const char *scope, const char *op, const char *kernel, double seconds)
{
    const timing *t = user;
    part *p = &t->parts[number];
    if (p->next == p->count && !att_list_grow(t->context, &p->rows, p->count, &p->room, sizeof *p->rows))
        p->failed = true;
    if (p->failed)
        return;
    p->count = p->next == p->count ? p->count + 1 : p->count;
    p->rows[p->next++] = (timed){scope, op, kernel, seconds};
}

static att_status check_memory(const timing *t)
{
    for (int i = 0; i < t->threads; i++)
        if (t->parts[i].failed)
            return att_fail_memory(t->context, sizeof(timed), "the times of operations");
    return ATT_OK;
}

static att_status run_once(att_network *network, timing *t)
{
    const att_shapes own = att_model_shapes(network->model);
    att_batch inputs = {
        .count = 1, .field_count = own.count, .fields = t->fields, .data = (const void *const *)t->inputs};
    att_sized_inputs room;
    att_network_view *view;
    att_batch answers;
    ATT_TRY(att_network_add_image_sizes(network, NULL, &inputs, &room));
    ATT_TRY(att_network_get_view(network, &network->views, network->outputs, &own, 1, &view));
    for (int i = 0; i < t->threads; i++)
        t->parts[i].next = 0;
    att_session_trace(view->inference.session, add, t);
    att_status status = att_inference_run(&view->inference, &inputs, 1, &answers);
    att_session_trace(view->inference.session, NULL, NULL);
    return status == ATT_OK ? check_memory(t) : status;
}

/* Keeps the seconds of the slowest thread of each operation. */
static void keep_run(const timing *t, int run, int runs)
{
    for (int i = 0; i < t->parts[0].count; i++) {
        double slowest = 0;
        for (int p = 0; p < t->threads; p++)
            if (i < t->parts[p].count && t->parts[p].rows[i].seconds > slowest)
                slowest = t->parts[p].rows[i].seconds;
        t->seconds[(size_t)i * (size_t)runs + (size_t)run] = slowest;
    }
}

/* Runs once to warm up, then `runs` times. */
static att_status run_all(att_network *network, int runs, timing *t)
{
    ATT_TRY(run_once(network, t));
    const size_t count = (size_t)t->parts[0].count;
    ATT_TRY(att_new(t->context, &t->seconds, count * (size_t)runs + 1, "the times of operations"));
    for (int i = 0; i < runs; i++) {
        if (att_stop_asked(t->context))
            return att_fail(t->context, ATT_ERR_STOPPED, "stopped on request while times were measured");
        ATT_TRY(run_once(network, t));
        keep_run(t, i, runs);
    }
    return ATT_OK;
}

static int compare(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Sorts the numbers. */
static double median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

static void release(const timing *t)
{
    for (int i = 0; t->parts && i < t->threads; i++)
        att_free(t->context, t->parts[i].rows);
    att_free(t->context, t->parts);
    att_free(t->context, t->seconds);
    for (int i = 0; i < ATT_MAX_INPUTS; i++)
        att_free(t->context, t->inputs[i]);
}

static att_status prepare(const att_network *network, timing *t)
{
    for (int i = 0; att_model_input_at(network->model, i).field.name; i++) {
        const att_model_input input = att_model_input_at(network->model, i);
        t->fields[i] = input.field;
        ATT_TRY(att_new_array(t->context, &t->inputs[i], 1, att_field_bytes(&t->fields[i]), "an input of a network"));
        for (int64_t e = 0; input.least > 0 && e < att_shape_count(input.field.shape); e++)
            ((int32_t *)t->inputs[i])[e] = input.most; /* texts without padding */
    }
    return att_new(t->context, &t->parts, (size_t)t->threads, "the times of operations");
}

att_status att_network_time(att_network *network, int runs,
                            void (*row)(void *user, const char *scope, const char *op, const char *kernel,
                                        double seconds),
                            void *user)
{
    timing t = {.context = network->context, .threads = att_context_threads(network->context)};
    if (runs < 1)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "%d runs, expected at least 1", runs);
    att_status status = prepare(network, &t);
    if (status == ATT_OK)
        status = run_all(network, runs, &t);
    for (int i = 0; status == ATT_OK && i < t.parts[0].count; i++) {
        const timed *of = &t.parts[0].rows[i];
        row(user, of->scope, of->op, of->kernel, median(t.seconds + (size_t)i * (size_t)runs, runs));
    }
    release(&t);
    return status;
}
