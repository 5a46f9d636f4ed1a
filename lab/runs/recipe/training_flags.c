#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <attscope/lab/names.h>
#include <attscope/lab/recipe.h>

#include "base/core/error.h"
#include "base/core/options.h"
#include "lab/runs/recipe/recipe.h"

/* part: the member of att_recipe that holds the group's struct. */
#define GROUP(name, title, part, table, starts)                                                                  \
    static const att_flag_group name = {(title), (table), sizeof(table) / sizeof *(table), .defaults = (starts), \
                                        .owner = #part}

/* --- data --------------------------------------------------------------------------------------------------------- */

static const att_flag data_options[] = {
    {"data-dir", .alias = "data", .kind = ATT_FLAG_TEXT, .value = "DATA",
     .help = "the data set, if it is not given as operand", ATT_FLAG_AT(att_recipe_data, data_dir)},
    {"train-split", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "split to train on, or tars in DATA: 'train-{000..146}.tar'", ATT_FLAG_AT(att_recipe_data, train_split)},
    {"val-split", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "split to evaluate on, or tars in DATA; '': none",
     ATT_FLAG_AT(att_recipe_data, val_split), .empty = true},
    {"class-map", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "one class per line; class numbers are line numbers from 0", ATT_FLAG_AT(att_recipe_data, class_map)},
    {"coarse-labels", .kind = ATT_FLAG_SWITCH, .help = "CIFAR-100: its 20 superclasses instead of its 100 classes",
     ATT_FLAG_AT(att_recipe_data, coarse_labels)},
    {"cache-bytes", .kind = ATT_FLAG_LONG, .value = "N", .help = "most memory for the files of a .tar.gz",
     ATT_FLAG_AT(att_recipe_data, cache_bytes), .low = 0, .high = 1e15},
};

static void data_defaults(att_context *context, void *values)
{
    (void)context;
    att_recipe_data *data = values;
    data->train_split = "train";
    data->val_split = "validation";
    data->cache_bytes = (int64_t)att_dataset_options_defaults().cache_bytes;
}

GROUP(data_group, "Data", data, data_options, data_defaults);

att_dataset_options att_recipe_dataset_options(const att_recipe_data *data, const char *split)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.split = split;
    options.class_map = data->class_map;
    options.coarse = data->coarse_labels;
    if (data->cache_bytes > 0)
        options.cache_bytes = (size_t)data->cache_bytes;
    return options;
}

/* --- images of the training --------------------------------------------------------------------------------------- */

static const char *choose_crop(int index)
{
    static const char *const names[] = {"rrc", "pad", "src", "center"};
    return index < 4 ? names[index] : NULL;
}

static const char *choose_train_interpolation(int index)
{
    return index == 0 ? "random" : att_choose_interpolation(index - 1);
}

static const char *choose_remode(int index)
{
    static const char *const names[] = {"const", "rand", "pixel"};
    return index < 3 ? names[index] : NULL;
}

static const char *choose_mixup_mode(int index)
{
    static const char *const names[] = {"batch", "pair", "elem"};
    return index < 3 ? names[index] : NULL;
}

#define AUGMENTATION "Augmentation"
static const att_flag image_options[] = {
    {"no-aug", .kind = ATT_FLAG_SWITCH,
     .help = "transform images as in evaluation: no random augmentation except mixing and repeats",
     ATT_FLAG_AT(att_recipe_images, no_aug)},
    {"train-crop-mode", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "random resized crop, shift over black borders, DeiT III's simple random crop over reflected borders, or "
             "centre crop",
     .choice = choose_crop, ATT_FLAG_AT(att_recipe_images, crop_mode)},
    {"scale", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "rrc: area of the crop",
     ATT_FLAG_AT(att_recipe_images, scale), .low = 1e-6, .high = 1},
    {"ratio", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "rrc: width over height",
     ATT_FLAG_AT(att_recipe_images, ratio), .low = 1e-3, .high = 1e3},
    {"pad", .kind = ATT_FLAG_INT, .value = "N", .help = "pad, src: most pixels of a shift",
     ATT_FLAG_AT(att_recipe_images, pad), .low = 0, .high = 16384},
    {"hflip", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of a left-right flip",
     ATT_FLAG_AT(att_recipe_images, hflip), .low = 0, .high = 1},
    {"vflip", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of an upside-down flip",
     ATT_FLAG_AT(att_recipe_images, vflip), .low = 0, .high = 1},
    {"color-jitter", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "brightness, contrast and saturation by factors from 1 - X to 1 + X; not with --aa",
     ATT_FLAG_AT(att_recipe_images, color_jitter), .low = 0, .high = 10},
    {"aa", .kind = ATT_FLAG_TEXT, .value = "TEXT", .help = "RandAugment, described as by timm: rand-m9-mstd0.5-inc1",
     ATT_FLAG_AT(att_recipe_images, aa)},
    {"three-augment", .alias = "ThreeAugment", .kind = ATT_FLAG_SWITCH,
     .help = "DeiT III's 3-Augment: grey values, solarisation or Gaussian blur, then --color-jitter; not with --aa",
     ATT_FLAG_AT(att_recipe_images, three_augment)},
    {"reprob", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of random erasing",
     ATT_FLAG_AT(att_recipe_images, reprob), .low = 0, .high = 1},
    {"remode", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "what erased boxes hold: 0, one colour, or noise",
     .choice = choose_remode, ATT_FLAG_AT(att_recipe_images, remode)},
    {"recount", .kind = ATT_FLAG_INT, .value = "N", .help = "most boxes of an image",
     ATT_FLAG_AT(att_recipe_images, recount), .low = 1, .high = 100},
    {"train-interpolation", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "of resizing in training; default: as --interpolation", .choice = choose_train_interpolation,
     ATT_FLAG_AT(att_recipe_images, interpolation)},
};

static void image_defaults(att_context *context, void *values)
{
    (void)context;
    att_recipe_images *images = values;
    att_transform_options transform = att_transform_options_defaults(1, 1, 1);
    images->crop_mode = "rrc";
    for (int i = 0; i < 2; i++) {
        images->scale[i] = transform.scale[i];
        images->ratio[i] = transform.ratio[i];
    }
    images->pad = transform.pad;
    images->hflip = 0.5;
    images->color_jitter = 0.4;
    images->remode = "pixel";
    images->recount = 1;
}

GROUP(image_group, AUGMENTATION, images, image_options, image_defaults);

#define RECIPE(member) ATT_FLAG_AT(att_train_options, member)
static const att_flag repeat_options[] = {
    {"aug-repeats", .kind = ATT_FLAG_INT, .value = "N",
     .help = "how often an image occurs in an epoch, which has correspondingly fewer different images; 0: once",
     RECIPE(aug_repeats), .low = 0, .high = 100},
};

GROUP(repeat_group, AUGMENTATION, train, repeat_options, NULL);

/* --- the recipe --------------------------------------------------------------------------------------------------- */

static const char *choose_optimizer(int index)
{
    return index < att_optimizer_count() ? att_optimizer_at(index).name : NULL;
}

static const char *choose_schedule(int index)
{
    return index < att_schedule_count() ? att_schedule_at(index).name : NULL;
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

static const char *choose_decayed(int index)
{
    static const char *const names[] = {"weights", "all"};
    return index < 2 ? names[index] : NULL;
}

/* The two betas lie side by side. */
#define BETAS .member = "beta1, beta2", .offset = offsetof(att_train_options, beta1), .size = 2 * sizeof(double)
static_assert(offsetof(att_train_options, beta2) == offsetof(att_train_options, beta1) + sizeof(double),
              "--opt-betas stores beta1 and beta2 as one pair");

static const att_flag recipe_options[] = {
    {"epochs", .kind = ATT_FLAG_INT, .value = "N", .help = "passes over the data; 0: write the untrained network",
     RECIPE(epochs), .low = 0, .high = 1e6},
    {"batch-size", .letter = 'b', .kind = ATT_FLAG_INT, .value = "N",
     .help = "images per batch, of all processes together", RECIPE(batch_size), .low = 1, .high = 65536},
    {"grad-accum-steps", .kind = ATT_FLAG_INT, .value = "N", .help = "batches per update", RECIPE(grad_accum_steps),
     .low = 1, .high = 65536},
    {"opt", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "optimiser", .choice = choose_optimizer, RECIPE(optimizer)},
    {"momentum", .kind = ATT_FLAG_REAL, .value = "X", .help = "of sgd", RECIPE(momentum), .low = 0, .high = 0.999999},
    {"opt-betas", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "of adamw", BETAS, .low = 0, .high = 0.999999},
    {"opt-eps", .kind = ATT_FLAG_REAL, .value = "X", .help = "of adamw", RECIPE(eps), .low = 1e-30, .high = 1},
    {"weight-decay", .kind = ATT_FLAG_REAL, .value = "X", .help = "weight decay", RECIPE(weight_decay), .low = 0,
     .high = 1e3},
    {"weight-decay-on", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "weights: not on norms, biases, position and class token; all: on every parameter",
     .choice = choose_decayed, RECIPE(weight_decay_on)},
    {"layer-decay", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "factor by which the learning rate falls from one layer to the one below it", RECIPE(layer_decay),
     .low = 0, .high = 1, .open = true},
    {"layer-decay-min-scale", .kind = ATT_FLAG_REAL, .value = "X", .help = "least factor of a layer's learning rate",
     RECIPE(layer_decay_min_scale), .low = 0, .high = 1},
    {"layer-decay-no-opt-scale", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "layers with a smaller factor are frozen; 0: none", RECIPE(layer_decay_no_opt_scale), .low = 0, .high = 1},
    {"clip-grad", .kind = ATT_FLAG_REAL, .value = "X", .help = "largest norm of the gradient", RECIPE(clip_grad),
     .low = 0, .high = 1e9, .open = true},
    {"lr", .kind = ATT_FLAG_REAL, .value = "X", .help = "learning rate; default: --lr-base scaled by the batch",
     RECIPE(lr), .low = 0, .high = 1e3, .open = true},
    {"lr-base", .kind = ATT_FLAG_REAL, .value = "X", .help = "learning rate for a batch of 256", RECIPE(lr_base),
     .low = 0, .high = 1e3},
    {"sched", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "schedule", .choice = choose_schedule, RECIPE(schedule)},
    {"sched-on-updates", .kind = ATT_FLAG_SWITCH, .help = "the rate changes at every update", RECIPE(sched_on_updates)},
    {"warmup-epochs", .kind = ATT_FLAG_INT, .value = "N", .help = "epochs in which the rate rises, fewer than --epochs",
     RECIPE(warmup_epochs), .low = 0, .high = 1e6},
    {"warmup-lr", .kind = ATT_FLAG_REAL, .value = "X", .help = "learning rate at the start of the warm-up",
     RECIPE(warmup_lr), .low = 0, .high = 1e3},
    {"min-lr", .kind = ATT_FLAG_REAL, .value = "X", .help = "lowest learning rate", RECIPE(min_lr), .low = 0,
     .high = 1e3},
    {"decay-epochs", .kind = ATT_FLAG_REAL, .value = "X", .help = "step: epochs between two steps",
     RECIPE(decay_epochs), .low = 1e-6, .high = 1e6},
    {"decay-rate", .alias = "dr", .kind = ATT_FLAG_REAL, .value = "X", .help = "step, multistep: factor",
     RECIPE(decay_rate), .low = 0, .high = 1},
    {"decay-milestones", .kind = ATT_FLAG_INTS, .value = "N...",
     .help = "multistep: epochs before which the rate falls", RECIPE(decay_milestones),
     .count_offset = offsetof(att_train_options, decay_milestone_count), .low = 1, .high = 1e6,
     .most = ATT_MOST_MILESTONES},
    {"model-ema", .kind = ATT_FLAG_SWITCH, .help = "keep a moving average of the weights", RECIPE(model_ema)},
    {"model-ema-decay", .kind = ATT_FLAG_REAL, .value = "X", .help = "decay of the average", RECIPE(model_ema_decay),
     .low = 0, .high = 1},
    {"model-ema-warmup", .kind = ATT_FLAG_SWITCH, .help = "smaller decay at first", RECIPE(model_ema_warmup)},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .help = "of weights, data order and augmentation", RECIPE(seed)},
};

static const att_flag mix_options[] = {
    {"mixup", .kind = ATT_FLAG_REAL, .value = "X", .help = "Mixup: shares from Beta(X, X); 0: none", RECIPE(mixup),
     .low = 0, .high = 1e6},
    {"cutmix", .kind = ATT_FLAG_REAL, .value = "X", .help = "CutMix: shares from Beta(X, X); 0: none", RECIPE(cutmix),
     .low = 0, .high = 1e6},
    {"mixup-prob", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of mixing", RECIPE(mixup_prob), .low = 0,
     .high = 1},
    {"mixup-switch-prob", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of CutMix if both are on",
     RECIPE(mixup_switch_prob), .low = 0, .high = 1},
    {"mixup-mode", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "which images share one random draw",
     .choice = choose_mixup_mode, RECIPE(mixup_mode)},
    {"mixup-off-epoch", .kind = ATT_FLAG_INT, .value = "N", .help = "epoch from which nothing is mixed; 0: none",
     RECIPE(mixup_off_epoch), .low = 0, .high = 1e6},
    {"cutmix-minmax", .kind = ATT_FLAG_PAIR, .value = "X X",
     .help = "CutMix: range of the box's sides relative to the image's, instead of --cutmix", RECIPE(cutmix_minmax),
     .low = 0, .high = 1, .open = true},
};

GROUP(mix_group, "Mixing (the training loss is then that of mixed images)", train, mix_options, NULL);

static void recipe_defaults(att_context *context, void *values)
{
    (void)context;
    att_train_options *options = values;
    *options = att_train_options_defaults();
}

GROUP(recipe_group, "Recipe", train, recipe_options, recipe_defaults);

/* The options of all tasks, in the tasks' order. */
static int make_task_rows(att_context *context, att_flag *rows, int most)
{
    int made = 0;
    for (int t = 0; t < att_task_count(context); t++) {
        const att_task_info task = att_task_at(context, t);
        for (int i = 0; i < task.option_count; i++) {
            att_flag row = att_flag_of_option(&task.options[i], 0);
            att_put_row(&row, rows, most, &made);
        }
    }
    return made;
}

static void task_defaults(att_context *context, void *values)
{
    for (int t = 0; t < att_task_count(context); t++)
        att_task_defaults(context, att_task_at(context, t).name, values);
}

#define LOSS "Targets and loss"

static const att_flag_group task_group = {LOSS, .make_rows = make_task_rows, .defaults = task_defaults};

static const att_flag teacher_options[] = {
    {"teacher", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "learn from the answers of this network, too: a checkpoint of any family, a folder with one, or a name of "
             "pretrained weights (timm/NETWORK.TAG, hf-hub:ORG/NAME, torchvision/NETWORK.WEIGHTS)",
     ATT_FLAG_AT(att_recipe_files, teacher)},
    {"teacher-model", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "name of the teacher's network, if FILE lacks it",
     .choice = att_choose_model, .advisory = true, ATT_FLAG_AT(att_recipe_files, teacher_model)},
};

GROUP(teacher_group, LOSS, files, teacher_options, NULL);

static bool declares(const att_task_info *task, const char *key)
{
    for (int i = 0; i < task->option_count; i++)
        if (strcmp(task->options[i].key, key) == 0)
            return true;
    return false;
}

/* The keys of the tasks' options, one task after another. */
static const char *task_key(const void *user, int index)
{
    const att_context *context = user;
    for (int t = 0; t < att_task_count(context); t++) {
        const att_task_info task = att_task_at(context, t);
        if (index < task.option_count)
            return task.options[index].key;
        index -= task.option_count;
    }
    return NULL;
}

static bool is_declared(const att_context *context, const char *key)
{
    const char *declared;
    for (int i = 0; (declared = task_key(context, i)); i++)
        if (strcmp(declared, key) == 0)
            return true;
    return false;
}

att_status att_recipe_check_keys(att_context *context, const att_option_values *task)
{
    int count = 0;
    while (task_key(context, count))
        count++;
    for (int i = 0; i < task->count; i++) {
        const char *key = task->items[i].key;
        if (is_declared(context, key))
            continue;
        const char *nearest = att_text_nearest(key, task_key, context, count);
        return att_fail(context, ATT_ERR_ARGUMENT, "task: no task has an option \"%s\"%s%s%s", key,
                        nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    }
    return task->overflowed ? att_fail(context, ATT_ERR_ARGUMENT,
                                       "task: an option is longer than %d bytes, or there are more than %d",
                                       ATT_OPTION_TEXT_BYTES - 1, ATT_MOST_OPTIONS)
                            : ATT_OK;
}

/* Whether an option of `other` that `task` lacks has a value other than its default. *option: that option. */
static bool find_foreign(att_context *context, const att_option_values *given, const att_task_info *task,
                         const att_task_info *other, const att_option **option)
{
    att_option_values defaults = att_options_none();
    att_task_defaults(context, other->name, &defaults);
    for (int i = 0; i < other->option_count; i++) {
        *option = &other->options[i];
        if (!declares(task, (*option)->key) && att_options_find(given, (*option)->key) &&
            !att_option_same(*option, given, &defaults))
            return true;
    }
    return false;
}

att_status att_recipe_check_task(att_context *context, const att_recipe *recipe, const att_task_info *task)
{
    for (int t = 0; t < att_task_count(context); t++) {
        const att_task_info other = att_task_at(context, t);
        const att_option *option;
        if (find_foreign(context, &recipe->task, task, &other, &option))
            return att_fail(context, ATT_ERR_ARGUMENT, "%s is an option of the task \"%s\", not of \"%s\"", option->key,
                            other.name, task->name);
    }
    return ATT_OK;
}

void att_recipe_take_task(att_recipe *recipe, const att_task_info *task)
{
    att_option_values *options = &recipe->task;
    for (int i = options->count - 1; i >= 0; i--)
        if (!declares(task, options->items[i].key))
            att_options_unset(options, options->items[i].key);
    if (!recipe->train.eval_metric)
        recipe->train.eval_metric = task->metrics[task->best].name;
}

/* The options of all families that only training reads, each key once. */
static int make_regular_rows(att_context *context, att_flag *rows, int most)
{
    int made = 0;
    (void)context;
    for (int f = 0; f < att_model_family_count(); f++) {
        const att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count; i++) {
            const att_option *option = &family.options[i];
            if (!option->training || att_declared_find(option->key) != option)
                continue;
            att_flag row = att_flag_of_option(option, 0);
            att_put_row(&row, rows, most, &made);
        }
    }
    return made;
}

/* Sets each option to its lowest value, which turns the regularisation off. */
static void regular_defaults(att_context *context, void *values)
{
    att_flag rows[ATT_MOST_OPTIONS];
    int count = make_regular_rows(context, rows, ATT_MOST_OPTIONS);
    for (int i = 0; i < count && i < ATT_MOST_OPTIONS; i++)
        att_options_set(values, rows[i].declared->key, rows[i].declared->low);
}

static const att_flag_group regular_group = {"Regularisation", .make_rows = make_regular_rows,
                                             .defaults = regular_defaults};

/* --- files and the run -------------------------------------------------------------------------------------------- */

static const att_flag file_options[] = {
    {"initial-checkpoint", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help =
         "weights to start from: a file, a folder with one (of a run: its best checkpoint), or a name of pretrained "
         "weights (timm/NETWORK.TAG, hf-hub:ORG/NAME, torchvision/NETWORK.WEIGHTS); the head is initialised if the "
         "file has no head of the task or another number of classes",
     ATT_FLAG_AT(att_recipe_files, initial_checkpoint)},
    {"resume", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "checkpoint to continue in its folder, with the args.yaml beside it; a run's folder: its last checkpoint; "
             "auto: the last checkpoint of the experiment",
     ATT_FLAG_AT(att_recipe_files, resume)},
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .help = "folder of all runs",
     ATT_FLAG_AT(att_recipe_files, output)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "the run's folder in there; default: date-time-model-size", ATT_FLAG_AT(att_recipe_files, experiment)},
};

static void file_defaults(att_context *context, void *values)
{
    (void)context;
    ((att_recipe_files *)values)->output = "output/train";
}

GROUP(file_group, "Files", files, file_options, file_defaults);

static const att_flag run_options[] = {
    {"workers", .letter = 'j', .kind = ATT_FLAG_INT, .value = "N", .help = "threads that read and decode images",
     RECIPE(workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = ATT_FLAG_SWITCH,
     .help = "continue without images that cannot be decoded; each is logged once", RECIPE(skip_corrupt)},
    {"lanes", .kind = ATT_FLAG_INT, .value = "N",
     .help = "partial sums of the gradient in all processes together; their number determines its rounding; 0: one per "
             "thread",
     RECIPE(lanes), .low = 0, .high = ATT_MOST_LANES},
    {"sync-bn", .kind = ATT_FLAG_SWITCH,
     .help = "with several processes: batch norm takes statistics over the images of all of them, which gives the "
             "results of one process",
     RECIPE(sync_bn)},
    {"memory", .kind = ATT_FLAG_SIZE, .value = "SIZE",
     .help =
         "most memory for weights, optimiser, gradients, saved activations and evaluation, as 800M or 4G; less memory "
         "makes training slower and leaves its results unchanged; 0: a fixed rule for each network, or in a resume the "
         "checkpoint's SIZE",
     RECIPE(memory), .open = true},
    {"eval-metric", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "metric of the task that determines the best epoch; default: the task's choice", .choice = choose_metric,
     .advisory = true, RECIPE(eval_metric)},
    {"log-interval", .kind = ATT_FLAG_INT, .value = "N", .help = "updates between two logged updates",
     RECIPE(log_interval), .low = 1, .high = 1e9},
    {"checkpoint-hist", .kind = ATT_FLAG_INT, .value = "N", .help = "checkpoints to keep, the best ones",
     RECIPE(checkpoint_hist), .low = 1, .high = 1000},
    {"recovery-interval", .kind = ATT_FLAG_LONG, .value = "N",
     .help = "updates between two writes of last.safetensors; 0: after epochs only", RECIPE(checkpoint_every_updates),
     .low = 0, .high = 1e15},
};

GROUP(run_group, "Run", train, run_options, NULL);

/* --- instruments -------------------------------------------------------------------------------------------------- */

static const att_flag measure_options[] = {
    {"measure", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "instruments to measure with, separated by commas, or all; attscope measure --help describes them",
     .choice = att_choose_instrument, .advisory = true, ATT_FLAG_AT(att_recipe_measure, with)},
    {"measure-nodes", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "only nodes whose names match: names, which may contain * and ?, separated by commas, as in "
             "'blocks.0.attn,blocks.1*.attn'",
     ATT_FLAG_AT(att_recipe_measure, nodes)},
};

static void measure_defaults(att_context *context, void *values)
{
    (void)context;
    att_recipe_measure *measure = values;
    measure->nodes = "*";
}

#define INSTRUMENTS "Instruments (weights stay the same to the bit)"
GROUP(measure_group, INSTRUMENTS, measure, measure_options, measure_defaults);

static const att_flag interval_options[] = {
    {"measure-every", .kind = ATT_FLAG_LONG, .value = "N",
     .help = "updates between two measurements; each uses the images of its update", RECIPE(measure_every), .low = 1,
     .high = 1e15},
    {"alert", .kind = ATT_FLAG_SWITCH,
     .help = "report entropy collapse, rank collapse, stiffness spikes and dead heads, with layer, update and what to "
             "try; measures what the rules read",
     RECIPE(alert)},
};

GROUP(interval_group, INSTRUMENTS, train, interval_options, NULL);

/* The defaults of recipe_group fill the whole of `train`; the other groups in `train` have none. */
static const att_flag_use parts[] = {
    {&data_group, offsetof(att_recipe, data)},
    {&att_recipe_network_group, offsetof(att_recipe, network)},
    {&att_recipe_preprocess_group, offsetof(att_recipe, preprocess)},
    {&image_group, offsetof(att_recipe, images)},
    {&repeat_group, offsetof(att_recipe, train)},
    {&task_group, offsetof(att_recipe, task)},
    {&teacher_group, offsetof(att_recipe, files)},
    {&regular_group, offsetof(att_recipe, network.options)},
    {&recipe_group, offsetof(att_recipe, train)},
    {&mix_group, offsetof(att_recipe, train)},
    {&run_group, offsetof(att_recipe, train)},
    {&measure_group, offsetof(att_recipe, measure)},
    {&interval_group, offsetof(att_recipe, train)},
    {&file_group, offsetof(att_recipe, files)},
    {&att_recipe_engine_group, offsetof(att_recipe, engine)},
};

const att_flag_group att_recipe_group = {.parts = parts, .part_count = sizeof parts / sizeof *parts};

att_status att_recipe_flags(att_context *context, att_flags **flags)
{
    const att_flag_use whole = {&att_recipe_group, 0};
    const att_flags_options options = {.uses = &whole, .use_count = 1, .size = sizeof(att_recipe), .command = "train"};
    return att_flags_create(context, &options, flags);
}
