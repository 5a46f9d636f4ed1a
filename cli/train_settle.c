#include "train_settle.h"

#include <math.h>
#include <string.h>

static int check_range(const char *flag, const cli_reals *range)
{
    if (range->count != 2)
        return cli_usage("%s needs two numbers, the least and the largest", flag);
    if (range->values[0] > range->values[1])
        return cli_usage("%s %g %g: the first number, the least, is above the second", flag, range->values[0],
                         range->values[1]);
    return CLI_OK;
}

static int check_images(cli_app *cli, train_images *images)
{
    int code = images->no_aug ? CLI_OK : check_range("--scale", &images->scale);
    if (code == CLI_OK && !images->no_aug)
        code = check_range("--ratio", &images->ratio);
    if (code == CLI_OK && images->aa &&
        att_rand_augment_parse(cli->context, images->aa, &images->rand_augment) != ATT_OK)
        code = cli_usage("--aa: %s", att_context_message(cli->context));
    return code;
}

/* What couples images, or decides which ones an epoch has. */
static int take_mixing(train_settings *s)
{
    const cli_reals *minmax = &s->cutmix_minmax;
    int code = minmax->count != 0 ? check_range("--cutmix-minmax", minmax) : CLI_OK;
    if (code != CLI_OK)
        return code;
    if (minmax->count != 0 && minmax->values[0] == minmax->values[1])
        return cli_usage("--cutmix-minmax %g %g: the second number must be above the first", minmax->values[0],
                         minmax->values[1]);
    for (int i = 0; i < minmax->count; i++)
        s->recipe.cutmix_minmax[i] = minmax->values[i];
    s->recipe.aug_repeats = (int)s->images.aug_repeats;
    if (s->images.aug_repeats != s->recipe.aug_repeats)
        return cli_usage("--aug-repeats: %g is no whole number", s->images.aug_repeats);
    return CLI_OK;
}

static int take_milestones(train_settings *s)
{
    s->recipe.decay_milestone_count = s->milestones.count;
    for (int i = 0; i < s->milestones.count; i++) {
        if (s->milestones.values[i] != rint(s->milestones.values[i]))
            return cli_usage("--decay-milestones: %g is no whole epoch", s->milestones.values[i]);
        s->recipe.decay_milestones[i] = (int)s->milestones.values[i];
    }
    return CLI_OK;
}

static int check_betas(const cli_reals *betas)
{
    return betas->count == 2 ? CLI_OK
                             : cli_usage("--opt-betas needs two numbers, for the gradient's mean and for its square's");
}

int cli_train_settle(cli_app *cli, train_settings *settings)
{
    const train_measure *m = &settings->measure;
    if (!m->with && (m->every != CLI_MEASURE_EVERY || strcmp(m->nodes, "*") != 0))
        return cli_usage("--measure-every and --measure-nodes need --measure LIST, the instruments; all: every one");
    int code = check_images(cli, &settings->images);
    if (code == CLI_OK)
        code = take_mixing(settings);
    if (code == CLI_OK)
        code = take_milestones(settings);
    if (code == CLI_OK)
        code = check_betas(&settings->betas);
    return code == CLI_OK ? cli_output_check(settings->output.json) : code;
}

static att_interpolation interpolation_of(const char *name)
{
    return strcmp(name, "bilinear") == 0  ? ATT_BILINEAR
           : strcmp(name, "bicubic") == 0 ? ATT_BICUBIC
                                          : ATT_RANDOM_INTERPOLATION;
}

void cli_train_transform(const train_images *images, att_transform_options *transform)
{
    if (images->no_aug)
        return;
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
    transform->rand_augment = images->rand_augment;
    for (int i = 0; i < 3 && !images->aa; i++)
        transform->color_jitter[i] = images->color_jitter;
    transform->erase = images->reprob;
    transform->erase_mode = strcmp(images->remode, "const") == 0  ? ATT_ERASE_CONST
                            : strcmp(images->remode, "rand") == 0 ? ATT_ERASE_RAND
                                                                  : ATT_ERASE_PIXEL;
    transform->erase_count = images->recount;
}
