#include "lab/papers/experiments/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* Of the states of all sums. */
static const int64_t MOST_BYTES = 128 << 20;

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

/* The order in which a path comes after those that it begins with. */
static int compare_terms(const void *left, const void *right)
{
    const att_path_term *a = left, *b = right;
    for (int i = 0; i < a->path.length && i < b->path.length; i++) {
        if (a->path.layers[i] != b->path.layers[i])
            return a->path.layers[i] - b->path.layers[i];
        if (a->path.heads[i] != b->path.heads[i])
            return a->path.heads[i] - b->path.heads[i];
    }
    return a->path.length != b->path.length ? a->path.length - b->path.length : a->sum - b->sum;
}

/* As many samples as the states of all sums of one fit into MOST_BYTES. */
static int chunk_of(const att_san_spec *spec, const att_path_sums *sums)
{
    int64_t each = (1 + ATT_PATH_MOST + (int64_t)sums->count) * state_size(spec) * (int64_t)sizeof(float);
    int64_t most = MOST_BYTES / each;
    return most < 1 ? 1 : most < ATT_CHUNK ? (int)most : ATT_CHUNK;
}

static att_status allocate(att_walker *walker)
{
    const att_san_spec *spec = walker->spec;
    size_t chunk = (size_t)(walker->chunk * state_size(spec)) * sizeof(float);
    size_t states = (1 + ATT_PATH_MOST) * chunk, added = att_size_product((size_t)walker->sums->count, chunk);
    size_t logits = (size_t)(ATT_CHUNK * spec->tokens * spec->outputs) * sizeof(float);
    walker->arena.context = walker->context;
    walker->states = att_arena_allocate(&walker->arena, states);
    walker->added = att_arena_allocate(&walker->arena, added);
    walker->logits = att_arena_allocate(&walker->arena, logits);
    return walker->states && walker->added && walker->logits
               ? ATT_OK
               : att_fail_memory(walker->context, att_size_sum(states, added), "the states of paths");
}

att_status att_walker_open(att_context *context, const att_graph *graph, const att_san_spec *spec, att_weights *weights,
                           att_path_sums *sums, att_walker *walker)
{
    walker->context = context;
    walker->spec = spec;
    walker->sums = sums;
    walker->chunk = chunk_of(spec, sums);
    qsort(sums->terms, (size_t)sums->term_count, sizeof *sums->terms, compare_terms);
    ATT_TRY(allocate(walker));
    ATT_TRY(att_predictor_open(graph, weights, "embedded", &walker->embedding));
    ATT_TRY(att_predictor_open(graph, weights, "result", &walker->whole));
    ATT_TRY(open_part(walker, att_san_build_step, weights, "next", &walker->step));
    ATT_TRY(open_part(walker, att_san_build_end, weights, "result", &walker->end));
    ATT_TRY(att_session_bind(walker->step.session, "layer", walker->layers));
    return att_session_bind(walker->step.session, "head", walker->heads);
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

/* The states of a chunk after `length` layers of the path at hand. */
static float *state_after(const att_walker *walker, int length)
{
    return walker->states + (int64_t)length * walker->chunk * state_size(walker->spec);
}

static float *added_of(const att_walker *walker, int sum)
{
    return walker->added + (int64_t)sum * walker->chunk * state_size(walker->spec);
}

/* Runs layer number `i` of the path. */
static att_status take_step(att_walker *walker, const att_path *path, int i, int count)
{
    for (int sample = 0; sample < count; sample++) {
        walker->layers[sample] = path->layers[i];
        walker->heads[sample] = path->layers[i] * walker->spec->heads + path->heads[i];
    }
    ATT_TRY(att_session_bind(walker->step.session, "state", state_after(walker, i)));
    ATT_TRY(att_session_run(walker->step.session, count));
    return att_session_output(walker->step.session, "next", 0, count, state_after(walker, i + 1));
}

/* The number of layers that both paths begin with. */
static int shared_length(const att_path *a, const att_path *b)
{
    int i = 0;
    while (i < a->length && i < b->length && a->layers[i] == b->layers[i] && a->heads[i] == b->heads[i])
        i++;
    return i;
}

static void add_state(const att_walker *walker, const att_path_term *term, int count)
{
    const float *from = state_after(walker, term->path.length);
    float *to = added_of(walker, term->sum);
    for (int64_t i = 0; i < count * state_size(walker->spec); i++)
        to[i] += from[i];
}

att_status att_walker_walk(att_walker *walker, const att_samples *samples, int first, int count)
{
    const att_path_sums *sums = walker->sums;
    const att_path none = {.length = 0}, *before = &none;
    ATT_TRY(att_session_bind(walker->embedding.session, "x", samples->x + (size_t)first * samples->x_bytes));
    ATT_TRY(bind_keys(walker->step.session, samples, first));
    ATT_TRY(att_session_run(walker->embedding.session, count));
    ATT_TRY(att_session_output(walker->embedding.session, "embedded", 0, count, state_after(walker, 0)));
    memset(walker->added, 0,
           (size_t)sums->count * (size_t)walker->chunk * (size_t)state_size(walker->spec) * sizeof(float));
    for (int t = 0; t < sums->term_count; t++) {
        const att_path *path = &sums->terms[t].path;
        if (att_stop_asked(walker->context))
            return att_fail(walker->context, ATT_ERR_STOPPED, "stopped while paths were evaluated");
        for (int i = shared_length(before, path); i < path->length; i++)
            ATT_TRY(take_step(walker, path, i, count));
        add_state(walker, &sums->terms[t], count);
        before = path;
    }
    return ATT_OK;
}

att_status att_walker_ask(att_walker *walker, int sum, int count, float *logits)
{
    ATT_TRY(att_session_bind(walker->end.session, "state", added_of(walker, sum)));
    ATT_TRY(att_session_run(walker->end.session, count));
    return att_session_output(walker->end.session, "result", 0, count, logits);
}

att_status att_walker_ask_whole(att_walker *walker, const att_samples *samples, int first, int count, float *logits)
{
    att_session *session = walker->whole.session;
    ATT_TRY(att_session_bind(session, "x", samples->x + (size_t)first * samples->x_bytes));
    ATT_TRY(bind_keys(session, samples, first));
    ATT_TRY(att_session_run(session, count));
    return att_session_output(session, "result", 0, count, logits);
}
