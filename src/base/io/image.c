#include <attscope/image.h>

#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/image_codec.h"
#include "base/io/system.h"

/* A format and the first bytes of its files. In the signature, "?" matches any byte, "_" any white space. */
typedef struct image_format {
    const char *name, *signature;
    size_t signature_size;
    att_status (*decode)(const att_image_job *job, att_image *image); /* NULL: the format is not supported */
} image_format;

#define SIGNATURE(text) text, sizeof(text) - 1
static const image_format formats[] = {
    {"JPEG", SIGNATURE("\xff\xd8\xff"), att_image_decode_jpeg},
    {"PNG", SIGNATURE("\x89PNG\r\n\x1a\n"), att_image_decode_png},
    {"WebP", SIGNATURE("RIFF????WEBP"), att_image_decode_webp},
    {"GIF", SIGNATURE("GIF8"), NULL},
    {"BMP", SIGNATURE("BM????\0\0\0\0"), NULL},
    {"TIFF", SIGNATURE("II*\0"), NULL},
    {"TIFF", SIGNATURE("MM\0*"), NULL},
    {"AVIF", SIGNATURE("????ftypavi"), NULL},
    {"HEIF", SIGNATURE("????ftyphe"), NULL},
    {"HEIF", SIGNATURE("????ftypmif1"), NULL},
    {"JPEG XL", SIGNATURE("\xff\x0a"), NULL},
    {"JPEG XL", SIGNATURE("\0\0\0\x0cJXL "), NULL},
    {"JPEG 2000", SIGNATURE("\0\0\0\x0cjP  "), NULL},
    {"JPEG 2000", SIGNATURE("\xff\x4f\xff\x51"), NULL},
    {"PPM", SIGNATURE("P6_"), NULL},
    {"PGM", SIGNATURE("P5_"), NULL},
    {"Photoshop", SIGNATURE("8BPS"), NULL},
    {"icon", SIGNATURE("\0\0\1\0"), NULL},
};

att_image_limits att_image_limits_defaults(void)
{
    return (att_image_limits){
        .side = 65535, .pixels = (int64_t)1 << 26, .file_bytes = (size_t)256 << 20, .memory = (size_t)1 << 30};
}

static bool matches(char sign, uint8_t byte)
{
    if (sign == '_')
        return byte == ' ' || (byte >= '\t' && byte <= '\r');
    return sign == '?' || byte == (uint8_t)sign;
}

static bool begins_with(const uint8_t *bytes, size_t size, const image_format *format)
{
    if (size < format->signature_size)
        return false;
    for (size_t i = 0; i < format->signature_size; i++)
        if (!matches(format->signature[i], bytes[i]))
            return false;
    return true;
}

/* Returns the format of the file that begins with these bytes, or NULL. */
static const image_format *format_of(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (begins_with(bytes, size, &formats[i]))
            return &formats[i];
    return NULL;
}

const char *att_image_format_of(const void *bytes, size_t size)
{
    const image_format *format = format_of(bytes, size);
    return format ? format->name : NULL;
}

/* What the headers say about the image as it is read: one that is turned has no orientation left. */
static att_image_look shown(att_image_look look, int orientation)
{
    if (orientation == 1)
        return look;
    const bool swaps = orientation > 4;
    return (att_image_look){swaps ? look.height : look.width, swaps ? look.width : look.height, 1};
}

/* The need of a caller who sees the picture turned. */
typedef struct turned_need {
    const att_image_need *need;
    int orientation;
} turned_need;

static att_box stored_box(void *user, int width, int height)
{
    const turned_need *turned = user;
    const bool swaps = turned->orientation > 4;
    const att_box box = turned->need->box(turned->need->user, swaps ? height : width, swaps ? width : height);
    return att_image_stored_box(turned->orientation, box, width, height);
}

att_status att_image_decode_named(att_context *context, const char *name, const void *bytes, size_t size, int channels,
                                  const att_image_limits *limits, const att_image_need *need, att_image *image)
{
    if (channels != 1 && channels != 3)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: %d channels requested; expected 1 or 3", name, channels);
    att_image_limits defaults = att_image_limits_defaults();
    att_image_job job = {context, name, bytes, size, channels, limits ? limits : &defaults, need};
    if (size > job.limits->file_bytes)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: %zu bytes, more than the limit of %zu", name, size,
                        job.limits->file_bytes);
    if (size == 0)
        return att_fail(context, ATT_ERR_FORMAT, "%s: empty, expected a JPEG, PNG or WebP image", name);
    const image_format *format = format_of(job.bytes, size);
    if (!format)
        return att_fail(context, ATT_ERR_FORMAT, "%s: not a JPEG, PNG or WebP image", name);
    if (!format->decode)
        return att_fail(context, ATT_ERR_FORMAT, "%s: %s %s image; convert it to JPEG, PNG or WebP", name,
                        strchr("AEIOaeio", *format->name) ? "an" : "a", format->name);
    att_image decoded = {0};
    att_image_look look = {.orientation = 1};
    const bool asks = need && (need->look || need->orientation);
    const bool told = (asks || job.limits->exif_transpose) && att_image_look_at(bytes, size, &look);
    const int stored = told ? look.orientation : 1, orientation = job.limits->exif_transpose ? stored : 1;
    if (need && need->orientation)
        *need->orientation = stored;
    if (need && need->look && told) {
        *need->look = shown(look, orientation);
        *image = decoded;
        return att_image_check_size(&job, (uint64_t)look.width, (uint64_t)look.height);
    }
    turned_need turned = {need, orientation};
    const att_image_need as_stored = {.box = stored_box, .user = &turned};
    if (orientation > 1 && need && need->box)
        job.need = &as_stored;
    att_status status = format->decode(&job, &decoded);
    if (status == ATT_OK && orientation > 1)
        status = att_image_turn(context, name, orientation, &decoded);
    if (status != ATT_OK)
        att_image_free(context, &decoded);
    else
        *image = decoded;
    return status;
}

att_status att_image_decode(att_context *context, const void *bytes, size_t size, int channels,
                            const att_image_limits *limits, att_image *image)
{
    return att_image_decode_named(context, "image in memory", bytes, size, channels, limits, NULL, image);
}

/* Returns whether the headers are in the beginning of the file; *status then says how they were given. */
static bool look_at_beginning(att_context *context, const char *path, const att_image_limits *limits,
                              const att_image_need *need, att_image *image, att_status *status)
{
    enum { BEGINNING = 1 << 16 };
    uint8_t *bytes = att_allocate(context, BEGINNING);
    size_t size = bytes ? att_system_read_start(path, bytes, BEGINNING) : 0;
    att_image_look look;
    bool found = att_image_look_at(bytes, size, &look);
    if (found)
        *status = att_image_decode_named(context, path, bytes, size, 3, limits, need, image);
    att_free(context, bytes);
    return found;
}

att_status att_image_read_needed(att_context *context, const char *path, int channels, const att_image_limits *limits,
                                 const att_image_need *need, att_image *image)
{
    att_status looked;
    if (need && need->look && look_at_beginning(context, path, limits, need, image, &looked))
        return looked;
    att_image_limits defaults = att_image_limits_defaults();
    char *bytes;
    size_t size;
    ATT_TRY(att_file_read(context, path, (limits ? limits : &defaults)->file_bytes, &bytes, &size));
    att_status status = att_image_decode_named(context, path, bytes, size, channels, limits, need, image);
    att_free(context, bytes);
    return status;
}

att_status att_image_read(att_context *context, const char *path, int channels, const att_image_limits *limits,
                          att_image *image)
{
    return att_image_read_needed(context, path, channels, limits, NULL, image);
}

bool att_image_is_grey(const att_image *image)
{
    for (int64_t i = 0; i < (int64_t)image->width * image->height; i++) {
        const uint8_t *pixel = image->pixels + 3 * i;
        if (pixel[0] != pixel[1] || pixel[1] != pixel[2])
            return false;
    }
    return true;
}

void att_image_free(att_context *context, att_image *image)
{
    att_free(context, image->pixels);
    *image = (att_image){0};
}

att_status att_image_check_size(const att_image_job *job, uint64_t width, uint64_t height)
{
    const att_image_limits *limits = job->limits;
    uint64_t side = limits->side > 0 ? (uint64_t)limits->side : 0;
    if (width < 1 || height < 1)
        return att_fail(job->context, ATT_ERR_FORMAT, "%s: an image without pixels", job->name);
    if (width > side || height > side)
        return att_fail(job->context, ATT_ERR_UNSUPPORTED,
                        "%s: %llu x %llu pixels; a side may have at most %d: scale the image down or crop it",
                        job->name, (unsigned long long)width, (unsigned long long)height, limits->side);
    if (width > (uint64_t)limits->pixels / height)
        return att_fail(
            job->context, ATT_ERR_UNSUPPORTED,
            "%s: %llu x %llu pixels are %llu; an image may have at most %lld: scale the image down or crop it",
            job->name, (unsigned long long)width, (unsigned long long)height, (unsigned long long)(width * height),
            (long long)limits->pixels);
    return ATT_OK;
}

att_status att_image_make(const att_image_job *job, uint64_t width, uint64_t height, att_image *image)
{
    ATT_TRY(att_image_check_size(job, width, height));
    size_t bytes = (size_t)width * height * (size_t)job->channels;
    uint8_t *pixels = att_reallocate(job->context, NULL, bytes);
    if (!pixels)
        return att_fail_memory(job->context, bytes, job->name);
    *image = (att_image){(int)width, (int)height, job->channels, pixels};
    return ATT_OK;
}

/* --- rows of samples to pixels ----------------------------------------------------------------------------------- */

int att_row_samples(att_row_kind kind)
{
    static const int samples[] = {[ATT_ROW_GREY] = 1,
                                  [ATT_ROW_GREY_ALPHA] = 2,
                                  [ATT_ROW_RGB] = 3,
                                  [ATT_ROW_RGBA] = 4,
                                  [ATT_ROW_CMYK_INVERTED] = 4};
    return samples[kind];
}

/* Returns a * b / 255, rounded, for 8-bit a and b. */
static int scale_255(int a, int b)
{
    int product = a * b + 128;
    return ((product >> 8) + product) >> 8;
}

/* Converts inverted CMYK, where 255 means no ink, to RGB. */
static void ink_to_rgb(const uint8_t *ink, uint8_t *rgb)
{
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)scale_255(ink[c], ink[3]);
}

/* ITU-R BT.601 luma in 16-bit fixed point, rounded. */
static uint8_t luma(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

static void put_pixel(uint8_t *out, int channels, const uint8_t *rgb)
{
    if (channels == 1)
        out[0] = luma(rgb);
    else
        memcpy(out, rgb, 3);
}

static void put_grey(uint8_t *out, int channels, const uint8_t *row, int width, int samples)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < channels; c++)
            out[x * channels + c] = row[x * samples];
}

void att_image_put_row(att_image *image, int y, att_row_kind kind, const uint8_t *row)
{
    int channels = image->channels, samples = att_row_samples(kind);
    uint8_t *out = image->pixels + (size_t)y * (size_t)image->width * (size_t)channels;
    if (kind == ATT_ROW_GREY || kind == ATT_ROW_GREY_ALPHA) {
        put_grey(out, channels, row, image->width, samples);
        return;
    }
    if (kind == ATT_ROW_RGB && channels == 3) {
        memcpy(out, row, (size_t)image->width * 3);
        return;
    }
    for (int x = 0; x < image->width; x++) {
        uint8_t rgb[3];
        if (kind == ATT_ROW_CMYK_INVERTED)
            ink_to_rgb(row + x * samples, rgb);
        else
            memcpy(rgb, row + x * samples, 3);
        put_pixel(out + x * channels, channels, rgb);
    }
}
