#include "study/pictures/picture.h"

#include <string.h>
#include <strings.h>

#include <attscope/file.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/png_write.h"

enum { CHANNELS = 3, MOST_SIDE = 65535 };

typedef struct format {
    const char *ending;
    att_status (*write)(att_context *context, const att_picture *picture, att_text *out);
} format;
static const format formats[] = {{".png", att_picture_png}, {".svg", att_picture_svg}, {".pdf", att_picture_pdf}};

static const format *format_of(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (length > strlen(formats[i].ending) &&
            strcasecmp(path + length - strlen(formats[i].ending), formats[i].ending) == 0)
            return &formats[i];
    return NULL;
}

att_status att_picture_write(att_context *context, const att_picture_tile *tiles, int count, const char *path)
{
    const format *chosen = format_of(path);
    att_picture picture = {.tiles = tiles, .count = count};
    att_text out = {.context = context};
    if (!chosen)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: the ending is none of .png, .svg and .pdf", path);
    for (int i = 0; i < count; i++) {
        const int right = tiles[i].x + tiles[i].image->width, bottom = tiles[i].y + tiles[i].image->height;
        picture.width = right > picture.width ? right : picture.width;
        picture.height = bottom > picture.height ? bottom : picture.height;
    }
    if (count < 1 || picture.width > MOST_SIDE || picture.height > MOST_SIDE)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: a picture of %d x %d pixels cannot be written", path,
                        picture.width, picture.height);
    att_status status = chosen->write(context, &picture, &out);
    if (status == ATT_OK)
        status = out.failed ? att_fail_memory(context, out.length, "a picture")
                            : att_file_replace(context, path, out.data, out.length);
    att_text_free(&out);
    return status;
}

att_status att_picture_png(att_context *context, const att_picture *picture, att_text *out)
{
    const size_t row = (size_t)picture->width * CHANNELS;
    att_image whole = {picture->width, picture->height, CHANNELS, NULL};
    ATT_TRY(att_new(context, &whole.pixels, row * (size_t)picture->height, "a picture"));
    memset(whole.pixels, UINT8_MAX, row * (size_t)picture->height);
    for (int t = 0; t < picture->count; t++) {
        const att_picture_tile *tile = &picture->tiles[t];
        const size_t bytes = (size_t)tile->image->width * CHANNELS;
        for (int y = 0; y < tile->image->height; y++)
            memcpy(whole.pixels + (size_t)(tile->y + y) * row + (size_t)tile->x * CHANNELS,
                   tile->image->pixels + (size_t)y * bytes, bytes);
    }
    const att_status status = att_png_write(context, &whole, out);
    att_free(context, whole.pixels);
    return status;
}
