#include "base/io/png_write.h"

#include <stdlib.h>

#include <spng.h>

#include "base/core/error.h"
#include "base/core/memory.h"

/* An image to encode. */
typedef struct picture {
    struct spng_ihdr header;
    struct spng_plte *palette; /* NULL: none */
    const void *pixels;
    size_t bytes;
} picture;

/* Returns 0 or libspng's code. *bytes: allocated by malloc(), for the caller to free. */
static int encode(spng_ctx *encoder, picture *from, void **bytes, size_t *size)
{
    int code = spng_set_option(encoder, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code)
        code = spng_set_ihdr(encoder, &from->header);
    if (!code && from->palette)
        code = spng_set_plte(encoder, from->palette);
    if (!code)
        code = spng_encode_image(encoder, from->pixels, from->bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!code)
        *bytes = spng_get_png_buffer(encoder, size, &code);
    return code;
}

static att_status write(att_context *context, picture *from, att_text *out)
{
    void *bytes = NULL;
    size_t size = 0;
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    int code = encoder ? encode(encoder, from, &bytes, &size) : SPNG_EMEM;
    spng_ctx_free(encoder);
    if (!code)
        att_text_append_bytes(out, bytes, size);
    free(bytes);
    if (out->failed || code == SPNG_EMEM)
        return att_fail_memory(context, size, "a PNG");
    return code ? att_fail(context, ATT_ERR_INTERNAL, "a PNG cannot be written: %s", spng_strerror(code)) : ATT_OK;
}

static struct spng_ihdr header_of(int width, int height, uint8_t depth, uint8_t colour_type)
{
    return (struct spng_ihdr){
        .width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = depth, .color_type = colour_type};
}

att_status att_png_write(att_context *context, const att_image *image, att_text *out)
{
    const uint8_t type = image->channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
    picture from = {.header = header_of(image->width, image->height, 8, type),
                    .pixels = image->pixels,
                    .bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels};
    return write(context, &from, out);
}

static att_status write_bytes(att_context *context, int width, int height, const uint16_t *indices,
                              struct spng_plte *palette, att_text *out)
{
    const size_t count = (size_t)width * (size_t)height;
    uint8_t *bytes = att_allocate(context, count);
    if (!bytes)
        return att_fail_memory(context, count, "a PNG");
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)indices[i];
    picture from = {.header = header_of(width, height, 8, SPNG_COLOR_TYPE_INDEXED),
                    .palette = palette,
                    .pixels = bytes,
                    .bytes = count};
    att_status status = write(context, &from, out);
    att_free(context, bytes);
    return status;
}

att_status att_png_write_indices(att_context *context, int width, int height, const uint16_t *indices,
                                 const uint8_t *palette, att_text *out)
{
    struct spng_plte table = {.n_entries = ATT_PNG_COLOURS};
    for (int i = 0; palette && i < ATT_PNG_COLOURS; i++)
        table.entries[i] =
            (struct spng_plte_entry){.red = palette[3 * i], .green = palette[3 * i + 1], .blue = palette[3 * i + 2]};
    if (palette)
        return write_bytes(context, width, height, indices, &table, out);
    picture from = {.header = header_of(width, height, 16, SPNG_COLOR_TYPE_GRAYSCALE),
                    .pixels = indices,
                    .bytes = 2 * (size_t)width * (size_t)height};
    return write(context, &from, out);
}
