#include "data/mask_layouts.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/splits.h"

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* The first layout whose folders exist, and whose photographs have masks, is taken. So layouts with rules of their own
 * come before those that only pair folders. Sources: the data sets' own pages, mmsegmentation's "Prepare datasets" and
 * "Customize datasets", Ultralytics' and NVIDIA's formats for semantic segmentation, fastai's CamVid, Kaggle. */
static const att_mask_layout layouts[] = {
    /* ADE20K */
    {.photographs = "images/*",
     .masks = "annotations/*",
     .begin = "ADE_",
     .mask_end = "",
     .classes = "ade20k",
     .reduce_zero = true},
    /* Cityscapes */
    {.photographs = "leftImg8bit/*",
     .masks = "gtFine/*",
     .photograph_end = "_leftImg8bit",
     .mask_end = "_gtFine_labelTrainIds",
     .classes = "cityscapes",
     .other_end = "_gtFine_labelIds",
     .other_classes = "34 classes, of which 19 are trained: createTrainIdLabelImgs.py of cityscapesScripts makes "
                      "*_gtFine_labelTrainIds.png"},
    /* Cityscapes */
    {.photographs = "leftImg8bit/*",
     .masks = "gtCoarse/*",
     .photograph_end = "_leftImg8bit",
     .mask_end = "_gtCoarse_labelTrainIds",
     .classes = "cityscapes",
     .other_end = "_gtCoarse_labelIds",
     .other_classes = "34 classes, of which 19 are trained: createTrainIdLabelImgs.py of cityscapesScripts makes "
                      "*_gtCoarse_labelTrainIds.png"},
    /* Pascal VOC */
    {.photographs = "JPEGImages",
     .masks = "SegmentationClass",
     .list = "ImageSets/Segmentation/*.txt",
     .mask_end = "",
     .classes = "voc"},
    /* Pascal Context */
    {.photographs = "JPEGImages",
     .masks = "SegmentationClassContext",
     .list = "ImageSets/SegmentationContext/*.txt",
     .mask_end = ""},
    /* Oxford-IIIT Pet */
    {.photographs = "images",
     .masks = "annotations/trimaps",
     .list = "annotations/*.txt",
     .mask_end = "",
     .reduce_zero = true},
    /* CamVid */
    {.photographs = "*", .masks = "*annot", .mask_end = "", .classes = "camvid", .void_last = true},
    /* BDD100K */
    {.photographs = "images/10k/*", .masks = "labels/sem_seg/masks/*", .mask_end = "", .classes = "cityscapes"},
    /* Roboflow: train/a.jpg, train/a_mask.png */
    {.photographs = "*", .masks = "*", .mask_end = "_mask"},
    {.photographs = "@/*", .masks = "@/*"}, /* images/train, masks/train */
    {.photographs = "*/@", .masks = "*/@"}, /* train/images, train/masks */
    {.photographs = "*", .masks = "*_@"},   /* train, train_masks */
    {.photographs = "*_@", .masks = "*_@"}, /* train_images, train_masks */
    {.photographs = "@_*", .masks = "@_*"}, /* images_train, masks_train */
    {.photographs = "@", .masks = "@"},     /* images, masks */
};

static const char *const photograph_words[] = {"images", "image", "imgs", "img", "img_dir", "Images", "JPEGImages"};
static const char *const mask_words[] = {
    "masks",  "mask", "labels", "label", "annotations", "ann_dir",     "annotation",
    "annots", "gt",   "seg",    "Masks", "Labels",      "Annotations", "SegmentationClass"};
static const char *const mask_ends[] = {"_labelTrainIds", "",   "_mask", "_masks", "_label", "_labels", "_gt", "_seg",
                                        "_segmentation",  "_L", "_P"};

enum {
    LAYOUTS = sizeof layouts / sizeof *layouts,
    PHOTOGRAPH_WORDS = sizeof photograph_words / sizeof *photograph_words,
    MASK_WORDS = sizeof mask_words / sizeof *mask_words,
    MASK_ENDS = sizeof mask_ends / sizeof *mask_ends
};

const char *att_mask_layouts_end(int index)
{
    return index < MASK_ENDS ? mask_ends[index] : NULL;
}

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
    int length = snprintf(path, ATT_DATA_MAX_NAME, "%s/%s", root, inside);
    if (length < 0 || length >= ATT_DATA_MAX_NAME)
        return false;
    return folder ? att_is_folder(path) : att_file_exists(path);
}

/* A layout whose words for photographs and masks are chosen. */
typedef struct candidate {
    const att_mask_layout *layout;
    char photographs[PATTERN], masks[PATTERN];
} candidate;

/* Whether the files of a split exist. */
static bool has_split(const candidate *it, const char *root, const char *split)
{
    char path[ATT_DATA_MAX_NAME];
    return exists(root, it->photographs, split, true, path) && exists(root, it->masks, split, true, path) &&
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
        /* without a folder of masks, only a split's own name tells that this folder is a split */
        if (!has_split(it, root, split) || (strcmp(it->photographs, it->masks) == 0 && !att_split_is_name(split)))
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
                             att_mask_place *place)
{
    char path[ATT_DATA_MAX_NAME];
    place->layout = it->layout;
    ATT_TRY(keep(arena, root, &place->root));
    exists(root, it->photographs, split, true, path);
    ATT_TRY(keep(arena, path, &place->photographs));
    exists(root, it->masks, split, true, path);
    ATT_TRY(keep(arena, path, &place->masks));
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
    att_status (*take)(void *user, const att_mask_place *place, bool *taken);
    void *user;
    name_list root_names;
    char other[ATT_SPLIT_NAME]; /* a split that exists in place of the wanted one; "": none. Folders are then not read
                                   as if they had no splits */
} search;

static att_status try_candidate(search *it, const candidate *of, const char *root, bool *taken)
{
    att_splits splits = {.flat = {""}};
    const att_split *found = NULL;
    att_mask_place place = {.split = ""};
    bool wanted_exists = false;
    if (!strchr(of->photographs, '*') && !of->layout->list) {
        if (*it->other || !has_split(of, root, ""))
            return ATT_OK;
        ATT_TRY(make_place(it->arena, of, root, "", &place));
        return it->take(it->user, &place, taken);
    }
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
    return it->take(it->user, &place, taken);
}

/* Whether the first folder of a pattern exists; true if it depends on the split. */
static bool may_exist(const char *root, const char *pattern)
{
    char first[PATTERN], path[ATT_DATA_MAX_NAME];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(pattern, "/"), pattern);
    return strchr(first, '*') || exists(root, first, "", true, path);
}

/* Tries a layout with every choice of words. */
static att_status try_layout(search *it, const att_mask_layout *layout, const char *root, bool *taken)
{
    const bool any = strchr(layout->photographs, '@'), any_mask = strchr(layout->masks, '@');
    for (int p = 0; !*taken && p < (any ? PHOTOGRAPH_WORDS : 1); p++) {
        candidate of = {.layout = layout};
        replace(layout->photographs, '@', photograph_words[p], of.photographs, sizeof of.photographs);
        for (int m = 0; !*taken && may_exist(root, of.photographs) && m < (any_mask ? MASK_WORDS : 1); m++) {
            replace(layout->masks, '@', mask_words[m], of.masks, sizeof of.masks);
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

att_status att_mask_layouts_try(att_arena *arena, const char *path, const char *wanted,
                                att_status (*take)(void *user, const att_mask_place *place, bool *taken), void *user,
                                bool *taken)
{
    search it = {.arena = arena, .wanted = wanted, .take = take, .user = user};
    char root[ATT_DATA_MAX_NAME];
    *taken = false;
    if ((size_t)snprintf(root, sizeof root, "%s", path) >= sizeof root)
        return att_fail(arena->context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", path);
    att_arena names = {.context = arena->context};
    att_status status = ATT_OK;
    for (int outer = 0; status == ATT_OK && !*taken && outer <= ATT_MASK_LAYOUTS_OUTER; outer++) {
        if (outer > 0 && !enter_only_folder(root))
            break;
        status = list_names(&names, root, wanted, &it.root_names);
        for (int i = 0; status == ATT_OK && !*taken && i < LAYOUTS; i++)
            status = try_layout(&it, &layouts[i], root, taken);
    }
    att_arena_free(&names);
    ATT_TRY(status);
    if (!*taken && *it.other)
        return att_fail(arena->context, ATT_ERR_NOT_FOUND, "%s has no split \"%s\" with masks, only \"%s\"", path,
                        wanted, it.other);
    return ATT_OK;
}
