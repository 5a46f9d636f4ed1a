/* The reference kernels of layers against values computed by hand. */
#include "engine/kernels/direct.h"
#include "engine/ops/activation.h"
#include "engine/ops/add.h"
#include "engine/ops/context_broadcast.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/linear.h"
#include "engine/ops/patchify.h"
#include "engine/ops/slice_tokens.h"
#include "engine/ops/sum_samples.h"
#include "engine/ops/token_mean.h"

TEST_GROUP(direct_setup, close_context)

static const double tight = 1e-15;

TEST(linear_multiplies_rows)
{
    const double x[] = {1, 2, 3, 4}, w[] = {1, 0, 2, -1, 0.5, 0.5}, b[] = {0.1, 0.2, 0.3}, r[] = {1, 1, 1, 2, 2, 2};
    double y[6];
    DIRECT("linear", NULL, 1, OUTPUTS(y), SAMPLE(x, 2, 2), SHARED(w, 3, 2), ABSENT, ABSENT);
    CLOSE(y, 0, 1, 0, 1.5, 3, 2, 3.5);
    DIRECT("linear", NULL, 2, OUTPUTS(y), SAMPLE(x, 2), SHARED(w, 3, 2), SHARED(b, 3), SAMPLE(r, 3));
    CLOSE(y, tight, 2.1, 1.2, 2.8, 5.1, 4.2, 5.8);
}

TEST(linear_uses_a_transposed_weight_as_it_lies)
{
    const att_linear_attrs attrs = {.transposed = true};
    const double x[] = {1, 2, 3}, w[] = {1, 0, 2, -1, 0.5, 0.5};
    double y[2];
    DIRECT("linear", &attrs, 1, OUTPUTS(y), SAMPLE(x, 3), SHARED(w, 3, 2), ABSENT, ABSENT);
    CLOSE(y, tight, 6.5, -0.5);
}

TEST(linear_activates_before_the_residual)
{
    const att_linear_attrs attrs = {.activation = ATT_ACT_GELU};
    const double x[] = {0.5}, w[] = {2, -2}, r[] = {10, 20};
    double y[2];
    DIRECT("linear", &attrs, 1, OUTPUTS(y), SAMPLE(x, 1), SHARED(w, 2, 1), ABSENT, SAMPLE(r, 2));
    CLOSE(y, tight, 10.841344746068543, 19.841344746068543);
}

TEST(weight_gradients_are_added)
{
    const double dy[] = {1, 2, 3, 4}, x[] = {1, 0, -1, 2, 1, 1}; /* two samples of one row */
    double dw[6] = {100}, db[2] = {0, 50};
    DIRECT("linear_weight_grad", NULL, 2, OUTPUTS(dw, db), SAMPLE(dy, 1, 2), SAMPLE(x, 1, 3));
    CLOSE(dw, tight, 107, 3, 2, 10, 4, 2);
    CLOSE(db, tight, 4, 56);
    DIRECT("linear_weight_grad", NULL, 2, OUTPUTS(NULL, db), SAMPLE(dy, 1, 2), SAMPLE(x, 1, 3));
    CLOSE(db, tight, 8, 62);
}

TEST(layer_norm_normalises_rows)
{
    const att_layer_norm_attrs attrs = {.eps = 1.0};
    const double x[] = {1, 2, 3, 6, 5, 5, 5, 5}, gamma[] = {1, 2, 1, 1}, beta[] = {0, 0, 0, 10};
    double y[8], stats[4], s = 1 / sqrt(4.5); /* variance 3.5 */
    DIRECT("layer_norm", &attrs, 1, OUTPUTS(y, stats), SAMPLE(x, 2, 4), SHARED(gamma, 4), SHARED(beta, 4));
    CLOSE(y, tight, -2 * s, -2 * s, 0, 3 * s + 10, 0, 0, 0, 10);
    CLOSE(stats, tight, 3, s, 5, 1);
}

/* With gamma 1, a gradient that is constant in a row or proportional to the normalised row gives 0 (except for eps),
 * because layer norm removes shift and scale. */
TEST(layer_norm_passes_no_shift_and_no_scale)
{
    const double x[] = {1, 2, 3, 6}, gamma[] = {1, 1, 1, 1}, stats[] = {3, 1 / sqrt(3.5)}, shift[] = {2, 2, 2, 2},
                 scale[] = {-2, -1, 0, 3}, addend[] = {1, 2, 3, 4};
    const att_layer_norm_attrs attrs = {.eps = 1e-6};
    double dx[4], dgamma[4] = {0}, dbeta[4] = {0};
    DIRECT("layer_norm_grad", &attrs, 1, OUTPUTS(dx, dgamma, dbeta), SAMPLE(shift, 4), SAMPLE(x, 4), SHARED(gamma, 4),
           SAMPLE(stats, 2), ABSENT);
    CLOSE(dx, tight, 0, 0, 0, 0);
    CLOSE(dbeta, tight, 2, 2, 2, 2);
    CLOSE(dgamma, tight, -4 / sqrt(3.5), -2 / sqrt(3.5), 0, 6 / sqrt(3.5));
    DIRECT("layer_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(scale, 4), SAMPLE(x, 4), SHARED(gamma, 4),
           SAMPLE(stats, 2), SAMPLE(addend, 4));
    CLOSE(dx, tight, 1, 2, 3, 4);
}

/* Phi(1) = 0.841344746068543, phi(1) = 0.241970724519143, Phi(-10) = 7.61985302416053e-24 (Abramowitz, Stegun 26.2). */
TEST(gelu_keeps_its_left_tail)
{
    const double x[] = {0, 1, -1, -10, 1e6, -1e6}, dy[] = {2, 2, 2, 2, 2, 2};
    double y[6];
    DIRECT("gelu", NULL, 6, OUTPUTS(y), SCALARS(x));
    CLOSE(y, tight, 0, 0.84134474606854293, -0.15865525393145707, -7.61985302416053e-23, 1e6, 0);
    assert_true(fabs(y[3] / -7.61985302416053e-23 - 1) < 1e-14);
    DIRECT("gelu_grad", NULL, 6, OUTPUTS(y), SCALARS(dy), SCALARS(x));
    CLOSE(y, tight, 1, 2 * 1.0833154705876862, 2 * -0.083315470587686, 0, 2, 0);
}

TEST(add_repeats_a_shared_operand)
{
    const att_add_attrs bias = {.axes = 1};
    const double a[] = {1, 2, 3, 4, 5, 6, 7, 8}, b[] = {10, 20};
    double y[8];
    DIRECT("add", &bias, 2, OUTPUTS(y), SAMPLE(a, 2, 2), SHARED(b, 1, 2));
    CLOSE(y, 0, 11, 22, 13, 24, 15, 26, 17, 28);
    DIRECT("add", NULL, 2, OUTPUTS(y), SAMPLE(a, 2, 2), SAMPLE(a, 2, 2));
    CLOSE(y, 0, 2, 4, 6, 8, 10, 12, 14, 16);
}

TEST(sums_go_over_samples_and_leading_axes)
{
    const double dy[] = {1, 2, 3, 4, 5, 6, 7, 8};
    double bias[2] = {100, 0}, position[4] = {0}, all[1] = {0};
    DIRECT("sum_samples", &(att_sum_attrs){.axes = 1}, 2, OUTPUTS(bias), SAMPLE(dy, 2, 2));
    CLOSE(bias, 0, 116, 20);
    DIRECT("sum_samples", &(att_sum_attrs){.axes = 0}, 2, OUTPUTS(position), SAMPLE(dy, 2, 2));
    CLOSE(position, 0, 6, 8, 10, 12);
    DIRECT("sum_samples", &(att_sum_attrs){.axes = 2}, 2, OUTPUTS(all), SAMPLE(dy, 2, 2));
    CLOSE(all, 0, 36);
}

TEST(scale_multiplies_columns)
{
    const double x[] = {1, 2, 3, 4}, gamma[] = {10, -1}, dy[] = {1, 1, 2, 0.5};
    double y[4], dgamma[2] = {1, 1};
    DIRECT("scale", NULL, 2, OUTPUTS(y), SAMPLE(x, 2), SHARED(gamma, 2));
    CLOSE(y, 0, 10, -2, 30, -4);
    DIRECT("scale_grad", NULL, 2, OUTPUTS(dgamma), SAMPLE(dy, 2), SAMPLE(x, 2));
    CLOSE(dgamma, 0, 8, 5);
}

/* The value of a pixel encodes its row, column and channel. */
TEST(patches_are_ordered_channel_row_column)
{
    double image[2 * 4 * 2], y[16], back[16];
    for (int i = 0; i < 16; i++)
        image[i] = i / 8 * 100 + i / 2 % 4 * 10 + i % 2;
    const att_patch_attrs attrs = {.patch = {2, 2}, .height = 2, .width = 4, .channels = 2};
    DIRECT("patchify", &attrs, 1, OUTPUTS(y), SAMPLE(image, 2, 4, 2));
    CLOSE(y, 0, 0, 10, 100, 110, 1, 11, 101, 111, 20, 30, 120, 130, 21, 31, 121, 131);
    DIRECT("patchify_grad", &attrs, 1, OUTPUTS(back), SAMPLE(y, 2, 8));
    direct_close(back, image, 16, 0);
}

TEST(tokens_are_prepended_sliced_and_padded)
{
    const double tokens[] = {7, 8}, x[] = {1, 2, 3, 4};
    const att_slice_attrs slice = {.first = 1, .count = 1, .total = 3};
    double all[8], some[4], padded[12];
    DIRECT("prepend_tokens", NULL, 2, OUTPUTS(all), SHARED(tokens, 1, 1, 2), SAMPLE(x, 1, 2));
    CLOSE(all, 0, 7, 8, 1, 2, 7, 8, 3, 4);
    DIRECT("slice_tokens", &slice, 2, OUTPUTS(some), SAMPLE(all, 2, 2));
    CLOSE(some, 0, 1, 2, 3, 4);
    DIRECT("slice_tokens_grad", &slice, 2, OUTPUTS(padded), SAMPLE(x, 1, 2));
    CLOSE(padded, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0);
}

TEST(the_mean_leaves_out_prefix_tokens)
{
    const double x[] = {100, 100, 1, 2, 3, 6}, dy[] = {1, -4};
    const att_mean_attrs attrs = {.first = 1, .total = 3, .factor = 1};
    double y[2], dx[6];
    DIRECT("token_mean", &attrs, 1, OUTPUTS(y), SAMPLE(x, 3, 2));
    CLOSE(y, 0, 2, 4);
    DIRECT("token_mean_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(dy, 2));
    CLOSE(dx, 0, 0, 0, 0.5, -2, 0.5, -2);
}

TEST(context_is_broadcast)
{
    const double x[] = {1, 2, 3, 6}, lambda[] = {10, 100}, r[] = {0, 0, 0, 1000};
    const att_broadcast_attrs cb = {0.5, 0.5}, cb_s = {1, 0};
    double y[4], dscale[2] = {1, 1};
    DIRECT("context_broadcast", &cb, 1, OUTPUTS(y), SAMPLE(x, 2, 2), ABSENT, ABSENT);
    CLOSE(y, 0, 1.5, 3, 2.5, 5);
    DIRECT("context_broadcast", &cb_s, 1, OUTPUTS(y), SAMPLE(x, 2, 2), SHARED(lambda, 2), SAMPLE(r, 2, 2));
    CLOSE(y, 0, 21, 402, 23, 1406);
    DIRECT("context_broadcast_scale_grad", NULL, 1, OUTPUTS(dscale), SAMPLE(x, 2, 2), SAMPLE(x, 2, 2));
    CLOSE(dscale, 0, 9, 33);
}
