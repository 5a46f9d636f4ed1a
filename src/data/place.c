#include "data/place.h"

#include <string.h>

att_affine att_placement_map(const att_placement *place, int width, int height)
{
    att_affine step = {.a = 1, .c = -place->offset_x, .e = 1, .f = -place->offset_y};
    if (place->mirrored) {
        step.a = -1;
        step.c = width + place->offset_x;
    }
    if (place->upside_down) {
        step.e = -1;
        step.f = height + place->offset_y;
    }
    return step;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static void fill_pixels(const att_placement *place, int count, uint8_t *out)
{
    for (int i = 0; i < count; i++)
        memcpy(out + (size_t)i * place->pixel, place->fill, place->pixel);
}

/* Writes a row of `width` pixels. */
static void place_row(const att_placement *place, const uint8_t *row, int width, uint8_t *out)
{
    const size_t pixel = place->pixel;
    int shift = place->mirrored ? width + place->offset_x - place->width : -place->offset_x;
    int begin = clamp(shift, 0, width), end = clamp(shift + place->width, 0, width);
    int from = place->mirrored ? width - 1 - begin + place->offset_x : begin + place->offset_x;
    fill_pixels(place, begin, out);
    fill_pixels(place, width - end, out + (size_t)end * pixel);
    if (!place->mirrored && begin < end)
        memcpy(out + (size_t)begin * pixel, row + (size_t)from * pixel, (size_t)(end - begin) * pixel);
    for (int x = begin; place->mirrored && x < end; x++)
        for (size_t b = 0; b < pixel; b++)
            out[(size_t)x * pixel + b] = row[(size_t)(from - (x - begin)) * pixel + b];
}

/* The pixel that is seen at `at` in a line of `size` pixels between mirrors on its first and last pixel. */
static int reflect(int at, int size)
{
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

static void place_reflected(const att_placement *place, int row, const uint8_t *image, int width, uint8_t *out)
{
    const uint8_t *from = image + (size_t)reflect(row, place->height) * (size_t)place->width * place->pixel;
    for (int x = 0; x < width; x++) {
        int column = (place->mirrored ? width - 1 - x : x) + place->offset_x;
        memcpy(out + (size_t)x * place->pixel, from + (size_t)reflect(column, place->width) * place->pixel,
               place->pixel);
    }
}

void att_place(const att_placement *place, const uint8_t *image, int width, int height, uint8_t *out)
{
    const size_t stride = (size_t)place->width * place->pixel;
    for (int y = 0; y < height; y++, out += (size_t)width * place->pixel) {
        int row = (place->upside_down ? height - 1 - y : y) + place->offset_y;
        if (place->reflected)
            place_reflected(place, row, image, width, out);
        else if (row < 0 || row >= place->height)
            fill_pixels(place, width, out);
        else
            place_row(place, image + (size_t)row * stride, width, out);
    }
}
