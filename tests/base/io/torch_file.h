/* io/torch_file.h - for tests: pickles built by hand, and files of both formats around them. */
#ifndef TESTS_IO_TORCH_FILE_H
#define TESTS_IO_TORCH_FILE_H

#include <attscope/tensors.h>

#include "base/io/scratch.h"

/* --- bytes -------------------------------------------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t data[1 << 16];
    size_t size;
} bytes;

static inline void put(bytes *to, const void *data, size_t size)
{
    assert_true(size <= sizeof to->data - to->size);
    if (size > 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

static inline void put_number(bytes *to, uint64_t number, int count)
{
    for (int i = 0; i < count; i++, number >>= 8)
        put(to, &(uint8_t){(uint8_t)number}, 1);
}

/* --- pickles ------------------------------------------------------------------------------------------------------ */

/* Appends opcodes without arguments. */
static inline void ops(bytes *to, const char *opcodes)
{
    put(to, opcodes, strlen(opcodes));
}

static inline void text(bytes *to, const char *value)
{
    ops(to, "X");
    put_number(to, strlen(value), 4);
    ops(to, value);
}

static inline void integer(bytes *to, int64_t value)
{
    ops(to, "\x8a\x08");
    put_number(to, (uint64_t)value, 8);
}

static inline void global(bytes *to, const char *module, const char *name)
{
    ops(to, "c");
    ops(to, module);
    ops(to, "\n");
    ops(to, name);
    ops(to, "\n");
}

static inline void numbers(bytes *to, const int64_t *values, int count)
{
    ops(to, "(");
    for (int i = 0; i < count; i++)
        integer(to, values[i]);
    ops(to, "t");
}

typedef struct described {
    const char *type, *key;
    int64_t elements; /* of the storage */
    int64_t offset, size[8], stride[8];
    int rank, strides; /* number of each */
} described;

static inline void storage(bytes *to, const described *t)
{
    ops(to, "(");
    text(to, "storage");
    global(to, "torch", t->type);
    text(to, t->key);
    text(to, "cpu");
    integer(to, t->elements);
    ops(to, "tQ");
}

static inline void tensor(bytes *to, const described *t)
{
    global(to, "torch._utils", "_rebuild_tensor_v2");
    ops(to, "(");
    storage(to, t);
    integer(to, t->offset);
    numbers(to, t->size, t->rank);
    numbers(to, t->stride, t->strides);
    ops(to, "\x89NtR");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct stored {
    const char *key;
    const void *data;
    size_t size, elements;
} stored;

/* Writes the format before PyTorch 1.6. `object` is a pickle without PROTO and STOP. */
static inline void old_file(bytes *to, const bytes *object, const stored *storages, int count)
{
    static const char preface[] =
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02";
    put(to, preface, sizeof preface - 1);
    put(to, object->data, object->size);
    ops(to, ".\x80\x02](");
    for (int i = 0; i < count; i++)
        text(to, storages[i].key);
    ops(to, "e.");
    for (int i = 0; i < count; i++) {
        put_number(to, storages[i].elements, 8);
        put(to, storages[i].data, storages[i].size);
    }
}

/* One file of a zip archive, and wrong values for its headers. */
typedef struct zipped {
    const char *name;
    const void *data;
    size_t size;
    int method, flags;
    int64_t place_off; /* added to the offset in the directory */
    int64_t size_off;  /* added to its sizes */
    uint32_t crc_off;  /* added to its checksum */
} zipped;

/* CRC-32 of zip (ISO 3309), computed bit by bit. */
static inline uint32_t checksum(const uint8_t *data, size_t size)
{
    uint32_t value = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        value ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
    }
    return ~value;
}

static inline void zip_file(bytes *to, const zipped *files, int count)
{
    bytes *directory = calloc(1, sizeof *directory);
    assert_non_null(directory);
    for (int i = 0; i < count; i++) {
        const zipped *f = &files[i];
        uint64_t size = f->size + (uint64_t)f->size_off, begin = to->size + (uint64_t)f->place_off;
        uint32_t crc = checksum(f->data, f->size) + f->crc_off;
        put(to, "PK\3\4\0\0", 6);
        put_number(to, (uint64_t)f->flags, 2);
        put_number(to, (uint64_t)f->method, 2);
        put_number(to, 0, 4); /* time, date */
        put_number(to, crc, 4);
        put_number(to, f->size, 4);
        put_number(to, f->size, 4);
        put_number(to, strlen(f->name), 2);
        put_number(to, 0, 2);
        ops(to, f->name);
        put(to, f->data, f->size);
        put(directory, "PK\1\2\0\0\0\0", 8);
        put_number(directory, (uint64_t)f->flags, 2);
        put_number(directory, (uint64_t)f->method, 2);
        put_number(directory, 0, 4);
        put_number(directory, crc, 4);
        put_number(directory, size, 4);
        put_number(directory, size, 4);
        put_number(directory, strlen(f->name), 2);
        put_number(directory, 0, 12);
        put_number(directory, begin, 4);
        ops(directory, f->name);
    }
    size_t begin = to->size;
    put(to, directory->data, directory->size);
    put(to, "PK\5\6\0\0\0\0", 8);
    put_number(to, (uint64_t)count, 2);
    put_number(to, (uint64_t)count, 2);
    put_number(to, directory->size, 4);
    put_number(to, begin, 4);
    put_number(to, 0, 2);
    free(directory);
}

/* --- reading -------------------------------------------------------------------------------------------------------
 */

static inline att_tensors *open_path(scratch *self, const char *path)
{
    att_tensors *file = NULL;
    CHECK(self->context, att_tensors_open(self->context, path, &file));
    return file;
}

static inline void assert_f32(att_tensors *file, const char *name, att_shape shape, const double *expected)
{
    float out[32];
    int index = att_tensors_find(file, name);
    assert_true(index >= 0);
    att_tensors_info info = att_tensors_at(file, index);
    if (!att_shape_equal(info.shape, shape))
        fail_msg("%s has another shape", name);
    assert_int_equal(att_tensors_read_f32(file, index, out, info.count), ATT_OK);
    for (int64_t i = 0; i < info.count; i++)
        if (!((double)out[i] == expected[i]))
            fail_msg("%s[%d] is %g instead of %g", name, (int)i, (double)out[i], expected[i]);
}

static const float four[] = {1, 2, 3, 4};
static const described plain = {"FloatStorage", "0", 4, 0, {2, 2}, {2, 1}, 2, 2};
static const stored plain_storage = {"0", four, sizeof four, 4};

static inline void write_old(scratch *self, const bytes *object, const stored *storages, int count)
{
    bytes *file = calloc(1, sizeof *file);
    assert_non_null(file);
    old_file(file, object, storages, count);
    scratch_write(self, file->data, file->size);
    free(file);
}

static inline void write_zip(scratch *self, const zipped *files, int count)
{
    bytes *file = calloc(1, sizeof *file);
    assert_non_null(file);
    zip_file(file, files, count);
    scratch_write(self, file->data, file->size);
    free(file);
}

static inline void refused(scratch *self, att_status expected, const char *reason)
{
    att_tensors *file = NULL;
    att_status status = att_tensors_open(self->context, self->path, &file);
    if (status != expected)
        fail_msg("%d instead of %d (\"%s\"): %s", status, expected, reason,
                 status == ATT_OK ? "opened" : att_context_message(self->context));
    assert_null(file);
    assert_message_has(self, self->path);
    assert_message_has(self, reason);
}

/* {"w": <tensor>} */
static inline void put_state(bytes *object, const described *t)
{
    ops(object, "}");
    text(object, "w");
    tensor(object, t);
    ops(object, "s");
}

#endif
