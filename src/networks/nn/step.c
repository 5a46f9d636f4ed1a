/* StepNet: attention as an adaptive step size, computed from the state before a step and a first guess of the state
 * after it. Huang et al.: "Understanding Self-attention Mechanism via Dynamical System Perspective", ICCV 2023:
 *     guess = x + f(x),  y = x + F(guess, x) (.) f(x).
 * The paper does not publish the inside of F; every adaptor here is our interpretation. An adaptor consists of a
 * pooling, applied to each source, and a function that computes one number per channel from the pooled values. */
#include <attscope/ops.h>

#include "networks/nn/gates.h"

enum { ADAPTOR, INPUT, RATIO, HIDDEN, START };
enum { BEFORE, AFTER, DIFFERENCE, BOTH };

/* The inputs of F: one pooled value for each source, and names that distinguish the sources' parameters. */
typedef struct sources {
    att_value pooled[2];
    const char *name[2];
    int count;
    int64_t channels;
} sources;

typedef struct adaptor {
    att_value (*pool)(const att_scope *scope, att_value x);
    bool linear; /* pool(a + b) = pool(a) + pool(b) */
    att_value (*mix)(const att_scope *scope, const sources *of, const double *values);
} adaptor;

static att_value add_up(att_graph *graph, att_value sum, att_value term)
{
    return sum == ATT_NONE ? term : att_add(graph, sum, term);
}

static att_value side_by_side(const att_scope *scope, const sources *of)
{
    return of->count == 1 ? of->pooled[0] : att_concat(scope->graph, of->pooled[0], of->pooled[1]);
}

/* --- poolings ----------------------------------------------------------------------------------------------------- */

static att_value pool_mean(const att_scope *scope, att_value x)
{
    return att_global_mean(scope->graph, x);
}

static att_value pool_style(const att_scope *scope, att_value x)
{
    return att_gates_style(scope, x);
}

static att_value pool_dct(const att_scope *scope, att_value x)
{
    return att_gates_dct(scope, x, 1);
}

/* --- mixtures ----------------------------------------------------------------------------------------------------- */

static bool starts_as_identity(const double *values)
{
    return values[START] == ATT_START_IDENTITY;
}

/* Applies a weight per channel and source, initially 0, and a bias per channel, initially -1, or 0 with
 * start=identity. This is the instance enhancement of IEBN by the same group (Liang et al., AAAI 2020). */
static att_value mix_iebn(const att_scope *scope, const sources *of, const double *values)
{
    static const att_init zeros = {ATT_INIT_CONSTANT, 0};
    const att_init start = {ATT_INIT_CONSTANT, starts_as_identity(values) ? 0 : -1};
    att_shape shape = att_shape_of(of->channels);
    att_value z = ATT_NONE;
    for (int i = 0; i < of->count; i++) {
        att_scope own = att_scope_in(scope, "%s", of->name[i]);
        att_value weight = att_scope_parameter(&own, "weight", shape, zeros, false);
        z = add_up(scope->graph, z, att_scale(scope->graph, of->pooled[i], weight));
    }
    return att_add(scope->graph, z, att_scope_parameter(scope, "bias", shape, start, false));
}

/* In training, batch norm cancels the bias of mix_iebn(). The bias is kept because that group's code has it. */
static att_value mix_affine(const att_scope *scope, const sources *of, const double *values)
{
    return att_gates_norm(scope, mix_iebn(scope, of, values));
}

static att_value mix_bottleneck(const att_scope *scope, const sources *of, const double *values)
{
    att_bottleneck_options options = {.names = {"fc1", "fc2"},
                                      .inputs = of->count * of->channels,
                                      .hidden = att_bottleneck_hidden(of->channels, values[RATIO], 0, values[HIDDEN]),
                                      .outputs = of->channels,
                                      .bias = true,
                                      .zero = starts_as_identity(values)};
    att_bottleneck bottleneck = att_bottleneck_declare(scope, &options);
    return att_bottleneck_apply(scope, &bottleneck, side_by_side(scope, of));
}

static att_value mix_conv1d(const att_scope *scope, const sources *of, const double *values)
{
    const bool zero = starts_as_identity(values);
    att_value z = ATT_NONE;
    for (int i = 0; i < of->count; i++)
        z = add_up(scope->graph, z, att_gates_channel_conv(scope, of->name[i], of->pooled[i], 0, zero));
    return z;
}

static att_value mix_style(const att_scope *scope, const sources *of, const double *values)
{
    (void)values;
    static const att_init zeros = {ATT_INIT_CONSTANT, 0};
    att_value z = ATT_NONE;
    for (int i = 0; i < of->count; i++) {
        att_scope own = att_scope_in(scope, "%s", of->name[i]);
        att_value weight = att_scope_parameter(&own, "cfc", att_shape_of(of->channels, 2), zeros, true);
        z = add_up(scope->graph, z, att_channel_linear(scope->graph, of->pooled[i], weight));
    }
    return att_gates_norm(scope, z);
}

static att_value mix_linear(const att_scope *scope, const sources *of, const double *values)
{
    att_scope own = att_scope_in(scope, "fc");
    int64_t inputs = of->count * of->channels;
    att_init init = starts_as_identity(values) ? (att_init){ATT_INIT_CONSTANT, 0} : att_init_fan_in(inputs);
    att_value weight = att_scope_parameter(&own, "weight", att_shape_of(of->channels, inputs), init, true);
    att_value bias = att_scope_parameter(&own, "bias", att_shape_of(of->channels), init, false);
    return att_linear(scope->graph, side_by_side(scope, of), weight, bias);
}

/* --- the module --------------------------------------------------------------------------------------------------- */

#define ADAPTORS(X)                                \
    X(affine, pool_mean, true, mix_affine)         \
    X(iebn, pool_mean, true, mix_iebn)             \
    X(bottleneck, pool_mean, true, mix_bottleneck) \
    X(conv1d, pool_mean, true, mix_conv1d)         \
    X(style, pool_style, false, mix_style)         \
    X(dct, pool_dct, true, mix_bottleneck)         \
    X(linear, pool_mean, true, mix_linear)

#define ADAPTOR_ENTRY(name, pool, linear, mix) {pool, linear, mix},
static const adaptor adaptors[] = {ADAPTORS(ADAPTOR_ENTRY)};
#define ADAPTOR_NAME(name, pool, linear, mix) #name,
static const char *const adaptor_names[] = {ADAPTORS(ADAPTOR_NAME) NULL};
static const char *const input_names[] = {"x_t", "x_t1", "difference", "both", NULL};

static void add_source(sources *of, const char *name, att_value pooled)
{
    of->name[of->count] = name;
    of->pooled[of->count++] = pooled;
}

/* If pooling is linear, pool(x + f) is computed as pool(x) + pool(f), so that the guess x + f is never computed. */
static sources gather(const att_scope *scope, const adaptor *by, int input, att_value identity, att_value branch)
{
    sources of = {.channels = att_width_of(scope, branch)};
    bool before = input == BEFORE || input == BOTH, after = input == AFTER || input == BOTH;
    att_value state = before || (after && by->linear) ? by->pool(scope, identity) : ATT_NONE;
    if (after && by->linear)
        add_source(&of, "x_t1", att_add(scope->graph, state, by->pool(scope, branch)));
    else if (after)
        add_source(&of, "x_t1", by->pool(scope, att_add(scope->graph, identity, branch)));
    if (before)
        add_source(&of, "x_t", state);
    if (input == DIFFERENCE)
        add_source(&of, "difference", by->pool(scope, branch));
    return of;
}

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    int which = (int)values[ADAPTOR];
    att_scope own = att_scope_in(scope, "%s", adaptor_names[which]);
    att_scope_enter(&own);
    sources of = gather(&own, &adaptors[which], (int)values[INPUT], site->identity, site->branch);
    return att_gates_apply(scope, site->branch, adaptors[which].mix(&own, &of, values), (int)values[START]);
}

extern const att_module att_module_step;

const att_module att_module_step = {
    .name = "step",
    .meaning =
        "StepNet: step size F(x + f, x) per channel, f the branch (Huang et al., ICCV 2023; F is our interpretation)",
    .places = ATT_ON_MAPS,
    .options =
        {[ADAPTOR] = {.name = "adaptor",
                      .meaning =
                          "structure of F; affine: weight and bias per channel, batch norm; iebn: without the norm",
                      .high = sizeof adaptors / sizeof *adaptors - 1,
                      .choices = adaptor_names},
         [INPUT] = {.name = "input",
                    .meaning = "what F sees: the state before (x_t), guessed after (x_t1), f itself, or both",
                    .start = BOTH,
                    .high = BOTH,
                    .choices = input_names},
         [RATIO] = {.name = "ratio",
                    .meaning = "C over the hidden width (bottleneck, dct)",
                    .start = 16,
                    .low = 1,
                    .high = 1024},
         [HIDDEN] = ATT_HIDDEN_OPTION,
         [START] = ATT_START_OPTION},
    .option_count = 5,
    .scope = "step",
    .parameter = "*",
    .apply = apply,
};
