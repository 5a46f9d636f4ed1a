/* Boxes with names, painted into photographs. */
#include <math.h>
#include <string.h>

#include "networks/tasks/draw.h"

enum { GLYPH_ROWS = 9, GLYPH_COLUMNS = 5, CHANNELS = 3 };

/* Characters of names, and their pixels: a bit for each, the leftmost the largest. The last two rows lie below the base
 * line and are mostly empty. Other characters are shown as the last one. */
static const char characters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.?";
/* clang-format off */
static const uint8_t glyphs[][GLYPH_ROWS] = {
    {0x00, 0x00, 0x0e, 0x01, 0x0f, 0x11, 0x0f}, /* a */
    {0x10, 0x10, 0x1e, 0x11, 0x11, 0x11, 0x1e}, /* b */
    {0x00, 0x00, 0x0f, 0x10, 0x10, 0x10, 0x0f}, /* c */
    {0x01, 0x01, 0x0f, 0x11, 0x11, 0x11, 0x0f}, /* d */
    {0x00, 0x00, 0x0e, 0x11, 0x1f, 0x10, 0x0f}, /* e */
    {0x06, 0x08, 0x1e, 0x08, 0x08, 0x08, 0x08}, /* f */
    {0x00, 0x00, 0x0f, 0x11, 0x11, 0x11, 0x0f, 0x01, 0x0e}, /* g */
    {0x10, 0x10, 0x1e, 0x11, 0x11, 0x11, 0x11}, /* h */
    {0x04, 0x00, 0x0c, 0x04, 0x04, 0x04, 0x0e}, /* i */
    {0x02, 0x00, 0x06, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c}, /* j */
    {0x10, 0x10, 0x12, 0x14, 0x18, 0x14, 0x12}, /* k */
    {0x0c, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}, /* l */
    {0x00, 0x00, 0x1a, 0x15, 0x15, 0x15, 0x15}, /* m */
    {0x00, 0x00, 0x1e, 0x11, 0x11, 0x11, 0x11}, /* n */
    {0x00, 0x00, 0x0e, 0x11, 0x11, 0x11, 0x0e}, /* o */
    {0x00, 0x00, 0x1e, 0x11, 0x11, 0x11, 0x1e, 0x10, 0x10}, /* p */
    {0x00, 0x00, 0x0f, 0x11, 0x11, 0x11, 0x0f, 0x01, 0x01}, /* q */
    {0x00, 0x00, 0x16, 0x18, 0x10, 0x10, 0x10}, /* r */
    {0x00, 0x00, 0x0f, 0x10, 0x0e, 0x01, 0x1e}, /* s */
    {0x08, 0x08, 0x1e, 0x08, 0x08, 0x08, 0x06}, /* t */
    {0x00, 0x00, 0x11, 0x11, 0x11, 0x11, 0x0f}, /* u */
    {0x00, 0x00, 0x11, 0x11, 0x0a, 0x0a, 0x04}, /* v */
    {0x00, 0x00, 0x15, 0x15, 0x15, 0x15, 0x0a}, /* w */
    {0x00, 0x00, 0x11, 0x0a, 0x04, 0x0a, 0x11}, /* x */
    {0x00, 0x00, 0x11, 0x11, 0x11, 0x11, 0x0f, 0x01, 0x0e}, /* y */
    {0x00, 0x00, 0x1f, 0x02, 0x04, 0x08, 0x1f}, /* z */
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}, /* 0 */
    {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}, /* 1 */
    {0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f}, /* 2 */
    {0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e}, /* 3 */
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}, /* 4 */
    {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}, /* 5 */
    {0x0e, 0x10, 0x10, 0x1e, 0x11, 0x11, 0x0e}, /* 6 */
    {0x1f, 0x01, 0x02, 0x04, 0x04, 0x08, 0x08}, /* 7 */
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}, /* 8 */
    {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x01, 0x0e}, /* 9 */
    {0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00}, /* - */
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}, /* . */
    {0x0e, 0x11, 0x01, 0x06, 0x04, 0x00, 0x04}, /* ? */
};
/* clang-format on */

/* Returns the pixels of a character; NULL for a blank. */
static const uint8_t *glyph_of(char character)
{
    const char lower = (char)(character >= 'A' && character <= 'Z' ? character - 'A' + 'a' : character);
    const char *at = strchr(characters, lower);
    return character == ' ' ? NULL : glyphs[at ? (size_t)(at - characters) : sizeof characters - 2];
}

/* Fills the part of a rectangle that lies in the image. */
static void fill(att_image *image, int64_t left, int64_t top, int64_t right, int64_t bottom,
                 const uint8_t colour[CHANNELS])
{
    for (int64_t y = top < 0 ? 0 : top; y < bottom && y < image->height; y++)
        for (int64_t x = left < 0 ? 0 : left; x < right && x < image->width; x++)
            memcpy(image->pixels + (y * image->width + x) * CHANNELS, colour, CHANNELS);
}

/* Black on a light colour, white on a dark one (ITU-R BT.601). */
static const uint8_t *ink_on(const uint8_t colour[CHANNELS])
{
    static const uint8_t black[CHANNELS] = {0, 0, 0}, white[CHANNELS] = {255, 255, 255};
    return 299 * colour[0] + 587 * colour[1] + 114 * colour[2] > 128000 ? black : white;
}

/* The width of a name with a frame of one pixel. */
static int64_t width_of(const char *name, int scale)
{
    return ((int64_t)strlen(name) * (GLYPH_COLUMNS + 1) + 1) * scale;
}

/* A name with the height GLYPH_ROWS + 2 and a frame of one pixel, all times `scale`. */
static void write_name(att_image *image, int64_t left, int64_t top, int scale, const uint8_t colour[CHANNELS],
                       const char *name)
{
    const int64_t length = (int64_t)strlen(name);
    fill(image, left, top, left + width_of(name, scale), top + (GLYPH_ROWS + 2) * scale, colour);
    for (int64_t i = 0; i < length && left + i * scale < image->width; i++) {
        const uint8_t *glyph = glyph_of(name[i]);
        for (int bit = 0; glyph && bit < GLYPH_ROWS * GLYPH_COLUMNS; bit++) {
            const int row = bit / GLYPH_COLUMNS, column = bit % GLYPH_COLUMNS;
            const int64_t x = left + (1 + i * (GLYPH_COLUMNS + 1) + column) * scale, y = top + (1 + row) * scale;
            if (glyph[row] >> (GLYPH_COLUMNS - 1 - column) & 1)
                fill(image, x, y, x + scale, y + scale, ink_on(colour));
        }
    }
}

/* A pixel of the image, or one beyond its border. */
static int64_t pixel_of(double at, int side)
{
    return (int64_t)lround(fmin(fmax(at, -1), side + 1));
}

/* The place between 0 and `most` that is nearest; 0 if `most` is negative. */
static int64_t within(int64_t at, int64_t most)
{
    const int64_t below = at > most ? most : at;
    return below < 0 ? 0 : below;
}

void att_draw_box(att_image *image, const double box[4], const uint8_t colour[3], const char *name)
{
    enum { SIDE_FOR_NAMES = 400 };
    const int shorter = image->width < image->height ? image->width : image->height;
    const int scale = 1 + shorter / SIDE_FOR_NAMES, line = 2 * scale, height = (GLYPH_ROWS + 2) * scale;
    const int64_t left = pixel_of(box[0], image->width), top = pixel_of(box[1], image->height),
                  right = pixel_of(box[2], image->width), bottom = pixel_of(box[3], image->height);
    fill(image, left, top, right, top + line, colour);
    fill(image, left, bottom - line, right, bottom, colour);
    fill(image, left, top, left + line, bottom, colour);
    fill(image, right - line, top, right, bottom, colour);
    if (name)
        write_name(image, within(left, image->width - width_of(name, scale)),
                   within(top < height ? top : top - height, image->height - height), scale, colour, name);
}
