/* train/alerts.h - rules that recognise a training run in trouble by the figures of its instruments. */
#ifndef ATT_TRAIN_ALERTS_H
#define ATT_TRAIN_ALERTS_H

#include <attscope/event.h>

#include "base/core/export.h"
#include "base/core/text.h"

/* The thresholds; attscope/train.h says what they mean. */
#define ATT_ALERT_ENTROPY 0.1
#define ATT_ALERT_RESIDUAL 0.02
#define ATT_ALERT_SPIKE 4.0
#define ATT_ALERT_STIFF_M1 1.0
#define ATT_ALERT_STIFF_M2 1.0
#define ATT_ALERT_HEAD 0.01
/* Earlier measurements whose median a spike exceeds, and the fewest that have one. */
enum { ATT_ALERT_HISTORY = 8, ATT_ALERT_LEAST_HISTORY = 3 };

typedef struct att_alert {
    const char *rule; /* "entropy collapse", "rank collapse", "stiffness spike", "dead head" */
    const char *node;
    int head; /* -1: all */
    double value, threshold;
    char found[256];    /* what was found: "mean entropy 0.12 of at most 5.28 nats (2.3 %; alert below 10 %)" */
    const char *advice; /* what to try */
} att_alert;

typedef struct att_alerts att_alerts;
att_status att_alerts_create(att_context *context, att_alerts **alerts);
/* NULL is allowed. */
void att_alerts_destroy(att_alerts **alerts);
/* Applies the rules to the figures of one measurement. Calls raise() for each rule and place that has begun to hold
 * since the measurement before; a rule that still holds is not raised again. Figures that are not finite are ignored.
 * Errors: ERR_MEMORY, those of raise(). */
att_status att_alerts_check(att_alerts *alerts, const att_measurement *figures, int count,
                            att_status (*raise)(void *user, const att_alert *alert), void *user);
/* Appends what holds as text, one line for each rule and place: "dead head<TAB>0<TAB>blocks.0.attn". Nothing if no rule
 * holds. */
void att_alerts_write(const att_alerts *alerts, att_text *text);
/* Reads such text into new alerts, so that what holds is not raised again. *valid: whether the text is valid. Errors:
 * ERR_MEMORY. */
att_status att_alerts_read(att_alerts *alerts, const char *text, bool *valid);
/* The rules with their thresholds, one line each; NULL past the last. */
const char *att_alerts_rule(int index);
/* The instruments that the rules read, as a list for att_measure_create(). */
ATT_FOR_LAB const char *att_alerts_instruments(void);

#endif
