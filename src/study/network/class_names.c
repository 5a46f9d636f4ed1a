/* The names of a network's classes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "data/mask_classes.h"
#include "networks/tasks/draw.h"
#include "study/network/network.h"
#include "study/train/checkpoint.h"
#include "study/train/metadata.h"

/* A list under construction; the names lie in the arena. */
typedef struct names {
    att_network *network;
    att_arena arena;
    const char **items;
    int count, room;
    uint8_t *colours; /* [room][3] */
    int64_t *ids;     /* [room]; NULL: unknown */
} names;

static att_status fail_names(const att_network *network)
{
    return att_fail_memory(network->context, sizeof(char *), "the names of classes");
}

/* Adds a name. The name of a synset is followed by its label. */
static att_status add_name(names *n, const char *name)
{
    const char *label = att_synset_label(name);
    size_t size = strlen(name) + (label ? strlen(label) + 1 : 0) + 1;
    char *text = att_arena_allocate(&n->arena, size);
    if (!text)
        return fail_names(n->network);
    snprintf(text, size, "%s%s%s", name, label ? " " : "", label ? label : "");
    n->items[n->count++] = text;
    return ATT_OK;
}

/* Adds the lines of `text`, which is modified, as class names. Adds none if there are more lines than classes. *count:
 * number of lines. */
static att_status add_lines(names *n, const char *path, char *text, size_t size, int *count)
{
    const char **lines;
    att_status status = att_text_lines(&n->arena, path, text, size, &lines, count);
    for (int i = 0; status == ATT_OK && i < *count && *count <= n->room; i++)
        status = add_name(n, lines[i]);
    return status;
}

/* Takes the ids of attscope's training, one on each line; those of another number of classes are ignored. */
static att_status add_trained_ids(names *n)
{
    const char *text = n->network->file ? att_metadata_text(n->network->file, "class_ids") : NULL;
    int64_t *ids = text ? att_arena_allocate(&n->arena, ((size_t)n->room + 1) * sizeof *ids) : NULL;
    int count = 0;
    if (!text)
        return ATT_OK;
    if (!ids)
        return fail_names(n->network);
    for (char *end; *text && count < n->room; text = end + 1) {
        ids[count++] = strtoll(text, &end, 10);
        if (end == text || *end != '\n')
            return ATT_OK;
    }
    n->ids = *text || count < n->room ? NULL : ids;
    return ATT_OK;
}

static att_status begin(att_network *network, names *n)
{
    *n = (names){.network = network, .arena = {.context = network->context}, .room = att_model_classes(network->model)};
    n->items = att_arena_allocate(&n->arena, ((size_t)n->room + 1) * sizeof *n->items);
    n->colours = att_arena_allocate(&n->arena, (size_t)n->room * 3);
    if (!n->items || !n->colours)
        return fail_names(network);
    att_class_colours(n->room, n->colours);
    return add_trained_ids(n);
}

/* On success the network takes the names; after a failure they are freed. */
static att_status finish(names *n, att_status status, const char *known)
{
    if (status != ATT_OK) {
        att_arena_free(&n->arena);
        return status;
    }
    att_network *network = n->network;
    att_arena_free(&network->class_arena);
    network->class_arena = n->arena;
    network->class_names = n->items;
    network->class_colours = n->colours;
    network->class_ids = n->ids;
    network->class_count = n->count;
    network->known_classes = known;
    return ATT_OK;
}

/* --- from the file ------------------------------------------------------------------------------------------------ */

/* If the file has more names than the network has classes, the names belong to another network and are ignored. */
static att_status add_trained(names *n, const char *lines)
{
    int count;
    char *text = att_arena_string(&n->arena, lines);
    if (!text)
        return fail_names(n->network);
    return add_lines(n, n->network->path, text, strlen(text), &count);
}

static att_status add_known(names *n, const att_known_classes *known)
{
    att_status status = ATT_OK;
    for (int c = 0; c < known->count && status == ATT_OK; c++)
        status = add_name(n, att_known_classes_label(known, c));
    return status;
}

static void take_known_colours(names *n, const att_known_classes *known)
{
    if (known->colours && known->count == n->room)
        memcpy(n->colours, known->colours, (size_t)n->room * 3);
}

/* Takes "#0060ff" on each line, of attscope's training or another program's; colours that are not whole, or those of
 * another number of classes, are ignored. */
static att_status add_trained_colours(names *n)
{
    const att_tensors *file = n->network->file;
    const char *own = file ? att_metadata_text(file, "class_colours") : NULL;
    const char *text = own || !file ? own : att_tensors_metadata(file, ATT_TENSORS_COLOURS);
    uint8_t *colours = att_arena_allocate(&n->arena, (size_t)n->room * 3);
    int count = 0;
    if (!colours)
        return fail_names(n->network);
    for (; text && count < n->room; text += ATT_COLOUR_TEXT, count++)
        if (!att_colour_read(text, colours + 3 * (ptrdiff_t)count) || text[ATT_COLOUR_TEXT - 1] != '\n')
            return ATT_OK;
    if (text && !*text)
        n->colours = colours;
    return ATT_OK;
}

const char *att_network_trained_names(const att_network *network)
{
    const char *own = network->file ? att_checkpoint_classes(network->file) : NULL;
    return own ? own : network->config_names;
}

const att_known_classes *att_network_known_order(const att_network *network)
{
    if (network->config_known)
        return network->config_known;
    return network->file && !network->config_names
               ? att_checkpoint_known_classes(network->file, att_model_classes(network->model))
               : NULL;
}

att_status att_network_take_class_names(att_network *network)
{
    names n;
    char *shown = NULL;
    if (att_model_classes(network->model) == 0)
        return ATT_OK;
    if (network->file)
        ATT_TRY(att_network_read_config_names(network, &shown));
    const att_known_classes *known = att_network_known_order(network);
    const char *lines = shown ? shown : att_network_trained_names(network);
    att_status status = begin(network, &n);
    if (status == ATT_OK && known)
        take_known_colours(&n, known);
    if (status == ATT_OK)
        status = add_trained_colours(&n);
    if (status == ATT_OK && known)
        status = add_known(&n, known);
    else if (status == ATT_OK && lines)
        status = add_trained(&n, lines);
    att_free(network->context, shown);
    return finish(&n, status, known ? known->name : NULL);
}

/* --- chosen by the caller ----------------------------------------------------------------------------------------- */

static att_status refuse_name(const att_network *network, const char *name)
{
    att_text known = {.context = network->context};
    for (int i = 0; i < att_known_classes_number; i++)
        att_text_append(&known, "%s%s", i ? ", " : "", att_known_classes_all[i].name);
    att_status status =
        known.failed ? fail_names(network)
                     : att_fail(network->context, ATT_ERR_ARGUMENT,
                                "labels: \"%s\" is neither a file nor a data set whose classes are built in (%s)", name,
                                known.data);
    att_text_free(&known);
    return status;
}

static att_status check_count(const names *n, const char *what, int count)
{
    if (count == n->room)
        return ATT_OK;
    return att_fail(n->network->context, ATT_ERR_MISMATCH, "%s names %d class%s, but the network has %d", what, count,
                    count == 1 ? "" : "es", n->room);
}

static att_status add_text(names *n, const char *path, char *text, size_t size)
{
    int count;
    const char **lines;
    uint8_t(*colours)[3] = NULL;
    ATT_TRY(att_text_lines(&n->arena, path, text, size, &lines, &count));
    ATT_TRY(check_count(n, path, count));
    ATT_TRY(att_take_colours(&n->arena, path, (char *const *)lines, count, &colours));
    if (colours)
        n->colours = *colours;
    att_status status = ATT_OK;
    for (int i = 0; status == ATT_OK && i < count; i++)
        status = add_name(n, lines[i]);
    return status;
}

static att_status add_file(names *n, const char *path)
{
    enum { MOST_BYTES = 64 << 20 };
    char *text;
    size_t size;
    if (!att_file_exists(path) && !strpbrk(path, "./"))
        return refuse_name(n->network, path);
    ATT_TRY(att_file_read(n->network->context, path, MOST_BYTES, &text, &size));
    att_status status = add_text(n, path, text, size);
    att_free(n->network->context, text);
    return status;
}

static att_status add_chosen(names *n, const char *from)
{
    const att_known_classes *known = att_known_classes_find(from);
    if (!known)
        return add_file(n, from);
    ATT_TRY(check_count(n, known->name, known->count));
    take_known_colours(n, known);
    return add_known(n, known);
}

att_status att_network_name_classes(att_network *network, const char *from)
{
    names n;
    ATT_TRY(att_require(network->context, from, "the data set or file that names classes"));
    att_status status = begin(network, &n);
    if (status == ATT_OK)
        status = add_chosen(&n, from);
    return finish(&n, status, NULL);
}

/* --- access ------------------------------------------------------------------------------------------------------- */

const char *const *att_network_class_names(const att_network *network, int *count)
{
    if (count)
        *count = network->class_count;
    return network->class_count > 0 ? network->class_names : NULL;
}

const char *att_network_class_name(const att_network *network, int number)
{
    return number >= 0 && number < network->class_count ? network->class_names[number] : NULL;
}

const uint8_t *att_network_class_colours(const att_network *network)
{
    return network->class_colours;
}

const char *att_network_known_classes(const att_network *network)
{
    return network->known_classes;
}
