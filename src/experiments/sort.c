/* The sorting task: digits in random order in, the same digits in ascending order out. */
#include <stdlib.h>

#include "experiments/list.h"

enum { DIGITS = 8, CLASSES = 10, TRAINING = 1000, EVALUATION = 200 };

static int compare_digits(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static att_status make_set(const att_experiment_job *job, const char *set, int count, att_samples *samples)
{
    size_t bytes = DIGITS * sizeof(int32_t);
    ATT_TRY(att_samples_create(job->arena, count, DIGITS, bytes, bytes, false, samples));
    for (int i = 0; i < count; i++) {
        att_random random = att_experiment_random(job, set, i);
        int32_t *digits = (int32_t *)samples->x + i * DIGITS, *sorted = (int32_t *)samples->target + i * DIGITS;
        for (int n = 0; n < DIGITS; n++)
            sorted[n] = digits[n] = (int32_t)att_random_below(&random, CLASSES);
        qsort(sorted, DIGITS, sizeof *sorted, compare_digits);
    }
    return ATT_OK;
}

static att_status make(const att_experiment_job *job, att_san_spec *spec, att_samples *training,
                       att_samples *evaluation)
{
    (void)spec;
    ATT_TRY(make_set(job, "training", TRAINING, training));
    return make_set(job, "evaluation", EVALUATION, evaluation);
}

const att_experiment att_experiment_sort = {
    .info = {.name = "sort",
             .summary = "sorts 8 digits",
             .reading =
                 "Samples are 8 digits of 10, drawn independently; the class of token n is the n-th digit of the "
                 "sorted sequence. 1,000 samples for training, 200 for evaluation. The learning rate is 1e-4: at "
                 "the public code's 1e-5 its 2,210 updates are too few (docs/experiments.md).",
             .depth = 6,
             .heads = 2,
             .width = 48,
             .optimizer = "adam",
             .lr = 1e-4,
             .batch_size = 30,
             .epochs = 65,
             .paths = true,
             .published_whole = 0.98,
             .published_baseline = 0.1},
    .spec = {.tokens = DIGITS, .outputs = CLASSES, .vocabulary = CLASSES, .positions = true},
    .make = make,
};
