#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "engine/patterns/list.h"
#include "lab/bench/bench.h"
#include "lab/bench/clock.h"

enum { SMALL = 64, LARGE = 4 }; /* batches of images of 32 and of 224 pixels */

/* Bottlenecks and basic blocks, with the attention modules whose gates depend on the branch in different ways. */
static const att_bench_pattern_case cases[] = {
    {"resnet29", "", SMALL},     {"resnet29", "se", SMALL}, {"resnet29", "step", SMALL}, {"resnet20", "se", SMALL},
    {"resnet20", "step", SMALL}, {"resnet50", "", LARGE},   {"resnet50", "se", LARGE},   {"resnet50", "srm", LARGE},
    {"resnet50", "step", LARGE}, {"resnet18", "se", LARGE}, {"resnet18", "step", LARGE},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

int att_bench_pattern_case_count(void)
{
    return CASE_COUNT;
}

att_bench_pattern_case att_bench_pattern_case_at(int index)
{
    return index >= 0 && index < CASE_COUNT ? cases[index] : (att_bench_pattern_case){"", "", 0};
}

#define PATTERN_NAME(name) #name,
static const char NONE[] = "none", *const patterns[] = {NONE, ATT_PATTERN_LIST(PATTERN_NAME)};
#undef PATTERN_NAME

/* More turns follow until a turn has taken this long on average over the repeats: short steps need more of them. */
static const double TURN_SECONDS = 0.5;

/* With one thread on "cpu", processor time, which other programs hardly change; otherwise elapsed time. */
static att_status time_batch(att_bench *b, double *seconds)
{
    clock_t begin = clock();
    ATT_TRY(att_bench_time(b, b->options.batch_size, seconds));
    if (att_context_threads(b->context) == 1 && strcmp(b->options.backend, "cpu") == 0)
        *seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    return ATT_OK;
}

static att_status take_turns(att_bench *with, att_bench *without, att_bench_pattern_row *row)
{
    const att_bench_options *o = &with->options;
    double *ratios = without->network_seconds, spent = 0;
    int turn = -o->warmup;
    while (turn < o->repeats || (turn < ATT_BENCH_REPEATS && spent < o->repeats * TURN_SECONDS)) {
        double seconds, longer;
        ATT_TRY(time_batch(with, &seconds));
        ATT_TRY(time_batch(without, &longer));
        if (turn++ < 0)
            continue;
        with->network_seconds[turn - 1] = seconds;
        ratios[turn - 1] = longer / seconds;
        spent += seconds + longer;
    }
    row->turns = turn;
    row->seconds = att_median(with->network_seconds, turn);
    row->gain = att_median(ratios, turn) - 1; /* which sorts */
    row->least = ratios[0] - 1;
    row->most = ratios[turn - 1] - 1;
    return ATT_OK;
}

/* Writes row->pattern only if the rewriting changes the plan, and for NONE. */
static att_status measure(att_bench *with, const char *pattern, att_bench_pattern_row *row)
{
    att_bench *without;
    ATT_TRY(att_bench_create_without(with->context, &with->options, pattern, &without));
    att_status status = ATT_OK;
    if (pattern == NONE || strcmp(att_plan_fingerprint(with->timed.plan), att_plan_fingerprint(without->timed.plan))) {
        double kept = (double)att_plan_describe(with->timed.plan).kept_bytes;
        double more = (double)att_plan_describe(without->timed.plan).kept_bytes;
        *row = (att_bench_pattern_row){.pattern = pattern, .kept_gain = kept > 0 ? more / kept - 1 : 0};
        status = take_turns(with, without, row);
    }
    att_bench_destroy(&without);
    return status;
}

att_status att_bench_patterns(att_context *context, const att_bench_options *options,
                              bool (*wants)(void *user, const char *pattern),
                              void (*row)(void *user, const att_bench_pattern_row *row), void *user)
{
    ATT_TRY(att_bench_check_repeats(context, options->repeats, options->warmup));
    att_bench_options training = *options;
    training.training = true;
    att_bench *with = NULL;
    att_status status = ATT_OK;
    for (int i = 0; status == ATT_OK && i <= ATT_PATTERN_COUNT; i++) {
        att_bench_pattern_row measured = {.pattern = NULL};
        if (wants && !wants(user, patterns[i]))
            continue;
        if (!with)
            status = att_bench_create(context, &training, &with);
        if (status == ATT_OK)
            status = measure(with, patterns[i], &measured);
        if (status == ATT_OK && measured.pattern)
            row(user, &measured);
    }
    att_bench_destroy(&with);
    return status;
}
