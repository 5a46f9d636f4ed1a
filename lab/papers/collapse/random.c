#include "base/core/random.h"

#include <math.h>

#include "lab/papers/collapse/stack.h"

static void draw(const att_stack_options *o, const char *name, int layer, double deviation, double *to, size_t count)
{
    att_random random = att_random_from(att_random_key(o->seed, att_random_hash(name), (uint64_t)layer));
    for (size_t i = 0; i < count; i++)
        to[i] = deviation * att_random_normal(&random);
}

static double deviation_of(const att_stack_options *o, int inputs)
{
    return o->init_std > 0 ? o->init_std : 1 / sqrt(inputs);
}

size_t att_stack_weights_size(const att_stack_options *o)
{
    size_t width = (size_t)o->width, hidden = (size_t)o->hidden;
    return 4 * width * width + (o->mlp ? 2 * width * hidden : 0);
}

static void draw_layer(att_stack *stack, int layer)
{
    const att_stack_options *o = &stack->options;
    size_t square = (size_t)o->width * (size_t)o->width, oblong = (size_t)o->width * (size_t)o->hidden;
    static const char *const names[] = {"q", "k", "v", "o"};
    double *at = stack->random;
    const double **squares[] = {&stack->drawn.q, &stack->drawn.k, &stack->drawn.v, &stack->drawn.o};
    for (int i = 0; i < 4; i++, at += square) {
        draw(o, names[i], layer, deviation_of(o, o->width), at, square);
        *squares[i] = at;
    }
    if (!o->mlp)
        return;
    draw(o, "fc1", layer, o->mlp_gain * deviation_of(o, o->width), at, oblong);
    draw(o, "fc2", layer, o->mlp_gain * deviation_of(o, o->hidden), at + oblong, oblong);
    stack->drawn.fc1 = at;
    stack->drawn.fc2 = at + oblong;
}

const att_stack_weights *att_stack_weights_of(att_stack *stack, int index)
{
    const att_stack_options *o = &stack->options;
    if (o->layer)
        return o->layer(o->user, index);
    int layer = o->shared ? 0 : index;
    if (layer != stack->drawn_layer)
        draw_layer(stack, layer);
    stack->drawn_layer = layer;
    return &stack->drawn;
}

void att_stack_draw_tokens(const att_stack_options *o, double *tokens)
{
    draw(o, "tokens", 0, o->input_std, tokens, (size_t)o->tokens * (size_t)o->width);
}
