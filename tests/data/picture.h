/* data/picture.h - for tests: makes a tiny PNG. */
#ifndef TESTS_DATA_PICTURE_H
#define TESTS_DATA_PICTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <spng.h>

enum { PICTURE_SIDE = 4 };

/* Makes a PNG. rows: as libspng takes them, with samples of 16 bits in the machine's byte order. palette: NULL: none.
 * *bytes belongs to the caller, who frees it. */
static inline void picture_encode(int width, int height, int depth, int type, const struct spng_plte *palette,
                                  const void *rows, size_t row_bytes, void **bytes, size_t *size)
{
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = (uint8_t)depth, .color_type = (uint8_t)type};
    int error = 0;
    spng_set_option(encoder, SPNG_ENCODE_TO_BUFFER, 1);
    assert_int_equal(spng_set_ihdr(encoder, &header), 0);
    if (palette)
        assert_int_equal(spng_set_plte(encoder, (struct spng_plte *)(uintptr_t)palette), 0);
    assert_int_equal(spng_encode_image(encoder, rows, row_bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    *bytes = spng_get_png_buffer(encoder, size, &error);
    assert_non_null(*bytes);
    spng_ctx_free(encoder);
}

/* Makes a grey PNG filled with `value`. *bytes belongs to the caller, who frees it. */
static inline void picture_make_sized(int value, int width, int height, void **bytes, size_t *size)
{
    const size_t count = (size_t)width * (size_t)height;
    uint8_t *pixels = malloc(count);
    memset(pixels, value, count);
    picture_encode(width, height, 8, SPNG_COLOR_TYPE_GRAYSCALE, NULL, pixels, count, bytes, size);
    free(pixels);
}

static inline void picture_make(int value, void **bytes, size_t *size)
{
    picture_make_sized(value, PICTURE_SIDE, PICTURE_SIDE, bytes, size);
}

#endif
