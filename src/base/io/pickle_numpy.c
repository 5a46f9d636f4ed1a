#include "base/io/pickle_numpy.h"

#include <string.h>

/* Copies the first `count` cells of an OPAQUE value of this class. Returns false if `ref` is another value. */
static bool read_object(const att_pickle *pickle, att_pickle_ref ref, const char *class, att_pickle_ref *parts,
                        uint32_t count)
{
    const att_pickle_value *value = att_pickle_at(pickle, ref);
    if (value->kind != ATT_PICKLE_OPAQUE || !att_pickle_is_inert(pickle, value))
        return false;
    att_pickle_text name = att_pickle_class_name(pickle, value);
    return name.length == strlen(class) && memcmp(name.bytes, class, name.length) == 0 &&
           att_pickle_items(pickle, value, parts, count) >= count;
}

/* Copies the items of a tuple. Returns false unless `ref` is a tuple of exactly `count` items. */
static bool read_tuple(const att_pickle *pickle, att_pickle_ref ref, att_pickle_ref *items, uint32_t count)
{
    const att_pickle_value *value = att_pickle_at(pickle, ref);
    return value->kind == ATT_PICKLE_TUPLE && att_pickle_items(pickle, value, items, count) == count;
}

enum { CLASS, ARGUMENTS, STATE, PARTS };

/* Returns whether `ref` is dtype("u1", ...). */
static bool is_byte_type(const att_pickle *pickle, att_pickle_ref ref)
{
    att_pickle_ref parts[PARTS], name;
    if (!read_object(pickle, ref, "dtype", parts, STATE))
        return false;
    const att_pickle_value *arguments = att_pickle_at(pickle, parts[ARGUMENTS]);
    return arguments->kind == ATT_PICKLE_TUPLE && att_pickle_items(pickle, arguments, &name, 1) >= 1 &&
           att_pickle_text_is(att_pickle_at(pickle, name), "u1");
}

/* Reads bytes or _codecs.encode(text, "latin1"). */
static bool read_bytes(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix)
{
    att_pickle_ref parts[PARTS], given[2];
    matrix->utf8 = read_object(pickle, ref, "encode", parts, STATE);
    if (matrix->utf8) {
        if (!read_tuple(pickle, parts[ARGUMENTS], given, 2) ||
            !att_pickle_text_is(att_pickle_at(pickle, given[1]), "latin1"))
            return false;
        ref = given[0];
    }
    const att_pickle_value *value = att_pickle_at(pickle, ref);
    if (value->kind != ATT_PICKLE_TEXT)
        return false;
    matrix->bytes = value->text;
    return true;
}

static bool read_shape(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix)
{
    att_pickle_ref dims[2];
    if (!read_tuple(pickle, ref, dims, 2))
        return false;
    const att_pickle_value *rows = att_pickle_at(pickle, dims[0]), *columns = att_pickle_at(pickle, dims[1]);
    if (rows->kind != ATT_PICKLE_INT || columns->kind != ATT_PICKLE_INT)
        return false;
    matrix->rows = rows->number;
    matrix->columns = columns->number;
    return matrix->rows > 0 && matrix->columns > 0 && matrix->rows <= (int64_t)matrix->bytes.length / matrix->columns;
}

/* Reads _reconstruct(...) with the state (version, shape, dtype, is_fortran, bytes). */
static bool read_reconstructed(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix)
{
    enum { VERSION, SHAPE, TYPE, BY_COLUMNS, BYTES, ITEMS };
    att_pickle_ref parts[PARTS], state[ITEMS];
    if (!read_object(pickle, ref, "_reconstruct", parts, PARTS) || !read_tuple(pickle, parts[STATE], state, ITEMS))
        return false;
    const att_pickle_value *by_columns = att_pickle_at(pickle, state[BY_COLUMNS]);
    return by_columns->kind == ATT_PICKLE_BOOL && !by_columns->number && is_byte_type(pickle, state[TYPE]) &&
           read_bytes(pickle, state[BYTES], matrix) && read_shape(pickle, state[SHAPE], matrix);
}

/* Reads _frombuffer(bytes, dtype, shape, order). */
static bool read_from_buffer(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix)
{
    enum { BYTES, TYPE, SHAPE, ORDER, ITEMS };
    att_pickle_ref parts[PARTS], given[ITEMS];
    return read_object(pickle, ref, "_frombuffer", parts, STATE) &&
           read_tuple(pickle, parts[ARGUMENTS], given, ITEMS) && is_byte_type(pickle, given[TYPE]) &&
           att_pickle_text_is(att_pickle_at(pickle, given[ORDER]), "C") && read_bytes(pickle, given[BYTES], matrix) &&
           read_shape(pickle, given[SHAPE], matrix);
}

bool att_pickle_matrix_find(const att_pickle *pickle, att_pickle_ref ref, att_pickle_matrix *matrix)
{
    return read_reconstructed(pickle, ref, matrix) || read_from_buffer(pickle, ref, matrix);
}

/* Decodes Latin-1 characters from UTF-8. U+0080 to U+00FF are 110000xx 10xxxxxx. */
static bool decode(att_pickle_text from, uint8_t *out, size_t count)
{
    const uint8_t *at = (const uint8_t *)from.bytes, *end = at + from.length;
    for (size_t i = 0; i < count; i++) {
        if (at == end)
            return false;
        uint8_t first = *at++;
        if (first < 0x80) {
            out[i] = first;
            continue;
        }
        if ((first & 0xfe) != 0xc2 || at == end || (*at & 0xc0) != 0x80)
            return false;
        out[i] = (uint8_t)((first & 3) << 6 | (*at++ & 0x3f));
    }
    return at == end;
}

bool att_pickle_matrix_copy(const att_pickle_matrix *matrix, uint8_t *out)
{
    size_t count = (size_t)matrix->rows * (size_t)matrix->columns;
    if (matrix->utf8)
        return decode(matrix->bytes, out, count);
    if (matrix->bytes.length != count)
        return false;
    memcpy(out, matrix->bytes.bytes, count);
    return true;
}
