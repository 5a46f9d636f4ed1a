#include "data/class_tree.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "data/annotations.h"
#include "data/devkit.h"

#define EXTENSIONS ".jpg, .jpeg, .png or .webp"
#define HIDDEN "files and folders whose names begin with a dot are not read"
static const int64_t max_files = (int64_t)1 << 26;

bool att_class_tree_is_image(const char *path)
{
    static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".webp"};
    const char *last = att_path_last(path), *extension = strrchr(last, '.');
    for (size_t i = 0; extension && *last != '.' && i < sizeof extensions / sizeof *extensions; i++)
        if (strcasecmp(extension, extensions[i]) == 0)
            return true;
    return false;
}

static att_status append(att_context *context, att_tree_list *list, att_tree_file file)
{
    if (list->count == list->capacity) {
        if (list->count >= max_files)
            return att_fail(context, ATT_ERR_UNSUPPORTED, "more than %lld files", (long long)max_files);
        int64_t capacity = list->capacity ? 2 * list->capacity : 256;
        size_t bytes = (size_t)capacity * sizeof *list->files;
        att_tree_file *files = att_reallocate(context, list->files, bytes);
        if (!files)
            return att_fail_memory(context, bytes, "the list of images");
        list->files = files;
        list->capacity = capacity;
    }
    list->files[list->count++] = file;
    return ATT_OK;
}

att_status att_class_tree_add(att_class_tree *tree, const char *path, int64_t member)
{
    if (att_path_is_hidden(path))
        return ATT_OK;
    return append(tree->context, att_class_tree_is_image(path) ? &tree->images : &tree->others,
                  (att_tree_file){path, path, member});
}

void att_class_tree_free(att_class_tree *tree)
{
    att_free(tree->context, tree->images.files);
    att_free(tree->context, tree->others.files);
    att_arena_free(&tree->moved);
    *tree = (att_class_tree){.context = tree->context};
}

/* --- which folder is a class ------------------------------------------------------------------------------------- */

static size_t first_part(const char *path)
{
    const char *slash = strchr(path, '/');
    return slash ? (size_t)(slash - path) : strlen(path);
}

/* Number of folders in a path. */
static int depth(const char *path)
{
    int folders = 0;
    for (; *path; path++)
        folders += *path == '/';
    return folders;
}

static bool lies_under(const char *path, const char *folder, size_t length)
{
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Whether the files have the same top-level folder. */
static bool same_folder(const att_tree_file *a, const att_tree_file *b)
{
    return lies_under(a->inner, b->inner, first_part(b->inner));
}

/* Whether all images lie in subfolders of a single folder. */
static bool has_outer_folder(const att_class_tree *tree)
{
    const char *first = tree->images.files[0].inner;
    size_t length = first_part(first);
    for (int64_t i = 0; i < tree->images.count; i++)
        if (depth(tree->images.files[i].inner) < 2 || !lies_under(tree->images.files[i].inner, first, length))
            return false;
    return true;
}

static void enter_list(att_tree_list *list, const char *folder, size_t length)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < list->count; i++) {
        att_tree_file file = list->files[i];
        if (!lies_under(file.inner, folder, length))
            continue;
        file.inner += length + 1;
        list->files[kept++] = file;
    }
    list->count = kept;
}

/* Makes paths relative to a folder, and drops files outside it. `folder` may point into a path of the tree. */
static void enter(att_class_tree *tree, const char *folder, size_t length)
{
    enter_list(&tree->images, folder, length);
    enter_list(&tree->others, folder, length);
}

/* Drops files that lie in no folder. Returns how many. */
static int64_t drop_without_folder(att_tree_list *list)
{
    int64_t kept = 0, count = list->count;
    for (int64_t i = 0; i < list->count; i++)
        if (depth(list->files[i].inner) >= 1)
            list->files[kept++] = list->files[i];
    list->count = kept;
    return count - kept;
}

/* Adds the top-level folders: those whose images lie in further folders as splits, the others as flat. */
static void list_folders(const att_class_tree *tree, att_splits *splits)
{
    const att_tree_file *files = tree->images.files;
    for (int64_t i = 0; i < tree->images.count; i++) {
        const char *inner = files[i].inner;
        const bool holds_classes = depth(inner) >= 2;
        if (i > 0 && same_folder(&files[i], &files[i - 1]) && holds_classes == (depth(files[i - 1].inner) >= 2))
            continue;
        if (holds_classes)
            att_splits_add(splits, inner, first_part(inner));
        else
            att_splits_add_flat(splits, inner, first_part(inner));
    }
}

void att_class_tree_set_split(att_class_tree *tree, att_dataset *dataset, const att_splits *splits,
                              const att_split *found, const char *wanted)
{
    const char *flat = att_splits_flat(splits, wanted);
    tree->split = *found;
    dataset->split = found->split;
    if (flat)
        snprintf(dataset->flat_split, sizeof dataset->flat_split, "%s", flat);
}

enum { MOST_NAMES = 16 };

/* The names of the first top-level folders. */
typedef struct folder_names {
    char name[MOST_NAMES][ATT_SPLIT_NAME];
    int count;
} folder_names;

static const char *folder_at(const void *user, int index)
{
    return ((const folder_names *)user)->name[index];
}

/* Returns the folder whose name is nearest to the split's, as "trian" to "train"; NULL if none is near. */
static const char *nearest_folder(const att_class_tree *tree, const char *wanted, folder_names *folders)
{
    const att_tree_file *files = tree->images.files;
    folders->count = 0;
    for (int64_t i = 0; i < tree->images.count && folders->count < MOST_NAMES; i++)
        if (i == 0 || !same_folder(&files[i], &files[i - 1]))
            snprintf(folders->name[folders->count++], ATT_SPLIT_NAME, "%.*s", (int)first_part(files[i].inner),
                     files[i].inner);
    return att_text_nearest(wanted, folder_at, folders, folders->count);
}

/* Says what there is instead of the split. */
static att_status no_split(const att_class_tree *tree, const att_dataset *dataset, const att_splits *splits,
                           const char *wanted)
{
    const char *any = att_splits_find(splits, att_split_names(NULL))->name, *flat = att_splits_flat(splits, wanted);
    folder_names folders;
    const char *near = flat ? NULL : nearest_folder(tree, wanted, &folders);
    if (!flat)
        return att_fail(tree->context, ATT_ERR_NOT_FOUND, "%s has no split \"%s\", only \"%s\"%s%s%s", dataset->path,
                        wanted, any, near ? "; is its folder \"" : "", near ? near : "",
                        near ? "\" meant, whose name is no split's?" : "");
    int64_t count = 0;
    for (int64_t i = 0; i < tree->images.count; i++)
        count += lies_under(tree->images.files[i].inner, flat, strlen(flat));
    return att_fail(
        tree->context, ATT_ERR_NOT_FOUND,
        "%s has no split \"%s\": %s/ exists, but its images (%lld) are not in class folders; only \"%s\" has "
        "class folders; put the images into one folder for each class",
        dataset->path, wanted, flat, (long long)count, any);
}

/* Finds the folder of the split among the top-level folders. */
static att_status find_split(att_class_tree *tree, att_dataset *dataset, const char *wanted)
{
    att_splits splits = {.flat = {""}};
    const att_split *found;
    list_folders(tree, &splits);
    ATT_TRY(att_splits_choose(&splits, tree->context, dataset->path, wanted, &found));
    if (found)
        att_class_tree_set_split(tree, dataset, &splits, found, wanted);
    else if (att_splits_find(&splits, att_split_names(NULL)))
        return no_split(tree, dataset, &splits, wanted);
    return ATT_OK;
}

/* Makes paths relative to the folder of the split, and to a folder of the same name in it: "seg_train/seg_train". */
static void enter_split(att_class_tree *tree)
{
    const char *name = tree->split.name;
    const size_t length = strlen(name);
    enter(tree, name, length);
    while (tree->images.count > 0 && has_outer_folder(tree) && lies_under(tree->images.files[0].inner, name, length))
        enter(tree, name, length);
}

/* Finds the class folders. *loose: number of images outside of class folders, which are dropped. */
static att_status find_classes(att_class_tree *tree, att_dataset *dataset, const char *wanted, int64_t *loose)
{
    *loose = drop_without_folder(&tree->images);
    while (tree->images.count > 0) {
        if (!tree->split.split)
            ATT_TRY(find_split(tree, dataset, wanted));
        if (tree->split.split) {
            enter_split(tree);
            *loose += drop_without_folder(&tree->images);
            return ATT_OK;
        }
        if (!has_outer_folder(tree))
            return ATT_OK;
        enter(tree, tree->images.files[0].inner, first_part(tree->images.files[0].inner));
    }
    return ATT_OK;
}

/* --- numbering --------------------------------------------------------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
    return att_natural_compare(((const att_tree_file *)a)->inner, ((const att_tree_file *)b)->inner);
}

static void sort_list(att_tree_list *list)
{
    if (list->count > 0)
        qsort(list->files, (size_t)list->count, sizeof *list->files, compare_files);
}

/* Sorts the images. Refuses duplicate paths, which a tar archive can have. */
static att_status sort_images(att_class_tree *tree, const att_dataset *dataset)
{
    const att_tree_file *files = tree->images.files;
    sort_list(&tree->images);
    for (int64_t i = 1; i < tree->images.count; i++)
        if (strcmp(files[i].inner, files[i - 1].inner) == 0)
            return att_fail(tree->context, ATT_ERR_FORMAT, "%s: two files have the same name, \"%s\"", dataset->path,
                            files[i].path);
    return ATT_OK;
}

static int compare_names(const void *a, const void *b)
{
    return att_natural_compare(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the class of each run of consecutive files with the same class. The names are in the arena; a class with
 * several runs is listed several times. */
static att_status collect_names(const att_class_tree *tree, att_arena *arena, const char **names, int64_t *runs)
{
    *runs = 0;
    for (int64_t i = 0; i < tree->images.count; i++) {
        const att_tree_file *file = &tree->images.files[i];
        if (i > 0 && same_folder(file, file - 1))
            continue;
        size_t length = first_part(file->inner);
        char *name = att_arena_allocate(arena, length + 1);
        if (!name)
            return att_fail_memory(tree->context, length + 1, "a class name");
        memcpy(name, file->inner, length);
        names[(*runs)++] = name;
    }
    return ATT_OK;
}

static int64_t drop_repeated(const char **names, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            names[kept++] = names[i];
    return kept;
}

static att_status list_classes(att_dataset *dataset, const char *const *names, int64_t count)
{
    enum { MAX_CLASSES = 1 << 20 };
    if (count > MAX_CLASSES)
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: more than %d classes", dataset->path, MAX_CLASSES);
    return att_class_list_make(dataset->context, dataset->path, names, (int)count, &dataset->classes);
}

static att_status class_missing(const att_dataset *dataset, const char *name, const char *map)
{
    const char *near = att_class_list_nearest(&dataset->classes, name);
    return att_fail(dataset->context, ATT_ERR_MISMATCH,
                    "%s: %s \"%s\" is not in the class map %s, whose lines are whole names%s%s%s", dataset->path,
                    att_data_is_shards(dataset) ? "label" : "class folder", name, map, near ? "; did you mean \"" : "",
                    near ? near : "", near ? "\"?" : "");
}

/* Sets the label of each file. names[] holds the class of each run of files, in the files' order. */
static att_status label_files(const att_class_tree *tree, att_dataset *dataset, const char *const *names,
                              const char *map)
{
    int64_t run = -1;
    int number = -1;
    for (int64_t i = 0; i < tree->images.count; i++) {
        const att_tree_file *file = &tree->images.files[i];
        if (i == 0 || !same_folder(file, file - 1)) {
            run++;
            number = att_class_list_find(&dataset->classes, names[run]);
            if (number < 0)
                return class_missing(dataset, names[run], map);
        }
        dataset->labels[i] = number;
    }
    return ATT_OK;
}

static bool any_is_number(const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (*names[i] && names[i][strspn(names[i], "0123456789")] == '\0')
            return true;
    return false;
}

static att_status fail_unknown(const att_dataset *dataset, const att_dataset_options *options, const char *name)
{
    enum { SHOWN = 3 };
    att_context *context = dataset->context;
    att_text list = {.context = context};
    for (int i = 0; i < options->trained_count && i < SHOWN; i++)
        att_text_append(&list, "%s\"%s\"", i > 0 ? ", " : "", options->trained[i]);
    att_status status =
        list.failed ? att_fail_memory(context, list.length, "class names")
                    : att_fail(context, ATT_ERR_FORMAT,
                               "%s: %s \"%s\" is not among the class names of the training (%s%s); pass "
                               "--class-map FILE (class_map) with the names of the data, one a line, in the order of "
                               "the training's classes",
                               dataset->path, att_data_is_shards(dataset) ? "label" : "folder", name, list.data,
                               options->trained_count > SHOWN ? ", ..." : "");
    att_text_free(&list);
    return status;
}

/* Uses the class list of the training if it includes all of names[0..count-1]; otherwise leaves the data set's class
 * list empty. Where classes of the training are named by numbers, a number in the data is a name, too, and neither the
 * number of a class nor a place in the order of the folders: then all names must be those of the training. */
static att_status use_training_classes(att_dataset *dataset, const att_dataset_options *options,
                                       const char *const *names, int64_t count)
{
    ATT_TRY(list_classes(dataset, options->trained, options->trained_count));
    for (int64_t i = 0; i < count; i++)
        if (att_class_list_find(&dataset->classes, names[i]) < 0) {
            att_class_list_free(&dataset->classes);
            return any_is_number(options->trained, options->trained_count) && any_is_number(names, count)
                       ? fail_unknown(dataset, options, names[i])
                       : ATT_OK;
        }
    dataset->classes.numbering = ATT_NUMBERED_BY_TRAINING;
    return ATT_OK;
}

/* Whether the name is a number below `end`, as printed without leading zeros. */
static bool is_number_below(const char *name, int end)
{
    int64_t number;
    bool is_plain = *name && name[strspn(name, "0123456789")] == '\0' && (*name != '0' || name[1] == '\0');
    return is_plain && att_text_to_i64(name, &number) && number < end;
}

/* Numbers that do not begin at 0 can count from 0, with some left out, or from 1. */
static att_status numbers_ambiguous(const att_dataset *dataset, const char *name, int classes)
{
    const long number = strtol(name, NULL, 10);
    return att_fail(
        dataset->context, ATT_ERR_FORMAT,
        "%s: the class folders are named by numbers, but none is \"0\", so \"%ld\" can be class %ld or class "
        "%ld of the network; say which by --class-map FILE (class_map), one name a line from class 0 on, as "
        "printed by \"seq 0 %d\" or \"seq 1 %d\"",
        dataset->path, number, number - 1, number, classes - 1, classes);
}

/* If the names are numbers of a network's classes, makes the list of all these numbers; otherwise leaves the data set's
 * class list empty. */
static att_status use_numbers(att_dataset *dataset, const att_dataset_options *options, const char *const *names,
                              int64_t count, att_arena *arena)
{
    bool has_zero = false;
    for (int64_t i = 0; i < count; i++) {
        if (!is_number_below(names[i], options->classes))
            return ATT_OK;
        has_zero = has_zero || strcmp(names[i], "0") == 0;
    }
    if (!has_zero)
        return numbers_ambiguous(dataset, names[0], options->classes);
    const char **numbers = att_class_numbers(arena, options->classes);
    if (!numbers)
        return att_fail_memory(dataset->context, (size_t)options->classes * sizeof *numbers, "the numbers of classes");
    ATT_TRY(list_classes(dataset, numbers, options->classes));
    dataset->classes.numbering = ATT_NUMBERED_BY_NAMES;
    return ATT_OK;
}

/* Refuses class folders that are all named as splits, and warns of a single one. */
static att_status check_no_splits(const att_dataset *dataset)
{
    const att_class_list *classes = &dataset->classes;
    if (att_split_are_all(classes->names, classes->count))
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s: images lie in folders that are named as splits, such as \"%s\", not as classes; expected "
                        "class folders in them, or --class-map FILE (class_map) if these are the names of classes",
                        dataset->path, classes->names[0]);
    for (int c = 0; c < classes->count; c++)
        if (att_split_is_name(classes->names[c]))
            att_log(dataset->context, ATT_LOG_WARNING,
                    "%s: the folder \"%s\" is read as a class, because its images lie in no class folders",
                    dataset->path, classes->names[c]);
    return ATT_OK;
}

static att_status number_classes(const att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options,
                                 att_arena *arena)
{
    size_t bytes = (size_t)tree->images.count * sizeof(char *);
    const char **names = att_arena_allocate(arena, bytes), **sorted = att_arena_allocate(arena, bytes);
    dataset->labels = att_allocate_array(dataset->context, (size_t)tree->images.count, sizeof *dataset->labels);
    if (!names || !sorted || !dataset->labels)
        return att_fail_memory(tree->context, 3 * bytes, "the list of images");
    int64_t runs;
    ATT_TRY(collect_names(tree, arena, names, &runs));
    if (options->class_map)
        ATT_TRY(att_class_list_read(dataset->context, options->class_map, &dataset->classes));
    else if (options->trained_count > 0)
        ATT_TRY(use_training_classes(dataset, options, names, runs));
    if (dataset->classes.count == 0 && options->classes > 0)
        ATT_TRY(use_numbers(dataset, options, names, runs, arena));
    if (dataset->classes.count == 0) {
        memcpy(sorted, names, (size_t)runs * sizeof *sorted);
        qsort(sorted, (size_t)runs, sizeof *sorted, compare_names);
        ATT_TRY(list_classes(dataset, sorted, drop_repeated(sorted, runs)));
        if (!att_data_is_shards(dataset))
            ATT_TRY(check_no_splits(dataset));
    }
    return label_files(tree, dataset, names, options->class_map);
}

/* --- warnings about skipped files -------------------------------------------------------------------------------- */

enum { MAX_KINDS = 12, MAX_EXTENSION = 8 };

/* Number of files by file name extension. */
typedef struct extension_counts {
    char extension[MAX_KINDS][MAX_EXTENSION + 2]; /* with the dot, in lower case */
    int64_t files[MAX_KINDS], more;               /* more: files with other extensions, or without one */
    int count;
} extension_counts;

/* Returns false if the name has no extension of 1 to MAX_EXTENSION letters and digits. */
static bool find_extension(const char *path, char extension[MAX_EXTENSION + 2])
{
    const char *dot = strrchr(att_path_last(path), '.');
    size_t length = dot ? strlen(dot + 1) : 0;
    if (length < 1 || length > MAX_EXTENSION)
        return false;
    for (size_t i = 0; i <= length; i++)
        extension[i] = (char)tolower((unsigned char)dot[i]);
    extension[length + 1] = '\0';
    return strspn(extension + 1, "abcdefghijklmnopqrstuvwxyz0123456789") == length;
}

static void count_extension(extension_counts *kinds, const char *path)
{
    char extension[MAX_EXTENSION + 2];
    int kind = 0;
    bool has_ending = find_extension(path, extension);
    while (has_ending && kind < kinds->count && strcmp(kinds->extension[kind], extension) != 0)
        kind++;
    if (!has_ending || kind == MAX_KINDS) {
        kinds->more++;
        return;
    }
    if (kind == kinds->count)
        memcpy(kinds->extension[kinds->count++], extension, sizeof extension);
    kinds->files[kind]++;
}

/* Warns about the files in `others`, counted by extension: ".gif 12, .txt 1, others 3". Folders are not counted. */
static void warn_skipped_files(const att_class_tree *tree, const char *where)
{
    const att_tree_list *others = &tree->others;
    extension_counts kinds = {.count = 0};
    char text[512] = "";
    size_t length = 0;
    for (int64_t i = 0; i < others->count; i++)
        if (others->files[i].path[strlen(others->files[i].path) - 1] != '/' &&
            !att_annotations_boxes(others->files[i].path))
            count_extension(&kinds, others->files[i].path);
    for (int i = 0; i < kinds.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %lld", i > 0 ? ", " : "",
                                   kinds.extension[i], (long long)kinds.files[i]);
    if (kinds.more > 0)
        snprintf(text + length, sizeof text - length, "%sothers %lld", length > 0 ? ", " : "", (long long)kinds.more);
    if (*text)
        att_log(tree->context, ATT_LOG_WARNING, "%s: skipped files that are not " EXTENSIONS ": %s", where, text);
}

/* Takes all images in sorted order, without classes. */
static att_status resolve_unlabelled(att_class_tree *tree, att_dataset *dataset)
{
    sort_list(&tree->others);
    warn_skipped_files(tree, dataset->path);
    if (tree->images.count == 0)
        return att_fail(tree->context, ATT_ERR_FORMAT, "%s: it contains no " EXTENSIONS " file; " HIDDEN,
                        dataset->path);
    ATT_TRY(att_new(dataset->context, &dataset->labels, (size_t)tree->images.count, "the list of images"));
    ATT_TRY(sort_images(tree, dataset));
    for (int64_t i = 0; i < tree->images.count; i++)
        dataset->labels[i] = -1;
    dataset->count = tree->images.count;
    return ATT_OK;
}

/* Warns about folders without an image that lie beside the class folders. Names the first of these folders. */
static void warn_empty_folders(const att_class_tree *tree, const att_dataset *dataset, const char *where)
{
    const att_tree_list *others = &tree->others;
    char first[ATT_DATA_MAX_NAME] = "", more[64] = "";
    int64_t count = 0;
    for (int64_t i = 0; i < others->count; i++) {
        const att_tree_file *file = &others->files[i];
        char name[ATT_DATA_MAX_NAME];
        snprintf(name, sizeof name, "%.*s", (int)first_part(file->inner), file->inner);
        bool again = i > 0 && same_folder(file, file - 1);
        if (!again && att_class_list_find(&dataset->classes, name) < 0 && count++ == 0)
            memcpy(first, name, strlen(name) + 1);
    }
    if (count > 1)
        snprintf(more, sizeof more, " and %lld more", (long long)count - 1);
    if (count > 0)
        att_log(tree->context, ATT_LOG_WARNING, "%s: skipped folders without a " EXTENSIONS " file: \"%s\"%s", where,
                first, more);
}

/* Warns about files in class folders that are not images. */
static void warn_skipped(att_class_tree *tree, const att_dataset *dataset)
{
    drop_without_folder(&tree->others);
    char where[ATT_DATA_MAX_NAME];
    snprintf(where, sizeof where, "%s%s%s", dataset->path, tree->split.split ? "/" : "", tree->split.name);
    sort_list(&tree->others);
    warn_empty_folders(tree, dataset, where);
    warn_skipped_files(tree, where);
}

/* The part of a path between its class folder and the file's name: "a/b" of "cat/a/b/1.png"; "" if there is none. */
static size_t inner_folders(const char *inner, const char **begin)
{
    const char *last = strrchr(inner, '/');
    *begin = inner + first_part(inner) + 1;
    return *begin < last ? (size_t)(last - *begin) : 0;
}

/* Says that the folders in class folders, if their names differ, are no classes, because timm takes the innermost
 * folder's name. Folders that all have one name, as "images" in Tiny-ImageNet, cannot be meant as classes. */
static void tell_inner_folders(const att_class_tree *tree, const att_dataset *dataset)
{
    const char *first = NULL, *part;
    size_t length = 0;
    for (int64_t i = 0; i < tree->images.count; i++) {
        const char *inner = tree->images.files[i].inner;
        const size_t found = inner_folders(inner, &part);
        if (found > 0 && first && (found != length || memcmp(part, first, length) != 0)) {
            att_log(tree->context, ATT_LOG_INFO,
                    "%s: images in folders of a class folder belong to that class: %.*s/%.*s to \"%.*s\"; timm takes "
                    "the innermost folder's name as the class",
                    dataset->path, (int)first_part(inner), inner, (int)found, part, (int)first_part(inner), inner);
            return;
        }
        if (found > 0 && !first)
            first = part, length = found;
    }
}

static void warn_loose_images(const att_dataset *dataset, int64_t loose)
{
    if (loose == 0)
        return;
    att_log(dataset->context, ATT_LOG_WARNING,
            "%s: skipped %lld image%s outside of the class folders, which %s no class", dataset->path, (long long)loose,
            loose == 1 ? "" : "s", loose == 1 ? "has" : "have");
}

att_status att_class_tree_number(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options)
{
    ATT_TRY(sort_images(tree, dataset));
    att_arena arena = {.context = tree->context};
    att_status status = number_classes(tree, dataset, options, &arena);
    att_arena_free(&arena);
    dataset->count = tree->images.count;
    return status;
}

/* Returns the first compressed tar among the other files; NULL if there is none. */
static const char *compressed_tar(const att_class_tree *tree)
{
    for (int64_t i = 0; i < tree->others.count; i++)
        if (att_text_matches_any("*.tar.gz,*.tgz,*.tar.zst,*.tar.xz,*.tar.bz2", tree->others.files[i].path))
            return tree->others.files[i].path;
    return NULL;
}

/* loose: number of images outside of class folders. */
static att_status fail_empty(att_class_tree *tree, const att_dataset *dataset, int64_t loose)
{
    const char *tar = loose == 0 ? compressed_tar(tree) : NULL;
    if (tar)
        return att_fail(tree->context, ATT_ERR_UNSUPPORTED,
                        "%s holds no images, but %s: tars in a folder are read in place, which a compressed tar does "
                        "not allow; decompress them (to .tar), or unpack them",
                        dataset->path, tar);
    warn_skipped(tree, dataset);
    return att_fail(tree->context, ATT_ERR_FORMAT,
                    "%s has no class folders: it contains no " EXTENSIONS
                    " file in a folder named after a class; " HIDDEN,
                    dataset->path);
}

att_status att_class_tree_resolve(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options)
{
    if (options->unlabelled)
        return resolve_unlabelled(tree, dataset);
    ATT_TRY(att_annotations_apply(tree, dataset));
    ATT_TRY(att_devkit_apply(tree, dataset));
    int64_t loose;
    ATT_TRY(find_classes(tree, dataset, options->split, &loose));
    if (tree->images.count == 0)
        return fail_empty(tree, dataset, loose);
    ATT_TRY(att_class_tree_number(tree, dataset, options));
    tell_inner_folders(tree, dataset);
    warn_loose_images(dataset, loose);
    warn_skipped(tree, dataset);
    return ATT_OK;
}
