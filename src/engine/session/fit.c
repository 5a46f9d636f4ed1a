#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/session/session.h"

typedef struct fitting {
    const att_graph *graph;
    att_plan_options options;
    const att_weights *weights;
    int max_batch;
    size_t memory, extra;
} fitting;

static size_t bytes_of(const fitting *f, const att_plan *plan)
{
    size_t held = att_weights_held_bytes(f->weights);
    return att_size_sum(att_size_sum(att_session_bytes(plan, f->max_batch), held), f->extra);
}

/* Replaces *plan by a new one. On failure *plan is NULL. */
static att_status compile(const fitting *f, size_t keep_bytes, att_plan **plan)
{
    att_plan_options options = f->options;
    options.keep_bytes = keep_bytes;
    att_plan_destroy(plan);
    return att_plan_compile(f->graph, &options, plan);
}

static att_status fail_too_small(const fitting *f, size_t least)
{
    char needed[24], given[24];
    return att_fail(f->graph->context, ATT_ERR_MEMORY,
                    "training needs at least %s (%zu bytes) of memory, but may use only %s; smaller batches or images, "
                    "a smaller network or fewer threads need less",
                    att_size_format(least, needed, sizeof needed), least,
                    att_size_format(f->memory, given, sizeof given));
}

/* Finds the largest keep_bytes whose session fits, by bisection. *plan fits and was compiled with keep_bytes. */
static att_status keep_most(const fitting *f, size_t keep_bytes, att_plan **plan)
{
    size_t low = att_plan_describe(*plan).kept_bytes, high = f->memory / (size_t)f->max_batch + 1;
    if (att_plan_describe(*plan).segments == 1)
        return ATT_OK; /* nothing is kept between segments */
    while (low < high && high - low > high / 64 + 1) {
        size_t middle = low + (high - low) / 2;
        ATT_TRY(compile(f, middle, plan));
        if (bytes_of(f, *plan) <= f->memory)
            low = keep_bytes = middle;
        else
            high = middle;
    }
    return compile(f, keep_bytes, plan);
}

static att_status fit(const fitting *f, att_plan **plan)
{
    const size_t least = 1, default_rule = 0;
    ATT_TRY(compile(f, least, plan));
    size_t bytes = bytes_of(f, *plan);
    if (bytes <= f->memory)
        return keep_most(f, least, plan);
    /* Recomputed values take memory, too: with a small batch, more than recomputing saves. */
    ATT_TRY(compile(f, default_rule, plan));
    size_t default_bytes = bytes_of(f, *plan);
    if (default_bytes <= f->memory)
        return keep_most(f, default_rule, plan);
    return fail_too_small(f, default_bytes < bytes ? default_bytes : bytes);
}

att_status att_session_fit(const att_graph *graph, const att_plan_options *options, const att_weights *weights,
                           int max_batch, size_t memory, size_t extra, att_plan **out)
{
    if (memory == 0)
        return att_plan_compile(graph, options, out);
    fitting f = {.graph = graph,
                 .options = *options,
                 .weights = weights,
                 .max_batch = max_batch,
                 .memory = memory,
                 .extra = extra};
    att_plan *plan = NULL;
    att_status status = fit(&f, &plan);
    if (status != ATT_OK)
        att_plan_destroy(&plan);
    else
        *out = plan;
    return status;
}
