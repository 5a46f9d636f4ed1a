/* Batch norm in training, kernel by kernel: its values, and its gradient against central differences, including the
 * path through the statistics. */
#include "engine/kernels/direct.h"
#include "engine/ops/activation.h"
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"

TEST_GROUP(direct_setup, close_context)

enum { SAMPLES = 3, ROWS = 4, COLUMNS = 2, COUNT = SAMPLES * ROWS * COLUMNS };

static att_batch_norm_attrs norm_attrs = {.eps = 0.02}; /* tests set the activation */
static const att_moments_attrs rows_attrs = {.rows = ROWS, .momentum = 0.25};
static const double gamma_[COLUMNS] = {1.3, -0.7}, beta[COLUMNS] = {0.2, 0.5};

static void draw(double *x, double shift, uint64_t key)
{
    att_random random = att_random_from(key);
    for (int i = 0; i < COUNT; i++)
        x[i] = att_random_normal(&random) + shift;
}

/* Computes stats [2, COLUMNS] of the batch, and y unless it is NULL. */
static void forward(const double *x, double *stats, double *y)
{
    double moments[SAMPLES * 2 * COLUMNS];
    DIRECT("channel_moments", NULL, SAMPLES, OUTPUTS(moments), SAMPLE(x, ROWS, COLUMNS));
    DIRECT("merge_moments", &rows_attrs, SAMPLES, OUTPUTS(stats), SAMPLE(moments, 2, COLUMNS));
    DIRECT("normalize", &norm_attrs, SAMPLES, OUTPUTS(y), SAMPLE(x, ROWS, COLUMNS), BATCH(stats, 2, COLUMNS),
           SHARED(gamma_, COLUMNS), SHARED(beta, COLUMNS));
}

TEST(statistics_are_those_of_all_rows)
{
    double x[COUNT], stats[2 * COLUMNS], y[COUNT], old_mean[] = {1, 2}, old_variance[] = {3, 4};
    double mean[COLUMNS], variance[COLUMNS];
    draw(x, 3, 1);
    forward(x, stats, y);
    DIRECT("running_stats", &rows_attrs, SAMPLES, OUTPUTS(mean, variance), BATCH(stats, 2, COLUMNS),
           SHARED(old_mean, COLUMNS), SHARED(old_variance, COLUMNS));
    for (int c = 0; c < COLUMNS; c++) {
        double sum = 0, squares = 0, n = SAMPLES * ROWS;
        for (int i = c; i < COUNT; i += COLUMNS)
            sum += x[i] / n;
        for (int i = c; i < COUNT; i += COLUMNS)
            squares += (x[i] - sum) * (x[i] - sum);
        CLOSE(&stats[c], 1e-14, sum);
        CLOSE(&stats[COLUMNS + c], 1e-14, squares / n);
        CLOSE(&y[c], 1e-14, (x[c] - sum) / sqrt(squares / n + 0.02) * gamma_[c] + beta[c]);
        CLOSE(&mean[c], 1e-14, 0.75 * old_mean[c] + 0.25 * sum);
        CLOSE(&variance[c], 1e-14, 0.75 * old_variance[c] + 0.25 * squares / (n - 1));
    }
}

static void backward(const double *x, const double *dy, double *dx, double *sums, double *products)
{
    double stats[2 * COLUMNS], y[COUNT], mean_dy[COLUMNS], mean_product[COLUMNS];
    forward(x, stats, y);
    DIRECT("normalize_sums", &norm_attrs, SAMPLES, OUTPUTS(sums, products), SAMPLE(dy, ROWS, COLUMNS),
           SAMPLE(x, ROWS, COLUMNS), BATCH(stats, 2, COLUMNS), SHARED(gamma_, COLUMNS), SHARED(beta, COLUMNS));
    DIRECT("batch_mean", &rows_attrs, SAMPLES, OUTPUTS(mean_dy), SAMPLE(sums, COLUMNS));
    DIRECT("batch_mean", &rows_attrs, SAMPLES, OUTPUTS(mean_product), SAMPLE(products, COLUMNS));
    DIRECT("normalize_grad", &norm_attrs, SAMPLES, OUTPUTS(dx), SAMPLE(dy, ROWS, COLUMNS), SAMPLE(x, ROWS, COLUMNS),
           BATCH(stats, 2, COLUMNS), SHARED(gamma_, COLUMNS), SHARED(beta, COLUMNS), BATCH(mean_dy, COLUMNS),
           BATCH(mean_product, COLUMNS), ABSENT, ABSENT);
}

static double loss(const double *x, const double *dy)
{
    double stats[2 * COLUMNS], y[COUNT], sum = 0;
    forward(x, stats, y);
    for (int i = 0; i < COUNT; i++)
        sum += y[i] * dy[i];
    return sum;
}

static void check_gradient(void)
{
    const double h = 1e-5;
    double x[COUNT], dy[COUNT], dx[COUNT], sums[SAMPLES * COLUMNS], products[SAMPLES * COLUMNS], worst = 0;
    draw(x, 3, 1);
    draw(dy, 0, 2);
    backward(x, dy, dx, sums, products);
    for (int i = 0; i < COUNT; i++) {
        double kept = x[i];
        x[i] = kept + h;
        double above = loss(x, dy);
        x[i] = kept - h;
        double error = fabs(dx[i] - (above - loss(x, dy)) / (2 * h));
        x[i] = kept;
        worst = isnan(error) ? INFINITY : fmax(worst, error);
    }
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("gradient: %.2g\n", worst);
    assert_true(worst <= 1e-8);
}

/* Measured: 2.9e-10; with ReLU 2.6e-10. */
TEST(gradients_go_through_the_statistics)
{
    check_gradient();
    norm_attrs.activation = ATT_ACT_RELU;
    check_gradient();
    norm_attrs.activation = ATT_ACT_NONE;
}
