/* Reads the size of an image, and how its EXIF data turn it, from the file's headers. */
#include <string.h>

#include <webp/decode.h>

#include "base/core/error.h"
#include "base/io/image_codec.h"

static uint32_t in_order(const uint8_t *bytes, int count, bool little)
{
    uint32_t number = 0;
    for (int i = 0; i < count; i++)
        number = number << 8 | bytes[little ? count - 1 - i : i];
    return number;
}

static uint32_t big_endian(const uint8_t *bytes, int count)
{
    return in_order(bytes, count, false);
}

/* The orientation in EXIF data, which are a TIFF file without pixels; 1 if they do not say. */
static int exif_orientation(const uint8_t *tiff, size_t size)
{
    enum { HEADER = 8, ENTRY = 12, ORIENTATION = 0x112, SHORT = 3, MOST = 8 };
    if (size < HEADER || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return 1;
    const bool little = *tiff == 'I';
    const size_t first = in_order(tiff + 4, 4, little);
    if (first > size || size - first < 2)
        return 1;
    const size_t count = in_order(tiff + first, 2, little);
    for (size_t i = 0, at = first + 2; i < count && size - at >= ENTRY; i++, at += ENTRY) {
        if (in_order(tiff + at, 2, little) != ORIENTATION || in_order(tiff + at + 2, 2, little) != SHORT)
            continue;
        const int orientation = (int)in_order(tiff + at + 8, 2, little);
        return orientation >= 1 && orientation <= MOST ? orientation : 1;
    }
    return 1;
}

/* Whether a JPEG's segment with this marker holds the image's size. */
static bool is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static bool look_at_jpeg(const uint8_t *bytes, size_t size, att_image_look *look)
{
    static const char exif[] = "Exif\0";
    enum { EXIF = 0xe1, FRAME = 8 };
    for (size_t at = 2; size - at >= 4;) {
        const uint8_t marker = bytes[at + 1];
        if (bytes[at] != 0xff)
            return false;
        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        const size_t length = big_endian(bytes + at + 2, 2);
        if (length < 2 || length > size - at - 2)
            return false;
        const uint8_t *body = bytes + at + 4;
        if (marker == EXIF && length - 2 >= sizeof exif && memcmp(body, exif, sizeof exif) == 0)
            look->orientation = exif_orientation(body + sizeof exif, length - 2 - sizeof exif);
        if (is_frame(marker) && length >= FRAME) {
            look->height = (int)big_endian(body + 1, 2);
            look->width = (int)big_endian(body + 3, 2);
            return true;
        }
        at += 2 + length;
    }
    return false;
}

static bool look_at_png(const uint8_t *bytes, size_t size, att_image_look *look)
{
    enum { SIGNATURE = 8, FRAME = 12, HEADER = SIGNATURE + 16 };
    if (size < HEADER || memcmp(bytes + SIGNATURE + 4, "IHDR", 4) != 0)
        return false;
    const uint32_t width = big_endian(bytes + HEADER - 8, 4), height = big_endian(bytes + HEADER - 4, 4);
    look->width = width <= INT32_MAX ? (int)width : 0;
    look->height = height <= INT32_MAX ? (int)height : 0;
    for (size_t at = SIGNATURE; size - at >= FRAME;) {
        const size_t length = big_endian(bytes + at, 4);
        if (memcmp(bytes + at + 4, "IDAT", 4) == 0)
            break;
        if (length > size - at - FRAME)
            return false;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
            look->orientation = exif_orientation(bytes + at + 8, length);
        at += FRAME + length;
    }
    return true;
}

/* EXIF data of a WebP lie behind the pixels: if they are announced and not among the bytes, the bytes do not tell. */
static bool look_at_webp(const uint8_t *bytes, size_t size, att_image_look *look)
{
    enum { RIFF = 12, CHUNK = 8, FLAGS = RIFF + CHUNK, HAS_EXIF = 8 };
    static const char prefix[] = "Exif\0"; /* some programs write it before the TIFF header, as in a JPEG */
    if (WebPGetInfo(bytes, size, &look->width, &look->height) == 0)
        return false;
    if (size <= FLAGS || memcmp(bytes + RIFF, "VP8X", 4) != 0 || !(bytes[FLAGS] & HAS_EXIF))
        return true;
    for (size_t at = RIFF; at <= size && size - at >= CHUNK;) {
        size_t length = in_order(bytes + at + 4, 4, true);
        const uint8_t *body = bytes + at + CHUNK;
        if (length > size - at - CHUNK)
            return false;
        const size_t skipped = length >= sizeof prefix && memcmp(body, prefix, sizeof prefix) == 0 ? sizeof prefix : 0;
        if (memcmp(bytes + at, "EXIF", 4) == 0) {
            look->orientation = exif_orientation(body + skipped, length - skipped);
            return true;
        }
        at += CHUNK + length + length % 2;
    }
    return false;
}

bool att_image_look_at(const void *bytes, size_t size, att_image_look *look)
{
    static const char png[] = "\x89PNG\r\n\x1a\n";
    *look = (att_image_look){.orientation = 1};
    bool known = false;
    if (size > 4 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        known = look_at_jpeg(bytes, size, look);
    else if (size >= strlen(png) && memcmp(bytes, png, strlen(png)) == 0)
        known = look_at_png(bytes, size, look);
    else
        known = look_at_webp(bytes, size, look);
    return known && look->width > 0 && look->height > 0;
}
