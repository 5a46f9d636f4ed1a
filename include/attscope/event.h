/* attscope/event.h - one stream of records from training and measuring to whoever stores or shows them. */
#ifndef ATTSCOPE_EVENT_H
#define ATTSCOPE_EVENT_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_event_kind {
    ATT_EVENT_RUN_BEGIN, /* names and settings known: fields hold them as text */
    ATT_EVENT_STEP,      /* after an update that is due for logging */
    ATT_EVENT_MEASURE,   /* instruments' figures: see measurements */
    ATT_EVENT_EPOCH,     /* after an epoch and its evaluation */
    ATT_EVENT_RUN_END,   /* normal end, stop or failure */
    ATT_EVENT_WARNING    /* something was wrong and the run goes on */
} att_event_kind;

/* One named value: `text` where it is not NULL, else `number`. */
typedef struct att_event_field {
    const char *name; /* "train_loss", "eval_top1", "lr" */
    double number;
    const char *text;
} att_event_field;

/* One figure of an instrument (attscope/measure.h): mean and standard deviation (n - 1; NaN for one sample) over
 * samples. */
typedef struct att_measurement {
    const char *instrument, *node, *statistic, *unit; /* "entropy", "blocks.3.attn", "mean", "nats" */
    int head;                                         /* -1: of all heads together, or of something without heads */
    double mean, deviation;
    int64_t count;         /* samples */
    const double *samples; /* those of the first sample_count of them; NULL where none were kept */
    int sample_count;
    int64_t undefined; /* samples without a finite number, as NSI's where |x_t| = 0: the mean has none then */
    bool excluded;     /* another instrument leaves it out: what att_instrument_info.excluded says */
} att_measurement;

typedef struct att_event {
    att_event_kind kind;
    int64_t epoch, step; /* 0-based epoch; updates done so far */
    double seconds;      /* since the run began */
    const att_event_field *fields;
    int field_count;
    const att_measurement *measurements; /* of ATT_EVENT_MEASURE, which has fields only for what concerns them all */
    int measurement_count;
} att_event;

/* A receiver. emit must not keep pointers into the event. An error stops the run. close may be NULL. */
typedef struct att_sink {
    att_status (*emit)(void *user, const att_event *event);
    void (*close)(void *user);
    void *user;
} att_sink;

#ifdef __cplusplus
}
#endif
#endif
