/* Turns images by the orientation of EXIF data. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/image_codec.h"

/* Where the pixel (x, y) of the turned picture lies in the stored one: x and y change places if `swaps`, then each
 * counts from the other side if it is mirrored. */
typedef struct turn {
    bool swaps, mirrors_x, mirrors_y;
} turn;

/* The values of the tag Orientation (CIPA DC-008, EXIF 3.0, section 4.6.5.1.6). */
static turn turn_of(int orientation)
{
    static const turn turns[] = {[2] = {.mirrors_x = true},
                                 [3] = {.mirrors_x = true, .mirrors_y = true},
                                 [4] = {.mirrors_y = true},
                                 [5] = {.swaps = true},
                                 [6] = {.swaps = true, .mirrors_y = true},
                                 [7] = {.swaps = true, .mirrors_x = true, .mirrors_y = true},
                                 [8] = {.swaps = true, .mirrors_x = true}};
    return turns[orientation];
}

att_box att_image_stored_box(int orientation, att_box box, int width, int height)
{
    const turn t = turn_of(orientation);
    att_box stored = t.swaps ? (att_box){box.y, box.x, box.height, box.width} : box;
    if (t.mirrors_x)
        stored.x = width - stored.x - stored.width;
    if (t.mirrors_y)
        stored.y = height - stored.y - stored.height;
    return stored;
}

att_status att_image_turn(att_context *context, const char *name, int orientation, att_image *image)
{
    const turn t = turn_of(orientation);
    const size_t channels = (size_t)image->channels, stored_width = (size_t)image->width;
    const int width = t.swaps ? image->height : image->width, height = t.swaps ? image->width : image->height;
    const size_t bytes = (size_t)width * (size_t)height * channels;
    uint8_t *pixels = att_reallocate(context, NULL, bytes);
    if (!pixels)
        return att_fail_memory(context, bytes, name);
    uint8_t *to = pixels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, to += channels) {
            const size_t across = (size_t)(t.swaps ? y : x), down = (size_t)(t.swaps ? x : y);
            const size_t from_x = t.mirrors_x ? stored_width - 1 - across : across;
            const size_t from_y = t.mirrors_y ? (size_t)image->height - 1 - down : down;
            memcpy(to, image->pixels + (from_y * stored_width + from_x) * channels, channels);
        }
    att_free(context, image->pixels);
    *image = (att_image){width, height, image->channels, pixels};
    return ATT_OK;
}
