#include "data/file_layouts.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/splits.h"

/* --- words -------------------------------------------------------------------------------------------------------- */

static const char *const photograph_words[] = {"images", "image", "imgs", "img", "img_dir", "Images", "JPEGImages"};
static const char *const mask_words[] = {
    "masks",  "mask", "labels", "label", "annotations", "ann_dir",     "annotation",
    "annots", "gt",   "seg",    "Masks", "Labels",      "Annotations", "SegmentationClass"};

enum {
    PHOTOGRAPH_WORDS = sizeof photograph_words / sizeof *photograph_words,
    MASK_WORDS = sizeof mask_words / sizeof *mask_words
};

/* --- paths -------------------------------------------------------------------------------------------------------- */

enum { PATTERN = 128 };

/* Replaces the first `mark` of the pattern. Returns false if the result does not fit. */
static bool replace(const char *pattern, char mark, const char *with, char *text, size_t size)
{
    const char *at = strchr(pattern, mark);
    int length = at ? snprintf(text, size, "%.*s%s%s", (int)(at - pattern), pattern, with, at + 1)
                    : snprintf(text, size, "%s", pattern);
    return length >= 0 && (size_t)length < size;
}

/* Writes "<root>/<pattern with the split's name>" and returns whether there is such a file or folder. */
static bool exists(const char *root, const char *pattern, const char *split, bool folder, char path[ATT_DATA_MAX_NAME])
{
    char inside[PATTERN + ATT_SPLIT_NAME];
    if (!replace(pattern, '*', split, inside, sizeof inside))
        return false;
    int length = snprintf(path, ATT_DATA_MAX_NAME, "%s%s%s", root, *inside ? "/" : "", inside);
    if (length < 0 || length >= ATT_DATA_MAX_NAME)
        return false;
    return folder ? att_is_folder(path) : att_file_exists(path);
}

/* A layout whose words for photographs and masks are chosen. */
typedef struct candidate {
    const att_file_layout *layout;
    char photographs[PATTERN], annotations[PATTERN];
} candidate;

/* Whether the files of a split exist. */
static bool has_split(const candidate *it, const char *root, const char *split)
{
    char path[ATT_DATA_MAX_NAME];
    return exists(root, it->photographs, split, true, path) && exists(root, it->annotations, split, true, path) &&
           (!it->layout->list || exists(root, it->layout->list, split, false, path));
}

/* Names of files and folders. */
typedef struct name_list {
    const char **names;
    int count;
} name_list;

/* Lists what can belong to a split in a folder: names with the word of a split, or with `wanted`. A folder may hold
 * many thousands of class folders. */
static att_status list_names(att_arena *arena, const char *folder, const char *wanted, name_list *list)
{
    enum { MOST = 256 };
    *list = (name_list){.names = att_arena_allocate(arena, MOST * sizeof *list->names)};
    if (!list->names)
        return att_fail_memory(arena->context, MOST * sizeof *list->names, folder);
    DIR *entries = opendir(folder);
    bool enough = true;
    for (struct dirent *entry; entries && enough && list->count < MOST && (entry = readdir(entries));) {
        bool word = wanted && strstr(entry->d_name, wanted);
        for (const char *const *split = att_split_names(NULL); !word && *split; split++)
            word = att_split_is_word(entry->d_name, *split) || strncasecmp(entry->d_name, *split, strlen(*split)) == 0;
        if (!word || *entry->d_name == '.')
            continue;
        list->names[list->count] = att_arena_string(arena, entry->d_name);
        enough = list->names[list->count++] != NULL;
    }
    if (entries)
        closedir(entries);
    return enough ? ATT_OK : att_fail_memory(arena->context, ATT_SPLIT_NAME, folder);
}

/* Adds the splits whose names, between what stands before and after the star of a pattern, are in the list, and whose
 * files exist. *wanted_exists: whether one of them is named exactly as `wanted`. */
static void add_splits(const candidate *it, const char *root, const char *wanted, const name_list *list,
                       const char *before, size_t begin, att_splits *splits, bool *wanted_exists)
{
    const char *after = before + begin + 1;
    const size_t tail = strcspn(after, "/"), around = begin + tail;
    for (int i = 0; i < list->count; i++) {
        const char *name = list->names[i];
        const size_t size = strlen(name);
        char split[ATT_SPLIT_NAME];
        if (size <= around || size - around >= sizeof split || strncmp(name, before, begin) != 0 ||
            strncmp(name + size - tail, after, tail) != 0)
            continue;
        snprintf(split, sizeof split, "%.*s", (int)(size - around), name + begin);
        /* without a folder of annotations or a list, only a split's own name tells that this folder is a split */
        const bool alone = strcmp(it->photographs, it->annotations) == 0 && !it->layout->list;
        if (!has_split(it, root, split) || (alone && !att_split_is_name(split)))
            continue;
        att_splits_add(splits, split, strlen(split));
        *wanted_exists = *wanted_exists || (wanted && strcmp(split, wanted) == 0);
    }
}

/* Adds the splits of a layout, of which root_names lists those in `root`. */
static att_status list_splits(att_arena *arena, const candidate *it, const char *root, const name_list *root_names,
                              const char *wanted, att_splits *splits, bool *wanted_exists)
{
    const char *pattern = it->layout->list ? it->layout->list : it->photographs;
    const size_t star = strcspn(pattern, "*");
    size_t part = star;
    while (part > 0 && pattern[part - 1] != '/')
        part--;
    name_list names = *root_names;
    char folder[ATT_DATA_MAX_NAME];
    if (part > 0) {
        int length = snprintf(folder, sizeof folder, "%s/%.*s", root, (int)part, pattern);
        if (length < 0 || (size_t)length >= sizeof folder)
            return ATT_OK;
        ATT_TRY(list_names(arena, folder, wanted, &names));
    }
    add_splits(it, root, wanted, &names, pattern + part, star - part, splits, wanted_exists);
    return ATT_OK;
}

static att_status keep(att_arena *arena, const char *path, char **kept)
{
    *kept = att_arena_string(arena, path);
    return *kept ? ATT_OK : att_fail_memory(arena->context, strlen(path) + 1, path);
}

static att_status make_place(att_arena *arena, const candidate *it, const char *root, const char *split,
                             att_file_place *place)
{
    char path[ATT_DATA_MAX_NAME];
    place->layout = it->layout;
    ATT_TRY(keep(arena, root, &place->root));
    exists(root, it->photographs, split, true, path);
    ATT_TRY(keep(arena, path, &place->photographs));
    exists(root, it->annotations, split, true, path);
    ATT_TRY(keep(arena, path, &place->annotations));
    if (it->layout->list) {
        exists(root, it->layout->list, split, false, path);
        ATT_TRY(keep(arena, path, &place->list));
    }
    return ATT_OK;
}

/* --- trying ------------------------------------------------------------------------------------------------------- */

typedef struct search {
    att_arena *arena;
    const char *wanted;
    const att_file_search *asked;
    name_list root_names;
    char other[ATT_SPLIT_NAME]; /* a split that exists in place of the wanted one; "": none. Folders are then not read
                                   as if they had no splits */
} search;

static att_status try_candidate(search *it, const candidate *of, const char *root, bool *taken)
{
    att_splits splits = {.flat = {""}};
    const att_split *found = NULL;
    att_file_place place = {.split = ""};
    bool wanted_exists = false;
    if (!strchr(of->layout->list ? of->layout->list : of->photographs, '*')) {
        if (*it->other || !has_split(of, root, ""))
            return ATT_OK;
        ATT_TRY(make_place(it->arena, of, root, "", &place));
        return it->asked->take(it->asked->user, &place, taken);
    }
    splits.words = of->layout->boxes && of->layout->list;
    att_arena arena = {.context = it->arena->context};
    att_status status = list_splits(&arena, of, root, &it->root_names, it->wanted, &splits, &wanted_exists);
    att_arena_free(&arena);
    ATT_TRY(status);
    if (!wanted_exists && (!it->wanted || att_split_names(it->wanted)))
        ATT_TRY(att_splits_choose(&splits, it->arena->context, root, it->wanted, &found));
    if (!wanted_exists && !found) {
        const att_split *any = att_splits_find(&splits, att_split_names(NULL));
        if (any && !*it->other)
            memcpy(it->other, any->name, sizeof it->other);
        return ATT_OK;
    }
    const char *name = wanted_exists ? it->wanted : found->name;
    char *split;
    ATT_TRY(keep(it->arena, found ? found->split : name, &split));
    ATT_TRY(make_place(it->arena, of, root, name, &place));
    place.split = split;
    return it->asked->take(it->asked->user, &place, taken);
}

/* Whether the first folder of a pattern exists; true if it depends on the split. */
static bool may_exist(const char *root, const char *pattern)
{
    char first[PATTERN], path[ATT_DATA_MAX_NAME];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(pattern, "/"), pattern);
    return strchr(first, '*') || exists(root, first, "", true, path);
}

/* Tries a layout with every choice of words. */
static att_status try_layout(search *it, const att_file_layout *layout, const char *root, bool *taken)
{
    const bool any = strchr(layout->photographs, '@'), any_mask = strchr(layout->annotations, '@');
    for (int p = 0; !*taken && p < (any ? PHOTOGRAPH_WORDS : 1); p++) {
        candidate of = {.layout = layout};
        replace(layout->photographs, '@', photograph_words[p], of.photographs, sizeof of.photographs);
        for (int m = 0; !*taken && may_exist(root, of.photographs) && m < (any_mask ? MASK_WORDS : 1); m++) {
            replace(layout->annotations, '@', mask_words[m], of.annotations, sizeof of.annotations);
            ATT_TRY(try_candidate(it, &of, root, taken));
        }
    }
    return ATT_OK;
}

/* Finds the only visible folder in `root`, and appends its name. Returns false if there is none, or several. */
static bool enter_only_folder(char root[ATT_DATA_MAX_NAME])
{
    char only[ATT_DATA_MAX_NAME], path[ATT_DATA_MAX_NAME];
    int folders = 0;
    DIR *entries = opendir(root);
    for (struct dirent *entry; entries && folders < 2 && (entry = readdir(entries));) {
        int length = snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
        if (*entry->d_name == '.' || strcmp(entry->d_name, "__MACOSX") == 0 || length < 0 ||
            (size_t)length >= sizeof path || !att_is_folder(path))
            continue;
        folders++;
        memcpy(only, path, sizeof only);
    }
    if (entries)
        closedir(entries);
    if (folders == 1)
        memcpy(root, only, sizeof only);
    return folders == 1;
}

att_status att_file_layouts_try(att_arena *arena, const char *path, const char *wanted, const att_file_search *asked,
                                bool *taken)
{
    search it = {.arena = arena, .wanted = wanted, .asked = asked};
    char root[ATT_DATA_MAX_NAME];
    *taken = false;
    if ((size_t)snprintf(root, sizeof root, "%s", path) >= sizeof root)
        return att_fail(arena->context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", path);
    att_arena names = {.context = arena->context};
    att_status status = ATT_OK;
    for (int outer = 0; status == ATT_OK && !*taken && outer <= ATT_FILE_LAYOUTS_OUTER; outer++) {
        if (outer > 0 && !enter_only_folder(root))
            break;
        status = list_names(&names, root, wanted, &it.root_names);
        for (int i = 0; status == ATT_OK && !*taken && i < asked->count; i++)
            status = try_layout(&it, &asked->layouts[i], root, taken);
    }
    att_arena_free(&names);
    ATT_TRY(status);
    if (!*taken && *it.other)
        return att_fail(arena->context, ATT_ERR_NOT_FOUND, "%s has no split \"%s\" with %s, only \"%s\"", path, wanted,
                        asked->what, it.other);
    return ATT_OK;
}
