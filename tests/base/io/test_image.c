#include <zlib.h>

#include <attscope/image.h>

#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/golden.h"
#include "base/io/image_codec.h"
#include "base/io/jpeg.h"

static void read_file(scratch *self, const char *name, char **bytes, size_t *size)
{
    char relative[256], path[4096];
    snprintf(relative, sizeof(relative), "images/%s", name);
    golden_path(relative, path, sizeof(path));
    assert_int_equal(att_file_read(self->context, path, 1 << 20, bytes, size), ATT_OK);
}

static void check_channels(scratch *self, const char *name, int channels, int width, int height, const char *hash)
{
    char *bytes, text[32];
    size_t size;
    att_image image;
    read_file(self, name, &bytes, &size);
    att_status status = att_image_decode(self->context, bytes, size, channels, NULL, &image);
    att_image_look look;
    assert_true(att_image_look_at(bytes, size, &look));
    assert_int_equal(look.width, width);
    assert_int_equal(look.height, height);
    assert_int_equal(look.orientation, 1);
    att_free(self->context, bytes);
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.channels, channels);
    snprintf(text, sizeof(text), "%016" PRIx64, golden_hash(image.pixels, (size_t)(width * height * channels)));
    if (strcmp(text, hash) != 0)
        fail_msg("%s with %d channels: %s, expected %s", name, channels, text, hash);
    att_image_free(self->context, &image);
    assert_null(image.pixels);
}

static void check_refused(scratch *self, const char *name)
{
    char *bytes;
    size_t size;
    att_image image = {0};
    read_file(self, name, &bytes, &size);
    assert_int_equal(att_image_decode(self->context, bytes, size, 3, NULL, &image), ATT_ERR_FORMAT);
    assert_null(image.pixels);
    att_free(self->context, bytes);
}

static void check_file(scratch *self, const char *line)
{
    char name[64], rgb[32], grey[32];
    int width, height;
    assert_int_equal(sscanf(line, "%63s %d %d %31s %31s", name, &width, &height, rgb, grey), 5);
    if (strcmp(rgb, "-") == 0) {
        check_refused(self, name);
    } else {
        check_channels(self, name, 3, width, height, rgb);
        check_channels(self, name, 1, width, height, grey);
    }
}

SCRATCH_TEST(decoded_pixels_equal_pillows)
{
    assert_int_equal(golden_each(self, "decode", check_file), 50);
}

/* Grey levels are stored values, scaled to 8 bits. */
SCRATCH_TEST(stored_values_of_interlaced_pngs_are_in_their_places)
{
    static const struct {
        const char *name;
        int scale; /* of the values below 256 */
    } files[] = {{"interlaced1.png", 255},
                 {"interlaced2.png", 85},
                 {"interlaced4.png", 17},
                 {"interlaced8.png", 1},
                 {"interlaced16.png", 0}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char *bytes;
        size_t size;
        int width, height;
        uint16_t *values;
        att_image image;
        const att_image_limits limits = att_image_limits_defaults();
        read_file(self, files[f].name, &bytes, &size);
        const att_image_job job = {self->context, files[f].name, (const uint8_t *)bytes, size, 1, &limits, NULL};
        CHECK(self->context, att_image_decode(self->context, bytes, size, 1, NULL, &image));
        CHECK(self->context, att_png_decode_values(&job, &width, &height, &values));
        assert_true(width == 21 && height == 11);
        for (int i = 0; i < width * height; i++)
            assert_int_equal(files[f].scale ? values[i] * files[f].scale : values[i] >> 8, image.pixels[i]);
        att_free(self->context, values);
        att_image_free(self->context, &image);
        att_free(self->context, bytes);
    }
}

SCRATCH_TEST(damaged_images_leak_nothing)
{
    static const char *const names[] = {"420.jpg",         "progressive.jpg",   "restart.jpg",   "cmyk.jpg",
                                        "rgb.png",         "palette4.png",      "rgb16.png",     "interlaced4.png",
                                        "lossy_rgba.webp", "lossless_rgb.webp", "animation.webp"};
    size_t allocated = att_context_allocations(self->context).bytes_now;
    uint32_t noise = 1;
    for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
        char *bytes;
        size_t size;
        read_file(self, names[n], &bytes, &size);
        for (size_t cut = 0; cut < size; cut += 7) {
            att_image image;
            noise = noise * 1664525 + 1013904223;
            char before = bytes[cut];
            bytes[cut] = (char)(noise >> 24);
            if (att_image_decode(self->context, bytes, size, 3, NULL, &image) == ATT_OK)
                att_image_free(self->context, &image);
            bytes[cut] = before;
            if (att_image_decode(self->context, bytes, cut, 3, NULL, &image) == ATT_OK)
                att_image_free(self->context, &image);
        }
        att_free(self->context, bytes);
    }
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* Every scan takes as long as decoding the whole image. */
SCRATCH_TEST(a_jpeg_of_too_many_scans_is_refused)
{
    for (int scans = 127; scans <= 130; scans++) {
        const jpeg_kind kind = {.width = 16, .height = 16, .components = 1, .across = 1, .down = 1, .scans = scans};
        uint8_t *bytes;
        size_t size;
        att_image image = {0};
        jpeg_make(&kind, &bytes, &size);
        att_status status = att_image_decode(self->context, bytes, size, 1, NULL, &image);
        assert_int_equal(status, scans <= 128 ? ATT_OK : ATT_ERR_FORMAT);
        if (status == ATT_OK)
            att_image_free(self->context, &image);
        else
            assert_message(self->context, "more than 128 scans");
        free(bytes);
    }
}

/* --- parts of an image -------------------------------------------------------------------------------------------- */

static const jpeg_kind kinds[] = {
    {131, 97, 3, 1, 1, 0, false, 0, 0}, {131, 97, 3, 2, 1, 0, false, 0, 0}, {130, 97, 3, 1, 2, 0, false, 0, 0},
    {131, 98, 3, 2, 2, 0, false, 0, 0}, {64, 48, 3, 2, 2, 3, false, 0, 0},  {131, 97, 3, 2, 2, 0, true, 0, 0},
    {77, 131, 1, 1, 1, 0, false, 0, 0}, {97, 130, 3, 4, 1, 0, false, 0, 0}, {17, 5, 3, 2, 2, 0, false, 0, 0},
    {131, 98, 3, 2, 2, 0, false, 0, 2},
};
enum { KINDS = sizeof kinds / sizeof *kinds, BOXES = 150 };

static int below(uint32_t *noise, int end)
{
    *noise = *noise * 1664525 + 1013904223;
    return (int)((*noise >> 8) % (uint32_t)end);
}

/* `user` is the wanted box. */
static att_box give_box(void *user, int width, int height)
{
    att_box box = *(const att_box *)user;
    assert_true(box.x + box.width <= width && box.y + box.height <= height);
    return box;
}

static att_box random_box(uint32_t *noise, int width, int height)
{
    att_box box = {.x = below(noise, width), .y = below(noise, height)};
    box.width = 1 + below(noise, width - box.x);
    box.height = 1 + below(noise, height - box.y);
    return box;
}

static att_status decode_part(scratch *self, const uint8_t *bytes, size_t size, int channels, att_box *box,
                              att_image *image)
{
    att_image_need need = {.box = give_box, .user = box};
    return att_image_decode_named(self->context, "part", bytes, size, channels, NULL, box ? &need : NULL, image);
}

static void compare_parts(const att_image *part, const att_image *whole, att_box box)
{
    assert_int_equal(part->width, whole->width);
    assert_int_equal(part->height, whole->height);
    size_t channels = (size_t)whole->channels;
    for (int y = box.y; y < box.y + box.height; y++) {
        size_t from = ((size_t)y * (size_t)whole->width + (size_t)box.x) * channels;
        assert_memory_equal(part->pixels + from, whole->pixels + from, (size_t)box.width * channels);
    }
}

SCRATCH_TEST(a_decoded_part_equals_that_of_the_whole)
{
    uint32_t noise = 3;
    for (int k = 0; k < KINDS; k++)
        for (int channels = 1; channels <= 3; channels += 2) {
            uint8_t *bytes;
            size_t size;
            att_image whole, part;
            jpeg_make(&kinds[k], &bytes, &size);
            assert_int_equal(decode_part(self, bytes, size, channels, NULL, &whole), ATT_OK);
            for (int b = 0; b < BOXES; b++) {
                att_box box = random_box(&noise, whole.width, whole.height);
                assert_int_equal(decode_part(self, bytes, size, channels, &box, &part), ATT_OK);
                compare_parts(&part, &whole, box);
                att_image_free(self->context, &part);
            }
            att_image_free(self->context, &whole);
            free(bytes);
        }
}

/* With a chroma sampling that no camera writes, the whole image is decoded, whatever part is needed. */
SCRATCH_TEST(a_jpeg_with_unusual_chroma_is_decoded_whole)
{
    static const jpeg_kind odd = {131, 98, 3, 2, 2, 0, false, 0, 2};
    uint8_t *bytes;
    size_t size;
    att_image whole, part;
    att_box corner = {0, 0, 1, 1};
    jpeg_make(&odd, &bytes, &size);
    assert_int_equal(decode_part(self, bytes, size, 3, NULL, &whole), ATT_OK);
    assert_int_equal(decode_part(self, bytes, size, 3, &corner, &part), ATT_OK);
    compare_parts(&part, &whole, (att_box){0, 0, odd.width, odd.height});
    att_image_free(self->context, &part);
    att_image_free(self->context, &whole);
    free(bytes);
}

/* Damage is found in all parts of the file. */
SCRATCH_TEST(damage_outside_a_decoded_part_is_found)
{
    uint32_t noise = 5;
    int refused = 0;
    for (int k = 0; k < KINDS; k++) {
        uint8_t *bytes;
        size_t size;
        jpeg_make(&kinds[k], &bytes, &size);
        for (int b = 0; b < BOXES; b++) {
            att_image whole = {0}, part = {0};
            att_box box = random_box(&noise, kinds[k].width, kinds[k].height);
            size_t cut = b % 2 ? size : (size_t)below(&noise, (int)size), at = (size_t)below(&noise, (int)size);
            uint8_t before = bytes[at];
            bytes[at] = b % 2 ? (uint8_t)below(&noise, 256) : before;
            att_status wanted = decode_part(self, bytes, cut, 3, NULL, &whole);
            if (wanted == ATT_OK && (whole.width != kinds[k].width || whole.height != kinds[k].height))
                box = (att_box){0, 0, 1, 1};
            att_status found = decode_part(self, bytes, cut, 3, &box, &part);
            assert_int_equal(found, wanted);
            if (found == ATT_OK)
                compare_parts(&part, &whole, box);
            refused += found != ATT_OK;
            att_image_free(self->context, &whole);
            att_image_free(self->context, &part);
            bytes[at] = before;
        }
        free(bytes);
    }
    assert_true(refused > KINDS * BOXES / 2);
}

/* Every orientation in either byte order, in a JPEG and a PNG. */
TEST(exif_says_how_an_image_is_turned)
{
    enum { TIFF = 22 };
    static const char before_jpeg[] = "\xff\xd8\xff\xe1\0\36Exif\0";
    static const char after_jpeg[] = "\xff\xff\xc0\0\10\10\0\3\0\5";
    static const char before_png[] = "\x89PNG\r\n\x1a\n\0\0\0\15IHDR\0\0\0\5\0\0\0\3\10\0\0\0\0crc.\0\0\0\26eXIf";
    for (int i = 0; i < 2 * 10; i++) {
        const bool little = i % 2;
        const uint8_t orientation = (uint8_t)(i / 2);
        const uint8_t big_tiff[TIFF] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation},
                      little_tiff[TIFF] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, orientation};
        const uint8_t *tiff = little ? little_tiff : big_tiff;
        uint8_t jpeg[sizeof before_jpeg + TIFF + sizeof after_jpeg], png[sizeof before_png - 1 + TIFF + 4] = {0};
        memcpy(jpeg, before_jpeg, sizeof before_jpeg);
        memcpy(jpeg + sizeof before_jpeg, tiff, TIFF);
        memcpy(jpeg + sizeof before_jpeg + TIFF, after_jpeg, sizeof after_jpeg);
        memcpy(png, before_png, sizeof before_png - 1);
        memcpy(png + sizeof before_png - 1, tiff, TIFF);
        const struct {
            const uint8_t *bytes;
            size_t size;
        } files[] = {{jpeg, sizeof jpeg}, {png, sizeof png}};
        for (int k = 0; k < 2; k++) {
            att_image_look look;
            assert_true(att_image_look_at(files[k].bytes, files[k].size, &look));
            assert_int_equal(look.width, 5);
            assert_int_equal(look.height, 3);
            assert_int_equal(look.orientation, orientation >= 1 && orientation <= 8 ? orientation : 1);
        }
        for (size_t size = 0; size < sizeof jpeg; size++)
            assert_false(att_image_look_at(jpeg, size, &(att_image_look){0}));
        assert_false(att_image_look_at(png, sizeof png - 5, &(att_image_look){0})); /* ends within the EXIF data */
    }
}

/* Writes a TIFF header with this orientation, as in EXIF data. */
enum { EXIF_TIFF = 26 };
static void put_tiff(uint8_t *to, int orientation)
{
    const uint8_t tiff[EXIF_TIFF] = {'M', 'M',  0, 42, 0, 0, 0, 8, 0, 1,
                                     1,   0x12, 0, 3,  0, 0, 0, 1, 0, (uint8_t)orientation};
    memcpy(to, tiff, sizeof tiff);
}

static void put_number(uint8_t *to, uint32_t number, bool little)
{
    for (int i = 0; i < 4; i++)
        to[little ? i : 3 - i] = (uint8_t)(number >> (8 * i));
}

/* Puts EXIF data with this orientation into a file. The caller frees the result. */
static uint8_t *with_exif(const char *bytes, size_t size, int width, int height, int orientation, size_t *length)
{
    enum { SOI = 2, PNG_HEADER = 33, RIFF_HEADER = 12 };
    uint8_t *out = calloc(1, size + 128), *at = out;
    assert_non_null(out);
    if (bytes[0] == 'R') { /* a WebP: the header VP8X, the file's own chunks, EXIF */
        memcpy(at, bytes, RIFF_HEADER);
        at += RIFF_HEADER;
        memcpy(at, "VP8X", 4);
        put_number(at + 4, 10, true);
        at[8] = 8;
        put_number(at + 12, (uint32_t)width - 1, true);
        put_number(at + 15, (uint32_t)height - 1, true);
        memcpy(at + 18, bytes + RIFF_HEADER, size - RIFF_HEADER);
        at += 18 + size - RIFF_HEADER;
        memcpy(at, "EXIF", 4);
        put_number(at + 4, EXIF_TIFF, true);
        put_tiff(at + 8, orientation);
        at += 8 + EXIF_TIFF;
        put_number(out + 4, (uint32_t)(at - out) - 8, true);
        *length = (size_t)(at - out);
        return out;
    }
    const bool png = bytes[1] == 'P';
    const size_t first = png ? PNG_HEADER : SOI;
    memcpy(at, bytes, first);
    at += first;
    if (png) {
        put_number(at, EXIF_TIFF, false);
        memcpy(at + 4, "eXIf", 4);
        put_tiff(at + 8, orientation);
        put_number(at + 8 + EXIF_TIFF, (uint32_t)crc32(0, at + 4, 4 + EXIF_TIFF), false);
        at += 12 + EXIF_TIFF;
    } else {
        memcpy(at, "\xff\xe1\0\42Exif\0\0", 10);
        put_tiff(at + 10, orientation);
        at += 10 + EXIF_TIFF;
    }
    memcpy(at, bytes + first, size - first);
    *length = (size_t)(at - out) + size - first;
    return out;
}

static void check_turned(scratch *self, const char *line)
{
    char name[64], hash[32], text[32], *bytes;
    int orientation, width, height;
    size_t size, length;
    att_image stored, turned;
    att_image_look look;
    att_image_limits limits = att_image_limits_defaults();
    assert_int_equal(sscanf(line, "%63s %d %d %d %31s", name, &orientation, &width, &height, hash), 5);
    read_file(self, name, &bytes, &size);
    CHECK(self->context, att_image_decode(self->context, bytes, size, 3, NULL, &stored));
    uint8_t *file = with_exif(bytes, size, stored.width, stored.height, orientation, &length);
    att_free(self->context, bytes);
    assert_true(att_image_look_at(file, length, &look));
    assert_true(look.orientation == orientation && look.width == stored.width && look.height == stored.height);
    const att_image_need headers = {.look = &look};
    limits.exif_transpose = true;
    CHECK(self->context, att_image_decode_named(self->context, name, file, length, 3, &limits, &headers, &turned));
    assert_true(look.orientation == 1 && look.width == width && look.height == height && !turned.pixels);
    CHECK(self->context, att_image_decode(self->context, file, length, 3, &limits, &turned));
    assert_true(turned.width == width && turned.height == height);
    snprintf(text, sizeof(text), "%016" PRIx64, golden_hash(turned.pixels, (size_t)(width * height * 3)));
    if (strcmp(text, hash) != 0)
        fail_msg("%s, orientation %d: %s, expected %s", name, orientation, text, hash);
    att_image_free(self->context, &turned);
    CHECK(self->context, att_image_decode(self->context, file, length, 3, NULL, &turned));
    assert_int_equal(turned.width, stored.width);
    assert_memory_equal(turned.pixels, stored.pixels, (size_t)(width * height * 3)); /* as it is stored */
    att_image_free(self->context, &turned);
    att_image_free(self->context, &stored);
    free(file);
}

SCRATCH_TEST(images_are_turned_as_pillow_turns_them)
{
    assert_int_equal(golden_each(self, "turned", check_turned), 3 * 8);
}

SCRATCH_TEST(boxes_of_turned_images_are_found_in_the_stored_one)
{
    enum { WIDTH = 5, HEIGHT = 3 };
    uint8_t stored[WIDTH * HEIGHT];
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        stored[i] = (uint8_t)i;
    for (int orientation = 2; orientation <= 8; orientation++) {
        uint8_t *pixels = att_allocate(self->context, sizeof stored);
        assert_non_null(pixels);
        memcpy(pixels, stored, sizeof stored);
        att_image image = {WIDTH, HEIGHT, 1, pixels};
        CHECK(self->context, att_image_turn(self->context, "an image", orientation, &image));
        for (int y = 0; y + 2 <= image.height; y++)
            for (int x = 0; x < image.width; x++) {
                const att_box box = att_image_stored_box(orientation, (att_box){x, y, 1, 2}, WIDTH, HEIGHT);
                const uint8_t above = image.pixels[y * image.width + x],
                              below = image.pixels[(y + 1) * image.width + x];
                const uint8_t first = stored[box.y * WIDTH + box.x],
                              last = stored[(box.y + box.height - 1) * WIDTH + box.x + box.width - 1];
                assert_int_equal(box.width * box.height, 2);
                assert_true((first == above && last == below) || (first == below && last == above));
            }
        att_image_free(self->context, &image);
    }
}

static att_box small_box(void *user, int width, int height)
{
    const att_box *box = user;
    assert_true(box->x + box->width <= width && box->y + box->height <= height);
    return *box;
}

/* The needed part of a turned image is found in the stored one. */
SCRATCH_TEST(parts_of_turned_images_are_those_of_the_whole)
{
    const jpeg_kind kind = {.width = 170, .height = 90, .components = 3, .across = 2, .down = 2};
    att_box box = {11, 23, 30, 41};
    const att_image_need need = {.box = small_box, .user = &box};
    att_image_limits limits = att_image_limits_defaults();
    uint8_t *jpeg;
    size_t size, length;
    limits.exif_transpose = true;
    jpeg_make(&kind, &jpeg, &size);
    for (int orientation = 1; orientation <= 8; orientation++) {
        att_image whole, part;
        uint8_t *file = with_exif((const char *)jpeg, size, kind.width, kind.height, orientation, &length);
        CHECK(self->context, att_image_decode(self->context, file, length, 3, &limits, &whole));
        CHECK(self->context, att_image_decode_named(self->context, "part", file, length, 3, &limits, &need, &part));
        assert_true(part.width == whole.width && part.height == whole.height);
        compare_parts(&part, &whole, box);
        att_image_free(self->context, &whole);
        att_image_free(self->context, &part);
        free(file);
    }
    free(jpeg);
}

/* A truncated WebP and a damaged WebP give different messages. */
SCRATCH_TEST(a_truncated_webp_is_reported_as_truncated)
{
    char *bytes;
    size_t size;
    att_image image = {0};
    read_file(self, "lossy_rgb.webp", &bytes, &size);
    for (size_t cut = 12; cut < size; cut++) {
        assert_fails(self->context, att_image_decode(self->context, bytes, cut, 3, NULL, &image), ATT_ERR_FORMAT,
                     "the data are truncated");
    }
    memset(bytes + 12, 'x', 8); /* an unknown chunk */
    assert_fails(self->context, att_image_decode(self->context, bytes, size, 3, NULL, &image), ATT_ERR_FORMAT,
                 "not a WebP that can be decoded");
    att_free(self->context, bytes);
}

SCRATCH_TEST(images_beyond_the_limits_are_refused)
{
    char *bytes;
    size_t size;
    att_image image;
    const char *const names[] = {"progressive.jpg", "rgb.png", "lossy_rgb.webp"};
    for (int n = 0; n < 3; n++) {
        read_file(self, names[n], &bytes, &size);
        att_image_limits limits = att_image_limits_defaults();
        limits.side = 26;
        assert_fails(self->context, att_image_decode(self->context, bytes, size, 3, &limits, &image),
                     ATT_ERR_UNSUPPORTED, "27 x 19 pixels; a side may have at most 26: scale the image down");
        assert_message_has(self, "27 x 19");
        limits = att_image_limits_defaults();
        limits.pixels = 27 * 19 - 1;
        assert_fails(self->context, att_image_decode(self->context, bytes, size, 3, &limits, &image),
                     ATT_ERR_UNSUPPORTED,
                     "27 x 19 pixels are 513; an image may have at most 512: scale the image down");
        limits = att_image_limits_defaults();
        limits.file_bytes = size - 1;
        assert_int_equal(att_image_decode(self->context, bytes, size, 3, &limits, &image), ATT_ERR_UNSUPPORTED);
        limits = att_image_limits_defaults();
        limits.memory = 100;
        assert_fails(self->context, att_image_decode(self->context, bytes, size, 3, &limits, &image),
                     ATT_ERR_UNSUPPORTED, "limit of 100");
        att_free(self->context, bytes);
    }
}

/* Decoding a WebP takes 4 bytes per pixel in libwebp, and 3 more for the colours if a grey image is made. */
SCRATCH_TEST(the_memory_limit_counts_all_that_a_webp_needs)
{
    char *bytes;
    size_t size;
    read_file(self, "lossy_rgb.webp", &bytes, &size);
    for (int channels = 1; channels <= 3; channels += 2)
        for (size_t lacking = 0; lacking < 2; lacking++) {
            att_image image = {0};
            att_image_limits limits = att_image_limits_defaults();
            limits.memory = (size_t)27 * 19 * (channels == 1 ? 7 : 4) - lacking;
            assert_int_equal(att_image_decode(self->context, bytes, size, channels, &limits, &image),
                             lacking ? ATT_ERR_UNSUPPORTED : ATT_OK);
            att_image_free(self->context, &image);
        }
    att_free(self->context, bytes);
}

SCRATCH_TEST(a_huge_png_is_refused_before_memory_is_taken)
{
    /* A PNG of 60,000 x 60,000 pixels: the signature, and the header with its checksum. */
    static const uint8_t bomb[] = {0x89, 'P',  'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0,    0,
                                   13,   'I',  'H', 'D', 'R',  0,    0,    0xea, 0x60, 0,    0,
                                   0xea, 0x60, 8,   2,   0,    0,    0x00, 0x0f, 0xb0, 0xe2, 0x15};
    att_image image;
    assert_int_equal(att_image_decode(self->context, bomb, sizeof(bomb), 3, NULL, &image), ATT_ERR_UNSUPPORTED);
    assert_true(att_context_allocations(self->context).bytes_peak < 1 << 20);
}

SCRATCH_TEST(unreadable_files_are_refused_with_the_reason)
{
    att_image image;
    scratch_write(self, "GIF89a", 6);
    assert_fails(self->context, att_image_read(self->context, self->path, 3, NULL, &image), ATT_ERR_FORMAT, self->path);
    assert_message_has(self, "a GIF image");
    static const struct {
        const char *bytes, *named;
    } others[] = {{"P6\n2 2 255\n", "a PPM image"}, {"P5 2 2 255\n", "a PGM image"}, {"....ftypavif", "an AVIF image"}};
    for (int i = 0; i < 3; i++) {
        assert_fails(self->context,
                     att_image_decode(self->context, others[i].bytes, strlen(others[i].bytes), 3, NULL, &image),
                     ATT_ERR_FORMAT, others[i].named);
    }
    /* Only bytes inside the file count. */
    assert_fails(self->context, att_image_decode(self->context, "GIF8", 3, 3, NULL, &image), ATT_ERR_FORMAT,
                 "not a JPEG, PNG or WebP image");
    scratch_write(self, "RIFF....WAVE", 12);
    assert_fails(self->context, att_image_read(self->context, self->path, 3, NULL, &image), ATT_ERR_FORMAT,
                 "not a JPEG, PNG or WebP image");
    assert_int_equal(att_image_read(self->context, self->path, 4, NULL, &image), ATT_ERR_ARGUMENT);
    assert_int_equal(att_image_read(self->context, "/no/such.jpg", 3, NULL, &image), ATT_ERR_NOT_FOUND);
    assert_int_equal(att_image_decode(self->context, "", 0, 3, NULL, &image), ATT_ERR_FORMAT);
}

static att_status decode_all(scratch *self)
{
    static const char *const names[] = {"progressive.jpg", "grey4.png", "animation.webp"};
    for (int n = 0; n < 3; n++) {
        char relative[64], path[4096];
        att_image image;
        snprintf(relative, sizeof(relative), "images/%s", names[n]);
        golden_path(relative, path, sizeof(path));
        att_status status = att_image_read(self->context, path, 1, NULL, &image);
        if (status != ATT_OK)
            return status;
        att_image_free(self->context, &image);
    }
    return ATT_OK;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, decode_all);
}
