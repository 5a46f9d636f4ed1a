/* NumPy's archives as files of tensors. */
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
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "as numpy.savez() writes it", 8,
         ATT_ERR_UNSUPPORTED},
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
