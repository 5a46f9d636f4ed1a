/* train/schedule.h - learning rates over time, as timm's schedulers compute them. */
#ifndef ATT_TRAIN_SCHEDULE_H
#define ATT_TRAIN_SCHEDULE_H

#include <attscope/train.h>

/* A schedule's numbers in its own unit of time, which is epochs or updates. */
typedef struct att_schedule_span {
    double lr, min_lr, decay_rate;
    double total, decay;
    double milestones[ATT_MOST_MILESTONES];
    int milestone_count;
} att_schedule_span;

typedef struct att_schedule {
    const char *name, *summary;
    bool warms_up;
    /* The rate at time t, the warm-up being over. */
    double (*rate)(const att_schedule_span *span, double t);
} att_schedule;

/* ERR_NOT_FOUND with the nearest name. */
att_status att_schedule_find(att_context *context, const char *name, const att_schedule **schedule);

/* The rate for the update that follows `update` finished ones, in epoch `epoch`; lr is the rate to warm up to. */
double att_schedule_lr(const att_schedule *schedule, const att_train_options *options, double lr,
                       int64_t updates_per_epoch, int epoch, int64_t update);

#endif
