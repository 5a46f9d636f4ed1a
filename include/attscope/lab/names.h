/* attscope/lab/names.h - suggestions for mistyped names, and the class names of well-known data sets. */
#ifndef ATTSCOPE_LAB_NAMES_H
#define ATTSCOPE_LAB_NAMES_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the candidate with the smallest Damerau-Levenshtein distance to `text`, the first if several have it, or NULL
 * if the distance is more than a third of the letters of `text`, rounded up. name(user, i) returns candidate i, 0 <= i
 * < count. Thread-safe. */
ATT_API const char *att_text_nearest(const char *text, const char *(*name)(const void *user, int index),
                                     const void *user, int count);

/* The classes of a data set, by number. Its texts are static. */
typedef struct att_known_classes {
    const char *name; /* of the data set: "imagenet-1k", "cifar10", "cifar100", "fashion-mnist" */
    int count;
    const char *const *labels;  /* "tench"; all different */
    const char *const *synsets; /* WordNet's names, which ImageNet's folders have: "n01440764"; NULL: none */
} att_known_classes;

/* The data sets whose class names are built in; index 0..count-1. Thread-safe. */
ATT_API int att_known_classes_count(void);
ATT_API const att_known_classes *att_known_classes_at(int index);
/* Returns the data set with this name, or NULL. */
ATT_API const att_known_classes *att_known_classes_find(const char *name);
/* Returns the label of a synset of ImageNet-1k ("n01440764": "tench"); NULL for any other text. */
ATT_API const char *att_synset_label(const char *synset);

#ifdef __cplusplus
}
#endif
#endif
