/* attscope/image.h - photographs from files: JPEG, PNG and WebP to 8-bit pixels.
 *
 * The bytes equal those of Pillow's Image.open(file).convert("RGB") (or "L" for one channel): full-precision inverse
 * DCT, smooth chroma upsampling, alpha dropped, palettes looked up, 16-bit colour cut to its high byte, 16-bit grey
 * clipped at 255, CMYK taken as Adobe's inverted one. Of an animated WebP the first frame is decoded, on black. EXIF
 * blocks, and so orientation tags, are ignored, as Pillow does. The format is found from the first bytes, never from
 * the name. A JPEG whose coded data are damaged, but not cut short, is decoded to what Pillow makes of it, with a
 * warning in the context's log.
 */
#ifndef ATTSCOPE_IMAGE_H
#define ATTSCOPE_IMAGE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pixels: [height][width][channels]; channels 1 (grey) or 3 (red, green, blue). An image of zeros is empty. */
typedef struct att_image {
    int width, height, channels;
    uint8_t *pixels;
} att_image;

/* What a file from outside may ask for; more is ERR_UNSUPPORTED before anything is decoded. */
typedef struct att_image_limits {
    int side;          /* largest width and height */
    int64_t pixels;    /* largest width * height */
    size_t file_bytes; /* largest file */
    size_t memory;     /* bytes a decoder may use besides the pixels */
} att_image_limits;

/* Sides up to 65,535, 2^26 pixels, files up to 256 MiB, 1 GiB of memory. */
ATT_API att_image_limits att_image_limits_defaults(void);

/* Decodes `size` bytes to an image of `channels` (1 or 3). limits: NULL means the defaults. On success *image is the
 * caller's, freed by att_image_free(); on failure it is unchanged. Errors: ERR_FORMAT (another format, truncated,
 * corrupt), ERR_UNSUPPORTED (beyond the limits, 12-bit JPEG and other rare kinds), ERR_ARGUMENT, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_image_decode(att_context *context, const void *bytes, size_t size, int channels,
                                                   const att_image_limits *limits, att_image *image);
/* The same from a file, whose path every message names. Errors as above; ERR_NOT_FOUND, ERR_IO. */
ATT_API ATT_MUST_CHECK att_status att_image_read(att_context *context, const char *path, int channels,
                                                 const att_image_limits *limits, att_image *image);
/* Whether red, green and blue are equal in every pixel of an image with 3 channels. */
ATT_API bool att_image_is_grey(const att_image *image);
/* Frees the pixels and makes the image empty; empty images are allowed. context: the one it was decoded with. */
ATT_API void att_image_free(att_context *context, att_image *image);

#ifdef __cplusplus
}
#endif
#endif
