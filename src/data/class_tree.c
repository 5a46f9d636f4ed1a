#include "data/class_tree.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"

static const int64_t max_files = (int64_t)1 << 26;

bool att_tree_is_image(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    const char *ending = strrchr(last, '.');
    if (!ending || *last == '.')
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(ending, endings[i]) == 0)
            return true;
    return false;
}

att_status att_class_tree_add(att_class_tree *tree, const char *path, int64_t member)
{
    if (tree->count == tree->capacity) {
        if (tree->count >= max_files)
            return att_fail(tree->context, ATT_ERR_UNSUPPORTED, "more than %lld images", (long long)max_files);
        int64_t capacity = tree->capacity ? 2 * tree->capacity : 256;
        size_t bytes = (size_t)capacity * sizeof *tree->files;
        att_tree_file *files = att_reallocate(tree->context, tree->files, bytes);
        if (!files)
            return att_fail_memory(tree->context, bytes, "the list of images");
        tree->files = files;
        tree->capacity = capacity;
    }
    tree->files[tree->count++] = (att_tree_file){path, path, member};
    return ATT_OK;
}

void att_class_tree_free(att_class_tree *tree)
{
    att_free(tree->context, tree->files);
    *tree = (att_class_tree){.context = tree->context};
}

/* --- which folder is a class ------------------------------------------------------------------------------------- */

static size_t first_part(const char *path)
{
    const char *slash = strchr(path, '/');
    return slash ? (size_t)(slash - path) : strlen(path);
}

/* Folders a path goes through. */
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

static bool has_split(const att_class_tree *tree, const char *name)
{
    size_t length = strlen(name);
    for (int64_t i = 0; i < tree->count; i++)
        if (lies_under(tree->files[i].inner, name, length) && depth(tree->files[i].inner) >= 2)
            return true;
    return false;
}

/* The first of the names, which end in NULL, that is a split folder here; NULL where none is. */
static const char *find_split(const att_class_tree *tree, const char *const *names)
{
    for (; *names; names++)
        if (has_split(tree, *names))
            return *names;
    return NULL;
}

/* Whether every file lies in one folder, and in a folder inside that. */
static bool has_outer_folder(const att_class_tree *tree)
{
    const char *first = tree->files[0].inner;
    size_t length = first_part(first);
    for (int64_t i = 0; i < tree->count; i++)
        if (depth(tree->files[i].inner) < 2 || !lies_under(tree->files[i].inner, first, length))
            return false;
    return true;
}

/* Goes into a folder: files elsewhere are dropped. `folder` may point into a path of the tree. */
static void enter(att_class_tree *tree, const char *folder, size_t length)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->count; i++) {
        att_tree_file file = tree->files[i];
        if (!lies_under(file.inner, folder, length))
            continue;
        file.inner += length + 1;
        tree->files[kept++] = file;
    }
    tree->count = kept;
}

static void drop_classless(att_class_tree *tree)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->count; i++)
        if (depth(tree->files[i].inner) >= 1)
            tree->files[kept++] = tree->files[i];
    tree->count = kept;
}

static att_status find_classes(att_class_tree *tree, att_dataset *dataset, const char *wanted)
{
    drop_classless(tree);
    while (tree->count > 0) {
        const char *any = find_split(tree, att_split_names(NULL));
        if (any) {
            const char *split = find_split(tree, att_split_names(wanted));
            if (!split)
                return att_fail(tree->context, ATT_ERR_NOT_FOUND, "%s has no split \"%s\", but \"%s\"", dataset->path,
                                wanted, any);
            dataset->split = split;
            enter(tree, split, strlen(split));
            drop_classless(tree);
            return ATT_OK;
        }
        if (!has_outer_folder(tree))
            return ATT_OK;
        enter(tree, tree->files[0].inner, first_part(tree->files[0].inner));
    }
    return ATT_OK;
}

/* --- numbering --------------------------------------------------------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
    return att_natural_compare(((const att_tree_file *)a)->inner, ((const att_tree_file *)b)->inner);
}

static int compare_names(const void *a, const void *b)
{
    return att_natural_compare(*(const char *const *)a, *(const char *const *)b);
}

static bool same_class(const att_tree_file *a, const att_tree_file *b)
{
    return lies_under(a->inner, b->inner, first_part(b->inner));
}

/* One name for each run of files of a class, so each at least once, in the arena. */
static att_status collect_names(const att_class_tree *tree, att_arena *arena, const char **names, int64_t *runs)
{
    *runs = 0;
    for (int64_t i = 0; i < tree->count; i++) {
        const att_tree_file *file = &tree->files[i];
        if (i > 0 && same_class(file, file - 1))
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
    return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s: class folder \"%s\" is not in the class map %s%s%s%s",
                    dataset->path, name, map, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Labels of the files; names[] holds the class of each run of files, in their order. */
static att_status label_files(const att_class_tree *tree, att_dataset *dataset, const char *const *names,
                              const char *map)
{
    int64_t run = -1;
    int number = -1;
    for (int64_t i = 0; i < tree->count; i++) {
        const att_tree_file *file = &tree->files[i];
        if (i == 0 || !same_class(file, file - 1)) {
            run++;
            number = att_class_list_find(&dataset->classes, names[run]);
            if (number < 0)
                return class_missing(dataset, names[run], map);
        }
        dataset->labels[i] = number;
    }
    return ATT_OK;
}

/* Takes the training's classes where all these names are among them; else there are none after it. */
static att_status list_trained(att_dataset *dataset, const att_dataset_options *options, const char *const *names,
                               int64_t count)
{
    ATT_TRY(list_classes(dataset, options->trained, options->trained_count));
    for (int64_t i = 0; i < count; i++)
        if (att_class_list_find(&dataset->classes, names[i]) < 0) {
            att_class_list_free(&dataset->classes);
            return ATT_OK;
        }
    return ATT_OK;
}

static att_status number_classes(const att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options,
                                 att_arena *arena)
{
    size_t bytes = (size_t)tree->count * sizeof(char *);
    const char **names = att_arena_allocate(arena, bytes), **sorted = att_arena_allocate(arena, bytes);
    dataset->labels = att_allocate_array(dataset->context, (size_t)tree->count, sizeof *dataset->labels);
    if (!names || !sorted || !dataset->labels)
        return att_fail_memory(tree->context, 3 * bytes, "the list of images");
    int64_t runs;
    ATT_TRY(collect_names(tree, arena, names, &runs));
    if (options->class_map)
        ATT_TRY(att_class_list_read(dataset->context, options->class_map, &dataset->classes));
    else if (options->trained)
        ATT_TRY(list_trained(dataset, options, names, runs));
    if (dataset->classes.count == 0) {
        memcpy(sorted, names, (size_t)runs * sizeof *sorted);
        qsort(sorted, (size_t)runs, sizeof *sorted, compare_names);
        ATT_TRY(list_classes(dataset, sorted, drop_repeated(sorted, runs)));
    }
    return label_files(tree, dataset, names, options->class_map);
}

/* All files, in order. */
static att_status settle_unlabelled(att_class_tree *tree, att_dataset *dataset)
{
    if (tree->count == 0)
        return att_fail(tree->context, ATT_ERR_FORMAT, "%s: no .jpg, .jpeg or .png lies in it", dataset->path);
    dataset->labels = att_allocate_array(dataset->context, (size_t)tree->count, sizeof *dataset->labels);
    if (!dataset->labels)
        return att_fail_memory(dataset->context, (size_t)tree->count * sizeof *dataset->labels, "the list of images");
    qsort(tree->files, (size_t)tree->count, sizeof *tree->files, compare_files);
    for (int64_t i = 0; i < tree->count; i++)
        dataset->labels[i] = -1;
    dataset->count = tree->count;
    return ATT_OK;
}

att_status att_class_tree_settle(att_class_tree *tree, att_dataset *dataset, const att_dataset_options *options)
{
    if (options->unlabelled)
        return settle_unlabelled(tree, dataset);
    ATT_TRY(find_classes(tree, dataset, options->split));
    if (tree->count == 0)
        return att_fail(tree->context, ATT_ERR_FORMAT,
                        "%s: no .jpg, .jpeg or .png lies in a folder named after its class", dataset->path);
    qsort(tree->files, (size_t)tree->count, sizeof *tree->files, compare_files);
    att_arena arena = {.context = tree->context};
    att_status status = number_classes(tree, dataset, options, &arena);
    att_arena_free(&arena);
    dataset->count = tree->count;
    return status;
}
