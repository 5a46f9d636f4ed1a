/* The MLP: the steps of GELU, gradients, and the price of a larger Lipschitz constant. */
#include "base/core/random.h"
#include "formula.h"
#include "lab/papers/collapse/plain.h"
#include "lab/papers/collapse/stack.h"
#include "lab/papers/collapse/stacks.h"

static long double wide_gelu(long double x)
{
    return 0.5L * x * (1 + erfl(x / sqrtl(2)));
}

/* Three tokens of one channel, a + x, a - 2 x and a + x / 2, through GELU alone: all terms of the Taylor polynomial
 * count in their differences. Errors are relative to the step. The largest one is 8.3e-15, and 1.7e-13 without the last
 * term. */
SCRATCH_TEST(steps_of_gelu_are_differences_of_its_values)
{
    static const double one = 1, inputs[] = {-1.3, -0.4, 0.2, 0.9}, steps[] = {9.5e-5, 1e-5, 0.03, 0.4};
    static const double of_token[] = {1, -2, 0.5};
    const att_stack_weights w = {.fc1 = &one, .fc2 = &one};
    att_arena arena = {.context = self->context};
    att_perceptron work;
    att_tokens u, y;
    double worst = 0;
    assert_true(att_perceptron_create(&arena, 3, 1, &work));
    assert_true(att_tokens_create(&arena, 3, 1, &u) && att_tokens_create(&arena, 3, 1, &y));
    for (int i = 0; i < 16; i++) {
        double a = inputs[i % 4], x = steps[i / 4], plain[3];
        for (int n = 0; n < 3; n++)
            plain[n] = a + of_token[n] * x;
        att_tokens_split(plain, &u);
        att_perceptron_run(&work, &w, &u, &y);
        for (int n = 1; n < 3; n++) {
            long double expected = wide_gelu(plain[0]) - wide_gelu(plain[n]);
            double found = exp(y.rest_log.log) * (y.rest[0] - y.rest[n]);
            worst = fmax(worst, fabs(found - (double)expected) / fabs(plain[0] - plain[n]));
        }
    }
    att_arena_free(&arena);
    printf("largest error of a step of GELU: %.2g\n", worst);
    assert_true(worst < 3e-14);
}

/* --- gradients, and the price of the MLP ------------------------------------------------------------------------- */

enum { DEPTH = 2 };
typedef struct small_stack {
    att_stack_options options;
    double *weights; /* of all layers */
    size_t layer;    /* elements of a layer */
    att_stack_weights now;
} small_stack;

static const att_stack_weights *small_layer(void *user, int index)
{
    small_stack *s = user;
    double *at = s->weights + (size_t)index * s->layer;
    s->now = (att_stack_weights){.q = at, .k = at + 64, .v = at + 128, .o = at + 192, .fc1 = at + 256, .fc2 = at + 296};
    return &s->now;
}

/* <direction, X_L> in ordinary f64 */
static double loss(att_plain *plain, small_stack *s, const double *tokens, const double *direction)
{
    for (int l = 0; l < DEPTH; l++)
        att_plain_forward(plain, l, small_layer(s, l), l == 0 ? tokens : plain->y);
    double sum = 0;
    for (int i = 0; i < 48; i++)
        sum += direction[i] * plain->y[i];
    return sum;
}

/* The largest error is 2e-9, that of central differences. */
SCRATCH_TEST(gradients_equal_finite_differences)
{
    for (int variant = 0; variant < 4; variant++) {
        small_stack s = {.options = small(DEPTH), .layer = variant & 1 ? 336 : 256};
        double weights[2 * 336], gradient[2 * 336], tokens[48], direction[48];
        s.options.mlp = variant & 1;
        s.options.skip = variant & 2;
        s.options.hidden = 5;
        s.weights = weights;
        for (int i = 0; i < 2 * 336; i++)
            weights[i] = formula("weights", (uint32_t)i);
        for (int i = 0; i < 48; i++) {
            tokens[i] = 3 * formula("tokens", (uint32_t)i);
            direction[i] = formula("direction", (uint32_t)i);
        }
        att_arena arena = {.context = self->context};
        att_plain plain;
        assert_true(att_plain_create(&arena, &s.options, &plain));
        loss(&plain, &s, tokens, direction);
        memcpy(plain.y, direction, sizeof direction);
        for (int l = DEPTH - 1; l >= 0; l--)
            att_plain_backward(&plain, l, small_layer(&s, l), gradient + (size_t)l * s.layer);
        for (size_t i = 0; i < DEPTH * s.layer; i += 7) {
            double kept = weights[i], step = 1e-5;
            weights[i] = kept + step;
            double above = loss(&plain, &s, tokens, direction);
            weights[i] = kept - step;
            double below = loss(&plain, &s, tokens, direction);
            weights[i] = kept;
            double expected = (above - below) / (2 * step);
            if (!(fabs(gradient[i] - expected) < 1e-7))
                fail_msg("variant %d, weight %zu: gradient %g, expected %g", variant, i, gradient[i], expected);
        }
        att_arena_free(&arena);
    }
}

static att_stack_price price_of(scratch *self, double gain, bool skip)
{
    att_stack_price price;
    att_stack_options o = small(4);
    o.mlp = true;
    o.skip = skip;
    o.mlp_gain = gain;
    CHECK(self->context, att_stack_price_mlp(self->context, &o, 8, &price));
    return price;
}

SCRATCH_TEST(a_larger_lipschitz_constant_costs_sensitivity_and_gradient_variance)
{
    att_stack_price low = price_of(self, 0.5, true), high = price_of(self, 2, true);
    assert_true(fabs(high.lambda / low.lambda - 16) < 1e-12);
    assert_true(high.residual > low.residual);
    assert_true(high.sensitivity > low.sensitivity);
    assert_true(high.gradient_variance > low.gradient_variance);
    assert_true(high.gradient_norm * high.gradient_norm >= high.gradient_variance);
    /* The samples differ: their gradients are not all the same. */
    assert_true(low.gradient_variance > 0.01 * low.gradient_norm * low.gradient_norm);
}

static double norm_of(const double *x, const double *from, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (x[i] - from[i]) * (x[i] - from[i]);
    return sqrt(sum);
}

/* ln(|X_L(X_0 + D) - X_L(X_0)| / |D|) of sample `sample`, from two runs of the stack. */
static double sensitivity_of(scratch *self, const att_stack_options *o, int sample)
{
    enum { COUNT = 6 * 8 };
    static const double zeros[COUNT];
    double tokens[COUNT], moved[COUNT], direction[COUNT], before[COUNT], after[COUNT];
    att_stack_layer layers[5];
    att_stack_options own = *o;
    own.seed = att_random_key(o->seed, att_random_hash("sample"), (uint64_t)sample);
    att_stack_draw_tokens(&own, tokens);
    att_random random = att_random_from(att_random_key(o->seed, att_random_hash("perturbation"), (uint64_t)sample));
    for (int i = 0; i < COUNT; i++)
        direction[i] = att_random_normal(&random);
    double size = 1e-3 * norm_of(tokens, zeros, COUNT), drawn = norm_of(direction, zeros, COUNT);
    for (int i = 0; i < COUNT; i++)
        moved[i] = tokens[i] + size / drawn * direction[i];
    own = *o;
    own.tokens_data = tokens;
    run(self, &own, layers, before);
    own.tokens_data = moved;
    run(self, &own, layers, after);
    return log(norm_of(after, before, COUNT) / size);
}

/* The error is 5e-15. A perturbation of half the size changes the result by 1.1e-4. */
SCRATCH_TEST(sensitivity_is_that_to_a_perturbation_of_a_thousandth)
{
    att_stack_price price;
    att_stack_options o = small(4);
    o.mlp = o.skip = true;
    assert_int_equal(att_stack_price_mlp(self->context, &o, 2, &price), ATT_OK);
    double expected = (sensitivity_of(self, &o, 0) + sensitivity_of(self, &o, 1)) / 2;
    printf("sensitivity %.9g, error %.2g\n", price.sensitivity, price.sensitivity - expected);
    assert_true(fabs(price.sensitivity - expected) < 1e-9);
}

SCRATCH_TEST(the_price_needs_an_mlp_without_norm)
{
    att_stack_price price;
    att_stack_options o = small(4);
    assert_fails(self->context, att_stack_price_mlp(self->context, &o, 8, &price), ATT_ERR_ARGUMENT,
                 "needs a stack with an MLP");
    o.mlp = true;
    assert_fails(self->context, att_stack_price_mlp(self->context, &o, 1, &price), ATT_ERR_ARGUMENT,
                 "2 to 1000 samples");
}
