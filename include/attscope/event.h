/* attscope/event.h - the events that training and measuring send to a program's sinks, for logs and displays. */
#ifndef ATTSCOPE_EVENT_H
#define ATTSCOPE_EVENT_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_event_kind {
    ATT_EVENT_RUN_BEGIN, /* the run's settings, as text fields */
    ATT_EVENT_STEP,      /* after every log_interval-th update */
    ATT_EVENT_MEASURE,   /* figures of instruments, in `measurements` */
    ATT_EVENT_EPOCH,   /* after an epoch and its evaluation; with att_train_options.eval_every after so many updates */
    ATT_EVENT_RUN_END, /* the run ended: finished, stopped or failed */
    ATT_EVENT_WARNING, /* a problem that does not end the run */
    ATT_EVENT_ALERT    /* figures of instruments show trouble (att_train_options.alert) */
} att_event_kind;

/* One named value: `text` if it is not NULL, else `number`. */
typedef struct att_event_field {
    const char *name; /* "train_loss", "eval_top1", "lr" */
    double number;
    const char *text;
} att_event_field;

/* One figure of an instrument (attscope/measure.h): mean and standard deviation over samples. The deviation divides by
 * n - 1 and is NaN for a single sample. */
typedef struct att_measurement {
    const char *instrument, *node, *statistic, *unit; /* "entropy", "blocks.3.attn", "mean", "nats" */
    int head;                                         /* -1: all heads together, or something without heads */
    double mean, deviation;
    int64_t count;         /* number of samples, with those that are undefined */
    const double *samples; /* values of the first sample_count samples; NULL: none were kept */
    int sample_count;
    /* Samples without a finite value (NSI with |x_t| = 0). Mean and deviation are over the others; the mean is NaN if
     * there are none, and for a loss that is not finite. */
    int64_t undefined;
    bool excluded;  /* another instrument ignores this figure; att_instrument_info.excluded says why */
    double bound;   /* the largest possible mean; 0: not known */
    double uniform; /* the mean under uniform attention; 0: not known */
} att_measurement;

typedef struct att_event {
    att_event_kind kind;
    int64_t epoch, step; /* 0-based epoch; number of updates done */
    double seconds;      /* since the beginning of the run */
    const att_event_field *fields;
    int field_count;
    const att_measurement *measurements; /* only for ATT_EVENT_MEASURE, whose `fields` apply to all its measurements */
    int measurement_count;
} att_event;

/* A receiver of events. emit() must not keep pointers into the event; if it fails, the run ends with its status. close
 * may be NULL. */
typedef struct att_sink {
    att_status (*emit)(void *user, const att_event *event);
    void (*close)(void *user);
    void *user;
} att_sink;

#ifdef __cplusplus
}
#endif
#endif
