#include "data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "data/pixels.h"

/* The magnitude at which an operation has its full strength. */
static const double full_magnitude = 10;

/* --- operations -------------------------------------------------------------------------------------------------- */

typedef struct augment_job {
    const att_transform_options *options;
    const att_image *image;
    uint8_t *scratch;
    double argument;
    att_geometry *geometry;
} augment_job;

static void autocontrast(const augment_job *job)
{
    att_pixels_autocontrast(job->image);
}

static void equalize(const augment_job *job)
{
    att_pixels_equalize(job->image);
}

static void invert(const augment_job *job)
{
    att_pixels_invert(job->image);
}

static void posterize(const augment_job *job)
{
    att_pixels_posterize(job->image, (int)job->argument);
}

static void solarize(const augment_job *job)
{
    att_pixels_solarize(job->image, (int)job->argument);
}

static void solarize_add(const augment_job *job)
{
    att_pixels_solarize_add(job->image, (int)job->argument);
}

static void color(const augment_job *job)
{
    att_pixels_color(job->image, job->argument);
}

static void contrast(const augment_job *job)
{
    att_pixels_contrast(job->image, job->argument);
}

static void brightness(const augment_job *job)
{
    att_pixels_brightness(job->image, job->argument);
}

static void sharpness(const augment_job *job)
{
    att_pixels_sharpness(job->image, job->argument, job->scratch);
}

/* Pixels from outside the image get the mean colour of the normalisation. */
static void move(const augment_job *job, att_affine map)
{
    uint8_t fill[3];
    att_pixels_mean_colour(job->options->mean, job->image->channels, fill);
    att_pixels_affine(job->image, &map, job->options->interpolation, fill, job->scratch);
    att_geometry_step_from(job->geometry, &map);
}

static void rotate(const augment_job *job)
{
    move(job, att_affine_rotation(job->argument, job->image->width, job->image->height));
}

static void shear_x(const augment_job *job)
{
    move(job, (att_affine){1, job->argument, 0, 0, 1, 0});
}

static void shear_y(const augment_job *job)
{
    move(job, (att_affine){1, 0, 0, job->argument, 1, 0});
}

static void translate_x(const augment_job *job)
{
    move(job, (att_affine){1, 0, job->argument * job->image->width, 0, 1, 0});
}

static void translate_y(const augment_job *job)
{
    move(job, (att_affine){1, 0, 0, 0, 1, job->argument * job->image->height});
}

/* --- arguments: level 1 is full strength, sign is 1 or -1 -------------------------------------------------------- */

static double no_argument(double level, double sign)
{
    (void)level, (void)sign;
    return 0;
}

static double degrees(double level, double sign)
{
    return sign * level * 30;
}

static double bits(double level, double sign)
{
    (void)sign;
    return fmin(trunc(level * 4), 8);
}

static double fewer_bits(double level, double sign)
{
    return fmax(4 - bits(level, sign), 0);
}

static double threshold(double level, double sign)
{
    (void)sign;
    return fmin(256, trunc(level * 256));
}

static double lower_threshold(double level, double sign)
{
    return 256 - threshold(level, sign);
}

static double addend(double level, double sign)
{
    (void)sign;
    return fmin(128, trunc(level * 110));
}

static double factor(double level, double sign)
{
    (void)sign;
    return level * 1.8 + 0.1;
}

static double factor_off_one(double level, double sign)
{
    return fmax(0.1, 1 + sign * (level * 0.9));
}

static double slope(double level, double sign)
{
    return sign * (level * 0.3);
}

static double fraction(double level, double sign)
{
    return sign * (level * 0.45);
}

/* timm's auto_augment.py: names of _RAND_TRANSFORMS and _RAND_INCREASING_TRANSFORMS, with LEVEL_TO_ARG. */
static const struct {
    const char *name, *increasing_name;
    double (*argument)(double level, double sign), (*increasing_argument)(double level, double sign);
    void (*apply)(const augment_job *job);
} operations[ATT_AUGMENT_OPERATIONS] = {
    {"AutoContrast", "AutoContrast", no_argument, no_argument, autocontrast},
    {"Equalize", "Equalize", no_argument, no_argument, equalize},
    {"Invert", "Invert", no_argument, no_argument, invert},
    {"Rotate", "Rotate", degrees, degrees, rotate},
    {"Posterize", "PosterizeIncreasing", bits, fewer_bits, posterize},
    {"Solarize", "SolarizeIncreasing", threshold, lower_threshold, solarize},
    {"SolarizeAdd", "SolarizeAdd", addend, addend, solarize_add},
    {"Color", "ColorIncreasing", factor, factor_off_one, color},
    {"Contrast", "ContrastIncreasing", factor, factor_off_one, contrast},
    {"Brightness", "BrightnessIncreasing", factor, factor_off_one, brightness},
    {"Sharpness", "SharpnessIncreasing", factor, factor_off_one, sharpness},
    {"ShearX", "ShearX", slope, slope, shear_x},
    {"ShearY", "ShearY", slope, slope, shear_y},
    {"TranslateXRel", "TranslateXRel", fraction, fraction, translate_x},
    {"TranslateYRel", "TranslateYRel", fraction, fraction, translate_y},
};

const char *att_augment_name(int operation, bool increasing)
{
    return increasing ? operations[operation].increasing_name : operations[operation].name;
}

double att_augment_argument(int operation, bool increasing, double magnitude, bool negate)
{
    double level = magnitude / full_magnitude, sign = negate ? -1 : 1;
    return increasing ? operations[operation].increasing_argument(level, sign)
                      : operations[operation].argument(level, sign);
}

void att_augment_apply(int operation, const att_transform_options *options, const att_image *image, double argument,
                       uint8_t *scratch, att_geometry *geometry)
{
    operations[operation].apply(&(augment_job){options, image, scratch, argument, geometry});
}

/* --- draws ------------------------------------------------------------------------------------------------------- */

static double draw_between(att_random *random, double low, double high)
{
    return low + (high - low) * att_random_uniform(random);
}

static double draw_magnitude(const att_rand_augment *settings, att_random *random)
{
    double magnitude = settings->magnitude;
    if (isinf(settings->deviation))
        magnitude = draw_between(random, 0, magnitude);
    else if (settings->deviation > 0)
        magnitude += settings->deviation * att_random_normal(random);
    return fmin(fmax(magnitude, 0), settings->most);
}

att_layer_draw att_rand_augment_draw(const att_rand_augment *settings, att_random *random)
{
    att_layer_draw draw = {.operation = (int)att_random_below(random, ATT_AUGMENT_OPERATIONS)};
    draw.applied = att_random_uniform(random) < settings->probability;
    if (!draw.applied)
        return draw;
    double magnitude = draw_magnitude(settings, random);
    bool negate = att_random_uniform(random) < 0.5;
    draw.argument = att_augment_argument(draw.operation, settings->increasing, magnitude, negate);
    return draw;
}

static void rand_augment(const att_transform_options *options, const att_image *image, att_random *random,
                         uint8_t *scratch, att_geometry *geometry)
{
    const att_rand_augment *settings = &options->rand_augment;
    for (int layer = 0; layer < settings->layers; layer++) {
        att_layer_draw draw = att_rand_augment_draw(settings, random);
        if (draw.applied)
            att_augment_apply(draw.operation, options, image, draw.argument, scratch, geometry);
    }
}

att_three_draw att_three_augment_draw(att_random *random)
{
    const double least_radius = 0.1, most_radius = 2;
    att_three change = (att_three)att_random_below(random, ATT_THREE_COUNT);
    return (att_three_draw){change, draw_between(random, least_radius, most_radius)};
}

void att_three_augment_apply(const att_three_draw *draw, const att_image *image, uint8_t *scratch)
{
    const int middle = 128;
    switch (draw->change) {
    case ATT_THREE_GREY:
        att_pixels_color(image, 0);
        break;
    case ATT_THREE_SOLARIZE:
        att_pixels_solarize(image, middle);
        break;
    default:
        att_pixels_gaussian_blur(image, draw->radius, scratch);
        break;
    }
}

att_jitter_draw att_color_jitter_draw(const double jitter[3], att_random *random)
{
    att_jitter_draw draw;
    att_random_permutation(random, draw.order, 3);
    for (int i = 0; i < 3; i++) {
        double most = jitter[draw.order[i]];
        draw.factors[draw.order[i]] = draw_between(random, fmax(0, 1 - most), 1 + most);
    }
    return draw;
}

static void color_jitter(const double jitter[3], const att_image *image, att_random *random)
{
    static void (*const changes[])(const att_image *image, double factor) = {att_pixels_brightness, att_pixels_contrast,
                                                                             att_pixels_color};
    att_jitter_draw draw = att_color_jitter_draw(jitter, random);
    for (int i = 0; i < 3; i++)
        if (jitter[draw.order[i]] > 0)
            changes[draw.order[i]](image, draw.factors[draw.order[i]]);
}

/* Whether one of mmsegmentation's changes is made. */
static bool draw_half(att_random *random)
{
    return att_random_uniform(random) < 0.5;
}

att_photometric_draw att_photometric_draw_from(att_random *random)
{
    const double brightness = 32, least = 0.5, most = 1.5;
    const int hue = 18;
    att_photometric_draw draw = {.contrast = 1, .saturation = 1};
    if (draw_half(random))
        draw.brightness = draw_between(random, -brightness, brightness);
    draw.contrast_first = draw_half(random);
    if (draw_half(random))
        draw.contrast = draw_between(random, least, most);
    draw.saturated = draw_half(random);
    if (draw.saturated)
        draw.saturation = draw_between(random, least, most);
    draw.hued = draw_half(random);
    if (draw.hued)
        draw.hue = (int)att_random_below(random, 2 * hue) - hue;
    return draw;
}

void att_photometric_apply(const att_photometric_draw *draw, const att_image *image)
{
    att_pixels_linear(image, 1, draw->brightness);
    if (draw->contrast_first)
        att_pixels_linear(image, draw->contrast, 0);
    if (draw->saturated)
        att_pixels_hsv(image, draw->saturation, 0);
    if (draw->hued)
        att_pixels_hsv(image, 1, draw->hue);
    if (!draw->contrast_first)
        att_pixels_linear(image, draw->contrast, 0);
}

static bool jitters(const att_transform_options *options)
{
    return options->color_jitter[0] > 0 || options->color_jitter[1] > 0 || options->color_jitter[2] > 0;
}

bool att_augments(const att_transform_options *options)
{
    return options->rand_augment.layers > 0 || options->three_augment || jitters(options) || options->photometric;
}

void att_augment(const att_transform_options *options, const att_image *image, att_random *random, uint8_t *scratch,
                 att_geometry *geometry)
{
    if (options->rand_augment.layers > 0)
        rand_augment(options, image, random, scratch, geometry);
    if (options->three_augment) {
        att_three_draw draw = att_three_augment_draw(random);
        att_three_augment_apply(&draw, image, scratch);
    }
    if (jitters(options))
        color_jitter(options->color_jitter, image, random);
    if (options->photometric) {
        att_photometric_draw draw = att_photometric_draw_from(random);
        att_photometric_apply(&draw, image);
    }
}

/* --- options ----------------------------------------------------------------------------------------------------- */

const char *att_augment_error(const att_transform_options *options)
{
    const att_rand_augment *settings = &options->rand_augment;
    for (int i = 0; i < 3; i++)
        if (!(options->color_jitter[i] >= 0 && options->color_jitter[i] <= 10))
            return "color_jitter must lie in 0..10";
    if (settings->layers < 0 || settings->layers > 100)
        return "rand_augment.layers must lie in 0..100";
    if (settings->layers > 0 &&
        !(settings->magnitude >= 0 && settings->magnitude <= 100 && settings->most > 0 && settings->most <= 100))
        return "rand_augment's magnitudes must lie in 0..100";
    if (settings->layers > 0 && !(settings->deviation >= 0))
        return "rand_augment.deviation must not be negative";
    if (settings->layers > 0 && !(settings->probability >= 0 && settings->probability <= 1))
        return "rand_augment.probability must be a probability";
    return NULL;
}

static att_status unknown_section(att_context *context, const char *text, const char *section)
{
    return att_fail(
        context, ATT_ERR_ARGUMENT,
        "augmentation \"%s\": unknown section \"%.*s\"; expected mN, nN, pP, mstdX, mmaxX or inc1, as in timm's "
        "RandAugment",
        text, (int)strcspn(section, "-"), section);
}

/* Parses one section such as "mstd0.5", up to the next dash. */
static att_status take_section(att_context *context, const char *text, const char *section, att_rand_augment *settings)
{
    const double uniform_from = 100; /* timm: above this mstd, the magnitude is drawn uniformly */
    size_t length = strcspn(section, "-"), key = strcspn(section, "0123456789-");
    char *end = NULL;
    double value = key < length ? strtod(section + key, &end) : -1;
    if (key == length || end != section + length || !(value >= 0 && value <= 1e9))
        return unknown_section(context, text, section);
    if (key == 1 && section[0] == 'm')
        settings->magnitude = value;
    else if (key == 1 && section[0] == 'n' && value <= 100)
        settings->layers = (int)value;
    else if (key == 1 && section[0] == 'p')
        settings->probability = value;
    else if (key == 4 && strncmp(section, "mstd", 4) == 0)
        settings->deviation = value > uniform_from ? (double)INFINITY : value;
    else if (key == 4 && strncmp(section, "mmax", 4) == 0)
        settings->most = value;
    else if (key == 3 && strncmp(section, "inc", 3) == 0)
        settings->increasing = value != 0;
    else
        return unknown_section(context, text, section);
    return ATT_OK;
}

att_status att_rand_augment_parse(att_context *context, const char *text, att_rand_augment *rand_augment)
{
    const double most = 100;
    att_rand_augment settings = {.layers = 2, .magnitude = full_magnitude, .most = full_magnitude, .probability = 0.5};
    const char *at = text + strcspn(text, "-");
    if (at - text != 4 || strncmp(text, "rand", 4) != 0)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "augmentation \"%s\": only timm's RandAugment is supported, as in \"rand-m9-mstd0.5-inc1\"; "
                        "AutoAugment (original, v0, 3a, ...) and AugMix are not; 3-Augment is --three-augment",
                        text);
    while (*at) {
        ATT_TRY(take_section(context, text, at + 1, &settings));
        at += 1 + strcspn(at + 1, "-");
    }
    if (settings.magnitude > most || settings.most > most || settings.most == 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "augmentation \"%s\": its magnitudes, mN and mmaxX, must lie in 0..%g, X above 0", text, most);
    if (settings.probability > 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "augmentation \"%s\": its probability, pP, must lie in 0..1", text);
    *rand_augment = settings;
    return ATT_OK;
}
