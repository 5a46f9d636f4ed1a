/* The task "classification": one class per image. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/json.h"
#include "data/label_sets.h"
#include "engine/graph/graph.h"
#include "networks/tasks/caption.h"
#include "networks/tasks/list.h"
#include "networks/tasks/score.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* as in timm, mixed targets are rounded after each operation */
#endif

static const char target_name[] = "target", logits_name[] = "logits", teacher_class_name[] = "teacher_class",
                  teacher_logits_name[] = "teacher_logits";

/* --- options ----------------------------------------------------------------------------------------------------- */

typedef struct classification_options {
    double smoothing;
    int bce_loss, bce_sum;
    double bce_target_thresh, bce_pos_weight;
    double distillation_alpha, distillation_tau;
    char distillation_type[8];
} classification_options;
ATT_ASSERT_SETTINGS_FIT(classification_options);

#define NO_THRESHOLD (-1) /* bce_target_thresh: targets stay as they are */
#define DEFAULT_ALPHA 0.5
#define DEFAULT_TAU 1

static const char no_distillation[] = "none", soft_distillation[] = "soft", hard_distillation[] = "hard";

static const char *choose_distillation(int index)
{
    static const char *const names[] = {no_distillation, soft_distillation, hard_distillation};
    return index < 3 ? names[index] : NULL;
}

static const att_option declared[] = {
    {.key = "smoothing",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "label smoothing",
     .high = 0.999999,
     .training = true,
     ATT_OPTION_AT(classification_options, smoothing)},
    {.key = "bce_loss",
     .kind = ATT_OPTION_SWITCH,
     .help = "binary cross entropy of each class, instead of cross entropy",
     .high = 1,
     .training = true,
     ATT_OPTION_AT(classification_options, bce_loss)},
    {.key = "bce_sum",
     .kind = ATT_OPTION_SWITCH,
     .help = "bce-loss: the sum over the classes instead of their mean",
     .high = 1,
     .training = true,
     ATT_OPTION_AT(classification_options, bce_sum)},
    {.key = "bce_target_thresh",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "bce-loss: targets above X become 1, others 0; below 0: targets stay as they are",
     .low = NO_THRESHOLD,
     .high = 1,
     .training = true,
     ATT_OPTION_AT(classification_options, bce_target_thresh)},
    {.key = "bce_pos_weight",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "bce-loss: weight of the term of positive targets",
     .high = 1e6,
     .training = true,
     ATT_OPTION_AT(classification_options, bce_pos_weight)},
    {.key = "distillation_type",
     .kind = ATT_OPTION_TEXT,
     .value = "NAME",
     .help = "with --teacher: learn its most probable class (hard) or its probabilities (soft)",
     .choice = choose_distillation,
     .training = true,
     ATT_OPTION_AT(classification_options, distillation_type)},
    {.key = "distillation_alpha",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "with --teacher: weight of its part of the loss; that of the labels is 1 - X",
     .high = 1,
     .training = true,
     ATT_OPTION_AT(classification_options, distillation_alpha)},
    {.key = "distillation_tau",
     .kind = ATT_OPTION_REAL,
     .value = "X",
     .help = "soft: temperature that divides the logits of both networks",
     .low = 1e-3,
     .high = 1e3,
     .training = true,
     ATT_OPTION_AT(classification_options, distillation_tau)},
};

/* Cross entropy, without effect of the options for binary cross entropy. */
static void set_cross_entropy(att_option_values *options)
{
    att_options_set(options, "bce_loss", 0);
    att_options_set(options, "bce_sum", 0);
    att_options_set(options, "bce_target_thresh", NO_THRESHOLD);
    att_options_set(options, "bce_pos_weight", 1);
}

static void defaults(att_option_values *options)
{
    att_options_set(options, "smoothing", 0.1);
    set_cross_entropy(options);
    att_options_set_text(options, "distillation_type", hard_distillation);
    att_options_set(options, "distillation_alpha", DEFAULT_ALPHA);
    att_options_set(options, "distillation_tau", DEFAULT_TAU);
}

static void plain(att_option_values *options)
{
    att_options_set(options, "smoothing", 0);
    set_cross_entropy(options);
}

static const classification_options *options_of(const att_task_settings *settings)
{
    return (const void *)&settings->options;
}

/* Whether settings of binary cross entropy are not at their defaults. */
static bool refines_bce(const classification_options *options)
{
    return options->bce_sum || options->bce_target_thresh != NO_THRESHOLD || options->bce_pos_weight != 1;
}

static att_status check_options(att_context *context, const att_task_settings *settings)
{
    const classification_options *o = options_of(settings);
    if (!o->bce_loss && refines_bce(o))
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "--bce-sum, --bce-target-thresh and --bce-pos-weight are settings of --bce-loss, which is not given");
    if (!settings->taught && (strcmp(o->distillation_type, soft_distillation) == 0 ||
                              o->distillation_alpha != DEFAULT_ALPHA || o->distillation_tau != DEFAULT_TAU))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--distillation-type, -alpha and -tau need --teacher FILE, the checkpoint of a network to "
                        "learn from");
    return ATT_OK;
}

static double smoothing_of(const att_task_settings *settings)
{
    return options_of(settings)->smoothing;
}

/* --- head -------------------------------------------------------------------------------------------------------- */

static void head(att_graph *graph, const att_backbone *backbone)
{
    att_graph_output(graph, logits_name, att_backbone_classify(graph, backbone));
}

/* --- targets ----------------------------------------------------------------------------------------------------- */

static int fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    out[0] = settings->mixed
                 ? (att_field){.name = target_name, .dtype = ATT_F32, .shape = att_shape_of(settings->classes)}
                 : (att_field){.name = target_name, .dtype = ATT_I32};
    return 1;
}

/* (1 - smoothing) onehot + smoothing / classes. */
static void spread(const att_task_settings *settings, int32_t label, float *target)
{
    double off = smoothing_of(settings) / settings->classes;
    float low = (float)off, high = (float)(1 - smoothing_of(settings) + off);
    for (int c = 0; c < settings->classes; c++)
        target[c] = c == label ? high : low;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    (void)context, (void)geometry; /* transforms do not change the class */
    const att_task_settings *settings = user;
    int32_t label = att_dataset_label(dataset, index);
    if (settings->mixed)
        spread(settings, label, out[0]);
    else
        *(int32_t *)out[0] = label;
    return ATT_OK;
}

static void mix(const void *user, void *const *own, const void *const *other, const att_mixing *mixing)
{
    const att_task_settings *settings = user;
    float weight = (float)mixing->lambda, rest = (float)(1 - mixing->lambda), *target = own[0];
    const float *others = other[0];
    for (int c = 0; c < settings->classes; c++)
        target[c] = target[c] * weight + others[c] * rest;
}

/* --- the teacher ------------------------------------------------------------------------------------------------- */

static bool is_distillation(const att_task_settings *settings, const char *type)
{
    return settings->taught && strcmp(options_of(settings)->distillation_type, type) == 0;
}

static att_field teacher_field(const att_task_settings *settings)
{
    if (is_distillation(settings, hard_distillation))
        return (att_field){.name = teacher_class_name, .dtype = ATT_I32};
    if (is_distillation(settings, soft_distillation))
        return (att_field){.name = teacher_logits_name, .dtype = ATT_F32, .shape = att_shape_of(settings->classes)};
    return (att_field){0};
}

static void read_teacher(const att_task_settings *settings, const att_batch *answers, int row, void *field)
{
    size_t classes = (size_t)settings->classes;
    const float *logits = (const float *)att_batch_field(answers, logits_name) + (size_t)row * classes;
    att_ranked first;
    if (is_distillation(settings, soft_distillation)) {
        memcpy(field, logits, classes * sizeof *logits);
        return;
    }
    (void)att_rank_classes(logits, settings->classes, &first, 1);
    *(int32_t *)field = first.class_number;
}

/* Says how the loss is made, which the options' names leave open. */
static void log_teacher(att_context *context, const att_task_settings *settings)
{
    const double alpha = options_of(settings)->distillation_alpha, tau = options_of(settings)->distillation_tau;
    if (is_distillation(settings, no_distillation))
        att_log(context, ATT_LOG_INFO, "--distillation-type none: the teacher is not used");
    else if (is_distillation(settings, soft_distillation))
        att_log(context, ATT_LOG_INFO,
                "the loss is %g that of the labels + %g T^2 KL(teacher || network) / %d, at temperature T = %g; as in "
                "DeiT's code, the divergence is divided by the number of classes",
                1 - alpha, alpha, settings->classes, tau);
    else
        att_log(context, ATT_LOG_INFO,
                "the loss is %g that of the labels + %g that of the class that the teacher finds most probable",
                1 - alpha, alpha);
    if (is_distillation(settings, hard_distillation) && tau != DEFAULT_TAU)
        att_log(context, ATT_LOG_INFO,
                "--distillation-tau %g has no effect: it is the temperature of --distillation-type soft", tau);
}

/* --- loss -------------------------------------------------------------------------------------------------------- */

/* smoothing: 0 if the targets are smoothed already. */
static att_value entropy(att_graph *graph, const classification_options *options, double smoothing, att_value logits,
                         att_value target)
{
    const att_binary_cross_entropy_options binary = {.smoothing = smoothing,
                                                     .binary = options->bce_target_thresh >= 0,
                                                     .threshold = options->bce_target_thresh,
                                                     .positive_weight = options->bce_pos_weight,
                                                     .sum = options->bce_sum};
    if (refines_bce(options) && !options->bce_loss)
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_ARGUMENT,
                                              "bce_sum, bce_target_thresh and bce_pos_weight are settings of bce_loss, "
                                              "which is not set"));
    return options->bce_loss ? att_binary_cross_entropy(graph, logits, target, &binary)
                             : att_cross_entropy(graph, logits, target, smoothing);
}

/* T^2 / classes KL(p || softmax(logits / T)) with p = softmax(teacher / T). The divergence is the cross entropy of p
 * and the student, less the entropy of p. */
static att_value soft_loss(att_graph *graph, const att_task_settings *settings, att_value logits)
{
    const double tau = options_of(settings)->distillation_tau;
    att_value teacher = att_graph_input(graph, teacher_logits_name, graph->dtype, att_value_shape(graph, logits));
    att_value cooled = att_combine(graph, 1 / tau, teacher, 0, ATT_NONE), p = att_softmax(graph, cooled);
    att_value cross = att_cross_entropy(graph, att_combine(graph, 1 / tau, logits, 0, ATT_NONE), p, 0);
    att_value least = att_cross_entropy(graph, cooled, p, 0);
    const double factor = tau * tau / settings->classes;
    return att_combine(graph, factor, cross, -factor, least);
}

static att_value teacher_loss(att_graph *graph, const att_task_settings *settings, att_value logits)
{
    if (is_distillation(settings, soft_distillation))
        return soft_loss(graph, settings, logits);
    att_value class_number = att_graph_input(graph, teacher_class_name, ATT_I32, (att_shape){0});
    return att_cross_entropy(graph, logits, class_number, 0);
}

static att_value label_loss(att_graph *graph, const att_task_settings *settings, att_value logits)
{
    att_shape shape = settings->mixed ? att_value_shape(graph, logits) : (att_shape){0};
    att_value target = att_graph_input(graph, target_name, settings->mixed ? graph->dtype : ATT_I32, shape);
    return entropy(graph, options_of(settings), settings->mixed ? 0 : smoothing_of(settings), logits, target);
}

/* The logits with -infinity for the classes that do not compete. */
static att_value competing_values(att_graph *graph, const att_task_settings *settings, att_value logits)
{
    const size_t classes = (size_t)settings->classes;
    if (!settings->competing)
        return logits;
    const bool wide = graph->dtype == ATT_F64;
    void *added = att_allocate_array(graph->context, classes, att_dtype_size(graph->dtype));
    if (!added)
        return att_graph_fail(graph, att_fail_memory(graph->context, classes * sizeof(double), "logits"));
    for (size_t c = 0; c < classes; c++) {
        float number = settings->competing[c] ? 0 : -INFINITY;
        if (wide)
            ((double *)added)[c] = number;
        else
            ((float *)added)[c] = number;
    }
    att_value mask = att_graph_constant(graph, graph->dtype, att_shape_of(settings->classes), added);
    att_free(graph->context, added);
    return att_add(graph, logits, mask);
}

static att_value loss(att_graph *graph, const att_task_settings *settings)
{
    const double alpha = options_of(settings)->distillation_alpha;
    att_value logits = att_graph_find_output(graph, logits_name);
    if (logits == ATT_NONE)
        return att_graph_fail(graph, att_fail(graph->context, ATT_ERR_NOT_FOUND,
                                              "classification needs a network with a head: there is no output \"%s\"",
                                              logits_name));
    att_value labels = label_loss(graph, settings, competing_values(graph, settings, logits));
    if (!teacher_field(settings).name)
        return labels;
    return att_combine(graph, 1 - alpha, labels, alpha, teacher_loss(graph, settings, logits));
}

/* --- metrics ----------------------------------------------------------------------------------------------------- */

static const att_metric metrics[] = {
    {.name = "loss", .label = "loss", .unit = "nats"},
    {.name = ATT_SCORE_TOP1, .label = "top-1", .unit = "%", .larger_is_better = true},
    {.name = ATT_SCORE_TOP5, .label = "top-5", .unit = "%", .larger_is_better = true},
};
enum { LOSS, TOP1, TOP5, METRICS };

/* The logits as if there were only the classes that compete. scratch: [classes]. */
static const float *competing_logits(const att_task_settings *settings, const float *logits, float *scratch)
{
    if (!settings->competing)
        return logits;
    for (int c = 0; c < settings->classes; c++)
        scratch[c] = settings->competing[c] ? logits[c] : -INFINITY;
    return scratch;
}

static void score(att_scores *scores, const att_task_settings *settings, const float *logits, const att_batch *batch,
                  int row)
{
    const att_label_sets *real = settings->real;
    int label = ((const int32_t *)att_batch_field(batch, target_name))[row];
    if (!real) {
        (void)att_scores_add(scores, logits, settings->classes, label);
        return;
    }
    const int64_t *first = real->first + batch->indices[row];
    (void)att_scores_add_set(scores, logits, settings->classes, label, real->labels + first[0],
                             (int)(first[1] - first[0]));
}

static att_status observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers)
{
    size_t classes = (size_t)settings->classes;
    const float *logits = att_batch_field(answers, logits_name);
    float *scratch = settings->competing ? att_allocate_array(context, classes, sizeof *scratch) : NULL;
    if (settings->competing && !scratch)
        return att_fail_memory(context, classes * sizeof *scratch, "logits");
    for (int i = 0; i < batch->count; i++)
        score(state, settings, competing_logits(settings, logits + (size_t)i * classes, scratch), batch, i);
    if (scratch)
        att_free(context, scratch);
    return ATT_OK;
}

static void report(const void *state, double *values)
{
    const att_scores *s = state;
    double count = s->count > 0 ? (double)s->count : NAN, judged = s->judged > 0 ? (double)s->judged : NAN;
    values[LOSS] = s->loss / count;
    values[TOP1] = 100 * (double)s->first / judged;
    values[TOP5] = 100 * (double)s->among_five / judged;
}

/* --- predictions ------------------------------------------------------------------------------------------------- */

/* The most probable classes of an answer. */
typedef struct ranking {
    const float *logits;
    int classes, count;
    att_ranked *top; /* [count], freed by att_free() */
} ranking;

static att_status rank(att_context *context, const att_batch *answer, int most, ranking *made)
{
    int f = 0;
    while (f < answer->field_count && strcmp(answer->fields[f].name, logits_name) != 0)
        f++;
    if (f == answer->field_count)
        return att_fail(context, ATT_ERR_MISMATCH, "the network has no head, so it predicts no classes");
    made->logits = answer->data[f];
    made->classes = (int)att_shape_count(answer->fields[f].shape);
    int wanted = most < 1 ? 1 : most < made->classes ? most : made->classes;
    ATT_TRY(att_new(context, &made->top, (size_t)wanted, "the classes of an image"));
    made->count = att_rank_classes(made->logits, made->classes, made->top, wanted);
    return ATT_OK;
}

/* Returns the name of a class; NULL if it has none. */
static const char *label_of(const att_answer_options *options, int class_number)
{
    return class_number < options->label_count ? options->labels[class_number] : NULL;
}

static void write_class(const att_answer_options *options, const att_ranked *ranked, att_json_writer *writer)
{
    const char *label = label_of(options, ranked->class_number);
    att_json_begin_object(writer);
    att_json_put_integer(writer, "class", ranked->class_number);
    if (label)
        att_json_put_string(writer, "label", label);
    att_json_put_number(writer, "probability", ranked->probability);
    att_json_end_object(writer);
}

static att_status write(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer)
{
    ranking ranked;
    ATT_TRY(rank(context, answer, options->topk, &ranked));
    att_json_put_array(writer, "top");
    for (int i = 0; i < ranked.count; i++)
        write_class(options, &ranked.top[i], writer);
    att_json_end_array(writer);
    if (options->outputs) {
        att_json_put_array(writer, logits_name);
        for (int c = 0; c < ranked.classes; c++)
            att_json_number(writer, (double)ranked.logits[c]);
        att_json_end_array(writer);
    }
    att_free(context, ranked.top);
    return ATT_OK;
}

static void describe_class(const att_answer_options *options, const att_ranked *ranked, att_text *text)
{
    const char *label = label_of(options, ranked->class_number);
    text->length = 0;
    att_text_append(text, "%6.2f %%", 100 * ranked->probability);
    if (options->outputs)
        att_text_append(text, "  %9.4f", (double)ranked->logit);
    att_text_append(text, "  %6d%s%s", ranked->class_number, label ? "  " : "", label ? label : "");
}

static att_status describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user)
{
    ranking ranked;
    att_text text = {.context = context};
    ATT_TRY(rank(context, answer, options->topk, &ranked));
    for (int i = 0; i < ranked.count && !text.failed; i++) {
        describe_class(options, &ranked.top[i], &text);
        if (!text.failed)
            line(user, text.data);
    }
    att_free(context, ranked.top);
    att_status status = text.failed ? att_fail_memory(context, text.length, "the classes of an image") : ATT_OK;
    att_text_free(&text);
    return status;
}

enum { CAPTION_CLASSES = 5 };

static att_status caption(att_context *context, const att_batch *answer, const att_answer_options *options,
                          const att_task_image *image, att_text *text)
{
    ranking ranked = {.count = 0};
    if (att_batch_field(answer, logits_name))
        ATT_TRY(rank(context, answer, CAPTION_CLASSES, &ranked));
    int32_t label = att_dataset_label(image->dataset, image->index);
    att_caption_classes(text, options, image->unlabelled ? -1 : label, att_dataset_class_name(image->dataset, label),
                        ranked.top, ranked.count);
    att_free(context, ranked.top);
    return ATT_OK;
}

const att_task att_task_classification = {
    .info = {.name = "classification",
             .help = "one class for each image; cross-entropy",
             .metrics = metrics,
             .metric_count = METRICS,
             .best = TOP1,
             .options = declared,
             .option_count = sizeof declared / sizeof *declared},
    .options_size = sizeof(classification_options),
    .defaults = defaults,
    .check_options = check_options,
    .head = head,
    .fields = fields,
    .fill = fill,
    .mix = mix,
    .check = att_task_check_classes,
    .class_field = target_name,
    .class_output = logits_name,
    .loss = loss,
    .teacher_field = teacher_field,
    .read_teacher = read_teacher,
    .log_teacher = log_teacher,
    .plain = plain,
    .state_size = sizeof(att_scores),
    .observe = observe,
    .report = report,
    .write = write,
    .describe = describe,
    .caption = caption,
};
