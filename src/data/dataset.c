#include "data/dataset.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/splits.h"
#include "data/tar_set.h"

static const att_data_format *const formats[] = {
    &att_data_idx,   &att_data_cifar10, &att_data_cifar100, &att_data_stl10, &att_data_split_archive, &att_data_tars,
    &att_data_masks, &att_data_boxes,   &att_data_folder,   &att_data_image, &att_data_archive};

att_dataset_options att_dataset_options_defaults(void)
{
    return (att_dataset_options){.reduce_zero_label = ATT_BY_LAYOUT,
                                 .ignore_label = ATT_BY_LAYOUT,
                                 .cache_bytes = (size_t)4 << 30,
                                 .limits = att_image_limits_defaults()};
}

/* Kinds of annotations, and advice where a data set with them is used for classes. */
static const struct {
    unsigned annotation;
    const char *name, *advice;
} kinds[] = {{ATT_ANNOTATION_CLASS, "classes", ""},
             {ATT_ANNOTATION_MASK, "masks", " (--task segment trains on masks)"},
             {ATT_ANNOTATION_BOXES, "boxes", " (--task detect reads boxes)"}};

static size_t kind_of(unsigned annotation)
{
    for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++)
        if (annotation & kinds[i].annotation)
            return i;
    return 0;
}

const char *att_annotation_name(unsigned annotations)
{
    return kinds[kind_of(annotations)].name;
}

/* Refuses a data set without classes where these are needed. */
static att_status fail_annotated(const att_dataset *dataset, const att_data_format *format)
{
    const size_t kind = kind_of(format->annotation);
    return att_fail(dataset->context, ATT_ERR_MISMATCH, "classes are needed; %s has %s%s", dataset->path,
                    kinds[kind].name, kinds[kind].advice);
}

/* Refuses a format without the wanted annotations. */
static att_status fail_format(const att_dataset *dataset, const att_data_format *format, unsigned wanted)
{
    const char *name = att_annotation_name(wanted);
    if (format == &att_data_archive || format == &att_data_tars || format == &att_data_split_archive)
        return att_fail(dataset->context, ATT_ERR_MISMATCH,
                        "%s: %s are needed, which are read from folders only: give a folder, and unpack archives",
                        dataset->path, name);
    return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s are needed; %s has %s", name, dataset->path,
                    format == &att_data_image ? "one image" : "classes");
}

/* Whether the format opens the data set. Fails for a data set with other annotations where classes are wanted. */
static att_status choose_format(const att_dataset *dataset, const att_data_format *format, unsigned wanted,
                                bool unlabelled, bool *accepted)
{
    bool exist = false;
    *accepted = format->accepts(dataset);
    ATT_TRY(att_check_stop(dataset->context, dataset->path));
    if (!*accepted || !format->annotation || format->annotation == wanted)
        return ATT_OK;
    *accepted = false;
    if (wanted == 0 && !unlabelled)
        ATT_TRY(format->exist(dataset->context, dataset->path, &exist));
    return exist ? fail_annotated(dataset, format) : ATT_OK;
}

static att_status open_format(att_dataset *dataset, const att_dataset_options *options)
{
    const unsigned wanted = options->unlabelled ? 0 : options->annotations & ~(unsigned)ATT_ANNOTATION_CLASS;
    if (!wanted && !att_split_names(options->split)) /* with masks or boxes, it can be any list of photographs */
        return att_split_unknown(dataset->context, options->split);
    if (!att_file_exists(dataset->path) && !att_tar_set_is_pattern(dataset->path))
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s does not exist", dataset->path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        bool accepted;
        ATT_TRY(choose_format(dataset, formats[i], wanted, options->unlabelled, &accepted));
        if (!accepted)
            continue;
        if (formats[i]->annotation != wanted)
            return fail_format(dataset, formats[i], wanted);
        dataset->format = formats[i];
        if (options->coarse && formats[i] != &att_data_cifar100)
            return att_fail(dataset->context, ATT_ERR_ARGUMENT, "%s has no coarse labels: only CIFAR-100 has them",
                            dataset->path);
        return formats[i]->open(dataset, options);
    }
    return att_fail(dataset->context, ATT_ERR_FORMAT, "%s is neither a folder nor a file", dataset->path);
}

/* Opens the tars in the data set's folder that the split names, as timm allows. */
static att_status open_tars(att_dataset *dataset, const att_dataset_options *options)
{
    char path[ATT_DATA_MAX_NAME];
    att_dataset_options whole = *options;
    whole.split = NULL;
    ATT_TRY(att_path_join(dataset->context, dataset->path, options->split, path, sizeof path));
    char *copy = att_copy_string(dataset->context, path);
    if (!copy)
        return att_fail_memory(dataset->context, strlen(path) + 1, path);
    att_free(dataset->context, dataset->path);
    dataset->path = copy;
    ATT_TRY(open_format(dataset, &whole));
    const char *split = att_tar_set_split(options->split);
    if (!*dataset->split)
        dataset->split = split ? split : "tars";
    return ATT_OK;
}

/* Removes trailing slashes from a path, but leaves "/". Returns the new length. */
static size_t remove_trailing_slashes(char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    return length;
}

/* Creates an empty data set. */
static att_status create(att_context *context, const char *path, const att_dataset_options *options, att_dataset **out)
{
    att_dataset *dataset;
    ATT_TRY(att_new(context, &dataset, 1, path));
    dataset->context = context;
    dataset->limits = options->limits;
    dataset->split = "";
    dataset->path = att_copy_string(context, path);
    dataset->turned = att_allocate(context, sizeof *dataset->turned);
    if (dataset->path && dataset->turned) {
        dataset->prefix_length = remove_trailing_slashes(dataset->path);
        *out = dataset;
        return ATT_OK;
    }
    att_dataset_close(&dataset);
    return att_fail_memory(context, strlen(path), path);
}

bool att_data_is_shards(const att_dataset *dataset)
{
    return strcmp(dataset->kind, "shards") == 0;
}

/* Whether the format can have any of the splits. The other formats have only train and test. */
static bool has_split_folders(const att_dataset *dataset)
{
    return strcmp(dataset->kind, "folder") == 0 || strcmp(dataset->kind, "zip") == 0 ||
           strcmp(dataset->kind, "masks") == 0 || strcmp(dataset->kind, "boxes") == 0 || att_data_is_shards(dataset) ||
           strncmp(dataset->kind, "tar", strlen("tar")) == 0;
}

/* Says which split is used in place of the wanted one: a note where the data set lacks that split, a warning where its
 * images have no classes. */
static void tell_other_split(const att_dataset *dataset, const char *asked)
{
    enum { COMMON_LETTERS = 2 }; /* common first letters of a split's names: "val", "valid", "validation" */
    if (!asked || !*dataset->split || att_tar_named(asked) || !has_split_folders(dataset) ||
        strncasecmp(asked, dataset->split, COMMON_LETTERS) == 0)
        return;
    if (*dataset->flat_split)
        att_log(dataset->context, ATT_LOG_WARNING,
                "%s has no labelled images of the split \"%s\" (%s/ exists, but holds no class folders); using \"%s\" "
                "instead",
                dataset->path, asked, dataset->flat_split, dataset->split);
    else
        att_log(dataset->context, ATT_LOG_INFO, "%s has no split \"%s\"; using \"%s\" instead", dataset->path, asked,
                dataset->split);
}

att_status att_dataset_open(att_context *context, const char *path, const att_dataset_options *options,
                            att_dataset **out)
{
    att_dataset_options defaults = att_dataset_options_defaults();
    att_dataset *dataset = NULL;
    if (!options)
        options = &defaults;
    ATT_TRY(att_require(context, path, "the path of a data set"));
    ATT_TRY(create(context, path, options, &dataset));
    att_status status =
        options->split && att_tar_named(options->split) ? open_tars(dataset, options) : open_format(dataset, options);
    if (status != ATT_OK) {
        att_dataset_close(&dataset);
        return status;
    }
    tell_other_split(dataset, options->split);
    *out = dataset;
    return ATT_OK;
}

att_status att_dataset_open_images(att_context *context, const char *const *paths, int count,
                                   const att_dataset_options *options, att_dataset **out)
{
    att_dataset_options defaults = att_dataset_options_defaults();
    att_dataset *dataset = NULL;
    if (count < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "a data set of %d paths, expected 1 or more", count);
    ATT_TRY(att_require_texts(context, paths, count, "a path of a data set"));
    if (!options)
        options = &defaults;
    ATT_TRY(create(context, paths[0], options, &dataset));
    att_status status = att_data_images_open(dataset, paths, count, options);
    if (status == ATT_OK)
        *out = dataset;
    else
        att_dataset_close(&dataset);
    return status;
}

void att_dataset_close(att_dataset **dataset)
{
    if (!dataset || !*dataset)
        return;
    att_dataset *it = *dataset;
    if (it->format && it->source)
        it->format->close(it);
    att_class_list_free(&it->classes);
    att_free(it->context, it->labels);
    att_free(it->context, it->turned);
    att_free(it->context, it->path);
    att_free(it->context, it);
    *dataset = NULL;
}

const char *att_dataset_split(const att_dataset *dataset)
{
    return dataset->split;
}

int64_t att_dataset_count(const att_dataset *dataset)
{
    return dataset->count;
}

int att_dataset_class_count(const att_dataset *dataset)
{
    return dataset->classes.count;
}

att_numbering att_dataset_numbering(const att_dataset *dataset)
{
    return dataset->classes.numbering;
}

const char *const *att_dataset_class_names(const att_dataset *dataset)
{
    return dataset->classes.names;
}

const uint8_t (*att_dataset_class_colours(const att_dataset *dataset))[3]
{
    return (const uint8_t(*)[3])dataset->classes.colours;
}

const char *att_dataset_class_name(const att_dataset *dataset, int class_index)
{
    return class_index >= 0 && class_index < dataset->classes.count ? dataset->classes.names[class_index] : "";
}

static bool has_image(const att_dataset *dataset, int64_t index)
{
    return index >= 0 && index < dataset->count;
}

/* Returns the inner data set that the image belongs to, or the data set itself. *index becomes the index in the
 * result. */
static const att_dataset *owner(const att_dataset *dataset, int64_t *index)
{
    return dataset->format->inner ? dataset->format->inner(dataset, index) : dataset;
}

unsigned att_dataset_annotations(const att_dataset *dataset)
{
    const bool classes = dataset->count > 0 && dataset->labels[0] >= 0;
    return (classes ? ATT_ANNOTATION_CLASS : 0) | dataset->format->annotation;
}

int32_t att_dataset_label(const att_dataset *dataset, int64_t index)
{
    return has_image(dataset, index) ? dataset->labels[index] : -1;
}

char *att_dataset_name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    if (has_image(dataset, index)) {
        dataset = owner(dataset, &index);
        dataset->format->name(dataset, index, text, size);
    } else {
        snprintf(text, size, "%s[%lld]", dataset->path, (long long)index);
    }
    return text;
}

char *att_dataset_short_name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    char name[ATT_DATA_MAX_NAME];
    if (has_image(dataset, index))
        dataset = owner(dataset, &index);
    const char *below = att_dataset_name(dataset, index, name, sizeof name);
    if (strlen(name) > dataset->prefix_length) {
        below += dataset->prefix_length;
        below += strspn(below, "/");
    } else if (strrchr(name, '/')) {
        below = strrchr(name, '/') + 1;
    }
    snprintf(text, size, "%s", below);
    return text;
}

/* Returns the file name of the image, without folders; "" if one file holds many images. */
static const char *file_name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    if (!owner(dataset, &(int64_t){index})->format->single_files)
        return "";
    const char *slash = strrchr(att_dataset_name(dataset, index, text, size), '/');
    return slash ? slash + 1 : text;
}

char *att_dataset_listing(const att_dataset *dataset, char text[ATT_DATASET_LISTING])
{
    uint64_t key = 0;
    for (int64_t i = 0; i < dataset->count; i++) {
        char name[ATT_DATA_MAX_NAME];
        uint64_t hash = att_random_hash(file_name(dataset, i, name, sizeof name));
        key = att_random_key(key, (uint64_t)dataset->labels[i], hash);
    }
    snprintf(text, ATT_DATASET_LISTING, "%016" PRIx64, key);
    return text;
}

att_status att_dataset_read_needed(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                                   const att_image_need *need, att_image *image)
{
    if (!has_image(dataset, index))
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: image %lld of %lld", dataset->path, (long long)index,
                        (long long)dataset->count);
    if (channels != 1 && channels != 3)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: images have 1 or 3 channels, %d requested", dataset->path,
                        channels);
    int orientation = 1;
    int64_t none = 0, inner = index;
    att_image_need told = need ? *need : (att_image_need){0};
    told.orientation = &orientation;
    const att_dataset *from = owner(dataset, &inner);
    ATT_TRY(from->format->read(from, context, inner, channels, &told, image));
    if (orientation > 1 && !dataset->limits.exif_transpose)
        atomic_compare_exchange_strong(&dataset->turned->first, &none, index + 1);
    return ATT_OK;
}

void att_dataset_note_turned(const att_dataset *dataset)
{
    char name[ATT_DATA_MAX_NAME];
    const int64_t first = atomic_load(&dataset->turned->first);
    if (first == 0 || dataset->turned->noted)
        return;
    dataset->turned->noted = true;
    att_dataset_short_name(dataset, first - 1, name, sizeof name);
    att_log(
        dataset->context, ATT_LOG_INFO,
        "%s: EXIF says to turn it for display, and images are read as they are stored, as in timm; --exif-transpose "
        "turns them",
        name);
}

att_status att_dataset_read_mask(const att_dataset *dataset, att_context *context, int64_t index, att_mask *mask)
{
    if (!dataset->format->read_mask)
        return att_fail(context, ATT_ERR_MISMATCH, "%s has no masks", dataset->path);
    if (!has_image(dataset, index))
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: mask %lld of %lld", dataset->path, (long long)index,
                        (long long)dataset->count);
    return dataset->format->read_mask(dataset, context, index, mask);
}

att_status att_dataset_look(const att_dataset *dataset, att_context *context, int64_t index, att_image_look *look)
{
    const att_image_need need = {.look = look};
    att_image image = {0};
    ATT_TRY(att_dataset_read_needed(dataset, context, index, 3, &need, &image));
    if (image.pixels)
        *look = (att_image_look){image.width, image.height, 1};
    att_image_free(context, &image);
    return ATT_OK;
}

att_status att_dataset_image_size(const att_dataset *dataset, att_context *context, int64_t index, int *width,
                                  int *height)
{
    att_image_look look;
    ATT_TRY(att_dataset_look(dataset, context, index, &look));
    *width = look.width;
    *height = look.height;
    return ATT_OK;
}

void att_dataset_expect(const att_dataset *dataset, int64_t index)
{
    if (!has_image(dataset, index))
        return;
    dataset = owner(dataset, &index);
    if (dataset->format->expect)
        dataset->format->expect(dataset, index);
}

att_status att_dataset_read(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                            att_image *image)
{
    ATT_TRY(att_dataset_read_needed(dataset, context, index, channels, NULL, image));
    if (context == dataset->context)
        att_dataset_note_turned(dataset);
    return ATT_OK;
}
