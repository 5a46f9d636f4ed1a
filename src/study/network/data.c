/* Opens data sets for a network and compares their classes. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/image_codec.h"
#include "base/io/tensors.h"
#include "data/classes.h"
#include "data/dataset.h"
#include "networks/tasks/task.h"
#include "study/network/network.h"
#include "study/train/metadata.h"

/* --- what a network reads ---------------------------------------------------------------------------------------- */

/* Whether the bytes are the beginning of a text: they have no control characters but white space. */
static bool is_text(const uint8_t *begin, size_t size)
{
    bool text = size > 0;
    for (size_t i = 0; text && i < size; i++)
        text = begin[i] >= ' ' || (begin[i] >= '\t' && begin[i] <= '\r');
    return text;
}

/* Reads the first bytes of a file. Returns their number; 0 if there are none. */
static size_t read_beginning(att_context *context, const char *path, uint8_t *bytes, size_t most)
{
    att_file_reader *reader;
    if (att_file_reader_open(context, path, &reader) != ATT_OK)
        return 0;
    const uint64_t size = att_file_reader_size(reader);
    const size_t count = size < most ? (size_t)size : most;
    const att_status status = att_file_reader_read(reader, 0, bytes, count);
    att_file_reader_close(&reader);
    return status == ATT_OK ? count : 0;
}

att_status att_network_check_path(const att_network *network, const char *path)
{
    enum { LOOKED_AT = 256 };
    uint8_t bytes[LOOKED_AT];
    const bool images = att_model_image(network->model).image, folder = att_file_is_folder(path);
    const size_t count = folder ? 0 : read_beginning(network->context, path, bytes, sizeof bytes);
    const char *image = att_image_format_of(bytes, count), *name = network->identity.name;
    if (images && !image && is_text(bytes, count))
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "%s: not a JPEG, PNG or WebP image, but text; %s reads images", path, name);
    if (!images && (folder || image))
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "%s is %s%s; %s reads texts, a file of them in UTF-8 with one a line", path,
                        folder ? "a folder" : "an image: ", folder ? "" : image, name);
    return ATT_OK;
}

att_status att_network_explain_path(const att_network *network, const char *path, att_status status)
{
    char message[1024];
    if (status != ATT_ERR_FORMAT)
        return status;
    snprintf(message, sizeof message, "%s", att_context_message(network->context));
    ATT_TRY(att_network_check_path(network, path));
    return att_fail(network->context, status, "%s", message);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Whether attscope's own training wrote the file, or the one that `attscope convert` made it of: both name the task. */
static bool is_own_training(const att_network *network)
{
    return network->file && att_metadata_text(network->file, "task.name");
}

/* attscope's training runs record no names if each class is named by its number. */
static att_status number_by_numbers(const att_network *network, att_arena *arena, att_dataset_options *options)
{
    const int classes = att_model_classes(network->model);
    if (classes == 0 || !is_own_training(network))
        return ATT_OK;
    options->trained = att_class_numbers(arena, classes);
    options->trained_count = classes;
    return options->trained
               ? ATT_OK
               : att_fail_memory(network->context, (size_t)classes * sizeof *options->trained, "the names of classes");
}

/* Numbers the class folders by the names in the file. If there are more names than classes, they belong to another
 * network and are ignored. */
static att_status number_by_training(const att_network *network, att_arena *arena, att_dataset_options *options)
{
    const char *lines = att_network_trained_names(network), **names;
    int count;
    if (!lines)
        return number_by_numbers(network, arena, options);
    char *text = att_arena_string(arena, lines);
    if (!text)
        return att_fail_memory(network->context, strlen(lines), "the names of classes");
    ATT_TRY(att_text_lines(arena, network->path, text, strlen(text), &names, &count));
    options->trained = names;
    options->trained_count = count <= att_model_classes(network->model) ? count : 0;
    return ATT_OK;
}

static att_status number_by_synsets(const att_network *network, const att_known_classes *known, att_arena *arena,
                                    att_dataset_options *options)
{
    const char **names = att_arena_allocate(arena, (size_t)known->count * sizeof *names);
    if (!names)
        return att_fail_memory(network->context, (size_t)known->count * sizeof *names, "the names of classes");
    for (int c = 0; c < known->count; c++)
        names[c] = att_known_classes_synset(known, c);
    options->trained = names;
    options->trained_count = known->count;
    return ATT_OK;
}

/* Sets the class names that number class folders, unless the caller gave some. */
static att_status choose_numbering(const att_network *network, att_arena *arena, att_dataset_options *options)
{
    const att_known_classes *known = att_network_known_order(network);
    if (options->classes == 0)
        options->classes = att_model_classes(network->model);
    if (options->trained_count > 0)
        return ATT_OK;
    return known && known->has_synsets ? number_by_synsets(network, known, arena, options)
                                       : number_by_training(network, arena, options);
}

static void log_opened(const att_network *network, const att_dataset *dataset, int paths)
{
    char text[ATT_NETWORK_PATH + 256];
    const long long images = att_dataset_count(dataset);
    if (paths > 1)
        att_log(network->context, ATT_LOG_INFO, "%lld image%s in %d paths, without classes", images,
                images == 1 ? "" : "s", paths);
    else
        att_log(network->context, ATT_LOG_INFO, "%s", att_dataset_describe(dataset, text, sizeof text));
}

static void log_colours(const att_network *network, const att_dataset *dataset)
{
    const int channels = network->identity.preprocess.in_chans; /* 0: no images */
    const att_colours colours = att_dataset_colours(dataset, network->context);
    if (channels == 1 && colours == ATT_COLOURS_ANY)
        att_log(network->context, ATT_LOG_INFO,
                "the images have colours, but the network takes grey images: they are converted");
    if (channels == 3 && colours == ATT_COLOURS_GREY)
        att_log(network->context, ATT_LOG_INFO,
                "the images are grey, but the network takes colours: all channels are the same");
}

/* Opens the path with classes. If this is not possible and the caller allows it, opens the path without classes. */
static att_status open_path(att_context *context, const char *path, att_dataset_options *options, att_dataset **dataset)
{
    const bool any = options->unlabelled && !options->class_map;
    options->unlabelled = false;
    att_status status = att_dataset_open(context, path, options, dataset);
    if ((status != ATT_ERR_FORMAT && status != ATT_ERR_MISMATCH) || !any)
        return status;
    options->unlabelled = true;
    return att_dataset_open(context, path, options, dataset);
}

static att_status open_paths(const att_network *network, const char *const *paths, int count,
                             att_dataset_options *options, att_dataset **dataset)
{
    if (count == 1)
        return open_path(network->context, paths[0], options, dataset);
    if (options->class_map)
        return att_fail(network->context, ATT_ERR_ARGUMENT,
                        "class_map needs a single data set; the images of %d paths have no classes", count);
    return att_dataset_open_images(network->context, paths, count, options, dataset);
}

att_status att_network_open_dataset(att_network *network, const char *const *paths, int count,
                                    const att_dataset_options *options, att_dataset **dataset)
{
    if (count < 1)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "a data set of %d paths, expected at least 1", count);
    ATT_TRY(att_require_texts(network->context, paths, count, "the path of a data set"));
    ATT_TRY(att_model_need_image(network->model));
    att_dataset_options taken = options ? *options : att_dataset_options_defaults();
    if (taken.annotations == 0)
        taken.annotations = att_task_annotations(network->context, att_model_task(network->model).name);
    taken.limits.exif_transpose |= network->identity.preprocess.exif_transpose;
    att_arena arena = {.context = network->context};
    att_status status = choose_numbering(network, &arena, &taken);
    if (status == ATT_OK)
        status = open_paths(network, paths, count, &taken, dataset);
    att_arena_free(&arena);
    for (int i = 0; i < count && status == ATT_ERR_FORMAT; i++)
        status = att_network_explain_path(network, paths[i], status);
    if (status != ATT_OK)
        return status;
    log_opened(network, *dataset, count);
    log_colours(network, *dataset);
    return ATT_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

att_status att_network_check_scores(const att_network *network, const char *consequence)
{
    if (network->file && network->file->projects)
        return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                        "%s: its last layer projects features into a space that images and texts share: its %d values "
                        "are features, not scores of classes%s%s (attscope embed writes features, attscope probe fits "
                        "a classifier to them)",
                        network->path, att_model_classes(network->model), consequence ? ": " : "",
                        consequence ? consequence : "");
    return ATT_OK;
}

att_status att_network_need_head(const att_network *network, const char *consequence)
{
    ATT_TRY(att_model_need_image(network->model));
    ATT_TRY(att_network_check_scores(network, consequence));
    if (att_model_classes(network->model) > 0)
        return ATT_OK;
    return att_fail(network->context, ATT_ERR_UNSUPPORTED,
                    "%s: the network has no head%s%s (attscope train --initial-checkpoint gives it a head)",
                    *network->path ? network->path : network->identity.name, consequence ? ": " : "",
                    consequence ? consequence : "");
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* The first class that has another name in the data than in the network. */
typedef struct difference {
    int number;       /* -1: there is none */
    const char *name; /* in the network */
    int length;       /* of `name`, which may be a line of several */
} difference;

/* Finds a class in the list by its label or synset. Returns its number; -1 if the list lacks it. */
static int known_number(const att_known_classes *known, const char *name)
{
    int c = att_known_classes_with_synset(known, name);
    if (c >= 0)
        return c;
    for (c = known->count - 1; c >= 0 && strcmp(att_known_classes_label(known, c), name) != 0;)
        c--;
    return c;
}

/* Finds the first class of the data that has another number in the network's list, or, with `foreign`, that is not in
 * it. */
static difference compare_known(const att_known_classes *known, const att_dataset *dataset, bool foreign)
{
    for (int c = 0; c < att_dataset_class_count(dataset); c++) {
        const char *name = att_dataset_class_name(dataset, c), *own = att_known_classes_label(known, c);
        const int number = known_number(known, name);
        if (number >= 0 ? number != c : foreign && !is_number(name))
            return (difference){c, own, (int)strlen(own)};
    }
    return (difference){.number = -1};
}

/* Finds the first class whose names in the training and in the data differ. Classes named by numbers are not
 * compared. */
static difference compare_trained(const char *line, const att_dataset *dataset)
{
    for (int c = 0; *line && c < att_dataset_class_count(dataset); c++) {
        const char *name = att_dataset_class_name(dataset, c);
        const size_t length = strcspn(line, "\n");
        if (!is_number(name) && (strlen(name) != length || strncmp(name, line, length) != 0))
            return (difference){c, line, (int)length};
        line += length + (line[length] != '\0');
    }
    return (difference){.number = -1};
}

static void warn_of(const att_network *network, const att_dataset *dataset, difference found)
{
    if (found.number >= 0)
        att_log(network->context, ATT_LOG_WARNING,
                "class %d is \"%s\" in the data and \"%.*s\" in the network; the results are meaningful only if both "
                "are the same class",
                found.number, att_dataset_class_name(dataset, found.number), found.length, found.name);
}

/* Warns if the checkpoint does not say which order its training had, and the sorted folder names have another order in
 * torchvision. */
static void compare_orders(const att_network *network, const att_dataset *dataset)
{
    const att_numbering numbering = att_dataset_numbering(dataset);
    if (is_own_training(network) || !network->file ||
        (numbering != ATT_NUMBERED_BY_FOLDERS && numbering != ATT_NUMBERED_BY_NAMES))
        return;
    for (int c = 0; c + 1 < att_dataset_class_count(dataset); c++) {
        const char *one = att_dataset_class_name(dataset, c), *next = att_dataset_class_name(dataset, c + 1);
        if (strcmp(one, next) <= 0)
            continue;
        att_log(network->context, ATT_LOG_WARNING,
                "the classes are numbered in timm's order of their names (\"%s\" before \"%s\"), but torchvision sorts "
                "names as text (\"%s\" before \"%s\"), and the checkpoint does not say which order its training had; "
                "if it was torchvision's, give --class-map FILE with the names in that order",
                one, next, next, one);
        return;
    }
}

/* Advice for CIFAR-100, which has two sets of labels. */
static const char *coarse_advice(int network, int found)
{
    return network == 20 && found == 100   ? "--coarse-labels takes CIFAR-100's 20 superclasses, "
           : network == 100 && found == 20 ? "without --coarse-labels CIFAR-100 has 100 classes, "
                                           : "";
}

static void log_other_count(const att_network *network, int classes, int found)
{
    att_log(network->context, ATT_LOG_INFO,
            "the network has %d class%s, the data %d; the results are meaningful only if the numbers of the "
            "classes agree (%s--class-map)",
            classes, classes == 1 ? "" : "es", found, coarse_advice(classes, found));
}

att_status att_network_compare_classes(const att_network *network, const att_dataset *dataset, bool refuse)
{
    ATT_TRY(att_require(network->context, dataset, "the data set whose classes are compared"));
    const int classes = att_model_classes(network->model), found = att_dataset_class_count(dataset);
    if (refuse)
        ATT_TRY(att_dataset_check_classes(dataset, network->context, classes));
    if (att_dataset_numbering(dataset) == ATT_NUMBERED_BY_TRAINING)
        return ATT_OK;
    const att_known_classes *known = att_network_known_order(network);
    if (classes != found)
        log_other_count(network, classes, found);
    else if (known)
        warn_of(network, dataset, compare_known(known, dataset, false));
    else if (att_network_trained_names(network))
        warn_of(network, dataset, compare_trained(att_network_trained_names(network), dataset));
    else
        compare_orders(network, dataset);
    return ATT_OK;
}

att_status att_network_note_kept_classes(const att_model *model, const char *path, att_tensors *file,
                                         const att_dataset *dataset)
{
    att_network network = {.context = file->context, .file = file, .model = model};
    char *shown = NULL;
    difference found = {.number = -1};
    ATT_TRY(att_path_copy(network.context, path, network.path, sizeof network.path));
    att_status status = att_network_read_config_names(&network, &shown);
    const att_known_classes *known = att_network_known_order(&network);
    const char *lines = att_network_trained_names(&network);
    if (status == ATT_OK && known)
        found = compare_known(known, dataset, true);
    else if (status == ATT_OK && lines)
        found = compare_trained(lines, dataset);
    if (found.number >= 0)
        att_log(network.context, ATT_LOG_INFO,
                "%s: its classifier is kept, because it has as many classes as the data, but class %d is \"%s\" in the "
                "data and \"%.*s\" in the file",
                path, found.number, att_dataset_class_name(dataset, found.number), found.length, found.name);
    att_free(network.context, shown);
    att_free(network.context, network.config_names);
    return status;
}
