/* attscope/names.h - what a mistyped name was meant to be. */
#ifndef ATTSCOPE_NAMES_H
#define ATTSCOPE_NAMES_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The candidate with the least Damerau-Levenshtein distance to `text`, the first of several, if it is near enough to be
 * a slip (a third of the letters and one more), else NULL. name(user, i) for i < count gives the candidates.
 * Thread-safe. */
ATT_API const char *att_text_nearest(const char *text, const char *(*name)(const void *user, int index),
                                     const void *user, int count);

#ifdef __cplusplus
}
#endif
#endif
