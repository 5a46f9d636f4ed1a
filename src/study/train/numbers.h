/* train/numbers.h - doubles as text, bit by bit. For decimal text see core/text.h. */
#ifndef ATT_TRAIN_NUMBERS_H
#define ATT_TRAIN_NUMBERS_H

#include <stdbool.h>

#include "base/core/text.h"

/* Writes the 64 bits as 16 hexadecimal digits, which preserves NaN as well. Returns `text`. */
char *att_bits_format(double value, char text[ATT_NUMBER_TEXT]);
/* Reads 16 lower-case hexadecimal digits and ignores what follows. Returns false if they are invalid; *value is then
 * unchanged. */
bool att_bits_parse(const char *text, double *value);

#endif
