/* Stacks of self-attention against mpmath (1,000 digits) and PyTorch (f64), and the bounds of their residuals. */
#include <attscope/lab/collapse.h>

#include <math.h>

#include "collapse/plain.h"
#include "collapse/stack.h"
#include "core/random.h"
#include "formula.h"
#include "golden_path.h"
#include "io/scratch.h"
#include "sanitized.h"

enum {
    WIDTH = 6,
    HIDDEN = 8,
    MOST_TOKENS = 8,
    LAYERS = 7,
    GOLDENS = 42,
    MOST_NUMBERS = MOST_TOKENS * WIDTH,
    SQUARE = WIDTH * WIDTH,
    OBLONG = WIDTH * HIDDEN
};

/* A stack of tools/goldens/stack.py. */
typedef struct golden {
    char name[32];
    int biases;
    double mean;
    att_stack_options options;
    double tokens[MOST_TOKENS * WIDTH];
    double q[SQUARE], k[SQUARE], v[SQUARE], o[SQUARE], fc1[OBLONG], fc2[OBLONG];
    double vectors[9][HIDDEN];
    att_stack_weights weights;
} golden;

static void draw(const golden *g, int layer, const char *matrix, double scale, double *to, int count)
{
    char key[64];
    snprintf(key, sizeof key, "%s/%d/%s", g->name, layer, matrix);
    for (int i = 0; i < count; i++)
        to[i] = scale * formula(key, (uint32_t)i);
}

static void draw_vectors(golden *g, int layer)
{
    static const char *const names[] = {"q_bias",   "v_bias",   "o_bias",       "norm1_bias",  "norm2_bias",
                                        "fc1_bias", "fc2_bias", "norm1_weight", "norm2_weight"};
    att_stack_weights *w = &g->weights;
    const double **places[] = {&w->q_bias,   &w->v_bias,   &w->o_bias,       &w->norm1_bias,  &w->norm2_bias,
                               &w->fc1_bias, &w->fc2_bias, &w->norm1_weight, &w->norm2_weight};
    for (int i = 0; i < 9; i++) {
        draw(g, layer, names[i], 0.5, g->vectors[i], i == 5 ? HIDDEN : WIDTH);
        for (int c = 0; i > 6 && c < WIDTH; c++)
            g->vectors[i][c] += 1;
        *places[i] = g->vectors[i];
    }
}

static const att_stack_weights *golden_layer(void *user, int index)
{
    golden *g = user;
    double wide = sqrt(12.0 / WIDTH);
    draw(g, index, "q", wide, g->q, SQUARE);
    draw(g, index, "k", wide, g->k, SQUARE);
    draw(g, index, "v", wide, g->v, SQUARE);
    draw(g, index, "o", wide, g->o, SQUARE);
    draw(g, index, "fc1", wide, g->fc1, OBLONG);
    draw(g, index, "fc2", sqrt(12.0 / HIDDEN), g->fc2, OBLONG);
    g->weights = (att_stack_weights){.q = g->q, .k = g->k, .v = g->v, .o = g->o, .fc1 = g->fc1, .fc2 = g->fc2};
    if (g->biases)
        draw_vectors(g, index);
    return &g->weights;
}

/* Reads the next line of the kind, with its numbers. Returns how many there are, -1 at the end of the file. */
static int read_case(FILE *file, const char *wanted, golden *g, double numbers[MOST_NUMBERS])
{
    int heads, skip, mlp, norm, pre, tokens, length;
    double gain;
    char line[4096], kind[16];
    do {
        if (!fgets(line, sizeof line, file))
            return -1;
    } while (strncmp(line, wanted, strlen(wanted)) != 0);
    assert_int_equal(sscanf(line, "%15s %31s %d %d %d %d %d %d %d %lf %lf%n", kind, g->name, &heads, &skip, &mlp, &norm,
                            &pre, &g->biases, &tokens, &gain, &g->mean, &length),
                     11);
    assert_in_range(tokens, 1, MOST_TOKENS);
    char key[64];
    snprintf(key, sizeof key, "%s/tokens", g->name);
    for (int i = 0; i < tokens * WIDTH; i++)
        g->tokens[i] = gain * sqrt(12) * formula(key, (uint32_t)i) + (i % 2 ? -g->mean : g->mean);
    g->options = att_stack_options_defaults();
    g->options.heads = heads;
    g->options.skip = skip;
    g->options.mlp = mlp;
    g->options.norm = (att_stack_norm)norm;
    g->options.pre_norm = pre;
    g->options.tokens = tokens;
    g->options.width = WIDTH;
    g->options.hidden = HIDDEN;
    g->options.layer = golden_layer;
    g->options.user = g;
    g->options.tokens_data = g->tokens;
    int count = 0;
    char *end;
    for (char *at = line + length; count < MOST_NUMBERS; at = end, count++) {
        numbers[count] = strtod(at, &end);
        if (end == at)
            break;
    }
    return count;
}

static FILE *open_goldens(void)
{
    char path[4096];
    golden_path("stack.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    return file;
}

static void run(scratch *self, const att_stack_options *options, att_stack_layer *layers, double *output)
{
    if (att_stack_run(self->context, options, layers, output) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
}

/* The error of ln r, relative to |ln r| where that is above 1: if layers cube the residual, errors of ln r triple as
 * ln r itself does. */
static double error_of(att_stack_log value, double expected)
{
    return fabs(value.log - expected) / fmax(1, fabs(expected));
}

/* The largest error is 2.1e-14. */
static void residuals_equal_those_of_a_thousand_digits(void **state)
{
    FILE *file = open_goldens();
    golden g;
    double expected[MOST_NUMBERS], worst = 0;
    int cases = 0;
    for (int numbers; (numbers = read_case(file, "residuals", &g, expected)) >= 0; cases++) {
        att_stack_layer layers[LAYERS + 1];
        int count = numbers / 2;
        assert_in_range(count, 5, LAYERS + 1);
        g.options.depth = count - 1;
        run(*state, &g.options, layers, NULL);
        for (int l = 0; l < count; l++) {
            double mean = error_of(layers[l].residual, expected[l]);
            double median = error_of(layers[l].median, expected[count + l]);
            if (!(mean <= 1e-12 && median <= 1e-12))
                fail_msg("%s: ln r of layer %d is %.17g and %.17g, expected %.17g and %.17g", g.name, l,
                         layers[l].residual.log, layers[l].median.log, expected[l], expected[count + l]);
            worst = fmax(worst, fmax(mean, median));
        }
    }
    fclose(file);
    printf("largest error of ln r in %d stacks: %.2g\n", cases, worst);
    assert_int_equal(cases, GOLDENS);
}

/* The largest error is 6.5e-15. */
static void outputs_equal_pytorchs(void **state)
{
    FILE *file = open_goldens();
    golden g;
    double expected[MOST_NUMBERS], output[MOST_NUMBERS], worst = 0;
    int cases = 0;
    for (int count; (count = read_case(file, "output", &g, expected)) >= 0; cases++) {
        att_stack_layer layers[4];
        assert_int_equal(count, g.options.tokens * WIDTH);
        g.options.depth = 3;
        run(*state, &g.options, layers, output);
        double largest = 0, error = 0;
        for (int i = 0; i < count; i++) {
            largest = fmax(largest, fabs(expected[i]));
            error = fmax(error, fabs(output[i] - expected[i]));
            assert_true(isfinite(output[i]));
        }
        if (!(error <= 1e-12 * largest))
            fail_msg("%s: the output differs by %g of %g", g.name, error, largest);
        worst = fmax(worst, error / largest);
    }
    fclose(file);
    printf("largest error of the output in %d stacks: %.2g\n", cases, worst);
    assert_int_equal(cases, GOLDENS);
}

/* --- special stacks ----------------------------------------------------------------------------------------------- */

static att_stack_options small(int depth)
{
    att_stack_options o = att_stack_options_defaults();
    o.depth = depth;
    o.width = 8;
    o.tokens = 6;
    o.heads = 2;
    return o;
}

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

static void without_values_a_skip_leaves_the_residual_unchanged(void **state)
{
    silent s;
    att_stack_options o = small(100);
    o.skip = true;
    o.layer = silent_layer;
    o.user = &s;
    att_stack_layer layers[101];
    run(*state, &o, layers, NULL);
    for (int l = 1; l <= 100; l++) {
        assert_true(layers[l].residual.log == layers[0].residual.log);
        assert_true(layers[l].branch.log == -INFINITY && layers[l].branch.log_log == INFINITY);
    }
}

static void equal_tokens_have_no_residual(void **state)
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
        run(*state, &o, layers, NULL);
        for (int l = 0; l <= 5; l++) {
            assert_true(layers[l].residual.log == -INFINITY && layers[l].residual.log_log == INFINITY);
            assert_true(layers[l].rank == 0);
            assert_true(l == 0 || isnan(layers[l].bound.safe.log_log) || layers[l].bound.safe.log == -INFINITY);
        }
    }
}

static void a_single_token_has_no_residual(void **state)
{
    att_stack_options o = small(3);
    o.tokens = 1;
    att_stack_layer layers[4];
    run(*state, &o, layers, NULL);
    assert_true(layers[3].residual.log == -INFINITY && layers[3].residual.log_log == INFINITY);
    assert_true(isfinite(layers[3].norm));
}

/* The tokens become equal in f64 after a few layers; the logarithm of their residual triples for thousands. */
static void logarithms_go_on_beyond_a_doubles_range(void **state)
{
    enum { DEPTH = 10000 };
    att_stack_layer *layers = malloc((DEPTH + 1) * sizeof *layers);
    att_stack_options o = small(is_sanitized() ? 1000 : DEPTH);
    run(*state, &o, layers, NULL);
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

static void a_skip_decays_at_most_exponentially(void **state)
{
    att_stack_options o = small(200);
    o.skip = true;
    o.norm = ATT_STACK_NORM_TOKEN;
    o.pre_norm = true;
    att_stack_layer layers[201];
    run(*state, &o, layers, NULL);
    assert_true(layers[200].residual.log > 0);
    att_stack_fit fit = att_stack_fit_rate(layers, 200, -700);
    assert_true(fit.pairs == 200 && fit.slope < 1.1);
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

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
static void safe_bounds_hold(void **state)
{
    int bounded = 0, forcing = 0, paper_fails = 0, seeds = is_sanitized() ? 400 : 4000;
    for (int seed = 0; seed < seeds; seed++) {
        att_stack_layer layers[7];
        att_stack_options o = any((unsigned)seed);
        run(*state, &o, layers, NULL);
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

static void the_papers_bound_with_skips_fails_where_the_safe_one_holds(void **state)
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
    run(*state, &o, layers, NULL);
    free(b);
    assert_true(layers[1].condition == 1);
    if (!(layers[1].residual.log > layers[1].bound.paper.log && layers[1].residual.log < layers[1].bound.safe.log))
        fail_msg("ln r %.6f, paper %.6f, safe %.6f", layers[1].residual.log, layers[1].bound.paper.log,
                 layers[1].bound.safe.log);
}

/* The bounds of small tokens force a decrease, and both constants appear as they should. */
static void bounds_of_one_head_have_their_closed_form(void **state)
{
    att_stack_options o = small(3);
    o.heads = 1;
    o.input_std = 1e-3;
    att_stack_layer layers[4];
    run(*state, &o, layers, NULL);
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
static void the_papers_bound_with_skips_is_its_largest_term(void **state)
{
    for (int variant = 0; variant < 12; variant++) {
        att_stack_options o = small(6);
        o.skip = true;
        o.input_std = pow(10, -variant);
        att_stack_layer layers[7];
        run(*state, &o, layers, NULL);
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

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

static const att_stack_weights *blind_layer(void *user, int index)
{
    silent *s = user;
    silent_layer(s, index);
    s->weights.q = s->matrix[2];
    s->weights.v = s->matrix[0];
    return &s->weights;
}

/* W_QK = 0: attention adds the same row to all tokens, and only the term k = 0 of the paper's bound is left. */
static void without_scores_the_papers_bound_with_skips_is_that_of_the_skips(void **state)
{
    silent s;
    att_stack_options o = small(6);
    o.skip = true;
    o.layer = blind_layer;
    o.user = &s;
    att_stack_layer layers[7];
    run(*state, &o, layers, NULL);
    for (int l = 1; l <= 6; l++) {
        assert_true(isnan(layers[l].gamma) && layers[l].residual.log == layers[0].residual.log);
        assert_near(layers[l].bound.paper.log, l * log(4) + layers[0].residual.log);
    }
}

/* With a skip the paper's bound alone has no MLP; the safe one multiplies by 1 + 2 lambda. */
static void the_safe_bound_with_skip_and_mlp_has_its_closed_form(void **state)
{
    att_stack_options o = small(1);
    o.skip = true;
    att_stack_layer alone[2], with[2];
    run(*state, &o, alone, NULL);
    o.mlp = true;
    o.mlp_gain = 0;
    run(*state, &o, with, NULL);
    assert_true(fabs(with[1].bound.safe.log - alone[1].bound.safe.log) < 1e-12);
    assert_true(isnan(with[1].bound.paper.log_log));
    o.mlp_gain = 1e3;
    run(*state, &o, with, NULL);
    /* 1 + 2 lambda is 2 lambda here, for |.|_1 and |.|_inf alike. */
    assert_true(fabs(with[1].bound.safe.log - alone[1].bound.safe.log - log(2 * with[1].lambda)) < 1e-6);
}

static void a_larger_mlp_loosens_the_bound_by_its_lipschitz_constant(void **state)
{
    att_stack_options o = small(2);
    o.mlp = true;
    att_stack_layer one[3], two[3];
    run(*state, &o, one, NULL);
    o.mlp_gain = 2;
    run(*state, &o, two, NULL);
    assert_true(fabs(two[1].lambda / one[1].lambda - 4) < 1e-12);
    assert_true(fabs(two[1].bound.safe.log - one[1].bound.safe.log - log(4)) < 1e-12);
}

/* --- one layer written out -----------------------------------------------------------------------------------------
 */

/* The largest error is 3e-16. */
/* A layer with two heads and an MLP, and what its bounds are made of, computed without logarithms. */
enum { OWN_TOKENS = 5, OWN_WIDTH = 4, OWN_HEADS = 2, OWN_HEAD = 2, OWN_HIDDEN = 7 };
typedef struct own_layer {
    double q[16], k[16], v[16], o[16], fc1[28], fc2[28];
    att_stack_weights weights;
    double tokens[OWN_TOKENS * OWN_WIDTH], rest[OWN_TOKENS * OWN_WIDTH];
    double spread[OWN_HEADS][OWN_TOKENS]; /* D_ii */
    double beta[OWN_HEADS], gamma[OWN_HEADS], output[OWN_HEADS], residual, lambda;
} own_layer;

static const att_stack_weights *own_weights(void *user, int index)
{
    (void)index;
    return &((own_layer *)user)->weights;
}

/* to [rows, columns] = x [rows, inner] w [inner, columns]; of_x and of_w: lengths of their rows. */
static void product(const double *x, int of_x, const double *w, int of_w, int rows, int inner, int columns, double *to)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            to[i * columns + j] = 0;
            for (int m = 0; m < inner; m++)
                to[i * columns + j] += x[i * of_x + m] * w[m * of_w + j];
        }
}

static double norm_one(const double *x, int rows, int columns)
{
    double most = 0;
    for (int j = 0; j < columns; j++) {
        double sum = 0;
        for (int i = 0; i < rows; i++)
            sum += fabs(x[i * columns + j]);
        most = fmax(most, sum);
    }
    return most;
}

static double norm_both(const double *x, int rows, int columns)
{
    double most = 0;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int j = 0; j < columns; j++)
            sum += fabs(x[i * columns + j]);
        most = fmax(most, sum);
    }
    return sqrt(most * norm_one(x, rows, columns));
}

static void subtract_mean(const double *x, double *to)
{
    for (int c = 0; c < OWN_WIDTH; c++) {
        double mean = 0;
        for (int i = 0; i < OWN_TOKENS; i++)
            mean += x[i * OWN_WIDTH + c] / OWN_TOKENS;
        for (int i = 0; i < OWN_TOKENS; i++)
            to[i * OWN_WIDTH + c] = x[i * OWN_WIDTH + c] - mean;
    }
}

/* x A x' / sqrt(d) for each pair of tokens */
static void scores_of(const double *x, const double *form, double *scores)
{
    double left[OWN_TOKENS * OWN_WIDTH];
    product(x, OWN_WIDTH, form, OWN_WIDTH, OWN_TOKENS, OWN_WIDTH, OWN_WIDTH, left);
    for (int i = 0; i < OWN_TOKENS; i++)
        for (int j = 0; j < OWN_TOKENS; j++) {
            scores[i * OWN_TOKENS + j] = 0;
            for (int c = 0; c < OWN_WIDTH; c++)
                scores[i * OWN_TOKENS + j] += left[i * OWN_WIDTH + c] * x[j * OWN_WIDTH + c] / sqrt(OWN_HEAD);
        }
}

/* beta, gamma, D_ii and the residual of the output of a head. */
static void write_head(own_layer *l, int head)
{
    double form[16], value[16], scores[25], keys[16], out[OWN_TOKENS * OWN_WIDTH], sum = 0, most = 0;
    int from = head * OWN_HEAD;
    for (int m = 0; m < OWN_HEAD; m++)
        for (int c = 0; c < OWN_WIDTH; c++)
            keys[m * OWN_WIDTH + c] = l->k[c * OWN_WIDTH + from + m];
    product(l->q + from, OWN_WIDTH, keys, OWN_WIDTH, OWN_WIDTH, OWN_HEAD, OWN_WIDTH, form);
    product(l->v + from, OWN_WIDTH, l->o + from * OWN_WIDTH, OWN_WIDTH, OWN_WIDTH, OWN_HEAD, OWN_WIDTH, value);
    l->beta[head] = norm_one(form, OWN_WIDTH, OWN_WIDTH) * norm_both(value, OWN_WIDTH, OWN_WIDTH);
    scores_of(l->rest, form, scores);
    for (int i = 0; i < OWN_TOKENS; i++) {
        double low = INFINITY, high = -INFINITY;
        for (int j = 0; j < OWN_TOKENS; j++)
            low = fmin(low, scores[i * OWN_TOKENS + j]), high = fmax(high, scores[i * OWN_TOKENS + j]);
        l->spread[head][i] = high - low;
        sum += high - low, most = fmax(most, high - low);
    }
    l->gamma[head] = sqrt(sum / most);
    scores_of(l->tokens, form, scores);
    for (int i = 0; i < OWN_TOKENS; i++) {
        double weights = 0;
        for (int j = 0; j < OWN_TOKENS; j++)
            weights += exp(scores[i * OWN_TOKENS + j]);
        for (int j = 0; j < OWN_TOKENS; j++)
            scores[i * OWN_TOKENS + j] = exp(scores[i * OWN_TOKENS + j]) / weights;
    }
    double mixed[OWN_TOKENS * OWN_WIDTH];
    product(scores, OWN_TOKENS, l->tokens, OWN_WIDTH, OWN_TOKENS, OWN_TOKENS, OWN_WIDTH, mixed);
    product(mixed, OWN_WIDTH, value, OWN_WIDTH, OWN_TOKENS, OWN_WIDTH, OWN_WIDTH, out);
    subtract_mean(out, out);
    l->output[head] = norm_both(out, OWN_TOKENS, OWN_WIDTH);
}

static void write_layer(own_layer *l, double scale)
{
    double *const matrices[] = {l->q, l->k, l->v, l->o, l->fc1, l->fc2, l->tokens};
    static const char *const names[] = {"q", "k", "v", "o", "fc1", "fc2", "tokens"};
    static const int counts[] = {16, 16, 16, 16, 28, 28, OWN_TOKENS * OWN_WIDTH};
    for (int m = 0; m < 7; m++)
        for (int i = 0; i < counts[m]; i++)
            matrices[m][i] = 2 * formula(names[m], (uint32_t)i) * (m == 6 ? scale : 1);
    l->weights = (att_stack_weights){.q = l->q, .k = l->k, .v = l->v, .o = l->o, .fc1 = l->fc1, .fc2 = l->fc2};
    subtract_mean(l->tokens, l->rest);
    l->residual = norm_both(l->rest, OWN_TOKENS, OWN_WIDTH);
    l->lambda = 1.129 * norm_both(l->fc1, OWN_WIDTH, OWN_HIDDEN) * norm_both(l->fc2, OWN_HIDDEN, OWN_WIDTH);
    for (int head = 0; head < OWN_HEADS; head++)
        write_head(l, head);
}

static att_stack_layer run_own(scratch *self, own_layer *l)
{
    att_stack_layer layers[2];
    att_stack_options o = small(1);
    o.tokens = OWN_TOKENS;
    o.width = OWN_WIDTH;
    o.heads = OWN_HEADS;
    o.hidden = OWN_HIDDEN;
    o.mlp = true;
    o.tokens_data = l->tokens;
    o.layer = own_weights;
    o.user = l;
    run(self, &o, layers, NULL);
    return layers[1];
}

/* One layer with one channel and one head: q k = v o = s^2. Returns ln r of its output. */
static double run_channel(scratch *self, double s, int count, const double *tokens)
{
    own_layer l = {.q = {s}, .k = {s}, .v = {s}, .o = {s}};
    l.weights = (att_stack_weights){.q = l.q, .k = l.k, .v = l.v, .o = l.o};
    att_stack_layer layers[2];
    att_stack_options o = small(1);
    o.tokens = count;
    o.width = 1;
    o.heads = 1;
    o.tokens_data = tokens;
    o.layer = own_weights;
    o.user = &l;
    run(self, &o, layers, NULL);
    return layers[1].residual.log;
}

/* Two tokens m + d and m - d: query i gives the second the weight exp(-2 d s^2 x_i). m + d is rounded. */
static void the_residual_of_sharp_attention_is_not_0(void **state)
{
    const double m = 1, d = 1e-10, s = 1e15, tokens[] = {m + d, m - d};
    double expected = -2 * d * s * s * (m - d), found = run_channel(*state, s, 2, tokens);
    if (!(fabs(found - expected) < 1e-6 * fabs(expected)))
        fail_msg("ln r %.17g, expected %.17g", found, expected);
}

typedef struct far_stack {
    double form[4], shift[2]; /* W_QK sqrt(2) of layer 1; what layer 0 adds to the tokens */
    att_stack_weights weights;
} far_stack;

static const att_stack_weights *far_layer(void *user, int index)
{
    static const double zeros[4] = {0}, unit[4] = {1, 0, 0, 1};
    far_stack *s = user;
    s->weights = index == 0 ? (att_stack_weights){.q = zeros, .k = zeros, .v = zeros, .o = zeros, .o_bias = s->shift}
                            : (att_stack_weights){.q = s->form, .k = unit, .v = unit, .o = unit};
    return &s->weights;
}

/* Three tokens r_j at 0, 120 and 240 degrees around a mean m of norm 1e20. The form F is such that F (r_2 - r_1) = a
 * and F (r_3 - r_1) = b have the norm 2000 and point to 60 and 210 degrees. So each query's own scores prefer another
 * key than the first by 600 and more, but the shared ones prefer the first key to the second by -m.a = 6.8e22, and to
 * the third by -m.b = 3.5e22. */
static void shared_scores_do_not_swallow_those_of_a_query(void **state)
{
    const double r = M_PI / 180, h = sqrt(0.75), a[] = {2000 * cos(60 * r), 2000 * sin(60 * r)},
                 b[] = {2000 * cos(210 * r), 2000 * sin(210 * r)};
    const double tokens[] = {1, 0, -0.5, h, -0.5, -h};
    far_stack s = {.shift = {1e20 * cos(310 * r), 1e20 * sin(310 * r)}};
    att_stack_layer layers[3];
    att_stack_options o = small(2);
    for (int i = 0; i < 2; i++) {
        s.form[2 * i] = -M_SQRT2 * (a[i] + b[i]) / 3;
        s.form[2 * i + 1] = M_SQRT2 * (a[i] - b[i]) / (2 * h);
    }
    o.tokens = 3;
    o.width = 2;
    o.heads = 1;
    o.skip = true;
    o.tokens_data = tokens;
    o.layer = far_layer;
    o.user = &s;
    run(*state, &o, layers, NULL);
    const double expected = s.shift[0] * b[0] + s.shift[1] * b[1];
    if (!(fabs(layers[2].branch.log - expected) < 2e-14 * fabs(expected))) /* 8.5e-15 */
        fail_msg("ln r %.17g, expected %.17g", layers[2].branch.log, expected);
}

/* Each query shares its weight between the keys of its own sign: the tokens stay, times s^2. */
static void equal_keys_share_the_weight_of_sharp_attention(void **state)
{
    const double s = 1e15, tokens[] = {1, 1, -1};
    assert_near(run_channel(*state, s, 3, tokens), log(s * s * sqrt(32) / 3));
}

static double largest_spread(const own_layer *l)
{
    double most = 0;
    for (int head = 0; head < OWN_HEADS; head++)
        for (int i = 0; i < OWN_TOKENS; i++)
            most = fmax(most, l->spread[head][i]);
    return most;
}

static void bounds_of_several_heads_and_an_mlp_have_their_closed_form(void **state)
{
    own_layer l;
    write_layer(&l, 1);
    att_stack_layer layer = run_own(*state, &l);
    double beta = fmax(l.beta[0], l.beta[1]), gamma = fmax(l.gamma[0], l.gamma[1]), most = -INFINITY;
    double branch = log(4 * gamma * beta * OWN_HEADS / sqrt(OWN_HEAD) * pow(l.residual, 3));
    for (int head = 0; head < OWN_HEADS; head++)
        most =
            fmax(most, log(l.output[head] / (4 * l.gamma[head] * l.beta[head] / sqrt(OWN_HEAD))) - 3 * log(l.residual));
    assert_near(layer.beta, beta);
    assert_near(layer.gamma, gamma);
    assert_near(layer.lambda, l.lambda);
    assert_near(layer.branch_bound.paper.log, branch);
    assert_near(layer.bound.paper.log, branch + log(l.lambda));
    assert_near(layer.head_paper, most);
    assert_near(layer.head_safe, most + log(2));
}

/* GELU (erf) is steepest at sqrt(2). */
static void lambda_is_not_below_the_slope_of_gelu(void **state)
{
    (void)state;
    double most = 0.5 * (1 + erf(1)) + exp(-1) / sqrt(3.14159265358979323846);
    assert_true(1.129 >= most && 1.129 < most + 2e-4);
}

static void scores_that_differ_by_more_than_1_256_do_not_meet_the_condition(void **state)
{
    own_layer l;
    write_layer(&l, 1);
    double unit = largest_spread(&l);
    write_layer(&l, sqrt(1.25 / unit));
    assert_true(run_own(*state, &l).condition == 1);
    write_layer(&l, sqrt(1.26 / unit));
    assert_near(run_own(*state, &l).condition, 0.9); /* all rows but one of ten */
}

static att_stack_log beyond(double sign, double log_log)
{
    return (att_stack_log){sign * INFINITY, log_log};
}

static void logarithms_beyond_a_doubles_range_are_compared(void **state)
{
    (void)state;
    assert_true(att_stack_compare(beyond(-1, 800), beyond(-1, 900)) > 0);
    assert_true(att_stack_compare(beyond(1, 800), beyond(1, 900)) < 0);
    assert_true(att_stack_compare(beyond(-1, 800), beyond(-1, 800)) == 0);
    assert_true(att_stack_compare(beyond(1, 800), beyond(-1, 900)) > 0);
    assert_true(att_stack_is_vacuous((att_stack_log){2, log(2)}, (att_stack_log){2, log(2)}));
    assert_false(att_stack_is_vacuous((att_stack_log){1.5, log(1.5)}, (att_stack_log){2, log(2)}));
}

static void a_rate_is_fitted_where_both_residuals_are_large_enough(void **state)
{
    (void)state;
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

/* Root of the mean square of the 512 and 256 weights; its standard error is at most 4.4 %. */
static void weights_have_the_variance_of_their_inputs(void **state)
{
    scratch *self = *state;
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

/* --- column-wise norm --------------------------------------------------------------------------------------------- */

/* The largest difference of a layer is 4e-15. */
static void weights_absorb_a_column_wise_norm(void **state)
{
    scratch *self = *state;
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
    assert_int_equal(att_stack_absorb(self->context, &o, differences), ATT_ERR_ARGUMENT);
    assert_message_has(self, "absorbs");
}

/* --- MLP ---------------------------------------------------------------------------------------------------------- */

static long double wide_gelu(long double x)
{
    return 0.5L * x * (1 + erfl(x / sqrtl(2)));
}

/* Three tokens of one channel, a + x, a - 2 x and a + x / 2, through GELU alone: all terms of the Taylor polynomial
 * count in their differences. Errors are relative to the step. The largest one is 8.3e-15, and 1.7e-13 without the last
 * term. */
static void steps_of_gelu_are_differences_of_its_values(void **state)
{
    static const double one = 1, inputs[] = {-1.3, -0.4, 0.2, 0.9}, steps[] = {9.5e-5, 1e-5, 0.03, 0.4};
    static const double of_token[] = {1, -2, 0.5};
    const att_stack_weights w = {.fc1 = &one, .fc2 = &one};
    scratch *self = *state;
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
static void gradients_equal_finite_differences(void **state)
{
    scratch *self = *state;
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
    if (att_stack_price_mlp(self->context, &o, 8, &price) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return price;
}

static void a_larger_lipschitz_constant_costs_sensitivity_and_gradient_variance(void **state)
{
    att_stack_price low = price_of(*state, 0.5, true), high = price_of(*state, 2, true);
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
static void sensitivity_is_that_to_a_perturbation_of_a_thousandth(void **state)
{
    scratch *self = *state;
    att_stack_price price;
    att_stack_options o = small(4);
    o.mlp = o.skip = true;
    assert_int_equal(att_stack_price_mlp(self->context, &o, 2, &price), ATT_OK);
    double expected = (sensitivity_of(self, &o, 0) + sensitivity_of(self, &o, 1)) / 2;
    printf("sensitivity %.9g, error %.2g\n", price.sensitivity, price.sensitivity - expected);
    assert_true(fabs(price.sensitivity - expected) < 1e-9);
}

static void the_price_needs_an_mlp_without_norm(void **state)
{
    scratch *self = *state;
    att_stack_price price;
    att_stack_options o = small(4);
    assert_int_equal(att_stack_price_mlp(self->context, &o, 8, &price), ATT_ERR_ARGUMENT);
    assert_message_has(self, "needs a stack with an MLP");
    o.mlp = true;
    assert_int_equal(att_stack_price_mlp(self->context, &o, 1, &price), ATT_ERR_ARGUMENT);
    assert_message_has(self, "2 to 1000 samples");
}

/* --- random weights, errors --------------------------------------------------------------------------------------- */

static void seeds_and_sharing_decide_the_weights(void **state)
{
    att_stack_layer a[4], b[4];
    att_stack_options o = small(3);
    run(*state, &o, a, NULL);
    run(*state, &o, b, NULL);
    assert_true(a[3].residual.log == b[3].residual.log);
    o.seed++;
    run(*state, &o, b, NULL);
    assert_true(a[3].residual.log != b[3].residual.log);
    o.shared = true;
    run(*state, &o, b, NULL);
    assert_true(b[1].beta == b[2].beta && b[2].beta == b[3].beta);
    assert_true(a[1].beta != a[2].beta);
}

static void refuses(scratch *self, att_stack_options o, att_status status, const char *message)
{
    att_stack_layer layers[4];
    assert_int_equal(att_stack_run(self->context, &o, layers, NULL), status);
    assert_message_has(self, message);
}

static void wrong_options_are_refused(void **state)
{
    scratch *self = *state;
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

static void a_stack_can_be_stopped(void **state)
{
    int last = 0;
    att_stack_options o = small(3);
    o.progress = stop_at_two;
    o.progress_user = &last;
    refuses(*state, o, ATT_ERR_STOPPED, "layer 2 of 3");
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

static void lack_of_memory_is_survived(void **state)
{
    assert_survives_lack_of_memory(*state, run_and_absorb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(residuals_equal_those_of_a_thousand_digits, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(outputs_equal_pytorchs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(without_values_a_skip_leaves_the_residual_unchanged, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(equal_tokens_have_no_residual, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_single_token_has_no_residual, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(logarithms_go_on_beyond_a_doubles_range, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_skip_decays_at_most_exponentially, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(safe_bounds_hold, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(the_papers_bound_with_skips_fails_where_the_safe_one_holds, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(bounds_of_one_head_have_their_closed_form, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(without_scores_the_papers_bound_with_skips_is_that_of_the_skips, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(the_papers_bound_with_skips_is_its_largest_term, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(the_safe_bound_with_skip_and_mlp_has_its_closed_form, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_larger_mlp_loosens_the_bound_by_its_lipschitz_constant, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(equal_keys_share_the_weight_of_sharp_attention, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(the_residual_of_sharp_attention_is_not_0, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(shared_scores_do_not_swallow_those_of_a_query, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(bounds_of_several_heads_and_an_mlp_have_their_closed_form, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(lambda_is_not_below_the_slope_of_gelu, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(scores_that_differ_by_more_than_1_256_do_not_meet_the_condition, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(logarithms_beyond_a_doubles_range_are_compared, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_rate_is_fitted_where_both_residuals_are_large_enough, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(weights_have_the_variance_of_their_inputs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(weights_absorb_a_column_wise_norm, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(steps_of_gelu_are_differences_of_its_values, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(sensitivity_is_that_to_a_perturbation_of_a_thousandth, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(gradients_equal_finite_differences, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_larger_lipschitz_constant_costs_sensitivity_and_gradient_variance,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(the_price_needs_an_mlp_without_norm, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(seeds_and_sharing_decide_the_weights, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(wrong_options_are_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_stack_can_be_stopped, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(lack_of_memory_is_survived, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
