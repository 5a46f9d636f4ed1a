/* Boxes in Pascal VOC's XML, a file for each photograph:
 *
 *     <annotation><size><width>500</width><height>375</height></size>
 *       <object><name>dog</name><difficult>0</difficult>
 *         <bndbox><xmin>1</xmin><ymin>11</ymin><xmax>200</xmax><ymax>375</ymax></bndbox></object></annotation>
 *
 * Pixels are counted from 1, and the box includes those of xmax and ymax (The PASCAL Visual Object Classes Challenge
 * 2012 Development Kit, 2.2): in coordinates of the edges it is xmin - 1 .. xmax. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/xml.h"
#include "data/box_pairs.h"
#include "data/box_set.h"

enum { XMIN, YMIN, XMAX, YMAX, SIDES };
enum { MAX_BYTES = 16 << 20, MAX_CLASSES = 1 << 14 };

/* A class by its name. */
typedef struct named_class {
    const char *name;
    int number; /* before the names are sorted */
} named_class;

/* An element "object". */
typedef struct object {
    int class; /* -1: no name so far */
    bool difficult;
    bool has[SIDES];
    double sides[SIDES];
} object;

typedef struct reading {
    att_context *context;
    att_box_set *set;
    named_class *classes; /* in the order in which they appear */
    int class_count, class_room;
    object *objects; /* of the file that is read */
    int object_count, object_room;
    object current;
    double width, height; /* 0: not said */
    bool annotation;
    const char *file;
    int64_t missing; /* photographs without a file */
    const char *first_missing;
} reading;

static bool looks(char *text)
{
    return strstr(text, "<annotation") != NULL;
}

static bool is(const att_file_place *place)
{
    return att_box_pairs_look(place, ".xml", looks);
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static att_status take_name(reading *r, const char *text)
{
    int c = 0;
    while (c < r->class_count && strcmp(r->classes[c].name, text) != 0)
        c++;
    r->current.class = c;
    if (c < r->class_count)
        return ATT_OK;
    if (c == MAX_CLASSES)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: more than %d classes", r->file, MAX_CLASSES);
    const char *name = att_arena_string(&r->set->arena, text);
    if (!name || !att_list_grow(r->context, &r->classes, r->class_count, &r->class_room, sizeof *r->classes))
        return att_fail_memory(r->context, strlen(text), "names of classes");
    r->classes[r->class_count++] = (named_class){name, c};
    return ATT_OK;
}

static att_status take_number(const reading *r, const char *path, const char *text, int line, double *number)
{
    return att_text_to_f64(text, number)
               ? ATT_OK
               : att_fail(r->context, ATT_ERR_FORMAT, "%s, line %d: %s is \"%s\"; expected a number", r->file, line,
                          att_path_last(path), text);
}

static att_status end_object(reading *r, int line)
{
    static const char *const names[SIDES] = {"xmin", "ymin", "xmax", "ymax"};
    const object *of = &r->current;
    for (int i = 0; i < SIDES; i++)
        if (!of->has[i])
            return att_fail(r->context, ATT_ERR_FORMAT, "%s, line %d: an object without <%s> in <bndbox>", r->file,
                            line, names[i]);
    if (of->class < 0)
        return att_fail(r->context, ATT_ERR_FORMAT, "%s, line %d: an object without a <name>", r->file, line);
    if (!att_list_grow(r->context, &r->objects, r->object_count, &r->object_room, sizeof *of))
        return att_fail_memory(r->context, sizeof *of, "the objects of a file");
    r->objects[r->object_count++] = *of;
    r->current = (object){.class = -1};
    return ATT_OK;
}

/* As att_xml_element. */
static att_status take(void *user, const char *path, const char *text, int line)
{
    static const char *const sides[SIDES] = {"annotation/object/bndbox/xmin", "annotation/object/bndbox/ymin",
                                             "annotation/object/bndbox/xmax", "annotation/object/bndbox/ymax"};
    reading *r = user;
    for (int i = 0; i < SIDES; i++)
        if (strcmp(path, sides[i]) == 0) {
            r->current.has[i] = true;
            return take_number(r, path, text, line, &r->current.sides[i]);
        }
    if (strcmp(path, "annotation/object/name") == 0)
        return take_name(r, text);
    if (strcmp(path, "annotation/object/difficult") == 0)
        r->current.difficult = strcmp(text, "1") == 0;
    if (strcmp(path, "annotation/object") == 0)
        return end_object(r, line);
    if (strcmp(path, "annotation/size/width") == 0)
        return take_number(r, path, text, line, &r->width);
    if (strcmp(path, "annotation/size/height") == 0)
        return take_number(r, path, text, line, &r->height);
    r->annotation = r->annotation || strcmp(path, "annotation") == 0;
    return ATT_OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static att_status parse(reading *r, const char *file)
{
    char *bytes;
    size_t size;
    r->file = file;
    r->object_count = 0;
    r->width = r->height = 0;
    r->current = (object){.class = -1};
    r->annotation = false;
    ATT_TRY(att_file_read(r->context, file, MAX_BYTES, &bytes, &size));
    att_status status = att_xml_parse(r->context, file, bytes, size, take, r);
    att_free(r->context, bytes);
    if (status == ATT_OK && !r->annotation)
        status = att_fail(r->context, ATT_ERR_FORMAT, "%s is no annotation of Pascal VOC; expected <annotation>", file);
    return status;
}

static int side_of(double side)
{
    return side >= 1 && side <= 1 << 24 ? (int)side : 0;
}

static att_status add_photograph(reading *r, const att_box_pair *pair)
{
    ATT_TRY(parse(r, pair->annotations));
    ATT_TRY(att_box_set_photograph(r->set, pair->photograph, r->set->count, side_of(r->width), side_of(r->height)));
    for (int i = 0; i < r->object_count; i++) {
        const object *of = &r->objects[i];
        att_true_box box = {.x = of->sides[XMIN] - 1,
                            .y = of->sides[YMIN] - 1,
                            .id = i + 1,
                            .label = of->class,
                            .crowd = of->difficult};
        box.width = of->sides[XMAX] - box.x;
        box.height = of->sides[YMAX] - box.y;
        box.area = box.width * box.height;
        ATT_TRY(att_box_set_add(r->set, pair->annotations, &box));
    }
    return ATT_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const named_class *)a)->name, ((const named_class *)b)->name);
}

/* Sorts the names, and gives the boxes the numbers of their classes. */
static att_status number_classes(reading *r)
{
    att_box_set *set = r->set;
    const size_t room = (size_t)r->class_count + 1;
    int *numbers = att_allocate_array(r->context, room, sizeof *numbers);
    set->names = att_arena_allocate(&set->arena, room * sizeof *set->names);
    if (!numbers || !set->names) {
        att_free(r->context, numbers);
        return att_fail_memory(r->context, room * sizeof *set->names, "names of classes");
    }
    qsort(r->classes, (size_t)r->class_count, sizeof *r->classes, compare_names);
    for (int c = 0; c < r->class_count; c++) {
        set->names[c] = r->classes[c].name;
        numbers[r->classes[c].number] = c;
    }
    set->class_count = r->class_count;
    for (int i = 0; i < set->box_count; i++)
        set->boxes[i].label = numbers[set->boxes[i].label];
    att_free(r->context, numbers);
    return ATT_OK;
}

/* Reads the names of the classes in the files of other splits, which lie in the same folder. */
static att_status read_others(reading *r, att_arena *arena)
{
    att_file_place all = r->set->place;
    att_box_pairs pairs;
    if (!all.list)
        return ATT_OK;
    all.list = NULL;
    ATT_TRY(att_box_pairs_list(arena, &all, ".xml", &pairs));
    for (int64_t i = 0; i < pairs.count; i++) {
        ATT_TRY(att_check_stop(r->context, all.root));
        if (pairs.pairs[i].annotations)
            ATT_TRY(parse(r, pairs.pairs[i].annotations));
    }
    return ATT_OK;
}

static void warn_left_out(const reading *r, const att_box_pairs *pairs)
{
    const char *root = r->set->place.root;
    if (r->missing > 0)
        att_log(r->context, ATT_LOG_WARNING,
                "%s: left out %lld photograph%s without a file of boxes; the first is %s, which has no .xml in %s",
                root, (long long)r->missing, r->missing == 1 ? "" : "s", r->first_missing, r->set->place.annotations);
    if (pairs->alone > 0)
        att_log(r->context, ATT_LOG_WARNING, "%s: left out %lld file%s of boxes without a photograph; the first is %s",
                root, (long long)pairs->alone, pairs->alone == 1 ? "" : "s", pairs->first_alone);
}

static att_status read_all(reading *r, att_arena *arena)
{
    att_box_pairs pairs;
    ATT_TRY(att_box_pairs_list(&r->set->arena, &r->set->place, ".xml", &pairs));
    for (int64_t i = 0; i < pairs.count; i++) {
        const att_box_pair *pair = &pairs.pairs[i];
        if (pair->annotations)
            ATT_TRY(add_photograph(r, pair));
        else if (r->missing++ == 0)
            r->first_missing = pair->photograph;
    }
    warn_left_out(r, &pairs);
    ATT_TRY(read_others(r, arena));
    return number_classes(r);
}

static att_status read_voc(att_box_set *set)
{
    reading r = {.context = set->arena.context, .set = set};
    att_arena arena = {.context = r.context};
    att_status status = read_all(&r, &arena);
    att_arena_free(&arena);
    att_free(r.context, r.classes);
    att_free(r.context, r.objects);
    return status;
}

const att_box_format att_box_voc = {.unit = "object", .is = is, .read = read_voc};
