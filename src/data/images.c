/* Images without classes: one file, and several paths to files, folders and archives. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/class_tree.h"
#include "io/archive_source.h"

/* --- one file ----------------------------------------------------------------------------------------------------- */

static bool begins_as_image(const char *path)
{
    uint8_t bytes[ATT_TAR_HEADER]; /* also more than any image signature */
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    return !att_tar_begins(bytes, size) && att_image_begins(bytes, size);
}

/* By its name, else by its contents. */
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
                        "%s is an image, not a data set: it has no class; name a folder of class folders",
                        dataset->path);
    dataset->kind = "image";
    dataset->labels = att_allocate(dataset->context, sizeof *dataset->labels);
    if (!dataset->labels)
        return att_fail_memory(dataset->context, sizeof *dataset->labels, dataset->path);
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
    .accepts = is_image_file, .open = open_file, .name = name_file, .read = read_file};

/* --- several paths ------------------------------------------------------------------------------------------------ */

typedef struct images_source {
    att_dataset **parts; /* of each path */
    int64_t *ends;       /* of each, where its images end among all */
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

static const att_dataset *part_of(const att_dataset *dataset, int64_t *index)
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

static const att_data_format images_format = {.close = close_parts, .inner = part_of};

static att_status make_source(att_dataset *dataset, int count)
{
    att_context *context = dataset->context;
    images_source *source = att_allocate(context, sizeof *source);
    if (!source)
        return att_fail_memory(context, sizeof *source, dataset->path);
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
    dataset->labels = att_allocate_array(dataset->context, count, sizeof *dataset->labels);
    if (!dataset->labels)
        return att_fail_memory(dataset->context, count * sizeof *dataset->labels, "the list of images");
    for (size_t i = 0; i < count; i++)
        dataset->labels[i] = -1;
    return ATT_OK;
}

att_status att_data_images_open(att_dataset *dataset, const char *const *paths, int count,
                                const att_dataset_options *options)
{
    att_dataset_options asked = att_dataset_options_defaults();
    asked.unlabelled = true;
    asked.cache_bytes = options->cache_bytes;
    asked.limits = options->limits;
    ATT_TRY(make_source(dataset, count));
    images_source *source = dataset->source;
    for (; source->count < count; source->count++) {
        ATT_TRY(att_dataset_open(dataset->context, paths[source->count], &asked, &source->parts[source->count]));
        dataset->count += source->parts[source->count]->count;
        source->ends[source->count] = dataset->count;
    }
    return make_labels(dataset);
}
