#include "lab/papers/experiments/record.h"

#include <math.h>
#include <stdio.h>

#include <attscope/store.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/spread.h"
#include "base/core/text.h"

static const char PATHS[] = "path_accuracy", CIRCLE[] = "circle";

enum {
    MOST_FIGURES = ATT_EXPERIMENT_SUMS * ATT_EXPERIMENT_LENGTHS + 2 + ATT_EXPERIMENT_SAMPLED + 7 * ATT_CIRCLE_VARIANTS,
    MOST_TRAJECTORIES = 4 * ATT_CIRCLE_VARIANTS,
    NODE = 48
};

/* The figures of a result, with the texts and the values that they point to. */
typedef struct figures {
    att_measurement items[MOST_FIGURES];
    char nodes[MOST_FIGURES][NODE];
    int count;
    double trajectories[MOST_TRAJECTORIES][ATT_CIRCLE_STEPS];
    int trajectory_count;
} figures;

/* Adds a figure. The caller then writes the name of its node, which is "". */
static char *add(figures *f, const char *instrument, const char *statistic, const att_experiment_score *score)
{
    char *node = f->nodes[f->count];
    f->items[f->count++] = (att_measurement){.instrument = instrument,
                                             .node = node,
                                             .statistic = statistic,
                                             .unit = "1",
                                             .head = -1,
                                             .mean = score->mean,
                                             .deviation = score->deviation,
                                             .count = score->n};
    return node;
}

static void add_sampled(figures *f, const att_experiment_path *path, int depth)
{
    const att_experiment_score score = {path->accuracy, NAN, 1};
    char *node = add(f, PATHS, "accuracy", &score);
    int length = snprintf(node, NODE, "length.%d.path.", path->length);
    for (int layer = 0; layer < depth; layer++)
        length += snprintf(node + length, NODE - (size_t)length, "%s%d", layer ? "-" : "", path->heads[layer]);
}

static void add_paths(figures *f, const att_experiment_result *r)
{
    for (int sum = 0; sum < ATT_EXPERIMENT_SUMS; sum++)
        for (int length = 0; length < r->lengths; length++)
            snprintf(add(f, PATHS, "accuracy", &r->paths[sum][length]), NODE, "sum.%d.length.%d", r->sums[sum], length);
    add(f, PATHS, "whole", &r->whole);
    add(f, PATHS, "baseline", &r->baseline);
    for (int i = 0; i < r->sampled_count; i++)
        add_sampled(f, &r->sampled[i], r->lengths - 1);
}

static void add_trajectory(figures *f, const att_circle_result *c, int point, int axis)
{
    static const char *const points[] = {"first", "second"}, *const axes[] = {"x", "y"};
    double *values = f->trajectories[f->trajectory_count++];
    att_spread spread = {.count = 0};
    for (int i = 0; i < ATT_CIRCLE_STEPS; i++)
        att_spread_add(&spread, values[i] = c->points[i][point][axis]);
    const att_experiment_score score = {att_spread_mean(&spread), att_spread_deviation(&spread), ATT_CIRCLE_STEPS};
    snprintf(add(f, CIRCLE, axes[axis], &score), NODE, "%s.%s", c->name, points[point]);
    f->items[f->count - 1].samples = values;
    f->items[f->count - 1].sample_count = ATT_CIRCLE_STEPS;
}

static void add_variant(figures *f, const att_circle_result *c)
{
    snprintf(add(f, CIRCLE, "loss", &c->loss), NODE, "%s", c->name);
    snprintf(add(f, CIRCLE, "radius error", &c->radius_error), NODE, "%s", c->name);
    snprintf(add(f, CIRCLE, "distance", &c->distance), NODE, "%s", c->name);
    for (int point = 0; point < 2; point++)
        for (int axis = 0; axis < 2; axis++)
            add_trajectory(f, c, point, axis);
}

static att_status emit(const att_experiment_record *record, const att_event *event)
{
    att_event complete = *event;
    complete.seconds = att_seconds_now() - record->started;
    return record->sink.emit(record->sink.user, &complete);
}

static att_status emit_begin(const att_experiment_record *record, const att_experiment_info *info,
                             const att_experiment_options *o, const att_experiment_result *r, const char *quirks)
{
    const att_event_field fields[] = {{.name = "model", .text = "self-attention network of Dong et al."},
                                      {.name = "task", .text = info->name},
                                      {.name = "summary", .text = info->summary},
                                      {.name = "depth", .number = info->depth},
                                      {.name = "heads", .number = info->heads},
                                      {.name = "width", .number = info->width},
                                      {.name = "mlp", .text = o->mlp ? "true" : "false"},
                                      {.name = "opt", .text = info->optimizer},
                                      {.name = "lr", .number = r->lr},
                                      {.name = "batch_size", .number = info->batch_size},
                                      {.name = "epochs", .number = r->epochs},
                                      {.name = "updates", .number = (double)r->updates},
                                      {.name = "training_samples", .number = r->training_samples},
                                      {.name = "seed", .number = (double)o->seed},
                                      {.name = "networks", .number = o->seeds},
                                      {.name = "repeats", .number = o->repeats},
                                      {.name = "texts", .text = o->texts ? o->texts : ""},
                                      {.name = "tokenizer", .text = o->tokenizer ? o->tokenizer : ""},
                                      {.name = "quirks", .text = quirks},
                                      {.name = "published_whole", .number = info->published_whole},
                                      {.name = "published_baseline", .number = info->published_baseline}};
    return emit(record, &(att_event){.kind = ATT_EVENT_RUN_BEGIN,
                                     .step = r->updates,
                                     .fields = fields,
                                     .field_count = sizeof fields / sizeof *fields});
}

static att_status emit_figures(const att_experiment_record *record, const att_experiment_result *r, figures *f)
{
    char samples[32];
    const int count = r->lengths > 0 ? r->evaluation_samples : r->training_samples;
    snprintf(samples, sizeof samples, "%d sample%s", count, count == 1 ? "" : "s");
    const att_event_field fields[] = {{.name = "split", .text = samples}, {.name = "nodes", .text = "*"}};
    if (r->lengths > 0)
        add_paths(f, r);
    for (int i = 0; i < r->circle_count; i++)
        add_variant(f, &r->circle[i]);
    return emit(record, &(att_event){.kind = ATT_EVENT_MEASURE,
                                     .step = r->updates,
                                     .fields = fields,
                                     .field_count = sizeof fields / sizeof *fields,
                                     .measurements = f->items,
                                     .measurement_count = f->count});
}

att_status att_experiment_record_open(att_experiment_record *record, att_context *context, const char *folder)
{
    *record = (att_experiment_record){.context = context, .started = att_seconds_now()};
    return folder ? att_store_open_measured(context, folder, NULL, &record->sink) : ATT_OK;
}

void att_experiment_record_close(att_experiment_record *record)
{
    if (record->sink.close)
        record->sink.close(record->sink.user);
}

att_status att_experiment_record_write(const att_experiment_record *record, const att_experiment_info *info,
                                       const att_experiment_options *options, const att_experiment_result *result)
{
    const att_event_field end[] = {{.name = "status", .text = att_status_name(ATT_OK)}};
    if (!record->sink.emit)
        return ATT_OK;
    figures *f = att_allocate(record->context, sizeof *f);
    att_text quirks = {.context = record->context};
    for (int i = 0; i < options->quirk_count; i++)
        att_text_append(&quirks, "%s%s", i ? " " : "", options->quirks[i]);
    att_status status =
        !f || quirks.failed ? att_fail_memory(record->context, sizeof *f, "the record of an experiment") : ATT_OK;
    if (status == ATT_OK)
        status = emit_begin(record, info, options, result, quirks.data ? quirks.data : "");
    if (status == ATT_OK)
        status = emit_figures(record, result, f);
    if (status == ATT_OK)
        status = emit(record, &(att_event){.kind = ATT_EVENT_RUN_END,
                                           .step = result->updates,
                                           .fields = end,
                                           .field_count = sizeof end / sizeof *end});
    att_text_free(&quirks);
    att_free(record->context, f);
    return status;
}
