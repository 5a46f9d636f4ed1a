/* Operations on feature maps and their gradients against PyTorch, in f64 (tools/goldens/maps.py). */
#include "engine/kernels/direct.h"
#include "engine/ops/adaptive_avg_pool.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/pool.h"
#include "engine/ops/upsample_bilinear.h"
#include "golden_path.h"

TEST_GROUP(direct_setup, close_context)

enum { MOST = 256 };
static const double LIMIT = 1e-13;

/* A line of tests/goldens/maps.txt. */
typedef struct line {
    char op[32];
    int h, w, channels, height, width, outputs, kernel, stride, padding, output_padding, dilation, groups;
    double x[MOST], weight[MOST], bias[MOST], dweight[MOST], y[MOST], dy[MOST], dx[MOST];
} line;

static void read_doubles(FILE *file, double *numbers, int count)
{
    assert_in_range(count, 1, MOST);
    for (int i = 0; i < count; i++)
        assert_int_equal(fscanf(file, "%lf", &numbers[i]), 1);
}

static int weights_of(const line *l)
{
    return l->channels * l->outputs / l->groups * l->kernel * l->kernel;
}

static bool read_line(FILE *file, line *l)
{
    if (fscanf(file, "%31s %d %d %d %d %d %d %d %d %d %d %d %d", l->op, &l->h, &l->w, &l->channels, &l->height,
               &l->width, &l->outputs, &l->kernel, &l->stride, &l->padding, &l->output_padding, &l->dilation,
               &l->groups) != 13)
        return false;
    int from = l->h * l->w * l->channels, to = l->height * l->width * l->outputs;
    read_doubles(file, l->x, from);
    if (l->groups) {
        read_doubles(file, l->weight, weights_of(l));
        read_doubles(file, l->bias, l->outputs);
        read_doubles(file, l->dweight, weights_of(l));
    }
    read_doubles(file, l->y, to);
    read_doubles(file, l->dy, to);
    read_doubles(file, l->dx, from);
    return true;
}

static void close_to(const line *l, const double *y, const double *dx)
{
    direct_close(y, l->y, l->height * l->width * l->outputs, LIMIT);
    direct_close(dx, l->dx, l->h * l->w * l->channels, LIMIT);
}

#define X SAMPLE(l->x, l->h, l->w, l->channels)
#define DY SAMPLE(l->dy, l->height, l->width, l->outputs)
#define NO_MORE ABSENT, ABSENT, ABSENT, ABSENT, ABSENT

static void check_transposed(const line *l)
{
    const att_conv_attrs attrs = {.stride = l->stride,
                                  .padding = l->padding,
                                  .output_padding = l->output_padding,
                                  .dilation = l->dilation,
                                  .groups = l->groups,
                                  .kernel_h = l->kernel,
                                  .kernel_w = l->kernel};
    const direct_input weight = SHARED(l->weight, l->channels, l->outputs / l->groups, l->kernel, l->kernel);
    double y[MOST], dx[MOST], dweight[MOST] = {0};
    DIRECT("conv_transpose2d", &attrs, 1, OUTPUTS(y), X, weight, SHARED(l->bias, l->outputs), NO_MORE);
    DIRECT("conv2d", &attrs, 1, OUTPUTS(dx), DY, weight, ABSENT, NO_MORE);
    DIRECT("conv2d_weight_grad", &attrs, 1, OUTPUTS(dweight), X, DY);
    close_to(l, y, dx);
    direct_close(dweight, l->dweight, weights_of(l), LIMIT);
}

static void check_resized(const line *l)
{
    const att_upsample_attrs forward = {l->height, l->width}, back = {l->h, l->w};
    double y[MOST], dx[MOST];
    DIRECT("upsample_bilinear", &forward, 1, OUTPUTS(y), X);
    DIRECT("upsample_bilinear_grad", &back, 1, OUTPUTS(dx), DY);
    close_to(l, y, dx);
}

static void check_means(const line *l)
{
    const att_adaptive_attrs attrs = {l->height, l->width, l->h, l->w};
    double y[MOST], dx[MOST];
    DIRECT("adaptive_avg_pool", &attrs, 1, OUTPUTS(y), X);
    DIRECT("adaptive_avg_pool_grad", &attrs, 1, OUTPUTS(dx), DY);
    close_to(l, y, dx);
}

static void check_maxima(const line *l)
{
    const att_pool_attrs attrs = {.kernel = l->kernel, .stride = l->stride, .padding = l->padding};
    double y[MOST], dx[MOST];
    DIRECT("max_pool", &attrs, 1, OUTPUTS(y), X);
    DIRECT("max_pool_grad", &attrs, 1, OUTPUTS(dx), DY, X);
    close_to(l, y, dx);
}

TEST(maps_are_pytorchs)
{
    static const struct {
        const char *op;
        void (*check)(const line *l);
    } checks[] = {{"conv_transpose2d", check_transposed},
                  {"upsample_bilinear", check_resized},
                  {"adaptive_avg_pool", check_means},
                  {"max_pool", check_maxima}};
    char path[4096];
    line l;
    int count = 0;
    golden_path("maps.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (read_line(file, &l))
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
            if (strcmp(l.op, checks[i].op) == 0) {
                checks[i].check(&l);
                count++;
            }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(count, 28);
}
