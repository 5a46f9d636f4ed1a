/* Images without classes: a single file, or several paths to files, folders and archives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/archive_source.h"
#include "base/io/system.h"
#include "data/class_tree.h"

/* --- one file ----------------------------------------------------------------------------------------------------- */

static bool begins_as_image(const char *path)
{
    uint8_t bytes[ATT_TAR_HEADER]; /* also more than any image signature */
    size_t size = att_system_read_start(path, bytes, sizeof bytes);
    return !att_tar_begins(bytes, size) && att_image_format_of(bytes, size) != NULL;
}

/* Recognises an image file by its extension, or else by its contents. */
static bool is_image_file(const att_dataset *dataset)
{
    const char *path = dataset->path;
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && (att_class_tree_is_image(path) || begins_as_image(path));
}

static att_status open_file(att_dataset *dataset, const att_dataset_options *options)
{
    if (!options->unlabelled)
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s is an image, not a data set with classes; expected a folder of class folders",
                        dataset->path);
    dataset->kind = ATT_FORMAT_IMAGE;
    ATT_TRY(att_new(dataset->context, &dataset->labels, 1, dataset->path));
    dataset->labels[0] = -1;
    dataset->count = 1;
    return ATT_OK;
}

static void name_file(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    (void)index;
    snprintf(text, size, "%s", dataset->path);
}

static att_status read_file(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                            const att_image_need *need, att_image *image)
{
    (void)index;
    return att_image_read_needed(context, dataset->path, channels, &dataset->limits, need, image);
}

const att_data_format att_data_image = {
    .accepts = is_image_file, .open = open_file, .name = name_file, .read = read_file, .single_files = true};

/* --- several paths ------------------------------------------------------------------------------------------------ */

typedef struct images_source {
    att_dataset **parts; /* one data set per path */
    int64_t *ends;       /* for each part, the number of images up to its end */
    int count;
} images_source;

static void close_parts(att_dataset *dataset)
{
    images_source *source = dataset->source;
    for (int i = 0; i < source->count; i++)
        att_dataset_close(&source->parts[i]);
    att_free(dataset->context, source->parts);
    att_free(dataset->context, source->ends);
    att_free(dataset->context, source);
}

static const att_dataset *find_part(const att_dataset *dataset, int64_t *index)
{
    const images_source *source = dataset->source;
    int low = 0, high = source->count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (*index < source->ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    *index -= low > 0 ? source->ends[low - 1] : 0;
    return source->parts[low];
}

static const att_data_format images_format = {.close = close_parts, .inner = find_part};

static att_status make_source(att_dataset *dataset, int count)
{
    att_context *context = dataset->context;
    images_source *source;
    ATT_TRY(att_new(context, &source, 1, dataset->path));
    dataset->format = &images_format;
    dataset->kind = "images";
    dataset->source = source;
    source->parts = att_allocate_array(context, (size_t)count, sizeof(*source->parts));
    source->ends = att_allocate_array(context, (size_t)count, sizeof(*source->ends));
    return source->parts && source->ends
               ? ATT_OK
               : att_fail_memory(context, (size_t)count * sizeof(*source->parts), "the list of images");
}

static att_status make_labels(att_dataset *dataset)
{
    size_t count = (size_t)dataset->count;
    ATT_TRY(att_new(dataset->context, &dataset->labels, count, "the list of images"));
    for (size_t i = 0; i < count; i++)
        dataset->labels[i] = -1;
    return ATT_OK;
}

/* --- short names -------------------------------------------------------------------------------------------------- */

/* An image, identified by its part and short name. */
typedef struct named_image {
    uint64_t hash; /* of the short name */
    int part;
} named_image;

static int compare_named(const void *a, const void *b)
{
    const named_image *one = a, *other = b;
    if (one->hash != other->hash)
        return one->hash < other->hash ? -1 : 1;
    return one->part - other->part;
}

static void hash_names(const att_dataset *dataset, named_image *images)
{
    const images_source *source = dataset->source;
    int64_t index = 0;
    for (int part = 0; part < source->count; part++)
        for (int64_t i = 0; index < source->ends[part]; i++, index++) {
            char name[ATT_DATA_MAX_NAME];
            att_dataset_short_name(source->parts[part], i, name, sizeof name);
            images[index] = (named_image){att_random_hash(name), part};
        }
}

/* Whether two images of different paths have the same short name. */
static bool has_duplicate_names(const att_dataset *dataset, named_image *images)
{
    const images_source *source = dataset->source;
    hash_names(dataset, images);
    qsort(images, (size_t)dataset->count, sizeof *images, compare_named);
    for (int64_t i = 1; i < dataset->count; i++)
        if (images[i].hash == images[i - 1].hash &&
            strcmp(source->parts[images[i].part]->path, source->parts[images[i - 1].part]->path) != 0)
            return true;
    return false;
}

/* Compares paths byte by byte, from the end backwards. */
static int compare_reversed(const void *a, const void *b)
{
    const char *one = (*(att_dataset *const *)a)->path, *other = (*(att_dataset *const *)b)->path;
    size_t at_one = strlen(one), at_other = strlen(other);
    while (at_one > 0 && at_other > 0 && one[at_one - 1] == other[at_other - 1]) {
        at_one--;
        at_other--;
    }
    int left = at_one > 0 ? (uint8_t)one[at_one - 1] : -1, right = at_other > 0 ? (uint8_t)other[at_other - 1] : -1;
    return left - right;
}

/* Returns the start of the shortest suffix of `path`, in whole path components, with which `other` does not end. The
 * start is at most `most`. */
static size_t suffix_begin(const char *path, const char *other, size_t most)
{
    size_t at = strlen(path), at_other = strlen(other);
    while (at > 0 && at_other > 0 && path[at - 1] == other[at_other - 1]) {
        at--;
        at_other--;
    }
    if (at == 0 && at_other == 0) /* the same path */
        return most;
    if (at > 1 && at_other == 0 && path[at - 1] == '/') /* `other` is itself a suffix of `path` */
        at--;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return at < most ? at : most;
}

/* Extends the short names of each part's images by as many path components as make the parts' paths distinct. Paths
 * that share a long suffix are neighbours when sorted by compare_reversed(). */
static void extend_names(att_dataset **sorted, int count)
{
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_reversed);
    for (int i = 0; i < count; i++) {
        const char *path = sorted[i]->path;
        size_t begins = (size_t)(att_path_last(path) - path);
        for (int step = -1; step <= 1; step += 2) {
            int k = i + step;
            while (k >= 0 && k < count && strcmp(sorted[k]->path, path) == 0)
                k += step;
            if (k >= 0 && k < count)
                begins = suffix_begin(path, sorted[k]->path, begins);
        }
        sorted[i]->prefix_length = begins;
    }
}

static att_status make_names_unique(const att_dataset *dataset)
{
    const images_source *source = dataset->source;
    att_context *context = dataset->context;
    size_t parts = (size_t)source->count;
    named_image *images = att_allocate_array(context, (size_t)dataset->count, sizeof *images);
    att_dataset **sorted = att_allocate_array(context, parts, sizeof(*sorted));
    bool allocated = images && sorted;
    if (allocated && has_duplicate_names(dataset, images)) {
        memcpy(sorted, source->parts, parts * sizeof(*sorted));
        extend_names(sorted, source->count);
    }
    att_free(context, sorted);
    att_free(context, images);
    return allocated ? ATT_OK : att_fail_memory(context, (size_t)dataset->count * sizeof *images, "the list of images");
}

att_status att_data_images_open(att_dataset *dataset, const char *const *paths, int count,
                                const att_dataset_options *options)
{
    att_dataset_options part_options = att_dataset_options_defaults();
    part_options.unlabelled = true;
    part_options.cache_bytes = options->cache_bytes;
    part_options.limits = options->limits;
    ATT_TRY(make_source(dataset, count));
    images_source *source = dataset->source;
    for (; source->count < count; source->count++) {
        ATT_TRY(att_dataset_open(dataset->context, paths[source->count], &part_options, &source->parts[source->count]));
        dataset->count += source->parts[source->count]->count;
        source->ends[source->count] = dataset->count;
    }
    ATT_TRY(make_labels(dataset));
    return make_names_unique(dataset);
}
