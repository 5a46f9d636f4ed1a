#include "lab/papers/collapse/stack.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"

enum { MOST_DEPTH = 100000, MOST_WIDTH = 2048, MOST_TOKENS = 4096, MOST_HIDDEN = 16384 };

att_stack_options att_stack_options_defaults(void)
{
    return (att_stack_options){.depth = 12,
                               .heads = 4,
                               .width = 64,
                               .tokens = 64,
                               .norm_eps = 1e-6,
                               .mlp_gain = 1,
                               .input_std = 1,
                               .seed = 42};
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static att_status check_size(att_context *context, const char *what, int value, int most)
{
    if (value < 1 || value > most)
        return att_fail(context, ATT_ERR_ARGUMENT, "a stack's %s is %d, expected 1 to %d", what, value, most);
    return ATT_OK;
}

static att_status check_scale(att_context *context, const char *what, double value)
{
    if (!(value >= 0 && value <= 1e6))
        return att_fail(context, ATT_ERR_ARGUMENT, "a stack's %s is %g, expected 0 to 1e6", what, value);
    return ATT_OK;
}

/* The product of four weights must not underflow. */
static att_status check_weights_scale(att_context *context, const char *what, double value)
{
    if (value != 0 && !(value >= 1e-50 && value <= 1e6))
        return att_fail(context, ATT_ERR_ARGUMENT, "a stack's %s is %g, expected 0 or 1e-50 to 1e6", what, value);
    return ATT_OK;
}

static att_status check(att_context *context, const att_stack_options *o)
{
    ATT_TRY(check_size(context, "depth", o->depth, MOST_DEPTH));
    ATT_TRY(check_size(context, "width", o->width, MOST_WIDTH));
    ATT_TRY(check_size(context, "number of heads", o->heads, o->width));
    ATT_TRY(check_size(context, "number of tokens", o->tokens, MOST_TOKENS));
    if (o->mlp && o->hidden != 0)
        ATT_TRY(check_size(context, "hidden width", o->hidden, MOST_HIDDEN));
    if (o->width % o->heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "a stack of width %d cannot have %d heads: they do not divide it",
                        o->width, o->heads);
    if ((unsigned)o->norm > ATT_STACK_NORM_COLUMN)
        return att_fail(context, ATT_ERR_ARGUMENT, "a stack's norm is %d, which is none", (int)o->norm);
    ATT_TRY(check_scale(context, "norm_eps", o->norm_eps));
    ATT_TRY(check_weights_scale(context, "init_std", o->init_std));
    ATT_TRY(check_weights_scale(context, "mlp_gain", o->mlp_gain));
    return check_scale(context, "input_std", o->input_std);
}

static size_t scratch_size(const att_stack_options *o)
{
    size_t tokens = (size_t)o->tokens, width = (size_t)o->width, most = tokens * width;
    most = most > width * width ? most : width * width;
    return most > 2 * tokens ? most : 2 * tokens;
}

static bool allocate(att_stack *s)
{
    const att_stack_options *o = &s->options;
    att_arena *arena = &s->arena;
    bool made = att_attend_create(arena, o->tokens, o->width, o->heads, &s->attend) &&
                att_bounds_create(arena, o, &s->bounds) && att_tokens_create(arena, o->tokens, o->width, &s->x) &&
                att_tokens_create(arena, o->tokens, o->width, &s->u) &&
                att_tokens_create(arena, o->tokens, o->width, &s->y) &&
                (!o->mlp || att_perceptron_create(arena, o->tokens, o->hidden, &s->perceptron));
    if (!made)
        return false;
    s->scratch = att_arena_allocate(arena, scratch_size(o) * sizeof(double));
    s->scales = att_arena_allocate(arena, (size_t)o->width * sizeof(double));
    s->shift = att_arena_allocate(arena, (size_t)o->width * sizeof(double));
    if (!o->layer)
        s->random = att_arena_allocate(arena, att_stack_weights_size(o) * sizeof(double));
    return s->scratch && s->scales && s->shift && (o->layer || s->random);
}

static bool are_finite(const double *x, size_t count)
{
    for (size_t i = 0; x && i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static att_status fill(att_stack *s)
{
    const att_stack_options *o = &s->options;
    size_t count = (size_t)o->tokens * (size_t)o->width;
    const double *tokens = o->tokens_data;
    if (!tokens) {
        att_stack_draw_tokens(o, s->scratch);
        tokens = s->scratch;
    }
    if (!are_finite(tokens, count))
        return att_fail(s->context, ATT_ERR_NONFINITE, "the stack's tokens contain NaN or infinity");
    att_tokens_split(tokens, &s->x);
    return ATT_OK;
}

att_status att_stack_create(att_context *context, const att_stack_options *options, att_stack *s)
{
    att_stack_options o = options ? *options : att_stack_options_defaults();
    ATT_TRY(check(context, &o));
    o.hidden = o.hidden == 0 ? 4 * o.width : o.hidden;
    *s = (att_stack){.context = context, .arena = {.context = context}, .options = o, .drawn_layer = -1};
    att_status status = allocate(s) ? fill(s) : att_fail_memory(context, scratch_size(&o) * sizeof(double), "a stack");
    if (status != ATT_OK)
        att_stack_free(s);
    return status;
}

void att_stack_free(att_stack *s)
{
    att_arena_free(&s->arena);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

static void describe(att_stack *s, att_stack_layer *layer)
{
    layer->residual = att_tokens_residual(&s->x);
    layer->median = att_tokens_median_residual(&s->x, s->scratch);
    layer->norm = att_tokens_norm(&s->x, s->scratch);
    layer->relative = layer->norm > -INFINITY ? att_log_times(layer->residual, -layer->norm) : att_log_none();
    layer->rank = att_tokens_rank(&s->x, s->scratch);
}

void att_stack_begin(att_stack *s, att_stack_layer *layer)
{
    const att_stack_bound none = {att_log_none(), att_log_none()};
    *layer = (att_stack_layer){.beta = NAN,
                               .gamma = NAN,
                               .condition = NAN,
                               .input = att_log_none(),
                               .branch = att_log_none(),
                               .branch_bound = none,
                               .head_paper = NAN,
                               .head_safe = NAN,
                               .bound = none,
                               .lambda = NAN};
    describe(s, layer);
    att_bounds_begin(&s->bounds, &s->x);
}

static att_status check_weights(att_stack *s, const att_stack_weights *w, int index)
{
    const att_stack_options *o = &s->options;
    size_t d = (size_t)o->width, f = o->mlp ? (size_t)o->hidden : 0;
    const struct {
        const double *data;
        size_t count;
        bool needed;
    } all[] = {{w->q, d * d, true},         {w->k, d * d, true},         {w->v, d * d, true},
               {w->o, d * d, true},         {w->q_bias, d, false},       {w->v_bias, d, false},
               {w->o_bias, d, false},       {w->norm1_weight, d, false}, {w->norm1_bias, d, false},
               {w->norm2_weight, d, false}, {w->norm2_bias, d, false},   {w->fc1, d * f, o->mlp},
               {w->fc1_bias, f, false},     {w->fc2, f * d, o->mlp},     {w->fc2_bias, f ? d : 0, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].needed && !all[i].data)
            return att_fail(s->context, ATT_ERR_ARGUMENT, "layer %d of the stack lacks a weight", index);
        if (!are_finite(all[i].data, all[i].count))
            return att_fail(s->context, ATT_ERR_NONFINITE, "the weights of layer %d contain NaN or infinity", index);
    }
    return ATT_OK;
}

/* norm: number of the norm in the layer, 1 or 2 */
static void normalise(att_stack *s, const att_stack_weights *w, int norm, att_tokens *x)
{
    const att_stack_options *o = &s->options;
    if (o->norm == ATT_STACK_NORM_TOKEN)
        att_norm_tokens(x, o->norm_eps, norm == 1 ? w->norm1_weight : w->norm2_weight,
                        norm == 1 ? w->norm1_bias : w->norm2_bias);
    if (o->norm == ATT_STACK_NORM_COLUMN) {
        memcpy(s->shift, x->mean, (size_t)o->width * sizeof *s->shift);
        s->shift_log = x->mean_log;
        att_norm_columns(x, s->scales);
    }
}

/* u = the input of branch `norm` */
static void enter(att_stack *s, const att_stack_weights *w, int norm)
{
    att_tokens_copy(&s->x, &s->u);
    if (s->options.pre_norm)
        normalise(s, w, norm, &s->u);
}

/* x = what follows from the branch's output y */
static void leave(att_stack *s, const att_stack_weights *w, int norm)
{
    if (s->options.skip)
        att_tokens_add(&s->x, &s->y);
    else
        att_tokens_copy(&s->y, &s->x);
    if (!s->options.pre_norm)
        normalise(s, w, norm, &s->x);
}

att_status att_stack_step(att_stack *s, int index, att_stack_layer *layer)
{
    const att_stack_options *o = &s->options;
    const att_stack_weights *w = att_stack_weights_of(s, index);
    if (!w)
        return ATT_ERR_INTERNAL;
    if (o->layer)
        ATT_TRY(check_weights(s, w, index));
    enter(s, w, 1);
    att_attend_run(&s->attend, w, &s->u, &s->y);
    att_bounds_weigh(&s->bounds, w, NULL);
    att_bounds_branch(&s->bounds, &s->attend, &s->u, layer);
    layer->branch = att_tokens_residual(&s->y);
    leave(s, w, 1);
    if (o->norm == ATT_STACK_NORM_COLUMN && s->bounds.defined)
        att_bounds_weigh(&s->bounds, w, s->scales);
    if (o->mlp) {
        enter(s, w, 2);
        att_perceptron_run(&s->perceptron, w, &s->u, &s->y);
        leave(s, w, 2);
    }
    att_bounds_step(&s->bounds, &s->attend, w, index + 1, layer);
    describe(s, layer);
    return ATT_OK;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

static att_status run_layers(att_stack *s, att_stack_layer *layers)
{
    const att_stack_options *o = &s->options;
    att_stack_begin(s, &layers[0]);
    for (int l = 0; l < o->depth; l++) {
        ATT_TRY(att_stack_step(s, l, &layers[l + 1]));
        if (o->progress && !o->progress(o->progress_user, l + 1))
            return att_fail(s->context, ATT_ERR_STOPPED, "stopped after layer %d of %d", l + 1, o->depth);
    }
    return ATT_OK;
}

att_status att_stack_run(att_context *context, const att_stack_options *options, att_stack_layer *layers,
                         double *output)
{
    att_stack stack;
    ATT_TRY(att_stack_create(context, options, &stack));
    att_status status = run_layers(&stack, layers);
    if (status == ATT_OK && output)
        att_tokens_join(&stack.x, output);
    att_stack_free(&stack);
    return status;
}

bool att_stack_is_vacuous(att_stack_log bound, att_stack_log start)
{
    return att_log_has_value(bound) && att_stack_compare(bound, start) >= 0;
}
