/* The bounds of residuals: that they hold, and their closed forms. */
#include "formula.h"
#include "lab/papers/collapse/stacks.h"
#include "sanitized.h"

static att_stack_options any(unsigned seed)
{
    att_stack_options o = att_stack_options_defaults();
    o.seed = seed;
    o.heads = 1 + (int)(seed % 3);
    o.width = o.heads * (1 + (int)(seed / 3 % 4));
    o.tokens = 1 + (int)(seed / 7 % 9);
    o.depth = 6;
    o.hidden = 5;
    o.skip = seed / 2 % 2;
    o.mlp = seed / 4 % 2;
    o.norm = seed % 5 == 0 ? ATT_STACK_NORM_TOKEN : seed % 5 == 1 ? ATT_STACK_NORM_COLUMN : ATT_STACK_NORM_NONE;
    o.pre_norm = seed / 8 % 2;
    o.input_std = pow(10, (int)(seed / 11 % 5) - 3);
    o.init_std = seed / 13 % 2 ? 0 : 1.5;
    return o;
}

static bool is_below(att_stack_log value, att_stack_log bound)
{
    return att_stack_compare(value, bound) <= 0 || value.log - bound.log < 1e-12;
}

/* Of 4,000 stacks with 24,000 layers, the safe bounds hold in all. So do the paper's, which need not. */
SCRATCH_TEST(safe_bounds_hold)
{
    int bounded = 0, forcing = 0, paper_fails = 0, seeds = is_sanitized() ? 400 : 4000;
    for (int seed = 0; seed < seeds; seed++) {
        att_stack_layer layers[7];
        att_stack_options o = any((unsigned)seed);
        run(self, &o, layers, NULL);
        for (int l = 1; l <= 6; l++) {
            assert_true(is_below(layers[l].branch, layers[l].branch_bound.safe));
            assert_true(isnan(layers[l].head_safe) || layers[l].head_safe <= 1e-12);
            paper_fails += !is_below(layers[l].branch, layers[l].branch_bound.paper);
            if (isnan(layers[l].bound.safe.log_log))
                continue;
            paper_fails +=
                !isnan(layers[l].bound.paper.log_log) && !is_below(layers[l].residual, layers[l].bound.paper);
            if (!is_below(layers[l].residual, layers[l].bound.safe))
                fail_msg("seed %d, layer %d: ln r is %g, the bound %g", seed, l, layers[l].residual.log,
                         layers[l].bound.safe.log);
            bounded++;
            forcing += !att_stack_is_vacuous(layers[l].bound.safe, layers[0].residual);
        }
    }
    printf("%d safe bounds from X_0 hold; %d of them force a decrease; %d bounds of the paper fail\n", bounded, forcing,
           paper_fails);
    assert_true(bounded > seeds && forcing > 0);
}

/* Two tokens that differ in one channel, and a layer that writes the difference to all channels: |.|_1 of the sum comes
 * from the tokens, |.|_inf from the layer's output, and the composite norm exceeds that of both more than twice. The
 * channels must be at least 1,156 to make up for the factor 8 of the paper's bound. */
enum { WIDE = 1400 };
typedef struct built {
    double one[WIDE * WIDE], o[WIDE * WIDE];
    att_stack_weights weights;
} built;

static const att_stack_weights *built_layer(void *user, int index)
{
    (void)index;
    return &((built *)user)->weights;
}

SCRATCH_TEST(the_papers_bound_with_skips_fails_where_the_safe_one_holds)
{
    built *b = calloc(1, sizeof *b);
    double tokens[2 * WIDE] = {[0] = 1, [WIDE] = -1};
    double score = 1e-3, value = 1 / (8 * sqrt(2) * score * sqrt(WIDE));
    b->one[0] = sqrt(score * sqrt(WIDE));
    for (int c = 0; c < WIDE; c++)
        b->o[c] = value / b->one[0];
    b->weights = (att_stack_weights){.q = b->one, .k = b->one, .v = b->one, .o = b->o};
    att_stack_options o = att_stack_options_defaults();
    o.depth = 1;
    o.heads = 1;
    o.width = WIDE;
    o.tokens = 2;
    o.skip = true;
    o.layer = built_layer;
    o.user = b;
    o.tokens_data = tokens;
    att_stack_layer layers[2];
    run(self, &o, layers, NULL);
    free(b);
    assert_true(layers[1].condition == 1);
    if (!(layers[1].residual.log > layers[1].bound.paper.log && layers[1].residual.log < layers[1].bound.safe.log))
        fail_msg("ln r %.6f, paper %.6f, safe %.6f", layers[1].residual.log, layers[1].bound.paper.log,
                 layers[1].bound.safe.log);
}

/* The bounds of small tokens force a decrease, and both constants appear as they should. */
SCRATCH_TEST(bounds_of_one_head_have_their_closed_form)
{
    att_stack_options o = small(3);
    o.heads = 1;
    o.input_std = 1e-3;
    att_stack_layer layers[4];
    run(self, &o, layers, NULL);
    double r = layers[0].residual.log, beta = 0, gamma = 0;
    for (int l = 1; l <= 3; l++) {
        beta = fmax(beta, layers[l].beta);
        gamma = fmax(gamma, layers[l].gamma);
        double constant = log(4 * gamma * beta / sqrt(8)), power = pow(3, l);
        double expected = constant * (power - 1) / 2 + power * r;
        assert_true(fabs(layers[l].bound.paper.log - expected) < 1e-12 * fabs(expected));
        assert_false(att_stack_is_vacuous(layers[l].bound.paper, layers[0].residual));
        double alone = log(4 * layers[l].gamma * layers[l].beta / sqrt(8)) + 3 * layers[l - 1].residual.log;
        assert_true(fabs(layers[l].branch_bound.paper.log - alone) < 1e-12 * fabs(alone));
        assert_true(fabs(layers[l].branch_bound.safe.log - (alone - log(2))) < 1e-12 * fabs(alone));
    }
    assert_true(layers[1].condition == 1);
}

/* The largest term, found by trying all. */
SCRATCH_TEST(the_papers_bound_with_skips_is_its_largest_term)
{
    for (int variant = 0; variant < 12; variant++) {
        att_stack_options o = small(6);
        o.skip = true;
        o.input_std = pow(10, -variant);
        att_stack_layer layers[7];
        run(self, &o, layers, NULL);
        double beta = 0, gamma = 0;
        for (int l = 1; l <= 6; l++) {
            beta = fmax(beta, layers[l].beta);
            gamma = fmax(gamma, layers[l].gamma);
            double constant = log(8 * gamma * beta * 2 / sqrt(4)), most = -INFINITY;
            for (int k = 0; k <= l; k++) {
                double power = pow(3, k);
                most = fmax(most, constant * (power - 1) / 2 + power * ((l - k) * log(4) + layers[0].residual.log));
            }
            if (!(fabs(layers[l].bound.paper.log - most) < 1e-12 * fmax(1, fabs(most))))
                fail_msg("input_std %g, layer %d: %.17g, expected %.17g", o.input_std, l, layers[l].bound.paper.log,
                         most);
        }
    }
}

typedef struct blind {
    double none[64], matrix[64];
    att_stack_weights weights;
} blind;

static const att_stack_weights *blind_layer(void *user, int index)
{
    blind *s = user;
    for (int i = 0; i < 64; i++) {
        s->matrix[i] = formula("o", (uint32_t)(i + 64 * index));
        s->none[i] = 0;
    }
    s->weights = (att_stack_weights){.q = s->none, .k = s->matrix, .v = s->matrix, .o = s->matrix};
    return &s->weights;
}

/* W_QK = 0: attention adds the same row to all tokens, and only the term k = 0 of the paper's bound is left. */
SCRATCH_TEST(without_scores_the_papers_bound_with_skips_is_that_of_the_skips)
{
    blind s;
    att_stack_options o = small(6);
    o.skip = true;
    o.layer = blind_layer;
    o.user = &s;
    att_stack_layer layers[7];
    run(self, &o, layers, NULL);
    for (int l = 1; l <= 6; l++) {
        assert_true(isnan(layers[l].gamma) && layers[l].residual.log == layers[0].residual.log);
        assert_near(layers[l].bound.paper.log, l * log(4) + layers[0].residual.log);
    }
}

/* With a skip the paper's bound alone has no MLP; the safe one multiplies by 1 + 2 lambda. */
SCRATCH_TEST(the_safe_bound_with_skip_and_mlp_has_its_closed_form)
{
    att_stack_options o = small(1);
    o.skip = true;
    att_stack_layer alone[2], with[2];
    run(self, &o, alone, NULL);
    o.mlp = true;
    o.mlp_gain = 0;
    run(self, &o, with, NULL);
    assert_true(fabs(with[1].bound.safe.log - alone[1].bound.safe.log) < 1e-12);
    assert_true(isnan(with[1].bound.paper.log_log));
    o.mlp_gain = 1e3;
    run(self, &o, with, NULL);
    /* 1 + 2 lambda is 2 lambda here, for |.|_1 and |.|_inf alike. */
    assert_true(fabs(with[1].bound.safe.log - alone[1].bound.safe.log - log(2 * with[1].lambda)) < 1e-6);
}

SCRATCH_TEST(a_larger_mlp_loosens_the_bound_by_its_lipschitz_constant)
{
    att_stack_options o = small(2);
    o.mlp = true;
    att_stack_layer one[3], two[3];
    run(self, &o, one, NULL);
    o.mlp_gain = 2;
    run(self, &o, two, NULL);
    assert_true(fabs(two[1].lambda / one[1].lambda - 4) < 1e-12);
    assert_true(fabs(two[1].bound.safe.log - one[1].bound.safe.log - log(4)) < 1e-12);
}

/* GELU (erf) is steepest at sqrt(2). */
SCRATCH_TEST(lambda_is_not_below_the_slope_of_gelu)
{
    double most = 0.5 * (1 + erf(1)) + exp(-1) / sqrt(3.14159265358979323846);
    assert_true(1.129 >= most && 1.129 < most + 2e-4);
}
