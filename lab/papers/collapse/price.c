#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "lab/papers/collapse/plain.h"

enum { MOST_SAMPLES = 1000 };
static const double PERTURBATION = 1e-3;

typedef struct pricing {
    att_stack stack; /* simulates a sample, and has the weights */
    att_plain plain;
    att_tokens before;                  /* the stack's output without perturbation */
    double *tokens, *moved, *direction; /* [tokens, width] */
    double *gradient, *mean;            /* of all layers' weights */
    size_t size;                        /* elements of a layer's gradient */
    double squares, sensitivity, residual, lambda;
} pricing;

static att_status check(att_context *context, const att_stack_options *o, int samples)
{
    if (!o->mlp || o->norm != ATT_STACK_NORM_NONE)
        return att_fail(context, ATT_ERR_ARGUMENT, "the price of an MLP needs a stack with an MLP and without norm");
    if (o->depth > ATT_STACK_PRICE_DEPTH)
        return att_fail(context, ATT_ERR_ARGUMENT, "the price of an MLP needs at most %d layers, not %d",
                        (int)ATT_STACK_PRICE_DEPTH, o->depth);
    if (samples < 2 || samples > MOST_SAMPLES)
        return att_fail(context, ATT_ERR_ARGUMENT, "the price of an MLP needs 2 to %d samples, not %d",
                        (int)MOST_SAMPLES, samples);
    return ATT_OK;
}

static att_status allocate(pricing *p)
{
    att_arena *arena = &p->stack.arena;
    const att_stack_options *o = &p->stack.options;
    size_t count = (size_t)o->tokens * (size_t)o->width, square = (size_t)o->width * (size_t)o->width;
    p->size = 4 * square + 2 * (size_t)o->width * (size_t)o->hidden;
    size_t all = (size_t)o->depth * p->size;
    double *at = att_arena_allocate(arena, (3 * count + 2 * all) * sizeof *at);
    if (!at || !att_plain_create(arena, o, &p->plain) || !att_tokens_create(arena, o->tokens, o->width, &p->before))
        return att_fail_memory(p->stack.context, (3 * count + 2 * all) * sizeof *at, "gradients of a stack");
    p->tokens = at;
    p->moved = at + count;
    p->direction = at + 2 * count;
    p->gradient = at + 3 * count;
    p->mean = p->gradient + all;
    return ATT_OK;
}

static double norm_of(const double *x, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void draw(const att_stack_options *o, const char *name, int sample, double norm, double *to)
{
    att_random random = att_random_from(att_random_key(o->seed, att_random_hash(name), (uint64_t)sample));
    size_t count = (size_t)o->tokens * (size_t)o->width;
    for (size_t i = 0; i < count; i++)
        to[i] = att_random_normal(&random);
    double own = norm_of(to, count);
    for (size_t i = 0; i < count; i++)
        to[i] *= norm / own;
}

/* Runs the layers on tokens and leaves the result in p->stack.x. */
static att_status simulate(pricing *p, const double *tokens)
{
    att_stack_layer layer;
    att_tokens_split(tokens, &p->stack.x);
    att_stack_begin(&p->stack, &layer);
    for (int l = 0; l < p->stack.options.depth; l++)
        ATT_TRY(att_stack_step(&p->stack, l, &layer));
    return ATT_OK;
}

static att_status add_sensitivity(pricing *p, int sample)
{
    const att_stack_options *o = &p->stack.options;
    size_t count = (size_t)o->tokens * (size_t)o->width;
    double step = PERTURBATION * norm_of(p->tokens, count);
    draw(o, "perturbation", sample, step, p->moved);
    for (size_t i = 0; i < count; i++)
        p->moved[i] += p->tokens[i];
    ATT_TRY(simulate(p, p->tokens));
    p->residual += att_tokens_residual(&p->stack.x).log;
    att_tokens_copy(&p->stack.x, &p->before);
    ATT_TRY(simulate(p, p->moved));
    p->sensitivity += att_tokens_distance(&p->before, &p->stack.x, p->stack.scratch) - log(step);
    return ATT_OK;
}

static att_status add_gradient(pricing *p)
{
    int depth = p->stack.options.depth;
    size_t count = (size_t)p->stack.options.tokens * (size_t)p->stack.options.width, all = (size_t)depth * p->size;
    for (int l = 0; l < depth; l++) {
        const att_stack_weights *w = att_stack_weights_of(&p->stack, l);
        if (!w)
            return ATT_ERR_INTERNAL;
        att_plain_forward(&p->plain, l, w, l == 0 ? p->tokens : p->plain.y);
        att_norms lambda = att_mlp_lipschitz(w, p->stack.options.width, p->stack.options.hidden);
        p->lambda = fmax(p->lambda, exp(0.5 * (lambda.one + lambda.inf)));
    }
    memcpy(p->plain.y, p->direction, count * sizeof *p->direction);
    for (int l = depth - 1; l >= 0; l--) {
        const att_stack_weights *w = att_stack_weights_of(&p->stack, l);
        if (!w)
            return ATT_ERR_INTERNAL;
        att_plain_backward(&p->plain, l, w, p->gradient + (size_t)l * p->size);
    }
    for (size_t i = 0; i < all; i++) {
        p->squares += p->gradient[i] * p->gradient[i];
        p->mean[i] += p->gradient[i];
    }
    return ATT_OK;
}

static att_status add_samples(pricing *p, int samples)
{
    const att_stack_options *o = &p->stack.options;
    draw(o, "loss", 0, 1, p->direction);
    for (int s = 0; s < samples; s++) {
        att_stack_options own = *o;
        own.seed = att_random_key(o->seed, att_random_hash("sample"), (uint64_t)s);
        att_stack_draw_tokens(&own, p->tokens);
        ATT_TRY(add_gradient(p));
        ATT_TRY(add_sensitivity(p, s));
        if (o->progress && !o->progress(o->progress_user, s + 1))
            return att_fail(p->stack.context, ATT_ERR_STOPPED, "stopped after sample %d of %d", s + 1, samples);
    }
    return ATT_OK;
}

att_status att_stack_price_mlp(att_context *context, const att_stack_options *options, int samples,
                               att_stack_price *price)
{
    att_stack_options o = options ? *options : att_stack_options_defaults();
    o.tokens_data = NULL;
    ATT_TRY(check(context, &o, samples));
    pricing p = {.lambda = 0};
    ATT_TRY(att_stack_create(context, &o, &p.stack));
    att_status status = allocate(&p);
    if (status == ATT_OK)
        status = add_samples(&p, samples);
    if (status == ATT_OK) {
        double mean = norm_of(p.mean, (size_t)o.depth * p.size) / samples;
        *price = (att_stack_price){.lambda = p.lambda,
                                   .residual = p.residual / samples,
                                   .sensitivity = p.sensitivity / samples,
                                   .gradient_norm = sqrt(p.squares / samples),
                                   .gradient_variance = fmax(p.squares / samples - mean * mean, 0)};
    }
    att_stack_free(&p.stack);
    return status;
}
