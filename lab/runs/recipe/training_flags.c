#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <attscope/lab/recipe.h>

#include "base/core/error.h"
#include "base/core/options.h"
#include "lab/runs/recipe/recipe.h"
#include "networks/tasks/task.h"
#include "study/train/options.h"

/* part: the member of att_recipe that holds the group's struct. */
#define GROUP(name, title, part, table, starts)                                                                  \
    static const att_flag_group name = {(title), (table), sizeof(table) / sizeof *(table), .defaults = (starts), \
                                        .owner = #part}

/* --- data --------------------------------------------------------------------------------------------------------- */

static const att_flag data_options[] = {
    {"data-dir", .alias = "data", .kind = ATT_FLAG_TEXT, .value = "DATA",
     .help = "the data set, if it is not given as operand", ATT_FLAG_AT(att_recipe_data, data_dir)},
    {"train-split", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "train",
     .help = "split to train on, or tars in DATA: 'train-{000..146}.tar'", ATT_FLAG_AT(att_recipe_data, train_split)},
    {"val-split", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "validation",
     .help = "split to evaluate on, or tars in DATA; '': none", ATT_FLAG_AT(att_recipe_data, val_split), .empty = true},
    {"class-map", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "one class per line; class numbers are line numbers from 0", ATT_FLAG_AT(att_recipe_data, class_map)},
    {"coarse-labels", .kind = ATT_FLAG_SWITCH, .help = "CIFAR-100: its 20 superclasses instead of its 100 classes",
     ATT_FLAG_AT(att_recipe_data, coarse_labels)},
    {"reduce-zero-label", .kind = ATT_FLAG_INT, .value = "N",
     .help = "masks: 1: label 0 is no class, and label n is class n - 1; 0: label n is class n; -1: as DATA is usually "
             "read",
     ATT_FLAG_AT(att_recipe_data, reduce_zero_label), .low = -1, .high = 1},
    {"ignore-label", .kind = ATT_FLAG_INT, .value = "N",
     .help = "masks: a label that is no class, besides the usual ones; -1: none",
     ATT_FLAG_AT(att_recipe_data, ignore_label), .low = -1, .high = 65535},
    {"cache-bytes", .kind = ATT_FLAG_LONG, .value = "N", .help = "most memory for the files of a .tar.gz",
     ATT_FLAG_AT(att_recipe_data, cache_bytes), .low = 0, .high = 1e15},
};

static void data_defaults(att_context *context, void *values)
{
    (void)context;
    const att_dataset_options options = att_dataset_options_defaults();
    att_recipe_data *data = values;
    data->cache_bytes = (int64_t)options.cache_bytes;
    data->reduce_zero_label = options.reduce_zero_label;
    data->ignore_label = options.ignore_label;
}

GROUP(data_group, "Data", data, data_options, data_defaults);

att_dataset_options att_recipe_dataset_options(const att_context *context, const att_recipe *recipe, const char *split)
{
    const att_recipe_data *data = &recipe->data;
    att_dataset_options options = att_dataset_options_defaults();
    options.annotations = att_task_annotations(context, att_options_text(&recipe->network.options, "task"));
    options.reduce_zero_label = data->reduce_zero_label;
    options.ignore_label = data->ignore_label;
    options.split = split;
    options.class_map = data->class_map;
    options.coarse = data->coarse_labels;
    options.limits.exif_transpose = recipe->preprocess.exif_transpose;
    if (data->cache_bytes > 0)
        options.cache_bytes = (size_t)data->cache_bytes;
    return options;
}

/* --- images of the training --------------------------------------------------------------------------------------- */

static const att_flag image_options[] = {
    {"no-aug", .kind = ATT_FLAG_SWITCH,
     .help = "transform images as in evaluation: no random augmentation except mixing and repeats",
     ATT_FLAG_AT(att_recipe_images, no_aug)},
    {"train-crop-mode", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "random resized crop, shift over black borders, DeiT III's simple random crop over reflected borders, "
             "centre crop, the image without its aspect ratio (squash), the whole image with its aspect ratio (keep, "
             "within: images of several sizes; within rounds sides down, as torchvision's detectors), or "
             "mmsegmentation's random scale and crop (rsc); default: rrc, for detectors within",
     .choices = (const char *const[]){"rrc", "pad", "src", "center", "squash", "keep", "within", "rsc", NULL},
     ATT_FLAG_AT(att_recipe_images, crop_mode)},
    {"scale", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "rrc: area of the crop",
     ATT_FLAG_AT(att_recipe_images, scale), .low = 1e-6, .high = 1},
    {"ratio", .kind = ATT_FLAG_PAIR, .value = "X X", .help = "rrc: width over height",
     ATT_FLAG_AT(att_recipe_images, ratio), .low = 1e-3, .high = 100},
    {"pad", .kind = ATT_FLAG_INT, .value = "N", .help = "pad, src: most pixels of a shift",
     ATT_FLAG_AT(att_recipe_images, pad), .low = 0, .high = 16384},
    {"img-scale", .kind = ATT_FLAG_PAIR, .value = "N N",
     .help = "keep, within, rsc: longer and shorter side that the image is resized to, with its aspect ratio; default: "
             "those of "
             "the network's images",
     ATT_FLAG_AT(att_recipe_images, img_scale), .low = 1, .high = 16384, .open = true},
    {"ratio-range", .kind = ATT_FLAG_PAIR, .value = "X X", .start = "0.5 2", .help = "rsc: factors of --img-scale",
     ATT_FLAG_AT(att_recipe_images, ratio_range), .low = 1e-2, .high = 100},
    {"cat-max-ratio", .kind = ATT_FLAG_REAL, .value = "X", .start = "1",
     .help = "rsc: largest share of one class in a crop's mask; mmsegmentation's is 0.75; 1: any",
     ATT_FLAG_AT(att_recipe_images, cat_max_ratio), .low = 1e-2, .high = 1},
    {"hflip", .kind = ATT_FLAG_REAL, .value = "P", .start = "0.5", .help = "probability of a left-right flip",
     ATT_FLAG_AT(att_recipe_images, hflip), .low = 0, .high = 1},
    {"vflip", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of an upside-down flip",
     ATT_FLAG_AT(att_recipe_images, vflip), .low = 0, .high = 1},
    {"color-jitter", .kind = ATT_FLAG_REAL, .value = "X",
     .help =
         "brightness, contrast and saturation by factors from 1 - X to 1 + X; not with --aa; -1: 0.4, for detectors "
         "0",
     ATT_FLAG_AT(att_recipe_images, color_jitter), .low = -1, .high = 10},
    {"aa", .kind = ATT_FLAG_TEXT, .value = "TEXT", .help = "RandAugment, described as by timm: rand-m9-mstd0.5-inc1",
     ATT_FLAG_AT(att_recipe_images, aa)},
    {"three-augment", .alias = "ThreeAugment", .kind = ATT_FLAG_SWITCH,
     .help = "DeiT III's 3-Augment: grey values, solarisation or Gaussian blur, then --color-jitter; not with --aa",
     ATT_FLAG_AT(att_recipe_images, three_augment)},
    {"photometric-distortion", .kind = ATT_FLAG_SWITCH,
     .help = "mmsegmentation's brightness, contrast, saturation and hue, instead of --color-jitter; not with --aa and "
             "--three-augment",
     ATT_FLAG_AT(att_recipe_images, photometric_distortion)},
    {"reprob", .kind = ATT_FLAG_REAL, .value = "P", .help = "probability of random erasing",
     ATT_FLAG_AT(att_recipe_images, reprob), .low = 0, .high = 1},
    {"remode", .kind = ATT_FLAG_TEXT, .value = "NAME", .start = "pixel",
     .help = "what erased boxes hold: 0, one colour, or noise",
     .choices = (const char *const[]){"const", "rand", "pixel", NULL}, ATT_FLAG_AT(att_recipe_images, remode)},
    {"recount", .kind = ATT_FLAG_INT, .value = "N", .start = "1", .help = "most boxes of an image",
     ATT_FLAG_AT(att_recipe_images, recount), .low = 1, .high = 100},
    {"train-interpolation", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "of resizing in training; default: as --interpolation",
     .choices = (const char *const[]){"random", "bicubic", "bilinear", NULL},
     ATT_FLAG_AT(att_recipe_images, interpolation)},
};

static void image_defaults(att_context *context, void *values)
{
    (void)context;
    att_recipe_images *images = values;
    att_transform_options transform = att_transform_options_defaults(1, 1, 1);
    for (int i = 0; i < 2; i++) {
        images->scale[i] = transform.scale[i];
        images->ratio[i] = transform.ratio[i];
    }
    images->pad = transform.pad;
    images->color_jitter = -1;
}

GROUP(image_group, "Augmentation", images, image_options, image_defaults);

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

att_status att_recipe_check_keys(att_context *context, const att_option_values *task)
{
    for (int i = 0; i < task->count; i++) {
        const char *key = task->items[i].key, *declared;
        int count = 0;
        while ((declared = task_key(context, count)) && strcmp(declared, key) != 0)
            count++;
        if (declared)
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

static int make_regular_rows(att_context *context, att_flag *rows, int most)
{
    int made = 0;
    (void)context;
    att_put_option_rows(true, 0, rows, most, &made);
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
    {"output", .kind = ATT_FLAG_TEXT, .value = "FOLDER", .start = "output/train", .help = "folder of all runs",
     ATT_FLAG_AT(att_recipe_files, output)},
    {"experiment", .kind = ATT_FLAG_TEXT, .value = "NAME",
     .help = "the run's folder in there; default: date-time-model-size", ATT_FLAG_AT(att_recipe_files, experiment)},
};

GROUP(file_group, "Files", files, file_options, NULL);

/* --- instruments -------------------------------------------------------------------------------------------------- */

static const att_flag measure_options[] = {
    {"measure", .kind = ATT_FLAG_TEXT, .value = "LIST",
     .help = "instruments to measure with, separated by commas, or all; attscope measure --help describes them",
     .choice = att_choose_instrument, .advisory = true, ATT_FLAG_AT(att_recipe_measure, with)},
    {"measure-nodes", .kind = ATT_FLAG_TEXT, .value = "LIST", .start = "*",
     .help = "only nodes whose names match: names, which may contain * and ?, separated by commas, as in "
             "'blocks.0.attn,blocks.1*.attn'",
     ATT_FLAG_AT(att_recipe_measure, nodes)},
};

GROUP(measure_group, "Instruments (weights stay the same to the bit)", measure, measure_options, NULL);

static const att_flag_use parts[] = {
    {&data_group, offsetof(att_recipe, data)},
    {&att_recipe_network_group, offsetof(att_recipe, network)},
    {&att_recipe_preprocess_group, offsetof(att_recipe, preprocess)},
    {&image_group, offsetof(att_recipe, images)},
    {&att_train_groups[ATT_TRAIN_REPEATS], offsetof(att_recipe, train)},
    {&task_group, offsetof(att_recipe, task)},
    {&teacher_group, offsetof(att_recipe, files)},
    {&regular_group, offsetof(att_recipe, network.options)},
    {&att_train_groups[ATT_TRAIN_RECIPE], offsetof(att_recipe, train)},
    {&att_train_groups[ATT_TRAIN_MIXING], offsetof(att_recipe, train)},
    {&att_train_groups[ATT_TRAIN_RUN], offsetof(att_recipe, train)},
    {&measure_group, offsetof(att_recipe, measure)},
    {&att_train_groups[ATT_TRAIN_MEASURING], offsetof(att_recipe, train)},
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
