#include <math.h>
#include <string.h>

#include <attscope/picture.h>

#include "base/core/error.h"
#include "base/core/memory.h"

enum { CHANNELS = 3, GREY = 160 };

att_map_style att_map_style_defaults(void)
{
    return (att_map_style){.colours = "viridis", .low = NAN, .high = NAN, .opacity = 0.6};
}

void att_map_scale(const att_relevance_map *map, const att_map_style *style, double *low, double *high)
{
    double smallest = INFINITY, largest = -INFINITY;
    for (int i = 0; i < map->height * map->width; i++) {
        smallest = fmin(smallest, map->values[i]); /* NaN is ignored */
        largest = fmax(largest, map->values[i]);
    }
    if (smallest > largest)
        smallest = largest = 0;
    if (strcmp(style->colours, "diverging") == 0) {
        largest = fmax(fabs(smallest), fabs(largest));
        smallest = -largest;
    }
    *low = isnan(style->low) ? smallest : style->low;
    *high = isnan(style->high) ? largest : style->high;
}

static att_status check(att_context *context, const att_relevance_map *map, const att_map_style *style,
                        const att_image *image)
{
    uint8_t colour[CHANNELS];
    if (!att_colour_of(style->colours, 0, colour))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "there is no colour map \"%s\"; expected viridis, magma, inferno, "
                        "plasma, grey or diverging",
                        style->colours);
    if (!(style->opacity >= 0 && style->opacity <= 1))
        return att_fail(context, ATT_ERR_ARGUMENT, "the opacity is %g; expected 0 to 1", style->opacity);
    if (map->height < 1 || map->width < 1 || image->width < 1 || image->height < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "the map or its image has no cells");
    return ATT_OK;
}

/* The values of the pixels. NaN spreads to all pixels that a smooth map interpolates from it. */
static void find_values(const att_relevance_map *map, bool smooth, int height, int width, double *values)
{
    if (smooth) {
        att_relevance_resize(map, height, width, values);
        return;
    }
    for (int i = 0; i < height * width; i++) {
        const int y = (int)((int64_t)(i / width) * map->height / height);
        const int x = (int)((int64_t)(i % width) * map->width / width);
        values[i] = map->values[(ptrdiff_t)y * map->width + x];
    }
}

static void paint(const double *values, double low, double high, const att_map_style *style, const att_image *image,
                  uint8_t *pixels)
{
    const int count = image->width * image->height;
    for (int i = 0; i < count; i++) {
        uint8_t colour[CHANNELS] = {GREY, GREY, GREY};
        const double part = high > low ? (values[i] - low) / (high - low) : 0.5;
        const bool shown = !isnan(values[i]);
        const double opacity = shown || style->opacity == 1 ? style->opacity : 0;
        if (shown)
            att_colour_of(style->colours, part, colour);
        for (int c = 0; c < CHANNELS; c++) {
            const double under = image->pixels[(ptrdiff_t)i * image->channels + (image->channels == 1 ? 0 : c)];
            pixels[(ptrdiff_t)i * CHANNELS + c] = (uint8_t)lround(opacity * colour[c] + (1 - opacity) * under);
        }
    }
}

att_status att_map_draw(att_context *context, const att_relevance_map *map, const att_map_style *style,
                        const att_image *image, att_image *drawn)
{
    double *values, low, high;
    uint8_t *pixels;
    ATT_TRY(check(context, map, style, image));
    const size_t count = (size_t)image->width * (size_t)image->height;
    ATT_TRY(att_new(context, &values, count, "the values of a map"));
    att_status status = att_new(context, &pixels, CHANNELS * count, "the picture of a map");
    if (status == ATT_OK) {
        att_map_scale(map, style, &low, &high);
        find_values(map, style->smooth, image->height, image->width, values);
        paint(values, low, high, style, image, pixels);
        *drawn = (att_image){image->width, image->height, CHANNELS, pixels};
    }
    att_free(context, values);
    return status;
}
