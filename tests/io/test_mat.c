#include "io/mat.h"

#include "golden_path.h"
#include "io/scratch.h"

enum { ROOM = 1 << 14 };

/* Reads a golden file. Returns its size. */
static size_t read_golden(const char *name, uint8_t *bytes)
{
    char path[512];
    golden_path(name, path, sizeof path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, ROOM, file);
    fclose(file);
    return size;
}

static void fields_of_a_struct_array_are_read(void **state)
{
    static const char *const names[] = {"devkit/meta.mat", "devkit/plain.mat"};
    static const char *const wnids[] = {"n01440764", "n03888257", "n01443537", "n01439121"};
    static const double ids[] = {1, 2, 3, 1001};
    static uint8_t bytes[ROOM];
    scratch *self = *state;
    for (int n = 0; n < 2; n++) {
        att_mat_struct *array;
        size_t size = read_golden(names[n], bytes);
        assert_int_equal(att_mat_struct_read(self->context, "file", bytes, size, "synsets", &array), ATT_OK);
        assert_int_equal(att_mat_struct_count(array), 4);
        for (int i = 0; i < 4; i++) {
            double number;
            char text[10];
            assert_int_equal(att_mat_struct_number(array, i, "ILSVRC2012_ID", &number), ATT_OK);
            assert_true(number == ids[i]);
            assert_int_equal(att_mat_struct_text(array, i, "WNID", text, sizeof text), ATT_OK);
            assert_string_equal(text, wnids[i]);
            assert_int_equal(att_mat_struct_text(array, i, "WNID", text, sizeof text - 1), ATT_ERR_FORMAT);
            assert_int_equal(att_mat_struct_number(array, i, "WNID", &number), ATT_ERR_FORMAT);
            assert_int_equal(att_mat_struct_text(array, i, "ILSVRC2012_ID", text, sizeof text), ATT_ERR_FORMAT);
            assert_int_equal(att_mat_struct_number(array, i, "colour", &number), ATT_ERR_FORMAT);
            assert_message_has(self, "element");
        }
        att_mat_struct_free(&array);
        assert_null(array);
        assert_int_equal(att_mat_struct_read(self->context, "file", bytes, size, "classes", &array), ATT_ERR_FORMAT);
        assert_message_has(self, "no variable \"classes\"");
        assert_int_equal(att_mat_struct_read(self->context, "file", bytes, size, "version", &array), ATT_ERR_FORMAT);
        assert_message_has(self, "not a struct");
    }
}

/* Opens the array, if that is possible, and reads a field. */
static att_status use(scratch *self, const uint8_t *bytes, size_t size)
{
    att_mat_struct *array;
    double number;
    char text[10];
    att_status status = att_mat_struct_read(self->context, "file", bytes, size, "synsets", &array);
    if (status != ATT_OK)
        return status;
    for (int64_t i = 0; i < att_mat_struct_count(array); i++) {
        (void)att_mat_struct_number(array, i, "ILSVRC2012_ID", &number);
        (void)att_mat_struct_text(array, i, "WNID", text, sizeof text);
    }
    att_mat_struct_free(&array);
    return ATT_OK;
}

static void damaged_files_are_refused(void **state)
{
    static uint8_t bytes[ROOM];
    scratch *self = *state;
    size_t size = read_golden("devkit/meta.mat", bytes);
    for (size_t i = 0; i < size; i++) {
        uint8_t *copy = malloc(i + 1);
        memcpy(copy, bytes, i);
        assert_int_not_equal(use(self, copy, i), ATT_OK);
        free(copy);
    }
    size = read_golden("devkit/plain.mat", bytes);
    for (size_t i = 0; i < size; i++) {
        uint8_t before = bytes[i];
        bytes[i] ^= 0xff;
        (void)use(self, bytes, size); /* the sanitizers see what is wrong */
        bytes[i] = before;
    }
    memcpy(bytes + 124, "\1\0MI", 4);
    assert_int_equal(use(self, bytes, size), ATT_ERR_UNSUPPORTED);
    assert_message_has(self, "big-endian");
}

static att_status read_whole(scratch *self)
{
    static uint8_t bytes[ROOM];
    return use(self, bytes, read_golden("devkit/meta.mat", bytes));
}

static void lack_of_memory_is_reported(void **state)
{
    assert_survives_lack_of_memory(*state, read_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(fields_of_a_struct_array_are_read),
        scratch_test(damaged_files_are_refused),
        scratch_test(lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
