/* Stacks with known residuals, the decay of residuals, random weights and errors. */
#include "formula.h"
#include "lab/papers/collapse/stack.h"
#include "lab/papers/collapse/stacks.h"
#include "sanitized.h"

/* --- special stacks ----------------------------------------------------------------------------------------------- */

typedef struct silent {
    double matrix[3][64];
    att_stack_weights weights;
} silent;

static const att_stack_weights *silent_layer(void *user, int index)
{
    silent *s = user;
    for (int i = 0; i < 64; i++) {
        s->matrix[0][i] = formula("qk", (uint32_t)(i + 64 * index));
        s->matrix[1][i] = formula("o", (uint32_t)(i + 64 * index));
        s->matrix[2][i] = 0;
    }
    s->weights = (att_stack_weights){.q = s->matrix[0], .k = s->matrix[1], .v = s->matrix[2], .o = s->matrix[1]};
    return &s->weights;
}

SCRATCH_TEST(without_values_a_skip_leaves_the_residual_unchanged)
{
    silent s;
    att_stack_options o = small(100);
    o.skip = true;
    o.layer = silent_layer;
    o.user = &s;
    att_stack_layer layers[101];
    run(self, &o, layers, NULL);
    for (int l = 1; l <= 100; l++) {
        assert_true(layers[l].residual.log == layers[0].residual.log);
        assert_true(layers[l].branch.log == -INFINITY && layers[l].branch.log_log == INFINITY);
    }
}

SCRATCH_TEST(equal_tokens_have_no_residual)
{
    double tokens[6 * 8];
    for (int i = 0; i < 6 * 8; i++)
        tokens[i] = 0.1 * (i % 8) + 0.7;
    for (int variant = 0; variant < 24; variant++) {
        att_stack_options o = small(5);
        o.tokens_data = tokens;
        o.skip = variant & 1;
        o.mlp = variant & 2;
        o.pre_norm = variant & 4;
        o.norm = (att_stack_norm)(variant / 8);
        att_stack_layer layers[6];
        run(self, &o, layers, NULL);
        for (int l = 0; l <= 5; l++) {
            assert_true(layers[l].residual.log == -INFINITY && layers[l].residual.log_log == INFINITY);
            assert_true(layers[l].rank == 0);
            assert_true(l == 0 || isnan(layers[l].bound.safe.log_log) || layers[l].bound.safe.log == -INFINITY);
        }
    }
}

SCRATCH_TEST(a_single_token_has_no_residual)
{
    att_stack_options o = small(3);
    o.tokens = 1;
    att_stack_layer layers[4];
    run(self, &o, layers, NULL);
    assert_true(layers[3].residual.log == -INFINITY && layers[3].residual.log_log == INFINITY);
    assert_true(isfinite(layers[3].norm));
}

/* The tokens become equal in f64 after a few layers; the logarithm of their residual triples for thousands. */
SCRATCH_TEST(logarithms_go_on_beyond_a_doubles_range)
{
    enum { DEPTH = 10000 };
    att_stack_layer *layers = malloc((DEPTH + 1) * sizeof *layers);
    att_stack_options o = small(is_sanitized() ? 1000 : DEPTH);
    run(self, &o, layers, NULL);
    int beyond = 0;
    for (int l = 20; l < o.depth; l++) {
        double growth = layers[l + 1].residual.log_log - layers[l].residual.log_log;
        if (!(fabs(growth - log(3)) < 1e-6))
            fail_msg("ln(-ln r) grows by %.17g in layer %d", growth, l);
        beyond += layers[l].residual.log == -INFINITY;
        assert_true(layers[l].rank >= 1 - 1e-9 && isfinite(layers[l].norm));
    }
    assert_true(beyond > o.depth - 700);
    att_stack_fit fit = att_stack_fit_rate(layers, o.depth, -700);
    assert_true(fit.pairs >= 3 && fit.slope > 2.9 && fit.slope < 3.1);
    free(layers);
}

SCRATCH_TEST(a_skip_decays_at_most_exponentially)
{
    att_stack_options o = small(200);
    o.skip = true;
    o.norm = ATT_STACK_NORM_TOKEN;
    o.pre_norm = true;
    att_stack_layer layers[201];
    run(self, &o, layers, NULL);
    assert_true(layers[200].residual.log > 0);
    att_stack_fit fit = att_stack_fit_rate(layers, 200, -700);
    assert_true(fit.pairs == 200 && fit.slope < 1.1);
}

/* --- logarithms and rates ---------------------------------------------------------------------------------------- */

static att_stack_log beyond(double sign, double log_log)
{
    return (att_stack_log){sign * INFINITY, log_log};
}

SCRATCH_TEST(logarithms_beyond_a_doubles_range_are_compared)
{
    assert_true(att_stack_compare(beyond(-1, 800), beyond(-1, 900)) > 0);
    assert_true(att_stack_compare(beyond(1, 800), beyond(1, 900)) < 0);
    assert_true(att_stack_compare(beyond(-1, 800), beyond(-1, 800)) == 0);
    assert_true(att_stack_compare(beyond(1, 800), beyond(-1, 900)) > 0);
    assert_true(att_stack_is_vacuous((att_stack_log){2, log(2)}, (att_stack_log){2, log(2)}));
    assert_false(att_stack_is_vacuous((att_stack_log){1.5, log(1.5)}, (att_stack_log){2, log(2)}));
}

SCRATCH_TEST(a_rate_is_fitted_where_both_residuals_are_large_enough)
{
    att_stack_layer layers[5] = {0};
    static const double logs[] = {2, 1, -1, -4, -30};
    for (int l = 0; l < 5; l++)
        layers[l].residual = (att_stack_log){logs[l], log(fabs(logs[l]))};
    att_stack_fit fit = att_stack_fit_rate(layers, 4, -10);
    assert_int_equal(fit.pairs, 3);
    assert_int_equal(fit.first, 0);
    assert_int_equal(fit.last, 2);
    assert_near(fit.slope, 23.0 / 14); /* of (2, 1), (1, -1), (-1, -4), about their means 2/3 and -4/3 */
    assert_near(fit.intercept, -4.0 / 3 - 23.0 / 14 * 2 / 3);
}

/* --- column-wise norm --------------------------------------------------------------------------------------------- */

/* The largest difference of a layer is 4e-15. */
SCRATCH_TEST(weights_absorb_a_column_wise_norm)
{
    att_stack_options o = small(50);
    att_stack_absorption differences[50];
    assert_int_equal(att_stack_absorb(self->context, &o, differences), ATT_OK);
    double worst = 0;
    for (int l = 0; l < 50; l++)
        worst = fmax(worst, differences[l].layer);
    printf("largest difference of a layer %.2g, of the stack %.2g\n", worst, differences[49].stack);
    assert_true(worst < 1e-12 && worst > 0);
    assert_true(differences[0].stack < 1e-13);
    o.skip = true;
    assert_fails(self->context, att_stack_absorb(self->context, &o, differences), ATT_ERR_ARGUMENT, "absorbs");
}

/* --- random weights, errors --------------------------------------------------------------------------------------- */

/* Root of the mean square of the 512 and 256 weights; its standard error is at most 4.4 %. */
SCRATCH_TEST(weights_have_the_variance_of_their_inputs)
{
    att_stack stack;
    att_stack_options o = small(1);
    o.mlp = true;
    o.hidden = 32;
    o.mlp_gain = 3;
    assert_int_equal(att_stack_create(self->context, &o, &stack), ATT_OK);
    const att_stack_weights *w = att_stack_weights_of(&stack, 0);
    double first = 0, second = 0;
    for (int i = 0; i < 8 * 32; i++)
        first += w->fc1[i] * w->fc1[i] / (8 * 32), second += w->fc2[i] * w->fc2[i] / (8 * 32);
    assert_true(fabs(sqrt(first) * sqrt(8) / 3 - 1) < 0.2);
    assert_true(fabs(sqrt(second) * sqrt(32) / 3 - 1) < 0.2);
    att_stack_free(&stack);
}

SCRATCH_TEST(seeds_and_sharing_decide_the_weights)
{
    att_stack_layer a[4], b[4];
    att_stack_options o = small(3);
    run(self, &o, a, NULL);
    run(self, &o, b, NULL);
    assert_true(a[3].residual.log == b[3].residual.log);
    o.seed++;
    run(self, &o, b, NULL);
    assert_true(a[3].residual.log != b[3].residual.log);
    o.shared = true;
    run(self, &o, b, NULL);
    assert_true(b[1].beta == b[2].beta && b[2].beta == b[3].beta);
    assert_true(a[1].beta != a[2].beta);
}

static void refuses(scratch *self, att_stack_options o, att_status status, const char *message)
{
    att_stack_layer layers[4];
    assert_fails(self->context, att_stack_run(self->context, &o, layers, NULL), status, message);
}

SCRATCH_TEST(wrong_options_are_refused)
{
    att_stack_options o = small(3);
    o.heads = 3;
    refuses(self, o, ATT_ERR_ARGUMENT, "width 8 cannot have 3 heads");
    o = small(0);
    refuses(self, o, ATT_ERR_ARGUMENT, "depth is 0");
    o = small(3);
    o.input_std = NAN;
    refuses(self, o, ATT_ERR_ARGUMENT, "input_std is nan");
    o = small(3);
    o.init_std = 1e-200;
    refuses(self, o, ATT_ERR_ARGUMENT, "init_std is 1e-200, expected 0 or 1e-50 to 1e6");
    o.init_std = 0;
    o.mlp_gain = 1e-51;
    refuses(self, o, ATT_ERR_ARGUMENT, "mlp_gain is 1e-51");
    double tokens[48] = {[7] = INFINITY};
    o = small(3);
    o.tokens_data = tokens;
    refuses(self, o, ATT_ERR_NONFINITE, "tokens");
    silent s;
    o = small(3);
    o.layer = silent_layer;
    o.user = &s;
    o.mlp = true;
    refuses(self, o, ATT_ERR_ARGUMENT, "layer 0 of the stack lacks a weight");
}

static bool stop_at_two(void *user, int layer)
{
    *(int *)user = layer;
    return layer < 2;
}

SCRATCH_TEST(a_stack_can_be_stopped)
{
    int last = 0;
    att_stack_options o = small(3);
    o.progress = stop_at_two;
    o.progress_user = &last;
    refuses(self, o, ATT_ERR_STOPPED, "layer 2 of 3");
    assert_int_equal(last, 2);
}

static att_status run_and_absorb(scratch *self)
{
    att_stack_layer layers[4];
    att_stack_absorption differences[3];
    att_stack_options o = small(3);
    att_status status = att_stack_absorb(self->context, &o, differences);
    att_stack_price price;
    o.mlp = true;
    if (status == ATT_OK)
        status = att_stack_price_mlp(self->context, &o, 2, &price);
    return status == ATT_OK ? att_stack_run(self->context, &o, layers, NULL) : status;
}

SCRATCH_TEST(lack_of_memory_is_survived)
{
    assert_survives_lack_of_memory(self, run_and_absorb);
}
