/* models/slip.h - whether a mistyped name can only have meant another one.
 *
 * The names differ in case and separators, or in one slip: a letter left out, typed twice, or swapped with its
 * neighbour; behind the first word, which names the family, also a wrong letter; a wrong digit in the image size. What
 * some network's name has is no slip, nor are other differences, because they name another network: "resnetaa50",
 * "seresnet26", "xresnet50", "rednet50", "resnet51", "resnext50_32x8d".
 */
#ifndef ATT_MODELS_SLIP_H
#define ATT_MODELS_SLIP_H

#include <stdbool.h>

/* Whether `typed` is a slip for `meant`. */
bool att_name_is_slip(const char *typed, const char *meant);

#endif
