/* Images in plain tars, which are read in place: a tar of class folders, a tar for each class, a tar of such tars, and
 * WebDataset shards. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/system.h"
#include "data/annotations.h"
#include "data/tar_list.h"

typedef struct tars_source {
    att_tar_set set;
    att_tar_index index;
    att_class_tree tree; /* not used for shards whose labels are numbers: their images are the entries of the index */
    const char *base;    /* the names of images are this path and that of their entry */
    int *descriptors;    /* [tars]; -1: the tar is opened for each image */
} tars_source;

static bool accepts(const att_dataset *dataset)
{
    return att_tar_set_accepts(dataset->path);
}

static const att_tar_entry *entry_of(const tars_source *source, int64_t image)
{
    return &source->index.entries[source->tree.images.count > 0 ? source->tree.images.files[image].member : image];
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const char *tar_name(const tars_source *source, const att_tar_entry *entry)
{
    return source->index.tars[entry->tar].name;
}

static int open_tar(const tars_source *source, int tar)
{
    char path[ATT_DATA_MAX_NAME];
    struct stat info;
    int length = snprintf(path, sizeof path, "%s/%s", source->set.folder, source->index.tars[tar].name);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return att_system_open_regular(path, O_RDONLY, &info);
}

/* Returns a descriptor of the entry's tar, to be given back to leave_tar(); -1 with errno set. */
static int enter_tar(const tars_source *source, const att_tar_entry *entry)
{
    int kept = source->descriptors[entry->tar];
    return kept >= 0 ? kept : open_tar(source, entry->tar);
}

static void leave_tar(const tars_source *source, const att_tar_entry *entry, int descriptor)
{
    if (source->descriptors[entry->tar] < 0)
        close(descriptor);
}

static att_status read_part(const tars_source *source, att_context *context, const att_tar_entry *entry, int descriptor,
                            char *bytes)
{
    if (!att_tar_unchanged(&source->index.tars[entry->tar], descriptor))
        return att_fail(context, ATT_ERR_IO, "%s/%s has changed since it was opened; start again", source->set.folder,
                        tar_name(source, entry));
    for (size_t done = 0; done < entry->size;) {
        ssize_t got = pread(descriptor, bytes + done, entry->size - done, (off_t)(entry->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return att_fail(context, ATT_ERR_IO, "%s/%s could not be read: %s", source->set.folder,
                            tar_name(source, entry), got < 0 ? strerror(errno) : "it is truncated");
        done += (size_t)got;
    }
    return ATT_OK;
}

/* Reads the bytes of an entry and appends a NUL. The caller owns *bytes. */
static att_status read_entry(const tars_source *source, att_context *context, const att_tar_entry *entry, size_t most,
                             char **bytes)
{
    if (entry->size > most)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s/%s: %llu bytes, more than the limit of %zu", source->base,
                        entry->path, (unsigned long long)entry->size, most);
    int descriptor = enter_tar(source, entry);
    if (descriptor < 0)
        return att_fail(context, ATT_ERR_IO, "%s/%s could not be opened: %s", source->set.folder,
                        tar_name(source, entry), strerror(errno));
    *bytes = att_reallocate(context, NULL, entry->size + 1);
    att_status status = *bytes ? read_part(source, context, entry, descriptor, *bytes)
                               : att_fail_memory(context, entry->size + 1, entry->path);
    leave_tar(source, entry, descriptor);
    if (status == ATT_OK)
        (*bytes)[entry->size] = '\0';
    else
        att_free(context, *bytes);
    return status;
}

static att_status read_text(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text,
                            size_t *size)
{
    const tars_source *source = dataset->source;
    const att_tar_entry *entry = &source->index.entries[file->member];
    *size = (size_t)entry->size;
    return read_entry(source, dataset->context, entry, most, text);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Opens tars as long as they need no more than a quarter of the descriptors that the process may have. */
static att_status open_tars(const att_dataset *dataset, tars_source *source)
{
    struct rlimit limit = {.rlim_cur = 0};
    size_t count = (size_t)source->index.tar_count;
    ATT_TRY(att_new(dataset->context, &source->descriptors, count, "a list of tars"));
    memset(source->descriptors, -1, count * sizeof *source->descriptors);
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 0; i < source->index.tar_count && (rlim_t)i < limit.rlim_cur / 4; i++)
        source->descriptors[i] = open_tar(source, i);
    return ATT_OK;
}

static att_status name_classes(att_dataset *dataset, const att_dataset_options *options, int highest)
{
    att_context *context = dataset->context;
    dataset->classes.map_names = options->class_map != NULL;
    if (options->class_map)
        return att_class_list_read(context, options->class_map, &dataset->classes);
    dataset->classes.numbering = ATT_NUMBERED_BY_LABELS;
    if (highest < options->trained_count)
        return att_class_list_make(context, dataset->path, options->trained, options->trained_count, &dataset->classes);
    return att_class_list_number(context, highest + 1, &dataset->classes);
}

/* Whether the label of a sample is a name. */
static bool is_named(const att_tar_entry *entry)
{
    return *entry->class_name;
}

/* The samples whose labels have one state. */
typedef struct labels_of_state {
    int64_t count;
    att_tar_entry first; /* if there is one */
} labels_of_state;

/* Removes the samples without a label that can be used. */
static void drop_unlabelled(att_tar_index *index, labels_of_state labels[ATT_LABEL_STATES])
{
    int64_t kept = 0;
    for (int64_t i = 0; i < index->count; i++) {
        const att_tar_entry *entry = &index->entries[i];
        labels_of_state *of = &labels[entry->state];
        if (of->count++ == 0)
            of->first = *entry;
        if (entry->state == ATT_LABEL_READ)
            index->entries[kept++] = *entry;
    }
    index->count = kept;
}

static void append_unused(att_text *text, const char *what, const att_tar_unused *unused)
{
    if (unused->count > 0)
        att_text_append(text, "; %s: %lld (first: %s)", what, (long long)unused->count, unused->first);
}

/* Names the samples that were dropped. Returns how many. */
static int64_t append_dropped(att_text *text, const labels_of_state labels[ATT_LABEL_STATES])
{
    static const char *const what[] = {
        [ATT_LABEL_MISSING] = "samples without a label",
        [ATT_LABEL_NO_CLASS] = "samples with a label that is no class",
        [ATT_LABEL_TWO] = "samples with two labels, one in .cls and another in .json",
        [ATT_LABEL_REPEATED] = "samples with the same file twice, so that images and labels cannot be paired"};
    int64_t dropped = 0;
    for (int state = ATT_LABEL_READ + 1; state < ATT_LABEL_STATES; state++) {
        const labels_of_state *of = &labels[state];
        dropped += of->count;
        if (of->count > 0)
            att_text_append(text, "; %s: %lld (first: %s%s%s)", what[state], (long long)of->count, of->first.path,
                            state == ATT_LABEL_NO_CLASS ? " with " : "",
                            state == ATT_LABEL_NO_CLASS ? of->first.class_name : "");
    }
    return dropped;
}

/* Says what the shards have that is not used. Fails if they have nothing else. */
static att_status report_unused(const att_dataset *dataset, const labels_of_state labels[ATT_LABEL_STATES])
{
    static const char used_of[] = "%s: %lld of %lld samples can be used%s";
    const tars_source *source = dataset->source;
    const att_tar_index *index = &source->index;
    att_text text = {.context = dataset->context};
    append_unused(&text, "samples without an image", &index->imageless);
    const int64_t dropped = append_dropped(&text, labels);
    append_unused(&text, "images other than that of their sample", &index->further);
    const long long used = (long long)index->count, all = used + (long long)(index->imageless.count + dropped);
    if (text.length > 0 || used == 0)
        att_text_append(
            &text,
            "; a sample is KEY.jpg, .jpeg, .png or .webp with its label, a class name or a number from 0 to "
            "%d, in KEY.cls or the \"label\" of KEY.json, next to each other and with no dot in KEY",
            ATT_TAR_MOST_LABEL);
    att_status status = ATT_OK;
    if (text.failed)
        status = att_fail_memory(dataset->context, text.length, dataset->path);
    else if (used == 0)
        status = att_fail(dataset->context, ATT_ERR_FORMAT, used_of, dataset->path, used, all, text.data);
    else if (text.length > 0)
        att_log(dataset->context, ATT_LOG_WARNING, used_of, dataset->path, used, all, text.data);
    att_text_free(&text);
    return status;
}

/* Numbers and names together can be read in two ways. *named: whether the labels are names. */
static att_status check_labels(const att_dataset *dataset, bool *named)
{
    const tars_source *source = dataset->source;
    const att_tar_entry *entries = source->index.entries;
    *named = is_named(&entries[0]);
    for (int64_t i = 1; i < source->index.count; i++) {
        const att_tar_entry *name = &entries[*named ? 0 : i], *number = &entries[*named ? i : 0];
        if (is_named(&entries[i]) != *named)
            return att_fail(dataset->context, ATT_ERR_FORMAT,
                            "%s/%s has the label \"%s\", and %s/%s has the label %d; expected only names of classes or "
                            "only numbers",
                            source->base, name->path, name->class_name, source->base, number->path, number->label);
    }
    return ATT_OK;
}

/* Warns that labels perhaps count from 1. Those of a training run with a class "0" do not. */
static void warn_no_zero(const att_dataset *dataset, const att_dataset_options *options, int lowest)
{
    if (lowest > 0 && !(options->trained_count > 0 && strcmp(options->trained[0], "0") == 0))
        att_log(dataset->context, ATT_LOG_WARNING,
                "%s: no sample has the label 0, so class 0 has no image: labels are the numbers of classes from 0 on, "
                "and the lowest is %d; if they count from 1, write them anew, each less 1",
                dataset->path, lowest);
}

static att_status label_by_number(att_dataset *dataset, const att_dataset_options *options)
{
    const tars_source *source = dataset->source;
    int highest = 0, lowest = ATT_TAR_MOST_LABEL;
    for (int64_t i = 0; i < dataset->count; i++) {
        dataset->labels[i] = source->index.entries[i].label;
        highest = dataset->labels[i] > highest ? dataset->labels[i] : highest;
        lowest = dataset->labels[i] < lowest ? dataset->labels[i] : lowest;
    }
    warn_no_zero(dataset, options, lowest);
    ATT_TRY(name_classes(dataset, options, highest));
    if (highest >= dataset->classes.count)
        return att_fail(dataset->context, ATT_ERR_MISMATCH, "%s: label %d, but the class map %s has %d class%s",
                        dataset->path, highest, options->class_map, dataset->classes.count,
                        dataset->classes.count == 1 ? "" : "es");
    return ATT_OK;
}

/* Whether a class of the training is named by the number of another: then labels that are numbers are names of the
 * training. */
static bool trained_on_numbers(const att_dataset_options *options)
{
    int64_t number;
    for (int i = 0; i < options->trained_count && !options->class_map; i++)
        if (att_text_to_i64(options->trained[i], &number) && number != i)
            return true;
    return false;
}

/* Makes a tree of paths "<label>/<number>.png", which have the order of the shards within each class. */
static att_status label_by_name(att_dataset *dataset, const att_dataset_options *options)
{
    enum { NUMBER = 32 };
    tars_source *source = dataset->source;
    source->tree.moved.context = dataset->context;
    for (int64_t i = 0; i < source->index.count; i++) {
        const att_tar_entry *entry = &source->index.entries[i];
        char digits[NUMBER];
        snprintf(digits, sizeof digits, "%d", entry->label);
        const char *class_name = is_named(entry) ? entry->class_name : digits;
        size_t size = strlen(class_name) + NUMBER;
        char *path = att_arena_allocate(&source->tree.moved, size);
        if (!path)
            return att_fail_memory(dataset->context, size, "the list of images");
        snprintf(path, size, "%s/%lld.png", class_name, (long long)i);
        ATT_TRY(att_class_tree_add(&source->tree, path, i));
    }
    return att_class_tree_number(&source->tree, dataset, options);
}

static att_status allocate_labels(att_dataset *dataset, int64_t count)
{
    ATT_TRY(att_new(dataset->context, &dataset->labels, (size_t)count, "the list of images"));
    dataset->count = count;
    return ATT_OK;
}

static att_status resolve_shards(att_dataset *dataset, const att_dataset_options *options)
{
    tars_source *source = dataset->source;
    labels_of_state labels[ATT_LABEL_STATES] = {{.count = 0}};
    bool named = false;
    dataset->kind = "shards";
    if (!options->unlabelled)
        drop_unlabelled(&source->index, labels);
    ATT_TRY(report_unused(dataset, labels));
    if (!options->unlabelled)
        ATT_TRY(check_labels(dataset, &named));
    if (!options->unlabelled && (named || trained_on_numbers(options)))
        return label_by_name(dataset, options);
    ATT_TRY(allocate_labels(dataset, source->index.count));
    if (!options->unlabelled)
        return label_by_number(dataset, options);
    memset(dataset->labels, -1, (size_t)dataset->count * sizeof *dataset->labels);
    return ATT_OK;
}

static att_status resolve_tree(att_dataset *dataset, const att_dataset_options *options)
{
    tars_source *source = dataset->source;
    dataset->kind = "tar";
    source->tree.read = read_text;
    for (int64_t i = 0; i < source->index.count; i++)
        ATT_TRY(att_class_tree_add(&source->tree, source->index.entries[i].path, i));
    return att_class_tree_resolve(&source->tree, dataset, options);
}

static att_status resolve(att_dataset *dataset, const att_dataset_options *options)
{
    const tars_source *source = dataset->source;
    ATT_TRY(source->index.shards ? resolve_shards(dataset, options) : resolve_tree(dataset, options));
    if (!*dataset->split && !options->unlabelled)
        dataset->split = source->set.split;
    if (source->index.skipped > 0)
        att_log(dataset->context, ATT_LOG_WARNING, "%s: skipped %lld links, devices, sparse files or unsafe names",
                dataset->path, (long long)source->index.skipped);
    return ATT_OK;
}

static void close_tars(att_dataset *dataset)
{
    tars_source *source = dataset->source;
    for (int i = 0; source->descriptors && i < source->index.tar_count; i++)
        if (source->descriptors[i] >= 0)
            close(source->descriptors[i]);
    att_free(dataset->context, source->descriptors);
    att_class_tree_free(&source->tree);
    att_tar_index_free(&source->index);
    att_tar_set_free(&source->set);
    att_free(dataset->context, source);
}

/* Whether the data set has a folder of the split. */
static bool has_folder(const att_dataset *dataset, const char *split)
{
    att_splits splits = {.flat = {""}};
    att_splits_scan(&splits, dataset->path, att_is_folder);
    return att_splits_find(&splits, att_split_names(split)) != NULL;
}

/* The folder has no tars of the split, but perhaps images. */
static att_status open_folder(att_dataset *dataset, const att_dataset_options *options)
{
    if (!has_folder(dataset, options->split))
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s has tars, but none of the split \"%s\"", dataset->path,
                        options->split ? options->split : "train");
    close_tars(dataset);
    dataset->source = NULL;
    dataset->format = &att_data_folder;
    return att_data_folder.open(dataset, options);
}

/* Entries of shards, and of several tars, have paths from the folder of the tars on, those of a single tar have paths
 * inside that. */
static att_status set_base(att_dataset *dataset, tars_source *source)
{
    const att_tar_set *set = &source->set;
    char path[ATT_DATA_MAX_NAME];
    bool inside = set->count == 1 && !set->class_tars && !source->index.shards;
    ATT_TRY(att_path_join(dataset->context, set->folder, inside ? set->names[0] : "", path, sizeof path));
    if (inside && att_file_is_same(path, dataset->path))
        source->base = dataset->path;
    else
        source->base = att_arena_string(&source->set.arena, inside ? path : set->folder);
    if (!source->base)
        return att_fail_memory(dataset->context, strlen(path) + 1, dataset->path);
    if (dataset->prefix_length > strlen(source->base))
        dataset->prefix_length = strlen(source->base);
    return ATT_OK;
}

static att_status open_set(att_dataset *dataset, const att_dataset_options *options)
{
    tars_source *source;
    ATT_TRY(att_new(dataset->context, &source, 1, dataset->path));
    dataset->source = source;
    source->set.arena.context = source->index.arena.context = source->tree.context = dataset->context;
    ATT_TRY(att_tar_set_find(&source->set, dataset->path, options->split, options->unlabelled));
    if (source->set.count == 0)
        return open_folder(dataset, options);
    ATT_TRY(att_tar_list(&source->set, &source->index));
    ATT_TRY(open_tars(dataset, source));
    ATT_TRY(set_base(dataset, source));
    return resolve(dataset, options);
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const tars_source *source = dataset->source;
    snprintf(text, size, "%s/%s", source->base, entry_of(source, index)->path);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    const tars_source *source = dataset->source;
    const att_tar_entry *entry = entry_of(source, index);
    char path[ATT_DATA_MAX_NAME], *bytes;
    name(dataset, index, path, sizeof path);
    ATT_TRY(read_entry(source, context, entry, dataset->limits.file_bytes, &bytes));
    att_status status = att_image_decode_named(context, path, (const uint8_t *)bytes, entry->size, channels,
                                               &dataset->limits, need, image);
    att_free(context, bytes);
    return status;
}

static void expect(const att_dataset *dataset, int64_t index)
{
    const tars_source *source = dataset->source;
    const att_tar_entry *entry = entry_of(source, index);
    int descriptor = enter_tar(source, entry);
    if (descriptor < 0)
        return;
    posix_fadvise(descriptor, (off_t)entry->offset, (off_t)entry->size, POSIX_FADV_WILLNEED);
    leave_tar(source, entry, descriptor);
}

const att_data_format att_data_tars = {.accepts = accepts,
                                       .open = open_set,
                                       .close = close_tars,
                                       .name = name,
                                       .read = read_image,
                                       .expect = expect,
                                       .single_files = true};
