/* Stacks of self-attention against mpmath (1,000 digits) and PyTorch (f64). */
#include "formula.h"
#include "golden_path.h"
#include "lab/papers/collapse/stacks.h"

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

/* The error of ln r, relative to |ln r| where that is above 1: if layers cube the residual, errors of ln r triple as
 * ln r itself does. */
static double error_of(att_stack_log value, double expected)
{
    return fabs(value.log - expected) / fmax(1, fabs(expected));
}

/* The largest error is 2.1e-14. */
SCRATCH_TEST(residuals_equal_those_of_a_thousand_digits)
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
        run(self, &g.options, layers, NULL);
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
SCRATCH_TEST(outputs_equal_pytorchs)
{
    FILE *file = open_goldens();
    golden g;
    double expected[MOST_NUMBERS], output[MOST_NUMBERS], worst = 0;
    int cases = 0;
    for (int count; (count = read_case(file, "output", &g, expected)) >= 0; cases++) {
        att_stack_layer layers[4];
        assert_int_equal(count, g.options.tokens * WIDTH);
        g.options.depth = 3;
        run(self, &g.options, layers, output);
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
