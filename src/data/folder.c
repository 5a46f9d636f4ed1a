/* A folder of class folders, or of split folders that contain class folders. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/annotations.h"

/* Bounds the recursion. */
enum { MAX_DEPTH = 32 };

typedef struct folder_source {
    att_class_tree tree;
    att_arena names;
} folder_source;

typedef struct folder_walk {
    const char *root;
    att_class_tree *tree;
    att_arena *names;
    const char *only;    /* the only top-level folder to enter: the folder of the split; NULL: enter all folders */
    int64_t loops, deep; /* skipped folders: links to a parent folder; nested deeper than MAX_DEPTH */
} folder_walk;

/* A folder that is being visited, with its parent. */
typedef struct walked_folder {
    const struct walked_folder *parent; /* NULL at the top level */
    dev_t device;
    ino_t inode;
    int depth;
} walked_folder;

bool att_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool accepts(const att_dataset *dataset)
{
    return att_is_folder(dataset->path);
}

/* A dangling link counts as a file: reading it gives an error. A pipe does not count, because reading would block. */
static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/* Writes "a/b", or "b" if `a` is empty. Returns false if the result does not fit. */
static bool join(char *text, size_t size, const char *a, const char *b)
{
    int length = snprintf(text, size, "%s%s%s", a, *a ? "/" : "", b);
    return length >= 0 && (size_t)length < size;
}

bool att_holds_folder(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        char inside[ATT_DATA_MAX_NAME];
        found = entry->d_name[0] != '.' && join(inside, sizeof inside, path, entry->d_name) && att_is_folder(inside);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Whether the folder of a split holds folders of classes. Tiny-ImageNet's test split holds a folder, but it has no
 * labels. */
static bool holds_classes(const char *path)
{
    char list[ATT_DATA_MAX_NAME];
    const char *last = att_path_last(path);
    bool is_test = strcmp(last, "test") == 0 &&
                   snprintf(list, sizeof list, "%.*s" ATT_ANNOTATIONS_PATH, (int)(last - path), path) > 0;
    return att_holds_folder(path) && !(is_test && att_file_exists(list));
}

/* Finds the folder of the split, so that the others need not be read. */
static att_status find_split(att_dataset *dataset, att_class_tree *tree, const char *wanted)
{
    att_splits splits = {.flat = {""}};
    const att_split *found;
    att_splits_scan(&splits, dataset->path, holds_classes);
    ATT_TRY(att_splits_choose(&splits, dataset->context, dataset->path, wanted, &found));
    if (found)
        att_class_tree_set_split(tree, dataset, &splits, found, wanted);
    return ATT_OK;
}

static att_status add(const folder_walk *walk, const char *path)
{
    const char *kept = att_arena_string(walk->names, path);
    return kept ? att_class_tree_add(walk->tree, kept, 0) : att_fail_memory(walk->tree->context, strlen(path), path);
}

static att_status walk_folder(folder_walk *walk, const char *inner, const walked_folder *parent);

static att_status visit(folder_walk *walk, const char *inner, const struct dirent *entry, const walked_folder *folder)
{
    att_context *context = walk->tree->context;
    char path[ATT_DATA_MAX_NAME], full[ATT_DATA_MAX_NAME];
    ATT_TRY(att_check_stop(context, walk->root));
    if (!join(path, sizeof path, inner, entry->d_name) || !join(full, sizeof full, walk->root, path))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s/%s: paths in it are too long", walk->root, inner);
    if (entry->d_type == DT_REG || (entry->d_type != DT_DIR && is_file(full)))
        return add(walk, path);
    if (att_annotations_named(path))
        att_log(context, ATT_LOG_WARNING, "%s: not a regular file, so no class is read from it", full);
    if (entry->d_type != DT_DIR && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return ATT_OK;
    if (folder->depth == 0 && walk->only && strcmp(walk->only, entry->d_name) != 0)
        return ATT_OK;
    return att_is_folder(full) ? walk_folder(walk, path, folder) : ATT_OK;
}

static bool is_loop(const walked_folder *folder)
{
    for (const walked_folder *it = folder->parent; it; it = it->parent)
        if (it->device == folder->device && it->inode == folder->inode)
            return true;
    return false;
}

/* Whether to skip the folder. */
static bool skips(folder_walk *walk, const walked_folder *folder)
{
    bool loop = is_loop(folder), deep = folder->depth > MAX_DEPTH;
    walk->loops += loop;
    walk->deep += !loop && deep;
    return loop || deep;
}

static att_status walk_entries(folder_walk *walk, DIR *entries, const char *inner, const walked_folder *folder)
{
    char path[ATT_DATA_MAX_NAME];
    att_status status = folder->depth > 0 && join(path, sizeof path, inner, "") ? add(walk, path) : ATT_OK;
    for (struct dirent *entry; status == ATT_OK && (entry = readdir(entries));)
        if (entry->d_name[0] != '.')
            status = visit(walk, inner, entry, folder);
    return status;
}

/* parent: NULL at the top level. */
static att_status walk_folder(folder_walk *walk, const char *inner, const walked_folder *parent)
{
    att_context *context = walk->tree->context;
    char path[ATT_DATA_MAX_NAME];
    struct stat info;
    if (!join(path, sizeof path, walk->root, inner))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", walk->root);
    DIR *entries = opendir(path);
    if (!entries || fstat(dirfd(entries), &info) != 0) {
        att_status status = errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO;
        if (entries)
            closedir(entries);
        return att_fail(context, status, "folder %s could not be read", path);
    }
    walked_folder folder = {parent, info.st_dev, info.st_ino, parent ? parent->depth + 1 : 0};
    att_status status = skips(walk, &folder) ? ATT_OK : walk_entries(walk, entries, inner, &folder);
    closedir(entries);
    return status;
}

static void warn_skipped(const folder_walk *walk)
{
    att_context *context = walk->tree->context;
    if (walk->loops > 0)
        att_log(context, ATT_LOG_WARNING, "%s: skipped %lld link%s to a parent folder", walk->root,
                (long long)walk->loops, walk->loops == 1 ? "" : "s");
    if (walk->deep > 0)
        att_log(context, ATT_LOG_WARNING, "%s: skipped folders that are nested more than %d deep: %lld", walk->root,
                MAX_DEPTH, (long long)walk->deep);
}

att_status att_folder_walk(const char *root, att_class_tree *tree, att_arena *names)
{
    folder_walk walk = {root, tree, names, NULL, 0, 0};
    ATT_TRY(walk_folder(&walk, "", NULL));
    warn_skipped(&walk);
    return ATT_OK;
}

static att_status read_text(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text,
                            size_t *size)
{
    char path[ATT_DATA_MAX_NAME];
    if (!join(path, sizeof path, dataset->path, file->path))
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", dataset->path);
    return att_file_read(dataset->context, path, most, text, size);
}

static att_status open_folder(att_dataset *dataset, const att_dataset_options *options)
{
    att_context *context = dataset->context;
    folder_source *source;
    ATT_TRY(att_new(context, &source, 1, dataset->path));
    dataset->source = source;
    dataset->kind = "folder";
    source->tree.context = source->names.context = context;
    source->tree.read = read_text;
    if (!options->unlabelled)
        ATT_TRY(find_split(dataset, &source->tree, options->split));
    const att_split *split = &source->tree.split;
    folder_walk walk = {dataset->path, &source->tree, &source->names, split->split ? split->name : NULL, 0, 0};
    ATT_TRY(walk_folder(&walk, "", NULL));
    ATT_TRY(att_class_tree_resolve(&source->tree, dataset, options));
    warn_skipped(&walk);
    return ATT_OK;
}

static void close_folder(att_dataset *dataset)
{
    folder_source *source = dataset->source;
    att_class_tree_free(&source->tree);
    att_arena_free(&source->names);
    att_free(dataset->context, source);
}

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const folder_source *source = dataset->source;
    snprintf(text, size, "%s/%s", dataset->path, source->tree.images.files[index].path);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    char path[ATT_DATA_MAX_NAME];
    name(dataset, index, path, sizeof path);
    return att_image_read_needed(context, path, channels, &dataset->limits, need, image);
}

const att_data_format att_data_folder = {.accepts = accepts,
                                         .open = open_folder,
                                         .close = close_folder,
                                         .name = name,
                                         .read = read_image,
                                         .single_files = true};
