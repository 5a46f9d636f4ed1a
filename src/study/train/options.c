#include "study/train/options.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "study/train/history.h"
#include "study/train/numbers.h"

att_train_options att_train_options_defaults(void)
{
    return (att_train_options){.backend = "cpu",
                               .seed = 42,
                               .epochs = 300,
                               .batch_size = 128,
                               .grad_accum_steps = 1,
                               .optimizer = "sgd",
                               .momentum = 0.9,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .weight_decay = 2e-5,
                               .weight_decay_on = "weights",
                               .lr_base = 0.1,
                               .schedule = "cosine",
                               .warmup_epochs = 5,
                               .warmup_lr = 1e-5,
                               .decay_epochs = 90,
                               .decay_rate = 0.1,
                               .decay_milestones = {90, 180, 270},
                               .decay_milestone_count = 3,
                               .mixup_prob = 1,
                               .mixup_switch_prob = 0.5,
                               .mixup_mode = "batch",
                               .model_ema_decay = 0.9998,
                               .workers = 4,
                               .log_interval = 50,
                               .measure_every = 50,
                               .checkpoint_hist = 10};
}

typedef enum kind { TEXT, INT, SEED, REAL, FLAG, RANGE, MILESTONES } kind;

/* X(kind, member) */
#define OPTION_LIST(X)                \
    X(SEED, seed)                     \
    X(INT, epochs)                    \
    X(INT, batch_size)                \
    X(INT, grad_accum_steps)          \
    X(TEXT, optimizer)                \
    X(REAL, momentum)                 \
    X(REAL, beta1)                    \
    X(REAL, beta2)                    \
    X(REAL, eps)                      \
    X(REAL, weight_decay)             \
    X(TEXT, weight_decay_on)          \
    X(REAL, layer_decay)              \
    X(REAL, layer_decay_min_scale)    \
    X(REAL, layer_decay_no_opt_scale) \
    X(REAL, clip_grad)                \
    X(REAL, lr)                       \
    X(REAL, lr_base)                  \
    X(TEXT, schedule)                 \
    X(FLAG, sched_on_updates)         \
    X(INT, warmup_epochs)             \
    X(REAL, warmup_lr)                \
    X(REAL, min_lr)                   \
    X(REAL, decay_epochs)             \
    X(REAL, decay_rate)               \
    X(MILESTONES, decay_milestones)   \
    X(REAL, mixup)                    \
    X(REAL, cutmix)                   \
    X(RANGE, cutmix_minmax)           \
    X(REAL, mixup_prob)               \
    X(REAL, mixup_switch_prob)        \
    X(TEXT, mixup_mode)               \
    X(INT, mixup_off_epoch)           \
    X(INT, aug_repeats)               \
    X(FLAG, model_ema)                \
    X(REAL, model_ema_decay)          \
    X(FLAG, model_ema_warmup)

static const struct option {
    const char *name;
    kind kind;
    size_t offset;
} table[] = {
#define OPTION_ROW(kind, member) {#member, kind, offsetof(att_train_options, member)},
    OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
};

int att_train_option_count(void)
{
    return (int)(sizeof table / sizeof *table);
}

const char *att_train_option_name(int index)
{
    return table[index].name;
}

/* ATT_MOST_MILESTONES numbers up to a million fit into the text. */
static void write_milestones(const att_train_options *options, char text[ATT_TRAIN_OPTION_TEXT])
{
    int length = 0;
    *text = '\0';
    for (int i = 0; i < options->decay_milestone_count && length < ATT_TRAIN_OPTION_TEXT; i++)
        length += snprintf(text + length, (size_t)(ATT_TRAIN_OPTION_TEXT - length), "%s%d", i ? "," : "",
                           options->decay_milestones[i]);
}

char *att_train_option_text(const att_train_options *options, int index, char text[ATT_TRAIN_OPTION_TEXT])
{
    const void *member = (const char *)options + table[index].offset;
    char number[ATT_NUMBER_TEXT], second[ATT_NUMBER_TEXT];
    switch (table[index].kind) {
    case TEXT:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%s", *(const char *const *)member);
        break;
    case INT:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%d", *(const int *)member);
        break;
    case SEED:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%" PRIu64, *(const uint64_t *)member);
        break;
    case REAL:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%s", att_format_number(*(const double *)member, number));
        break;
    case FLAG:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%s", *(const bool *)member ? "true" : "false");
        break;
    case RANGE:
        snprintf(text, ATT_TRAIN_OPTION_TEXT, "%s,%s", att_format_number(((const double *)member)[0], number),
                 att_format_number(((const double *)member)[1], second));
        break;
    case MILESTONES:
        write_milestones(options, text);
        break;
    }
    return text;
}

static const char *const mix_modes[] = {[ATT_MIX_BATCH] = "batch", [ATT_MIX_PAIR] = "pair", [ATT_MIX_ELEM] = "elem"};
enum { MIX_MODES = sizeof mix_modes / sizeof *mix_modes };

bool att_train_mixes(const att_train_options *options)
{
    return options->mixup > 0 || options->cutmix > 0 || options->cutmix_minmax[1] > 0;
}

static int find_mix_mode(const char *name)
{
    int mode = 0;
    while (mode < MIX_MODES && (!name || strcmp(name, mix_modes[mode]) != 0))
        mode++;
    return mode;
}

att_mix_options att_train_mix(const att_train_options *options)
{
    return (att_mix_options){.mixup = options->mixup,
                             .cutmix = options->cutmix,
                             .cutmix_minmax = {options->cutmix_minmax[0], options->cutmix_minmax[1]},
                             .prob = options->mixup_prob,
                             .switch_prob = options->mixup_switch_prob,
                             .mode = (att_mix_mode)find_mix_mode(options->mixup_mode),
                             .off_epoch = options->mixup_off_epoch};
}

att_status att_train_metric(att_context *context, const att_train_options *options, const att_task_info *task,
                            int *metric)
{
    *metric = options->eval_metric ? att_task_metric(task, options->eval_metric) : task->best;
    if (*metric >= 0)
        return ATT_OK;
    att_text names = {.context = context};
    for (int i = 0; i < task->metric_count; i++)
        att_text_append(&names, "%s%s", i > 0 ? ", " : "", task->metrics[i].name);
    att_status status =
        names.failed ? att_fail_memory(context, names.length, "the names of the metrics")
                     : att_fail(context, ATT_ERR_ARGUMENT,
                                "the task \"%s\" has no metric \"%s\" (--eval-metric, eval_metric); there are: %s",
                                task->name, options->eval_metric, names.data);
    att_text_free(&names);
    return status;
}

static att_status check_milestones(att_context *context, const att_train_options *options)
{
    const int most = 1000000, *milestones = options->decay_milestones;
    int count = options->decay_milestone_count;
    bool valid = count >= 0 && count <= ATT_MOST_MILESTONES;
    for (int i = 0; valid && i < count; i++)
        valid = milestones[i] >= 1 && milestones[i] <= most && (i == 0 || milestones[i] > milestones[i - 1]);
    return valid ? ATT_OK
                 : att_fail(context, ATT_ERR_ARGUMENT,
                            "--decay-milestones (decay_milestones): expected at most %d epochs from 1 to %d in "
                            "ascending order",
                            ATT_MOST_MILESTONES, most);
}

typedef struct range {
    const char *name;
    double value, least, most;
} range;

att_status att_train_options_check(att_context *context, const att_train_options *options)
{
    const double tiny = 1e-300; /* "more than zero" */
    const range ranges[] = {
        {"lanes", options->lanes, 0, ATT_MOST_LANES},
        {"memory", (double)options->memory, 0, 1e18},
        {"epochs", options->epochs, 0, 1e6},
        {"batch_size", options->batch_size, 1, 1 << 20},
        {"grad_accum_steps", options->grad_accum_steps, 1, 1 << 20},
        {"momentum", options->momentum, 0, 1},
        {"beta1", options->beta1, 0, 1 - 1e-16},
        {"beta2", options->beta2, 0, 1 - 1e-16},
        {"eps", options->eps, tiny, 1},
        {"weight_decay", options->weight_decay, 0, 1e6},
        {"layer_decay", options->layer_decay, 0, 1},
        {"layer_decay_min_scale", options->layer_decay_min_scale, 0, 1},
        {"layer_decay_no_opt_scale", options->layer_decay_no_opt_scale, 0, 1},
        {"clip_grad", options->clip_grad, 0, 1e300},
        {"lr", options->lr, 0, 1e6},
        {"lr_base", options->lr_base, options->lr > 0 ? 0 : tiny, 1e6},
        {"warmup_epochs", options->warmup_epochs, 0, 1e6},
        {"warmup_lr", options->warmup_lr, 0, 1e6},
        {"min_lr", options->min_lr, 0, 1e6},
        {"decay_epochs", options->decay_epochs, tiny, 1e6},
        {"decay_rate", options->decay_rate, 0, 1e6},
        {"mixup", options->mixup, 0, 1e6},
        {"cutmix", options->cutmix, 0, 1e6},
        {"mixup_prob", options->mixup_prob, 0, 1},
        {"mixup_switch_prob", options->mixup_switch_prob, 0, 1},
        {"mixup_off_epoch", options->mixup_off_epoch, 0, 1e6},
        {"aug_repeats", options->aug_repeats, 0, 100},
        {"model_ema_decay", options->model_ema_decay, 0, 1},
        {"workers", options->workers, 0, 1024},
        {"log_interval", options->log_interval, 1, INT32_MAX},
        {"checkpoint_hist", options->checkpoint_hist, 1, ATT_HISTORY_MAX},
        {"checkpoint_every_updates", (double)options->checkpoint_every_updates, 0, 1e15},
        {"sink_count", options->sink_count, 0, 1024},
        {"measure_every", (double)options->measure_every, options->measure ? 1 : 0, 1e15},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const range *r = &ranges[i];
        if (!(r->value >= r->least && r->value <= r->most))
            return att_fail(context, ATT_ERR_ARGUMENT, "the training option %s is %g, expected %g to %g", r->name,
                            r->value, r->least, r->most);
    }
    if (options->alert && !options->measure)
        return att_fail(context, ATT_ERR_ARGUMENT, "alerts need instruments, and there are none");
    ATT_TRY(check_milestones(context, options));
    if (find_mix_mode(options->mixup_mode) == MIX_MODES)
        return att_fail(context, ATT_ERR_ARGUMENT, "mixup_mode is \"%s\", expected batch, pair or elem",
                        options->mixup_mode ? options->mixup_mode : "");
    const char *decayed = options->weight_decay_on;
    if (!decayed || (strcmp(decayed, "weights") != 0 && strcmp(decayed, "all") != 0))
        return att_fail(context, ATT_ERR_ARGUMENT, "weight_decay_on is \"%s\", expected weights or all",
                        decayed ? decayed : "");
    if (!options->backend)
        return att_fail(context, ATT_ERR_ARGUMENT, "no backend was given");
    return ATT_OK;
}
