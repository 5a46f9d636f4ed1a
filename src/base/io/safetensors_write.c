#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/safetensors.h"

enum { HEADER_ALIGNMENT = 8 };

struct placed {
    const att_safetensors_tensor *tensor;
    size_t bytes;
};

struct writing {
    att_context *context;
    const char *path;
    const att_safetensors_content *content;
    bool later;           /* the caller writes the data */
    struct placed *order; /* [tensor_count] tensors in the file's order */
    size_t header;        /* bytes before the first tensor's data */
    void *buffer;         /* as large as the largest tensor whose data `fill` provides */
    att_file_writer *file;
};

static int compare_tensors(const void *a, const void *b)
{
    const att_safetensors_tensor *left = ((const struct placed *)a)->tensor,
                                 *right = ((const struct placed *)b)->tensor;
    size_t left_size = att_safetensors_dtype_size(left->dtype), right_size = att_safetensors_dtype_size(right->dtype);
    if (left_size != right_size)
        return left_size > right_size ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static att_status check_unique(const struct writing *writing, const char **names, int count)
{
    qsort((void *)names, (size_t)count, sizeof(*names), compare_strings);
    for (int i = 0; i < count; i++) {
        if (!att_utf8_valid(names[i]))
            return att_fail(writing->context, ATT_ERR_ARGUMENT, "%s: the name \"%s\" is not UTF-8", writing->path,
                            names[i]);
        if (i > 0 && strcmp(names[i - 1], names[i]) == 0)
            return att_fail(writing->context, ATT_ERR_ARGUMENT, "%s: %s would be written twice", writing->path,
                            names[i]);
    }
    return ATT_OK;
}

/* names: scratch array, as long as the larger of tensor_count and metadata_count. */
static att_status check_names(const struct writing *writing, const char **names)
{
    const att_safetensors_content *content = writing->content;
    for (int i = 0; i < content->tensor_count; i++)
        names[i] = content->tensors[i].name;
    ATT_TRY(check_unique(writing, names, content->tensor_count));
    for (int i = 0; i < content->metadata_count; i++) {
        names[i] = content->metadata[i].key;
        if (!att_utf8_valid(content->metadata[i].value))
            return att_fail(writing->context, ATT_ERR_ARGUMENT, "%s: the metadata under %s is not UTF-8", writing->path,
                            names[i]);
    }
    return check_unique(writing, names, content->metadata_count);
}

static att_status check_content(const struct writing *writing)
{
    const att_safetensors_content *content = writing->content;
    size_t room =
        (size_t)(content->tensor_count > content->metadata_count ? content->tensor_count : content->metadata_count);
    if (room == 0)
        return ATT_OK;
    const char **names = att_allocate_array(writing->context, room, sizeof(*names));
    if (names == NULL)
        return att_fail_memory(writing->context, room * sizeof(*names), writing->path);
    att_status status = check_names(writing, names);
    att_free(writing->context, (void *)names);
    return status;
}

static att_status place_tensor(const struct writing *writing, const att_safetensors_tensor *tensor,
                               struct placed *placed)
{
    int64_t count = att_shape_count(tensor->shape);
    size_t size = att_safetensors_dtype_size(tensor->dtype);
    if (strcmp(tensor->name, ATT_SAFETENSORS_METADATA) == 0 || count < 0 || size == 0 ||
        (uint64_t)count > SIZE_MAX / size ||
        (!writing->later && tensor->data == NULL && count > 0 && writing->content->fill == NULL))
        return att_fail(writing->context, ATT_ERR_ARGUMENT,
                        "%s: tensor %s: a name, shape or type that cannot be written, or no data", writing->path,
                        tensor->name);
    placed->tensor = tensor;
    placed->bytes = (size_t)count * size;
    return ATT_OK;
}

/* Allocates and sets `order`, and allocates `buffer`. */
static att_status place_tensors(struct writing *writing)
{
    const att_safetensors_content *content = writing->content;
    if (content->tensor_count == 0)
        return ATT_OK;
    size_t count = (size_t)content->tensor_count, largest = 0;
    ATT_TRY(att_new(writing->context, &writing->order, count, writing->path));
    for (size_t i = 0; i < count; i++) {
        struct placed *placed = &writing->order[i];
        ATT_TRY(place_tensor(writing, &content->tensors[i], placed));
        if (placed->tensor->data == NULL && placed->bytes > largest)
            largest = placed->bytes;
    }
    qsort(writing->order, count, sizeof(*writing->order), compare_tensors);
    if (largest == 0 || writing->later)
        return ATT_OK;
    writing->buffer = att_allocate(writing->context, largest);
    return writing->buffer != NULL ? ATT_OK : att_fail_memory(writing->context, largest, writing->path);
}

static void describe_tensor(att_json_writer *json, const struct placed *placed, int64_t begin)
{
    const att_safetensors_tensor *tensor = placed->tensor;
    att_json_put_object(json, tensor->name);
    att_json_put_string(json, "dtype", att_safetensors_dtype_name(tensor->dtype));
    att_json_put_array(json, "shape");
    for (int i = 0; i < tensor->shape.rank; i++)
        att_json_integer(json, tensor->shape.dims[i]);
    att_json_end_array(json);
    att_json_put_array(json, "data_offsets");
    att_json_integer(json, begin);
    att_json_integer(json, begin + (int64_t)placed->bytes);
    att_json_end_array(json);
    att_json_end_object(json);
}

static att_status describe_content(const struct writing *writing, att_json_writer *json)
{
    const att_safetensors_content *content = writing->content;
    att_json_begin_object(json);
    if (content->metadata_count > 0) {
        att_json_put_object(json, ATT_SAFETENSORS_METADATA);
        for (int i = 0; i < content->metadata_count; i++)
            att_json_put_string(json, content->metadata[i].key, content->metadata[i].value);
        att_json_end_object(json);
    }
    uint64_t place = 0;
    for (int i = 0; i < content->tensor_count; i++) {
        const struct placed *placed = &writing->order[i];
        if (placed->bytes > (uint64_t)INT64_MAX - place)
            return att_fail(writing->context, ATT_ERR_ARGUMENT, "%s: the tensors are too large for one file",
                            writing->path);
        describe_tensor(json, placed, (int64_t)place);
        place += placed->bytes;
    }
    att_json_end_object(json);
    return ATT_OK;
}

static att_status write_header(struct writing *writing, att_json_writer *json)
{
    ATT_TRY(describe_content(writing, json));
    const char *text = NULL;
    size_t length = 0;
    ATT_TRY(att_json_writer_finish(json, &text, &length));
    size_t padded = (length + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    if (padded > ATT_SAFETENSORS_MAX_HEADER)
        return att_fail(writing->context, ATT_ERR_ARGUMENT,
                        "%s: names and metadata need %zu bytes; at most %d are allowed", writing->path, padded,
                        (int)ATT_SAFETENSORS_MAX_HEADER);
    writing->header = ATT_SAFETENSORS_LENGTH_BYTES + padded;
    uint8_t announced[ATT_SAFETENSORS_LENGTH_BYTES];
    for (int i = 0; i < ATT_SAFETENSORS_LENGTH_BYTES; i++)
        announced[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    ATT_TRY(att_file_writer_write(writing->file, announced, sizeof(announced)));
    ATT_TRY(att_file_writer_write(writing->file, text, length));
    return att_file_writer_write(writing->file, "       ", padded - length);
}

static att_status write_tensor(struct writing *writing, const struct placed *placed)
{
    const void *data = placed->tensor->data;
    if (placed->bytes == 0)
        return ATT_OK;
    if (data == NULL) {
        int index = (int)(placed->tensor - writing->content->tensors);
        ATT_TRY(writing->content->fill(writing->content->fill_user, index, writing->buffer, placed->bytes));
        data = writing->buffer;
    }
    return att_file_writer_write(writing->file, data, placed->bytes);
}

static att_status write_content(struct writing *writing)
{
    att_json_writer *json = NULL;
    ATT_TRY(att_json_writer_create(writing->context, false, &json));
    att_status status = write_header(writing, json);
    att_json_writer_destroy(&json);
    for (int i = 0; i < writing->content->tensor_count && status == ATT_OK && !writing->later; i++)
        status = write_tensor(writing, &writing->order[i]);
    return status;
}

static att_status commit_with(struct writing *writing, const att_safetensors_beside *beside)
{
    att_file_writer *second = NULL;
    att_status status = beside->bytes ? att_file_writer_open(writing->context, beside->path, &second) : ATT_OK;
    if (status == ATT_OK && second)
        status = att_file_writer_write(second, beside->bytes, beside->size);
    if (status == ATT_OK)
        return att_file_writer_commit_with(&writing->file, beside->path, &second);
    att_file_writer_abort(&second);
    att_file_writer_abort(&writing->file);
    return status;
}

static att_status commit(struct writing *writing)
{
    const att_safetensors_beside *beside = writing->content->beside;
    return beside ? commit_with(writing, beside) : att_file_writer_commit(&writing->file);
}

static att_status write_file(struct writing *writing)
{
    ATT_TRY(check_content(writing));
    ATT_TRY(place_tensors(writing));
    ATT_TRY(att_file_writer_open(writing->context, writing->path, &writing->file));
    att_status status = write_content(writing);
    if (status == ATT_OK && writing->later)
        return ATT_OK;
    if (status == ATT_OK)
        return commit(writing);
    att_file_writer_abort(&writing->file);
    return status;
}

att_status att_safetensors_write(att_context *context, const char *path, const att_safetensors_content *content)
{
    struct writing writing = {.context = context, .path = path, .content = content};
    att_status status = write_file(&writing);
    att_free(context, writing.order);
    att_free(context, writing.buffer);
    return status;
}

static void tell_offsets(const struct writing *writing, uint64_t *offsets)
{
    uint64_t place = writing->header;
    for (int i = 0; i < writing->content->tensor_count; i++) {
        offsets[writing->order[i].tensor - writing->content->tensors] = place;
        place += writing->order[i].bytes;
    }
}

att_status att_safetensors_begin(att_context *context, const char *path, const att_safetensors_content *content,
                                 uint64_t *offsets, att_file_writer **file)
{
    struct writing writing = {.context = context, .path = path, .content = content, .later = true};
    att_status status = write_file(&writing);
    if (status == ATT_OK) {
        tell_offsets(&writing, offsets);
        *file = writing.file;
    }
    att_free(context, writing.order);
    return status;
}
