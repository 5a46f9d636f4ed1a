#include "study/train/alerts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/quantile.h"

typedef enum rule { ENTROPY, RANK, SPIKE, HEAD, RULES } rule;
static const struct {
    const char *name, *text, *advice;
} rules[RULES] = {
    [ENTROPY] = {"entropy collapse",
                 "entropy collapse (Zhai et al., ICML 2023; threshold ours): a layer's mean attention entropy is below "
                 "10 % of its bound, for layers with at least 4 keys",
                 "a smaller --lr, more --warmup-epochs, --clip-grad 1, or a network that normalises queries and keys"},
    [RANK] =
        {"rank collapse",
         "rank collapse (Dong et al., ICML 2021; threshold ours): |res(X)|_F / |X|_F of the tokens after a residual "
         "addition is below 0.02",
         "a smaller --lr or --weight-decay, less --drop-path, or LayerScale; measure --with collapse shows which "
         "part keeps tokens apart"},
    [SPIKE] =
        {"stiffness spike",
         "stiffness spike (zeta >= max(mu (1 + M1), M2), as Huang et al., ICCV 2023, call a block stiff; we chose "
         "M1 = M2 = 1 and the factor 4): and zeta is at least 4 times the median of this addition's last 8 "
         "measurements",
         "a smaller --lr, more --warmup-epochs or --clip-grad 1; compare the loss near this update"},
    [HEAD] =
        {"dead head",
         "dead head (nuclear norm of the softmax Jacobian, 1 - sum a^2; Hyeon-Woo et al., ICCV 2023; threshold "
         "ours): it is below 0.01, so that nearly no gradient reaches the head's scores, for layers with at least 4 "
         "keys",
         "a smaller --lr, more --warmup-epochs or --clip-grad 1; a head that stays dead can be left out"},
};

/* What is known of a rule and a place. */
typedef struct place {
    rule rule;
    char *node;
    int head;
    bool holds;
    double history[ATT_ALERT_HISTORY]; /* the last values of SPIKE, as a ring */
    int64_t measured;
} place;

struct att_alerts {
    att_context *context;
    place *places;
    int count, capacity;
};

const char *att_alerts_rule(int index)
{
    return index >= 0 && index < RULES ? rules[index].text : NULL;
}

const char *att_alerts_instruments(void)
{
    return "entropy?,jacobian?,nsi?,residual?";
}

att_status att_alerts_create(att_context *context, att_alerts **alerts)
{
    ATT_TRY(att_new(context, alerts, 1, "alerts"));
    (*alerts)->context = context;
    return ATT_OK;
}

void att_alerts_destroy(att_alerts **alerts)
{
    if (!alerts || !*alerts)
        return;
    for (int i = 0; i < (*alerts)->count; i++)
        att_free((*alerts)->context, (*alerts)->places[i].node);
    att_free((*alerts)->context, (*alerts)->places);
    att_free((*alerts)->context, *alerts);
    *alerts = NULL;
}

/* Returns NULL if out of memory. The pointer is valid until the next call. */
static place *find_place(att_alerts *alerts, rule of, const char *node, int head)
{
    for (int i = 0; i < alerts->count; i++) {
        place *p = &alerts->places[i];
        if (p->rule == of && p->head == head && strcmp(p->node, node) == 0)
            return p;
    }
    if (!att_list_grow(alerts->context, &alerts->places, alerts->count, &alerts->capacity, sizeof *alerts->places))
        return NULL;
    place *added = &alerts->places[alerts->count];
    *added = (place){.rule = of, .node = att_copy_string(alerts->context, node), .head = head};
    alerts->count += added->node != NULL;
    return added->node ? added : NULL;
}

/* --- in checkpoints ----------------------------------------------------------------------------------------------- */

void att_alerts_write(const att_alerts *alerts, att_text *text)
{
    for (int i = 0; i < alerts->count; i++) {
        const place *p = &alerts->places[i];
        if (p->holds)
            att_text_append(text, "%s\t%d\t%s\n", rules[p->rule].name, p->head, p->node);
    }
}

static int rule_called(const char *name, size_t length)
{
    int of = 0;
    while (of < RULES && (strlen(rules[of].name) != length || memcmp(rules[of].name, name, length) != 0))
        of++;
    return of;
}

/* Reads a line of `length` bytes without its end. */
static att_status read_line(att_alerts *alerts, const char *line, size_t length, bool *valid)
{
    char text[512], *head, *node;
    int64_t number;
    *valid = length < sizeof text;
    snprintf(text, sizeof text, "%.*s", (int)(*valid ? length : 0), line);
    head = strchr(text, '\t');
    node = head ? strchr(head + 1, '\t') : NULL;
    if (node)
        *head++ = *node++ = '\0';
    *valid = node && *node && !strchr(node, '\t') && att_text_to_i64(head, &number) && number >= -1 &&
             number <= INT32_MAX && rule_called(text, strlen(text)) < RULES;
    if (!*valid)
        return ATT_OK;
    place *p = find_place(alerts, (rule)rule_called(text, strlen(text)), node, (int)number);
    if (!p)
        return att_fail_memory(alerts->context, sizeof *p, "alerts");
    p->holds = true;
    return ATT_OK;
}

att_status att_alerts_read(att_alerts *alerts, const char *text, bool *valid)
{
    *valid = true;
    while (*valid && *text) {
        const size_t length = strcspn(text, "\n");
        ATT_TRY(read_line(alerts, text, length, valid));
        text += length + (text[length] == '\n');
    }
    return ATT_OK;
}

/* NaN if there were too few measurements. */
static double median_before(const place *p)
{
    double sorted[ATT_ALERT_HISTORY];
    const int count = p->measured < ATT_ALERT_HISTORY ? (int)p->measured : ATT_ALERT_HISTORY;
    if (count < ATT_ALERT_LEAST_HISTORY)
        return NAN;
    memcpy(sorted, p->history, (size_t)count * sizeof *sorted);
    return att_median(sorted, count);
}

/* --- one measurement ---------------------------------------------------------------------------------------------- */

typedef struct measurement {
    att_alerts *alerts;
    const att_measurement *figures;
    int count;
    double stiff; /* max(mu (1 + M1), M2) */
    att_status (*raise)(void *user, const att_alert *alert);
    void *user;
} measurement;

static bool is_figure(const att_measurement *m, const char *instrument, const char *statistic)
{
    return isfinite(m->mean) && strcmp(m->instrument, instrument) == 0 && strcmp(m->statistic, statistic) == 0;
}

static bool is_stiffness(const att_measurement *m)
{
    return is_figure(m, "nsi", "unit") && !m->excluded;
}

/* Layers with fewer keys have little entropy in any case. */
static bool has_keys(const measurement *x, const char *node)
{
    for (int i = 0; i < x->count; i++)
        if (strcmp(x->figures[i].instrument, "entropy") == 0 && strcmp(x->figures[i].node, node) == 0)
            return x->figures[i].bound >= log(4) * (1 - 1e-9);
    return false;
}

/* Records whether the rule holds at this place, and raises it if it did not before. */
static att_status settle(const measurement *x, rule of, const att_measurement *m, bool holds, double threshold,
                         const char *found)
{
    place *p = find_place(x->alerts, of, m->node, m->head);
    if (!p)
        return att_fail_memory(x->alerts->context, sizeof *p, "alerts");
    const bool begins = holds && !p->holds;
    p->holds = holds;
    if (!begins)
        return ATT_OK;
    att_alert alert = {.rule = rules[of].name,
                       .node = m->node,
                       .head = m->head,
                       .value = m->mean,
                       .threshold = threshold,
                       .advice = rules[of].advice};
    snprintf(alert.found, sizeof alert.found, "%s", found);
    return x->raise(x->user, &alert);
}

static att_status check_entropy(const measurement *x, const att_measurement *m)
{
    char found[256];
    const double least = ATT_ALERT_ENTROPY * m->bound;
    if (!has_keys(x, m->node))
        return ATT_OK;
    snprintf(found, sizeof found, "mean entropy %.3g of at most %.3g nats, %.2g %% (alert below %.0f %%)", m->mean,
             m->bound, 100 * m->mean / m->bound, 100 * ATT_ALERT_ENTROPY);
    return settle(x, ENTROPY, m, m->mean < least, least, found);
}

static att_status check_rank(const measurement *x, const att_measurement *m)
{
    char found[256];
    snprintf(found, sizeof found, "|res(X)|_F / |X|_F is %.3g (alert below %.3g)", m->mean, ATT_ALERT_RESIDUAL);
    return settle(x, RANK, m, m->mean < ATT_ALERT_RESIDUAL, ATT_ALERT_RESIDUAL, found);
}

static att_status check_head(const measurement *x, const att_measurement *m)
{
    char found[256];
    if (!has_keys(x, m->node))
        return ATT_OK;
    snprintf(found, sizeof found, "1 - sum a^2 is %.3g (alert below %.3g)", m->mean, ATT_ALERT_HEAD);
    return settle(x, HEAD, m, m->mean < ATT_ALERT_HEAD, ATT_ALERT_HEAD, found);
}

static att_status check_spike(const measurement *x, const att_measurement *m)
{
    char found[256];
    place *p = find_place(x->alerts, SPIKE, m->node, m->head);
    if (!p)
        return att_fail_memory(x->alerts->context, sizeof *p, "alerts");
    const double usual = median_before(p), threshold = fmax(ATT_ALERT_SPIKE * usual, x->stiff);
    p->history[p->measured++ % ATT_ALERT_HISTORY] = m->mean;
    snprintf(found, sizeof found, "zeta is %.3g, after a median of %.3g (alert from %.3g)", m->mean, usual, threshold);
    return settle(x, SPIKE, m, isfinite(usual) && m->mean >= threshold, threshold, found);
}

static att_status check_figure(const measurement *x, const att_measurement *m)
{
    if (is_figure(m, "entropy", "mean") && m->head < 0)
        return check_entropy(x, m);
    if (is_figure(m, "residual", "frobenius") && strcmp(m->node, "input") != 0)
        return check_rank(x, m);
    if (is_figure(m, "jacobian", "nuclear") && m->head >= 0)
        return check_head(x, m);
    return is_stiffness(m) ? check_spike(x, m) : ATT_OK;
}

/* The threshold of a stiff addition. mu is taken of the means over the images. */
static double stiff_threshold(const att_measurement *figures, int count)
{
    double sum = 0;
    int additions = 0;
    for (int i = 0; i < count; i++)
        if (is_stiffness(&figures[i])) {
            sum += figures[i].mean;
            additions++;
        }
    return additions > 0 ? fmax(sum / additions * (1 + ATT_ALERT_STIFF_M1), ATT_ALERT_STIFF_M2) : INFINITY;
}

att_status att_alerts_check(att_alerts *alerts, const att_measurement *figures, int count,
                            att_status (*raise)(void *user, const att_alert *alert), void *user)
{
    const measurement x = {.alerts = alerts,
                           .figures = figures,
                           .count = count,
                           .stiff = stiff_threshold(figures, count),
                           .raise = raise,
                           .user = user};
    for (int i = 0; i < count; i++)
        ATT_TRY(check_figure(&x, &figures[i]));
    return ATT_OK;
}
