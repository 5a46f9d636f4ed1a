#include "data/packed_pickle.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/pickle_numpy.h"

/* Returns the list stored under `key`; NULL if there is none. */
static const att_pickle_value *find_list(const att_pickle *pickle, att_pickle_ref root, const char *key)
{
    att_pickle_ref found;
    if (!att_pickle_find(pickle, root, key, &found))
        return NULL;
    const att_pickle_value *list = att_pickle_at(pickle, found);
    return list->kind == ATT_PICKLE_LIST ? list : NULL;
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static att_status refuse_batch(const att_pickle *pickle, const att_packed_layout *layout)
{
    return att_fail(pickle->context, ATT_ERR_FORMAT,
                    "%s: expected a Python dictionary with \"data\", a numpy uint8 matrix with one row of %d bytes per "
                    "image, and \"%s\", a list of as many numbers",
                    pickle->path, layout->side * layout->side * 3, layout->labels_key);
}

/* Moves the rows, which are at the end of `records`, to their places in the records, and writes the labels in front of
 * them. */
static att_status fill_records(const att_pickle *pickle, const att_packed_layout *layout,
                               const att_pickle_value *labels, size_t row, const uint8_t *rows, uint8_t *records)
{
    uint32_t cell = labels->cells.first;
    for (uint32_t i = 0; i < labels->cells.count; i++, cell = pickle->cells[cell].next) {
        const att_pickle_value *label = att_pickle_at(pickle, pickle->cells[cell].value);
        uint8_t *record = records + i * (row + (size_t)layout->label_bytes);
        if (label->kind != ATT_PICKLE_INT || label->number < 0 || label->number > UINT8_MAX)
            return refuse_batch(pickle, layout);
        memmove(record + layout->label_bytes, rows + i * row, row);
        memset(record, 0, (size_t)layout->label_bytes);
        record[layout->label_at] = (uint8_t)label->number;
    }
    return ATT_OK;
}

static att_status make_records(const att_pickle *pickle, att_pickle_ref root, const att_packed_layout *layout,
                               char **records, size_t *size)
{
    att_pickle_ref data;
    att_pickle_matrix matrix;
    size_t row = (size_t)layout->side * (size_t)layout->side * 3;
    const att_pickle_value *labels = find_list(pickle, root, layout->labels_key);
    if (!labels || !att_pickle_find(pickle, root, "data", &data) || !att_pickle_matrix_find(pickle, data, &matrix) ||
        (size_t)matrix.columns != row || matrix.rows != labels->cells.count)
        return refuse_batch(pickle, layout);
    size_t before = (size_t)matrix.rows * (size_t)layout->label_bytes;
    *size = before + (size_t)matrix.rows * row;
    *records = att_reallocate(pickle->context, NULL, *size);
    if (!*records)
        return att_fail_memory(pickle->context, *size, pickle->path);
    uint8_t *out = (uint8_t *)*records;
    if (!att_pickle_matrix_copy(&matrix, out + before))
        return refuse_batch(pickle, layout);
    return fill_records(pickle, layout, labels, row, out + before, out);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static att_status append_names(const att_pickle *pickle, const att_pickle_value *names, att_text *text)
{
    uint32_t cell = names->cells.first;
    for (uint32_t i = 0; i < names->cells.count; i++, cell = pickle->cells[cell].next) {
        const att_pickle_value *name = att_pickle_at(pickle, pickle->cells[cell].value);
        if (name->kind != ATT_PICKLE_TEXT || memchr(name->text.bytes, '\n', name->text.length))
            return att_fail(pickle->context, ATT_ERR_FORMAT, "%s: the name of class %u is not a single line of text",
                            pickle->path, i);
        att_text_append_bytes(text, name->text.bytes, name->text.length);
        att_text_append(text, "\n");
    }
    return text->failed ? att_fail_memory(pickle->context, text->capacity, pickle->path) : ATT_OK;
}

static att_status make_names(const att_pickle *pickle, att_pickle_ref root, const att_packed_layout *layout, char **out,
                             size_t *size)
{
    const att_pickle_value *names = find_list(pickle, root, layout->names_key);
    if (!names || names->cells.count == 0)
        return att_fail(pickle->context, ATT_ERR_FORMAT,
                        "%s: expected a Python dictionary with \"%s\", a list of names", pickle->path,
                        layout->names_key);
    att_text text = {.context = pickle->context};
    att_status status = append_names(pickle, names, &text);
    if (status != ATT_OK) {
        att_text_free(&text);
        return status;
    }
    *out = text.data;
    *size = text.length;
    return ATT_OK;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

typedef att_status (*convert_function)(const att_pickle *pickle, att_pickle_ref root, const att_packed_layout *layout,
                                       char **out, size_t *size);

static att_status unpickle(att_context *context, const char *path, const att_packed_layout *layout, const char *bytes,
                           size_t size, convert_function make, char **out, size_t *out_size)
{
    att_pickle pickle = {.context = context, .path = path};
    att_pickle_ref root;
    *out = NULL;
    att_status status = att_pickle_read(&pickle, (const uint8_t *)bytes, size, &root);
    if (status == ATT_OK)
        status = make(&pickle, root, layout, out, out_size);
    att_pickle_free(&pickle);
    if (status != ATT_OK) {
        att_free(context, *out);
        *out = NULL;
    }
    return status;
}

att_status att_packed_unpickle_batch(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **records, size_t *records_size)
{
    return unpickle(context, path, layout, bytes, size, make_records, records, records_size);
}

att_status att_packed_unpickle_names(att_context *context, const char *path, const att_packed_layout *layout,
                                     const char *bytes, size_t size, char **text, size_t *text_size)
{
    return unpickle(context, path, layout, bytes, size, make_names, text, text_size);
}
