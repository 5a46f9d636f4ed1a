#include "study/train/numbers.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BITS_DIGITS = 16 };

char *att_bits_format(double value, char text[ATT_NUMBER_TEXT])
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    snprintf(text, ATT_NUMBER_TEXT, "%016" PRIx64, bits);
    return text;
}

bool att_bits_parse(const char *text, double *value)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = 0;
    for (int i = 0; i < BITS_DIGITS; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        bits = bits << 4 | (uint64_t)(digit - digits);
    }
    memcpy(value, &bits, sizeof bits);
    return true;
}
