#include "study/train/options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/tasks/task.h"
#include "study/train/history.h"
#include "study/train/optimizer.h"
#include "study/train/schedule.h"

/* --- the settings ------------------------------------------------------------------------------------------------- */

static const char *const mix_modes[] = {
    [ATT_MIX_BATCH] = "batch", [ATT_MIX_PAIR] = "pair", [ATT_MIX_ELEM] = "elem", NULL};

#define AT(member) ATT_FLAG_AT(att_train_options, member)
static const att_flag repeat_options[] = {
    {"aug-repeats", .kind = ATT_FLAG_INT, .value = "N",
     .help = "how often an image occurs in an epoch, which has correspondingly fewer different images; 0: once",
     AT(aug_repeats), .low = 0, .high = 100},
};

static const char *choose_optimizer(int index)
{
    const att_optimizer *optimizer = att_optimizer_at(index);
    return optimizer ? optimizer->name : NULL;
}

static const char *choose_schedule(int index)
{
    const att_schedule *schedule = att_schedule_at(index);
    return schedule ? schedule->name : NULL;
}

/* Whether one of the first `count` tasks has a metric of that name. */
static bool is_metric_of_first(int count, const char *name)
{
    for (int t = 0; t < count; t++) {
        const att_task_info task = att_task_at(NULL, t);
        if (att_task_metric(&task, name) >= 0)
            return true;
    }
    return false;
}

/* The metrics of all tasks, each name once. */
static const char *choose_metric(int index)
{
    for (int t = 0; t < att_task_count(NULL); t++) {
        const att_task_info task = att_task_at(NULL, t);
        for (int i = 0; i < task.metric_count; i++)
            if (!is_metric_of_first(t, task.metrics[i].name) && index-- == 0)
                return task.metrics[i].name;
    }
    return NULL;
}

/* The two betas lie side by side. */
#define BETAS .member = "beta1, beta2", .offset = offsetof(att_train_options, beta1), .size = 2 * sizeof(double)
static_assert(offsetof(att_train_options, beta2) == offsetof(att_train_options, beta1) + sizeof(double),
              "--opt-betas stores beta1 and beta2 as one pair");

static const att_flag recipe_options[] = {
    {"epochs", .kind = ATT_FLAG_INT, .value = "N", .start = "300",
     .help = "passes over the data; 0: write the untrained network", AT(epochs), .low = 0, .high = 1e6},
    {"updates", .kind = ATT_FLAG_INT, .value = "N",
     .help =
         "updates of the weights, in place of --epochs; the last epoch may end early, and the rate changes at every "
         "update; 0: --epochs counts",
     AT(updates), .low = 0, .high = 1e9},
    {"eval-every", .kind = ATT_FLAG_INT, .value = "UPDATES",
     .help =
         "updates between two evaluations, records and checkpoints, in place of one after each epoch; 0: after each "
         "epoch",
     AT(eval_every), .low = 0, .high = 1e9},
    {"batch-size", .letter = 'b', .kind = ATT_FLAG_INT, .value = "N", .start = "128",
     .help = "images per batch, of all processes together", AT(batch_size), .low = 1, .high = 65536},
    {"grad-accum-steps", .kind = ATT_FLAG_INT, .value = "N", .start = "1", .help = "batches per update",
     AT(grad_accum_steps), .low = 1, .high = 65536},
    {"opt", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "sgd",
     .help = "optimiser; sgd has Nesterov's momentum, momentum the plain one", .choice = choose_optimizer,
     AT(optimizer)},
    {"momentum", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.9", .help = "of sgd and momentum", AT(momentum),
     .low = 0, .high = 0.999999},
    {"opt-betas", .kind = ATT_FLAG_PAIR, .value = "X X", .start = "0.9 0.999", .help = "of adamw", BETAS, .low = 0,
     .high = 0.999999},
    {"opt-eps", .kind = ATT_FLAG_REAL, .value = "X", .start = "1e-8", .help = "of adamw", AT(eps), .low = 1e-30,
     .high = 1},
    {"weight-decay", .kind = ATT_FLAG_REAL, .value = "X", .start = "2e-5", .help = "weight decay", AT(weight_decay),
     .low = 0, .high = 1e3},
    {"weight-decay-on", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "weights",
     .help = "weights: not on norms, biases, position and class token; all: on every parameter",
     .choices = (const char *const[]){"weights", "all", NULL}, AT(weight_decay_on)},
    {"layer-decay", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "factor by which the learning rate falls from one layer to the one below it", AT(layer_decay), .low = 0,
     .high = 1, .open = true},
    {"layer-decay-min-scale", .kind = ATT_FLAG_REAL, .value = "X", .help = "least factor of a layer's learning rate",
     AT(layer_decay_min_scale), .low = 0, .high = 1},
    {"layer-decay-no-opt-scale", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "layers with a smaller factor are frozen; 0: none", AT(layer_decay_no_opt_scale), .low = 0, .high = 1},
    {"head-lr-mult", .kind = ATT_FLAG_REAL, .value = "X", .start = "1", .help = "factor of the head's learning rate",
     AT(head_lr_mult), .low = 0, .high = 1e6},
    {"freeze", .kind = ATT_FLAG_TEXT, .value = "PATTERNS",
     .help = "names of parameters that stay as they are, as blocks.*,patch_embed.*; parts without other parameters run "
             "as in inference, and so do batch norms whose running statistics match",
     AT(freeze)},
    {"clip-grad", .kind = ATT_FLAG_REAL, .value = "X", .help = "largest norm of the gradient", AT(clip_grad), .low = 0,
     .high = 1e9, .open = true},
    {"lr", .kind = ATT_FLAG_REAL, .value = "X", .help = "learning rate; default: --lr-base scaled by the batch", AT(lr),
     .low = 0, .high = 1e3, .open = true},
    {"lr-base", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.1", .help = "learning rate for a batch of 256",
     AT(lr_base), .low = 0, .high = 1e3},
    {"sched", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "cosine",
     .help = "schedule; constant: --lr after the warm-up, none: --lr from the start", .choice = choose_schedule,
     AT(schedule)},
    {"sched-on-updates", .kind = ATT_FLAG_SWITCH, .help = "the rate changes at every update", AT(sched_on_updates)},
    {"warmup-epochs", .kind = ATT_FLAG_INT, .value = "N", .start = "5",
     .help = "epochs in which the rate rises; with --epochs or more it never reaches --lr", AT(warmup_epochs), .low = 0,
     .high = 1e6},
    {"warmup-updates", .kind = ATT_FLAG_INT, .value = "N",
     .help = "updates in which the rate rises, in place of --warmup-epochs; the rate then changes at every update; 0: "
             "--warmup-epochs counts",
     AT(warmup_updates), .low = 0, .high = 1e9},
    {"warmup-lr", .kind = ATT_FLAG_REAL, .value = "X", .start = "1e-5",
     .help = "learning rate at the start of the warm-up", AT(warmup_lr), .low = 0, .high = 1e3},
    {"min-lr", .kind = ATT_FLAG_REAL, .value = "X", .help = "lowest learning rate", AT(min_lr), .low = 0, .high = 1e3},
    {"poly-power", .kind = ATT_FLAG_REAL, .value = "X", .start = "1", .help = "poly: exponent of the remaining share",
     AT(poly_power), .low = 0, .high = 100},
    {"decay-epochs", .kind = ATT_FLAG_REAL, .value = "X", .start = "90", .help = "step: epochs between two steps",
     AT(decay_epochs), .low = 1e-6, .high = 1e6},
    {"decay-rate", .alias = "dr", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.1",
     .help = "step, multistep: factor", AT(decay_rate), .low = 0, .high = 1},
    {"decay-milestones", .kind = ATT_FLAG_INTS, .value = "N...", .start = "90 180 270",
     .help = "multistep: epochs before which the rate falls", AT(decay_milestones),
     .count_offset = offsetof(att_train_options, decay_milestone_count), .low = 1, .high = 1e6,
     .most = ATT_MOST_MILESTONES},
    {"model-ema", .kind = ATT_FLAG_SWITCH, .help = "keep a moving average of the weights", AT(model_ema)},
    {"model-ema-decay", .kind = ATT_FLAG_REAL, .value = "X", .start = "0.9998", .help = "decay of the average",
     AT(model_ema_decay), .low = 0, .high = 1},
    {"model-ema-warmup", .kind = ATT_FLAG_SWITCH, .help = "smaller decay at first", AT(model_ema_warmup)},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .start = "42", .help = "of weights, data order and augmentation",
     AT(seed)},
};

static const att_flag mix_options[] = {
    {"mixup", .kind = ATT_FLAG_REAL, .value = "X", .help = "Mixup: shares from Beta(X, X); 0: none", AT(mixup),
     .low = 0, .high = 1e6},
    {"cutmix", .kind = ATT_FLAG_REAL, .value = "X", .help = "CutMix: shares from Beta(X, X); 0: none", AT(cutmix),
     .low = 0, .high = 1e6},
    {"mixup-prob", .kind = ATT_FLAG_REAL, .value = "P", .start = "1", .help = "probability of mixing", AT(mixup_prob),
     .low = 0, .high = 1},
    {"mixup-switch-prob", .kind = ATT_FLAG_REAL, .value = "P", .start = "0.5",
     .help = "probability of CutMix if both are on", AT(mixup_switch_prob), .low = 0, .high = 1},
    {"mixup-mode", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "batch",
     .help = "which images share one random draw", .choices = mix_modes, AT(mixup_mode)},
    {"mixup-off-epoch", .kind = ATT_FLAG_INT, .value = "N", .help = "epoch from which nothing is mixed; 0: none",
     AT(mixup_off_epoch), .low = 0, .high = 1e6},
    {"cutmix-minmax", .kind = ATT_FLAG_PAIR, .value = "X X",
     .help = "CutMix: range of the box's sides relative to the image's, instead of --cutmix", AT(cutmix_minmax),
     .low = 0, .high = 1, .open = true},
};

static const att_flag run_options[] = {
    {"workers", .letter = 'j', .kind = ATT_FLAG_INT, .value = "N", .start = "4",
     .help = "threads that read and decode images", AT(workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = ATT_FLAG_SWITCH,
     .help = "continue without images that cannot be decoded; each is logged once", AT(skip_corrupt)},
    {"lanes", .kind = ATT_FLAG_INT, .value = "N",
     .help = "partial sums of the gradient in all processes together; their number determines its rounding; 0: one per "
             "thread",
     AT(lanes), .low = 0, .high = ATT_MOST_LANES},
    {"sync-bn", .kind = ATT_FLAG_SWITCH,
     .help = "with several processes: batch norm takes statistics over the images of all of them, which gives the "
             "results of one process",
     AT(sync_bn)},
    {"memory", .kind = ATT_FLAG_SIZE, .value = "SIZE",
     .help =
         "most memory for weights, optimiser, gradients, saved activations and evaluation, as 800M or 4G; less memory "
         "makes training slower and leaves its results unchanged; 0: a fixed rule for each network, or in a resume the "
         "checkpoint's SIZE",
     AT(memory), .open = true},
    {"eval-metric", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "metric of the task that determines the best epoch; default: the task's choice", .choice = choose_metric,
     .advisory = true, AT(eval_metric)},
    {"log-interval", .kind = ATT_FLAG_INT, .value = "N", .start = "50", .help = "updates between two logged updates",
     AT(log_interval), .low = 1, .high = 1e9},
    {"checkpoint-hist", .kind = ATT_FLAG_INT, .value = "N", .start = "10", .help = "checkpoints to keep, the best ones",
     AT(checkpoint_hist), .low = 1, .high = ATT_HISTORY_MAX},
    {"recovery-interval", .kind = ATT_FLAG_LONG, .value = "N",
     .help = "updates between two writes of last.safetensors; 0: after epochs only", AT(checkpoint_every_updates),
     .low = 0, .high = 1e15},
};

static const att_flag interval_options[] = {
    {"measure-every", .kind = ATT_FLAG_LONG, .value = "N", .start = "50",
     .help = "updates between two measurements; each uses the images of its update", AT(measure_every), .low = 1,
     .high = 1e15},
    {"alert", .kind = ATT_FLAG_SWITCH,
     .help = "report entropy collapse, rank collapse, stiffness spikes and dead heads, with layer, update and what to "
             "try; measures what the rules read",
     AT(alert)},
};

#define GROUP(title, rows)                                               \
    {                                                                    \
        (title), (rows), sizeof(rows) / sizeof *(rows), .owner = "train" \
    }
const att_flag_group att_train_groups[ATT_TRAIN_GROUPS] = {
    [ATT_TRAIN_REPEATS] = GROUP("Augmentation", repeat_options),
    [ATT_TRAIN_RECIPE] = GROUP("Recipe", recipe_options),
    [ATT_TRAIN_MIXING] = GROUP("Mixing (the training loss is then that of mixed images)", mix_options),
    [ATT_TRAIN_RUN] = GROUP("Run", run_options),
    [ATT_TRAIN_MEASURING] = GROUP("Instruments (weights stay the same to the bit)", interval_options),
};

att_train_options att_train_options_defaults(void)
{
    att_train_options options = {.backend = "cpu"};
    for (int g = 0; g < ATT_TRAIN_GROUPS; g++)
        for (int i = 0; i < att_train_groups[g].row_count; i++)
            att_flag_store_start(&att_train_groups[g].rows[i], &options);
    return options;
}

/* --- the settings that a resume compares -------------------------------------------------------------------------- */

/* The two numbers of --opt-betas are recorded under the names of their members. */
static const att_flag betas[] = {{"opt-betas", .kind = ATT_FLAG_REAL, AT(beta1)},
                                 {"opt-betas", .kind = ATT_FLAG_REAL, AT(beta2)}};

const att_flag *att_train_option_at(int index)
{
    for (int g = 0; g < ATT_TRAIN_RUN; g++) {
        for (int i = 0; i < att_train_groups[g].row_count; i++) {
            const att_flag *row = &att_train_groups[g].rows[i];
            const bool pair = row->offset == betas->offset;
            if (index <= pair)
                return pair ? &betas[index] : row;
            index -= 1 + pair;
        }
    }
    return NULL;
}

char *att_train_option_text(const att_train_options *options, const att_flag *row, char text[ATT_TRAIN_OPTION_TEXT])
{
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    int count = att_flag_texts(row, (const char *)options + row->offset, numbers, texts), length = 0;
    *text = '\0';
    for (int i = 0; i < count && length < ATT_TRAIN_OPTION_TEXT; i++)
        length += snprintf(text + length, (size_t)(ATT_TRAIN_OPTION_TEXT - length), "%s%s", i ? "," : "",
                           texts[i] ? texts[i] : "");
    return text;
}

/* --- mixing and the metric ---------------------------------------------------------------------------------------- */

bool att_train_mixes(const att_train_options *options)
{
    return options->mixup > 0 || options->cutmix > 0 || options->cutmix_minmax[1] > 0;
}

static int find_mix_mode(const char *name)
{
    int mode = 0;
    while (strcmp(name, mix_modes[mode]) != 0)
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

/* Finds a metric by its name or its label, in capitals or not: "mIoU" is miou. Returns -1 if there is none. */
static int find_metric(const att_task_info *task, const char *name)
{
    int index = att_task_metric(task, name);
    for (int i = 0; index < 0 && i < task->metric_count; i++)
        if (strcasecmp(task->metrics[i].name, name) == 0 || strcasecmp(task->metrics[i].label, name) == 0)
            index = i;
    return index;
}

att_status att_train_metric(att_context *context, const att_train_options *options, const att_task_info *task,
                            int *metric)
{
    *metric = options->eval_metric ? find_metric(task, options->eval_metric) : task->best;
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

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Applies the rows' rules. */
static att_status check_rows(att_context *context, const att_train_options *options)
{
    att_flag_use uses[ATT_TRAIN_GROUPS] = {{0}};
    const att_flags_options table = {.uses = uses, .use_count = ATT_TRAIN_GROUPS, .size = sizeof *options};
    att_flags *flags = NULL;
    for (int g = 0; g < ATT_TRAIN_GROUPS; g++)
        uses[g].group = &att_train_groups[g];
    ATT_TRY(att_flags_create(context, &table, &flags));
    att_status status = att_flags_check_values(flags, options);
    att_flags_destroy(&flags);
    return status;
}

static att_status check_milestones(att_context *context, const att_train_options *options)
{
    const int *milestones = options->decay_milestones;
    for (int i = 1; i < options->decay_milestone_count; i++)
        if (milestones[i] <= milestones[i - 1])
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "--decay-milestones (train.decay_milestones): %d follows %d; expected ascending epochs",
                            milestones[i], milestones[i - 1]);
    return ATT_OK;
}

/* Checkpoints record the patterns. */
static att_status check_freeze(att_context *context, const char *patterns)
{
    if (!patterns || strlen(patterns) < ATT_TRAIN_OPTION_TEXT)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "--freeze (train.freeze) has %zu characters; at most %d are possible; use patterns with *",
                    strlen(patterns), ATT_TRAIN_OPTION_TEXT - 1);
}

att_status att_train_options_check(att_context *context, const att_train_options *options)
{
    if (!options->backend || !options->optimizer || !options->schedule || !options->weight_decay_on ||
        !options->mixup_mode)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "the training options backend, optimizer, schedule, weight_decay_on and mixup_mode must be "
                        "given");
    ATT_TRY(check_rows(context, options));
    ATT_TRY(check_milestones(context, options));
    ATT_TRY(check_freeze(context, options->freeze));
    if (options->lr == 0 && options->lr_base == 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--lr-base (train.lr_base) is 0, and there is no --lr (train.lr); one of them must be above 0");
    if (options->sink_count < 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the training option sink_count is %d", options->sink_count);
    return options->alert && !options->measure
               ? att_fail(context, ATT_ERR_ARGUMENT, "alerts need instruments, and there are none")
               : ATT_OK;
}
