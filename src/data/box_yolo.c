/* Boxes in YOLO's text files, one for each photograph with objects. Each line is the class's number, then the box's
 * centre x, centre y, width and height as shares of the image's sides: "0 0.5 0.5 0.2 0.3". */
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/yaml.h"
#include "data/box_pairs.h"
#include "data/box_set.h"

enum { CLASS, CENTRE_X, CENTRE_Y, WIDTH, HEIGHT, COLUMNS };
enum { MAX_BYTES = 16 << 20, MAX_CLASSES = 1 << 16 };

typedef struct reading {
    att_context *context;
    att_box_set *set;
    int64_t most;       /* the largest class */
    const char *file;   /* with that class */
    int64_t background; /* photographs without a file */
} reading;

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Splits a line into words, in place. Returns their number, at most one more than COLUMNS. */
static int split_words(char *line, char *words[COLUMNS + 1])
{
    int count = 0;
    for (char *at = line + strspn(line, " \t\r"); *at && count <= COLUMNS; at += strspn(at, " \t\r")) {
        words[count++] = at;
        at += strcspn(at, " \t\r");
        if (*at)
            *at++ = '\0';
    }
    return count;
}

static bool is_share(double value)
{
    enum { MOST = 2 }; /* boxes may reach out of their photograph, but pixels are larger */
    return value > -1 && value < MOST;
}

/* Reads a line with words. Returns NULL, or what is wrong with it. */
static const char *read_line(char *words[COLUMNS + 1], int count, int64_t *class, double shares[COLUMNS])
{
    if (count > COLUMNS)
        return "has more than five numbers; polygons, keypoints and detections are not read, only boxes: class, "
               "centre x, centre y, width, height";
    if (count < COLUMNS || !att_text_to_i64(words[CLASS], class) || *class < 0)
        return "is no box; expected the class's number, centre x, centre y, width, height";
    if (*class >= MAX_CLASSES)
        return "has a class beyond 65535";
    for (int i = CENTRE_X; i < COLUMNS; i++)
        if (!att_text_to_f64(words[i], &shares[i]) || !is_share(shares[i]))
            return "has numbers that are no shares of the image's sides; expected centre x, centre y, width and height "
                   "from 0 to 1, not in pixels";
    return NULL;
}

static att_status add_line(reading *r, const char *file, char *line, int number)
{
    char *words[COLUMNS + 1];
    double shares[COLUMNS];
    int64_t class = 0;
    const int count = split_words(line, words);
    const char *wrong = count > 0 ? read_line(words, count, &class, shares) : NULL;
    if (wrong)
        return att_fail(r->context, ATT_ERR_FORMAT, "%s: line %d %s", file, number, wrong);
    if (count == 0)
        return ATT_OK;
    const att_boxed_photograph *photograph = &r->set->photographs[r->set->count - 1];
    att_true_box box = {.width = shares[WIDTH] * photograph->width,
                        .height = shares[HEIGHT] * photograph->height,
                        .id = number,
                        .label = (int32_t) class};
    box.x = shares[CENTRE_X] * photograph->width - box.width / 2;
    box.y = shares[CENTRE_Y] * photograph->height - box.height / 2;
    box.area = box.width * box.height;
    if (class > r->most) {
        r->most = class;
        r->file = file;
    }
    return att_box_set_add(r->set, file, &box);
}

static att_status add_lines(reading *r, att_arena *arena, const char *file, char *text, size_t size)
{
    const char **lines;
    int count;
    ATT_TRY(att_text_lines(arena, file, text, size, &lines, &count));
    for (int i = 0; i < count; i++)
        ATT_TRY(add_line(r, file, text + (lines[i] - text), i + 1));
    return ATT_OK;
}

static att_status add_photograph(reading *r, const att_box_pair *pair)
{
    char *text;
    size_t size;
    ATT_TRY(att_box_set_photograph(r->set, pair->photograph, r->set->count, 0, 0));
    if (!pair->annotations) {
        r->background++;
        return ATT_OK;
    }
    ATT_TRY(att_file_read(r->context, pair->annotations, MAX_BYTES, &text, &size));
    att_arena arena = {.context = r->context};
    att_status status = add_lines(r, &arena, pair->annotations, text, size);
    att_arena_free(&arena);
    att_free(r->context, text);
    return status;
}

static bool looks(char *text)
{
    char *words[COLUMNS + 1];
    double shares[COLUMNS];
    int64_t class;
    text += strspn(text, " \t\r\n");
    text[strcspn(text, "\n")] = '\0';
    const int count = split_words(text, words);
    return count == COLUMNS && !read_line(words, count, &class, shares);
}

static bool is(const att_file_place *place)
{
    return att_box_pairs_look(place, ".txt", looks);
}

/* --- names of classes --------------------------------------------------------------------------------------------- */

static att_status keep_name(att_box_set *set, const char *name)
{
    set->names[set->class_count] = att_arena_string(&set->arena, name);
    return set->names[set->class_count++] ? ATT_OK
                                          : att_fail_memory(set->arena.context, strlen(name), "names of classes");
}

static att_status allocate_names(att_box_set *set, int count)
{
    const size_t bytes = ((size_t)count + 1) * sizeof *set->names;
    set->names = att_arena_allocate(&set->arena, bytes);
    return set->names ? ATT_OK : att_fail_memory(set->arena.context, bytes, "names of classes");
}

/* Takes "names: [a, b]". */
static att_status take_names(att_box_set *set, const att_yaml_entry *entry)
{
    ATT_TRY(allocate_names(set, entry->value_count));
    for (int i = 0; i < entry->value_count; i++)
        ATT_TRY(keep_name(set, entry->values[i]));
    return ATT_OK;
}

static bool is_name(const att_yaml_entry *entry)
{
    return strncmp(entry->key, "names.", strlen("names.")) == 0;
}

/* Takes "names: {0: a, 1: b}", whose numbers must follow each other. */
static att_status take_numbered_names(att_box_set *set, const char *path, const att_yaml *yaml)
{
    ATT_TRY(allocate_names(set, att_yaml_count(yaml)));
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        const att_yaml_entry entry = att_yaml_at(yaml, i);
        int64_t number;
        if (!is_name(&entry))
            continue;
        if (!att_text_to_i64(entry.key + strlen("names."), &number) || number != set->class_count ||
            entry.value_count != 1)
            return att_fail(set->arena.context, ATT_ERR_FORMAT,
                            "%s, line %d: expected the name of class %d, as the classes are 0, 1, 2, ...", path,
                            entry.line, set->class_count);
        ATT_TRY(keep_name(set, entry.values[0]));
    }
    return ATT_OK;
}

static att_status take_yaml(att_box_set *set, const char *path, const att_yaml *yaml)
{
    bool numbered = false;
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        const att_yaml_entry entry = att_yaml_at(yaml, i);
        numbered = numbered || is_name(&entry);
        if (strcmp(entry.key, "names") == 0 && entry.kind == ATT_YAML_LIST)
            return take_names(set, &entry);
    }
    return numbered ? take_numbered_names(set, path, yaml)
                    : att_fail(set->arena.context, ATT_ERR_FORMAT,
                               "%s has no \"names\"; expected a list of the classes' names", path);
}

static att_status read_yaml(att_box_set *set, const char *path)
{
    att_yaml *yaml;
    ATT_TRY(att_yaml_read(set->arena.context, path, &yaml));
    att_status status = take_yaml(set, path, yaml);
    att_yaml_destroy(&yaml);
    return status;
}

/* Reads a file with a name on each line. */
static att_status read_list(att_box_set *set, const char *path)
{
    att_class_list list = {.count = 0};
    att_status status = att_class_list_read(set->arena.context, path, &list);
    if (status == ATT_OK)
        status = allocate_names(set, list.count);
    for (int c = 0; status == ATT_OK && c < list.count; c++)
        status = keep_name(set, list.names[c]);
    att_class_list_free(&list);
    return status;
}

/* Reads the names beside the folders, or beside the text files. Leaves them out if there is no file of names. */
static att_status read_names(att_box_set *set)
{
    static const struct {
        const char *name;
        att_status (*read)(att_box_set *set, const char *path);
    } files[] = {{"data.yaml", read_yaml}, {"dataset.yaml", read_yaml}, {"classes.txt", read_list},
                 {"obj.names", read_list}, {"names.txt", read_list},    {"_darknet.labels", read_list},
                 {"labels.txt", read_list}};
    const char *const folders[] = {set->place.root, set->place.annotations};
    for (size_t i = 0; i < 2 * sizeof files / sizeof *files; i++) {
        char path[ATT_DATA_MAX_NAME];
        if (!att_file_exists_in(folders[i % 2], files[i / 2].name))
            continue;
        ATT_TRY(att_path_join(set->arena.context, folders[i % 2], files[i / 2].name, path, sizeof path));
        return files[i / 2].read(set, path);
    }
    return ATT_OK;
}

static att_status number_classes(reading *r)
{
    att_box_set *set = r->set;
    ATT_TRY(read_names(set));
    set->unnamed = set->class_count == 0;
    if (set->unnamed) {
        set->class_count = (int)r->most + 1;
        set->names = att_class_numbers(&set->arena, set->class_count);
        return set->names
                   ? ATT_OK
                   : att_fail_memory(r->context, (size_t)set->class_count * sizeof *set->names, "names of classes");
    }
    return r->most < set->class_count ? ATT_OK
                                      : att_fail(r->context, ATT_ERR_FORMAT,
                                                 "%s has the class %lld, but there are names for %d classes, 0 to %d",
                                                 r->file, (long long)r->most, set->class_count, set->class_count - 1);
}

static void log_left_out(const reading *r, const att_box_pairs *pairs)
{
    const char *root = r->set->place.root;
    if (r->background > 0)
        att_log(r->context, ATT_LOG_INFO, "%s: %lld image%s without a text file count%s as without objects", root,
                (long long)r->background, r->background == 1 ? "" : "s", r->background == 1 ? "s" : "");
    if (pairs->alone > 0)
        att_log(r->context, ATT_LOG_WARNING, "%s: left out %lld text file%s without an image; the first is %s", root,
                (long long)pairs->alone, pairs->alone == 1 ? "" : "s", pairs->first_alone);
}

static att_status read_yolo(att_box_set *set)
{
    reading r = {.context = set->arena.context, .set = set, .most = -1};
    att_box_pairs pairs;
    ATT_TRY(att_box_pairs_list(&set->arena, &set->place, ".txt", &pairs));
    for (int64_t i = 0; i < pairs.count; i++)
        ATT_TRY(add_photograph(&r, &pairs.pairs[i]));
    log_left_out(&r, &pairs);
    return number_classes(&r);
}

const att_box_format att_box_yolo = {.unit = "line", .is = is, .read = read_yolo};
