/* PDF 1.4 (ISO 32000-1): one page, each tile an image, labels in Helvetica, which every reader has. No library:
 * Debian's libraries for PDF (cairo, libharu) would be a dependency for these few objects. The compressed rows of a PNG
 * are what /FlateDecode with PNG's predictor expects. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/png_write.h"
#include "study/pictures/picture.h"

enum { CATALOG = 1, PAGES, PAGE, FONT, CONTENT, FIRST_IMAGE, SIGNATURE = 8, CHUNK = 12 };

typedef struct pdf {
    att_context *context;
    const att_picture *picture;
    att_text *out;
    size_t *at; /* of each object */
} pdf;

static void begin(const pdf *p, int object)
{
    p->at[object] = p->out->length;
    att_text_append(p->out, "%d 0 obj\n", object);
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Appends the contents of the chunks IDAT of a PNG that att_png_write() made. */
static void append_rows(const att_text *png, att_text *rows)
{
    const uint8_t *bytes = (const uint8_t *)png->data;
    for (size_t at = SIGNATURE; at + CHUNK <= png->length;) {
        const uint32_t length = big_endian(bytes + at);
        if (memcmp(bytes + at + 4, "IDAT", 4) == 0)
            att_text_append_bytes(rows, bytes + at + 8, length);
        at += CHUNK + length;
    }
}

static att_status append_image(const pdf *p, int index)
{
    const att_image *image = p->picture->tiles[index].image;
    att_text png = {.context = p->context}, rows = {.context = p->context};
    att_status status = att_png_write(p->context, image, &png);
    if (status == ATT_OK)
        append_rows(&png, &rows);
    if (status == ATT_OK && rows.failed)
        status = att_fail_memory(p->context, rows.length, "a picture");
    begin(p, FIRST_IMAGE + index);
    att_text_append(p->out,
                    "<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceRGB /BitsPerComponent 8 "
                    "/Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors 3 /BitsPerComponent 8 /Columns %d >> "
                    "/Length %zu >>\nstream\n",
                    image->width, image->height, image->width, rows.length);
    att_text_append_bytes(p->out, rows.data, rows.length);
    att_text_append(p->out, "\nendstream\nendobj\n");
    att_text_free(&png);
    att_text_free(&rows);
    return status;
}

/* Appends a string of ASCII; other bytes become '?'. */
static void append_string(att_text *out, const char *text)
{
    att_text_append(out, "(");
    for (; *text; text++) {
        if (*text == '(' || *text == ')' || *text == '\\')
            att_text_append(out, "\\");
        att_text_append_bytes(out, *text >= ' ' && *text <= '~' ? text : "?", 1);
    }
    att_text_append(out, ")");
}

static void append_content(const pdf *p)
{
    att_text text = {.context = p->context};
    for (int t = 0; t < p->picture->count; t++) {
        const att_picture_tile *tile = &p->picture->tiles[t];
        const double bottom = 0.75 * (p->picture->height - tile->y - tile->image->height);
        att_text_append(&text, "q %.2f 0 0 %.2f %.2f %.2f cm /I%d Do Q\n", 0.75 * tile->image->width,
                        0.75 * tile->image->height, 0.75 * tile->x, bottom, t);
        if (!tile->label)
            continue;
        att_text_append(&text, "BT /F %.2f Tf %.2f %.2f Td ", 0.75 * ATT_PICTURE_FONT, 0.75 * tile->x,
                        0.75 * (p->picture->height - tile->y + 3));
        append_string(&text, tile->label);
        att_text_append(&text, " Tj ET\n");
    }
    begin(p, CONTENT);
    att_text_append(p->out, "<< /Length %zu >>\nstream\n", text.length);
    att_text_append_bytes(p->out, text.data, text.length);
    att_text_append(p->out, "\nendstream\nendobj\n");
    p->out->failed |= text.failed;
    att_text_free(&text);
}

static void append_page(const pdf *p)
{
    begin(p, CATALOG);
    att_text_append(p->out, "<< /Type /Catalog /Pages %d 0 R >>\nendobj\n", PAGES);
    begin(p, PAGES);
    att_text_append(p->out, "<< /Type /Pages /Kids [%d 0 R] /Count 1 >>\nendobj\n", PAGE);
    begin(p, PAGE);
    att_text_append(p->out,
                    "<< /Type /Page /Parent %d 0 R /MediaBox [0 0 %.2f %.2f] /Contents %d 0 R /Resources << /Font << "
                    "/F %d 0 R >> /XObject <<",
                    PAGES, 0.75 * p->picture->width, 0.75 * p->picture->height, CONTENT, FONT);
    for (int t = 0; t < p->picture->count; t++)
        att_text_append(p->out, " /I%d %d 0 R", t, FIRST_IMAGE + t);
    att_text_append(p->out, " >> >> >>\nendobj\n");
    begin(p, FONT);
    att_text_append(p->out, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n");
}

static void append_index(const pdf *p)
{
    const int objects = FIRST_IMAGE + p->picture->count;
    const size_t start = p->out->length;
    att_text_append(p->out, "xref\n0 %d\n0000000000 65535 f \n", objects);
    for (int i = CATALOG; i < objects; i++)
        att_text_append(p->out, "%010zu 00000 n \n", p->at[i]);
    att_text_append(p->out, "trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%zu\n%%%%EOF\n", objects, CATALOG, start);
}

att_status att_picture_pdf(att_context *context, const att_picture *picture, att_text *out)
{
    pdf p = {.context = context, .picture = picture, .out = out};
    att_status status = ATT_OK;
    ATT_TRY(att_new(context, &p.at, FIRST_IMAGE + (size_t)picture->count, "a picture"));
    att_text_append(out, "%%PDF-1.4\n%%\xe2\xe3\xcf\xd3\n");
    append_page(&p);
    append_content(&p);
    for (int t = 0; t < picture->count && status == ATT_OK; t++)
        status = append_image(&p, t);
    append_index(&p);
    att_free(context, p.at);
    return status;
}
