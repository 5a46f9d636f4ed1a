#include "study/train/schedule.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static double cosine_rate(const att_schedule_span *span, double t)
{
    if (t >= span->total)
        return span->min_lr;
    return span->min_lr + 0.5 * (span->lr - span->min_lr) * (1 + cos(pi * t / span->total));
}

static double poly_rate(const att_schedule_span *span, double t)
{
    if (t >= span->total)
        return span->min_lr;
    const double left = 1 - (t - span->warmup) / (span->total - span->warmup);
    return span->min_lr + (span->lr - span->min_lr) * pow(left, span->poly_power);
}

static double step_rate(const att_schedule_span *span, double t)
{
    return span->lr * pow(span->decay_rate, floor(t / span->decay));
}

static double multistep_rate(const att_schedule_span *span, double t)
{
    int passed = 0;
    while (passed < span->milestone_count && span->milestones[passed] <= t + 1)
        passed++;
    return span->lr * pow(span->decay_rate, passed);
}

static double constant_rate(const att_schedule_span *span, double t)
{
    (void)t;
    return span->lr;
}

static const att_schedule schedules[] = {
    {"cosine", "half a cosine from --lr down to --min-lr over all epochs, after a linear warm-up", true, cosine_rate},
    {"poly",
     "from --lr after a linear warm-up to --min-lr by the remaining share of the time to the power --poly-power", true,
     poly_rate},
    {"step", "multiplied by --decay-rate every --decay-epochs epochs, after a linear warm-up", true, step_rate},
    {"multistep", "multiplied by --decay-rate at each of --decay-milestones, after a linear warm-up", true,
     multistep_rate},
    {"constant", "--lr, after a linear warm-up", true, constant_rate},
    {"none", "--lr from the first update on", false, constant_rate},
};
enum { SCHEDULE_COUNT = sizeof schedules / sizeof *schedules };

const att_schedule *att_schedule_at(int index)
{
    return index >= 0 && index < SCHEDULE_COUNT ? &schedules[index] : NULL;
}

const att_schedule *att_schedule_find(const char *name)
{
    int i = 0;
    while (strcmp(schedules[i].name, name) != 0)
        i++;
    return &schedules[i];
}

bool att_schedule_on_updates(const att_train_options *options)
{
    return options->sched_on_updates || options->updates > 0 || options->warmup_updates > 0;
}

att_schedule_span att_schedule_span_of(const att_schedule *schedule, const att_train_options *options, double lr,
                                       int64_t updates_per_epoch)
{
    const double unit = att_schedule_on_updates(options) ? (double)updates_per_epoch : 1;
    const double warmup = options->warmup_updates > 0 ? options->warmup_updates : options->warmup_epochs * unit;
    att_schedule_span span = {.lr = lr,
                              .min_lr = options->min_lr,
                              .decay_rate = options->decay_rate,
                              .poly_power = options->poly_power,
                              .warmup = schedule->warms_up ? warmup : 0,
                              .total = options->updates > 0 ? options->updates : options->epochs * unit,
                              .decay = options->decay_epochs * unit,
                              .milestone_count = options->decay_milestone_count};
    for (int i = 0; i < span.milestone_count; i++)
        span.milestones[i] = options->decay_milestones[i] * unit;
    return span;
}

double att_schedule_lr(const att_schedule *schedule, const att_train_options *options, double lr,
                       int64_t updates_per_epoch, int epoch, int64_t update)
{
    const att_schedule_span span = att_schedule_span_of(schedule, options, lr, updates_per_epoch);
    const double t = att_schedule_on_updates(options) ? (double)update : (double)epoch;
    if (t < span.warmup)
        return options->warmup_lr + t * ((lr - options->warmup_lr) / span.warmup);
    return schedule->rate(&span, t);
}
