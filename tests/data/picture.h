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

/* Makes a grey PNG filled with `value`. *bytes belongs to the caller, who frees it. */
static inline void picture_make_sized(int value, int width, int height, void **bytes, size_t *size)
{
    const size_t count = (size_t)width * (size_t)height;
    uint8_t *pixels = malloc(count);
    memset(pixels, value, count);
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr header = {.width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = 8};
    int error = 0;
    spng_set_option(encoder, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(encoder, &header);
    assert_int_equal(spng_encode_image(encoder, pixels, count, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    free(pixels);
    *bytes = spng_get_png_buffer(encoder, size, &error);
    assert_non_null(*bytes);
    spng_ctx_free(encoder);
}

static inline void picture_make(int value, void **bytes, size_t *size)
{
    picture_make_sized(value, PICTURE_SIDE, PICTURE_SIDE, bytes, size);
}

#endif
