#include "base/io/torch_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/torch_options.h"

enum {
    MOST_DEPTH = 16,
    MOST_OBJECT_DEPTH = 64,
    MOST_STEPS = 1 << 22,
    MOST_NAME = 1024,
    LISTED = 8,
    MOST_LEVELS = 4,
    MOST_BESIDE = 2
};

/* Limits on the total size of tensors: MOST_EXPANSION times the size of the file, plus FREE_BYTES. Expanded tensors are
 * larger than their data in the file; without a limit, a small file could claim any amount of memory. */
enum { MOST_EXPANSION = 8, FREE_BYTES = 1 << 24 };

static const char *const weight_keys[] = {"state_dict", "model_state_dict", "model",       "module",
                                          "net",        "network",          "weights",     "params",
                                          "teacher",    "student",          "online_model"};
static const char *const average_keys[] = {"state_dict_ema", "model_ema", "ema_model",
                                           "ema_state_dict", "ema",       "params_ema"};
enum {
    WEIGHT_KEYS = sizeof weight_keys / sizeof *weight_keys,
    AVERAGE_KEYS = sizeof average_keys / sizeof *average_keys
};

const char *att_torch_weight_key(int index)
{
    return index < WEIGHT_KEYS ? weight_keys[index] : NULL;
}

const char *att_torch_average_key(int index)
{
    return index < AVERAGE_KEYS ? average_keys[index] : NULL;
}

typedef struct collector {
    att_tensors *file;
    const att_pickle *pickle;
    int steps;                /* how many more values of containers may be visited */
    int capacity;             /* of file->items */
    uint64_t bytes_left;      /* how many more bytes tensors may have */
    att_text name;            /* full name of the value that is being visited */
    att_text origin, ignored; /* ignored: names of the values that are not weights */
    int ignored_count;
    bool is_script;
    bool whole; /* tensors outside of file->part are added, too */
} collector;

static att_status refuse(const collector *t, const char *what)
{
    return att_fail(t->file->context, ATT_ERR_FORMAT, "%s: %s", t->file->path, what);
}

static bool is_container(const att_pickle_value *value)
{
    return value->kind == ATT_PICKLE_DICT || value->kind == ATT_PICKLE_LIST || value->kind == ATT_PICKLE_TUPLE;
}

bool att_torch_module_state(const att_pickle *pickle, att_pickle_ref ref, att_pickle_ref *state)
{
    const att_pickle_value *value = att_pickle_at(pickle, ref);
    att_pickle_ref found;
    if (value->kind != ATT_PICKLE_OPAQUE)
        return false;
    *state = pickle->cells[value->cells.last].value;
    return att_pickle_find(pickle, *state, "_parameters", &found) &&
           att_pickle_find(pickle, *state, "_modules", &found);
}

/* Whether the value can be a network: a container, or a module. */
static bool is_network(const att_pickle *pickle, att_pickle_ref ref)
{
    att_pickle_ref state;
    return is_container(att_pickle_at(pickle, ref)) || att_torch_module_state(pickle, ref, &state);
}

static void list_ignored(collector *t, att_pickle_text name)
{
    char shown[ATT_PICKLE_SHOWN];
    if (name.length == 0 || t->is_script) /* a program's parts have switches and numbers beside tensors */
        return;
    if (t->ignored_count < LISTED)
        att_text_append(&t->ignored, "%s%s", t->ignored_count ? ", " : "", att_pickle_show(name, shown));
    else if (t->ignored_count == LISTED)
        att_text_append(&t->ignored, ", ...");
    t->ignored_count++;
}

/* --- finding the weights ------------------------------------------------------------------------------------------ */

/* Returns whether the value contains tensors. Returns false if t->steps is used up before one is found;
 * collect_container() then fails. */
static bool holds_tensors(collector *t, att_pickle_ref ref, int depth)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, ref);
    const char *what;
    bool opaque = value->kind == ATT_PICKLE_OPAQUE;
    if (opaque && att_pickle_is_inert(t->pickle, value))
        return false;
    if (opaque && att_pickle_is_unsupported_tensor(t->pickle, value, &what))
        return true;
    if ((!opaque && !is_container(value)) || depth == MOST_OBJECT_DEPTH)
        return value->kind == ATT_PICKLE_TENSOR || value->kind == ATT_PICKLE_STORAGE;
    uint32_t cell = value->cells.first;
    for (uint32_t i = 0; i < value->cells.count && t->steps > 0; i++, cell = t->pickle->cells[cell].next) {
        t->steps--;
        if (holds_tensors(t, t->pickle->cells[cell].value, depth + 1))
            return true;
    }
    return false;
}

/* Returns the first of the keys whose value in `dict` is a container with tensors, and the value in *found, or NULL. */
static const char *find_keys(collector *t, att_pickle_ref dict, const char *const *keys, int count,
                             att_pickle_ref *found)
{
    for (int i = 0; i < count; i++)
        if (att_pickle_find(t->pickle, dict, keys[i], found) && is_network(t->pickle, *found) &&
            holds_tensors(t, *found, 0))
            return keys[i];
    return NULL;
}

static bool is_metadata(const collector *t, const att_pickle_value *key)
{
    for (int i = 0; i < t->file->metadata_count; i++)
        if (att_pickle_text_is(key, t->file->metadata[i].key))
            return true;
    return false;
}

/* Adds the dictionary's keys to t->ignored, except `taken` and `average` (may be NULL) and keys read as metadata. */
static void list_others(collector *t, att_pickle_ref dict, const char *taken, const char *average)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, dict);
    const att_pickle_cell *cells = t->pickle->cells;
    uint32_t cell = value->cells.first;
    for (uint32_t i = 0; i + 1 < value->cells.count; i += 2, cell = cells[cells[cell].next].next) {
        const att_pickle_value *key = att_pickle_at(t->pickle, cells[cell].value);
        if (key->kind == ATT_PICKLE_TEXT && !(taken && att_pickle_text_is(key, taken)) &&
            !(average && att_pickle_text_is(key, average)) && !is_metadata(t, key))
            list_ignored(t, key->text);
    }
}

/* Sets *name to the text under `key`, or to NULL if there is none. Fails with ERR_FORMAT if the text is not valid
 * UTF-8.
 */
static att_status find_name(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                            const char **name)
{
    att_pickle_ref found;
    *name = NULL;
    if (!att_pickle_find(pickle, root, key, &found))
        return ATT_OK;
    const att_pickle_value *name_value = att_pickle_at(pickle, found);
    if (name_value->kind != ATT_PICKLE_TEXT)
        return ATT_OK;
    char *copy = att_arena_allocate(&file->arena, name_value->text.length + 1);
    if (!copy)
        return att_fail_memory(file->context, name_value->text.length + 1, file->path);
    memcpy(copy, name_value->text.bytes, name_value->text.length);
    if (strlen(copy) != name_value->text.length || !att_utf8_valid(copy))
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: %s, the name of the architecture, is not valid UTF-8; the file is damaged", file->path,
                        key);
    *name = copy;
    return ATT_OK;
}

/* Sets the file's metadata: what the training script stored about the network, under the script's keys. */
static att_status collect_metadata(att_tensors *file, const att_pickle *pickle, att_pickle_ref root)
{
    static const struct {
        const char *key;
        att_status (*find)(att_tensors *file, const att_pickle *pickle, att_pickle_ref root, const char *key,
                           const char **text);
    } all[] = {{ATT_TENSORS_ARCHITECTURE, find_name},
               {"architecture", find_name},
               {"model_name", find_name},
               {"model", find_name},
               {"timm_model", find_name},
               {ATT_TENSORS_OPTIONS, att_torch_options},
               {ATT_TENSORS_HYPER_PARAMETERS, att_torch_options},
               {"model_args", att_torch_arguments},
               {"model_kwargs", att_torch_arguments},
               {ATT_TENSORS_CLASSES, att_torch_classes},
               {ATT_TENSORS_COLOURS, att_torch_colours},
               {ATT_TENSORS_CONFIGURATION, att_torch_configuration}};
    enum { MOST = sizeof all / sizeof *all };
    att_safetensors_pair found[MOST];
    int count = 0;
    for (int i = 0; i < MOST; i++) {
        const char *text;
        ATT_TRY(all[i].find(file, pickle, root, all[i].key, &text));
        if (text)
            found[count++] = (att_safetensors_pair){all[i].key, text};
    }
    if (count == 0)
        return ATT_OK;
    ATT_TRY(att_new(file->context, &file->metadata, (size_t)count, file->path));
    memcpy(file->metadata, found, (size_t)count * sizeof *found);
    file->metadata_count = count;
    return ATT_OK;
}

/* --- one tensor --------------------------------------------------------------------------------------------------- */

int64_t att_torch_storage_bytes(const att_pickle_storage *storage)
{
    int64_t size = storage->typed ? (int64_t)att_safetensors_dtype_size(storage->dtype) : 1;
    return storage->count <= INT64_MAX / size ? storage->count * size : -1;
}

static att_status refuse_tensor(const collector *t, const char *name, const char *what)
{
    return att_fail(t->file->context, ATT_ERR_FORMAT, "%s: tensor %s: %s", t->file->path, name, what);
}

/* Returns a + b c for b, c >= 0, or -1 on overflow or if a is -1. */
static int64_t add_product(int64_t a, int64_t b, int64_t c)
{
    return a < 0 || (c > 0 && b > (INT64_MAX - a) / c) ? -1 : a + b * c;
}

/* Returns the offset of the tensor's last element in the storage, in elements, or -1 on overflow. The tensor must not
 * be empty. */
static int64_t last_place(const att_pickle_storage *storage, const att_pickle_tensor *tensor)
{
    int64_t place = add_product(storage->view_offset, tensor->offset, 1);
    for (int d = 0; d < tensor->shape.rank; d++)
        place = add_product(place, tensor->shape.dims[d] - 1, tensor->strides[d]);
    return place;
}

static bool is_contiguous(const att_pickle_tensor *tensor)
{
    int64_t expected = 1;
    for (int d = tensor->shape.rank; d-- > 0;) {
        if (tensor->shape.dims[d] != 1 && tensor->strides[d] != expected)
            return false;
        expected *= tensor->shape.dims[d];
    }
    return true;
}

/* Sets strides, unless the elements are contiguous. The stride of an axis of length 1 is 0. */
static att_status set_strides(collector *t, att_tensors_item *item, const att_pickle_tensor *tensor)
{
    size_t bytes = (size_t)tensor->shape.rank * sizeof *item->strides;
    if (is_contiguous(tensor))
        return ATT_OK;
    int64_t *strides = att_arena_allocate(&t->file->arena, bytes);
    if (!strides)
        return att_fail_memory(t->file->context, bytes, t->file->path);
    for (int d = 0; d < tensor->shape.rank; d++)
        strides[d] = tensor->shape.dims[d] == 1 ? 0 : tensor->strides[d];
    item->strides = strides;
    return ATT_OK;
}

static att_status place_tensor(collector *t, const att_pickle_tensor *tensor, att_tensors_item *item)
{
    const att_pickle_storage *storage = &t->pickle->storages[tensor->storage];
    const char *name = item->info.name;
    int64_t count = att_shape_count(tensor->shape), size = (int64_t)att_safetensors_dtype_size(tensor->dtype);
    item->info.dtype = tensor->dtype;
    item->info.shape = tensor->shape;
    item->info.count = count;
    if (count < 0)
        return refuse_tensor(t, name, "its size has more elements than can be counted");
    if (count == 0)
        return ATT_OK;
    int64_t last = last_place(storage, tensor);
    if (last < 0 || last >= att_torch_storage_bytes(storage) / size)
        return att_fail(t->file->context, ATT_ERR_FORMAT,
                        "%s: tensor %s: its last element would be number %" PRId64 " of a storage of %" PRId64,
                        t->file->path, name, last, att_torch_storage_bytes(storage) / size);
    if ((uint64_t)count * (uint64_t)size > t->bytes_left)
        return refuse_tensor(t, name, "the file is too small for a tensor of this size");
    t->bytes_left -= (uint64_t)count * (uint64_t)size;
    item->place = storage->place + (uint64_t)(storage->view_offset + tensor->offset) * (uint64_t)size;
    return set_strides(t, item, tensor);
}

static att_status check_name(const collector *t)
{
    const char *name = t->name.data;
    if (t->name.failed)
        return att_fail_memory(t->file->context, t->name.capacity, t->file->path);
    if (!name || !*name || strlen(name) != t->name.length || t->name.length > MOST_NAME || !att_utf8_valid(name))
        return refuse(t, "a tensor's name is empty, longer than 1024 bytes, or not valid UTF-8");
    return ATT_OK;
}

static att_status add_item(collector *t, const att_pickle_tensor *tensor)
{
    att_tensors *file = t->file;
    ATT_TRY(check_name(t));
    if (strcmp(t->name.data, "n_averaged") == 0) { /* the counter of torch.optim.swa_utils.AveragedModel */
        list_ignored(t, (att_pickle_text){t->name.data, t->name.length});
        return ATT_OK;
    }
    if (!att_list_grow(file->context, &file->items, file->count, &t->capacity, sizeof *file->items))
        return att_fail_memory(file->context, (size_t)t->capacity * 2 * sizeof *file->items, file->path);
    att_tensors_item *item = &file->items[file->count];
    *item = (att_tensors_item){.info.name = att_arena_string(&file->arena, t->name.data)};
    if (!item->info.name)
        return att_fail_memory(file->context, t->name.length + 1, file->path);
    file->count++;
    return place_tensor(t, tensor, item);
}

/* --- visiting values ---------------------------------------------------------------------------------------------- */

static att_status collect(collector *t, att_pickle_ref ref, int depth);

/* Whether tensors of this name, or below it, can be in the part that is opened. */
static bool may_be_in_part(const collector *t)
{
    const char *part = t->whole ? NULL : t->file->part;
    if (!part || t->name.failed)
        return true;
    const size_t length = strlen(part), shorter = t->name.length < length ? t->name.length : length;
    const char after = t->name.length < length ? part[shorter] : t->name.data[shorter];
    return memcmp(t->name.data, part, shorter) == 0 && (after == '.' || after == '\0');
}

static att_status collect_named(collector *t, att_pickle_text name, att_pickle_ref ref, int depth)
{
    size_t length = t->name.length;
    if (name.length > MOST_NAME)
        return refuse(t, "a name of more than 1024 bytes");
    if (length > 0)
        att_text_append(&t->name, ".");
    att_text_append_bytes(&t->name, name.bytes, name.length);
    att_status status = may_be_in_part(t) ? collect(t, ref, depth + 1) : ATT_OK;
    t->name.length = length;
    return status;
}

static att_status collect_numbered(collector *t, int64_t number, att_pickle_ref ref, int depth)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%" PRId64, number);
    return collect_named(t, (att_pickle_text){text, (size_t)length}, ref, depth);
}

/* Ignores keys that are neither a text nor an integer: no tensor of a network has such a name. */
static att_status collect_member(collector *t, const att_pickle_value *key, att_pickle_ref ref, int depth)
{
    if (key->kind == ATT_PICKLE_TEXT)
        return collect_named(t, key->text, ref, depth);
    return key->kind == ATT_PICKLE_INT ? collect_numbered(t, key->number, ref, depth) : ATT_OK;
}

static att_status collect_container(collector *t, const att_pickle_value *value, int depth)
{
    const att_pickle_cell *cells = t->pickle->cells;
    if (depth == MOST_DEPTH)
        return refuse(t, "its containers are nested deeper than 16 levels, or contain themselves");
    uint32_t cell = value->cells.first, width = value->kind == ATT_PICKLE_DICT ? 2 : 1;
    for (uint32_t i = 0; i < value->cells.count; i += width) {
        ATT_TRY(att_check_stop(t->file->context, t->file->path));
        if (t->steps-- <= 0)
            return refuse(t, "its nested containers have more than 4194304 values");
        att_pickle_ref first = cells[cell].value;
        if (width == 2) {
            cell = cells[cell].next;
            ATT_TRY(collect_member(t, att_pickle_at(t->pickle, first), cells[cell].value, depth));
        } else {
            ATT_TRY(collect_numbered(t, i, first, depth));
        }
        cell = cells[cell].next;
    }
    return ATT_OK;
}

/* Whether a module's buffer is one that its state_dict() leaves out. */
static bool is_temporary(const att_pickle *pickle, att_pickle_ref state, const att_pickle_value *name)
{
    enum { CLASS, ARGUMENTS, PARTS };
    att_pickle_ref set, parts[PARTS], list;
    if (name->kind != ATT_PICKLE_TEXT || !att_pickle_find(pickle, state, "_non_persistent_buffers_set", &set))
        return false;
    const att_pickle_value *value = att_pickle_at(pickle, set);
    if (value->kind != ATT_PICKLE_OPAQUE || att_pickle_items(pickle, value, parts, PARTS) < PARTS)
        return false;
    value = att_pickle_at(pickle, parts[ARGUMENTS]); /* a tuple of the list of names */
    if (value->kind != ATT_PICKLE_TUPLE || att_pickle_items(pickle, value, &list, 1) != 1)
        return false;
    value = att_pickle_at(pickle, list);
    uint32_t cell = value->cells.first;
    bool found = false;
    for (uint32_t i = 0; value->kind == ATT_PICKLE_LIST && i < value->cells.count && !found; i++) {
        const att_pickle_value *item = att_pickle_at(pickle, pickle->cells[cell].value);
        found = item->kind == ATT_PICKLE_TEXT && att_pickle_text_compare(item->text, name->text) == 0;
        cell = pickle->cells[cell].next;
    }
    return found;
}

/* Adds what a module's state_dict() has: parameters, buffers, and those of the modules in it. */
static att_status collect_module(collector *t, att_pickle_ref state, int depth)
{
    static const char *const groups[] = {"_parameters", "_buffers", "_modules"};
    const att_pickle_cell *cells = t->pickle->cells;
    att_pickle_ref group;
    if (depth >= MOST_DEPTH)
        return refuse(t, "its modules are nested deeper than 16 levels, or contain themselves");
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        if (!att_pickle_find(t->pickle, state, groups[g], &group))
            continue;
        const att_pickle_value *dict = att_pickle_at(t->pickle, group);
        uint32_t cell = dict->cells.first, count = dict->kind == ATT_PICKLE_DICT ? dict->cells.count : 0;
        for (uint32_t i = 0; i + 1 < count; i += 2, cell = cells[cells[cell].next].next) {
            const att_pickle_value *key = att_pickle_at(t->pickle, cells[cell].value);
            const att_pickle_ref member = cells[cells[cell].next].value;
            if (t->steps-- <= 0)
                return refuse(t, "its modules have more than 4194304 values");
            if (att_pickle_at(t->pickle, member)->kind != ATT_PICKLE_NONE && !is_temporary(t->pickle, state, key))
                ATT_TRY(collect_member(t, key, member, depth));
        }
    }
    return ATT_OK;
}

/* Ignores an OPAQUE value without tensors. Fails if the value contains tensors, because only the value's class knows
 * their meaning. */
static att_status collect_object(collector *t, att_pickle_text name, att_pickle_ref ref)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, ref);
    char shown[ATT_PICKLE_SHOWN], class[ATT_PICKLE_SHOWN];
    const char *what;
    att_pickle_show(name, shown);
    if (att_pickle_is_unsupported_tensor(t->pickle, value, &what))
        return att_fail(
            t->file->context, ATT_ERR_UNSUPPORTED,
            "%s: %s is %s, which is not supported; save the network with plain tensors of floats, before it is "
            "quantised or converted",
            t->file->path, shown, what);
    if (holds_tensors(t, ref, 0))
        return att_fail(
            t->file->context, ATT_ERR_UNSUPPORTED,
            "%s: %s%sobject of the class %s with tensors in it; attscope runs no code and cannot know their meaning%s",
            t->file->path, shown, *shown ? " is an " : "an ",
            att_pickle_show(att_pickle_class_name(t->pickle, value), class), ATT_TORCH_ADVICE);
    list_ignored(t, name);
    return ATT_OK;
}

/* Adds the tensors in a value, whose name is t->name. */
static att_status collect(collector *t, att_pickle_ref ref, int depth)
{
    if (att_pickle_script_state(t->pickle, &ref))
        return collect_container(t, att_pickle_at(t->pickle, ref), depth);
    att_pickle_ref state;
    if (att_torch_module_state(t->pickle, ref, &state))
        return collect_module(t, state, depth);
    const att_pickle_value *value = att_pickle_at(t->pickle, ref);
    att_pickle_text name = {t->name.data ? t->name.data : "", t->name.length};
    bool counter = strcmp(name.bytes, "n_averaged") == 0; /* of torch.optim.swa_utils.AveragedModel */
    if (value->kind == ATT_PICKLE_TENSOR && !counter)
        return add_item(t, &t->pickle->tensors[value->index]);
    if (is_container(value))
        return collect_container(t, value, depth);
    if (value->kind == ATT_PICKLE_OPAQUE)
        return collect_object(t, name, ref);
    list_ignored(t, name);
    return ATT_OK;
}

/* --- the whole checkpoint ----------------------------------------------------------------------------------------- */

/* Adds the tensors of `root`. One that is no container gets the name "tensor". */
static att_status collect_root(collector *t, att_pickle_ref root)
{
    const bool single = att_pickle_at(t->pickle, root)->kind == ATT_PICKLE_TENSOR;
    return single ? collect_named(t, (att_pickle_text){"tensor", 6}, root, 0) : collect(t, root, 0);
}

/* Adds the weights in `root`. key: the key of `root` in the checkpoint, NULL if `root` is the whole checkpoint. */
static att_status collect_weights(collector *t, att_pickle_ref root, const char *key)
{
    int first = t->file->count;
    const char *inner = NULL;
    att_text scope = {.context = t->file->context};
    att_text_append(&t->origin, "%s", key ? key : "");
    att_text_append(&scope, "%s", key ? key : "");
    for (int level = 0; level < MOST_LEVELS; level++) {
        att_pickle_ref found;
        inner = find_keys(t, root, weight_keys, WEIGHT_KEYS, &found);
        if (!inner)
            break;
        att_text_append(&t->origin, "%s%s", key ? "." : "", inner);
        att_text_append(&scope, "%s%s", key ? "." : "", inner);
        list_others(t, root, inner, NULL);
        root = found;
        key = inner;
    }
    t->file->scope = scope.failed ? NULL : att_arena_string(&t->file->arena, scope.data ? scope.data : "");
    att_text_free(&scope);
    if (!t->file->scope)
        return att_fail_memory(t->file->context, MOST_NAME, t->file->path);
    att_pickle_ref state;
    char class[ATT_PICKLE_SHOWN];
    if (att_torch_module_state(t->pickle, root, &state))
        att_text_append(&t->origin, "%s%s", key ? ", a whole " : "whole ",
                        att_pickle_show(att_pickle_class_name(t->pickle, att_pickle_at(t->pickle, root)), class));
    else if (!key)
        att_text_append(&t->origin, "tensors");
    t->name.length = 0;
    ATT_TRY(collect_root(t, root));
    if (att_torch_module_state(t->pickle, root, &state) && first == 0)
        ATT_TRY(att_torch_module_settings(t->file, t->pickle, state));
    return att_tensors_normalize_names(t->file, first, &t->origin);
}

/* Adds the tensors of file->part; all tensors if it has none, whose names the refusal then lists. */
static att_status collect_part(collector *t, att_pickle_ref root)
{
    att_text_append(&t->origin, "%s", t->file->part);
    ATT_TRY(collect(t, root, 0));
    t->whole = t->file->count == 0;
    if (t->whole)
        ATT_TRY(collect(t, root, 0));
    return att_tensors_normalize_names(t->file, 0, &t->origin);
}

static bool is_optimizer(const collector *t, att_pickle_ref dict)
{
    att_pickle_ref found;
    return att_pickle_find(t->pickle, dict, "state", &found) &&
           att_pickle_find(t->pickle, dict, "param_groups", &found);
}

/* A network in a checkpoint. */
typedef struct network_of {
    att_pickle_text key;
    att_pickle_ref value;
} network_of;

/* Returns how many values of the dictionary are tensors. */
static int count_tensors(const collector *t, att_pickle_ref dict)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, dict);
    const att_pickle_cell *cells = t->pickle->cells;
    uint32_t cell = value->cells.first;
    int count = 0;
    for (uint32_t i = 0; i + 1 < value->cells.count; i += 2, cell = cells[cells[cell].next].next)
        count += att_pickle_at(t->pickle, cells[cells[cell].next].value)->kind == ATT_PICKLE_TENSOR;
    return count;
}

/* Appends the keys whose values are dictionaries with tensors, but for optimisers. Returns their number. last: the last
 * key and value. */
static int list_networks(collector *t, att_pickle_ref root, att_text *list, network_of *last)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, root);
    const att_pickle_cell *cells = t->pickle->cells;
    uint32_t cell = value->cells.first;
    int count = 0;
    if (value->kind != ATT_PICKLE_DICT)
        return 0;
    for (uint32_t i = 0; i + 1 < value->cells.count; i += 2, cell = cells[cells[cell].next].next) {
        const att_pickle_value *key = att_pickle_at(t->pickle, cells[cell].value);
        const att_pickle_ref held = cells[cells[cell].next].value;
        char shown[ATT_PICKLE_SHOWN];
        att_pickle_ref state;
        if (key->kind != ATT_PICKLE_TEXT ||
            (att_pickle_at(t->pickle, held)->kind != ATT_PICKLE_DICT &&
             !att_torch_module_state(t->pickle, held, &state)) ||
            is_optimizer(t, held) || !holds_tensors(t, held, 0))
            continue;
        if (count < LISTED)
            att_text_append(list, "%s%s", count ? ", " : "", att_pickle_show(key->text, shown));
        *last = (network_of){key->text, held};
        count++;
    }
    return count;
}

/* Whether the value is the state of an optimiser, or a dictionary that has one and no tensor of its own. */
static bool holds_optimizer(const collector *t, att_pickle_ref root)
{
    const att_pickle_value *value = att_pickle_at(t->pickle, root);
    const att_pickle_cell *cells = t->pickle->cells;
    if (value->kind != ATT_PICKLE_DICT || is_optimizer(t, root))
        return value->kind == ATT_PICKLE_DICT;
    uint32_t cell = value->cells.first;
    bool holds = false;
    for (uint32_t i = 0; i + 1 < value->cells.count && !holds; i += 2, cell = cells[cells[cell].next].next)
        holds = is_optimizer(t, cells[cells[cell].next].value);
    return holds && count_tensors(t, root) == 0;
}

/* Refuses a checkpoint with several dictionaries of tensors, none of which has a usual key. If there is one, and hardly
 * a tensor beside it, adds its tensors, else all. */
static att_status collect_unnamed(collector *t, att_pickle_ref root)
{
    att_text list = {.context = t->file->context};
    network_of only = {{NULL, 0}, root};
    char key[ATT_PICKLE_SHOWN];
    const int count = list_networks(t, root, &list, &only);
    att_status status = ATT_OK;
    if (list.failed)
        status = att_fail_memory(t->file->context, MOST_NAME, t->file->path);
    else if (count > 1)
        status = att_fail(t->file->context, ATT_ERR_FORMAT,
                          "%s: a file of several networks, or of parts of one: %s; choose with \"%s#NAME\"",
                          t->file->path, list.data, t->file->path);
    att_text_free(&list);
    ATT_TRY(status);
    if (holds_optimizer(t, root) && (count == 0 || is_optimizer(t, root)))
        return refuse(t, "the state of an optimiser, without the weights of a network; name the file of the weights");
    if (count == 0 || count_tensors(t, root) > MOST_BESIDE)
        return collect_weights(t, root, NULL);
    att_pickle_show(only.key, key);
    list_others(t, root, key, NULL);
    return collect_weights(t, only.value, key);
}

/* Names, as skipped, the other keys of `weight_keys` that hold tensors. */
static att_status note_other_networks(collector *t, att_pickle_ref root, const char *taken)
{
    att_tensors *file = t->file;
    att_text text = {.context = file->context};
    att_pickle_ref found;
    for (int i = 0; i < WEIGHT_KEYS; i++) {
        const char *key = weight_keys[i];
        if (key != taken && find_keys(t, root, &key, 1, &found))
            att_text_append(&text, "%sthe network %s, which \"%s#%s\" reads", text.length ? ", " : "", key, file->path,
                            key);
    }
    const char *copy = text.failed ? NULL : att_arena_string(&file->arena, text.data ? text.data : "");
    if (copy)
        file->skipped = copy;
    att_text_free(&text);
    return copy ? ATT_OK : att_fail_memory(file->context, MOST_NAME, file->path);
}

/* Adds the weights and, if present, their average. If there is only an average, adds it as the weights. If there is
 * neither, adds all tensors of the checkpoint. */
static att_status collect_all(collector *t, att_pickle_ref root)
{
    att_pickle_ref weights = root, average = root;
    if (t->file->part)
        return collect_part(t, root);
    const char *key = find_keys(t, root, weight_keys, WEIGHT_KEYS, &weights);
    const char *average_key = find_keys(t, root, average_keys, AVERAGE_KEYS, &average);
    if (!key && !average_key)
        return collect_unnamed(t, root);
    ATT_TRY(note_other_networks(t, root, key));
    list_others(t, root, key, average_key);
    if (!key)
        return collect_weights(t, average, average_key);
    ATT_TRY(collect_weights(t, weights, key));
    if (!average_key || t->file->has_average)
        return ATT_OK;
    int first = t->file->count;
    att_text_append(&t->origin, "; averaged weights: ");
    ATT_TRY(collect_weights(t, average, average_key));
    return att_tensors_name_average(t->file, first);
}

static att_status finish(collector *t)
{
    att_tensors *file = t->file;
    if (file->count == 0 && t->is_script)
        return att_fail(file->context, ATT_ERR_FORMAT,
                        "%s: a TorchScript program without parameters: torch.jit.freeze() makes them constants of its "
                        "code; save the program before it is frozen, or the network's state_dict",
                        file->path);
    if (file->count == 0)
        return att_fail(file->context, ATT_ERR_FORMAT, "%s: a PyTorch file without tensors%s%s", file->path,
                        t->ignored_count ? "; it contains " : "", t->ignored_count ? t->ignored.data : "");
    if (t->ignored_count)
        att_text_append(&t->origin, "; left out: %s", t->ignored.data);
    const char *origin = t->origin.failed || t->ignored.failed ? NULL : att_arena_string(&file->arena, t->origin.data);
    if (!origin)
        return att_fail_memory(file->context, t->origin.length, file->path);
    file->origin = origin;
    return ATT_OK;
}

att_status att_torch_state_collect(att_tensors *file, const att_pickle *pickle, att_pickle_ref root)
{
    att_context *context = file->context;
    collector t = {.file = file,
                   .pickle = pickle,
                   .steps = MOST_STEPS,
                   .bytes_left = att_file_reader_size(file->reader) * MOST_EXPANSION + FREE_BYTES,
                   .name.context = context,
                   .origin.context = context,
                   .ignored.context = context};
    t.is_script = att_pickle_script_state(pickle, &root);
    att_text_append(&t.origin, t.is_script ? "TorchScript's " : "PyTorch's ");
    att_status status = collect_metadata(file, pickle, root);
    if (status == ATT_OK)
        status = file->is_shard ? collect_root(&t, root) : collect_all(&t, root);
    if (status == ATT_OK)
        status = finish(&t);
    att_text_free(&t.name);
    att_text_free(&t.origin);
    att_text_free(&t.ignored);
    return status;
}
