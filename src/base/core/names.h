/* core/names.h - class names of known data sets. cmake/classes.cmake makes the array from the files in
 * src/base/core/classes. */
#ifndef ATT_CORE_NAMES_H
#define ATT_CORE_NAMES_H

#include <attscope/context.h>

#include "base/core/export.h"

/* The classes of a data set, or those of one of its orders:
 *
 *   imagenet-1k          1,000 classes of ILSVRC 2012
 *   imagenet-21k         21,843, as Google's weights have them (timm's tags in21k)
 *   imagenet-22k         21,841, of fall11.tar
 *   imagenet-12k         11,821, timm's subset
 *   imagenet-21k-p       11,221, ImageNet-21K-P of fall 2011
 *   imagenet-21k-p-w21   10,450, ImageNet-21K-P of winter 2021
 *   coco                 80 categories of objects
 *   coco-91              91: class c is the category with number c; class 0 is the background
 *   ade20k               150 classes of the scene parsing benchmark; this and the next three have colours
 *   camvid               11 classes of SegNet's copy
 *   cityscapes           19 classes that are evaluated ("train IDs")
 *   voc                  21: the background and 20 kinds of objects
 *   cifar10, cifar100, fashion-mnist
 */
typedef struct att_known_classes {
    const char *name;
    int count;
    bool has_synsets;            /* classes have WordNet's names, too, which ImageNet's folders have: "n01440764" */
    const uint8_t (*colours)[3]; /* [count], red, green and blue of the classes in pictures; NULL: none are usual */
    /* For the functions below. */
    const unsigned char *texts;
    const uint32_t *places;
    const uint16_t *of;
} att_known_classes;

/* The data sets whose class names are built in; index 0..count-1. Thread-safe. */
int att_known_classes_count(void);
const att_known_classes *att_known_classes_at(int index);
/* Returns the data set with this name, or NULL. */
ATT_FOR_LAB const att_known_classes *att_known_classes_find(const char *name);
/* The label of class `number`, 0 <= number < count: "tench". Labels of a data set are all different. The text is
 * static. */
const char *att_known_classes_label(const att_known_classes *known, int number);
/* Its synset, a static text; NULL if !has_synsets. Synsets are in ascending order. */
const char *att_known_classes_synset(const att_known_classes *known, int number);
/* Returns the number of the class with this synset; -1 if there is none. */
int att_known_classes_with_synset(const att_known_classes *known, const char *synset);
/* Returns the label of a synset of ImageNet-1k ("n01440764": "tench"), else of ImageNet-21k; NULL for any other text.
 */
const char *att_synset_label(const char *synset);

extern const att_known_classes att_known_classes_all[];
extern const int att_known_classes_number;

#endif
