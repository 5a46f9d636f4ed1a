#include "data/box_pairs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/system.h"
#include "data/class_tree.h"

enum { MAX_LIST_BYTES = 64 << 20 };

/* A file, and its path below the place's folder without the extension. */
typedef struct stemmed_file {
    const char *path, *stem;
    int line; /* of the list that names it; 0: none so far */
} stemmed_file;

typedef struct stemmed_files {
    stemmed_file *files;
    int64_t count;
} stemmed_files;

typedef struct listing {
    att_arena *arena;
    const att_file_place *place;
    const char *ending;
    stemmed_files photographs, annotations; /* sorted by stem */
    att_box_pairs *pairs;
} listing;

static int compare_stems(const void *a, const void *b)
{
    return strcmp(((const stemmed_file *)a)->stem, ((const stemmed_file *)b)->stem);
}

static int compare_pairs(const void *a, const void *b)
{
    return att_natural_compare(((const att_box_pair *)a)->photograph, ((const att_box_pair *)b)->photograph);
}

static stemmed_file *find(const stemmed_files *list, const char *stem)
{
    const stemmed_file key = {.stem = stem};
    return bsearch(&key, list->files, (size_t)list->count, sizeof *list->files, compare_stems);
}

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), ending = strlen(end);
    return length > ending && strcmp(path + length - ending, end) == 0;
}

/* --- lists of files ----------------------------------------------------------------------------------------------- */

/* ending: NULL: images. */
static bool counts(const char *path, const char *ending)
{
    return !ending || (ends_in(path, ending) && strcmp(att_path_last(path), "classes.txt") != 0);
}

static att_status add_file(att_arena *arena, const char *path, stemmed_files *list)
{
    char *kept = att_arena_string(arena, path), *stem = att_arena_string(arena, path);
    if (!kept || !stem)
        return att_fail_memory(arena->context, strlen(path), "the list of images");
    *strrchr(stem, '.') = '\0';
    list->files[list->count++] = (stemmed_file){.path = kept, .stem = stem};
    return ATT_OK;
}

/* Lists the images in a folder, or the files with the ending, sorted by stem. */
static att_status list_files(att_arena *arena, const char *folder, const char *ending, stemmed_files *list)
{
    att_class_tree tree = {.context = arena->context};
    att_arena names = {.context = arena->context};
    att_status status = att_folder_walk(folder, &tree, &names);
    const att_tree_list *all = ending ? &tree.others : &tree.images;
    const size_t bytes = ((size_t)all->count + 1) * sizeof *list->files;
    *list = (stemmed_files){.files = status == ATT_OK ? att_arena_allocate(arena, bytes) : NULL};
    if (status == ATT_OK && !list->files)
        status = att_fail_memory(arena->context, bytes, "the list of images");
    for (int64_t i = 0; status == ATT_OK && i < all->count; i++)
        if (counts(all->files[i].path, ending))
            status = add_file(arena, all->files[i].path, list);
    if (status == ATT_OK)
        qsort(list->files, (size_t)list->count, sizeof *list->files, compare_stems);
    att_class_tree_free(&tree);
    att_arena_free(&names);
    return status;
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static att_status join(att_arena *arena, const char *folder, const char *path, const char **joined)
{
    char text[ATT_DATA_MAX_NAME];
    ATT_TRY(att_path_join(arena->context, folder, path, text, sizeof text));
    *joined = att_arena_string(arena, text);
    return *joined ? ATT_OK : att_fail_memory(arena->context, strlen(text), "the list of images");
}

static att_status add_pair(const listing *it, const stemmed_file *photograph)
{
    const stemmed_file *annotations = find(&it->annotations, photograph->stem);
    att_box_pair *pair = &it->pairs->pairs[it->pairs->count++];
    ATT_TRY(join(it->arena, it->place->photographs, photograph->path, &pair->photograph));
    return annotations ? join(it->arena, it->place->annotations, annotations->path, &pair->annotations) : ATT_OK;
}

static att_status allocate_pairs(const listing *it, int64_t count)
{
    const size_t bytes = ((size_t)count + 1) * sizeof *it->pairs->pairs;
    it->pairs->pairs = att_arena_allocate(it->arena, bytes);
    return it->pairs->pairs ? ATT_OK : att_fail_memory(it->arena->context, bytes, "the list of images");
}

static att_status pair_all(const listing *it)
{
    ATT_TRY(allocate_pairs(it, it->photographs.count));
    for (int64_t i = 0; i < it->photographs.count; i++)
        ATT_TRY(add_pair(it, &it->photographs.files[i]));
    qsort(it->pairs->pairs, (size_t)it->pairs->count, sizeof *it->pairs->pairs, compare_pairs);
    for (int64_t i = 0; i < it->annotations.count; i++)
        if (!find(&it->photographs, it->annotations.files[i].stem) && it->pairs->alone++ == 0)
            ATT_TRY(join(it->arena, it->place->annotations, it->annotations.files[i].path, &it->pairs->first_alone));
    return ATT_OK;
}

static att_status pair_lines(const listing *it, char *text, size_t size)
{
    att_context *context = it->arena->context;
    const char *path = it->place->list, **lines;
    int count;
    ATT_TRY(att_text_lines(it->arena, path, text, size, &lines, &count));
    if (count == 0)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s is empty; expected the name of a photograph on each line, without its extension", path);
    ATT_TRY(allocate_pairs(it, count));
    for (int i = 0; i < count; i++) {
        char *name = text + (lines[i] - text) + strspn(lines[i], " \t");
        name[strcspn(name, " \t")] = '\0';
        stemmed_file *photograph = find(&it->photographs, name);
        if (!photograph)
            return att_fail(context, ATT_ERR_MISMATCH,
                            "%s: line %d names \"%s\", but %s has no such image; expected a name without its extension",
                            path, i + 1, name, it->place->photographs);
        if (photograph->line > 0)
            return att_fail(context, ATT_ERR_MISMATCH, "%s: line %d names \"%s\", as does line %d", path, i + 1, name,
                            photograph->line);
        photograph->line = i + 1;
        ATT_TRY(add_pair(it, photograph));
    }
    return ATT_OK;
}

static att_status pair_listed(const listing *it)
{
    char *text;
    size_t size;
    ATT_TRY(att_file_read(it->arena->context, it->place->list, MAX_LIST_BYTES, &text, &size));
    att_status status = pair_lines(it, text, size);
    att_free(it->arena->context, text);
    return status;
}

static att_status check_photographs(const listing *it)
{
    const stemmed_files *list = &it->photographs;
    att_context *context = it->arena->context;
    if (list->count == 0)
        return att_fail(context, ATT_ERR_FORMAT, "%s has no images", it->place->photographs);
    for (int64_t i = 1; i < list->count; i++)
        if (compare_stems(&list->files[i], &list->files[i - 1]) == 0)
            return att_fail(context, ATT_ERR_MISMATCH, "%s: %s and %s would have the same boxes; remove one of them",
                            it->place->photographs, list->files[i - 1].path, list->files[i].path);
    return ATT_OK;
}

att_status att_box_pairs_list(att_arena *arena, const att_file_place *place, const char *ending, att_box_pairs *pairs)
{
    listing it = {.arena = arena, .place = place, .ending = ending, .pairs = pairs};
    *pairs = (att_box_pairs){.count = 0};
    ATT_TRY(list_files(arena, place->photographs, NULL, &it.photographs));
    ATT_TRY(list_files(arena, place->annotations, ending, &it.annotations));
    ATT_TRY(check_photographs(&it));
    return place->list ? pair_listed(&it) : pair_all(&it);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static bool looks_like(const char *folder, const char *name, bool (*looks)(char *text))
{
    enum { BEGINNING = 1 << 10 };
    char path[ATT_DATA_MAX_NAME], text[BEGINNING + 1];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    text[att_system_read_start(path, text, BEGINNING)] = '\0';
    return looks(text);
}

bool att_box_pairs_look(const att_file_place *place, const char *ending, bool (*looks)(char *text))
{
    enum { MOST_ENTRIES = 4096, MOST_FILES = 64 };
    DIR *entries = opendir(place->annotations);
    bool found = false;
    int files = 0, seen = 0;
    for (struct dirent *entry;
         entries && !found && files < MOST_FILES && seen++ < MOST_ENTRIES && (entry = readdir(entries));)
        if (*entry->d_name != '.' && entry->d_type != DT_DIR && counts(entry->d_name, ending)) {
            files++;
            found = looks_like(place->annotations, entry->d_name, looks);
        }
    if (entries)
        closedir(entries);
    return found;
}
