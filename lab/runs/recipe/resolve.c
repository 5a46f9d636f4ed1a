/* Checks the members of a recipe, also against each other, and applies its augmentation. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/flags/flags.h"
#include "lab/runs/recipe/recipe.h"
#include "networks/tasks/task.h"

static att_status check_range(att_context *context, const char *name, const double range[2])
{
    if (range[0] > range[1])
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %g %g: the first number, the lower limit, is above the second",
                        name, range[0], range[1]);
    return ATT_OK;
}

static att_status read_rand_augment(att_context *context, const char *text, att_rand_augment *made)
{
    if (att_rand_augment_parse(context, text, made) == ATT_OK)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "--aa: %s", att_context_message(context));
}

static bool finds_boxes(const att_context *context, const att_recipe *recipe)
{
    return att_task_annotations(context, att_options_text(&recipe->network.options, "task")) & ATT_ANNOTATION_BOXES;
}

void att_recipe_choose_images(const att_context *context, att_recipe *recipe)
{
    static const double usual_jitter = 0.4; /* timm's */
    const bool boxes = finds_boxes(context, recipe);
    att_recipe_images *images = &recipe->images;
    if (!images->crop_mode || !*images->crop_mode)
        images->crop_mode = boxes ? "within" : "rrc";
    if (images->color_jitter < 0)
        images->color_jitter = boxes ? 0 : usual_jitter;
}

bool att_recipe_keeps_all(const att_recipe_images *images)
{
    return strcmp(images->crop_mode, "keep") == 0 || strcmp(images->crop_mode, "within") == 0;
}

/* Refuses settings of crop modes other than the chosen one. */
static att_status check_crop(att_context *context, const att_recipe_images *images)
{
    const bool scales = strcmp(images->crop_mode, "rsc") == 0, keeps = att_recipe_keeps_all(images);
    const double *scale = images->img_scale, *range = images->ratio_range;
    const char *unused = NULL;
    if (scale[0] > 0 && !scales && !keeps)
        unused = "--img-scale (images.img_scale) is a setting of --train-crop-mode keep, within and rsc";
    else if ((range[0] != 0.5 || range[1] != 2) && !scales)
        unused = "--ratio-range (images.ratio_range) is a setting of --train-crop-mode rsc";
    else if (images->cat_max_ratio != 1 && !scales)
        unused = "--cat-max-ratio (images.cat_max_ratio) is a setting of --train-crop-mode rsc";
    if (unused)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s, which is not given", unused);
    if (scale[0] < scale[1] || scale[0] != floor(scale[0]) || scale[1] != floor(scale[1]))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--img-scale (images.img_scale) %g %g: expected whole numbers, the longer side first", scale[0],
                        scale[1]);
    return ATT_OK;
}

static att_status check_images(att_context *context, const att_recipe *recipe)
{
    att_rand_augment unused;
    att_recipe chosen = *recipe;
    const att_recipe_images *images = &chosen.images;
    att_recipe_choose_images(context, &chosen);
    if (!images->no_aug) {
        ATT_TRY(check_range(context, "--scale", images->scale));
        ATT_TRY(check_range(context, "--ratio", images->ratio));
        ATT_TRY(check_range(context, "--ratio-range", images->ratio_range));
        ATT_TRY(check_crop(context, images));
    }
    if (images->photometric_distortion && (images->aa || images->three_augment))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--photometric-distortion excludes --aa and --three-augment: leave one of them out (--aa '' "
                        "takes back that of a recipe)");
    if (images->aa && images->three_augment)
        return att_fail(
            context, ATT_ERR_ARGUMENT,
            "--aa and --three-augment exclude each other: leave one of them out (--aa '' takes back that of a "
            "recipe)");
    return images->aa ? read_rand_augment(context, images->aa, &unused) : ATT_OK;
}

static att_status check_minmax(att_context *context, const double minmax[2])
{
    ATT_TRY(check_range(context, "--cutmix-minmax", minmax));
    if (minmax[0] != 0 && minmax[0] == minmax[1])
        return att_fail(context, ATT_ERR_ARGUMENT, "--cutmix-minmax %g %g: the second number must be above the first",
                        minmax[0], minmax[1]);
    return ATT_OK;
}

static att_status check_files(att_context *context, const att_recipe_data *data)
{
    if (!data->class_map || access(data->class_map, R_OK) == 0)
        return ATT_OK;
    return att_fail(context, ATT_ERR_IO, "--class-map %s could not be opened: %s", data->class_map, strerror(errno));
}

static att_status check_layer_decay(att_context *context, const att_train_options *train)
{
    if (train->layer_decay > 0 || (train->layer_decay_min_scale == 0 && train->layer_decay_no_opt_scale == 0))
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_ARGUMENT,
        "--layer-decay-min-scale and --layer-decay-no-opt-scale are settings of --layer-decay, which is not "
        "given");
}

static att_status check_measure(att_context *context, const att_recipe *recipe)
{
    const att_recipe_measure *measure = &recipe->measure;
    if (measure->with || recipe->train.alert ||
        (recipe->train.measure_every == att_train_options_defaults().measure_every && strcmp(measure->nodes, "*") == 0))
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "--measure-every and --measure-nodes need --measure LIST (names of instruments, or `all`)");
}

static att_status check_teacher(att_context *context, const att_recipe *recipe)
{
    if (recipe->files.teacher_model && !recipe->files.teacher)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--teacher-model needs --teacher FILE, the checkpoint of a network to learn from");
    return att_tasks_check_options(context, &recipe->task, recipe->files.teacher);
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Refuses values in those members of `train` that a training sets itself from other members of the recipe. */
static att_status check_unused(att_context *context, const att_recipe *recipe)
{
    const att_train_options *train = &recipe->train, defaults = att_train_options_defaults();
    const struct {
        bool given;
        const char *member, *instead;
    } members[] = {
        {train->precision != defaults.precision && train->precision != att_recipe_precision(&recipe->engine),
         "precision", "engine.amp (--amp)"},
        {train->backend && !is_same_text(train->backend, defaults.backend) &&
             !is_same_text(train->backend, recipe->engine.backend),
         "backend", "engine.backend (--backend)"},
        {train->task_options, "task_options", "task"},
        {train->teacher, "teacher", "files.teacher (--teacher)"},
        {train->measure, "measure", "measure.with (--measure)"},
        {train->output, "output", "files.output (--output)"},
        {train->resume, "resume", "files.resume (--resume)"},
        {train->sinks || train->sink_count, "sinks", "att_training_observer.sink"},
        {train->progress, "progress", "att_training_observer.progress"},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].given)
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "train.%s of the recipe is set, but a training run does not read it: set %s instead",
                            members[i].member, members[i].instead);
    return ATT_OK;
}

/* On the command line, --input-size overrides both options. A program that set both would lose one of them. */
static att_status check_input_size(att_context *context, const att_recipe_network *network)
{
    bool sized = att_options_find(&network->options, "img_size") || att_options_find(&network->options, "in_chans");
    if (network->input_size.count == 0 || !sized)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "network.input_size (--input-size) and the options img_size or in_chans are both given; leave one "
                    "of them out");
}

/* Checks and completes the members as if flags had set them. */
static att_status check_flags(att_context *context, att_recipe *recipe)
{
    att_flags *flags = NULL;
    ATT_TRY(att_recipe_flags(context, &flags));
    att_status status = att_flags_check(flags, recipe);
    if (status == ATT_OK)
        status = att_flags_merge(flags, recipe);
    if (status == ATT_OK)
        status = att_flags_complete(flags, recipe);
    att_flags_destroy(&flags);
    return status;
}

att_status att_recipe_resolve(att_context *context, att_recipe *recipe)
{
    ATT_TRY(check_input_size(context, &recipe->network));
    ATT_TRY(check_flags(context, recipe));
    ATT_TRY(att_recipe_check_keys(context, &recipe->task));
    ATT_TRY(check_unused(context, recipe));
    ATT_TRY(att_recipe_engine_check(context, &recipe->engine));
    ATT_TRY(check_layer_decay(context, &recipe->train));
    ATT_TRY(check_measure(context, recipe));
    ATT_TRY(check_teacher(context, recipe));
    ATT_TRY(check_files(context, &recipe->data));
    ATT_TRY(check_images(context, recipe));
    return check_minmax(context, recipe->train.cutmix_minmax);
}

static att_interpolation interpolation_of(const char *name)
{
    return strcmp(name, "bilinear") == 0  ? ATT_BILINEAR
           : strcmp(name, "bicubic") == 0 ? ATT_BICUBIC
                                          : ATT_RANDOM_INTERPOLATION;
}

static void set_scale(const att_recipe_images *images, att_transform_options *transform)
{
    const int longer = (int)images->img_scale[0], shorter = (int)images->img_scale[1];
    if (longer > 0) {
        transform->longer = longer;
        transform->shorter = shorter;
    }
    for (int i = 0; i < 2; i++)
        transform->factor[i] = images->ratio_range[i];
    transform->cat_max_ratio = images->cat_max_ratio;
    if (att_recipe_keeps_all(images))
        transform->height = transform->width = 0;
}

att_status att_recipe_transform(att_context *context, const att_recipe_images *images, att_transform_options *transform)
{
    if (images->no_aug)
        return ATT_OK;
    static const struct {
        const char *name;
        att_crop crop;
    } modes[] = {{"rrc", ATT_CROP_RANDOM_RESIZED}, {"pad", ATT_CROP_PAD},      {"src", ATT_CROP_SIMPLE},
                 {"keep", ATT_CROP_KEEP},          {"rsc", ATT_CROP_SCALED},   {"squash", ATT_CROP_SQUASH},
                 {"center", ATT_CROP_CENTER},      {"within", ATT_CROP_WITHIN}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(images->crop_mode, modes[i].name) == 0)
            transform->crop = modes[i].crop;
    if (images->interpolation)
        transform->interpolation = interpolation_of(images->interpolation);
    for (int i = 0; i < 2; i++) {
        transform->scale[i] = images->scale[i];
        transform->ratio[i] = images->ratio[i];
    }
    set_scale(images, transform);
    transform->pad = images->pad;
    transform->flip = images->hflip;
    transform->vertical_flip = images->vflip;
    if (images->aa)
        ATT_TRY(read_rand_augment(context, images->aa, &transform->rand_augment));
    transform->three_augment = images->three_augment;
    transform->photometric = images->photometric_distortion;
    for (int i = 0; i < 3 && !images->aa && !images->photometric_distortion; i++)
        transform->color_jitter[i] = images->color_jitter;
    transform->erase = images->reprob;
    transform->erase_mode = strcmp(images->remode, "const") == 0  ? ATT_ERASE_CONST
                            : strcmp(images->remode, "rand") == 0 ? ATT_ERASE_RAND
                                                                  : ATT_ERASE_PIXEL;
    transform->erase_count = images->recount;
    return ATT_OK;
}
