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
    ATT_EVENT_EPOCH,     /* after an epoch and its evaluation */
    ATT_EVENT_RUN_END,   /* normal end, stop or failure */
    ATT_EVENT_WARNING    /* something was wrong and the run goes on */
} att_event_kind;

/* One named value: `text` where it is not NULL, else `number`. */
typedef struct att_field {
    const char *name; /* "train_loss", "eval_top1", "lr" */
    double number;
    const char *text;
} att_field;

typedef struct att_event {
    att_event_kind kind;
    int64_t epoch, step; /* 0-based epoch; updates done so far */
    double seconds;      /* since the run began */
    const att_field *fields;
    int field_count;
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
