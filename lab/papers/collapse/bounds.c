#include "lab/papers/collapse/bounds.h"

#include <math.h>

/* The Lipschitz constant of GELU (erf): gelu'(sqrt(2)) = 1.1289. */
static const double GELU_SLOPE = 1.129;
static const double LN_2 = 0.693147180559945309417, LN_3 = 1.09861228866810969140;

bool att_bounds_create(att_arena *arena, const att_stack_options *o, att_bounds *bounds)
{
    size_t square = (size_t)o->width * (size_t)o->width;
    bool absorbed = o->norm == ATT_STACK_NORM_COLUMN && !o->pre_norm && !o->skip && !o->mlp;
    *bounds = (att_bounds){.heads = o->heads,
                           .width = o->width,
                           .hidden = o->hidden,
                           .skip = o->skip,
                           .mlp = o->mlp,
                           .defined = o->norm == ATT_STACK_NORM_NONE || absorbed,
                           .beta = -INFINITY,
                           .gamma = -INFINITY,
                           .lambda = -INFINITY};
    bounds->product = att_arena_allocate(arena, square * sizeof(double));
    bounds->keys = att_arena_allocate(arena, square * sizeof(double));
    bounds->norms = att_arena_allocate(arena, (size_t)o->heads * sizeof *bounds->norms);
    return bounds->product && bounds->keys && bounds->norms;
}

void att_bounds_begin(att_bounds *b, const att_tokens *x)
{
    att_norms norms = att_norms_of(x->rest, x->count, x->width);
    b->start = att_tokens_residual(x);
    b->one = att_log_times(x->rest_log, norms.one);
    b->inf = att_log_times(x->rest_log, norms.inf);
}

/* --- norms of weights --------------------------------------------------------------------------------------------- */

/* left [width, k] as columns `from`.. of a [width, width] matrix; right [k, width]; to [width, width] */
static void multiply(const double *left, int from, int k, const double *right, int width, double *to)
{
    for (int i = 0; i < width; i++)
        att_product(left + i * width + from, 1, k, right, width, to + i * width);
}

/* W_K,h' [k, width] */
static void transpose_keys(const double *keys, int from, int k, int width, double *to)
{
    for (int c = 0; c < k; c++)
        for (int i = 0; i < width; i++)
            to[c * width + i] = keys[i * width + from + c];
}

void att_bounds_weigh(att_bounds *b, const att_stack_weights *w, const double *scales)
{
    int d = b->width, k = d / b->heads;
    for (int h = 0; h < b->heads; h++) {
        transpose_keys(w->k, h * k, k, d, b->keys);
        multiply(w->q, h * k, k, b->keys, d, b->product);
        b->norms[h].qk = att_norms_of(b->product, d, d).one;
        multiply(w->v, h * k, k, w->o + h * k * d, d, b->product);
        for (int i = 0; scales && i < d * d; i++)
            b->product[i] *= exp(-scales[i % d]);
        b->norms[h].value = att_norms_of(b->product, d, d);
    }
}

static double composite(att_norms norms)
{
    return 0.5 * (norms.one + norms.inf);
}

/* --- one layer ---------------------------------------------------------------------------------------------------- */

/* ln gamma; -inf if all D_ii are 0 */
static double gamma_of(const att_head_facts *facts)
{
    return facts->spread_max > 0 ? 0.5 * log(facts->spread_sum / facts->spread_max) : -INFINITY;
}

static double largest_beta(const att_bounds *b)
{
    double beta = -INFINITY;
    for (int h = 0; h < b->heads; h++)
        beta = fmax(beta, b->norms[h].qk + composite(b->norms[h].value));
    return beta;
}

static double largest_gamma(const att_bounds *b, const att_attend *attend)
{
    double gamma = -INFINITY;
    for (int h = 0; h < b->heads; h++)
        gamma = fmax(gamma, gamma_of(&attend->facts[h]));
    return gamma;
}

static double root_of_width(const att_bounds *b)
{
    return 0.5 * log((double)b->width / b->heads);
}

/* ln(a + b), -inf for two of -inf */
static double plus(double a, double b)
{
    return fmax(a, b) == -INFINITY ? -INFINITY : fmax(a, b) + log1p(exp(-fabs(a - b)));
}

/* The factors of x^2 y and x y^2 in the safe bound of attention, without 2. */
static att_norms safe_factors(const att_bounds *b, const att_attend *attend)
{
    att_norms sum = {-INFINITY, -INFINITY};
    for (int h = 0; h < b->heads; h++) {
        double gamma = gamma_of(&attend->facts[h]), common = b->norms[h].qk - root_of_width(b);
        if (gamma == -INFINITY)
            continue;
        sum.one = plus(sum.one, 2 * gamma + common + b->norms[h].value.one);
        sum.inf = plus(sum.inf, common + b->norms[h].value.inf);
    }
    return sum;
}

static att_stack_log scaled_by(att_stack_log v, double factor)
{
    return factor == -INFINITY ? att_log_of(-INFINITY) : att_log_times(v, factor);
}

static att_stack_log cube(att_stack_log v, double factor)
{
    return scaled_by(att_log_product(3, v, 0, att_log_of(0), 0), factor);
}

/* ln of one head's residual over its bound with C = 1; -inf if the residual is 0. The factor e^3s of both is left out,
 * because it would swallow the digits of their ratio. */
static double excess(const att_bounds *b, const att_attend *attend, int head, const att_tokens *u)
{
    const att_head_facts *facts = &attend->facts[head];
    double bound = gamma_of(facts) + b->norms[head].qk + composite(b->norms[head].value) - root_of_width(b) +
                   3 * composite(att_norms_of(u->rest, u->count, u->width));
    double residual = attend->output_scale + composite(facts->output);
    if (residual == -INFINITY || att_log_is_zero(u->rest_log))
        return -INFINITY;
    return residual - bound - (u->rest_log.log > 0 ? 2 * u->rest_log.log : 0);
}

void att_bounds_branch(const att_bounds *b, const att_attend *attend, const att_tokens *u, att_stack_layer *layer)
{
    double gamma = largest_gamma(b, attend), root = root_of_width(b), most = -INFINITY;
    att_stack_log residual = att_tokens_residual(u);
    layer->input = residual;
    layer->beta = exp(largest_beta(b));
    layer->gamma = gamma > -INFINITY ? exp(gamma) : NAN;
    layer->branch_bound.paper = cube(residual, 2 * LN_2 + gamma + largest_beta(b) + log(b->heads) - root);
    att_norms factors = safe_factors(b, attend);
    layer->branch_bound.safe = cube(residual, LN_2 + 0.5 * (factors.one + factors.inf));
    int mild = 0;
    for (int h = 0; h < b->heads; h++) {
        mild += attend->facts[h].mild_rows;
        most = fmax(most, excess(b, attend, h, u));
    }
    layer->condition = (double)mild / ((double)b->heads * u->count);
    layer->head_paper = most - 2 * LN_2;
    layer->head_safe = most - LN_2;
}

/* --- the stack ---------------------------------------------------------------------------------------------------- */

/* v 3^power - less, for a logarithm v */
static att_stack_log tripled(double v, int power, double less)
{
    att_stack_log result = {0, power * LN_3 + log(fabs(v))};
    double size = exp(result.log_log);
    if (size <= 1e300)
        return att_log_of((v < 0 ? -size : size) - less);
    result.log = v < 0 ? -size : size;
    return result;
}

/* The term k of the maximum over k of the bound with skips. half: half of ln(8 gamma beta H / sqrt(d_k)). */
static att_stack_log skip_term(const att_bounds *b, int l, int k, double half)
{
    return tripled(half + (l - k) * log(2.0 * b->heads) + b->start.log, k, half);
}

/* The terms grow with k as long as g_k = half + (l - k) ln 2H + ln r exceeds 3/2 ln 2H, and fall afterwards. */
static att_stack_log skip_bound(const att_bounds *b, int l, double half)
{
    double step = log(2.0 * b->heads), peak = floor((half + l * step + b->start.log - 1.5 * step) / step);
    int around = (int)fmin(fmax(peak, 0), l);
    att_stack_log most = skip_term(b, l, 0, half), last = skip_term(b, l, l, half);
    most = att_stack_compare(last, most) > 0 ? last : most;
    for (int k = around > 0 ? around - 1 : 0; k <= around + 2 && k <= l; k++) {
        att_stack_log term = skip_term(b, l, k, half);
        most = att_stack_compare(term, most) > 0 ? term : most;
    }
    return most;
}

static att_stack_log paper_bound(const att_bounds *b, int l)
{
    if (!b->defined || (b->skip && b->mlp))
        return att_log_none();
    if (att_log_is_zero(b->start))
        return b->start;
    double constant =
        (b->skip ? 3 : 2) * LN_2 + b->gamma + b->beta + (b->mlp ? b->lambda : 0) + log(b->heads) - root_of_width(b);
    if (constant == -INFINITY)
        return b->skip ? skip_term(b, l, 0, 0) : att_log_of(-INFINITY);
    return b->skip ? skip_bound(b, l, 0.5 * constant) : tripled(0.5 * constant + b->start.log, l, 0.5 * constant);
}

static void step_attention(att_bounds *b, att_norms factors)
{
    att_stack_log one = scaled_by(att_log_product(2, b->one, 1, b->inf, LN_2), factors.one);
    att_stack_log inf = scaled_by(att_log_product(2, b->inf, 1, b->one, LN_2), factors.inf);
    b->one = b->skip ? att_log_sum(b->one, one) : one;
    b->inf = b->skip ? att_log_sum(b->inf, inf) : inf;
}

att_norms att_mlp_lipschitz(const att_stack_weights *w, int width, int hidden)
{
    att_norms first = att_norms_of(w->fc1, width, hidden), second = att_norms_of(w->fc2, hidden, width);
    return (att_norms){first.one + second.one + log(GELU_SLOPE), first.inf + second.inf + log(GELU_SLOPE)};
}

static void step_mlp(att_bounds *b, att_norms lambda)
{
    if (b->skip)
        lambda = (att_norms){plus(0, LN_2 + lambda.one), plus(0, LN_2 + lambda.inf)};
    b->one = scaled_by(b->one, lambda.one);
    b->inf = scaled_by(b->inf, lambda.inf);
}

void att_bounds_step(att_bounds *b, const att_attend *attend, const att_stack_weights *w, int l, att_stack_layer *layer)
{
    b->beta = fmax(b->beta, largest_beta(b));
    b->gamma = fmax(b->gamma, largest_gamma(b, attend));
    layer->lambda = NAN;
    step_attention(b, safe_factors(b, attend));
    if (b->mlp) {
        att_norms lambda = att_mlp_lipschitz(w, b->width, b->hidden);
        b->lambda = fmax(b->lambda, composite(lambda));
        layer->lambda = exp(composite(lambda));
        step_mlp(b, lambda);
    }
    layer->bound.paper = paper_bound(b, l);
    layer->bound.safe = b->defined ? att_log_product(0.5, b->one, 0.5, b->inf, 0) : att_log_none();
}
