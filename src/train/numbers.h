/* train/numbers.h - the bits of a number as text, beside core/text.h's digits. */
#ifndef ATT_TRAIN_NUMBERS_H
#define ATT_TRAIN_NUMBERS_H

#include <stdbool.h>

#include "core/text.h"

/* The 64 bits as 16 hexadecimal digits, so that NaN too comes back as it was; returns `text`. */
char *att_bits_format(double value, char text[ATT_NUMBER_TEXT]);
/* Reads 16 lower-case digits; false for anything else, with *value unchanged. What follows them is not looked at. */
bool att_bits_parse(const char *text, double *value);

#endif
