/* Photographs with boxes, in the layouts of box_layouts.c. */
#include "data/boxes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "data/box_set.h"
#include "data/mask_pairs.h"

enum { MAX_CLASSES = 1 << 16 };

/* --- places ------------------------------------------------------------------------------------------------------- */

/* As att_file_search.take. user: the place to set. */
static att_status take_place(void *user, const att_file_place *place, bool *taken)
{
    *taken = place->layout->boxes->is(place);
    if (*taken)
        *(att_file_place *)user = *place;
    return ATT_OK;
}

/* Takes the first place with boxes. user: the context. */
static att_status find_boxes(void *user, const att_file_place *place, bool *taken)
{
    const att_box_format *format = place->layout->boxes;
    *taken = format->is(place) && (!format->has_boxes || format->has_boxes(user, place));
    return ATT_OK;
}

static att_file_search search_for(att_status (*take)(void *user, const att_file_place *place, bool *taken), void *user)
{
    return (att_file_search){att_box_layouts, att_box_layouts_number, "boxes", take, user};
}

att_status att_boxes_exist(att_context *context, const char *path, bool *found)
{
    att_arena arena = {.context = context};
    const att_file_search search = search_for(find_boxes, context);
    att_status status = att_file_layouts_try(&arena, path, NULL, &search, found);
    att_arena_free(&arena);
    return status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED ? status : ATT_OK;
}

static att_status find_place(const att_dataset *dataset, const char *wanted)
{
    att_box_set *set = dataset->source;
    const att_file_search search = search_for(take_place, &set->place);
    bool found;
    ATT_TRY(att_file_layouts_try(&set->arena, dataset->path, wanted, &search, &found));
    if (found)
        return ATT_OK;
    ATT_TRY(att_mask_pairs_exist(dataset->context, dataset->path, &found));
    if (found)
        return att_fail(dataset->context, ATT_ERR_MISMATCH, "boxes are needed; %s has masks", dataset->path);
    return att_fail(
        dataset->context, ATT_ERR_MISMATCH,
        "%s has no boxes: expected photographs with COCO's JSON (train2017 and "
        "annotations/instances_train2017.json), Pascal VOC's XML (JPEGImages and Annotations) or YOLO's text "
        "files (images/train and labels/train), with at most %d folders around them, each the only one in "
        "its folder",
        dataset->path, ATT_FILE_LAYOUTS_OUTER);
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

/* Gives each class of the set the number that its name has in the data set's list. */
static att_status renumber(att_dataset *dataset, const int *numbers)
{
    att_box_set *set = dataset->source;
    const int count = dataset->classes.count;
    int64_t *ids = att_arena_allocate(&set->arena, ((size_t)count + 1) * sizeof *ids);
    if (!ids)
        return att_fail_memory(dataset->context, (size_t)count * sizeof *ids, "the classes of boxes");
    for (int c = 0; c < count; c++)
        ids[c] = set->class_ids ? -1 : c;
    for (int c = 0; set->class_ids && c < set->class_count; c++)
        ids[numbers[c]] = set->class_ids[c];
    for (int i = 0; i < set->box_count; i++)
        set->boxes[i].label = numbers[set->boxes[i].label];
    set->class_ids = ids;
    return ATT_OK;
}

/* Finds the numbers of the set's classes in the data set's list. *known, *missing: the first class that it has, or
 * lacks; NULL: none. */
static void find_numbers(const att_dataset *dataset, int *numbers, const char **known, const char **missing)
{
    const att_box_set *set = dataset->source;
    *known = *missing = NULL;
    for (int c = 0; c < set->class_count; c++) {
        numbers[c] = att_class_list_find(&dataset->classes, set->names[c]);
        const char **first = numbers[c] < 0 ? missing : known;
        if (!*first)
            *first = set->names[c];
    }
}

/* Numbers the classes by the names of a list, if it has them all. path: of the class map; NULL: the list is that of a
 * training. */
static att_status use_numbers(att_dataset *dataset, const char *path, bool *used)
{
    const att_box_set *set = dataset->source;
    const char *known, *missing;
    int *numbers = att_allocate_array(dataset->context, (size_t)set->class_count + 1, sizeof *numbers);
    if (!numbers)
        return att_fail_memory(dataset->context, (size_t)set->class_count * sizeof *numbers, "the classes of boxes");
    find_numbers(dataset, numbers, &known, &missing);
    att_status status = ATT_OK;
    *used = !missing;
    if (missing && path)
        status = att_fail(dataset->context, ATT_ERR_MISMATCH, "%s: class \"%s\" is not in the class map %s",
                          dataset->path, missing, path);
    else if (missing && known)
        status = att_fail(dataset->context, ATT_ERR_MISMATCH,
                          "%s: class \"%s\" is none of the %d classes of the training, though \"%s\" is", dataset->path,
                          missing, dataset->classes.count, known);
    else if (!missing)
        status = renumber(dataset, numbers);
    att_free(dataset->context, numbers);
    return status;
}

/* Makes `names` the classes of a set whose annotations have numbers only. */
static att_status check_numbers(const att_dataset *dataset)
{
    const att_box_set *set = dataset->source;
    return set->class_count <= dataset->classes.count
               ? ATT_OK
               : att_fail(dataset->context, ATT_ERR_MISMATCH, "%s: boxes have the class %d, but there are %d classes",
                          dataset->path, set->class_count - 1, dataset->classes.count);
}

static att_status use_map(att_dataset *dataset, const char *path)
{
    const att_box_set *set = dataset->source;
    bool used;
    ATT_TRY(att_class_list_read(dataset->context, path, &dataset->classes));
    dataset->classes.numbering = ATT_NUMBERED_BY_MAP;
    dataset->classes.map_names = set->unnamed;
    return set->unnamed ? check_numbers(dataset) : use_numbers(dataset, path, &used);
}

static att_status use_training(att_dataset *dataset, const att_dataset_options *options, bool *used)
{
    const att_box_set *set = dataset->source;
    *used = false;
    if (options->trained_count == 0)
        return ATT_OK;
    ATT_TRY(att_class_list_make(dataset->context, dataset->path, options->trained, options->trained_count,
                                &dataset->classes));
    dataset->classes.numbering = ATT_NUMBERED_BY_TRAINING;
    if (set->unnamed) {
        *used = true;
        ATT_TRY(check_numbers(dataset));
        if (strcmp(options->trained[0], "0") != 0)
            att_log(
                dataset->context, ATT_LOG_INFO,
                "%s: the annotations have no names of classes; number n is taken for class n of the training, 0 for "
                "\"%s\"",
                dataset->path, options->trained[0]);
        return ATT_OK;
    }
    ATT_TRY(use_numbers(dataset, NULL, used));
    if (!*used)
        att_class_list_free(&dataset->classes);
    return ATT_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static att_status check_names(const att_dataset *dataset)
{
    const att_box_set *set = dataset->source;
    const size_t count = (size_t)set->class_count;
    const char **sorted = att_allocate_array(dataset->context, count + 1, sizeof *sorted), *twice = NULL;
    if (!sorted)
        return att_fail_memory(dataset->context, count * sizeof *sorted, "the classes of boxes");
    for (size_t c = 0; c < count; c++)
        sorted[c] = set->names[c];
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t c = 1; c < count && !twice; c++)
        if (strcmp(sorted[c - 1], sorted[c]) == 0)
            twice = sorted[c];
    att_free(dataset->context, sorted);
    return twice ? att_fail(dataset->context, ATT_ERR_FORMAT, "%s: two classes are named \"%s\"", dataset->path, twice)
                 : ATT_OK;
}

static att_status number_classes(att_dataset *dataset, const att_dataset_options *options)
{
    const att_box_set *set = dataset->source;
    bool used;
    if (set->class_count > MAX_CLASSES)
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: %d classes; boxes can have at most %d",
                        dataset->path, set->class_count, MAX_CLASSES);
    ATT_TRY(check_names(dataset));
    if (options->class_map)
        return use_map(dataset, options->class_map);
    ATT_TRY(use_training(dataset, options, &used));
    if (used)
        return ATT_OK;
    const int own = set->unnamed && options->classes > set->class_count ? options->classes : set->class_count;
    if (own == 0)
        return att_fail(dataset->context, ATT_ERR_FORMAT, "%s has no boxes, and no list of classes", dataset->path);
    ATT_TRY(own > set->class_count
                ? att_class_list_number(dataset->context, own, &dataset->classes)
                : att_class_list_make(dataset->context, dataset->path, set->names, own, &dataset->classes));
    dataset->classes.numbering = ATT_NUMBERED_BY_LABELS;
    return ATT_OK;
}

/* --- the format --------------------------------------------------------------------------------------------------- */

static bool accepts(const att_dataset *dataset)
{
    return att_is_folder(dataset->path);
}

static att_status open_boxes(att_dataset *dataset, const att_dataset_options *options)
{
    att_box_set *set;
    ATT_TRY(att_new(dataset->context, &set, 1, dataset->path));
    dataset->source = set;
    dataset->kind = "boxes";
    set->arena.context = dataset->context;
    set->limits = &dataset->limits;
    ATT_TRY(find_place(dataset, options->split));
    dataset->split = set->place.split;
    if (!*dataset->split && !att_split_names(options->split))
        return att_split_unknown(dataset->context, options->split);
    ATT_TRY(set->place.layout->boxes->read(set));
    if (set->count == 0)
        return att_fail(dataset->context, ATT_ERR_FORMAT, "%s has no photographs with boxes", dataset->path);
    att_box_set_warn(set, set->place.layout->boxes->unit);
    ATT_TRY(number_classes(dataset, options));
    ATT_TRY(att_new(dataset->context, &dataset->labels, (size_t)set->count, "the list of images"));
    for (int i = 0; i < set->count; i++)
        dataset->labels[i] = -1;
    dataset->count = set->count;
    return ATT_OK;
}

static void close_boxes(att_dataset *dataset)
{
    att_box_set_free(dataset->source);
    att_free(dataset->context, dataset->source);
}

static const att_boxed_photograph *photograph_of(const att_dataset *dataset, int64_t index)
{
    const att_box_set *set = dataset->source;
    return &set->photographs[index];
}

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    snprintf(text, size, "%s", photograph_of(dataset, index)->path);
}

/* Fails unless the boxes are those of the photograph's pixels as they are stored. */
static att_status check_size(att_context *context, const att_boxed_photograph *photograph, const att_image_look *look)
{
    const bool turns = look->orientation > 1, swaps = look->orientation > 4 && look->width != look->height;
    const bool fits = look->width == photograph->width && look->height == photograph->height;
    if (fits && (!turns || (swaps && photograph->sized)))
        return ATT_OK;
    if (turns)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: EXIF says to turn or mirror it (orientation %d), but its boxes are read for the pixels as "
                        "they are stored: turn the pixels (exiftran -a, or mogrify -auto-orient), or remove the EXIF "
                        "orientation",
                        photograph->path, look->orientation);
    return att_fail(context, ATT_ERR_FORMAT,
                    "%s: the photograph has %d x %d pixels, but its annotations are for %d x %d", photograph->path,
                    look->width, look->height, photograph->width, photograph->height);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    const att_boxed_photograph *photograph = photograph_of(dataset, index);
    att_image_look look = {.orientation = 1};
    const att_image_need headers = {.look = &look};
    att_image whole = {0};
    ATT_TRY(att_image_read_needed(context, photograph->path, channels, &dataset->limits, &headers, &whole));
    if (whole.pixels)
        look = (att_image_look){whole.width, whole.height, 1};
    att_status status = check_size(context, photograph, &look);
    if (status != ATT_OK || (need && need->look && !whole.pixels)) {
        att_image_free(context, &whole);
        if (status == ATT_OK)
            *need->look = look;
        return status;
    }
    if (!whole.pixels)
        return att_image_read_needed(context, photograph->path, channels, &dataset->limits, need, image);
    *image = whole;
    return ATT_OK;
}

static const att_box_set *boxes(const att_dataset *dataset)
{
    return dataset->source;
}

const att_data_format att_data_boxes = {.accepts = accepts,
                                        .open = open_boxes,
                                        .close = close_boxes,
                                        .name = name,
                                        .read = read_image,
                                        .annotation = ATT_ANNOTATION_BOXES,
                                        .exist = att_boxes_exist,
                                        .boxes = boxes,
                                        .single_files = true};

/* --- boxes of a data set ------------------------------------------------------------------------------------------ */

/* NULL: there are none. */
static const att_boxed_photograph *find_photograph(const att_dataset *dataset, int64_t index)
{
    return dataset->format->boxes && index >= 0 && index < dataset->count ? photograph_of(dataset, index) : NULL;
}

const att_true_box *att_dataset_boxes(const att_dataset *dataset, int64_t index, int *count)
{
    const att_boxed_photograph *photograph = find_photograph(dataset, index);
    *count = photograph ? photograph->count : 0;
    return *count > 0 ? &dataset->format->boxes(dataset)->boxes[photograph->first] : NULL;
}

int64_t att_dataset_image_id(const att_dataset *dataset, int64_t index)
{
    const att_boxed_photograph *photograph = find_photograph(dataset, index);
    return photograph ? photograph->id : -1;
}

int64_t att_dataset_class_id(const att_dataset *dataset, int class_index)
{
    const int64_t *ids = dataset->format->boxes ? dataset->format->boxes(dataset)->class_ids : NULL;
    if (class_index < 0 || class_index >= dataset->classes.count)
        return -1;
    return ids ? ids[class_index] : class_index;
}

att_box_counts att_dataset_count_boxes(const att_dataset *dataset)
{
    att_box_counts counts = {0};
    for (int64_t i = 0; dataset->format->boxes && i < dataset->count; i++) {
        int count;
        const att_true_box *of = att_dataset_boxes(dataset, i, &count);
        counts.boxes += count;
        counts.images_without += count == 0;
        counts.most = count > counts.most ? count : counts.most;
        for (int b = 0; b < count; b++)
            counts.crowds += of[b].crowd;
    }
    return counts;
}
