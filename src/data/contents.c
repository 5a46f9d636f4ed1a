/* Describes the contents of a data set: a digest of its images, whether they are grey, a summary in one sentence. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/names.h"
#include "base/core/random.h"
#include "data/dataset.h"

/* --- images ------------------------------------------------------------------------------------------------------- */

enum { SAMPLED_IMAGES = 8 };

typedef struct sampled_image {
    uint64_t name;
    int64_t index;
} sampled_image;

static uint64_t hash_name(const att_dataset *dataset, int64_t index)
{
    char name[ATT_DATA_MAX_NAME];
    return att_random_hash(att_dataset_short_name(dataset, index, name, sizeof name));
}

/* Inserts an image into the sorted list of the `count` images with the smallest hashes. Returns the new count, at most
 * SAMPLED_IMAGES. */
static int insert_smallest(sampled_image chosen[SAMPLED_IMAGES + 1], int count, sampled_image image)
{
    int at = count;
    for (; at > 0 && chosen[at - 1].name > image.name; at--)
        chosen[at] = chosen[at - 1];
    chosen[at] = image;
    return count < SAMPLED_IMAGES ? count + 1 : count;
}

/* *hash: hash of the image's size and pixels; 0 if the image cannot be decoded. */
static att_status hash_image(const att_dataset *dataset, att_context *context, int64_t index, uint64_t *hash)
{
    att_image image;
    *hash = 0;
    att_status status = att_dataset_read(dataset, context, index, 1, &image);
    if (status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED)
        return status;
    if (status != ATT_OK)
        return ATT_OK;
    const int sides[] = {image.width, image.height};
    *hash = att_random_hash_more(att_random_hash(""), sides, sizeof sides);
    *hash = att_random_hash_more(*hash, image.pixels, (size_t)image.width * (size_t)image.height);
    att_image_free(context, &image);
    return ATT_OK;
}

/* The digest combines the sum of all name hashes, which does not depend on their order, with the pixels of the few
 * images that have the smallest name hashes. The choice of images depends on neither the classes nor the number of
 * images. */
att_status att_dataset_contents(const att_dataset *dataset, att_context *context, char text[ATT_DATASET_CONTENTS])
{
    const uint64_t prime = 0x100000001b3u;
    sampled_image chosen[SAMPLED_IMAGES + 1];
    int count = 0;
    uint64_t sum = 0;
    for (int64_t i = 0; i < dataset->count; i++) {
        const sampled_image image = {hash_name(dataset, i), i};
        sum += image.name;
        count = insert_smallest(chosen, count, image);
    }
    for (int i = 0; i < count; i++) {
        uint64_t hash;
        ATT_TRY(hash_image(dataset, context, chosen[i].index, &hash));
        sum = sum * prime + hash;
    }
    snprintf(text, ATT_DATASET_CONTENTS, "%016" PRIx64, sum);
    return ATT_OK;
}

att_colours att_dataset_colours(const att_dataset *dataset, att_context *context)
{
    att_colours found = ATT_COLOURS_UNKNOWN;
    for (int64_t i = 0; found != ATT_COLOURS_ANY && i < dataset->count && i < SAMPLED_IMAGES; i++) {
        att_image image;
        if (att_dataset_read(dataset, context, i, 3, &image) != ATT_OK)
            continue;
        found = att_image_is_grey(&image) ? ATT_COLOURS_GREY : ATT_COLOURS_ANY;
        att_image_free(context, &image);
    }
    return found;
}

/* --- a sentence --------------------------------------------------------------------------------------------------- */

/* Returns the name of the known data set whose synsets are these classes; NULL if there is none. */
static const char *synsets_of(const att_class_list *classes)
{
    for (int i = 0; i < att_known_classes_number; i++) {
        const att_known_classes *known = &att_known_classes_all[i];
        int same = 0;
        while (known->has_synsets && known->count == classes->count && same < known->count &&
               strcmp(att_known_classes_synset(known, same), classes->names[same]) == 0)
            same++;
        if (same > 0 && same == known->count)
            return known->name;
    }
    return NULL;
}

static void describe_numbering(const att_dataset *dataset, char *text, size_t size)
{
    const att_class_list *classes = &dataset->classes;
    static const char *const by[] = {[ATT_NUMBERED_BY_FOLDERS] = "the sorted folder names",
                                     [ATT_NUMBERED_BY_TRAINING] = "the class names of the training",
                                     [ATT_NUMBERED_BY_NAMES] = "the folder names",
                                     [ATT_NUMBERED_BY_MAP] = "the class map",
                                     [ATT_NUMBERED_BY_LABELS] = "the labels"};
    const bool sorted_labels = classes->numbering == ATT_NUMBERED_BY_FOLDERS && att_data_is_shards(dataset);
    const char *known = classes->numbering == ATT_NUMBERED_BY_TRAINING ? synsets_of(classes) : NULL;
    if (known)
        snprintf(text, size, "the synsets of %s", known);
    else if (sorted_labels)
        snprintf(text, size, "the sorted labels");
    else if (classes->map_names)
        snprintf(text, size, "the labels, named by the class map");
    else
        snprintf(text, size, "%s", by[classes->numbering]);
}

/* Describes what the images have besides classes: " with masks". */
static void describe_annotations(const att_dataset *dataset, char *text, size_t size)
{
    const att_box_counts counts = att_dataset_count_boxes(dataset);
    char crowds[64] = "", without[64] = "";
    if (counts.crowds > 0)
        snprintf(crowds, sizeof crowds, " (%lld of crowds)", (long long)counts.crowds);
    if (counts.images_without > 0)
        snprintf(without, sizeof without, ", %lld image%s without boxes", (long long)counts.images_without,
                 counts.images_without == 1 ? "" : "s");
    if (dataset->format->boxes)
        snprintf(text, size, ", %lld box%s%s%s", (long long)counts.boxes, counts.boxes == 1 ? "" : "es", crowds,
                 without);
    else
        snprintf(text, size, "%s", dataset->format->read_mask ? " with masks" : "");
}

static bool has_classes(const att_dataset *dataset)
{
    return dataset->classes.count > 0;
}

char *att_dataset_describe(const att_dataset *dataset, char *text, size_t size)
{
    const att_class_list *classes = &dataset->classes;
    char numbered[64], class_text[128] = "without classes", annotated[128];
    describe_numbering(dataset, numbered, sizeof numbered);
    if (has_classes(dataset))
        snprintf(class_text, sizeof class_text, "%d class%s, numbered by %s", classes->count,
                 classes->count == 1 ? "" : "es", numbered);
    describe_annotations(dataset, annotated, sizeof annotated);
    snprintf(text, size, "%s%s%s: %lld image%s%s, %s", dataset->path, *dataset->split ? ", " : "", dataset->split,
             (long long)dataset->count, dataset->count == 1 ? "" : "s", annotated, class_text);
    return text;
}
