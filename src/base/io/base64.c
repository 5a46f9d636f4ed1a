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

/* The value of a digit; 64 of the padding, 65 of another character. */
static uint32_t value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return (uint32_t)(digit - 'A');
    if (digit >= 'a' && digit <= 'z')
        return (uint32_t)(digit - 'a') + 26;
    if (digit >= '0' && digit <= '9')
        return (uint32_t)(digit - '0') + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : digit == '=' ? 64 : 65;
}

bool att_base64_decode(const char *text, size_t length, uint8_t *bytes, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < length; i += 4) {
        if (length - i < 4)
            return false;
        const uint32_t a = value_of(text[i]), b = value_of(text[i + 1]), c = value_of(text[i + 2]),
                       d = value_of(text[i + 3]);
        const bool last = length - i == 4;
        if (a > 63 || b > 63 || c > (last ? 64 : 63) || d > (last ? 64 : 63) || (c == 64 && d != 64))
            return false;
        const uint32_t group = a << 18 | b << 12 | (c & 63) << 6 | (d & 63);
        bytes[(*count)++] = (uint8_t)(group >> 16);
        if (c < 64)
            bytes[(*count)++] = (uint8_t)(group >> 8);
        if (d < 64)
            bytes[(*count)++] = (uint8_t)group;
    }
    return true;
}
