#include "data/mask_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/class_tree.h"

enum { MAX_LIST_BYTES = 64 << 20 };

/* --- lists of files ----------------------------------------------------------------------------------------------- */

/* A file, and the part of its path that its partner has, too. */
typedef struct named_file {
    const char *path, *stem;
    int line; /* of a list that names it; 0: none so far */
} named_file;

typedef struct named_files {
    named_file *files;
    int64_t count;
} named_files;

static int compare_stems(const void *a, const void *b)
{
    return strcmp(((const named_file *)a)->stem, ((const named_file *)b)->stem);
}

static int compare_paths(const void *a, const void *b)
{
    return att_natural_compare(((const named_file *)a)->path, ((const named_file *)b)->path);
}

/* list: sorted by stem. */
static named_file *find_stem(const named_files *list, const char *stem)
{
    const named_file key = {.stem = stem};
    return bsearch(&key, list->files, (size_t)list->count, sizeof *list->files, compare_stems);
}

static att_status allocate_list(att_arena *arena, int64_t count, named_files *list)
{
    const size_t bytes = ((size_t)count + 1) * sizeof *list->files;
    *list = (named_files){.files = att_arena_allocate(arena, bytes)};
    return list->files ? ATT_OK : att_fail_memory(arena->context, bytes, "the list of images");
}

/* Lists the images below a folder. */
static att_status list_images(att_arena *arena, const char *folder, named_files *list)
{
    att_class_tree tree = {.context = arena->context};
    att_status status = att_folder_walk(folder, &tree, arena);
    if (status == ATT_OK)
        status = allocate_list(arena, tree.images.count, list);
    for (int64_t i = 0; status == ATT_OK && i < tree.images.count; i++)
        list->files[list->count++] = (named_file){.path = tree.images.files[i].path};
    att_class_tree_free(&tree);
    return status;
}

static bool ends_in(const char *path, size_t length, const char *end)
{
    const size_t ending = strlen(end);
    return length >= ending && strncmp(path + length - ending, end, ending) == 0;
}

/* Lists those of `all` whose names end in `end`, but not in `other` (NULL: any), before the extension. Sorts them by
 * stem: the path without this end. */
static att_status list_stems(att_arena *arena, const named_files *all, const char *end, const char *other,
                             named_files *list)
{
    ATT_TRY(allocate_list(arena, all->count, list));
    for (int64_t i = 0; i < all->count; i++) {
        const char *path = all->files[i].path;
        size_t length = (size_t)(strrchr(path, '.') - path);
        if (!ends_in(path, length, end) || (other && ends_in(path, length, other)))
            continue;
        char *stem = att_arena_string(arena, path);
        if (!stem)
            return att_fail_memory(arena->context, length, "the list of images");
        stem[length - strlen(end)] = '\0';
        list->files[list->count++] = (named_file){.path = path, .stem = stem};
    }
    qsort(list->files, (size_t)list->count, sizeof *list->files, compare_stems);
    return ATT_OK;
}

/* --- pairing ------------------------------------------------------------------------------------------------------ */

/* An attempt to open a place. */
typedef struct attempt {
    att_arena *arena; /* for this attempt */
    const att_file_place *place;
    named_files photographs, masks; /* sorted by stem */
    named_files all_masks;
    const char *mask_end;
} attempt;

static int64_t count_pairs(const attempt *it)
{
    int64_t count = 0;
    for (int64_t i = 0; i < it->photographs.count; i++)
        count += find_stem(&it->masks, it->photographs.files[i].stem) != NULL;
    return count;
}

/* Lists photographs and masks. If the layout leaves open how names of masks end, takes the first usual end with which a
 * photograph has a mask. */
static att_status list_files(attempt *it)
{
    const att_file_layout *layout = it->place->layout;
    named_files all;
    ATT_TRY(list_images(it->arena, it->place->photographs, &all));
    ATT_TRY(list_images(it->arena, it->place->annotations, &it->all_masks));
    const bool together = strcmp(it->place->photographs, it->place->annotations) == 0;
    ATT_TRY(list_stems(it->arena, &all, layout->photograph_end ? layout->photograph_end : "",
                       together ? layout->mask_end : NULL, &it->photographs));
    for (int end = 0;; end++) {
        it->mask_end = layout->mask_end ? layout->mask_end : att_mask_end(end);
        if (!it->mask_end)
            return ATT_OK;
        ATT_TRY(list_stems(it->arena, &it->all_masks, it->mask_end, NULL, &it->masks));
        if (layout->mask_end || count_pairs(it) > 0)
            return ATT_OK;
    }
}

/* Whether the files are in the layout: a layout that only pairs folders needs a pair. */
static bool is_layout(const attempt *it)
{
    const att_file_layout *layout = it->place->layout;
    if (it->photographs.count == 0 || !it->mask_end ||
        (it->masks.count == 0 && strcmp(it->place->photographs, it->place->annotations) == 0))
        return false;
    const char *name = att_path_last(it->photographs.files[0].path);
    return !layout->begin || strncmp(name, layout->begin, strlen(layout->begin)) == 0;
}

static att_status fail_without_mask(attempt *it, const named_file *photograph)
{
    const att_file_place *place = it->place;
    const att_file_layout *layout = place->layout;
    att_context *context = it->arena->context;
    named_files others;
    if (layout->other_end) {
        ATT_TRY(list_stems(it->arena, &it->all_masks, layout->other_end, NULL, &others));
        if (find_stem(&others, photograph->stem))
            return att_fail(context, ATT_ERR_FORMAT, "%s/%s has no mask %s%s.png; %s/%s%s.png has labels of %s",
                            place->photographs, photograph->path, att_path_last(photograph->stem), it->mask_end,
                            place->annotations, photograph->stem, layout->other_end, layout->other_classes);
    }
    return att_fail(context, ATT_ERR_MISMATCH,
                    "%s/%s has no mask: expected %s/%s%s.png; %lld of %lld photographs have one, and each needs one",
                    place->photographs, photograph->path, place->annotations, photograph->stem, it->mask_end,
                    (long long)count_pairs(it), (long long)it->photographs.count);
}

static att_status add_pair(attempt *it, att_mask_pairs *found, const named_file *photograph)
{
    const named_file *mask = find_stem(&it->masks, photograph->stem);
    if (!mask)
        return fail_without_mask(it, photograph);
    att_mask_pair *added = &found->pairs[found->count++];
    added->photograph = att_arena_string(&found->arena, photograph->path);
    added->mask = att_arena_string(&found->arena, mask->path);
    return added->photograph && added->mask
               ? ATT_OK
               : att_fail_memory(it->arena->context, strlen(mask->path), "the list of images");
}

static att_status allocate_pairs(att_mask_pairs *found, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *found->pairs;
    found->pairs = att_arena_allocate(&found->arena, bytes);
    return found->pairs ? ATT_OK : att_fail_memory(found->arena.context, bytes, "the list of images");
}

/* Fails if a mask has no photograph, or two photographs share a mask. */
static att_status check_complete(const attempt *it)
{
    const att_file_place *place = it->place;
    att_context *context = it->arena->context;
    for (int64_t i = 0; i < it->masks.count; i++)
        if (!find_stem(&it->photographs, it->masks.files[i].stem))
            return att_fail(context, ATT_ERR_MISMATCH,
                            "%s/%s is a mask without a photograph: %s has no image %s%s; remove the mask, or add the "
                            "photograph",
                            place->annotations, it->masks.files[i].path, place->photographs, it->masks.files[i].stem,
                            place->layout->photograph_end ? place->layout->photograph_end : "");
    for (int64_t i = 1; i < it->photographs.count; i++)
        if (compare_stems(&it->photographs.files[i], &it->photographs.files[i - 1]) == 0)
            return att_fail(context, ATT_ERR_MISMATCH, "%s: %s and %s would have the same mask; remove one of them",
                            place->photographs, it->photographs.files[i - 1].path, it->photographs.files[i].path);
    return ATT_OK;
}

static att_status pair_all(attempt *it, att_mask_pairs *found)
{
    named_files sorted;
    ATT_TRY(allocate_list(it->arena, it->photographs.count, &sorted));
    sorted.count = it->photographs.count;
    memcpy(sorted.files, it->photographs.files, (size_t)sorted.count * sizeof *sorted.files);
    qsort(sorted.files, (size_t)sorted.count, sizeof *sorted.files, compare_paths);
    ATT_TRY(allocate_pairs(found, sorted.count));
    for (int64_t i = 0; i < sorted.count; i++)
        ATT_TRY(add_pair(it, found, &sorted.files[i]));
    return check_complete(it);
}

/* Fails for a line whose name is not that of a photograph. */
static att_status fail_line(const attempt *it, int line, char *name)
{
    char *extension = strrchr(name, '.');
    att_context *context = it->arena->context;
    if (extension) {
        *extension = '\0';
        const bool has = find_stem(&it->photographs, name) != NULL;
        *extension = '.';
        if (has)
            return att_fail(context, ATT_ERR_MISMATCH,
                            "%s: line %d names \"%s\"; expected the name without its extension, \"%.*s\"",
                            it->place->list, line, name, (int)(extension - name), name);
    }
    return att_fail(context, ATT_ERR_MISMATCH, "%s: line %d names \"%s\", but %s has no such image", it->place->list,
                    line, name, it->place->photographs);
}

/* Pairs the photographs that the lines of a list name. */
static att_status pair_lines(attempt *it, att_mask_pairs *found, char *text, size_t size)
{
    const char *path = it->place->list, **lines;
    int count;
    ATT_TRY(att_text_lines(it->arena, path, text, size, &lines, &count));
    if (count == 0)
        return att_fail(it->arena->context, ATT_ERR_FORMAT,
                        "%s is empty; expected the name of a photograph on each line, without its extension", path);
    ATT_TRY(allocate_pairs(found, count));
    int repeated = 0, first = 0, second = 0;
    for (int i = 0; i < count; i++) {
        char *name = text + (lines[i] - text) + strspn(lines[i], " \t");
        name[strcspn(name, " \t")] = '\0';
        named_file *photograph = find_stem(&it->photographs, name);
        if (!photograph)
            return fail_line(it, i + 1, name);
        if (photograph->line > 0 && repeated++ == 0) {
            first = photograph->line;
            second = i + 1;
        }
        photograph->line = i + 1;
        ATT_TRY(add_pair(it, found, photograph));
    }
    if (repeated > 0)
        att_log(
            it->arena->context, ATT_LOG_WARNING,
            "%s names %d photograph%s again, such as that of line %d in line %d; each line counts, so that they have "
            "more weight than others",
            path, repeated, repeated == 1 ? "" : "s", first, second);
    return ATT_OK;
}

static att_status pair_listed(attempt *it, att_mask_pairs *found)
{
    char *text;
    size_t size;
    ATT_TRY(att_file_read(it->arena->context, it->place->list, MAX_LIST_BYTES, &text, &size));
    att_status status = pair_lines(it, found, text, size);
    att_free(it->arena->context, text);
    return status;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* Takes the first place that is in its layout. user: the att_mask_pairs. */
static att_status take_place(void *user, const att_file_place *place, bool *taken)
{
    att_mask_pairs *found = user;
    att_arena arena = {.context = found->arena.context};
    attempt it = {.arena = &arena, .place = place};
    att_status status = list_files(&it);
    *taken = status == ATT_OK && is_layout(&it);
    if (*taken) {
        found->place = *place;
        status = place->list ? pair_listed(&it, found) : pair_all(&it, found);
    }
    att_arena_free(&arena);
    return status;
}

static att_file_search search_for(att_status (*take)(void *user, const att_file_place *place, bool *taken), void *user)
{
    return (att_file_search){att_mask_layouts, att_mask_layouts_number, "masks", take, user};
}

att_status att_mask_pairs_find(att_mask_pairs *pairs, const char *path, const char *wanted, bool *found)
{
    const att_file_search search = search_for(take_place, pairs);
    return att_file_layouts_try(&pairs->arena, path, wanted, &search, found);
}

/* Takes the first place that has a pair. user: the context. */
static att_status find_pair(void *user, const att_file_place *place, bool *taken)
{
    att_arena arena = {.context = user};
    attempt it = {.arena = &arena, .place = place};
    att_status status = list_files(&it);
    *taken = status == ATT_OK && is_layout(&it) && count_pairs(&it) > 0;
    att_arena_free(&arena);
    return status;
}

att_status att_mask_pairs_exist(att_context *context, const char *path, bool *found)
{
    att_arena arena = {.context = context};
    const att_file_search search = search_for(find_pair, context);
    att_status status = att_file_layouts_try(&arena, path, NULL, &search, found);
    att_arena_free(&arena);
    return status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED ? status : ATT_OK;
}
