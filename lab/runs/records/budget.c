/* Costly instruments within a budget of time: each is timed on the first images. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "data/dataset.h"
#include "lab/runs/records/instruments.h"
#include "lab/runs/records/measuring.h"

enum { TIMED_BATCH = 2 }; /* images of a batch */

typedef struct timing {
    double began, first, last; /* seconds; first, last: after the first and the last batch; 0: not yet */
    int64_t batches;           /* of all images */
    bool stopped;              /* the budget is used up */
    double most;               /* the budget */
} timing;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const char stage[] = "measure";

/* An att_progress_fn; stops after the second batch. An instrument may also report parts of its work on a batch. */
static bool watch(void *user, const att_progress *progress)
{
    timing *t = user;
    const bool batch = strcmp(progress->stage, stage) == 0;
    t->last = now();
    t->stopped = t->last - t->began > t->most;
    t->batches = progress->batches;
    if (!batch || t->first > 0)
        return !batch && !t->stopped;
    t->first = t->last;
    return !t->stopped;
}

/* Seconds for all images: the first batch also begins the work. */
static double estimate(const timing *t)
{
    return t->stopped || t->first == 0 ? INFINITY
                                       : t->first - t->began + (t->last - t->first) * (double)(t->batches - 1);
}

/* Times the instrument. *seconds: for all images. *applies: false if it has nothing to observe in the network. */
static att_status time_one(att_measuring *m, const char *name, double left, double *seconds, bool *applies)
{
    timing t = {.began = now(), .most = left};
    att_evaluate_options options = att_evaluate_options_defaults();
    att_measure *measure = NULL;
    att_status status = att_network_observe(m->network, name, m->options->nodes, &measure);
    *applies = status == ATT_OK;
    if (!*applies)
        return status == ATT_ERR_NOT_FOUND || status == ATT_ERR_UNSUPPORTED ? ATT_OK : status;
    options.batch_size = TIMED_BATCH;
    options.workers = m->options->workers;
    options.skip_corrupt = m->options->skip_corrupt;
    options.unlabelled = !att_dataset_fits_classes(m->dataset, att_model_classes(att_network_model(m->network)));
    options.measure = measure;
    options.stage = stage;
    options.progress = watch;
    options.progress_user = &t;
    status = att_network_evaluate(m->network, m->dataset, &options, NULL);
    att_measure_destroy(&measure);
    *seconds = estimate(&t);
    return status == ATT_ERR_STOPPED && !att_stop_asked(m->context) ? ATT_OK : status;
}

static bool is_offered(const att_measuring *m, const att_instrument_info *info)
{
    const bool labels = att_dataset_fits_classes(m->dataset, att_model_classes(att_network_model(m->network)));
    return info->costly && info->view && !att_instruments_name(m->options->with, info->name) &&
           (labels || !info->needs_labels);
}

/* "-accuracy" alone means all others, but "-accuracy,rank" would mean rank alone. */
static void name_all(att_measuring *m)
{
    att_text with = {.context = m->context};
    att_text_append(&with, "all,%s", m->with.data);
    att_text_free(&m->with);
    m->with = with;
}

att_status att_measuring_spend_budget(att_measuring *m)
{
    double left = m->options->budget;
    if (left > 0 && att_instruments_take_all(m->options->with) && !att_instruments_name(m->options->with, "all"))
        name_all(m);
    for (int i = 0; i < att_instrument_count(m->context) && left > 0; i++) {
        const att_instrument_info info = att_instrument_at(m->context, i);
        const double began = now();
        double seconds = 0;
        bool applies = false;
        if (!is_offered(m, &info))
            continue;
        ATT_TRY(time_one(m, info.name, left, &seconds, &applies));
        left -= now() - began;
        if (!applies)
            continue;
        const bool fits = seconds <= left;
        if (fits)
            att_log(m->context, ATT_LOG_INFO, "%s takes about %.2g s", info.name, seconds);
        else
            att_log(m->context, ATT_LOG_INFO, "%s is left out: it takes longer than the %.2g s that are left",
                    info.name, fmax(left, 0));
        if (fits)
            att_text_append(&m->with, ",%s", info.name);
        left -= fits ? seconds : 0;
    }
    return m->with.failed ? att_fail_memory(m->context, m->with.length, "a list of instruments") : ATT_OK;
}
