#include "base/io/base64.h"

enum { CHUNK = 768 }; /* bytes at a time, a multiple of three */

static size_t encode(const uint8_t *bytes, size_t count, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = 0;
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        out[length++] = digits[group >> 18];
        out[length++] = digits[group >> 12 & 63];
        out[length++] = left > 1 ? digits[group >> 6 & 63] : '=';
        out[length++] = left > 2 ? digits[group & 63] : '=';
    }
    return length;
}

void att_base64_append(att_text *text, const uint8_t *bytes, size_t count)
{
    char out[CHUNK / 3 * 4];
    for (size_t i = 0; i < count; i += CHUNK)
        att_text_append_bytes(text, out, encode(bytes + i, count - i < CHUNK ? count - i : CHUNK, out));
}
