/* Boxes in COCO's JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/file.h"
#include "base/io/system.h"
#include "data/box_set.h"
#include "data/coco.h"

typedef struct reading {
    att_context *context;
    att_box_set *set;
    const char *file; /* in the set's arena */
    att_coco coco;
    int *classes;       /* [category_count]: of each category; -1: left out */
    int *order, *first; /* boxes by image: those of image i are order[first[i]] .. order[first[i + 1] - 1] */
} reading;

/* Whether the beginning of a file looks like an object with one of COCO's members. */
static bool is(const att_file_place *place)
{
    static const char *const members[] = {"\"info\"", "\"licenses\"", "\"images\"", "\"annotations\"",
                                          "\"categories\""};
    enum { BEGINNING = 1 << 12 };
    char text[BEGINNING + 1] = "";
    text[att_system_read_start(place->list, text, BEGINNING)] = '\0';
    const char *begin = text + strspn(text, "\xEF\xBB\xBF \t\r\n");
    bool found = false;
    for (size_t i = 0; *begin == '{' && !found && i < sizeof members / sizeof *members; i++)
        found = strstr(begin, members[i]) != NULL;
    return found;
}

/* Whether the bytes, which end in a NUL, have the name of a box's member. */
static bool names_box(char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!bytes[i])
            bytes[i] = ' ';
    return strstr(bytes, "\"bbox\"") != NULL;
}

/* Looks at the first and the last bytes: the files of classification data sets, such as iNaturalist's, are the same but
 * for the boxes, and have hundreds of megabytes. */
static bool has_boxes(att_context *context, const att_file_place *place)
{
    enum { PART = 1 << 18 };
    att_file_reader *reader = NULL;
    char *bytes = att_allocate(context, PART + 1);
    bool found = false;
    if (bytes && att_file_reader_open(context, place->list, &reader) == ATT_OK) {
        const uint64_t size = att_file_reader_size(reader);
        const size_t part = size < PART ? (size_t)size : PART;
        for (int end = 0; !found && end < 2; end++) {
            bytes[part] = '\0';
            found =
                att_file_reader_read(reader, end ? size - part : 0, bytes, part) == ATT_OK && names_box(bytes, part);
        }
    }
    att_file_reader_close(&reader);
    att_free(context, bytes);
    return found;
}

/* --- categories --------------------------------------------------------------------------------------------------- */

static bool is_used(const att_coco *coco, int category)
{
    for (int i = 0; i < coco->box_count; i++)
        if (coco->boxes[i].category == category)
            return true;
    return false;
}

/* Whether a category is the one that Roboflow adds: it has no boxes, and all others belong to it. */
static bool is_added(const att_coco *coco, int category)
{
    const att_coco_category *of = &coco->categories[category];
    if (of->id != 0 || strcmp(of->parent, "none") != 0 || coco->category_count == 1)
        return false;
    for (int c = 0; c < coco->category_count; c++)
        if (c != category && strcmp(coco->categories[c].parent, of->name) != 0)
            return false;
    return !is_used(coco, category);
}

/* Makes the classes: the categories in the order of their ids. Those without a name have their id as a name. */
static att_status number_categories(reading *r)
{
    enum { DIGITS = 24 };
    att_arena *arena = &r->set->arena;
    const att_coco *coco = &r->coco;
    const size_t room = (size_t)coco->category_count + 1;
    r->set->names = att_arena_allocate(arena, room * sizeof *r->set->names);
    r->set->class_ids = att_arena_allocate(arena, room * sizeof *r->set->class_ids);
    r->classes = att_allocate_array(r->context, room, sizeof *r->classes);
    if (!r->set->names || !r->set->class_ids || !r->classes)
        return att_fail_memory(r->context, room * sizeof *r->set->names, "the categories of a file");
    for (int c = 0; c < coco->category_count; c++) {
        const att_coco_category *of = &coco->categories[c];
        char digits[DIGITS];
        r->classes[c] = -1;
        if (is_added(coco, c))
            continue;
        snprintf(digits, sizeof digits, "%" PRId64, of->id);
        r->classes[c] = r->set->class_count++;
        r->set->class_ids[r->classes[c]] = of->id;
        r->set->names[r->classes[c]] = att_arena_string(arena, *of->name ? of->name : digits);
        if (!r->set->names[r->classes[c]])
            return att_fail_memory(r->context, strlen(of->name) + 1, "the categories of a file");
    }
    return ATT_OK;
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static att_status check_ids(const reading *r)
{
    const att_coco *coco = &r->coco;
    int64_t *ids = att_allocate_array(r->context, (size_t)coco->box_count + 1, sizeof *ids), twice = -1;
    if (!ids)
        return att_fail_memory(r->context, (size_t)coco->box_count * sizeof *ids, "the boxes of a file");
    for (int i = 0; i < coco->box_count; i++)
        ids[i] = coco->boxes[i].id;
    qsort(ids, (size_t)coco->box_count, sizeof *ids, compare_ids);
    for (int i = 1; i < coco->box_count && twice < 0; i++)
        if (ids[i] >= 0 && ids[i] == ids[i - 1])
            twice = ids[i];
    att_free(r->context, ids);
    return twice < 0 ? ATT_OK
                     : att_fail(r->context, ATT_ERR_FORMAT, "%s: two annotations have the id %" PRId64, r->file, twice);
}

static att_status order_boxes(reading *r)
{
    const att_coco *coco = &r->coco;
    r->order = att_allocate_array(r->context, (size_t)coco->box_count + 1, sizeof *r->order);
    r->first = att_allocate_array(r->context, (size_t)coco->image_count + 2, sizeof *r->first);
    if (!r->order || !r->first)
        return att_fail_memory(r->context, (size_t)coco->box_count * sizeof *r->order, "the boxes of a file");
    int *next = r->first + 1; /* next[i]: the beginning of image i, and in the end that of image i + 1 */
    for (int i = 0; i < coco->box_count; i++)
        next[coco->boxes[i].image + 1]++;
    for (int i = 0; i < coco->image_count; i++)
        next[i + 1] += next[i];
    for (int i = 0; i < coco->box_count; i++)
        r->order[next[coco->boxes[i].image]++] = i;
    return ATT_OK;
}

static att_status add_boxes(reading *r, int image)
{
    for (int i = r->first[image]; i < r->first[image + 1]; i++) {
        const att_coco_box *of = &r->coco.boxes[r->order[i]];
        const att_true_box box = {.x = of->x,
                                  .y = of->y,
                                  .width = of->width,
                                  .height = of->height,
                                  .area = of->area,
                                  .id = of->id >= 0 ? of->id : r->order[i] + 1,
                                  .label = r->classes[of->category],
                                  .crowd = of->crowd};
        ATT_TRY(att_box_set_add(r->set, r->file, &box));
    }
    return ATT_OK;
}

/* --- photographs -------------------------------------------------------------------------------------------------- */

/* Whether a path leads out of the folder that it begins in. */
static bool leads_out(const char *path)
{
    const char *part = path;
    for (; *part; part += strcspn(part, "/"), part += *part == '/')
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    return *path == '/';
}

static att_status check_name(const reading *r, const att_coco_image *image)
{
    if (!*image->file)
        return att_fail(r->context, ATT_ERR_FORMAT, "%s: the image with the id %" PRId64 " has no \"file_name\"",
                        r->file, image->id);
    if (leads_out(image->file))
        return att_fail(r->context, ATT_ERR_FORMAT,
                        "%s: the image with the id %" PRId64
                        " has the file_name \"%s\"; expected a path that begins in "
                        "the folder of photographs",
                        r->file, image->id, image->file);
    return ATT_OK;
}

/* Finds a photograph below the folder of photographs, or below the folder around all files. Sets *path, in the set's
 * arena, to NULL if there is none. */
static att_status find_photograph(const reading *r, const att_coco_image *image, const char **path)
{
    const char *const folders[] = {r->set->place.photographs, r->set->place.root};
    char joined[ATT_DATA_MAX_NAME];
    *path = NULL;
    for (int i = 0; i < 2; i++) {
        ATT_TRY(att_path_join(r->context, folders[i], image->file, joined, sizeof joined));
        if (!att_file_exists(joined))
            continue;
        *path = att_arena_string(&r->set->arena, joined);
        return *path ? ATT_OK : att_fail_memory(r->context, strlen(joined), "the list of images");
    }
    return ATT_OK;
}

static att_status fail_missing(const reading *r, const att_coco_image *image, int missing)
{
    return att_fail(r->context, ATT_ERR_MISMATCH,
                    "%s: the image with the id %" PRId64
                    " is \"%s\", which %s does not have; %d of %d photographs are "
                    "missing",
                    r->file, image->id, image->file, r->set->place.photographs, missing, r->coco.image_count);
}

static att_status add_photographs(reading *r)
{
    const att_coco_image *first_missing = NULL;
    int missing = 0;
    for (int i = 0; i < r->coco.image_count; i++) {
        const att_coco_image *image = &r->coco.images[i];
        const char *path;
        ATT_TRY(check_name(r, image));
        ATT_TRY(find_photograph(r, image, &path));
        if (!path && missing++ == 0)
            first_missing = image;
        if (!path)
            continue;
        ATT_TRY(att_box_set_photograph(r->set, path, image->id, image->width, image->height));
        ATT_TRY(add_boxes(r, i));
    }
    return missing == 0 ? ATT_OK : fail_missing(r, first_missing, missing);
}

static void warn_left_out(const reading *r, const att_coco_left_out *left_out, const char *one, const char *many)
{
    if (left_out->count > 0)
        att_log(r->context, ATT_LOG_WARNING, "%s: %" PRId64 " %s; the first has the id %" PRId64, r->file,
                left_out->count, left_out->count == 1 ? one : many, left_out->first);
}

static att_status take_all(reading *r)
{
    warn_left_out(r, &r->coco.without_image, "annotation is left out: the file does not list its image",
                  "annotations are left out: the file does not list their images");
    warn_left_out(r, &r->coco.without_category, "annotation is left out: the file does not list its category",
                  "annotations are left out: the file does not list their categories");
    ATT_TRY(check_ids(r));
    ATT_TRY(number_categories(r));
    ATT_TRY(order_boxes(r));
    return add_photographs(r);
}

static att_status read_coco(att_box_set *set)
{
    reading r = {.context = set->arena.context, .set = set, .file = set->place.list};
    ATT_TRY(att_coco_read(r.context, r.file, &r.coco));
    att_status status = take_all(&r);
    att_free(r.context, r.classes);
    att_free(r.context, r.order);
    att_free(r.context, r.first);
    att_coco_free(&r.coco);
    return status;
}

const att_box_format att_box_coco = {.unit = "annotation", .is = is, .has_boxes = has_boxes, .read = read_coco};
