/* Writing: files have the expected bytes, and are written completely or not at all. */
#include "base/io/safetensors.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/io/safetensors_file.h"

static att_status fill_tensor(void *user, int index, void *out, size_t bytes)
{
    const att_safetensors_content *content = user;
    assert_null(content->tensors[index].data);
    assert_int_equal((uintptr_t)out % 64, 0);
    if (strcmp(content->tensors[index].name, "b") == 0) {
        assert_int_equal(bytes, sizeof(python_b));
        memcpy(out, python_b, bytes);
        return ATT_OK;
    }
    return ATT_ERR_STOPPED;
}

static const att_safetensors_tensor python_tensors[] = {
    {"half", ATT_SAFETENSORS_F16, {1, {3}}, python_half}, {"b", ATT_SAFETENSORS_F32, {2, {2, 1}}, NULL},
    {"empty", ATT_SAFETENSORS_U8, {2, {0, 4}}, NULL},     {"n", ATT_SAFETENSORS_I64, {1, {1}}, python_n},
    {"a", ATT_SAFETENSORS_F32, {.rank = 0}, python_a},
};
static const att_safetensors_pair python_metadata[] = {{"format", "pt"}};
static const att_safetensors_content python_content = {.tensors = python_tensors,
                                                       .tensor_count = 5,
                                                       .metadata = python_metadata,
                                                       .metadata_count = 1,
                                                       .fill = fill_tensor,
                                                       .fill_user = (void *)(uintptr_t)&python_content};

SCRATCH_TEST(a_written_file_equals_that_of_the_python_package)
{
    char bytes[2048];
    size_t size = python_file(bytes);
    assert_int_equal(att_safetensors_write(self->context, self->path, &python_content), ATT_OK);
    assert_file(self->path, bytes, size);
    assert_int_equal(scratch_file_count(self), 1);
}

SCRATCH_TEST(a_file_without_tensors_is_written_and_read)
{
    const att_safetensors_content nothing = {.tensor_count = 0};
    assert_int_equal(att_safetensors_write(self->context, self->path, &nothing), ATT_OK);
    assert_file(self->path, "\x08\0\0\0\0\0\0\0{}      ", 16);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 0);
    assert_int_equal(att_tensors_find(file, "a"), -1);
    att_tensors_close(&file);
}

static void refuse_to_write(scratch *self, att_safetensors_content content, const char *reason)
{
    assert_fails(self->context, att_safetensors_write(self->context, self->path, &content), ATT_ERR_ARGUMENT,
                 self->path);
    assert_message_has(self, reason);
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
}

SCRATCH_TEST(invalid_content_is_refused_and_keeps_the_old_file)
{
    scratch_write(self, "old", 3);
    const att_safetensors_tensor twice[] = {{"a", ATT_SAFETENSORS_F32, {.rank = 0}, python_a},
                                            {"a", ATT_SAFETENSORS_I64, {1, {1}}, python_n}};
    const att_safetensors_tensor negative = {"a", ATT_SAFETENSORS_F32, {1, {-1}}, python_a};
    const att_safetensors_tensor huge = {"a", ATT_SAFETENSORS_F32, {2, {INT64_MAX, 4}}, python_a};
    const att_safetensors_tensor reserved = {"__metadata__", ATT_SAFETENSORS_F32, {.rank = 0}, python_a};
    const att_safetensors_tensor unknown = {"a", (att_safetensors_dtype)99, {.rank = 0}, python_a};
    const att_safetensors_tensor broken = {"\xFF", ATT_SAFETENSORS_F32, {.rank = 0}, python_a};
    const att_safetensors_tensor missing = {"a", ATT_SAFETENSORS_F32, {.rank = 0}, NULL};
    const att_safetensors_pair keys_twice[] = {{"k", "1"}, {"k", "2"}}, not_utf8 = {"k", "\xC3"};
    refuse_to_write(self, (att_safetensors_content){.tensors = twice, .tensor_count = 2}, "a would be written twice");
    refuse_to_write(self, (att_safetensors_content){.tensors = &negative, .tensor_count = 1}, "tensor a");
    refuse_to_write(self, (att_safetensors_content){.tensors = &huge, .tensor_count = 1}, "tensor a");
    refuse_to_write(self, (att_safetensors_content){.tensors = &reserved, .tensor_count = 1}, "__metadata__");
    refuse_to_write(self, (att_safetensors_content){.tensors = &unknown, .tensor_count = 1}, "tensor a");
    refuse_to_write(self, (att_safetensors_content){.tensors = &broken, .tensor_count = 1}, "not UTF-8");
    refuse_to_write(self, (att_safetensors_content){.tensors = &missing, .tensor_count = 1}, "no data");
    refuse_to_write(self, (att_safetensors_content){.metadata = keys_twice, .metadata_count = 2}, "k would be written");
    refuse_to_write(self, (att_safetensors_content){.metadata = &not_utf8, .metadata_count = 1}, "under k");
}

SCRATCH_TEST(a_failing_callback_keeps_the_old_file)
{
    scratch_write(self, "old", 3);
    const att_safetensors_tensor other = {"c", ATT_SAFETENSORS_F32, {1, {7}}, NULL};
    att_safetensors_content content = {.tensors = &other, .tensor_count = 1, .fill = fill_tensor};
    content.fill_user = &content;
    assert_int_equal(att_safetensors_write(self->context, self->path, &content), ATT_ERR_STOPPED);
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
}

SCRATCH_TEST(a_full_disk_keeps_the_old_file)
{
    scratch_write(self, "old", 3);
    char bytes[2048];
    size_t size = python_file(bytes);
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    /* The disk is full after the length, within the header, before the data, and within the data. */
    const size_t room[] = {0, 4, 8, 20, size - 26, size - 1};
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]); i++) {
        small.rlim_cur = room[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        att_status status = att_safetensors_write(self->context, self->path, &python_content);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, ATT_ERR_IO);
        assert_text_file(self->path, "old");
        assert_int_equal(scratch_file_count(self), 1);
    }
    signal(SIGXFSZ, SIG_DFL);
}

static att_status write_and_read(scratch *self)
{
    att_status status = att_safetensors_write(self->context, self->path, &python_content);
    if (status != ATT_OK)
        return status;
    att_tensors *file;
    status = att_tensors_open(self->context, self->path, &file);
    if (status == ATT_OK)
        att_tensors_close(&file);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, write_and_read);
}

/* The buffer for tensors from a callback has the size of the largest tensor, not of all of them. */
static att_status fill_large(void *user, int index, void *out, size_t bytes)
{
    (void)user;
    memset(out, index, bytes);
    return ATT_OK;
}

SCRATCH_TEST(writing_allocates_for_the_largest_tensor_only)
{
    enum { TENSORS = 16, ELEMENTS = 1 << 18 };
    att_safetensors_tensor tensors[TENSORS];
    char names[TENSORS][8];
    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof(names[i]), "t%d", i);
        tensors[i] = (att_safetensors_tensor){names[i], ATT_SAFETENSORS_F32, att_shape_of(ELEMENTS), NULL};
    }
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = TENSORS, .fill = fill_large};
    size_t before = att_context_allocations(self->context).bytes_peak;
    assert_int_equal(att_safetensors_write(self->context, self->path, &content), ATT_OK);
    size_t peak = att_context_allocations(self->context).bytes_peak;
    assert_true(peak - before <= ELEMENTS * 4 + 100000);
    att_tensors *file = open_file(self);
    for (int i = 0; i < TENSORS; i++) {
        float *out = malloc(ELEMENTS * sizeof(*out));
        int index = att_tensors_find(file, names[i]);
        assert_int_equal(att_tensors_read_f32(file, index, out, ELEMENTS), ATT_OK);
        unsigned char first[4];
        memcpy(first, out + ELEMENTS - 1, 4);
        assert_int_equal(first[3], i);
        free(out);
    }
    att_tensors_close(&file);
}
