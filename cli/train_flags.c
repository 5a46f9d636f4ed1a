#include "train_flags.h"

#include <string.h>

#include "metrics.h"

#define GROUP(name, title, table, starts) \
    static const cli_group name = {(title), (table), sizeof(table) / sizeof *(table), .defaults = (starts)}

/* --- data --------------------------------------------------------------------------------------------------------- */

static const cli_option data_options[] = {
    {"data-dir", .alias = "data", .kind = CLI_TEXT, .value = "DATA",
     .help = "the data set, where it is not the operand", CLI_AT(train_data, data_dir)},
    {"train-split", .kind = CLI_TEXT, .value = "NAME", .help = "what to train on", CLI_AT(train_data, train_split)},
    {"val-split", .kind = CLI_TEXT, .value = "NAME", .help = "what to evaluate on; '': nothing",
     CLI_AT(train_data, val_split), .empty = true},
    {"class-map", .kind = CLI_TEXT, .value = "FILE", .help = "one class a line; its line is its number, from 0",
     CLI_AT(train_data, class_map)},
    {"coarse-labels", .kind = CLI_FLAG, .help = "CIFAR-100: its 20 superclasses instead of its 100 classes",
     CLI_AT(train_data, coarse_labels)},
    {"cache-bytes", .kind = CLI_LONG, .value = "N", .help = "most memory for the files of a .tar.gz",
     CLI_AT(train_data, cache_bytes), .low = 0, .high = 1e15},
};

static void data_defaults(void *values)
{
    train_data *data = values;
    data->train_split = "train";
    data->val_split = "validation";
    data->cache_bytes = (int64_t)att_dataset_options_defaults().cache_bytes;
}

GROUP(data_group, "Data", data_options, data_defaults);

att_dataset_options cli_train_data_options(const train_data *data, const char *split)
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
    static const char *const names[] = {"rrc", "pad", "center"};
    return index < 3 ? names[index] : NULL;
}

static const char *choose_train_interpolation(int index)
{
    return index == 0 ? "random" : cli_choice_interpolation(index - 1);
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

static const cli_option image_options[] = {
    {"no-aug", .kind = CLI_FLAG,
     .help = "every image as evaluation sees it: nothing random, but for mixing and repeats",
     CLI_AT(train_images, no_aug)},
    {"train-crop-mode", .kind = CLI_TEXT, .value = "NAME",
     .help = "random resized crop, shift over black borders, or centre crop", .choice = choose_crop,
     CLI_AT(train_images, crop_mode)},
    {"scale", .kind = CLI_REALS, .value = "X X", .help = "rrc: area of the crop", CLI_AT(train_images, scale),
     .low = 1e-6, .high = 1, .most = 2},
    {"ratio", .kind = CLI_REALS, .value = "X X", .help = "rrc: width over height", CLI_AT(train_images, ratio),
     .low = 1e-3, .high = 1e3, .most = 2},
    {"pad", .kind = CLI_INT, .value = "N", .help = "pad: most pixels of a shift", CLI_AT(train_images, pad), .low = 0,
     .high = 16384},
    {"hflip", .kind = CLI_REAL, .value = "P", .help = "probability of a left-right flip", CLI_AT(train_images, hflip),
     .low = 0, .high = 1},
    {"vflip", .kind = CLI_REAL, .value = "P", .help = "probability of an upside-down flip", CLI_AT(train_images, vflip),
     .low = 0, .high = 1},
    {"color-jitter", .kind = CLI_REAL, .value = "X",
     .help = "brightness, contrast and saturation by factors from 1 - X to 1 + X; not with --aa",
     CLI_AT(train_images, color_jitter), .low = 0, .high = 10},
    {"aa", .kind = CLI_TEXT, .value = "TEXT", .help = "RandAugment, described as by timm: rand-m9-mstd0.5-inc1",
     CLI_AT(train_images, aa)},
    {"reprob", .kind = CLI_REAL, .value = "P", .help = "probability of random erasing", CLI_AT(train_images, reprob),
     .low = 0, .high = 1},
    {"remode", .kind = CLI_TEXT, .value = "NAME", .help = "what erased boxes hold: 0, one colour, or noise",
     .choice = choose_remode, CLI_AT(train_images, remode)},
    {"recount", .kind = CLI_INT, .value = "N", .help = "most boxes of an image", CLI_AT(train_images, recount),
     .low = 1, .high = 100},
    {"aug-repeats", .kind = CLI_REAL, .value = "N",
     .help = "times that an image comes in an epoch, which has correspondingly fewer of them; 0: once",
     CLI_AT(train_images, aug_repeats), .low = 0, .high = 100},
    {"train-interpolation", .kind = CLI_TEXT, .value = "NAME",
     .help = "of resizing in training; without it that of --interpolation", .choice = choose_train_interpolation,
     CLI_AT(train_images, interpolation)},
};

static void image_defaults(void *values)
{
    train_images *images = values;
    att_transform_options transform = att_transform_options_defaults(1, 1, 1);
    images->crop_mode = "rrc";
    for (int i = 0; i < 2; i++) {
        images->scale.values[i] = transform.scale[i];
        images->ratio.values[i] = transform.ratio[i];
    }
    images->scale.count = images->ratio.count = 2;
    images->pad = transform.pad;
    images->hflip = 0.5;
    images->color_jitter = 0.4;
    images->remode = "pixel";
    images->recount = 1;
}

GROUP(image_group, "Augmentation", image_options, image_defaults);

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

#define RECIPE(member) CLI_AT(att_train_options, member)
static const cli_option recipe_options[] = {
    {"epochs", .kind = CLI_INT, .value = "N", .help = "passes over the data; 0: write the untrained network",
     RECIPE(epochs), .low = 0, .high = 1e6},
    {"batch-size", .letter = 'b', .kind = CLI_INT, .value = "N", .help = "images of a batch", RECIPE(batch_size),
     .low = 1, .high = 65536},
    {"grad-accum-steps", .kind = CLI_INT, .value = "N", .help = "batches of an update", RECIPE(grad_accum_steps),
     .low = 1, .high = 65536},
    {"opt", .kind = CLI_TEXT, .value = "NAME", .help = "optimiser", .choice = choose_optimizer, RECIPE(optimizer)},
    {"momentum", .kind = CLI_REAL, .value = "X", .help = "of sgd", RECIPE(momentum), .low = 0, .high = 0.999999},
    {"opt-eps", .kind = CLI_REAL, .value = "X", .help = "of adamw", RECIPE(eps), .low = 1e-30, .high = 1},
    {"weight-decay", .kind = CLI_REAL, .value = "X", .help = "pull of the weights to zero", RECIPE(weight_decay),
     .low = 0, .high = 1e3},
    {"weight-decay-on", .kind = CLI_TEXT, .value = "NAME",
     .help = "weights: not on norms, biases, position and class token; all: on every parameter",
     .choice = choose_decayed, RECIPE(weight_decay_on)},
    {"clip-grad", .kind = CLI_REAL, .value = "X", .help = "largest norm of the gradient", RECIPE(clip_grad), .low = 0,
     .high = 1e9, .open = true},
    {"lr", .kind = CLI_REAL, .value = "X", .help = "learning rate; without it lr-base scaled by the batch", RECIPE(lr),
     .low = 0, .high = 1e3, .open = true},
    {"lr-base", .kind = CLI_REAL, .value = "X", .help = "learning rate for a batch of 256", RECIPE(lr_base), .low = 0,
     .high = 1e3},
    {"sched", .kind = CLI_TEXT, .value = "NAME", .help = "schedule", .choice = choose_schedule, RECIPE(schedule)},
    {"sched-on-updates", .kind = CLI_FLAG, .help = "the rate changes at every update", RECIPE(sched_on_updates)},
    {"warmup-epochs", .kind = CLI_INT, .value = "N", .help = "epochs in which the rate rises, fewer than --epochs",
     RECIPE(warmup_epochs), .low = 0, .high = 1e6},
    {"warmup-lr", .kind = CLI_REAL, .value = "X", .help = "the rate it rises from", RECIPE(warmup_lr), .low = 0,
     .high = 1e3},
    {"min-lr", .kind = CLI_REAL, .value = "X", .help = "the rate it falls to", RECIPE(min_lr), .low = 0, .high = 1e3},
    {"decay-epochs", .kind = CLI_REAL, .value = "X", .help = "step: epochs between two steps", RECIPE(decay_epochs),
     .low = 1e-6, .high = 1e6},
    {"decay-rate", .alias = "dr", .kind = CLI_REAL, .value = "X", .help = "step, multistep: factor", RECIPE(decay_rate),
     .low = 0, .high = 1},
    {"model-ema", .kind = CLI_FLAG, .help = "keep an average of the weights", RECIPE(model_ema)},
    {"model-ema-decay", .kind = CLI_REAL, .value = "X", .help = "of the average", RECIPE(model_ema_decay), .low = 0,
     .high = 1},
    {"model-ema-warmup", .kind = CLI_FLAG, .help = "the average forgets faster at first", RECIPE(model_ema_warmup)},
    {"seed", .kind = CLI_SEED, .value = "N", .help = "of weights, data order and augmentation", RECIPE(seed)},
};

static const cli_option mix_options[] = {
    {"mixup", .kind = CLI_REAL, .value = "X", .help = "Mixup: shares from Beta(X, X); 0: none", RECIPE(mixup), .low = 0,
     .high = 1e6},
    {"cutmix", .kind = CLI_REAL, .value = "X", .help = "CutMix: shares from Beta(X, X); 0: none", RECIPE(cutmix),
     .low = 0, .high = 1e6},
    {"mixup-prob", .kind = CLI_REAL, .value = "P", .help = "probability of mixing at all", RECIPE(mixup_prob), .low = 0,
     .high = 1},
    {"mixup-switch-prob", .kind = CLI_REAL, .value = "P", .help = "probability of CutMix where both are on",
     RECIPE(mixup_switch_prob), .low = 0, .high = 1},
    {"mixup-mode", .kind = CLI_TEXT, .value = "NAME", .help = "what shares a draw", .choice = choose_mixup_mode,
     RECIPE(mixup_mode)},
    {"mixup-off-epoch", .kind = CLI_INT, .value = "N", .help = "epoch from which on nothing is mixed; 0: never",
     RECIPE(mixup_off_epoch), .low = 0, .high = 1e6},
};

#define MIXING "Mixing (the training loss is then that of mixed images)"
GROUP(mix_group, MIXING, mix_options, NULL);

static const cli_option minmax_options[] = {
    {"cutmix-minmax", .kind = CLI_REALS, .value = "X X",
     .help = "CutMix with boxes whose sides are such shares of the image's, instead of its alpha",
     CLI_AT(train_settings, cutmix_minmax), .low = 0, .high = 1, .most = 2},
};

GROUP(minmax_group, MIXING, minmax_options, NULL);

static void recipe_defaults(void *values)
{
    att_train_options *options = values;
    *options = att_train_options_defaults();
}

GROUP(recipe_group, "Recipe", recipe_options, recipe_defaults);

static const cli_option list_options[] = {
    {"opt-betas", .kind = CLI_REALS, .value = "X X", .help = "of adamw", CLI_AT(train_settings, betas), .low = 0,
     .high = 0.999999, .most = 2},
    {"decay-milestones", .kind = CLI_REALS, .value = "N...", .help = "multistep: epochs before which the rate falls",
     CLI_AT(train_settings, milestones), .low = 1, .high = 1e6, .most = ATT_MOST_MILESTONES},
};

static void list_defaults(void *values)
{
    train_settings *s = values;
    att_train_options options = att_train_options_defaults();
    s->betas = (cli_reals){{options.beta1, options.beta2}, 2};
    s->milestones.count = options.decay_milestone_count;
    for (int i = 0; i < s->milestones.count; i++)
        s->milestones.values[i] = options.decay_milestones[i];
}

GROUP(list_group, "Recipe", list_options, list_defaults);

/* What every task declares, in the tasks' order. */
static const cli_option *task_rows(int *count)
{
    static cli_option rows[ATT_MOST_OPTIONS];
    static char names[ATT_MOST_OPTIONS][ATT_OPTION_KEY];
    static int made;
    *count = made;
    if (made > 0)
        return rows;
    for (int t = 0; t < att_task_count(NULL); t++) {
        const att_task_info task = att_task_at(NULL, t);
        for (int i = 0; i < task.option_count && made < ATT_MOST_OPTIONS; i++, made++) {
            cli_flag_of(&task.options[i], names[made]);
            rows[made] = cli_declared_row(&task.options[i], names[made], 0);
        }
    }
    *count = made;
    return rows;
}

static void task_defaults(void *values)
{
    for (int t = 0; t < att_task_count(NULL); t++)
        att_task_defaults(NULL, att_task_at(NULL, t).name, values);
}

static const cli_group task_group = {"Targets and loss", .rows = task_rows, .defaults = task_defaults};

static bool declares(const att_task_info *task, const char *key)
{
    for (int i = 0; i < task->option_count; i++)
        if (strcmp(task->options[i].key, key) == 0)
            return true;
    return false;
}

/* Whether an option of `other` was given that `task` lacks; *option: which one. */
static bool find_foreign(const train_settings *settings, const att_task_info *task, const att_task_info *other,
                         const att_option **option)
{
    att_option_values defaults = att_options_none();
    att_task_defaults(NULL, other->name, &defaults);
    for (int i = 0; i < other->option_count; i++) {
        *option = &other->options[i];
        if (!declares(task, (*option)->key) && att_options_find(&settings->task, (*option)->key) &&
            !cli_declared_same(*option, &settings->task, &defaults))
            return true;
    }
    return false;
}

int cli_train_task_check(const train_settings *settings, const att_task_info *task)
{
    for (int t = 0; t < att_task_count(NULL); t++) {
        const att_task_info other = att_task_at(NULL, t);
        const att_option *option;
        char flag[ATT_OPTION_KEY];
        if (!find_foreign(settings, task, &other, &option))
            continue;
        cli_flag_of(option, flag);
        return cli_usage("--%s is an option of the task \"%s\", not of \"%s\"", flag, other.name, task->name);
    }
    return CLI_OK;
}

void cli_train_task_settle(train_settings *settings, const att_task_info *task)
{
    att_option_values *options = &settings->task;
    for (int i = options->count - 1; i >= 0; i--)
        if (!declares(task, options->items[i].key))
            att_options_unset(options, options->items[i].key);
    if (!settings->recipe.eval_metric)
        settings->recipe.eval_metric = task->metrics[task->best].name;
}

/* What families declare for training only, once each. */
static const cli_option *regular_rows(int *count)
{
    static cli_option rows[ATT_MOST_OPTIONS];
    static char names[ATT_MOST_OPTIONS][ATT_OPTION_KEY];
    static int made;
    *count = made;
    if (made > 0)
        return rows;
    for (int f = 0; f < att_model_family_count(); f++) {
        const att_family_info family = att_model_family_at(f);
        for (int i = 0; i < family.option_count && made < ATT_MOST_OPTIONS; i++) {
            const att_option *option = &family.options[i];
            if (!option->training || cli_declared_find(option->key) != option)
                continue;
            cli_flag_of(option, names[made]);
            rows[made] = cli_declared_row(option, names[made], 0);
            made++;
        }
    }
    *count = made;
    return rows;
}

/* Off. */
static void regular_defaults(void *values)
{
    int count;
    const cli_option *rows = regular_rows(&count);
    for (int i = 0; i < count; i++)
        att_options_set(values, rows[i].declared->key, rows[i].declared->low);
}

static const cli_group regular_group = {"Regularisation", .rows = regular_rows, .defaults = regular_defaults};

/* --- files and the run -------------------------------------------------------------------------------------------- */

static const cli_option file_options[] = {
    {"config", .letter = 'c', .kind = CLI_TEXT, .value = "FILE",
     .help = "YAML file of these options; the command line wins", CLI_AT(train_files, config), .once = true},
    {"initial-checkpoint", .kind = CLI_TEXT, .value = "FILE",
     .help = "weights to start from, a file or a folder with one, of a run its best; the head is initialised where the "
             "file has none of the task or of as many classes",
     CLI_AT(train_files, initial_checkpoint)},
    {"resume", .kind = CLI_TEXT, .value = "FILE",
     .help =
         "checkpoint to continue in its folder, with the args.yaml beside it; of a run's folder the last one; auto: "
         "the experiment's last",
     CLI_AT(train_files, resume)},
    {"output", .kind = CLI_TEXT, .value = "FOLDER", .help = "where runs lie", CLI_AT(train_files, output)},
    {"experiment", .kind = CLI_TEXT, .value = "NAME",
     .help = "this run's folder in there; without it date-time-model-size", CLI_AT(train_files, experiment)},
};

static void file_defaults(void *values)
{
    ((train_files *)values)->output = "output/train";
}

GROUP(file_group, "Files", file_options, file_defaults);

static const cli_option run_options[] = {
    {"workers", .letter = 'j', .kind = CLI_INT, .value = "N", .help = "threads that read and decode images",
     RECIPE(workers), .low = 0, .high = 256},
    {"skip-corrupt", .kind = CLI_FLAG, .help = "go on without images that cannot be decoded; each is named once",
     RECIPE(skip_corrupt)},
    {"lanes", .kind = CLI_INT, .value = "N",
     .help = "partial sums of the gradient, added up after each batch; decides its rounding; 0: one per thread",
     RECIPE(lanes), .low = 0, .high = 1024},
    {"memory", .kind = CLI_SIZE, .value = "SIZE",
     .help =
         "most memory for weights, optimiser, gradients, what is kept of a batch, and evaluation, as 800M or 4G: the "
         "less, the more is computed again; changes no weight, only the speed; 0: a fixed rule for each network, or in "
         "a resume the checkpoint's SIZE",
     RECIPE(memory), .open = true},
    {"eval-metric", .kind = CLI_TEXT, .value = "NAME",
     .help = "the task's metric that decides which epoch is best; without it the task chooses", .choice = choose_metric,
     RECIPE(eval_metric)},
    {"log-interval", .kind = CLI_INT, .value = "N", .help = "updates between two lines of the log",
     RECIPE(log_interval), .low = 1, .high = 1e9},
    {"checkpoint-hist", .kind = CLI_INT, .value = "N", .help = "checkpoints to keep, the best ones",
     RECIPE(checkpoint_hist), .low = 1, .high = 1000},
    {"recovery-interval", .kind = CLI_LONG, .value = "N",
     .help = "updates after which last.safetensors is rewritten within an epoch; 0: after epochs only",
     RECIPE(checkpoint_every_updates), .low = 0, .high = 1e15},
};

GROUP(run_group, "Run", run_options, NULL);

/* --- instruments -------------------------------------------------------------------------------------------------- */

static const cli_option measure_options[] = {
    {"measure", .kind = CLI_TEXT, .value = "LIST",
     .help = "instruments to look on, by commas, or all; attscope measure --help says what they measure",
     .choice = cli_choice_instrument, .advisory = true, CLI_AT(train_measure, with)},
    {"measure-every", .kind = CLI_LONG, .value = "N", .help = "updates between two measurements, of an update's images",
     CLI_AT(train_measure, every), .low = 1, .high = 1e15},
    {"measure-nodes", .kind = CLI_TEXT, .value = "PATTERN", .help = "only nodes whose name fits, as in 'blocks.*.attn'",
     CLI_AT(train_measure, nodes)},
};

static void measure_defaults(void *values)
{
    train_measure *measure = values;
    measure->every = CLI_MEASURE_EVERY;
    measure->nodes = "*";
}

GROUP(measure_group, "Instruments (weights stay the same to the bit)", measure_options, measure_defaults);

/* A group without defaults follows the one that sets its struct. */
const cli_use cli_train_uses[CLI_TRAIN_USES] = {
    {&data_group, offsetof(train_settings, data)},
    {&cli_group_network, offsetof(train_settings, network)},
    {&cli_group_preprocess, offsetof(train_settings, preprocess)},
    {&image_group, offsetof(train_settings, images)},
    {&task_group, offsetof(train_settings, task)},
    {&regular_group, offsetof(train_settings, network.options)},
    {&recipe_group, offsetof(train_settings, recipe)},
    {&list_group, 0},
    {&mix_group, offsetof(train_settings, recipe)},
    {&minmax_group, 0},
    {&run_group, offsetof(train_settings, recipe)},
    {&measure_group, offsetof(train_settings, measure)},
    {&file_group, offsetof(train_settings, files)},
    {&cli_group_engine, offsetof(train_settings, engine)},
    {&cli_group_output, offsetof(train_settings, output)},
};
