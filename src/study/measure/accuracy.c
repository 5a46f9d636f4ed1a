#include <math.h>

#include "base/core/spread.h"
#include "networks/tasks/score.h"
#include "networks/tasks/task.h"
#include "study/measure/list.h"

static att_status request(att_requests *requests)
{
    ATT_TRY(att_requests_need_classes(requests));
    att_requests_row(requests, att_task_class_output(att_requests_graph(requests)), 1);
    att_requests_series(requests, "", -1, ATT_SCORE_TOP1);
    att_requests_series(requests, "", -1, ATT_SCORE_TOP5);
    att_requests_series(requests, "", -1, "loss");
    return ATT_OK;
}

typedef struct state {
    att_scores scores;
    att_spread loss;
    int64_t undefined; /* number of losses that are not finite */
} state;

static size_t size(const att_observed *shape)
{
    (void)shape;
    return sizeof(state);
}

static void observe(void *accuracy, const att_observed *observed)
{
    state *s = accuracy;
    double loss = att_scores_add(&s->scores, observed->rows[0], (int)observed->lengths[0], observed->label);
    s->undefined += !isfinite(loss);
    att_spread_add(&s->loss, loss);
}

static void merge(void *accuracy, const void *later, const att_observed *shape)
{
    (void)shape;
    state *s = accuracy;
    const state *more = later;
    att_scores_merge(&s->scores, &more->scores);
    s->undefined += more->undefined;
    att_spread_merge(&s->loss, &more->loss);
}

/* Mean and standard deviation over samples, each of which counts 100 if it is a hit and 0 if not. */
static att_figure percentage(int64_t hits, int64_t count)
{
    double h = (double)hits, n = (double)count;
    return (att_figure){.mean = count > 0 ? 100 * h / n : NAN,
                        .deviation = count > 1 ? 100 * sqrt(h * (n - h) / n / (n - 1)) : NAN,
                        .count = count};
}

static void report(const void *accuracy, const att_observed *shape, att_figure *figures)
{
    (void)shape;
    const state *s = accuracy;
    figures[0] = percentage(s->scores.first, s->scores.count);
    figures[1] = percentage(s->scores.among_five, s->scores.count);
    figures[2] = (att_figure){.mean = s->scores.loss / (s->scores.count > 0 ? (double)s->scores.count : NAN),
                              .deviation = att_spread_deviation(&s->loss),
                              .count = s->scores.count,
                              .undefined = s->undefined};
}

static const att_statistic_info statistics[] = {
    {ATT_SCORE_TOP1, "top-1", "%"}, {ATT_SCORE_TOP5, "top-5", "%"}, {"loss", "loss", "nats"}, {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {ATT_SCORE_TOP1, "100 / C by guessing, with C classes that are equally frequent; then the loss is ln C",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_accuracy = {
    .info = {.name = "accuracy",
             .summary = "how often the network is right",
             .title = "Accuracy",
             .unit = "per cent; loss: nats",
             .formula = "100 [class is the largest logit], 100 [class is among the five largest], -ln softmax(z)_class",
             .source = "usual",
             .needs_labels = true,
             .scores = true,
             .statistics = statistics,
             .score = ATT_SCORE_TOP1,
             .scales = scales,
             .reading = "of equal logits, the one with the lower class number comes first; NaN counts as wrong"},
    .request = request,
    .state = {size, observe, merge, report},
};
