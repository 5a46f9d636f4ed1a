/* attscope/image.h - decodes JPEG, PNG and WebP files to 8-bit pixels.
 *
 * The pixels equal those of Pillow's Image.open(file).convert("RGB") (or "L" for one channel). That means:
 * full-precision inverse DCT and smooth chroma upsampling; alpha is dropped; palettes are expanded; of 16-bit samples
 * the high byte is kept; CMYK is taken as inverted, as Adobe writes it. Of an animated WebP the first frame is decoded,
 * on a black background. EXIF data, and so the orientation, are ignored unless att_image_limits.exif_transpose is set.
 * The format is recognised by the first bytes, never by the file name. A JPEG with damaged (but complete) coded data is
 * decoded to the pixels that Pillow makes of it; the log gets a warning. 16-bit grey differs: Pillow, and so timm, clip
 * it at 255, so that nearly all is white.
 */
#ifndef ATTSCOPE_IMAGE_H
#define ATTSCOPE_IMAGE_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pixels: [height][width][channels]; channels is 1 (grey) or 3 (red, green, blue). A zeroed struct is an empty image.
 */
typedef struct att_image {
    int width, height, channels;
    uint8_t *pixels;
} att_image;

/* Limits for files from outside, and how they are read. A file beyond the limits is refused with ERR_UNSUPPORTED before
 * it is decoded. */
typedef struct att_image_limits {
    int side;          /* largest width and height */
    int64_t pixels;    /* largest width * height */
    size_t file_bytes; /* largest file */
    size_t memory;     /* bytes that a decoder may allocate besides the pixels */
    /* Turn and mirror the image as the orientation in its EXIF data says, as Pillow's ImageOps.exif_transpose() does,
     * so that width and height can change places. An orientation that only XMP data or PNG text contains is not read.
     */
    bool exif_transpose;
} att_image_limits;

/* Sides up to 65,535, 2^26 pixels, files up to 256 MiB, 1 GiB of memory; images as they are stored. */
ATT_API att_image_limits att_image_limits_defaults(void);

/* Decodes an image file of `size` bytes in memory to `channels` (1 or 3) channels. limits: NULL means the defaults. On
 * success the caller owns *image and frees it with att_image_free(); on failure *image is unchanged. Errors: ERR_FORMAT
 * (another format, truncated, corrupt), ERR_UNSUPPORTED (beyond the limits; rare kinds such as 12-bit JPEG),
 * ERR_ARGUMENT, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_image_decode(att_context *context, const void *bytes, size_t size, int channels,
                                                   const att_image_limits *limits, att_image *image);
/* As att_image_decode(), from a file; every message names its path. Further errors: ERR_NOT_FOUND, ERR_IO. */
ATT_API ATT_MUST_CHECK att_status att_image_read(att_context *context, const char *path, int channels,
                                                 const att_image_limits *limits, att_image *image);
/* Returns whether red, green and blue are equal in every pixel of an image with 3 channels. */
ATT_API bool att_image_is_grey(const att_image *image);
/* Frees the pixels and makes the image empty; an empty image is allowed. context: the one that decoded the image. */
ATT_API void att_image_free(att_context *context, att_image *image);

#ifdef __cplusplus
}
#endif
#endif
