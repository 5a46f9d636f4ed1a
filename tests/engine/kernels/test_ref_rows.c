/* The reference kernels of activations and of norms, against values of PyTorch 2.15 in float64. */
#include "engine/kernels/direct.h"
#include "engine/ops/group_norm.h"
#include "engine/ops/l2_norm.h"
#include "engine/ops/rms_norm.h"

TEST_GROUP(direct_setup, close_context)

/* The expected values have twelve decimals. */
static const double printed = 1e-12;

static const double x[] = {1, -2, 0.5, 3}, dy[] = {0.5, -1, 2, 0.25};

/* y = torch.softmax(x, -1); torch.autograd.grad(y, x, dy) */
TEST(softmax_and_its_gradient_are_pytorchs)
{
    double y[4], dx[4];
    DIRECT("softmax", NULL, 1, OUTPUTS(y), SAMPLE(x, 1, 4));
    CLOSE(y, printed, 0.110553750362, 0.005504147128, 0.067054239141, 0.81688786337);
    DIRECT("softmax_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(y, 1, 4));
    CLOSE(dx, printed, 0.012370613969, -0.007640324088, 0.108084515363, -0.112814805244);
}

/* torch.softmax(torch.tensor([[0, -inf, 1], [-inf, -inf, -inf]]), -1) */
TEST(masked_elements_of_softmax_are_zero_and_a_masked_row_is_nan)
{
    const double masked[] = {0, -INFINITY, 1, -INFINITY, -INFINITY, -INFINITY};
    double y[6];
    DIRECT("softmax", NULL, 1, OUTPUTS(y), SAMPLE(masked, 2, 3));
    CLOSE(y, printed, 0.26894142137, 0, 0.73105857863);
    for (int i = 3; i < 6; i++)
        assert_true(isnan(y[i]));
}

/* y = torch.tanh(x) */
TEST(tanh_and_its_gradient_are_pytorchs)
{
    double y[4], dx[4];
    DIRECT("tanh", NULL, 1, OUTPUTS(y), SAMPLE(x, 4));
    CLOSE(y, printed, 0.761594155956, -0.964027580076, 0.46211715726, 0.995054753687);
    DIRECT("tanh_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 4), SAMPLE(y, 4));
    CLOSE(dx, printed, 0.209987170807, -0.070650824853, 1.572895465932, 0.002466509291);
}

/* y = torch.nn.functional.silu(x) */
TEST(silu_and_its_gradient_are_pytorchs)
{
    double y[4], dx[4];
    DIRECT("silu", NULL, 1, OUTPUTS(y), SAMPLE(x, 4));
    CLOSE(y, printed, 0.73105857863, -0.238405844044, 0.311229665601, 2.857722380467);
    DIRECT("silu_grad", NULL, 1, OUTPUTS(dx), SAMPLE(dy, 4), SAMPLE(x, 4));
    CLOSE(dx, printed, 0.463835255936, 0.090784248785, 1.479922374605, 0.272026026504);
}

/* y = torch.nn.functional.rms_norm(x, (4,), gamma, eps=0.1) */
TEST(rms_norm_and_its_gradients_are_pytorchs)
{
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

/* Two samples of two rows, in groups of two channels each, then in one group. The input of
 * torch.nn.functional.group_norm has the channels before the rows, and eps is 0.1. */
TEST(group_norm_and_its_gradients_are_pytorchs)
{
    enum { SAMPLES = 2, ROWS = 2, CHANNELS = 4, COUNT = SAMPLES * ROWS * CHANNELS };
    const double maps[COUNT] = {1, -2, 0.5, 3, 0, 4, -1, 2, 101, 98, 100.5, 103, 2, 2, -7, 1};
    const double slopes[COUNT] = {0.5, -1, 2, 0.25, 1, 0, -3, 0.5, -1, 2, 0.75, 1, 0.5, -0.5, 1, -2};
    const double gamma[] = {1, 2, -1, 0.5}, beta[] = {0.5, 0, -2, 1};
    att_group_norm_attrs attrs = {.groups = 2, .eps = 0.1};
    double moments[SAMPLES * 2 * CHANNELS], y[COUNT], dx[COUNT], dbeta[SAMPLES * CHANNELS], dgamma[SAMPLES * CHANNELS];
    DIRECT("channel_moments", NULL, SAMPLES, OUTPUTS(moments), SAMPLE(maps, ROWS, CHANNELS));
    DIRECT("group_norm", &attrs, SAMPLES, OUTPUTS(y), SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS),
           SHARED(gamma, CHANNELS), SHARED(beta, CHANNELS));
    CLOSE(y, printed, 0.614257736225, -2.513670196945, -1.596301324501, 1.605548013249, 0.157226791326, 2.970701141844,
          -0.627424503303, 1.282589072849, 1.530503678238, 1.937962141164, -2.974557302776, 1.511106458302,
          -0.49974237441, -1.99948474882, -0.925365908186, 0.538931936217);
    DIRECT("group_norm_sums", &attrs, SAMPLES, OUTPUTS(dbeta, dgamma), SAMPLE(slopes, ROWS, CHANNELS),
           SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS));
    DIRECT("group_norm_grad", &attrs, SAMPLES, OUTPUTS(dx), SAMPLE(slopes, ROWS, CHANNELS),
           SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS), SHARED(gamma, CHANNELS), SAMPLE(dbeta, CHANNELS),
           SAMPLE(dgamma, CHANNELS));
    CLOSE(dx, printed, 0.256557841131, -0.536981527949, -1.710587608047, 0.448858188352, 0.601419311303,
          -0.320995624485, 1.046879616125, 0.214849803571, -0.05099883491, 0.052594014015, -0.011826922804,
          0.011597326566, 0.014583062362, -0.016178241466, 0.000760490189, -0.000530893951);
    for (int c = 0; c < CHANNELS; c++) {
        dgamma[c] += dgamma[CHANNELS + c];
        dbeta[c] += dbeta[CHANNELS + c];
    }
    CLOSE(dgamma, printed, -1.816019206005, 3.694668426841, 2.966613024361, 3.451848251209);
    CLOSE(dbeta, printed, 1, 0.5, 0.75, -0.25);
    attrs.groups = 1;
    DIRECT("group_norm", &attrs, SAMPLES, OUTPUTS(y), SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS),
           ABSENT, ABSENT);
    CLOSE(y, printed, 0.032816001308, -1.542352061477, -0.229712009156, 1.082928043165, -0.49224001962, 1.607984064093,
          -1.017296040549, 0.557872022236, 1.00568506029, 0.946454529132, 0.995813305097, 1.045172081063,
          -0.94892246793, -0.94892246793, -1.126614061405, -0.968665978317);
    DIRECT("group_norm_sums", &attrs, SAMPLES, OUTPUTS(dbeta, dgamma), SAMPLE(slopes, ROWS, CHANNELS),
           SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS));
    DIRECT("group_norm_grad", &attrs, SAMPLES, OUTPUTS(dx), SAMPLE(slopes, ROWS, CHANNELS),
           SAMPLE(maps, ROWS, CHANNELS), SAMPLE(moments, 2, CHANNELS), ABSENT, SAMPLE(dbeta, CHANNELS),
           SAMPLE(dgamma, CHANNELS));
    CLOSE(dx, printed, 0.237055499434, -0.115432033892, 1.097155613837, -0.184272837842, 0.64461567592, -0.460569009097,
          -1.310576241771, 0.092023333412, -0.032724411071, 0.027016275148, 0.001911757948, 0.006422506328,
          0.013725971485, -0.006017538902, 0.025128191857, -0.035462752794);
}

/* y = torch.nn.functional.normalize(x, dim=-1) */
TEST(l2_norm_and_its_gradient_are_pytorchs)
{
    const att_l2_norm_attrs attrs = {.eps = 1e-12};
    double y[4], norm[1], dx[4];
    DIRECT("l2_norm", &attrs, 1, OUTPUTS(y, norm), SAMPLE(x, 1, 4));
    CLOSE(y, printed, 0.264906471413, -0.529812942826, 0.132453235707, 0.794719414239);
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(x, 1, 4), SAMPLE(norm, 1, 1));
    CLOSE(dx, printed, 0.053446042478, -0.106892084956, 0.490309346212, -0.170794961832);
}

/* If the norm is below eps, the divisor is the constant eps. */
TEST(rows_shorter_than_eps_are_divided_by_it)
{
    const att_l2_norm_attrs attrs = {.eps = 8};
    double y[4], norm[1], dx[4];
    DIRECT("l2_norm", &attrs, 1, OUTPUTS(y, norm), SAMPLE(x, 1, 4));
    CLOSE(y, 0, 0.125, -0.25, 0.0625, 0.375);
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(dy, 1, 4), SAMPLE(x, 1, 4), SAMPLE(norm, 1, 1));
    CLOSE(dx, 0, 0.0625, -0.125, 0.25, 0.03125);
}

/* torch.nn.functional.normalize(torch.tensor([3, -4]), dim=-1, eps=5): a norm equal to eps counts as clamped. */
TEST(a_row_as_long_as_eps_has_the_gradient_of_a_constant_divisor)
{
    const att_l2_norm_attrs attrs = {.eps = 5};
    const double row[] = {3, -4}, slope[] = {1, 2}, norm[] = {5};
    double dx[2];
    DIRECT("l2_norm_grad", &attrs, 1, OUTPUTS(dx), SAMPLE(slope, 1, 2), SAMPLE(row, 1, 2), SAMPLE(norm, 1, 1));
    CLOSE(dx, 0, 0.2, 0.4);
}
