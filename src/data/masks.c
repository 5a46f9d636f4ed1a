/* Photographs with index masks beside them, in the layouts of file_layouts.c. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/boxes.h"
#include "data/class_tree.h"
#include "data/mask_classes.h"
#include "data/mask_pairs.h"

typedef struct masks_source {
    att_mask_pairs files;
    bool reduce_zero;
    int labels;        /* number of stored labels that are classes */
    int ignore_label;  /* -1: none beside those of the layout */
    uint16_t *classes; /* [LABELS]: of each stored label */
} masks_source;

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* Labels are 16-bit numbers. NOT_A_CLASS, in the map from labels to classes: the label is an error. */
enum { LABELS = 1 << 16, NOT_A_CLASS = ATT_MASK_NONE - 1, MAX_CLASSES = NOT_A_CLASS };

typedef att_status (*class_parser)(att_context *context, const char *path, char *text, size_t size,
                                   att_class_list *list);

static att_status read_classes(att_dataset *dataset, const char *path, class_parser parse)
{
    enum { MAX_BYTES = 16 << 20 };
    char *text;
    size_t size;
    ATT_TRY(att_file_read(dataset->context, path, MAX_BYTES, &text, &size));
    att_status status = parse(dataset->context, path, text, size, &dataset->classes);
    att_free(dataset->context, text);
    return status;
}

/* Reads the file of classes beside the photographs, or in the folder that was opened. Leaves the list empty if there is
 * none. */
static att_status read_own_classes(att_dataset *dataset, masks_source *source, int reduce_zero)
{
    static const struct {
        const char *name;
        class_parser parse;
        bool reduce_zero;
    } files[] = {{"classes.txt", att_mask_classes_parse, false},
                 {"objectInfo150.txt", att_mask_classes_parse_table, true}};
    const char *const folders[] = {source->files.place.root, dataset->path};
    for (int i = 0; i < 4; i++) {
        char path[ATT_DATA_MAX_NAME];
        if (!att_file_exists_in(folders[i % 2], files[i / 2].name))
            continue;
        ATT_TRY(att_path_join(dataset->context, folders[i % 2], files[i / 2].name, path, sizeof path));
        if (files[i / 2].reduce_zero && reduce_zero == ATT_BY_LAYOUT)
            source->reduce_zero = true;
        return read_classes(dataset, path, files[i / 2].parse);
    }
    return ATT_OK;
}

static void mask_path(const att_dataset *dataset, int64_t index, char path[ATT_DATA_MAX_NAME])
{
    const masks_source *source = dataset->source;
    snprintf(path, ATT_DATA_MAX_NAME, "%s/%s", source->files.place.annotations, source->files.pairs[index].mask);
}

/* Reads the stored labels of a mask. */
static att_status read_labels(const att_dataset *dataset, att_context *context, int64_t index, att_mask *labels)
{
    char path[ATT_DATA_MAX_NAME], *bytes;
    size_t size;
    mask_path(dataset, index, path);
    ATT_TRY(att_file_read(context, path, dataset->limits.file_bytes, &bytes, &size));
    att_image_job job = {context, path, (const uint8_t *)bytes, size, 1, &dataset->limits, NULL};
    const char *format = att_image_format_of(bytes, size);
    att_status status =
        !format || strcmp(format, "PNG") != 0
            ? att_fail(
                  context, ATT_ERR_FORMAT,
                  "%s is no PNG; masks are PNGs with the number of a class in each pixel, which lossy formats change",
                  path)
            : att_png_decode_values(&job, &labels->width, &labels->height, &labels->classes);
    att_free(context, bytes);
    return status;
}

/* Whether the label is one of those that stand for "no class" unless there is a class of this number. */
static bool is_usual_void(int label)
{
    return label == UINT8_MAX || label == UINT16_MAX;
}

/* *most: the largest class so far. */
static att_status find_largest(const att_dataset *dataset, int64_t index, int *most)
{
    const masks_source *source = dataset->source;
    att_mask labels;
    ATT_TRY(att_check_stop(dataset->context, dataset->path));
    ATT_TRY(read_labels(dataset, dataset->context, index, &labels));
    const size_t count = (size_t)labels.width * (size_t)labels.height;
    for (size_t i = 0; i < count; i++) {
        int label = labels.classes[i], number = label - source->reduce_zero;
        if (number > *most && label != source->ignore_label && !is_usual_void(label))
            *most = number;
    }
    att_mask_free(dataset->context, &labels);
    return ATT_OK;
}

/* Numbers the classes up to the largest label of all masks. */
static att_status count_classes(att_dataset *dataset)
{
    const masks_source *source = dataset->source;
    int most = -1;
    att_log(dataset->context, ATT_LOG_INFO,
            "%s has no classes.txt, so all %lld masks are read for the largest label; classes.txt has the name of a "
            "class on each line",
            source->files.place.root, (long long)source->files.count);
    for (int64_t i = 0; i < source->files.count; i++)
        ATT_TRY(find_largest(dataset, i, &most));
    if (most < 1)
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s: its masks have fewer than two classes, as the labels 255 and 65535 mean \"no class\"; "
                        "expected the numbers 0, 1, 2, ... of classes",
                        source->files.place.annotations);
    return att_class_list_number(dataset->context, most + 1, &dataset->classes);
}

/* Chooses the names of the classes that the labels 0, 1, 2, ... (if 0 is reduced: 1, 2, 3, ...) stand for. */
static att_status name_classes(att_dataset *dataset, const att_dataset_options *options)
{
    masks_source *source = dataset->source;
    const att_file_layout *layout = source->files.place.layout;
    if (options->class_map) {
        ATT_TRY(read_classes(dataset, options->class_map, att_mask_classes_parse));
        dataset->classes.numbering = ATT_NUMBERED_BY_MAP;
        dataset->classes.map_names = true;
        return ATT_OK;
    }
    ATT_TRY(read_own_classes(dataset, source, options->reduce_zero_label));
    if (dataset->classes.count == 0 && layout->classes)
        ATT_TRY(att_class_list_known(dataset->context, layout->classes, &dataset->classes));
    if (layout->classes && att_class_list_is(&dataset->classes, layout->classes))
        ATT_TRY(att_class_list_colour(&dataset->classes, layout->classes));
    if (dataset->classes.count == 0 && options->trained_count > 0)
        ATT_TRY(att_class_list_make(dataset->context, dataset->path, options->trained, options->trained_count,
                                    &dataset->classes));
    if (dataset->classes.count == 0 && options->classes > 0)
        ATT_TRY(att_class_list_number(dataset->context, options->classes, &dataset->classes));
    if (dataset->classes.count == 0)
        ATT_TRY(count_classes(dataset));
    dataset->classes.numbering = ATT_NUMBERED_BY_LABELS;
    return ATT_OK;
}

/* Fills the map from stored labels to classes. */
static att_status map_labels(att_dataset *dataset)
{
    masks_source *source = dataset->source;
    const int count = dataset->classes.count;
    const bool void_last = source->files.place.layout->void_last;
    if (count > MAX_CLASSES)
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: %d classes; masks can have at most %d",
                        dataset->path, count, MAX_CLASSES);
    source->labels = count;
    source->classes = att_arena_allocate(&source->files.arena, LABELS * sizeof *source->classes);
    if (!source->classes)
        return att_fail_memory(dataset->context, LABELS * sizeof *source->classes, "the labels of masks");
    for (int label = 0; label < LABELS; label++) {
        const int number = label - source->reduce_zero;
        uint16_t mapped = NOT_A_CLASS;
        if (number < 0 || label == source->ignore_label)
            mapped = ATT_MASK_NONE;
        else if (number < count)
            mapped = (uint16_t)number;
        else if (is_usual_void(label) || (void_last && number == count))
            mapped = ATT_MASK_NONE;
        source->classes[label] = mapped;
    }
    return ATT_OK;
}

/* Makes `trained` the list of classes, if it has all of the data set's. Colours go with their classes. */
static att_status renumber(att_dataset *dataset, att_class_list *trained)
{
    const masks_source *source = dataset->source;
    att_class_list *own = &dataset->classes;
    if (own->colours && trained->count == own->count) {
        const size_t bytes = (size_t)own->count * sizeof *own->colours;
        trained->colours = att_arena_allocate(&trained->arena, bytes);
        if (!trained->colours)
            return att_fail_memory(dataset->context, bytes, "the colours of classes");
    }
    for (int c = 0; c < own->count; c++) {
        const int number = att_class_list_find(trained, own->names[c]);
        if (number < 0)
            return ATT_OK;
        if (trained->colours)
            memcpy(trained->colours[number], own->colours[c], sizeof *own->colours);
    }
    for (int label = 0; label < LABELS; label++)
        if (source->classes[label] < own->count)
            source->classes[label] = (uint16_t)att_class_list_find(trained, own->names[source->classes[label]]);
    att_class_list_free(own);
    *own = *trained;
    *trained = (att_class_list){.count = 0};
    own->numbering = ATT_NUMBERED_BY_TRAINING;
    return ATT_OK;
}

/* Gives classes the numbers that a training run gave to their names, if it knows all of them. */
static att_status use_training_numbers(att_dataset *dataset, const att_dataset_options *options)
{
    att_class_list trained = {.count = 0};
    if (options->class_map || options->trained_count == 0 || options->trained_count > MAX_CLASSES)
        return ATT_OK;
    att_status status =
        att_class_list_make(dataset->context, dataset->path, options->trained, options->trained_count, &trained);
    if (status == ATT_OK)
        status = renumber(dataset, &trained);
    att_class_list_free(&trained);
    return status;
}

/* --- the format --------------------------------------------------------------------------------------------------- */

static bool accepts(const att_dataset *dataset)
{
    return att_is_folder(dataset->path);
}

/* Finds an archive that lies in the folder. Returns false if there is none. */
static bool find_archive(const char *folder, char archive[ATT_DATA_MAX_NAME])
{
    static const char *const patterns[] = {"*.tar", "*.tar.*", "*.tgz", "*.zip"};
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        for (size_t i = 0; !found && i < sizeof patterns / sizeof *patterns; i++) {
            found = att_text_matches(patterns[i], entry->d_name);
            snprintf(archive, ATT_DATA_MAX_NAME, "%s", entry->d_name);
        }
    if (entries)
        closedir(entries);
    return found;
}

static att_status find_place(att_dataset *dataset, const char *wanted)
{
    masks_source *source = dataset->source;
    bool found;
    ATT_TRY(att_mask_pairs_find(&source->files, dataset->path, wanted, &found));
    if (found)
        return ATT_OK;
    ATT_TRY(att_boxes_exist(dataset->context, dataset->path, &found));
    if (found)
        return att_fail(dataset->context, ATT_ERR_MISMATCH, "masks are needed; %s has boxes", dataset->path);
    ATT_TRY(att_mask_pairs_exist(dataset->context, dataset->path, &found));
    if (found && wanted)
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND,
                        "%s has photographs with masks, but the folders of its split \"%s\" have none", dataset->path,
                        wanted);
    char archive[ATT_DATA_MAX_NAME];
    if (find_archive(dataset->path, archive))
        return att_fail(dataset->context, ATT_ERR_MISMATCH,
                        "%s has no masks beside the archive %s; masks are read from folders only: unpack it",
                        dataset->path, archive);
    return att_fail(dataset->context, ATT_ERR_MISMATCH,
                    "%s has no masks: expected photographs and PNG masks of the same names, such as images/train and "
                    "masks/train, train and trainannot, or the folders of ADE20K, Pascal VOC or Cityscapes, with at "
                    "most %d folders around them, each the only one in its folder; if this is the folder of one split, "
                    "give the folder that contains its photographs and masks, and name the split",
                    dataset->path, ATT_FILE_LAYOUTS_OUTER);
}

static att_status open_masks(att_dataset *dataset, const att_dataset_options *options)
{
    masks_source *source;
    ATT_TRY(att_new(dataset->context, &source, 1, dataset->path));
    dataset->source = source;
    dataset->kind = "masks";
    source->files.arena.context = dataset->context;
    ATT_TRY(find_place(dataset, options->split));
    dataset->split = source->files.place.split;
    if (!*dataset->split && !att_split_names(options->split))
        return att_split_unknown(dataset->context, options->split);
    source->reduce_zero = options->reduce_zero_label == ATT_BY_LAYOUT ? source->files.place.layout->reduce_zero
                                                                      : options->reduce_zero_label != 0;
    source->ignore_label = options->ignore_label;
    ATT_TRY(name_classes(dataset, options));
    ATT_TRY(map_labels(dataset));
    ATT_TRY(use_training_numbers(dataset, options));
    ATT_TRY(att_new(dataset->context, &dataset->labels, (size_t)source->files.count, "the list of images"));
    for (int64_t i = 0; i < source->files.count; i++)
        dataset->labels[i] = -1;
    dataset->count = source->files.count;
    return ATT_OK;
}

static void close_masks(att_dataset *dataset)
{
    masks_source *source = dataset->source;
    att_arena_free(&source->files.arena);
    att_free(dataset->context, source);
}

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const masks_source *source = dataset->source;
    snprintf(text, size, "%s/%s", source->files.place.photographs, source->files.pairs[index].photograph);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    char path[ATT_DATA_MAX_NAME];
    name(dataset, index, path, sizeof path);
    return att_image_read_needed(context, path, channels, &dataset->limits, need, image);
}

static att_status fail_label(const att_dataset *dataset, att_context *context, int64_t index, const att_mask *mask,
                             size_t at, int label)
{
    const masks_source *source = dataset->source;
    const int count = source->labels, low = source->reduce_zero;
    const att_file_layout *layout = source->files.place.layout;
    char path[ATT_DATA_MAX_NAME], advice[512];
    mask_path(dataset, index, path);
    snprintf(advice, sizeof advice,
             "correct the mask or the list of classes, or ignore the label by --ignore-label (ignore_label)");
    if (layout->other_end)
        snprintf(advice, sizeof advice, "*%s.png have labels of %s", layout->other_end, layout->other_classes);
    return att_fail(context, ATT_ERR_FORMAT,
                    "%s: label %d in row %d, column %d is no class: there are %d classes, with the labels %d to %d; %s",
                    path, label, (int)(at / (size_t)mask->width), (int)(at % (size_t)mask->width), count, low,
                    low + count - 1, advice);
}

/* Fails unless the mask has the size of the photograph as it is stored, which is as att_dataset_read() returns it. If
 * EXIF data turn the photograph for display and its size stays the same, nothing tells whether the mask is turned. */
static att_status compare_sizes(const att_dataset *dataset, att_context *context, int64_t index, const att_mask *mask)
{
    char photograph[ATT_DATA_MAX_NAME], path[ATT_DATA_MAX_NAME];
    att_image_look look;
    ATT_TRY(att_dataset_look(dataset, context, index, &look));
    name(dataset, index, photograph, sizeof photograph);
    mask_path(dataset, index, path);
    const bool turns = look.orientation > 1, swaps = look.orientation > 4 && look.width != look.height;
    const bool fits = look.width == mask->width && look.height == mask->height;
    if (fits && (!turns || swaps))
        return ATT_OK;
    if (fits)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: EXIF says to turn or mirror it (orientation %d), and nothing tells whether the mask %s is "
                        "turned; photographs are read as they are stored: turn the pixels (exiftran -a, or mogrify "
                        "-auto-orient), or remove the EXIF orientation",
                        photograph, look.orientation, path);
    if (swaps && look.width == mask->height && look.height == mask->width)
        return att_fail(
            context, ATT_ERR_FORMAT,
            "%s: the mask has %d x %d pixels, but the photograph %s, which EXIF says to turn (orientation "
            "%d), is stored with %d x %d; photographs are read as they are stored: turn its pixels (exiftran "
            "-a, or mogrify -auto-orient)",
            path, mask->width, mask->height, photograph, look.orientation, look.width, look.height);
    return att_fail(context, ATT_ERR_FORMAT, "%s: the mask has %d x %d pixels, but the photograph %s has %d x %d", path,
                    mask->width, mask->height, photograph, look.width, look.height);
}

static att_status map_mask(const att_dataset *dataset, att_context *context, int64_t index, att_mask *mask)
{
    const masks_source *source = dataset->source;
    const size_t count = (size_t)mask->width * (size_t)mask->height;
    for (size_t i = 0; i < count; i++) {
        const uint16_t label = mask->classes[i];
        mask->classes[i] = source->classes[label];
        if (mask->classes[i] == NOT_A_CLASS)
            return fail_label(dataset, context, index, mask, i, label);
    }
    return ATT_OK;
}

static att_status read_mask(const att_dataset *dataset, att_context *context, int64_t index, att_mask *mask)
{
    att_mask read;
    ATT_TRY(read_labels(dataset, context, index, &read));
    att_status status = compare_sizes(dataset, context, index, &read);
    if (status == ATT_OK)
        status = map_mask(dataset, context, index, &read);
    if (status == ATT_OK)
        *mask = read;
    else
        att_mask_free(context, &read);
    return status;
}

const att_data_format att_data_masks = {.accepts = accepts,
                                        .open = open_masks,
                                        .close = close_masks,
                                        .name = name,
                                        .read = read_image,
                                        .annotation = ATT_ANNOTATION_MASK,
                                        .exist = att_mask_pairs_exist,
                                        .read_mask = read_mask,
                                        .single_files = true};
