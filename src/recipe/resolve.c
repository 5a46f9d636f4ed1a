/* What the members of a recipe mean together. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "recipe/recipe.h"

static att_status check_range(att_context *context, const char *name, const att_reals *range)
{
    if (range->count != 2)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s needs two numbers, the least and the largest", name);
    if (range->values[0] > range->values[1])
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %g %g: the first number, the least, is above the second", name,
                        range->values[0], range->values[1]);
    return ATT_OK;
}

static att_status read_rand_augment(att_context *context, const char *text, att_rand_augment *made)
{
    if (att_rand_augment_parse(context, text, made) == ATT_OK)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "--aa: %s", att_context_message(context));
}

static att_status check_images(att_context *context, const att_recipe_images *images)
{
    att_rand_augment unused;
    if (!images->no_aug) {
        ATT_TRY(check_range(context, "--scale", &images->scale));
        ATT_TRY(check_range(context, "--ratio", &images->ratio));
    }
    return images->aa ? read_rand_augment(context, images->aa, &unused) : ATT_OK;
}

/* What couples images, or decides which ones an epoch has. */
static att_status take_mixing(att_context *context, att_recipe *recipe)
{
    const att_reals *minmax = &recipe->cutmix_minmax;
    if (minmax->count != 0)
        ATT_TRY(check_range(context, "--cutmix-minmax", minmax));
    if (minmax->count != 0 && minmax->values[0] == minmax->values[1])
        return att_fail(context, ATT_ERR_ARGUMENT, "--cutmix-minmax %g %g: the second number must be above the first",
                        minmax->values[0], minmax->values[1]);
    for (int i = 0; i < minmax->count; i++)
        recipe->train.cutmix_minmax[i] = minmax->values[i];
    recipe->train.aug_repeats = (int)recipe->images.aug_repeats;
    if (recipe->images.aug_repeats != recipe->train.aug_repeats)
        return att_fail(context, ATT_ERR_ARGUMENT, "--aug-repeats: %g is no whole number", recipe->images.aug_repeats);
    return ATT_OK;
}

static att_status take_milestones(att_context *context, att_recipe *recipe)
{
    const att_reals *milestones = &recipe->milestones;
    recipe->train.decay_milestone_count = milestones->count;
    for (int i = 0; i < milestones->count; i++) {
        if (milestones->values[i] != rint(milestones->values[i]))
            return att_fail(context, ATT_ERR_ARGUMENT, "--decay-milestones: %g is no whole epoch",
                            milestones->values[i]);
        recipe->train.decay_milestones[i] = (int)milestones->values[i];
    }
    return ATT_OK;
}

static att_status take_betas(att_context *context, att_recipe *recipe)
{
    if (recipe->betas.count != 2)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--opt-betas needs two numbers, for the gradient's mean and for its square's");
    recipe->train.beta1 = recipe->betas.values[0];
    recipe->train.beta2 = recipe->betas.values[1];
    return ATT_OK;
}

static att_status check_files(att_context *context, const att_recipe_data *data)
{
    if (!data->class_map || access(data->class_map, R_OK) == 0)
        return ATT_OK;
    return att_fail(context, ATT_ERR_IO, "--class-map %s could not be opened: %s", data->class_map, strerror(errno));
}

att_status att_recipe_resolve(att_context *context, att_recipe *recipe)
{
    const att_recipe_measure *measure = &recipe->measure;
    if (!measure->with && (measure->every != ATT_MEASURE_EVERY || strcmp(measure->nodes, "*") != 0))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "--measure-every and --measure-nodes need --measure LIST, the instruments; all: every one");
    ATT_TRY(check_files(context, &recipe->data));
    ATT_TRY(check_images(context, &recipe->images));
    ATT_TRY(take_mixing(context, recipe));
    ATT_TRY(take_milestones(context, recipe));
    ATT_TRY(take_betas(context, recipe));
    recipe->train.measure_every = measure->every;
    recipe->train.backend = recipe->engine.backend;
    recipe->train.precision = att_recipe_precision(&recipe->engine);
    return ATT_OK;
}

static att_interpolation interpolation_of(const char *name)
{
    return strcmp(name, "bilinear") == 0  ? ATT_BILINEAR
           : strcmp(name, "bicubic") == 0 ? ATT_BICUBIC
                                          : ATT_RANDOM_INTERPOLATION;
}

att_status att_recipe_transform(att_context *context, const att_recipe_images *images, att_transform_options *transform)
{
    if (images->no_aug)
        return ATT_OK;
    transform->crop = strcmp(images->crop_mode, "rrc") == 0   ? ATT_CROP_RANDOM_RESIZED
                      : strcmp(images->crop_mode, "pad") == 0 ? ATT_CROP_PAD
                                                              : ATT_CROP_CENTER;
    if (images->interpolation)
        transform->interpolation = interpolation_of(images->interpolation);
    for (int i = 0; i < 2; i++) {
        transform->scale[i] = images->scale.values[i];
        transform->ratio[i] = images->ratio.values[i];
    }
    transform->pad = images->pad;
    transform->flip = images->hflip;
    transform->vertical_flip = images->vflip;
    if (images->aa)
        ATT_TRY(read_rand_augment(context, images->aa, &transform->rand_augment));
    for (int i = 0; i < 3 && !images->aa; i++)
        transform->color_jitter[i] = images->color_jitter;
    transform->erase = images->reprob;
    transform->erase_mode = strcmp(images->remode, "const") == 0  ? ATT_ERASE_CONST
                            : strcmp(images->remode, "rand") == 0 ? ATT_ERASE_RAND
                                                                  : ATT_ERASE_PIXEL;
    transform->erase_count = images->recount;
    return ATT_OK;
}
