/* Linear classifiers on features (attscope/probe.h) beside scikit-learn (tools/goldens/probe.py). */
#include <math.h>

#include <attscope/probe.h>

#include "context.h"
#include "formula.h"
#include "golden_path.h"

enum { TRAIN = 240, TESTED = 600, CHANNELS = 19 };

SHARED_CONTEXT(threads, 3)

static float train_values[TRAIN * CHANNELS], tested_values[TESTED * CHANNELS];
static int32_t train_labels[TRAIN], tested_labels[TESTED];

static att_embedding draw(const char *key, int classes, float *values, int32_t *labels, int count)
{
    for (int i = 0; i < count; i++) {
        labels[i] = i % classes;
        for (int c = 0; c < CHANNELS; c++)
            values[i * CHANNELS + c] = (float)(0.4 * formula("centre", (uint32_t)(labels[i] * CHANNELS + c)) +
                                               formula(key, (uint32_t)(i * CHANNELS + c)));
    }
    return (att_embedding){
        .count = count, .shape = {.rank = 1, .dims = {CHANNELS}}, .values = values, .labels = labels};
}

static att_embedding draw_train(int classes)
{
    return draw("train", classes, train_values, train_labels, TRAIN);
}

static att_embedding draw_tested(int classes)
{
    return draw("tested", classes, tested_values, tested_labels, TESTED);
}

TEST(objective_and_answers_are_those_of_scikit_learn)
{
    char path[4096];
    int classes, first, five, cases = 0;
    double c, objective;
    golden_path("probe.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fscanf(file, "%d %lf %lf %d %d", &classes, &c, &objective, &first, &five) == 5) {
        const att_embedding train = draw_train(classes), tested = draw_tested(classes);
        att_probe_options options = att_probe_options_defaults();
        att_probe probe;
        att_embedding_result result;
        options.c = c;
        must(att_embedding_probe(context, &train, &options, &probe));
        must(att_probe_classify(context, &probe, &tested, &result));
        assert_int_equal(probe.classes, classes);
        assert_true(probe.converged && probe.c == c && probe.fit_count == 0 && probe.held_out_count == 0);
        if (!(fabs(probe.objective - objective) <= 1e-7 * objective)) /* measured: 1.5e-8 */
            fail_msg("%d classes, C = %g: J = %.12g, scikit-learn's %.12g", classes, c, probe.objective, objective);
        assert_int_equal(result.count, TESTED);
        assert_true(result.top1 == 100.0 * first / TESTED && result.top5 == 100.0 * five / TESTED);
        att_probe_free(context, &probe);
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 5);
}

/* Results do not depend on the number of threads, bit by bit. */
TEST(c_is_chosen_by_images_that_are_held_out)
{
    const att_embedding train = draw_train(8);
    att_probe chosen, again, given;
    must(att_embedding_probe(context, &train, NULL, &chosen));
    assert_int_equal(chosen.held_out_count, 8 * 6); /* 20 % of 30 images of each class */
    /* Seven, then both neighbours four times, unless the best C is the smallest or the largest. */
    assert_in_range(chosen.fit_count, 7 + 4, ATT_PROBE_MOST_FITS);
    double best = -1, c = 0;
    for (int i = 0; i < chosen.fit_count; i++) {
        assert_true(chosen.fits[i].top1 >= 0 && chosen.fits[i].top1 <= 100);
        for (int j = 0; j < i; j++)
            assert_true(chosen.fits[i].c != chosen.fits[j].c);
        if (chosen.fits[i].top1 > best || (chosen.fits[i].top1 == best && chosen.fits[i].c < c)) {
            best = chosen.fits[i].top1;
            c = chosen.fits[i].c;
        }
    }
    assert_true(chosen.c == c && best > 100.0 / 8);
    att_settings settings = att_settings_defaults();
    att_context *alone;
    settings.threads = 1;
    assert_int_equal(att_context_create(&settings, &alone), ATT_OK);
    CHECK(alone, att_embedding_probe(alone, &train, NULL, &again));
    assert_true(again.c == c && again.objective == chosen.objective);
    assert_memory_equal(again.weights, chosen.weights, sizeof(double) * 8 * CHANNELS);
    att_probe_options options = att_probe_options_defaults();
    options.c = c;
    must(att_embedding_probe(context, &train, &options, &given)); /* from zeros, not from the solution of another C */
    assert_true(fabs(given.objective - chosen.objective) <= 1e-9 * given.objective); /* measured: 1.5e-13 */
    att_probe_free(context, &given);
    att_probe_free(context, &chosen);
    att_probe_free(alone, &again);
    att_context_destroy(&alone);
}

/* Numbers of classes may have gaps; a class that was not trained is always wrong. */
TEST(classes_keep_their_numbers)
{
    att_embedding train = draw_train(4), tested = draw_tested(4);
    att_probe_options options = att_probe_options_defaults();
    att_probe plain, gaps;
    att_embedding_result result, other;
    options.c = 1;
    must(att_embedding_probe(context, &train, &options, &plain));
    must(att_probe_classify(context, &plain, &tested, &result));
    for (int i = 0; i < TRAIN; i++)
        train_labels[i] = 10 + 3 * train_labels[i];
    for (int i = 0; i < TESTED; i++)
        tested_labels[i] = tested_labels[i] == 0 ? 11 : 10 + 3 * tested_labels[i];
    must(att_embedding_probe(context, &train, &options, &gaps));
    must(att_probe_classify(context, &gaps, &tested, &other));
    assert_int_equal(gaps.classes, 4);
    assert_int_equal(gaps.numbers[3], 19);
    assert_memory_equal(gaps.weights, plain.weights, sizeof(double) * 4 * CHANNELS);
    assert_true(result.top5 == 100 && other.top5 == 75);
    assert_true(other.top1 < result.top1);
    att_probe_free(context, &plain);
    att_probe_free(context, &gaps);
}

/* Of equal scores the lower class comes first. */
TEST(equal_scores_have_an_order)
{
    static double weights[2 * CHANNELS], biases[2];
    static int32_t numbers[] = {3, 5}, asked[] = {3, 3, 5};
    static float values[3 * CHANNELS];
    const att_probe probe = {
        .classes = 2, .channels = CHANNELS, .numbers = numbers, .weights = weights, .biases = biases};
    const att_embedding tested = {
        .count = 3, .shape = {.rank = 1, .dims = {CHANNELS}}, .values = values, .labels = asked};
    att_embedding_result result;
    must(att_probe_classify(context, &probe, &tested, &result));
    assert_true(fabs(result.top1 - 200.0 / 3) < 1e-9 && result.top5 == 100);
}

/* A class keeps at least one image to fit: of 5, 5 and 1 images, 60 % are 3, 3 and none. */
TEST(no_class_is_held_out_whole)
{
    att_embedding train = draw_train(2);
    att_probe_options options = att_probe_options_defaults();
    att_probe probe;
    train.count = 11;
    train_labels[10] = 2;
    options.held_out = 0.6;
    must(att_embedding_probe(context, &train, &options, &probe));
    assert_int_equal(probe.held_out_count, 6);
    assert_int_equal(probe.classes, 3);
    att_probe_free(context, &probe);
}

/* The largest absolute derivative of J by W and b, in f64. */
static double steepest(const att_probe *p, const att_embedding *train)
{
    enum { MOST = 8 };
    static double sums[MOST][CHANNELS + 1];
    double largest = 0;
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < train->count; i++) {
        const float *x = train->values + (ptrdiff_t)i * CHANNELS;
        double scores[MOST], sum = 0;
        for (int k = 0; k < p->classes; k++) {
            scores[k] = p->biases[k];
            for (int c = 0; c < CHANNELS; c++)
                scores[k] += p->weights[k * CHANNELS + c] * (double)x[c];
            scores[k] = exp(scores[k]);
            sum += scores[k];
        }
        for (int k = 0; k < p->classes; k++)
            for (int c = 0; c <= CHANNELS; c++)
                sums[k][c] += (scores[k] / sum - (train->labels[i] == k)) * (c < CHANNELS ? (double)x[c] : 1);
    }
    for (int k = 0; k < p->classes; k++)
        for (int c = 0; c <= CHANNELS; c++) {
            const double penalty = c < CHANNELS ? p->weights[k * CHANNELS + c] / p->c : 0;
            largest = fmax(largest, fabs(sums[k][c] + penalty) / (double)train->count);
        }
    return largest;
}

TEST(convergence_is_told_by_the_derivatives)
{
    const att_embedding train = draw_train(8);
    att_probe_options options = att_probe_options_defaults();
    int before = 0, after = 0;
    options.c = 1;
    for (options.iterations = 1; options.iterations < 40; options.iterations++) {
        att_probe probe;
        must(att_embedding_probe(context, &train, &options, &probe));
        const double largest = steepest(&probe, &train);
        assert_int_equal(probe.converged, largest <= 1e-4);
        before += largest > 1e-4 && largest < 3e-4;
        after += largest <= 1e-4 && largest > 3e-5;
        att_probe_free(context, &probe);
    }
    assert_true(before > 0 && after > 0); /* fits near the bound, on both sides */
}

static bool stop(void *user, const att_progress *progress)
{
    assert_string_equal(progress->stage, "probe");
    assert_string_equal(progress->unit, "fits");
    return ++*(int *)user < 5;
}

TEST(what_cannot_be_fitted_is_refused)
{
    att_embedding train = draw_train(8);
    att_probe_options options = att_probe_options_defaults();
    att_probe probe;
    int calls = 0;
    options.progress = stop;
    options.progress_user = &calls;
    assert_int_equal(att_embedding_probe(context, &train, &options, &probe), ATT_ERR_STOPPED);
    assert_int_equal(calls, 5);
    options = att_probe_options_defaults();
    options.held_out = 1;
    assert_int_equal(att_embedding_probe(context, &train, &options, &probe), ATT_ERR_ARGUMENT);
    options.held_out = 0.01; /* less than half an image of each class */
    assert_int_equal(att_embedding_probe(context, &train, &options, &probe), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_context_message(context), "too few training images"));
    train.count = 1;
    assert_int_equal(att_embedding_probe(context, &train, NULL, &probe), ATT_ERR_ARGUMENT);
    assert_non_null(strstr(att_context_message(context), "one class"));
    train.count = TRAIN;
    train_labels[7] = -1;
    assert_int_equal(att_embedding_probe(context, &train, NULL, &probe), ATT_ERR_ARGUMENT);
    train_labels[7] = 7;
    train_values[5 * CHANNELS] = NAN;
    assert_int_equal(att_embedding_probe(context, &train, NULL, &probe), ATT_ERR_NONFINITE);
}
