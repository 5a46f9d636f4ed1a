#include "data/annotations.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"

static const char list_name[] = "val_annotations.txt", images_name[] = "images/", test_images[] = "test/images/";

/* One line: an image's file name and its class. */
typedef struct annotation {
    const char *name, *class;
} annotation;

typedef struct annotations {
    att_arena arena; /* owns `lines` */
    char *text;
    size_t size; /* of the text */
    annotation *lines;
    int64_t count;
} annotations;

bool att_annotations_named(const char *path)
{
    return strcmp(att_path_last(path), list_name) == 0;
}

bool att_annotations_boxes(const char *path)
{
    static const char ending[] = "_boxes.txt";
    const char *last = att_path_last(path);
    size_t size = strlen(last), above = (size_t)(last - path);
    size_t length = size > strlen(ending) ? size - strlen(ending) : 0;
    if (length == 0 || strcmp(last + length, ending) != 0 || above < length + 1)
        return false;
    const char *folder = last - length - 1;
    return strncmp(folder, last, length) == 0 && (folder == path || folder[-1] == '/');
}

/* --- the text ---------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const annotation *)a)->name, ((const annotation *)b)->name);
}

/* Returns the first word of *line, terminated by NUL, and moves *line past the word. NULL if there is no word. */
static char *take_word(char **line)
{
    char *word = *line + strspn(*line, " \t\r"), *end = word + strcspn(word, " \t\r");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return *word ? word : NULL;
}

static bool is_valid_class(const char *class)
{
    return !strchr(class, '/') && *class != '.';
}

static att_status parse_line(const att_dataset *dataset, char *line, int number, annotations *parsed)
{
    annotation entry = {.name = take_word(&line)};
    entry.class = take_word(&line);
    if (!entry.name)
        return ATT_OK;
    if (!entry.class)
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s: line %d of %s names no class; expected an image's name and its class", dataset->path,
                        number, list_name);
    if (!is_valid_class(entry.class))
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s: line %d of %s: \"%s\" is not a valid class; expected a name without a slash "
                        "that does not begin with a dot",
                        dataset->path, number, list_name, entry.class);
    parsed->lines[parsed->count++] = entry;
    return ATT_OK;
}

static att_status parse_lines(const att_dataset *dataset, annotations *parsed)
{
    const char **lines;
    int count;
    ATT_TRY(att_text_lines(&parsed->arena, list_name, parsed->text, parsed->size, &lines, &count));
    const size_t bytes = ((size_t)count + 1) * sizeof *parsed->lines;
    parsed->lines = att_arena_allocate(&parsed->arena, bytes);
    if (!parsed->lines)
        return att_fail_memory(dataset->context, bytes, list_name);
    for (int i = 0; i < count; i++)
        ATT_TRY(parse_line(dataset, parsed->text + (lines[i] - parsed->text), i + 1, parsed));
    return ATT_OK;
}

static att_status parse(const att_dataset *dataset, annotations *parsed)
{
    ATT_TRY(parse_lines(dataset, parsed));
    qsort(parsed->lines, (size_t)parsed->count, sizeof *parsed->lines, compare);
    for (int64_t i = 1; i < parsed->count; i++)
        if (compare(&parsed->lines[i], &parsed->lines[i - 1]) == 0 &&
            strcmp(parsed->lines[i].class, parsed->lines[i - 1].class) != 0)
            return att_fail(dataset->context, ATT_ERR_FORMAT, "%s: %s gives %s two classes, %s and %s", dataset->path,
                            list_name, parsed->lines[i].name, parsed->lines[i - 1].class, parsed->lines[i].class);
    return ATT_OK;
}

/* --- the tree ---------------------------------------------------------------------------------------------------- */

/* Returns the rest of `path` after the prefix "<folder><inside>"; NULL if `path` does not begin with this prefix.
 * `length`: length of `folder`. */
static const char *path_after(const char *path, const char *folder, size_t length, const char *inside)
{
    if (strncmp(path, folder, length) != 0 || strncmp(path + length, inside, strlen(inside)) != 0)
        return NULL;
    return path + length + strlen(inside);
}

/* Returns the annotation list that has images in the folder "images" next to it; NULL if there is none. */
static const att_tree_file *find_list(const att_class_tree *tree)
{
    for (int64_t i = 0; i < tree->others.count; i++) {
        const att_tree_file *list = &tree->others.files[i];
        size_t folder = strlen(list->inner) - strlen(att_path_last(list->inner));
        for (int64_t k = 0; att_annotations_named(list->inner) && k < tree->images.count; k++)
            if (path_after(tree->images.files[k].inner, list->inner, folder, images_name))
                return list;
    }
    return NULL;
}

/* Returns the line for the image `name`; NULL if there is none. */
static const annotation *find_line(const annotations *parsed, const char *name)
{
    const annotation key = {.name = name};
    return parsed->count > 0 ? bsearch(&key, parsed->lines, (size_t)parsed->count, sizeof *parsed->lines, compare)
                             : NULL;
}

/* Changes the file's inner path from "<folder>images/<name>" to "<folder><class>/<name>". */
static att_status move_file(att_class_tree *tree, const annotation *line, size_t folder, const char *name,
                            att_tree_file *file)
{
    size_t class = strlen(line->class), size = folder + class + 1 + strlen(name) + 1;
    char *moved = att_arena_allocate(&tree->moved, size);
    if (!moved)
        return att_fail_memory(tree->context, size, "the list of images");
    memcpy(moved, file->inner, folder);
    memcpy(moved + folder, line->class, class);
    moved[folder + class] = '/';
    memcpy(moved + folder + class + 1, name, strlen(name));
    file->inner = moved;
    return ATT_OK;
}

/* Moves each image to the folder of its class. Sets *any_line to the line of one of these images. */
static att_status move_images(att_class_tree *tree, const att_dataset *dataset, const annotations *parsed,
                              const char *list, const annotation **any_line)
{
    static const char val[] = "val/";
    size_t folder = strlen(list) - strlen(att_path_last(list)), val_size = strlen(val);
    bool in_val = folder >= val_size && memcmp(list + folder - val_size, val, val_size) == 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->images.count; i++) {
        att_tree_file image = tree->images.files[i];
        const char *name = path_after(image.inner, list, folder, images_name);
        const annotation *line = name ? find_line(parsed, name) : NULL;
        if (name && !line)
            return att_fail(tree->context, ATT_ERR_MISMATCH, "%s: %s has no line for the image %s", dataset->path,
                            list_name, image.path);
        if (line) {
            *any_line = line;
            ATT_TRY(move_file(tree, line, folder, name, &image));
        }
        if (!in_val || !path_after(image.inner, list, folder - val_size, test_images))
            tree->images.files[kept++] = image;
    }
    tree->images.count = kept;
    return ATT_OK;
}

static bool is_folder(const char *path)
{
    return *path && path[strlen(path) - 1] == '/';
}

/* Drops the folder "images", because it is not a class. Each file in "images" that is not an image moves to the folder
 * of its class, so that the warning about skipped files in class folders counts it. If no line names the file, the
 * class in `any_line` is used. */
static att_status move_others(att_class_tree *tree, const annotations *parsed, const char *list,
                              const annotation *any_line)
{
    size_t folder = strlen(list) - strlen(att_path_last(list));
    int64_t kept = 0;
    for (int64_t i = 0; i < tree->others.count; i++) {
        att_tree_file file = tree->others.files[i];
        const char *name = path_after(file.inner, list, folder, images_name);
        const annotation *line = name ? find_line(parsed, name) : NULL;
        if (name && !line && !is_folder(file.inner))
            line = any_line;
        if (line)
            ATT_TRY(move_file(tree, line, folder, name, &file));
        if (!name || line)
            tree->others.files[kept++] = file;
    }
    tree->others.count = kept;
    return ATT_OK;
}

att_status att_annotations_apply(att_class_tree *tree, const att_dataset *dataset)
{
    const att_tree_file *list = find_list(tree);
    annotations parsed = {.arena = {.context = tree->context}};
    if (!list)
        return ATT_OK;
    const annotation *any_line = NULL;
    const char *list_path = list->inner; /* move_others() reorders the array that holds *list */
    ATT_TRY(tree->read(dataset, list, ATT_ANNOTATIONS_MAX, &parsed.text, &parsed.size));
    tree->moved.context = tree->context;
    att_status status = parse(dataset, &parsed);
    if (status == ATT_OK)
        status = move_images(tree, dataset, &parsed, list_path, &any_line);
    if (status == ATT_OK)
        status = move_others(tree, &parsed, list_path, any_line);
    att_arena_free(&parsed.arena);
    att_free(tree->context, parsed.text);
    return status;
}
