/* io/safetensors_file.h - for tests: safetensors files built by hand, and one as written by the Python package. */
#ifndef TESTS_IO_SAFETENSORS_FILE_H
#define TESTS_IO_SAFETENSORS_FILE_H

#include <attscope/tensors.h>

#include "base/io/scratch.h"

static inline size_t put_header(char *bytes, const char *header)
{
    uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    return 8 + (size_t)length;
}

/* Writes a file with this header, followed by `data` bytes 0, 1, 2, ... */
static inline void write_file(scratch *self, const char *header, size_t data)
{
    char bytes[4096];
    size_t size = put_header(bytes, header);
    assert_true(size + data <= sizeof(bytes));
    for (size_t i = 0; i < data; i++)
        bytes[size + i] = (char)i;
    scratch_write(self, bytes, size + data);
}

static inline void refuse(scratch *self, att_status expected, const char *reason)
{
    att_tensors *file = NULL;
    assert_int_equal(att_tensors_open(self->context, self->path, &file), expected);
    assert_null(file);
    assert_message_has(self, self->path);
    assert_message_has(self, reason);
}

static inline att_tensors *open_file(scratch *self)
{
    att_tensors *file = NULL;
    CHECK(self->context, att_tensors_open(self->context, self->path, &file));
    return file;
}

/* The header that the Python package safetensors 0.8 writes for {"b": f32 [2, 1], "a": f32 [], "half": f16 [3], "n":
 * i64 [1], "empty": u8 [0, 4]} with the metadata {"format": "pt"}: elements of eight bytes come first; names are sorted
 * within a size. */
static const char python_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[12,20]},"
    "\"half\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[20,26]},"
    "\"empty\":{\"dtype\":\"U8\",\"shape\":[0,4],\"data_offsets\":[26,26]}}";
static const int64_t python_n[] = {-2};
static const float python_a[] = {0.5F}, python_b[] = {1, -3};
static const uint16_t python_half[] = {0x3C00, 0xC000, 0x0001}; /* 1, -2, 2^-24 */

/* Writes the bytes of that file and returns their number. */
static inline size_t python_file(char *bytes)
{
    char padded[1024];
    int length = (int)((strlen(python_header) + 7) / 8 * 8);
    snprintf(padded, sizeof(padded), "%-*s", length, python_header);
    size_t size = put_header(bytes, padded);
    memcpy(bytes + size, python_n, 8);
    memcpy(bytes + size + 8, python_a, 4);
    memcpy(bytes + size + 12, python_b, 8);
    memcpy(bytes + size + 20, python_half, 6);
    return size + 26;
}

/* Parts of a header. */
#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F32(name, shape, offsets) ENTRY(name, "\"F32\"", shape, offsets)

#endif
