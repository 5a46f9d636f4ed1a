#include "base/io/png_write.h"

#include <stdlib.h>

#include <spng.h>

#include "base/core/error.h"

/* Returns 0 or libspng's code. *bytes: allocated by malloc(), for the caller to free. */
static int encode(spng_ctx *encoder, const att_image *image, void **bytes, size_t *size)
{
    struct spng_ihdr header = {.width = (uint32_t)image->width,
                               .height = (uint32_t)image->height,
                               .bit_depth = 8,
                               .color_type =
                                   image->channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR};
    const size_t pixels = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    int code = spng_set_option(encoder, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code)
        code = spng_set_ihdr(encoder, &header);
    if (!code)
        code = spng_encode_image(encoder, image->pixels, pixels, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!code)
        *bytes = spng_get_png_buffer(encoder, size, &code);
    return code;
}

att_status att_png_write(att_context *context, const att_image *image, att_text *out)
{
    void *bytes = NULL;
    size_t size = 0;
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    int code = encoder ? encode(encoder, image, &bytes, &size) : SPNG_EMEM;
    spng_ctx_free(encoder);
    if (!code)
        att_text_append_bytes(out, bytes, size);
    free(bytes);
    if (out->failed || code == SPNG_EMEM)
        return att_fail_memory(context, size, "a PNG");
    return code ? att_fail(context, ATT_ERR_INTERNAL, "a PNG cannot be written: %s", spng_strerror(code)) : ATT_OK;
}
