/* SVG 1.1: each tile is a PNG in a data URL, labels are text. No library: the format is text, and the images are those
 * of att_png_write(). */
#include "base/core/error.h"
#include "base/io/base64.h"
#include "base/io/png_write.h"
#include "study/pictures/picture.h"

void att_picture_svg_escape(att_text *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            att_text_append(out, *text == '<' ? "&lt;" : "&amp;");
        else if ((unsigned char)*text >= ' ')
            att_text_append_bytes(out, text, 1);
}

static att_status append_tile(att_context *context, const att_picture_tile *tile, att_text *out)
{
    att_text png = {.context = context};
    const att_status status = att_png_write(context, tile->image, &png);
    att_text_append(out,
                    "<image x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" style=\"image-rendering:pixelated\" "
                    "xlink:href=\"data:image/png;base64,",
                    tile->x, tile->y, tile->image->width, tile->image->height);
    att_base64_append(out, (const uint8_t *)png.data, png.length);
    att_text_append(out, "\"/>\n");
    att_text_free(&png);
    if (tile->label) {
        att_text_append(out, "<text x=\"%d\" y=\"%d\" font-family=\"Helvetica,Arial,sans-serif\" font-size=\"%d\">",
                        tile->x, tile->y - 3, ATT_PICTURE_FONT);
        att_picture_svg_escape(out, tile->label);
        att_text_append(out, "</text>\n");
    }
    return status;
}

att_status att_picture_svg(att_context *context, const att_picture *picture, att_text *out)
{
    att_text_append(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
                    "width=\"%.2fpt\" height=\"%.2fpt\" viewBox=\"0 0 %d %d\">\n",
                    0.75 * picture->width, 0.75 * picture->height, picture->width, picture->height);
    for (int t = 0; t < picture->count; t++)
        ATT_TRY(append_tile(context, &picture->tiles[t], out));
    att_text_append(out, "</svg>\n");
    return ATT_OK;
}
