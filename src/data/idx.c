/* Pairs of IDX files under the names of MNIST and its relatives. */
#include "base/io/idx.h"
#include "base/core/names.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "data/dataset.h"

/* Limit of one decompressed file. */
static const size_t max_bytes = (size_t)8 << 30;

typedef struct idx_source {
    char images_path[ATT_DATA_MAX_NAME];
    att_idx images; /* [count][height][width] */
} idx_source;

/* Finds <folder>[/raw]/<split>-<what>[.gz]. Returns false if there is none. */
static bool find_file(const char *folder, const char *split, const char *what, char *path, size_t size)
{
    for (int variant = 0; variant < 4; variant++) {
        int length = snprintf(path, size, "%s%s/%s-%s%s", folder, variant & 2 ? "/raw" : "", split, what,
                              variant & 1 ? ".gz" : "");
        if (length >= 0 && (size_t)length < size && att_file_exists(path))
            return true;
    }
    return false;
}

static bool find_images(const char *folder, const char *split, char *path, size_t size)
{
    return find_file(folder, split, "images-idx3-ubyte", path, size);
}

static bool accepts(const att_dataset *dataset)
{
    const char *path = dataset->path;
    char file[ATT_DATA_MAX_NAME];
    return find_images(path, "train", file, sizeof file) || find_images(path, "t10k", file, sizeof file);
}

static const char *choose_split(const char *folder, const char *wanted)
{
    char file[ATT_DATA_MAX_NAME];
    if (wanted)
        return strncmp(wanted, "train", 5) == 0 ? "train" : "t10k";
    return find_images(folder, "train", file, sizeof file) ? "train" : "t10k";
}

static att_status read_images(att_dataset *dataset, idx_source *source)
{
    ATT_TRY(att_idx_read(dataset->context, source->images_path, max_bytes, &source->images));
    const att_shape *shape = &source->images.shape;
    if (shape->rank != 3 || shape->dims[0] < 1 || shape->dims[1] < 1 || shape->dims[2] < 1)
        return att_fail(dataset->context, ATT_ERR_FORMAT, "%s: not a list of grey images", source->images_path);
    if (shape->dims[1] > dataset->limits.side || shape->dims[2] > dataset->limits.side)
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: images larger than the limit of %d a side",
                        source->images_path, dataset->limits.side);
    dataset->count = shape->dims[0];
    return ATT_OK;
}

/* Recognises Fashion-MNIST by the number of labels and the first labels. */
static bool are_fashion_mnist(const att_idx *labels)
{
    enum { FIRST = 16 };
    static const struct {
        int64_t count;
        uint8_t first[FIRST];
    } files[] = {{60000, {9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9, 5, 5, 7, 9}},
                 {10000, {9, 2, 1, 1, 6, 1, 4, 6, 5, 7, 4, 5, 7, 3, 4, 1}}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (labels->shape.dims[0] == files[i].count && memcmp(labels->bytes, files[i].first, FIRST) == 0)
            return true;
    return false;
}

/* Names the classes "0".."max label", by Fashion-MNIST's names, or by the class map. */
static att_status name_classes(att_dataset *dataset, const att_idx *labels, int highest, const char *map)
{
    static const char fashion[] = "fashion-mnist";
    dataset->classes.map_names = map != NULL;
    if (map)
        return att_class_list_read(dataset->context, map, &dataset->classes);
    dataset->classes.numbering = ATT_NUMBERED_BY_LABELS;
    return highest + 1 == att_known_classes_find(fashion)->count && are_fashion_mnist(labels)
               ? att_class_list_known(dataset->context, fashion, &dataset->classes)
               : att_class_list_number(dataset->context, highest + 1, &dataset->classes);
}

static att_status set_labels(att_dataset *dataset, const char *path, const att_idx *labels, const char *map)
{
    att_context *context = dataset->context;
    if (labels->shape.rank != 1)
        return att_fail(context, ATT_ERR_FORMAT, "%s: not a list of labels", path);
    if (labels->shape.dims[0] != dataset->count)
        return att_fail(context, ATT_ERR_MISMATCH, "%s: %lld labels for %lld images", path,
                        (long long)labels->shape.dims[0], (long long)dataset->count);
    ATT_TRY(att_new(context, &dataset->labels, (size_t)dataset->count, path));
    int highest = 0;
    for (int64_t i = 0; i < dataset->count; i++) {
        dataset->labels[i] = labels->bytes[i];
        highest = labels->bytes[i] > highest ? labels->bytes[i] : highest;
    }
    ATT_TRY(name_classes(dataset, labels, highest, map));
    if (highest >= dataset->classes.count)
        return att_fail(context, ATT_ERR_MISMATCH, "%s: label %d, but the class map %s has %d class%s", path, highest,
                        map, dataset->classes.count, dataset->classes.count == 1 ? "" : "es");
    return ATT_OK;
}

static att_status open_idx(att_dataset *dataset, const att_dataset_options *options)
{
    att_context *context = dataset->context;
    idx_source *source;
    ATT_TRY(att_new(context, &source, 1, dataset->path));
    dataset->source = source;
    dataset->kind = "idx";
    dataset->split = choose_split(dataset->path, options->split);
    char labels_path[ATT_DATA_MAX_NAME];
    if (!find_images(dataset->path, dataset->split, source->images_path, sizeof source->images_path))
        return att_fail(context, ATT_ERR_NOT_FOUND, "%s has no %s-images-idx3-ubyte", dataset->path, dataset->split);
    if (!find_file(dataset->path, dataset->split, "labels-idx1-ubyte", labels_path, sizeof labels_path))
        return att_fail(context, ATT_ERR_NOT_FOUND, "%s has no %s-labels-idx1-ubyte", dataset->path, dataset->split);
    ATT_TRY(read_images(dataset, source));
    att_idx labels;
    ATT_TRY(att_idx_read(context, labels_path, max_bytes, &labels));
    att_status status = set_labels(dataset, labels_path, &labels, options->class_map);
    att_free(context, labels.bytes);
    return status;
}

static void close_idx(att_dataset *dataset)
{
    idx_source *source = dataset->source;
    att_free(dataset->context, source->images.bytes);
    att_free(dataset->context, source);
}

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const idx_source *source = dataset->source;
    snprintf(text, size, "%s[%lld]", source->images_path, (long long)index);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    (void)need;
    const idx_source *source = dataset->source;
    int height = (int)source->images.shape.dims[1], width = (int)source->images.shape.dims[2];
    size_t count = (size_t)height * (size_t)width;
    const uint8_t *from = source->images.bytes + (size_t)index * count;
    uint8_t *pixels = att_reallocate(context, NULL, count * (size_t)channels);
    if (!pixels)
        return att_fail_memory(context, count * (size_t)channels, source->images_path);
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < channels; c++)
            pixels[i * (size_t)channels + (size_t)c] = from[i];
    *image = (att_image){width, height, channels, pixels};
    return ATT_OK;
}

const att_data_format att_data_idx = {
    .accepts = accepts, .open = open_idx, .close = close_idx, .name = name, .read = read_image};
