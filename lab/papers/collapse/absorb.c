#include <math.h>

#include "base/core/error.h"
#include "lab/papers/collapse/stack.h"

/* A stack with column-wise norm, and the weights that absorb its norm. */
typedef struct absorbed {
    att_stack *normed;
    att_stack_weights weights;
    double *o, *bias; /* W_O D^-1, (b_O - b) D^-1 */
} absorbed;

/* The weights of the layer that `normed` ran last. */
static const att_stack_weights *absorb(void *user, int index)
{
    absorbed *a = user;
    const att_stack_weights *w = att_stack_weights_of(a->normed, index);
    int d = a->normed->options.width;
    if (!w)
        return NULL;
    for (int i = 0; i < d * d; i++)
        a->o[i] = w->o[i] * exp(-a->normed->scales[i % d]);
    for (int c = 0; c < d; c++) {
        double shift = exp(a->normed->shift_log - a->normed->scales[c]) * a->normed->shift[c];
        a->bias[c] = (w->o_bias ? w->o_bias[c] * exp(-a->normed->scales[c]) : 0) - shift;
    }
    a->weights = *w;
    a->weights.o = a->o;
    a->weights.o_bias = a->bias;
    return &a->weights;
}

/* The stack with norm; without norm from the same X_0; without norm from the tokens of the first before each layer. */
typedef struct trio {
    att_stack normed, chained, restarted;
    absorbed weights;
} trio;

static att_status compare(trio *t, att_stack_absorption *differences)
{
    att_stack_layer layer;
    att_stack_begin(&t->normed, &layer);
    att_stack_begin(&t->chained, &layer);
    att_stack_begin(&t->restarted, &layer);
    for (int l = 0; l < t->normed.options.depth; l++) {
        att_tokens_copy(&t->normed.x, &t->restarted.x);
        ATT_TRY(att_stack_step(&t->normed, l, &layer));
        ATT_TRY(att_stack_step(&t->chained, l, &layer));
        ATT_TRY(att_stack_step(&t->restarted, l, &layer));
        differences[l].stack = att_tokens_difference(&t->normed.x, &t->chained.x, t->normed.scratch);
        differences[l].layer = att_tokens_difference(&t->normed.x, &t->restarted.x, t->normed.scratch);
    }
    return ATT_OK;
}

static att_status create(att_context *context, const att_stack_options *with, trio *t)
{
    size_t d = (size_t)with->width;
    ATT_TRY(att_stack_create(context, with, &t->normed));
    t->weights = (absorbed){.normed = &t->normed,
                            .o = att_arena_allocate(&t->normed.arena, d * d * sizeof(double)),
                            .bias = att_arena_allocate(&t->normed.arena, d * sizeof(double))};
    if (!t->weights.o || !t->weights.bias)
        return att_fail_memory(context, d * d * sizeof(double), "the weights that absorb a norm");
    att_stack_options without = *with;
    without.norm = ATT_STACK_NORM_NONE;
    without.layer = absorb;
    without.user = &t->weights;
    ATT_TRY(att_stack_create(context, &without, &t->chained));
    return att_stack_create(context, &without, &t->restarted);
}

att_status att_stack_absorb(att_context *context, const att_stack_options *options, att_stack_absorption *differences)
{
    att_stack_options with = options ? *options : att_stack_options_defaults();
    if (with.skip || with.mlp || with.pre_norm)
        return att_fail(context, ATT_ERR_ARGUMENT, "only a stack without skip, MLP and pre_norm absorbs its norm");
    with.norm = ATT_STACK_NORM_COLUMN;
    trio t = {.normed.context = context};
    t.normed.arena.context = t.chained.arena.context = t.restarted.arena.context = context;
    att_status status = create(context, &with, &t);
    if (status == ATT_OK)
        status = compare(&t, differences);
    att_stack_free(&t.restarted);
    att_stack_free(&t.chained);
    att_stack_free(&t.normed);
    return status;
}
