#include <attscope/lab/collapse.h>

#include <math.h>

typedef struct sums {
    double x, y, xx, xy;
} sums;

static bool enters(const att_stack_layer *layers, int l, double least)
{
    double x = layers[l].residual.log, y = layers[l + 1].residual.log;
    return isfinite(x) && isfinite(y) && x >= least && y >= least;
}

/* Sums of the deviations from the means `mean_x` and `mean_y`, divided by `unit`: squares of logarithms overflow. */
static sums sums_about(const att_stack_layer *layers, int depth, double least, double mean_x, double mean_y,
                       double unit)
{
    sums s = {0};
    for (int l = 0; l < depth; l++) {
        if (!enters(layers, l, least))
            continue;
        double x = layers[l].residual.log / unit - mean_x, y = layers[l + 1].residual.log / unit - mean_y;
        s = (sums){s.x + x, s.y + y, s.xx + x * x, s.xy + x * y};
    }
    return s;
}

att_stack_fit att_stack_fit_rate(const att_stack_layer *layers, int depth, double least)
{
    att_stack_fit fit = {.slope = NAN, .intercept = NAN};
    double unit = 1;
    for (int l = 0; l < depth; l++) {
        if (!enters(layers, l, least))
            continue;
        fit.first = fit.pairs == 0 ? l : fit.first;
        fit.last = l;
        fit.pairs++;
        unit = fmax(unit, fmax(fabs(layers[l].residual.log), fabs(layers[l + 1].residual.log)));
    }
    if (fit.pairs < 2)
        return fit;
    sums all = sums_about(layers, depth, least, 0, 0, unit);
    double mean_x = all.x / fit.pairs, mean_y = all.y / fit.pairs;
    sums about = sums_about(layers, depth, least, mean_x, mean_y, unit);
    if (about.xx > 0) {
        fit.slope = about.xy / about.xx;
        fit.intercept = unit * (mean_y - fit.slope * mean_x);
    }
    return fit;
}
