/* attscope/lab/names.h - what a mistyped name was meant to be, and what the classes of well-known data sets are called.
 */
#ifndef ATTSCOPE_LAB_NAMES_H
#define ATTSCOPE_LAB_NAMES_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The candidate with the least Damerau-Levenshtein distance to `text`, the first of several, if it is near enough to be
 * a slip (a third of the letters and one more), else NULL. name(user, i) for i < count gives the candidates.
 * Thread-safe. */
ATT_API const char *att_text_nearest(const char *text, const char *(*name)(const void *user, int index),
                                     const void *user, int count);

/* The classes of a data set, by number. All texts live as long as the program. */
typedef struct att_known_classes {
    const char *name; /* of the data set: "imagenet-1k", "cifar10", "cifar100", "fashion-mnist" */
    int count;
    const char *const *labels; /* "tench"; no two are alike */
    const char *const
        *synsets; /* what WordNet, and so the folders of ImageNet, call them: "n01440764"; NULL: nothing */
} att_known_classes;

/* The data sets whose classes are built in; index 0..count-1. Thread-safe. */
ATT_API int att_known_classes_count(void);
ATT_API const att_known_classes *att_known_classes_at(int index);
/* That of the name; NULL where there is none. */
ATT_API const att_known_classes *att_known_classes_find(const char *name);
/* The label of a synset that is a class of ImageNet-1k ("n01440764": "tench"); NULL for any other text. */
ATT_API const char *att_synset_label(const char *synset);

#ifdef __cplusplus
}
#endif
#endif
