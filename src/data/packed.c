#include "data/packed.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/archive.h"
#include "base/io/file.h"
#include "data/packed_pickle.h"

/* FIRST_FILES: how many files of an archive are examined. The official archives have at most ten files. */
enum { FIRST_FILES = 12, MAX_LABELS = 256, DIGITS = 4, MAX_FILE_NAME = 64 };
static const size_t max_bytes = (size_t)512 << 20; /* limit of one file; STL-10's largest has 221 MB */

typedef struct packed_source {
    const att_packed_layout *layout;
    const att_packed_split *split;
    int version;
    char folder[ATT_DATA_MAX_NAME]; /* the folder of the files; "" if they are in `archive`, which is open only while
                                       the data set is opened */
    att_archive *archive;
    uint8_t *pixels; /* [count][side][side][3] */
    int64_t count;
    int64_t begins[ATT_PACKED_FILES + 1]; /* index of the first image of each file */
} packed_source;

/* --- finding the files ------------------------------------------------------------------------------------------- */

/* Writes "a/b". Returns false if the result does not fit. */
static bool join(char *text, size_t size, const char *a, const char *b)
{
    int length = snprintf(text, size, "%s/%s", a, b);
    return length >= 0 && (size_t)length < size;
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool has_file(const char *folder, const char *file)
{
    char path[ATT_DATA_MAX_NAME];
    return join(path, sizeof path, folder, file) && is_file(path);
}

/* Returns the file's name in a version, given its name in the binary version. Writes it to `text`. */
static const char *version_file_name(int version, const char *file, char text[MAX_FILE_NAME])
{
    size_t length = strlen(file);
    if (version == ATT_PACKED_PYTHON)
        length -= strlen(".bin");
    snprintf(text, MAX_FILE_NAME, "%.*s", (int)length, file);
    return text;
}

/* The first file of split number `split`. */
static const char *first_file(const att_packed_layout *layout, int version, int split, char text[MAX_FILE_NAME])
{
    return version_file_name(version, layout->splits[split].files[0], text);
}

static bool has_files(const att_packed_layout *layout, int version, const char *folder)
{
    const att_packed_version *it = &layout->versions[version];
    char train[MAX_FILE_NAME], test[MAX_FILE_NAME];
    if (!it->archive || (!has_file(folder, first_file(layout, version, 0, train)) &&
                         !has_file(folder, first_file(layout, version, 1, test))))
        return false;
    return it->unique_names || strcmp(att_path_last(folder), it->folder) == 0 || has_file(folder, it->class_names);
}

/* Finds the folder of a version's files: `path`, or the folder with the official name inside `path`. Returns false if
 * neither contains the files. */
static bool find_folder(const att_packed_layout *layout, int version, const char *path, char *folder, size_t size)
{
    int length = snprintf(folder, size, "%s", path);
    if (length < 0 || (size_t)length >= size || !layout->versions[version].archive)
        return false;
    return has_files(layout, version, path) ||
           (join(folder, size, path, layout->versions[version].folder) && has_files(layout, version, folder));
}

/* Whether a member's path is "<folder>/<name>" or ends in "/<folder>/<name>". */
static bool path_ends_in(const char *path, const char *folder, const char *name)
{
    size_t whole = strlen(path), tail = strlen(folder) + 1 + strlen(name);
    if (whole < tail || strcmp(att_path_last(path), name) != 0)
        return false;
    const char *from = path + (whole - tail);
    return strncmp(from, folder, strlen(folder)) == 0 && from[strlen(folder)] == '/' &&
           (from == path || from[-1] == '/');
}

/* Whether a member's path proves that the archive is of this version. */
static bool is_of_version(const att_packed_layout *layout, int version, const char *path)
{
    const att_packed_version *it = &layout->versions[version];
    if (!it->archive)
        return false;
    for (int split = 0; split < 2; split++) {
        char name[MAX_FILE_NAME];
        if (strcmp(att_path_last(path), first_file(layout, version, split, name)) == 0 &&
            (it->unique_names || path_ends_in(path, it->folder, name)))
            return true;
    }
    return path_ends_in(path, it->folder, it->class_names);
}

static bool is_of_layout(void *user, const char *path)
{
    return is_of_version(user, ATT_PACKED_BINARY, path) || is_of_version(user, ATT_PACKED_PYTHON, path);
}

static bool holds_archive(const att_packed_layout *layout, int version, const char *path)
{
    return layout->versions[version].archive && has_file(path, layout->versions[version].archive);
}

bool att_packed_accepts(const att_packed_layout *layout, const att_dataset *dataset)
{
    const char *path = dataset->path;
    char folder[ATT_DATA_MAX_NAME];
    if (is_file(path))
        return att_archive_begins_with(dataset->context, path, FIRST_FILES, is_of_layout, (void *)(uintptr_t)layout);
    for (int version = 0; version < ATT_PACKED_VERSIONS; version++)
        if (find_folder(layout, version, path, folder, sizeof folder) ||
            (holds_archive(layout, version, path) && !att_holds_folder(path)))
            return true;
    return false;
}

typedef struct needed_files {
    const att_dataset *dataset;
    const packed_source *source;
    unsigned seen[ATT_PACKED_VERSIONS]; /* bit i: needed file number i was found */
} needed_files;

/* Name of needed file number `index`: first the images, then the class names, then the labels. NULL past the last. */
static const char *needed_file(const packed_source *source, int version, int index, char text[MAX_FILE_NAME])
{
    int images = 0;
    while (images < ATT_PACKED_FILES && source->split->files[images])
        images++;
    if (index < images)
        return version_file_name(version, source->split->files[index], text);
    if (index == images)
        return source->layout->versions[version].class_names;
    return index == images + 1 ? source->split->labels : NULL;
}

/* Returns the number of the needed file that a member's path names; -1 if the file is not needed. The file names of the
 * Python version are so general that a file counts only in the folder with the official name. */
static int needed_index(const packed_source *source, int version, const char *path)
{
    const att_packed_version *it = &source->layout->versions[version];
    const char *name;
    char text[MAX_FILE_NAME];
    if (!it->archive)
        return -1;
    for (int i = 0; (name = needed_file(source, version, i, text)); i++)
        if (version == ATT_PACKED_PYTHON ? path_ends_in(path, it->folder, name)
                                         : strcmp(att_path_last(path), name) == 0)
            return i;
    return -1;
}

/* Loads the needed files. If a file appears twice, the second one is listed but not loaded, and check_once() refuses
 * the archive. */
static att_status choose(void *user, const char *path, size_t size, att_archive_use *use)
{
    needed_files *files = user;
    int version = ATT_PACKED_BINARY, index = needed_index(files->source, version, path);
    if (index < 0) {
        version = ATT_PACKED_PYTHON;
        index = needed_index(files->source, version, path);
    }
    if (index < 0) {
        *use = ATT_ARCHIVE_IGNORE;
        return ATT_OK;
    }
    if (size > max_bytes)
        return att_fail(files->dataset->context, ATT_ERR_FORMAT,
                        "%s in %s: %zu bytes; expected at most the %zu that such a file can have", path,
                        files->dataset->path, size, max_bytes);
    if (files->seen[version] & 1U << index)
        *use = ATT_ARCHIVE_LIST;
    files->seen[version] |= 1U << index;
    return ATT_OK;
}

static att_status check_once(const att_dataset *dataset, const att_archive *archive)
{
    for (int64_t i = 1; i < att_archive_count(archive); i++)
        for (int64_t j = 0; j < i; j++) {
            const char *one = att_archive_name(archive, j), *other = att_archive_name(archive, i);
            if (strcmp(att_path_last(one), att_path_last(other)) == 0)
                return att_fail(dataset->context, ATT_ERR_FORMAT,
                                "%s has two files %s, %s and %s; expected one data set in it", dataset->path,
                                att_path_last(one), one, other);
        }
    return ATT_OK;
}

static att_status open_archive(const att_dataset *dataset, packed_source *source, const char *path, size_t cache_bytes)
{
    needed_files files = {.dataset = dataset, .source = source};
    source->folder[0] = '\0';
    ATT_TRY(att_archive_open_some(dataset->context, path, cache_bytes, choose, &files, &source->archive));
    source->version =
        files.seen[ATT_PACKED_BINARY] || !files.seen[ATT_PACKED_PYTHON] ? ATT_PACKED_BINARY : ATT_PACKED_PYTHON;
    return check_once(dataset, source->archive);
}

/* Finds the files: in the archive `path`, in the folder `path`, or in the official archive inside that folder. */
static att_status find_files(const att_dataset *dataset, packed_source *source, size_t cache_bytes)
{
    const att_packed_layout *layout = source->layout;
    char archive[ATT_DATA_MAX_NAME];
    if (is_file(dataset->path))
        return open_archive(dataset, source, dataset->path, cache_bytes);
    for (source->version = 0; source->version < ATT_PACKED_VERSIONS; source->version++)
        if (find_folder(layout, source->version, dataset->path, source->folder, sizeof source->folder))
            return ATT_OK;
    for (source->version = 0; source->version < ATT_PACKED_VERSIONS; source->version++)
        if (holds_archive(layout, source->version, dataset->path) &&
            join(archive, sizeof archive, dataset->path, layout->versions[source->version].archive))
            return open_archive(dataset, source, archive, cache_bytes);
    return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s has changed since it was found to be %s", dataset->path,
                    layout->kind);
}

/* --- reading them ------------------------------------------------------------------------------------------------ */

static int64_t member_of(const att_archive *archive, const char *name)
{
    int64_t member = att_archive_count(archive) - 1;
    while (member >= 0 && strcmp(att_path_last(att_archive_name(archive, member)), name) != 0)
        member--;
    return member;
}

static att_status read_member(const att_dataset *dataset, const packed_source *source, const char *name, char **bytes,
                              size_t *size)
{
    att_context *context = dataset->context;
    int64_t member = member_of(source->archive, name);
    *size = att_archive_size(source->archive, member);
    *bytes = att_reallocate(context, NULL, *size + 1);
    if (!*bytes)
        return att_fail_memory(context, *size + 1, name);
    (*bytes)[*size] = '\0';
    att_status status = att_archive_read(source->archive, context, member, *bytes);
    if (status != ATT_OK)
        att_free(context, *bytes);
    return status;
}

/* Reads a whole file, which exists, and appends a NUL. The caller owns *bytes. */
static att_status read_file(const att_dataset *dataset, const packed_source *source, const char *name, char **bytes,
                            size_t *size)
{
    char path[ATT_DATA_MAX_NAME];
    if (source->archive)
        return read_member(dataset, source, name, bytes, size);
    if (!join(path, sizeof path, source->folder, name))
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED, "%s: its name is too long", source->folder);
    return att_file_read(dataset->context, path, max_bytes, bytes, size);
}

static bool file_exists(const packed_source *source, const char *name)
{
    return source->archive ? member_of(source->archive, name) >= 0 : has_file(source->folder, name);
}

static att_status check_file(const att_dataset *dataset, const packed_source *source, const char *name)
{
    if (file_exists(source, name))
        return ATT_OK;
    return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s has no %s", dataset->path, name);
}

/* Checks that all files of images and labels exist, before any of them is read. */
static att_status check_files(const att_dataset *dataset, const packed_source *source)
{
    char name[MAX_FILE_NAME];
    for (int i = 0; i < ATT_PACKED_FILES && source->split->files[i]; i++)
        ATT_TRY(check_file(dataset, source, version_file_name(source->version, source->split->files[i], name)));
    return source->split->labels ? check_file(dataset, source, source->split->labels) : ATT_OK;
}

static size_t image_bytes(const att_packed_layout *layout)
{
    return (size_t)layout->side * (size_t)layout->side * 3;
}

static size_t record_bytes(const att_packed_layout *layout, const att_packed_split *split)
{
    return image_bytes(layout) + (split->labels ? 0 : (size_t)layout->label_bytes);
}

/* Converts three planes to interleaved RGB pixels, row by row. */
static void interleave(const att_packed_layout *layout, const uint8_t *planes, uint8_t *pixels)
{
    int side = layout->side;
    size_t plane = (size_t)side * (size_t)side;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            size_t at =
                layout->column_major ? (size_t)x * (size_t)side + (size_t)y : (size_t)y * (size_t)side + (size_t)x;
            uint8_t *to = pixels + ((size_t)y * (size_t)side + (size_t)x) * 3;
            for (size_t c = 0; c < 3; c++)
                to[c] = planes[c * plane + at];
        }
}

static att_status grow_pixels(const att_dataset *dataset, packed_source *source, int64_t more)
{
    int64_t count = source->count + more;
    size_t bytes = att_size_product((size_t)count, image_bytes(source->layout));
    uint8_t *pixels = att_reallocate(dataset->context, source->pixels, bytes);
    if (!pixels)
        return att_fail_memory(dataset->context, bytes, dataset->path);
    source->pixels = pixels;
    return ATT_OK;
}

/* Sets the label of image `index` of the data set, which is image `number` of the file. */
static att_status set_label(att_dataset *dataset, const packed_source *source, const char *file, int64_t number,
                            int64_t index, int label)
{
    const att_packed_layout *layout = source->layout;
    int class = label - layout->first_label;
    if (class < 0 || class >= layout->classes)
        return att_fail(dataset->context, ATT_ERR_FORMAT, "%s in %s: image %lld has label %d, expected %d to %d", file,
                        dataset->path, (long long)number, label, layout->first_label,
                        layout->first_label + layout->classes - 1);
    dataset->labels[index] = class;
    return ATT_OK;
}

static att_status grow_labels(att_dataset *dataset, int64_t count)
{
    size_t bytes = att_size_product((size_t)count, sizeof *dataset->labels);
    int32_t *labels = att_reallocate(dataset->context, dataset->labels, bytes);
    if (!labels)
        return att_fail_memory(dataset->context, bytes, dataset->path);
    dataset->labels = labels;
    return ATT_OK;
}

static att_status add_records(att_dataset *dataset, packed_source *source, const char *file, const uint8_t *bytes,
                              size_t size)
{
    const att_packed_layout *layout = source->layout;
    size_t record = record_bytes(layout, source->split), before = record - image_bytes(layout);
    if (size == 0 || size % record != 0)
        return att_fail(dataset->context, ATT_ERR_FORMAT,
                        "%s in %s: the size, %zu bytes, is not a multiple of the image size, %zu bytes", file,
                        dataset->path, size, record);
    int64_t more = (int64_t)(size / record), first = source->count;
    ATT_TRY(grow_pixels(dataset, source, more));
    ATT_TRY(grow_labels(dataset, first + more));
    for (int64_t i = 0; i < more; i++) {
        const uint8_t *from = bytes + (size_t)i * record;
        interleave(layout, from + before, source->pixels + (size_t)(first + i) * image_bytes(layout));
        if (before > 0)
            ATT_TRY(set_label(dataset, source, file, i, first + i, from[layout->label_at]));
    }
    source->count += more;
    return ATT_OK;
}

static att_status set_labels(att_dataset *dataset, const packed_source *source, const uint8_t *bytes, size_t size)
{
    const char *file = source->split->labels;
    if ((int64_t)size != source->count)
        return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s in %s: %zu labels for %lld images", file, dataset->path,
                        size, (long long)source->count);
    for (int64_t i = 0; i < source->count; i++)
        ATT_TRY(set_label(dataset, source, file, i, i, bytes[i]));
    return ATT_OK;
}

typedef att_status (*unpickle_function)(att_context *context, const char *path, const att_packed_layout *layout,
                                        const char *bytes, size_t size, char **out, size_t *out_size);

/* Reads a file of the binary version, or converts a pickle of the Python version to the same contents. */
static att_status read_converted(const att_dataset *dataset, const packed_source *source, const char *name,
                                 unpickle_function unpickle, char **bytes, size_t *size)
{
    char path[ATT_DATA_MAX_NAME], *pickle;
    if (source->version == ATT_PACKED_BINARY)
        return read_file(dataset, source, name, bytes, size);
    snprintf(path, sizeof path, "%s in %s", name, dataset->path);
    ATT_TRY(read_file(dataset, source, name, &pickle, size));
    att_status status = unpickle(dataset->context, path, source->layout, pickle, *size, bytes, size);
    att_free(dataset->context, pickle);
    return status;
}

static att_status read_images(att_dataset *dataset, packed_source *source)
{
    for (int i = 0; i < ATT_PACKED_FILES && source->split->files[i]; i++) {
        char *bytes, name[MAX_FILE_NAME];
        size_t size;
        version_file_name(source->version, source->split->files[i], name);
        ATT_TRY(att_check_stop(dataset->context, dataset->path));
        ATT_TRY(read_converted(dataset, source, name, att_packed_unpickle_batch, &bytes, &size));
        source->begins[i] = source->count;
        att_status status = add_records(dataset, source, name, (const uint8_t *)bytes, size);
        att_free(dataset->context, bytes);
        ATT_TRY(status);
    }
    return ATT_OK;
}

static att_status read_labels(att_dataset *dataset, const packed_source *source)
{
    char *bytes;
    size_t size;
    if (!source->split->labels)
        return ATT_OK;
    ATT_TRY(read_file(dataset, source, source->split->labels, &bytes, &size));
    att_status status = set_labels(dataset, source, (const uint8_t *)bytes, size);
    att_free(dataset->context, bytes);
    return status;
}

/* --- classes ----------------------------------------------------------------------------------------------------- */

static att_status make_number_names(const att_dataset *dataset, int count, att_class_list *list)
{
    char digits[MAX_LABELS][DIGITS];
    const char *names[MAX_LABELS];
    for (int i = 0; i < count; i++) {
        snprintf(digits[i], sizeof digits[i], "%d", i & 0xff);
        names[i] = digits[i];
    }
    list->numbering = ATT_NUMBERED_BY_LABELS;
    return att_class_list_make(dataset->context, dataset->path, names, count, list);
}

static att_status read_names(const att_dataset *dataset, const packed_source *source, att_class_list *list)
{
    const att_packed_layout *layout = source->layout;
    const char *file = layout->versions[source->version].class_names;
    char *text;
    size_t size;
    if (!file_exists(source, file))
        return make_number_names(dataset, layout->classes, list);
    ATT_TRY(read_converted(dataset, source, file, att_packed_unpickle_names, &text, &size));
    att_status status = att_class_list_parse(dataset->context, file, text, size, list);
    list->numbering = ATT_NUMBERED_BY_LABELS;
    att_free(dataset->context, text);
    if (status == ATT_OK && list->count != layout->classes)
        return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s in %s names %d class%s, expected %d", file,
                        dataset->path, list->count, list->count == 1 ? "" : "es", layout->classes);
    return status;
}

/* Renumbers the labels by the class map, in which each class is found by its name. */
static att_status renumber(att_dataset *dataset, const packed_source *source, const att_class_list *own,
                           const char *map)
{
    int number[MAX_LABELS];
    ATT_TRY(att_class_list_read(dataset->context, map, &dataset->classes));
    for (int i = 0; i < own->count; i++) {
        number[i] = att_class_list_find(&dataset->classes, own->names[i]);
        if (number[i] < 0)
            return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s: class \"%s\" is not in the class map %s",
                            dataset->path, own->names[i], map);
    }
    for (int64_t i = 0; i < source->count; i++)
        dataset->labels[i] = number[dataset->labels[i]];
    return ATT_OK;
}

static att_status read_classes(att_dataset *dataset, const packed_source *source, const char *map)
{
    if (!map)
        return read_names(dataset, source, &dataset->classes);
    att_class_list own = {.count = 0};
    att_status status = read_names(dataset, source, &own);
    if (status == ATT_OK)
        status = renumber(dataset, source, &own, map);
    att_class_list_free(&own);
    return status;
}

/* --- the format -------------------------------------------------------------------------------------------------- */

att_status att_packed_open(const att_packed_layout *layout, att_dataset *dataset, const att_dataset_options *options)
{
    packed_source *source;
    ATT_TRY(att_new(dataset->context, &source, 1, dataset->path));
    dataset->source = source;
    dataset->kind = layout->kind;
    source->layout = layout;
    source->split = &layout->splits[options->split && strncmp(options->split, "train", 5) != 0];
    dataset->split = source->split->name;
    ATT_TRY(find_files(dataset, source, options->cache_bytes));
    ATT_TRY(check_files(dataset, source));
    ATT_TRY(read_images(dataset, source));
    ATT_TRY(read_labels(dataset, source));
    ATT_TRY(read_classes(dataset, source, options->class_map));
    att_archive_close(&source->archive);
    dataset->count = source->count;
    return ATT_OK;
}

void att_packed_close(att_dataset *dataset)
{
    packed_source *source = dataset->source;
    att_archive_close(&source->archive);
    att_free(dataset->context, source->pixels);
    att_free(dataset->context, source);
}

void att_packed_name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const packed_source *source = dataset->source;
    int file = 0;
    while (file + 1 < ATT_PACKED_FILES && source->split->files[file + 1] && index >= source->begins[file + 1])
        file++;
    char name[MAX_FILE_NAME];
    snprintf(text, size, "%s/%s[%lld]", dataset->path,
             version_file_name(source->version, source->split->files[file], name),
             (long long)(index - source->begins[file]));
}

att_status att_packed_read(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                           const att_image_need *need, att_image *image)
{
    (void)need;
    const packed_source *source = dataset->source;
    int side = source->layout->side;
    size_t bytes = (size_t)side * (size_t)side * (size_t)channels, row = (size_t)side * 3;
    const uint8_t *from = source->pixels + (size_t)index * image_bytes(source->layout);
    att_image copy = {side, side, channels, att_reallocate(context, NULL, bytes)};
    if (!copy.pixels)
        return att_fail_memory(context, bytes, dataset->path);
    for (int y = 0; y < side; y++)
        att_image_put_row(&copy, y, ATT_ROW_RGB, from + (size_t)y * row);
    *image = copy;
    return ATT_OK;
}
