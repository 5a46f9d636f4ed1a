/* The reference kernels of activations and of what is done row by row, against values of PyTorch 2.15 in float64. */
#include "kernels/direct.h"
#include "ops/l2_norm.h"
#include "ops/rms_norm.h"

/* The values have twelve decimals. */
static const double printed = 1e-12;

static const double x[] = {1, -2, 0.5, 3}, dy[] = {0.5, -1, 2, 0.25};

/* y = torch.softmax(x, -1); torch.autograd.grad(y, x, dy) */
static void softmax_and_its_gradient_are_pytorchs(void **state)
{
    (void)state;
    double y[4], dx[4];
    DIRECT("softmax", NULL, 1, OUTPUTS(y), SAMPLE(x, 1, 4));
    CLOSE(y, printed, 0.110553750362, 0.005504147128, 0.067054239141, 0.81688786337);
    DIRECT("softmax_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(y, 1, 4));
    CLOSE(dx, printed, 0.012370613969, -0.007640324088, 0.108084515363, -0.112814805244);
}

/* torch.softmax(torch.tensor([[0, -inf, 1], [-inf, -inf, -inf]]), -1) */
static void masked_elements_of_softmax_are_zero_and_a_masked_row_is_nan(void **state)
{
    (void)state;
    const double masked[] = {0, -INFINITY, 1, -INFINITY, -INFINITY, -INFINITY};
    double y[6];
    DIRECT("softmax", NULL, 1, OUTPUTS(y), SAMPLE(masked, 2, 3));
    CLOSE(y, printed, 0.26894142137, 0, 0.73105857863);
    for (int i = 3; i < 6; i++)
        assert_true(isnan(y[i]));
}

/* y = torch.tanh(x) */
static void tanh_and_its_gradient_are_pytorchs(void **state)
{
    (void)state;
    double y[4], dx[4];
    DIRECT("tanh", NULL, 1, OUTPUTS(y), SAMPLE(x, 4));
    CLOSE(y, printed, 0.761594155956, -0.964027580076, 0.46211715726, 0.995054753687);
    DIRECT("tanh_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 4), SAMPLE(y, 4));
    CLOSE(dx, printed, 0.209987170807, -0.070650824853, 1.572895465932, 0.002466509291);
}

/* y = torch.nn.functional.silu(x) */
static void silu_and_its_gradient_are_pytorchs(void **state)
{
    (void)state;
    double y[4], dx[4];
    DIRECT("silu", NULL, 1, OUTPUTS(y), SAMPLE(x, 4));
    CLOSE(y, printed, 0.73105857863, -0.238405844044, 0.311229665601, 2.857722380467);
    DIRECT("silu_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 4), SAMPLE(x, 4));
    CLOSE(dx, printed, 0.463835255936, 0.090784248785, 1.479922374605, 0.272026026504);
}

/* y = torch.nn.functional.rms_norm(x, (4,), gamma, eps=0.1) */
static void rms_norm_and_its_gradients_are_pytorchs(void **state)
{
    (void)state;
    const att_rms_norm_attrs attrs = {.eps = 0.1};
    const double gamma[] = {1, 2, -1, 0.5};
    double y[4], rstd[1], dx[4], dgamma[4] = {0};
    DIRECT("rms_norm", &attrs, 1, OUTPUTS(y, rstd), SAMPLE(x, 1, 4), SHARED(gamma, 4));
    CLOSE(y, printed, 0.522529944273, -2.090119777093, -0.261264972137, 0.78379491641);
    DIRECT("rms_norm_grad", NULL, 1, OUTPUTS(dx, dgamma), SAMPLE(dy, 1, 4), SAMPLE(x, 1, 4), SHARED(gamma, 4),
           SAMPLE(rstd, 1, 1));
    CLOSE(dx, printed, 0.123053126808, -0.76863619789, -1.11416581121, -0.349319292951);
    CLOSE(dgamma, printed, 0.261264972137, 1.045059888546, 0.522529944273, 0.391897458205);
}

/* y = torch.nn.functional.normalize(x, dim=-1) */
static void l2_norm_and_its_gradient_are_pytorchs(void **state)
{
    (void)state;
    const att_l2_norm_attrs attrs = {.eps = 1e-12};
    double y[4], norm[1], dx[4];
    DIRECT("l2_norm", &attrs, 1, OUTPUTS(y, norm), SAMPLE(x, 1, 4));
    CLOSE(y, printed, 0.264906471413, -0.529812942826, 0.132453235707, 0.794719414239);
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(x, 1, 4), SAMPLE(norm, 1, 1));
    CLOSE(dx, printed, 0.053446042478, -0.106892084956, 0.490309346212, -0.170794961832);
}

/* Below eps the divisor is eps, a constant. */
static void rows_shorter_than_eps_are_divided_by_it(void **state)
{
    (void)state;
    const att_l2_norm_attrs attrs = {.eps = 8};
    double y[4], norm[1], dx[4];
    DIRECT("l2_norm", &attrs, 1, OUTPUTS(y, norm), SAMPLE(x, 1, 4));
    CLOSE(y, 0, 0.125, -0.25, 0.0625, 0.375);
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(x, 1, 4), SAMPLE(norm, 1, 1));
    CLOSE(dx, 0, 0.0625, -0.125, 0.25, 0.03125);
}

/* torch.nn.functional.normalize(torch.tensor([3, -4]), dim=-1, eps=5): a norm of exactly eps counts as clamped. */
static void a_row_as_long_as_eps_has_the_gradient_of_a_constant_divisor(void **state)
{
    (void)state;
    const att_l2_norm_attrs attrs = {.eps = 5};
    const double row[] = {3, -4}, slope[] = {1, 2}, norm[] = {5};
    double dx[2];
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(slope, 1, 2), SAMPLE(row, 1, 2), SAMPLE(norm, 1, 1));
    CLOSE(dx, 0, 0.2, 0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_its_gradient_are_pytorchs),
        cmocka_unit_test(masked_elements_of_softmax_are_zero_and_a_masked_row_is_nan),
        cmocka_unit_test(tanh_and_its_gradient_are_pytorchs),
        cmocka_unit_test(silu_and_its_gradient_are_pytorchs),
        cmocka_unit_test(rms_norm_and_its_gradients_are_pytorchs),
        cmocka_unit_test(l2_norm_and_its_gradient_are_pytorchs),
        cmocka_unit_test(rows_shorter_than_eps_are_divided_by_it),
        cmocka_unit_test(a_row_as_long_as_eps_has_the_gradient_of_a_constant_divisor),
    };
    return cmocka_run_group_tests(tests, direct_setup, direct_teardown);
}
