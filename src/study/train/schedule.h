/* train/schedule.h - learning rate schedules, computed as by timm; poly as by mmsegmentation. */
#ifndef ATT_TRAIN_SCHEDULE_H
#define ATT_TRAIN_SCHEDULE_H

#include <attscope/train.h>

/* Parameters of a schedule. Times are in epochs or in updates. */
typedef struct att_schedule_span {
    double lr, min_lr, decay_rate, poly_power;
    double warmup, total, decay;
    double milestones[ATT_MOST_MILESTONES];
    int milestone_count;
} att_schedule_span;

typedef struct att_schedule {
    const char *name, *summary;
    bool warms_up;
    /* The learning rate at time t of the training, t >= span->warmup. */
    double (*rate)(const att_schedule_span *span, double t);
} att_schedule;

/* Schedule `index`, in the order of help; NULL past the last. */
const att_schedule *att_schedule_at(int index);
/* name: of att_schedule_at(). */
const att_schedule *att_schedule_find(const char *name);

/* Whether the rate changes at every update, so that times are in updates. */
bool att_schedule_on_updates(const att_train_options *options);
/* The parameters of the training. lr: the rate at the end of the warm-up. */
att_schedule_span att_schedule_span_of(const att_schedule *schedule, const att_train_options *options, double lr,
                                       int64_t updates_per_epoch);

/* Learning rate of the next update after `update` finished ones, in epoch `epoch`. lr: the rate at the end of the
 * warm-up. */
double att_schedule_lr(const att_schedule *schedule, const att_train_options *options, double lr,
                       int64_t updates_per_epoch, int epoch, int64_t update);

#endif
