/* Decodes PNG with libspng. Samples are unpacked here, so that pixels equal those of Pillow. */
#include <string.h>

#include <spng.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/image_codec.h"

enum { MAX_CHUNK = 64 << 20 };

typedef struct png_picture {
    struct spng_ihdr header;
    struct spng_plte palette;
    att_row_kind kind; /* format of unpacked rows, in which palette indices are replaced by colours */
    uint8_t *packed;   /* all rows in the file's format, big-endian */
    size_t packed_size;
    uint8_t *row;
} png_picture;

/* zlib's lack of memory looks like a damaged stream. */
static att_status fail_png(const att_image_job *job, int code)
{
    enum { ROOM = 1 << 20 }; /* more than zlib asks for at a time */
    if (code == SPNG_EIDAT_STREAM)
        ATT_TRY(att_memory_require(job->context, ROOM, job->name));
    att_status status = code == SPNG_EMEM ? ATT_ERR_MEMORY : ATT_ERR_FORMAT;
    return att_fail(job->context, status, "%s: not a PNG that can be decoded: %s", job->name, spng_strerror(code));
}

#define SPNG_TRY(job, call)              \
    do {                                 \
        int code_ = (call);              \
        if (code_ != 0)                  \
            return fail_png(job, code_); \
    } while (0)

static att_row_kind kind_of(uint8_t color_type)
{
    switch (color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
        return ATT_ROW_GREY;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return ATT_ROW_GREY_ALPHA;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return ATT_ROW_RGBA;
    default:
        return ATT_ROW_RGB;
    }
}

/* Unpacks samples of 1, 2 or 4 bits, of which the first is in the highest bits, and multiplies them by `scale`. */
static void unpack_bits(const uint8_t *packed, int depth, int scale, int count, uint8_t *out)
{
    int mask = (1 << depth) - 1;
    for (int i = 0; i < count; i++) {
        int bit = i * depth;
        out[i] = (uint8_t)(((packed[bit >> 3] >> (8 - depth - (bit & 7))) & mask) * scale);
    }
}

/* Keeps the high byte of 16-bit samples. */
static void unpack_words(const uint8_t *packed, int count, uint8_t *out)
{
    for (int i = 0; i < count; i++)
        out[i] = packed[2 * i];
}

static bool look_up(const struct spng_plte *palette, int width, uint8_t *row)
{
    for (int x = width - 1; x >= 0; x--) { /* in place, so from the end, because colours are larger than indices */
        uint8_t index = row[x];
        if (index >= palette->n_entries)
            return false;
        const struct spng_plte_entry *entry = &palette->entries[index];
        row[3 * x] = entry->red;
        row[3 * x + 1] = entry->green;
        row[3 * x + 2] = entry->blue;
    }
    return true;
}

/* Unpacks a row to one byte per sample and returns the samples. Returns NULL if an index is outside the palette. */
static const uint8_t *unpack_row(const png_picture *png, const uint8_t *packed)
{
    bool indexed = png->header.color_type == SPNG_COLOR_TYPE_INDEXED;
    int depth = png->header.bit_depth, width = (int)png->header.width;
    int count = width * (indexed ? 1 : att_row_samples(png->kind));
    if (depth == 8 && !indexed)
        return packed;
    if (depth == 16)
        unpack_words(packed, count, png->row);
    else
        unpack_bits(packed, depth, indexed ? 1 : 255 / ((1 << depth) - 1), count, png->row);
    return !indexed || look_up(&png->palette, width, png->row) ? png->row : NULL;
}

static att_status unpack_picture(const att_image_job *job, const png_picture *png, att_image *image)
{
    size_t stride = png->packed_size / png->header.height;
    for (int y = 0; y < image->height; y++) {
        const uint8_t *row = unpack_row(png, png->packed + (size_t)y * stride);
        if (!row)
            return att_fail(job->context, ATT_ERR_FORMAT, "%s: row %d uses a colour outside the palette of %u",
                            job->name, y, png->palette.n_entries);
        att_image_put_row(image, y, png->kind, row);
    }
    return ATT_OK;
}

static att_status read_header(const att_image_job *job, spng_ctx *decoder, png_picture *png)
{
    size_t memory = job->limits->memory;
    SPNG_TRY(job, spng_set_chunk_limits(decoder, memory < MAX_CHUNK ? memory : MAX_CHUNK, memory));
    SPNG_TRY(job, spng_set_png_buffer(decoder, job->bytes, job->size));
    SPNG_TRY(job, spng_get_ihdr(decoder, &png->header));
    return ATT_OK;
}

/* Puts the pixels of one row of a pass where they belong in the picture. */
static void put_pass(png_picture *png, const struct spng_row_info *info)
{
    static const uint8_t starts[] = {0, 4, 0, 2, 0, 1, 0}, steps[] = {8, 8, 4, 4, 2, 2, 1};
    const uint32_t depth = png->header.bit_depth, step = steps[info->pass];
    uint8_t *out = png->packed + info->row_num * (png->packed_size / png->header.height);
    uint32_t from = 0;
    for (uint32_t x = starts[info->pass]; x < png->header.width; x += step, from += depth) {
        const int sample = png->row[from / 8] >> (8 - depth - from % 8) & ((1 << depth) - 1);
        out[x * depth / 8] |= (uint8_t)(sample << (8 - depth - x * depth % 8));
    }
}

/* Decodes an interlaced picture that has several pixels in a byte, which spng_decode_image() puts in wrong places. */
static int decode_passes(spng_ctx *decoder, png_picture *png)
{
    struct spng_row_info info;
    int code = spng_decode_image(decoder, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    memset(png->packed, 0, png->packed_size);
    while (!code && !(code = spng_get_row_info(decoder, &info))) {
        code = spng_decode_scanline(decoder, png->row, png->packed_size / png->header.height);
        if (!code || code == SPNG_EOI)
            put_pass(png, &info);
    }
    return code == SPNG_EOI ? 0 : code;
}

/* Reads all rows in the file's format, and allocates space for one unpacked row. */
static att_status read_rows(const att_image_job *job, spng_ctx *decoder, png_picture *png)
{
    size_t memory = job->limits->memory;
    SPNG_TRY(job, spng_decoded_image_size(decoder, SPNG_FMT_RAW, &png->packed_size));
    if (png->packed_size > memory)
        return att_fail(job->context, ATT_ERR_UNSUPPORTED, "%s: needs %zu bytes, more than the limit of %zu", job->name,
                        png->packed_size, memory);
    size_t row_bytes = (size_t)png->header.width * 4;
    png->packed = att_reallocate(job->context, NULL, png->packed_size);
    png->row = att_reallocate(job->context, NULL, row_bytes);
    if (!png->packed || !png->row)
        return att_fail_memory(job->context, png->packed_size + row_bytes, job->name);
    const bool passes = png->header.interlace_method && png->header.bit_depth < 8;
    SPNG_TRY(job, passes ? decode_passes(decoder, png)
                         : spng_decode_image(decoder, png->packed, png->packed_size, SPNG_FMT_RAW, 0));
    return ATT_OK;
}

static att_status read_picture(const att_image_job *job, spng_ctx *decoder, png_picture *png, void *out)
{
    att_image *image = out;
    ATT_TRY(read_header(job, decoder, png));
    png->kind = kind_of(png->header.color_type);
    ATT_TRY(att_image_make(job, png->header.width, png->header.height, image));
    if (png->header.color_type == SPNG_COLOR_TYPE_INDEXED)
        SPNG_TRY(job, spng_get_plte(decoder, &png->palette));
    ATT_TRY(read_rows(job, decoder, png));
    return unpack_picture(job, png, image);
}

/* Calls `read` with a decoder for the job's file. */
static att_status
with_decoder(const att_image_job *job,
             att_status (*read)(const att_image_job *job, spng_ctx *decoder, png_picture *png, void *out), void *out)
{
    png_picture png = {.packed = NULL};
    spng_ctx *decoder = spng_ctx_new(0);
    if (!decoder)
        return att_fail(job->context, ATT_ERR_MEMORY, "%s: out of memory for a PNG decoder", job->name);
    att_status status = read(job, decoder, &png, out);
    spng_ctx_free(decoder);
    att_free(job->context, png.packed);
    att_free(job->context, png.row);
    return status;
}

att_status att_image_decode_png(const att_image_job *job, att_image *image)
{
    return with_decoder(job, read_picture, image);
}

/* --- stored values ------------------------------------------------------------------------------------------------ */

typedef struct png_values {
    int width, height;
    uint16_t *values;
} png_values;

static void unpack_values(const png_picture *png, const uint8_t *packed, uint16_t *out)
{
    int width = (int)png->header.width, depth = png->header.bit_depth;
    if (depth < 8)
        unpack_bits(packed, depth, 1, width, png->row);
    const uint8_t *bytes = depth < 8 ? png->row : packed;
    for (int x = 0; x < width; x++)
        out[x] = depth == 16 ? (uint16_t)(packed[2 * x] << 8 | packed[2 * x + 1]) : bytes[x];
}

static att_status read_values(const att_image_job *job, spng_ctx *decoder, png_picture *png, void *out)
{
    png_values *read = out;
    ATT_TRY(read_header(job, decoder, png));
    const uint8_t type = png->header.color_type;
    if (type != SPNG_COLOR_TYPE_GRAYSCALE && type != SPNG_COLOR_TYPE_INDEXED)
        return att_fail(job->context, ATT_ERR_FORMAT,
                        "%s: a PNG of colours (%s); expected the number of a class in each pixel, as a grey PNG or one "
                        "with a palette",
                        job->name,
                        type == SPNG_COLOR_TYPE_TRUECOLOR         ? "RGB"
                        : type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ? "RGB with alpha"
                                                                  : "grey with alpha");
    ATT_TRY(att_image_check_size(job, png->header.width, png->header.height));
    read->width = (int)png->header.width;
    read->height = (int)png->header.height;
    size_t count = (size_t)read->width * (size_t)read->height;
    read->values = att_reallocate(job->context, NULL, count * sizeof *read->values);
    if (!read->values)
        return att_fail_memory(job->context, count * sizeof *read->values, job->name);
    png->kind = ATT_ROW_GREY;
    ATT_TRY(read_rows(job, decoder, png));
    size_t stride = png->packed_size / png->header.height;
    for (int y = 0; y < read->height; y++)
        unpack_values(png, png->packed + (size_t)y * stride, read->values + (size_t)y * (size_t)read->width);
    return ATT_OK;
}

att_status att_png_decode_values(const att_image_job *job, int *width, int *height, uint16_t **values)
{
    png_values read = {.values = NULL};
    att_status status = with_decoder(job, read_values, &read);
    if (status != ATT_OK) {
        att_free(job->context, read.values);
        return status;
    }
    *width = read.width;
    *height = read.height;
    *values = read.values;
    return ATT_OK;
}
