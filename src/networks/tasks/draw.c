#include "networks/tasks/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/png_write.h"
#include <attscope/file.h>

enum { CHANNELS = 3, NO_INDEX = ATT_PNG_COLOURS - 1 };

/* --- colours ------------------------------------------------------------------------------------------------------ */

enum { LEVELS = 9, LEAST_DIFFERENCE = 96 };

/* A colour that may be chosen. */
typedef struct candidate {
    uint8_t colour[CHANNELS];
    double lab[CHANNELS];
    double distance; /* squared, from the nearest chosen colour */
} candidate;

static double linear(uint8_t value)
{
    const double share = value / 255.0;
    return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4);
}

/* Björn Ottosson, "A perceptual color space for image processing", 2020. */
static void to_oklab(const uint8_t colour[CHANNELS], double lab[CHANNELS])
{
    const double r = linear(colour[0]), g = linear(colour[1]), b = linear(colour[2]);
    const double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    lab[0] = 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
    lab[1] = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
    lab[2] = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
}

static bool is_colourful(const uint8_t colour[CHANNELS])
{
    int low = 255, high = 0;
    for (int c = 0; c < CHANNELS; c++) {
        low = colour[c] < low ? colour[c] : low;
        high = colour[c] > high ? colour[c] : high;
    }
    return high - low >= LEAST_DIFFERENCE;
}

static uint8_t level(int number)
{
    return (uint8_t)(number == LEVELS - 1 ? 255 : 32 * number);
}

static int list_candidates(candidate all[LEVELS * LEVELS * LEVELS])
{
    int count = 0;
    for (int i = 0; i < LEVELS * LEVELS * LEVELS; i++) {
        candidate *next = &all[count];
        *next = (candidate){.colour = {level(i / (LEVELS * LEVELS)), level(i / LEVELS % LEVELS), level(i % LEVELS)},
                            .distance = INFINITY};
        to_oklab(next->colour, next->lab);
        count += is_colourful(next->colour);
    }
    return count;
}

/* Takes note that a colour is chosen. Returns the candidate that is farthest from all chosen colours, the first of
 * equal ones. */
static const candidate *choose_next(candidate *all, int count, const candidate *chosen)
{
    const candidate *farthest = &all[0];
    for (int i = 0; i < count; i++) {
        double distance = 0;
        for (int c = 0; c < CHANNELS; c++)
            distance += (all[i].lab[c] - chosen->lab[c]) * (all[i].lab[c] - chosen->lab[c]);
        all[i].distance = distance < all[i].distance ? distance : all[i].distance;
        farthest = all[i].distance > farthest->distance ? &all[i] : farthest;
    }
    return farthest;
}

void att_class_colours(int count, uint8_t *colours)
{
    candidate all[LEVELS * LEVELS * LEVELS], blue = {.colour = {0, 96, 255}};
    const candidate *next = &blue;
    const int candidates = list_candidates(all);
    to_oklab(blue.colour, blue.lab);
    for (int i = 0; i < count && i < NO_INDEX; i++) {
        memcpy(colours + (ptrdiff_t)CHANNELS * i, next->colour, CHANNELS);
        next = choose_next(all, candidates, next);
    }
    for (int i = NO_INDEX; i < count; i++)
        memcpy(colours + (ptrdiff_t)CHANNELS * i, colours + (ptrdiff_t)CHANNELS * (i - NO_INDEX), CHANNELS);
}

/* --- painting ----------------------------------------------------------------------------------------------------- */

/* Whether the network saw the centre of a pixel. */
static bool is_seen(const att_geometry *geometry, int row, int column)
{
    double x = column + 0.5, y = row + 0.5;
    att_geometry_move(geometry, &x, &y);
    return x >= 0 && x < geometry->width && y >= 0 && y < geometry->height;
}

static void paint(uint8_t pixel[CHANNELS], const uint8_t colour[CHANNELS])
{
    for (int c = 0; c < CHANNELS; c++)
        pixel[c] = (uint8_t)((pixel[c] + colour[c] + 1) / 2);
}

att_status att_draw_classes(att_context *context, const uint16_t *classes, const att_geometry *geometry,
                            att_drawing *drawing)
{
    const int width = drawing->image.width, height = drawing->image.height;
    uint8_t *pixel = drawing->image.pixels;
    uint16_t *mask;
    ATT_TRY(att_new(context, &mask, (size_t)width * (size_t)height, "the classes of an image"));
    drawing->classes = (att_mask){width, height, mask};
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++, classes++, mask++, pixel += CHANNELS) {
            const bool has_class = *classes < drawing->class_count && is_seen(geometry, row, column);
            *mask = has_class ? *classes : ATT_MASK_NONE;
            if (has_class)
                paint(pixel, drawing->colours + (size_t)CHANNELS * *mask);
        }
    return ATT_OK;
}

/* --- drawings ----------------------------------------------------------------------------------------------------- */

/* Copies the photograph with three channels. */
static att_status copy_photograph(att_context *context, const att_image *photograph, att_image *copy)
{
    const size_t count = (size_t)photograph->width * (size_t)photograph->height;
    const size_t step = photograph->channels < CHANNELS ? 0 : 1;
    const uint8_t *from = photograph->pixels;
    *copy = (att_image){photograph->width, photograph->height, CHANNELS, att_allocate_array(context, count, CHANNELS)};
    if (!copy->pixels)
        return att_fail_memory(context, att_size_product(count, CHANNELS), "a drawing");
    for (size_t i = 0; i < count; i++, from += photograph->channels)
        for (size_t c = 0; c < CHANNELS; c++)
            copy->pixels[CHANNELS * i + c] = from[c * step];
    return ATT_OK;
}

static att_status take_colours(att_context *context, int classes, const att_answer_options *options,
                               att_drawing *drawing)
{
    ATT_TRY(att_new(context, &drawing->colours, (size_t)classes * CHANNELS, "the colours of classes"));
    drawing->class_count = classes;
    if (options->colours)
        memcpy(drawing->colours, options->colours, (size_t)classes * CHANNELS);
    else
        att_class_colours(classes, drawing->colours);
    return ATT_OK;
}

static att_status draw(att_context *context, const att_task *task, int classes, const att_batch *answer,
                       const att_answer_options *options, const att_image *photograph, const att_geometry *geometry,
                       att_drawing *drawing)
{
    ATT_TRY(take_colours(context, classes, options, drawing));
    ATT_TRY(copy_photograph(context, photograph, &drawing->image));
    return task->draw(context, answer, options, geometry, drawing);
}

att_status att_task_draw(att_context *context, const char *name, int classes, const att_batch *answer,
                         const att_answer_options *options, const att_image *photograph, const att_geometry *geometry,
                         att_drawing *drawing)
{
    const att_task *task;
    const att_answer_options defaults = att_answer_options_defaults();
    const att_geometry same = {.map = {{1, 0, 0}, {0, 1, 0}},
                               .from_width = photograph->width,
                               .from_height = photograph->height,
                               .width = photograph->width,
                               .height = photograph->height};
    att_drawing drawn = {0};
    ATT_TRY(att_require(context, answer, "the answer of a network"));
    ATT_TRY(att_task_choose(context, name, &task));
    if (!task->draw)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "predictions of the task \"%s\" cannot be drawn", name);
    att_status status = draw(context, task, classes, answer, options ? options : &defaults, photograph,
                             geometry ? geometry : &same, &drawn);
    if (status == ATT_OK)
        *drawing = drawn;
    else
        att_drawing_free(context, &drawn);
    return status;
}

bool att_task_draws(const att_context *context, const char *name)
{
    const att_task *task = att_task_named(context, name);
    return task && task->draw;
}

void att_drawing_free(att_context *context, att_drawing *drawing)
{
    att_image_free(context, &drawing->image);
    att_mask_free(context, &drawing->classes);
    att_free(context, drawing->colours);
    *drawing = (att_drawing){0};
}

char *att_colour_text(const uint8_t *colours, int class_number, char text[static ATT_COLOUR_TEXT])
{
    const uint8_t *colour = colours + (ptrdiff_t)CHANNELS * class_number;
    snprintf(text, ATT_COLOUR_TEXT, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
    return text;
}

bool att_colour_read(const char *text, uint8_t colour[static CHANNELS])
{
    static const char digits[] = "0123456789abcdef";
    if (*text++ != '#')
        return false;
    for (int c = 0; c < 2 * CHANNELS; c++) {
        const char *digit = text[c] ? strchr(digits, text[c]) : NULL;
        if (!digit)
            return false;
        colour[c / 2] = (uint8_t)(16 * (c % 2 ? colour[c / 2] : 0) + (digit - digits));
    }
    return true;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Writes the bytes, unless `status` is a failure, and frees them. */
static att_status write_file(att_context *context, att_status status, att_text *bytes, const char *path)
{
    if (status == ATT_OK)
        status = att_file_replace(context, path, bytes->data, bytes->length);
    att_text_free(bytes);
    return status;
}

att_status att_drawing_write_image(att_context *context, const att_drawing *drawing, const char *path)
{
    att_text bytes = {.context = context};
    return write_file(context, att_png_write(context, &drawing->image, &bytes), &bytes, path);
}

att_status att_drawing_write_index(att_context *context, const att_drawing *drawing, const char *path)
{
    const att_mask *mask = &drawing->classes;
    const bool is_small = drawing->class_count <= NO_INDEX;
    uint8_t palette[ATT_PNG_COLOURS * CHANNELS] = {0};
    att_text bytes = {.context = context};
    if (!mask->classes)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: the answer gives no class to each pixel", path);
    if (is_small)
        memcpy(palette, drawing->colours, (size_t)drawing->class_count * CHANNELS);
    const att_status status =
        att_png_write_indices(context, mask->width, mask->height, mask->classes, is_small ? palette : NULL, &bytes);
    return write_file(context, status, &bytes, path);
}
