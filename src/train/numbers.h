/* train/numbers.h - numbers as texts that depend on no locale. */
#ifndef ATT_TRAIN_NUMBERS_H
#define ATT_TRAIN_NUMBERS_H

#include <stdbool.h>

enum { ATT_NUMBER_TEXT = 32 };

/* The fewest significant digits that read back as the same number; returns `text`. */
char *att_number_format(double value, char text[ATT_NUMBER_TEXT]);

/* The 64 bits as 16 hexadecimal digits, so that NaN too comes back as it was; returns `text`. */
char *att_bits_format(double value, char text[ATT_NUMBER_TEXT]);
/* Reads 16 lower-case digits; false for anything else, with *value unchanged. What follows them is not looked at. */
bool att_bits_parse(const char *text, double *value);

#endif
