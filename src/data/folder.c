/* A folder of class folders, or of split folders of such. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/annotations.h"
#include "io/file.h"

/* Links are followed, so that a loop of them must end somewhere. */
enum { MAX_DEPTH = 8 };

typedef struct folder_source {
    att_class_tree tree;
    att_arena names;
} folder_source;

typedef struct folder_walk {
    att_dataset *dataset;
    folder_source *source;
    const char *only; /* at the top, the one split folder to go into; NULL: all folders */
} folder_walk;

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool accepts(const att_dataset *dataset)
{
    return is_folder(dataset->path);
}

/* A link that leads nowhere counts: reading says so. A pipe does not: reading would wait. */
static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/* "a/b", or "b" where a is empty; false where it does not fit. */
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
        found = entry->d_name[0] != '.' && join(inside, sizeof inside, path, entry->d_name) && is_folder(inside);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Tiny-ImageNet's test has no labels, so that its val stands in. */
static bool has_labels(const char *root, const char *split)
{
    char path[ATT_DATA_MAX_NAME];
    return strcmp(split, "test") != 0 || !join(path, sizeof path, root, ATT_ANNOTATIONS_PATH) || !att_file_exists(path);
}

/* The first of the names, which end in NULL, that is a folder of folders under `root`. */
static const char *find_split(const char *root, const char *const *names)
{
    char path[ATT_DATA_MAX_NAME];
    for (; *names; names++)
        if (has_labels(root, *names) && join(path, sizeof path, root, *names) && att_holds_folder(path))
            return *names;
    return NULL;
}

static att_status add(const folder_walk *walk, const char *path)
{
    const char *kept = att_arena_string(&walk->source->names, path);
    return kept ? att_class_tree_add(&walk->source->tree, kept, 0)
                : att_fail_memory(walk->dataset->context, strlen(path), path);
}

static att_status walk_folder(const folder_walk *walk, const char *inner, int depth);

static att_status visit(const folder_walk *walk, const char *inner, const struct dirent *entry, int depth)
{
    att_context *context = walk->dataset->context;
    char path[ATT_DATA_MAX_NAME], full[ATT_DATA_MAX_NAME];
    ATT_TRY(att_check_stop(context, walk->dataset->path));
    if (!join(path, sizeof path, inner, entry->d_name) || !join(full, sizeof full, walk->dataset->path, path))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s/%s: paths in it are too long", walk->dataset->path, inner);
    if (entry->d_type == DT_REG || (entry->d_type != DT_DIR && is_file(full)))
        return add(walk, path);
    if (entry->d_type != DT_DIR && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return ATT_OK;
    return is_folder(full) ? walk_folder(walk, path, depth + 1) : ATT_OK;
}

static att_status walk_folder(const folder_walk *walk, const char *inner, int depth)
{
    att_context *context = walk->dataset->context;
    char path[ATT_DATA_MAX_NAME];
    if (depth > MAX_DEPTH)
        return ATT_OK;
    if (!join(path, sizeof path, walk->dataset->path, inner))
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", walk->dataset->path);
    DIR *folder = opendir(path);
    if (!folder)
        return att_fail(context, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "folder %s could not be read", path);
    att_status status = depth > 0 && join(path, sizeof path, inner, "") ? add(walk, path) : ATT_OK;
    for (struct dirent *entry; status == ATT_OK && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && (depth > 0 || !walk->only || strcmp(walk->only, entry->d_name) == 0))
            status = visit(walk, inner, entry, depth);
    closedir(folder);
    return status;
}

static att_status read_text(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text)
{
    char path[ATT_DATA_MAX_NAME];
    size_t size;
    if (!join(path, sizeof path, dataset->path, file->path))
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", dataset->path);
    return att_file_read(dataset->context, path, most, text, &size);
}

static att_status open_folder(att_dataset *dataset, const att_dataset_options *options)
{
    att_context *context = dataset->context;
    folder_source *source = att_allocate(context, sizeof *source);
    if (!source)
        return att_fail_memory(context, sizeof *source, dataset->path);
    dataset->source = source;
    dataset->kind = "folder";
    source->tree.context = source->names.context = context;
    source->tree.read = read_text;
    folder_walk walk = {dataset, source,
                        options->unlabelled ? NULL : find_split(dataset->path, att_split_names(options->split))};
    ATT_TRY(walk_folder(&walk, "", 0));
    return att_class_tree_settle(&source->tree, dataset, options);
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

const att_data_format att_data_folder = {
    .accepts = accepts, .open = open_folder, .close = close_folder, .name = name, .read = read_image};
