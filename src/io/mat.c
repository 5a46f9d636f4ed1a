#include "io/mat.h"

#include <string.h>

#include <zlib.h>

#include "core/error.h"
#include "core/memory.h"

enum { FILE_HEADER = 128, VERSION_AT = 124, TAG = 8, MAX_FIELD_NAME = 64, CLASS_STRUCT = 2, CLASS_CHAR = 4 };
static const size_t max_unpacked = (size_t)64 << 20;

/* Types of data elements. */
enum {
    TYPE_INT8 = 1,
    TYPE_UINT8 = 2,
    TYPE_INT16 = 3,
    TYPE_UINT16 = 4,
    TYPE_INT32 = 5,
    TYPE_UINT32 = 6,
    TYPE_SINGLE = 7,
    TYPE_DOUBLE = 9,
    TYPE_MATRIX = 14,
    TYPE_COMPRESSED = 15,
    TYPE_UTF8 = 16,
    TYPE_UTF16 = 17
};

/* Bytes that are still to be read. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

typedef struct element {
    uint32_t type;
    cursor data;
} element;

/* A matrix, up to its contents. */
typedef struct matrix {
    int class;
    int64_t count;
    cursor name, contents;
} matrix;

struct att_mat_struct {
    att_context *context;
    const char *what;
    uint8_t *bytes; /* of the variable, unpacked; the values point into them */
    int64_t count;
    int field_count;
    char (*fields)[MAX_FIELD_NAME];
    element *values; /* [count][field_count] */
};

/* --- elements ----------------------------------------------------------------------------------------------------- */

static uint64_t get_integer(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static void advance(cursor *from, size_t bytes)
{
    bytes = bytes < from->left ? bytes : from->left;
    from->at += bytes;
    from->left -= bytes;
}

/* Takes the next data element and the padding behind it. Returns false if it does not fit. */
static bool take(cursor *from, element *out)
{
    if (from->left < TAG)
        return false;
    uint32_t type = (uint32_t)get_integer(from->at, 4), size = type >> 16;
    bool small = size > 0; /* the data lie in the tag */
    if (!small)
        size = (uint32_t)get_integer(from->at + 4, 4);
    if (small ? size > 4 : size > from->left - TAG)
        return false;
    *out = (element){small ? type & 0xffff : type, {from->at + (small ? 4 : TAG), size}};
    size_t padded = type == TYPE_COMPRESSED ? size : ((size_t)size + TAG - 1) / TAG * TAG;
    advance(from, small ? TAG : TAG + padded);
    return true;
}

static bool take_type(cursor *from, uint32_t type, element *out)
{
    return take(from, out) && out->type == type;
}

/* Product of the dimensions; -1 if they are invalid. */
static int64_t count_elements(const cursor *dims)
{
    static const int64_t most = 1 << 30;
    int64_t count = 1;
    if (dims->left < 8 || dims->left % 4 != 0)
        return -1;
    for (size_t i = 0; i < dims->left; i += 4) {
        int64_t dim = (int64_t)get_integer(dims->at + i, 4);
        if (dim > most || (dim > 0 && count > most / dim))
            return -1;
        count *= dim;
    }
    return count;
}

static bool open_matrix(const element *from, matrix *out)
{
    cursor left = from->data;
    element flags, dims, name;
    if (from->type != TYPE_MATRIX || !take_type(&left, TYPE_UINT32, &flags) || flags.data.left < 8 ||
        !take_type(&left, TYPE_INT32, &dims) || !take_type(&left, TYPE_INT8, &name))
        return false;
    *out = (matrix){flags.data.at[0], count_elements(&dims.data), name.data, left};
    return out->count >= 0;
}

/* --- the variable ------------------------------------------------------------------------------------------------- */

static att_status fail(const att_mat_struct *array, const char *reason)
{
    return att_fail(array->context, ATT_ERR_FORMAT, "%s: not a MATLAB file (level 5) that can be read: %s", array->what,
                    reason);
}

/* Unpacks to array->bytes. Sets *unpacked to them. */
static att_status unpack(att_mat_struct *array, const cursor *packed, cursor *unpacked)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed->at, .avail_in = (uInt)packed->left};
    size_t size = 0;
    int code = inflateInit(&z);
    att_free(array->context, array->bytes);
    array->bytes = NULL;
    while (code == Z_OK && size < max_unpacked) {
        size_t room = size ? 2 * size : (size_t)1 << 16;
        uint8_t *bytes = att_reallocate(array->context, array->bytes, room);
        if (!bytes) {
            inflateEnd(&z);
            return att_fail_memory(array->context, room, array->what);
        }
        array->bytes = bytes;
        z.next_out = bytes + size;
        z.avail_out = (uInt)(room - size);
        code = inflate(&z, Z_NO_FLUSH);
        size = room - z.avail_out;
        if (code == Z_OK && z.avail_out > 0)
            code = Z_DATA_ERROR; /* truncated */
    }
    inflateEnd(&z);
    if (code == Z_OK)
        return att_fail(array->context, ATT_ERR_UNSUPPORTED, "%s: a variable unpacks to more than %zu bytes",
                        array->what, max_unpacked);
    *unpacked = (cursor){array->bytes, size};
    return code == Z_STREAM_END ? ATT_OK : fail(array, "a compressed variable is damaged");
}

static att_status copy(att_mat_struct *array, const cursor *from, cursor *copied)
{
    att_free(array->context, array->bytes);
    array->bytes = att_reallocate(array->context, NULL, from->left + 1);
    if (!array->bytes)
        return att_fail_memory(array->context, from->left + 1, array->what);
    memcpy(array->bytes, from->at, from->left);
    *copied = (cursor){array->bytes, from->left};
    return ATT_OK;
}

static bool is_named(const matrix *it, const char *name)
{
    return it->name.left == strlen(name) && memcmp(it->name.at, name, it->name.left) == 0;
}

/* Finds the variable, and copies or unpacks it to array->bytes. */
static att_status find_variable(att_mat_struct *array, cursor from, const char *variable, matrix *found)
{
    while (from.left > 0) {
        element next;
        cursor whole = from, kept;
        if (!take(&from, &next))
            return fail(array, "it is truncated or damaged");
        whole.left -= from.left;
        if (next.type == TYPE_COMPRESSED)
            ATT_TRY(unpack(array, &next.data, &kept));
        else
            ATT_TRY(copy(array, &whole, &kept));
        if (take(&kept, &next) && open_matrix(&next, found) && is_named(found, variable))
            return ATT_OK;
    }
    return att_fail(array->context, ATT_ERR_FORMAT, "%s has no variable \"%s\"", array->what, variable);
}

static att_status read_field_names(att_mat_struct *array, cursor *from)
{
    element length, names;
    if (!take_type(from, TYPE_INT32, &length) || length.data.left != 4 || !take_type(from, TYPE_INT8, &names))
        return fail(array, "the names of fields are missing");
    size_t size = get_integer(length.data.at, 4);
    if (size == 0 || size > MAX_FIELD_NAME || names.data.left % size != 0 || names.data.left / size > 1024)
        return fail(array, "the names of fields are damaged");
    array->field_count = (int)(names.data.left / size);
    array->fields = att_allocate_array(array->context, (size_t)array->field_count + 1, sizeof *array->fields);
    if (!array->fields)
        return att_fail_memory(array->context, names.data.left, array->what);
    for (int i = 0; i < array->field_count; i++)
        memcpy(array->fields[i], names.data.at + (size_t)i * size, size < MAX_FIELD_NAME ? size : MAX_FIELD_NAME - 1);
    return ATT_OK;
}

static att_status read_values(att_mat_struct *array, cursor *from)
{
    size_t fields = (size_t)array->field_count, most = from->left / TAG;
    if (fields == 0 || (size_t)array->count > most / fields)
        return fail(array, "the values of fields are missing");
    size_t count = (size_t)array->count * fields;
    array->values = att_allocate_array(array->context, count + 1, sizeof *array->values);
    if (!array->values)
        return att_fail_memory(array->context, count * sizeof *array->values, array->what);
    for (size_t i = 0; i < count; i++)
        if (!take(from, &array->values[i]))
            return fail(array, "the values of fields are damaged");
    return ATT_OK;
}

static att_status read_struct(att_mat_struct *array, const uint8_t *bytes, size_t size, const char *variable)
{
    matrix found;
    if (size < FILE_HEADER)
        return fail(array, "it is too short");
    const uint8_t *version = bytes + VERSION_AT;
    if (memcmp(version, "\1\0MI", 4) == 0)
        return att_fail(array->context, ATT_ERR_UNSUPPORTED, "%s: big-endian MATLAB files are not supported",
                        array->what);
    if (memcmp(version, "\0\1IM", 4) != 0)
        return fail(array, "its header is another one");
    ATT_TRY(find_variable(array, (cursor){bytes + FILE_HEADER, size - FILE_HEADER}, variable, &found));
    if (found.class != CLASS_STRUCT)
        return att_fail(array->context, ATT_ERR_FORMAT, "%s: the variable \"%s\" is not a struct", array->what,
                        variable);
    array->count = found.count;
    ATT_TRY(read_field_names(array, &found.contents));
    return read_values(array, &found.contents);
}

att_status att_mat_struct_read(att_context *context, const char *what, const uint8_t *bytes, size_t size,
                               const char *variable, att_mat_struct **out)
{
    att_mat_struct *array = att_allocate(context, sizeof *array);
    if (!array)
        return att_fail_memory(context, sizeof *array, what);
    array->context = context;
    array->what = what;
    att_status status = read_struct(array, bytes, size, variable);
    if (status == ATT_OK)
        *out = array;
    else
        att_mat_struct_free(&array);
    return status;
}

void att_mat_struct_free(att_mat_struct **out)
{
    att_mat_struct *array = *out;
    if (!array)
        return;
    att_free(array->context, array->values);
    att_free(array->context, array->fields);
    att_free(array->context, array->bytes);
    att_free(array->context, array);
    *out = NULL;
}

int64_t att_mat_struct_count(const att_mat_struct *array)
{
    return array->count;
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

/* Opens a field's matrix and its data. */
static bool open_field(const att_mat_struct *array, int64_t index, const char *field, matrix *opened, element *data)
{
    int number = 0;
    while (number < array->field_count && strcmp(array->fields[number], field) != 0)
        number++;
    if (number == array->field_count)
        return false;
    return open_matrix(&array->values[index * array->field_count + number], opened) && take(&opened->contents, data);
}

/* Size in bytes of a number of the type; 0 if it is not a type of integers. */
static size_t integer_size(uint32_t type)
{
    switch (type) {
    case TYPE_INT8:
    case TYPE_UINT8:
    case TYPE_UTF8:
        return 1;
    case TYPE_INT16:
    case TYPE_UINT16:
    case TYPE_UTF16:
        return 2;
    case TYPE_INT32:
    case TYPE_UINT32:
        return 4;
    default:
        return 0;
    }
}

static bool is_signed(uint32_t type)
{
    return type == TYPE_INT8 || type == TYPE_INT16 || type == TYPE_INT32;
}

static bool get_number(const element *data, double *number)
{
    size_t size = integer_size(data->type);
    float single;
    if (data->type == TYPE_DOUBLE && data->data.left >= sizeof *number) {
        memcpy(number, data->data.at, sizeof *number);
    } else if (data->type == TYPE_SINGLE && data->data.left >= sizeof single) {
        memcpy(&single, data->data.at, sizeof single);
        *number = (double)single;
    } else if (size > 0 && data->data.left >= size) {
        int64_t value = (int64_t)get_integer(data->data.at, size), end = (int64_t)1 << 8 * size;
        *number = (double)(is_signed(data->type) && value >= end / 2 ? value - end : value);
    } else {
        return false;
    }
    return true;
}

att_status att_mat_struct_number(const att_mat_struct *array, int64_t index, const char *field, double *number)
{
    matrix opened;
    element data;
    if (open_field(array, index, field, &opened, &data) && opened.class != CLASS_CHAR && opened.class != CLASS_STRUCT &&
        get_number(&data, number))
        return ATT_OK;
    return att_fail(array->context, ATT_ERR_FORMAT, "%s: element %lld has no number \"%s\"", array->what,
                    (long long)index, field);
}

/* Copies a text of characters below 128. */
static bool get_text(const element *data, char *text, size_t size)
{
    size_t bytes = integer_size(data->type), length = bytes ? data->data.left / bytes : 0;
    if (bytes == 0 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++) {
        uint64_t letter = get_integer(data->data.at + i * bytes, bytes);
        if (letter == 0 || letter >= 128)
            return false;
        text[i] = (char)letter;
    }
    text[length] = '\0';
    return true;
}

att_status att_mat_struct_text(const att_mat_struct *array, int64_t index, const char *field, char *text, size_t size)
{
    matrix opened;
    element data;
    if (open_field(array, index, field, &opened, &data) && opened.class == CLASS_CHAR && get_text(&data, text, size))
        return ATT_OK;
    return att_fail(array->context, ATT_ERR_FORMAT, "%s: element %lld has no text \"%s\" of less than %zu letters",
                    array->what, (long long)index, field, size);
}
