/* One class for each image. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "graph/graph.h"
#include "measure/score.h"
#include "tasks/list.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* mixed targets round after each step, as timm's do */
#endif

static const char target_name[] = "target", logits_name[] = "logits";

/* --- targets ----------------------------------------------------------------------------------------------------- */

static int fields(const att_task_setup *setup, att_field out[ATT_MAX_TARGETS])
{
    out[0] = setup->mixed ? (att_field){.name = target_name, .dtype = ATT_F32, .shape = att_shape_of(setup->classes)}
                          : (att_field){.name = target_name, .dtype = ATT_I32};
    return 1;
}

/* (1 - smoothing) onehot + smoothing / classes. */
static void spread(const att_task_setup *setup, int32_t label, float *target)
{
    double off = setup->smoothing / setup->classes;
    float low = (float)off, high = (float)(1 - setup->smoothing + off);
    for (int c = 0; c < setup->classes; c++)
        target[c] = c == label ? high : low;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    (void)context, (void)geometry; /* a class stays the same wherever the pixels go */
    const att_task_setup *setup = user;
    int32_t label = att_dataset_label(dataset, index);
    if (setup->mixed)
        spread(setup, label, out[0]);
    else
        *(int32_t *)out[0] = label;
    return ATT_OK;
}

static void mix(const void *user, void *const *own, const void *const *other, const att_mixing *mixing)
{
    const att_task_setup *setup = user;
    float weight = (float)mixing->lambda, rest = (float)(1 - mixing->lambda), *target = own[0];
    const float *others = other[0];
    for (int c = 0; c < setup->classes; c++)
        target[c] = target[c] * weight + others[c] * rest;
}

static att_status check(att_context *context, const att_task_setup *setup, const att_dataset *dataset)
{
    char name[256];
    int64_t count = att_dataset_count(dataset);
    if (setup->classes == 0)
        return att_fail(context, ATT_ERR_MISMATCH, "the model has no head and so no classes to compare with labels");
    for (int64_t i = 0; i < count; i++) {
        int32_t label = att_dataset_label(dataset, i);
        if (label < 0 || label >= setup->classes)
            return att_fail(context, ATT_ERR_MISMATCH, "%s is of class %d, but the model has %d class%s",
                            att_dataset_name(dataset, i, name, sizeof name), (int)label, setup->classes,
                            setup->classes == 1 ? "" : "es");
    }
    return ATT_OK;
}

static const int32_t *classes(const att_batch *batch)
{
    for (int f = 0; f < batch->field_count; f++)
        if (strcmp(batch->fields[f].name, target_name) == 0 && batch->fields[f].dtype == ATT_I32)
            return batch->data[f];
    return NULL;
}

/* --- loss -------------------------------------------------------------------------------------------------------- */

static att_value loss(att_graph *graph, const att_task_setup *setup)
{
    att_value logits = att_graph_find_output(graph, logits_name);
    if (logits == ATT_NONE) {
        (void)att_fail(graph->context, ATT_ERR_NOT_FOUND,
                       "classification needs a network with a head: there is no output \"%s\"", logits_name);
        return att_graph_fail(graph, ATT_ERR_NOT_FOUND);
    }
    att_shape shape = setup->mixed ? att_value_shape(graph, logits) : (att_shape){0};
    att_value target = att_graph_input(graph, target_name, setup->mixed ? graph->dtype : ATT_I32, shape);
    return att_cross_entropy(graph, logits, target, setup->mixed ? 0 : setup->smoothing);
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

static const att_metric metrics[] = {
    {.name = "loss", .label = "loss", .unit = "nats"},
    {.name = "top1", .label = "top-1", .unit = "%", .larger_is_better = true},
    {.name = "top5", .label = "top-5", .unit = "%", .larger_is_better = true},
};
enum { LOSS, TOP1, TOP5, METRICS };

typedef struct scores {
    int64_t count, first, among_five; /* images; those whose class came first, among the first five */
    double loss;
} scores;

static void observe(void *state, const att_task_setup *setup, const att_batch *batch, const att_batch *answers)
{
    scores *s = state;
    const int32_t *labels = att_batch_field(batch, target_name);
    const float *logits = att_batch_field(answers, logits_name);
    for (int i = 0; i < batch->count; i++) {
        const float *row = logits + (size_t)i * (size_t)setup->classes;
        int rank = att_score_rank(row, setup->classes, labels[i]);
        s->first += rank < 1;
        s->among_five += rank < ATT_SCORE_TOP && rank < setup->classes;
        s->loss += att_score_loss(row, setup->classes, labels[i]);
    }
    s->count += batch->count;
}

static void merge(void *state, const void *other)
{
    scores *s = state;
    const scores *o = other;
    s->count += o->count;
    s->first += o->first;
    s->among_five += o->among_five;
    s->loss += o->loss;
}

static void report(const void *state, double *values)
{
    const scores *s = state;
    double count = s->count > 0 ? (double)s->count : NAN;
    values[LOSS] = s->loss / count;
    values[TOP1] = 100 * (double)s->first / count;
    values[TOP5] = 100 * (double)s->among_five / count;
}

const att_task att_task_classification = {
    .info = {.name = "classification",
             .help = "one class for each image; cross-entropy",
             .metrics = metrics,
             .metric_count = METRICS,
             .best = TOP1},
    .fields = fields,
    .fill = fill,
    .mix = mix,
    .check = check,
    .classes = classes,
    .loss = loss,
    .state_size = sizeof(scores),
    .observe = observe,
    .merge = merge,
    .report = report,
};
