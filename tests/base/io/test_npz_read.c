/* NumPy's archives as files of tensors. */
#include <zlib.h>

#include "base/io/npz.h"
#include "base/io/safetensors_file.h"
#include "base/io/torch_file.h"

SCRATCH_TEST(arrays_become_tensors)
{
    static const float kernel[] = {1, 2, 3, 4, 5, 6};
    static const int64_t step[] = {7};
    static const char *const words[] = {"a", "b"};
    att_npz *npz;
    CHECK(self->context, att_npz_open(self->context, self->path, &npz));
    CHECK(self->context, att_npz_add(npz, "head/kernel", "<f4", att_shape_of(2, 3), kernel, sizeof kernel));
    CHECK(self->context, att_npz_add(npz, "step", "<i8", att_shape_of(1), step, sizeof step));
    CHECK(self->context, att_npz_add(npz, "words", "<U1", att_shape_of(2), words, 8));
    CHECK(self->context, att_npz_commit(&npz));
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 2);
    assert_f32(file, "head.kernel", att_shape_of(2, 3), (const double[]){1, 2, 3, 4, 5, 6});
    const att_tensors_info info = att_tensors_at(file, att_tensors_find(file, "step"));
    assert_int_equal(info.dtype, ATT_SAFETENSORS_I64);
    assert_string_equal(att_tensors_origin(file), "NumPy's arrays; left out: words.npy");
    att_tensors_close(&file);
}

/* Appends a file of one array, with a dictionary of any content. */
static void put_array(bytes *to, const char *dictionary, int count)
{
    put(to, "\x93NUMPY\x01\x00", 8);
    put_number(to, strlen(dictionary), 2);
    ops(to, dictionary);
    for (int i = 0; i < count; i++) {
        const float value = (float)i;
        put(to, &value, sizeof value);
    }
}

static void write_array(scratch *self, const char *dictionary, int count, int method)
{
    bytes *array = calloc(1, sizeof *array);
    put_array(array, dictionary, count);
    const zipped file = {"x.npy", array->data, array->size, method, 0, 0, 0, 0};
    write_zip(self, &file, 1);
    free(array);
}

/* The first index of the array varies fastest. */
SCRATCH_TEST(arrays_in_fortrans_order_are_read)
{
    write_array(self, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 6, 0);
    att_tensors *file = open_path(self, self->path);
    assert_f32(file, "x", att_shape_of(2, 3), (const double[]){0, 2, 4, 1, 3, 5});
    att_tensors_close(&file);
}

SCRATCH_TEST(a_number_is_a_tensor_without_dimensions)
{
    write_array(self, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 1, 0);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_at(file, 0).shape.rank, 0);
    att_tensors_close(&file);
}

SCRATCH_TEST(archives_without_real_numbers_are_refused)
{
    write_array(self, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }\n", 2, 0);
    refused(self, ATT_ERR_UNSUPPORTED,
            "an archive of NumPy without arrays of real numbers; it has x.npy (complex numbers)");
    write_zip(self, NULL, 0);
    refused(self, ATT_ERR_FORMAT, "a zip archive without files, as numpy.savez() writes one without arrays");
}

/* Writes an archive of one array as numpy.savez_compressed() does. missing: how many bytes of the packed data are
 * missing; more: added to the size in the directory. */
static void write_packed(scratch *self, const char *dictionary, int count, size_t missing, int64_t more,
                         uint32_t crc_off, int flags)
{
    bytes *array = calloc(1, sizeof *array), *to = calloc(1, sizeof *to);
    uint8_t packed[512];
    z_stream z = {.next_out = packed, .avail_out = sizeof packed};
    put_array(array, dictionary, count);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = array->data;
    z.avail_in = (unsigned)array->size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    const size_t size = z.total_out - missing;
    const uint32_t crc = checksum(array->data, array->size) + crc_off;
    put(to, "PK\3\4\0\0\0\0\10\0\0\0\0\0", 14);
    put_number(to, 0, 12);
    put_number(to, 5, 4); /* of the name; and no extra */
    ops(to, "x.npy");
    put(to, packed, size);
    const size_t directory = to->size;
    put(to, "PK\1\2\0\0\0\0", 8);
    put_number(to, (uint64_t)flags, 2);
    put(to, "\10\0\0\0\0\0", 6);
    put_number(to, crc, 4);
    put_number(to, size, 4);
    put_number(to, array->size + (uint64_t)more, 4);
    put_number(to, 5, 2);
    put_number(to, 0, 16); /* extra to the offset of the local header */
    ops(to, "x.npy");
    const size_t end = to->size;
    put(to, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put_number(to, end - directory, 4);
    put_number(to, directory, 4);
    put_number(to, 0, 2);
    scratch_write(self, to->data, to->size);
    free(array);
    free(to);
}

SCRATCH_TEST(compressed_arrays_are_unpacked)
{
    write_packed(self, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 6, 0, 0, 0, 0);
    att_tensors *file = open_path(self, self->path);
    assert_f32(file, "x", att_shape_of(2, 3), (const double[]){0, 2, 4, 1, 3, 5});
    att_tensors_close(&file);
    write_packed(self, "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", 6, 0, 0, 0, 0);
    refused(self, ATT_ERR_UNSUPPORTED, "without arrays of real numbers");
    static const char plain_one[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
    write_packed(self, plain_one, 6, 4, 0, 0, 0);
    refused(self, ATT_ERR_FORMAT, "x.npy in it cannot be unpacked, or to another size");
    write_packed(self, plain_one, 6, 0, 1, 0, 0);
    refused(self, ATT_ERR_FORMAT, "cannot be unpacked, or to another size");
    write_packed(self, plain_one, 6, 0, -1, 0, 0);
    refused(self, ATT_ERR_FORMAT, "cannot be unpacked, or to another size");
    write_packed(self, plain_one, 6, 0, 0, 1, 0);
    refused(self, ATT_ERR_FORMAT, "x.npy in it has a wrong checksum");
    write_packed(self, plain_one, 6, 0, 1 << 30, 0, 0);
    refused(self, ATT_ERR_FORMAT, "x.npy in it would be larger than an archive of this size may hold");
    write_packed(self, plain_one, 6, 0, 0, 0, 1);
    refused(self, ATT_ERR_UNSUPPORTED, "x.npy in it is compressed or encrypted");
    write_packed(self, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }", 6, 0, 0, 0, 0);
    refused(self, ATT_ERR_FORMAT, "more or fewer bytes");
}

/* Two arrays of zeros, each of which is allowed alone. */
SCRATCH_TEST(an_archive_that_unpacks_to_much_more_is_refused)
{
    enum { SIZE = 9 << 20 };
    static const char begin[] =
        "\x93NUMPY\x01\x00\x42\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2359277,), }   ";
    uint8_t *zeros = calloc(1, SIZE), *packed = malloc(SIZE);
    bytes *to = calloc(1, sizeof *to), *directory = calloc(1, sizeof *directory);
    z_stream z = {.next_out = packed, .avail_out = SIZE};
    assert_true(zeros && packed && to && directory);
    memcpy(zeros, begin, sizeof begin - 1);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = zeros;
    z.avail_in = SIZE;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    for (int i = 0; i < 2; i++) {
        const size_t at = to->size;
        put(to, "PK\3\4\0\0\0\0\10\0\0\0\0\0", 14);
        put_number(to, 0, 12);
        put_number(to, 5, 4);
        ops(to, i == 0 ? "x.npy" : "y.npy");
        put(to, packed, z.total_out);
        put(directory, "PK\1\2\0\0\0\0\0\0\10\0\0\0\0\0", 16);
        put_number(directory, crc32_z(0, zeros, SIZE), 4);
        put_number(directory, z.total_out, 4);
        put_number(directory, SIZE, 4);
        put_number(directory, 5, 2);
        put_number(directory, 0, 12);
        put_number(directory, at, 4);
        ops(directory, i == 0 ? "x.npy" : "y.npy");
    }
    const size_t end = to->size;
    put(to, directory->data, directory->size);
    put(to, "PK\5\6\0\0\0\0\2\0\2\0", 12);
    put_number(to, directory->size, 4);
    put_number(to, end, 4);
    put_number(to, 0, 2);
    scratch_write(self, to->data, to->size);
    refused(self, ATT_ERR_FORMAT, "y.npy in it would be larger than an archive of this size may hold");
    free(zeros);
    free(packed);
    free(to);
    free(directory);
}

SCRATCH_TEST(damaged_arrays_are_refused)
{
    static const struct {
        const char *dictionary, *why;
        int method;
        att_status status;
    } all[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "more or fewer bytes", 0, ATT_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }", "more or fewer bytes", 0,
         ATT_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "no array of NumPy", 0, ATT_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", "no array of NumPy", 0, ATT_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 2), }", "no array of NumPy", 0,
         ATT_ERR_UNSUPPORTED},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "big-endian", 0, ATT_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'shape': (2,), }", "no array of NumPy", 0, ATT_ERR_UNSUPPORTED},
        {"", "no array of NumPy", 0, ATT_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "as numpy.savez() writes it", 9,
         ATT_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "cannot be unpacked", 8, ATT_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        write_array(self, all[i].dictionary, 2, all[i].method);
        refused(self, all[i].status, all[i].why);
    }
    static const char *const short_ones[] = {"", "\x93NUMPY\x01", "\x93NUMPY\x01\x01\xff\xff{}{}{}"};
    for (size_t i = 0; i < sizeof short_ones / sizeof *short_ones; i++) {
        const zipped file = {"x.npy", (const uint8_t *)short_ones[i], strlen(short_ones[i]), 0, 0, 0, 0, 0};
        write_zip(self, &file, 1);
        refused(self, ATT_ERR_FORMAT, "no array of NumPy");
    }
}
