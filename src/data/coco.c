#include "data/coco.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/io/json.h"

enum { IMAGES, CATEGORIES, ANNOTATIONS, ARRAYS };

typedef struct reading {
    att_context *context;
    att_coco *coco;
    att_coco_results *results;
    const att_coco *known; /* of results */
    int image_room, category_room, box_room;
} reading;

/* --- members ------------------------------------------------------------------------------------------------------ */

static att_status fail_member(const reading *r, const char *what, const char *key, const char *expected)
{
    return att_fail(r->context, ATT_ERR_FORMAT, "%s: \"%s\" must be %s", what, key, expected);
}

/* An id: a whole number, also written as 7.0. */
static att_status read_id(const reading *r, const char *what, const json_t *object, const char *key, int64_t *id)
{
    enum { EXACT = 53 };
    const json_t *value = json_object_get(object, key);
    const double number = json_number_value(value);
    if (json_is_integer(value))
        *id = json_integer_value(value);
    else if (json_is_real(value) && number == floor(number) && fabs(number) <= ldexp(1, EXACT))
        *id = (int64_t)number;
    else
        return fail_member(r, what, key, "a whole number");
    return ATT_OK;
}

static att_status read_number(const reading *r, const char *what, const json_t *object, const char *key, double *number)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return fail_member(r, what, key, "a number");
    *number = json_number_value(value);
    return ATT_OK;
}

static att_status read_box(const reading *r, const char *what, const json_t *object, att_coco_box *box)
{
    const json_t *list = json_object_get(object, "bbox");
    double *const sides[] = {&box->x, &box->y, &box->width, &box->height};
    bool valid = json_array_size(list) == 4;
    for (size_t i = 0; valid && i < 4; i++) {
        const json_t *side = json_array_get(list, i);
        valid = json_is_number(side);
        *sides[i] = json_number_value(side);
    }
    return valid ? ATT_OK : fail_member(r, what, "bbox", "four numbers: left, top, width, height");
}

static bool is_empty(const att_coco_box *box)
{
    return box->width <= 0 || box->height <= 0;
}

static att_status add_box(reading *r, att_coco_box **boxes, int *count, const att_coco_box *box)
{
    if (!att_list_grow(r->context, boxes, *count, &r->box_room, sizeof **boxes))
        return att_fail_memory(r->context, sizeof **boxes, "the boxes of a file");
    (*boxes)[(*count)++] = *box;
    return ATT_OK;
}

/* --- annotations -------------------------------------------------------------------------------------------------- */

/* Copies a text into the arena. Returns NULL if memory is exhausted. */
static const char *copy_text(att_coco *coco, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? att_arena_string(&coco->arena, text) : "";
}

static int read_side(const json_t *object, const char *key)
{
    const double side = json_number_value(json_object_get(object, key));
    return side > 0 && side <= INT_MAX && side == floor(side) ? (int)side : 0;
}

/* As att_json_array.element. */
static att_status take_image(void *user, const char *what, const json_t *element, int64_t index)
{
    reading *r = user;
    att_coco *coco = r->coco;
    att_coco_image image = {.width = read_side(element, "width"), .height = read_side(element, "height")};
    (void)index;
    ATT_TRY(read_id(r, what, element, "id", &image.id));
    image.file = copy_text(coco, element, "file_name");
    if (!image.file || !att_list_grow(r->context, &coco->images, coco->image_count, &r->image_room, sizeof image))
        return att_fail_memory(r->context, sizeof image, "the images of a file");
    coco->images[coco->image_count++] = image;
    return ATT_OK;
}

static att_status take_category(void *user, const char *what, const json_t *element, int64_t index)
{
    reading *r = user;
    att_coco *coco = r->coco;
    att_coco_category category;
    (void)index;
    ATT_TRY(read_id(r, what, element, "id", &category.id));
    category.name = copy_text(coco, element, "name");
    category.parent = copy_text(coco, element, "supercategory");
    if (!category.name || !category.parent ||
        !att_list_grow(r->context, &coco->categories, coco->category_count, &r->category_room, sizeof category))
        return att_fail_memory(r->context, sizeof category, "the categories of a file");
    coco->categories[coco->category_count++] = category;
    return ATT_OK;
}

static bool is_crowd(const json_t *element)
{
    const json_t *value = json_object_get(element, "iscrowd");
    return json_is_true(value) || json_number_value(value) != 0;
}

static att_status take_annotation(void *user, const char *what, const json_t *element, int64_t index)
{
    reading *r = user;
    att_coco_box box = {.id = -1, .crowd = is_crowd(element)};
    (void)index;
    if (json_object_get(element, "id"))
        ATT_TRY(read_id(r, what, element, "id", &box.id));
    ATT_TRY(read_id(r, what, element, "image_id", &box.image));
    ATT_TRY(read_id(r, what, element, "category_id", &box.category));
    ATT_TRY(read_box(r, what, element, &box));
    box.area = box.width * box.height;
    r->coco->empty += is_empty(&box);
    if (json_object_get(element, "area"))
        ATT_TRY(read_number(r, what, element, "area", &box.area));
    else
        r->coco->without_area++;
    return add_box(r, &r->coco->boxes, &r->coco->box_count, &box);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Both begin with an id. */
static att_status sort_ids(att_context *context, const char *path, const char *kind, void *items, int count,
                           size_t size)
{
    if (count > 0)
        qsort(items, (size_t)count, size, compare_ids);
    for (int i = 1; i < count; i++) {
        const int64_t *id = (const void *)((const char *)items + (size_t)i * size);
        if (compare_ids(id, (const char *)id - size) == 0)
            return att_fail(context, ATT_ERR_FORMAT, "%s: two %s have the id %" PRId64, path, kind, *id);
    }
    return ATT_OK;
}

static int64_t find_id(const void *items, int count, size_t size, int64_t id)
{
    const char *found = count > 0 ? bsearch(&id, items, (size_t)count, size, compare_ids) : NULL;
    return found ? (found - (const char *)items) / (int64_t)size : -1;
}

static int64_t find_image(const att_coco *coco, int64_t id)
{
    return find_id(coco->images, coco->image_count, sizeof *coco->images, id);
}

static int64_t find_category(const att_coco *coco, int64_t id)
{
    return find_id(coco->categories, coco->category_count, sizeof *coco->categories, id);
}

static void leave_out(att_coco_left_out *left_out, int64_t id)
{
    if (left_out->count++ == 0)
        left_out->first = id;
}

/* Replaces ids by indices, and drops annotations of what the file does not list. */
static void resolve(att_coco *coco)
{
    int count = 0;
    for (int i = 0; i < coco->box_count; i++) {
        att_coco_box box = coco->boxes[i];
        box.image = find_image(coco, box.image);
        box.category = find_category(coco, box.category);
        if (box.image < 0)
            leave_out(&coco->without_image, box.id);
        else if (box.category < 0)
            leave_out(&coco->without_category, box.id);
        if (box.image >= 0 && box.category >= 0)
            coco->boxes[count++] = box;
    }
    coco->box_count = count;
}

static att_status read_all(reading *r, const char *path)
{
    att_coco *coco = r->coco;
    att_json_array arrays[ARRAYS] = {[IMAGES] = {.name = "images", .element = take_image},
                                     [CATEGORIES] = {.name = "categories", .element = take_category},
                                     [ANNOTATIONS] = {.name = "annotations", .element = take_annotation}};
    ATT_TRY(att_json_read_arrays(r->context, path, arrays, ARRAYS, r));
    for (int i = 0; i < ARRAYS; i++)
        if (!arrays[i].found)
            return att_fail(
                r->context, ATT_ERR_FORMAT,
                "%s has no list \"%s\"; expected COCO's annotations, with images, categories and annotations", path,
                arrays[i].name);
    ATT_TRY(sort_ids(r->context, path, "images", coco->images, coco->image_count, sizeof *coco->images));
    ATT_TRY(sort_ids(r->context, path, "categories", coco->categories, coco->category_count, sizeof *coco->categories));
    resolve(coco);
    return ATT_OK;
}

att_status att_coco_read(att_context *context, const char *path, att_coco *coco)
{
    *coco = (att_coco){.arena = {.context = context}};
    reading r = {.context = context, .coco = coco};
    att_status status = read_all(&r, path);
    if (status != ATT_OK)
        att_coco_free(coco);
    return status;
}

void att_coco_free(att_coco *coco)
{
    att_context *context = coco->arena.context;
    att_free(context, coco->images);
    att_free(context, coco->categories);
    att_free(context, coco->boxes);
    att_arena_free(&coco->arena);
    *coco = (att_coco){.arena = {.context = context}};
}

/* --- detections --------------------------------------------------------------------------------------------------- */

static att_status refuse_kind(const reading *r, const char *what, const json_t *element)
{
    static const char *const kinds[] = {"segmentation", "keypoints"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(element, kinds[i]) && !json_object_get(element, "bbox"))
            return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                            "%s has \"%s\" and no \"bbox\"; attscope evaluates boxes only", what, kinds[i]);
    if (json_object_get(element, "boxes") && !json_object_get(element, "bbox"))
        return att_fail(
            r->context, ATT_ERR_FORMAT,
            "%s has a list \"boxes\" for a photograph, as attscope predict --json writes; expected a list of "
            "single boxes, which jq '[.[].boxes[]]' makes of such a file",
            what);
    return ATT_OK;
}

static att_status take_result(void *user, const char *what, const json_t *element, int64_t index)
{
    reading *r = user;
    att_coco_box box = {0};
    int64_t image, category;
    (void)index;
    ATT_TRY(refuse_kind(r, what, element));
    ATT_TRY(read_id(r, what, element, "image_id", &image));
    ATT_TRY(read_id(r, what, element, "category_id", &category));
    ATT_TRY(read_box(r, what, element, &box));
    ATT_TRY(read_number(r, what, element, "score", &box.score));
    box.area = box.width * box.height;
    box.image = find_image(r->known, image);
    box.category = find_category(r->known, category);
    if (box.image < 0)
        return att_fail(r->context, ATT_ERR_MISMATCH,
                        "%s: the annotations have no image with the id %" PRId64
                        "; are these the annotations of another split?",
                        what, image);
    if (box.category < 0) {
        r->results->without_category++;
        return ATT_OK;
    }
    r->results->empty += is_empty(&box);
    return add_box(r, &r->results->boxes, &r->results->box_count, &box);
}

att_status att_coco_read_results(att_context *context, const char *path, const att_coco *coco,
                                 att_coco_results *results)
{
    att_json_array array = {.element = take_result};
    *results = (att_coco_results){0};
    reading r = {.context = context, .results = results, .known = coco};
    att_status status = att_json_read_arrays(context, path, &array, 1, &r);
    if (status != ATT_OK) {
        att_free(context, results->boxes);
        *results = (att_coco_results){0};
    }
    return status;
}
