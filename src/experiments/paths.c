#include "experiments/paths.h"

#include <math.h>
#include <string.h>

#include "core/error.h"

att_path att_path_draw(att_random *random, int depth, int heads, int length)
{
    att_path path = {.length = 0};
    /* Selection sampling (Knuth, algorithm S): every set of layers is equally likely. */
    for (int layer = 0; layer < depth && path.length < length; layer++) {
        if (att_random_below(random, depth - layer) >= length - path.length)
            continue;
        path.layers[path.length] = layer;
        path.heads[path.length++] = (int)att_random_below(random, heads);
    }
    return path;
}

static int64_t state_size(const att_san_spec *spec)
{
    return spec->tokens * spec->width;
}

/* Opens the predictor of one of the graphs of a path. */
static att_status open_part(att_walker *walker, void (*build)(att_graph *, const att_san_spec *), att_weights *weights,
                            const char *output, att_predictor *predictor)
{
    att_graph *graph = NULL;
    ATT_TRY(att_graph_create(walker->context, ATT_F32, &graph));
    build(graph, walker->spec);
    att_status status = att_graph_status(graph);
    if (status == ATT_OK)
        status = att_predictor_open(graph, weights, output, predictor);
    att_graph_destroy(&graph);
    return status;
}

static att_status allocate(att_walker *walker)
{
    const att_san_spec *spec = walker->spec;
    size_t state = (size_t)(ATT_CHUNK * state_size(spec)) * sizeof(float);
    size_t logits = (size_t)(ATT_CHUNK * spec->tokens * spec->outputs) * sizeof(float);
    walker->arena.context = walker->context;
    walker->state = att_arena_allocate(&walker->arena, state);
    walker->sum = att_arena_allocate(&walker->arena, state);
    walker->logits = att_arena_allocate(&walker->arena, logits);
    return walker->state && walker->sum && walker->logits
               ? ATT_OK
               : att_fail_memory(walker->context, 2 * state + logits, "the states of paths");
}

att_status att_walker_open(att_context *context, const att_graph *graph, const att_san_spec *spec, att_weights *weights,
                           att_walker *walker)
{
    walker->context = context;
    walker->spec = spec;
    ATT_TRY(allocate(walker));
    ATT_TRY(att_predictor_open(graph, weights, "embedded", &walker->embedding));
    ATT_TRY(att_predictor_open(graph, weights, "logits", &walker->whole));
    ATT_TRY(open_part(walker, att_san_build_step, weights, "next", &walker->step));
    ATT_TRY(open_part(walker, att_san_build_end, weights, "logits", &walker->end));
    ATT_TRY(att_session_bind(walker->step.session, "state", walker->state));
    ATT_TRY(att_session_bind(walker->step.session, "layer", walker->layers));
    ATT_TRY(att_session_bind(walker->step.session, "head", walker->heads));
    return att_session_bind(walker->end.session, "state", walker->sum);
}

void att_walker_close(att_walker *walker)
{
    att_predictor_close(&walker->embedding);
    att_predictor_close(&walker->whole);
    att_predictor_close(&walker->step);
    att_predictor_close(&walker->end);
    att_arena_free(&walker->arena);
}

/* Binds the keys of the samples from `first`, if there are any. The embedding needs none. */
static att_status bind_keys(att_session *session, const att_samples *samples, int first)
{
    return samples->keys ? att_session_bind(session, "keys", samples->keys + (int64_t)first * samples->tokens) : ATT_OK;
}

static att_status walk(att_walker *walker, const att_path *path, int count)
{
    for (int i = 0; i < path->length; i++) {
        for (int sample = 0; sample < count; sample++) {
            walker->layers[sample] = path->layers[i];
            walker->heads[sample] = path->layers[i] * walker->spec->heads + path->heads[i];
        }
        ATT_TRY(att_session_run(walker->step.session, count));
        ATT_TRY(att_session_output(walker->step.session, "next", 0, count, walker->state));
    }
    return ATT_OK;
}

static att_status ask_whole(att_walker *walker, const att_samples *samples, int first, int count, float *logits)
{
    att_session *session = walker->whole.session;
    ATT_TRY(att_session_bind(session, "x", samples->x + (size_t)first * samples->x_bytes));
    ATT_TRY(bind_keys(session, samples, first));
    ATT_TRY(att_session_run(session, count));
    return att_session_output(session, "logits", 0, count, logits);
}

att_status att_walker_ask(att_walker *walker, const att_samples *samples, int first, int count, const att_path *paths,
                          int path_count, float *logits)
{
    if (path_count == 0)
        return ask_whole(walker, samples, first, count, logits);
    int64_t size = count * state_size(walker->spec);
    ATT_TRY(att_session_bind(walker->embedding.session, "x", samples->x + (size_t)first * samples->x_bytes));
    ATT_TRY(bind_keys(walker->step.session, samples, first));
    ATT_TRY(att_session_run(walker->embedding.session, count));
    memset(walker->sum, 0, (size_t)size * sizeof(float));
    for (int p = 0; p < path_count; p++) {
        ATT_TRY(att_session_output(walker->embedding.session, "embedded", 0, count, walker->state));
        ATT_TRY(walk(walker, &paths[p], count));
        for (int64_t i = 0; i < size; i++)
            walker->sum[i] += walker->state[i];
    }
    ATT_TRY(att_session_run(walker->end.session, count));
    return att_session_output(walker->end.session, "logits", 0, count, logits);
}

att_status att_walker_score(att_walker *walker, const att_samples *samples, const att_path *paths, int path_count,
                            double *share)
{
    int64_t right = 0, all = 0;
    for (int first = 0; first < samples->count; first += ATT_CHUNK) {
        int left = samples->count - first, count = left < ATT_CHUNK ? left : ATT_CHUNK;
        if (att_stop_asked(walker->context))
            return att_fail(walker->context, ATT_ERR_STOPPED, "stopped while paths were evaluated");
        ATT_TRY(att_walker_ask(walker, samples, first, count, paths, path_count, walker->logits));
        att_samples_score(samples, first, count, walker->logits, walker->spec->outputs, &right, &all);
    }
    *share = all > 0 ? (double)right / (double)all : NAN;
    return ATT_OK;
}
