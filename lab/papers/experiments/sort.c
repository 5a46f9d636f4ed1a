/* The sorting task: digits in random order in, the same digits in ascending order out. */
#include <stdlib.h>

#include "lab/papers/experiments/list.h"

enum { DIGITS = 8, CLASSES = 10 };

static int compare_digits(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static void draw(att_random *random, void *x, void *target)
{
    int32_t *digits = x, *sorted = target;
    for (int n = 0; n < DIGITS; n++)
        sorted[n] = digits[n] = (int32_t)att_random_below(random, CLASSES);
    qsort(sorted, DIGITS, sizeof *sorted, compare_digits);
}

static const att_experiment_quirk quirks[] = {
    ATT_QUIRK_UNSHUFFLED, {"padding", "does not train the embedding of digit 0, the padding of text"}, {NULL, NULL}};

const att_experiment att_experiment_sort = {
    .info = {.name = "sort",
             .summary = "sorts 8 digits",
             .reading =
                 "Samples are 8 digits of 10, drawn independently; the class of token n is the n-th digit of the "
                 "sorted sequence. 1,000 samples for training, 200 for evaluation. The default learning rate is "
                 "1e-4: at the public code's 1e-5, the default 2,210 updates are too few (docs/experiments.md).",
             .depth = 6,
             .heads = 2,
             .width = 48,
             .optimizer = "adam",
             .lr = 1e-4,
             .batch_size = 30,
             .epochs = 65,
             .paths = true,
             .quirks = quirks,
             .published_whole = 0.98,
             .published_baseline = 0.1},
    .spec = {.tokens = DIGITS, .outputs = CLASSES, .vocabulary = CLASSES, .positions = true},
    .training = 1000,
    .evaluation = 200,
    .x_bytes = DIGITS * sizeof(int32_t),
    .target_bytes = DIGITS * sizeof(int32_t),
    .draw = draw,
};
