/* models/typo.h - decides whether a mistyped network name can only mean one particular network.
 *
 * The names may differ in case and separators, and in one typing error: a letter left out, doubled, or swapped with the
 * next; after the first word (which names the family) also a wrong letter, and in the image size a wrong digit. A word
 * that occurs in the name of some network is never a typing error, and neither is any other difference, since it may
 * name another network: "resnetaa50", "seresnet26", "xresnet50", "rednet50", "resnet51", "resnext50_32x8d".
 */
#ifndef ATT_MODELS_TYPO_H
#define ATT_MODELS_TYPO_H

#include <stdbool.h>

/* Returns whether `typed` is a mistyped `meant`. */
bool att_name_is_typo(const char *typed, const char *meant);

#endif
