/* Instruments on DeiT-Tiny and 200 photographs against figures from PyTorch's attention maps
 * (tools/goldens/attention.py) and residual steps (tools/goldens/steps.py). */
#include <attscope/attscope.h>

#include "networks/models/fixture.h"
#include "sanitized.h"
#include "shared.h"
#include "study/train/inference.h"

enum { PHOTOGRAPHS = 200, LAYERS = 12, STATISTICS = 5, HEADS = 3, STEP_FIGURES = 278 };

/* Measured: entropy in nats 1.3e-6, its deviation 1.3e-7; distances in image sides and norms 2.3e-7. */
static const double ENTROPY_TOLERANCE = 2e-5, OTHER_TOLERANCE = 4e-6, DEVIATION_TOLERANCE = 4e-6;

typedef struct line {
    char instrument[16], statistic[16], node[32];
    double mean, deviation, heads[HEADS];
} line;

static int read_lines(line *lines, int most)
{
    FILE *file = golden_open("deit_tiny_attention.txt");
    int count = 0;
    for (; count < most; count++) {
        line *l = &lines[count];
        if (fscanf(file, "%15s %15s %31s %lf %lf %lf %lf %lf", l->instrument, l->statistic, l->node, &l->mean,
                   &l->deviation, &l->heads[0], &l->heads[1], &l->heads[2]) != 8)
            break;
    }
    fclose(file);
    return count;
}

static att_measurement find(const att_measure *measure, const line *l, int head)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (m.head == head && !strcmp(m.instrument, l->instrument) && !strcmp(m.statistic, l->statistic) &&
            !strcmp(m.node, l->node))
            return m;
    }
    fail_msg("no figure %s %s %s %d", l->instrument, l->statistic, l->node, head);
    return (att_measurement){0};
}

typedef struct errors {
    double entropy, others, deviation;
} errors;

static void compare(const att_measure *measure, const line *l, errors *worst)
{
    bool entropy = strcmp(l->instrument, "entropy") == 0;
    double *mean_error = entropy ? &worst->entropy : &worst->others;
    for (int head = -1; head < HEADS; head++) {
        att_measurement m = find(measure, l, head);
        double error = fabs(m.mean - (head < 0 ? l->mean : l->heads[head]));
        assert_int_equal(m.count, PHOTOGRAPHS);
        if (!(error <= (entropy ? ENTROPY_TOLERANCE : OTHER_TOLERANCE)))
            fail_msg("%s %s of %s, head %d, is off by %g", l->instrument, l->statistic, l->node, head, error);
        *mean_error = fmax(*mean_error, error);
    }
    double error = fabs(find(measure, l, -1).deviation - l->deviation);
    if (!(error <= DEVIATION_TOLERANCE))
        fail_msg("%s %s of %s: the deviation is off by %g", l->instrument, l->statistic, l->node, error);
    worst->deviation = fmax(worst->deviation, error);
}

/* --- residual steps ----------------------------------------------------------------------------------------------- */

/* Relative, for figures above 1. Measured: 6.6e-7. */
static const double STEP_TOLERANCE = 1e-5;

static double step_error(double value, double expected)
{
    return fabs(value - expected) / fmax(1, fabs(expected));
}

/* Compares the figure of a line of deit_tiny_steps.txt. Returns the larger error of its mean and deviation. */
static double compare_step(const att_measure *measure, const char *text)
{
    char instrument[24], statistic[40], node[40], deviation[24];
    double mean;
    if (sscanf(text, "%23[^\t]\t%39[^\t]\t%39[^\t]\t%lf\t%23s", instrument, statistic, node, &mean, deviation) != 5)
        fail_msg("not a line of the golden: %s", text);
    char name[128];
    snprintf(name, sizeof name, "%s/%s%s%s", instrument, strcmp(node, "-") ? node : "", strcmp(node, "-") ? "/" : "",
             statistic);
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (!att_measurement_is_called(&m, name))
            continue;
        double error = step_error(m.mean, mean);
        if (strcmp(deviation, "-") != 0)
            error = fmax(error, step_error(m.deviation, strtod(deviation, NULL)));
        assert_int_equal(m.count, PHOTOGRAPHS);
        if (!(error <= STEP_TOLERANCE))
            fail_msg("%s is off by %g", name, error);
        return error;
    }
    fail_msg("no figure %s", name);
    return NAN;
}

static void compare_steps(const att_measure *measure)
{
    FILE *file = golden_open("deit_tiny_steps.txt");
    char text[256];
    double worst = 0;
    int count = 0;
    for (; fgets(text, sizeof text, file); count++)
        worst = fmax(worst, compare_step(measure, text));
    fclose(file);
    assert_int_equal(count, STEP_FIGURES);
    print_message("figures of steps within %.2g\n", worst);
}

/* --- the network -------------------------------------------------------------------------------------------------- */

typedef struct network {
    att_context *context;
    att_identity identity;
    att_model *model;
    att_weights *weights;
    att_measure *measure;
} network;

static void network_create(network *n, const char *path)
{
    att_tensors *file;
    CHECK(n->context, att_tensors_open(n->context, path, &file));
    CHECK(n->context, att_model_identify(n->context, file, path, "deit_tiny_patch16_224", NULL, &n->identity));
    CHECK(n->context, att_model_create(n->context, n->identity.name, &n->identity.options, ATT_F32, &n->model));
    CHECK(n->context, att_weights_create(att_model_graph(n->model), "cpu", &n->weights));
    CHECK(n->context, att_model_load(n->model, file, n->weights));
    CHECK(n->context,
          att_measure_create(att_model_graph(n->model),
                             "entropy,distance,jacobian,nsi,sai,tns,tns_blocks,stiff_surface", "*", &n->measure));
    att_tensors_close(&file);
}

static void network_destroy(network *n)
{
    att_measure_destroy(&n->measure);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static void evaluate(const network *n, const char *images, const char *map)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.class_map = map;
    att_dataset *dataset;
    CHECK(n->context, att_dataset_open(n->context, images, &options, &dataset));
    att_transform_options transform = att_evaluate_transform(&n->identity.preprocess);
    att_evaluate_options evaluate = att_evaluate_options_defaults();
    evaluate.measure = n->measure;
    att_evaluation found;
    CHECK(n->context, att_evaluate(n->model, n->weights, dataset, &transform, &evaluate, &found));
    assert_int_equal(found.count, PHOTOGRAPHS);
    att_dataset_close(&dataset);
}

TEST(attention_and_steps_are_as_pytorchs)
{
    char path[SHARED_PATH], images[SHARED_PATH], map[SHARED_PATH];
    if (!shared_path(SHARED_DEIT, path) || !shared_path(SHARED_PHOTOGRAPHS, images) ||
        !shared_path(SHARED_SYNSETS, map))
        skip();
    if (is_sanitized()) {
        print_message(
            "skipped: 200 photographs take too long under sanitizers; the tests of measure/ run the same "
            "instruments on small maps\n");
        skip();
    }
    static line lines[STATISTICS * LAYERS + 1];
    assert_int_equal(read_lines(lines, STATISTICS * LAYERS + 1), STATISTICS * LAYERS);
    network n = {0};
    assert_int_equal(att_context_create(NULL, &n.context), ATT_OK);
    network_create(&n, path);
    evaluate(&n, images, map);
    errors worst = {0};
    for (int i = 0; i < STATISTICS * LAYERS; i++)
        compare(n.measure, &lines[i], &worst);
    print_message("entropy within %.2g, distances and norms within %.2g, deviations within %.2g\n", worst.entropy,
                  worst.others, worst.deviation);
    compare_steps(n.measure);
    network_destroy(&n);
    att_context_destroy(&n.context);
}
