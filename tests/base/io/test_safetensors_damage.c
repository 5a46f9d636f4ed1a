/* Files that are damaged, hostile, or shortened while they are read. */
#include <fcntl.h>
#include <time.h>

#include "base/io/safetensors_file.h"

/* A valid file, truncated at every byte. */
SCRATCH_TEST(a_truncated_file_is_refused)
{
    char bytes[2048];
    size_t size = python_file(bytes);
    for (size_t length = 0; length < size; length++) {
        scratch_write(self, bytes, length);
        refuse(self, ATT_ERR_FORMAT, length < 8 ? self->path : "truncated");
    }
    scratch_write(self, bytes, size + 1);
    refuse(self, ATT_ERR_FORMAT, "1 bytes after the last tensor");
}

/* Another process shortens the file, or writes other bytes of the same number, between opening and reading. */
SCRATCH_TEST(a_file_that_changes_while_it_is_open_is_reported)
{
    char bytes[2048];
    size_t size = python_file(bytes);
    float out[3];
    scratch_write(self, bytes, size);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_read_f32(file, att_tensors_find(file, "a"), out, 1), ATT_OK);
    assert_int_equal(truncate(self->path, (off_t)size - 1), 0);
    assert_fails(self->context, att_tensors_read_f32(file, att_tensors_find(file, "a"), out, 1), ATT_ERR_IO,
                 "has changed since it was opened");
    att_tensors_close(&file);
    scratch_write(self, bytes, size);
    file = open_file(self);
    const struct timespec later[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, self->path, later, 0), 0);
    assert_fails(self->context, att_tensors_read_f32(file, att_tensors_find(file, "half"), out, 3), ATT_ERR_IO,
                 self->path);
    assert_string_equal(att_tensors_metadata(file, "format"), "pt");
    att_tensors_close(&file);
}

/* With any one byte changed, the file is refused or read, and no access leaves the file. */
SCRATCH_TEST(changed_bytes_are_refused_or_read_within_the_file)
{
    char bytes[2048];
    size_t size = python_file(bytes);
    const char damage[] = {'\0', '"', '9', '-', '{', '\xFF'};
    for (size_t i = 0; i < size - 26; i++) {
        char kept = bytes[i];
        for (size_t j = 0; j < sizeof(damage); j++) {
            bytes[i] = damage[j];
            scratch_write(self, bytes, size);
            att_tensors *file = NULL;
            if (att_tensors_open(self->context, self->path, &file) != ATT_OK)
                assert_null(file);
            for (int t = 0; file != NULL && t < att_tensors_count(file); t++) {
                float out[64];
                int64_t count = att_tensors_at(file, t).count;
                assert_true(count <= 26);
                (void)att_tensors_read_f32(file, t, out, count);
            }
            att_tensors_close(&file);
        }
        bytes[i] = kept;
    }
}

SCRATCH_TEST(impossible_header_lengths_are_refused)
{
    char bytes[2048];
    size_t size = python_file(bytes);
    memset(bytes, 0xFF, 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "its first 8 bytes would announce a header of more than 100000000 bytes");
    memcpy(bytes, "\x01\xE1\xF5\x05\0\0\0\0", 8); /* 100,000,001 */
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "more than 100000000 bytes");
    scratch_write(self, "# A title", 9);
    refuse(self, ATT_ERR_FORMAT, "expected a safetensors file or a PyTorch checkpoint, but it seems to be text");
    scratch_write(self, "version https://git-lfs.github.com/spec/v1", 42);
    refuse(self, ATT_ERR_FORMAT, "a pointer of Git LFS in place of the weights; fetch these by running git lfs pull");
    memcpy(bytes, "\xFF\xD8\xFF\xE0\0\x10JF", 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "but it seems to be an image: JPEG");
    memcpy(bytes, "\x00\xE1\xF5\x05\0\0\0\0", 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "truncated");
    memset(bytes, 0, 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "does not begin with '{'");
    write_file(self, " {}", 0);
    refuse(self, ATT_ERR_FORMAT, "does not begin with '{'");
}

SCRATCH_TEST(hostile_headers_are_refused)
{
    const struct {
        const char *header;
        size_t data;
        const char *reason;
    } cases[] = {
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[2,6]") "}", 6, "overlap"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[0,4]") "}", 4, "overlap"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("b", "[1]", "[5,9]") "}", 9, "tensor b: begins at byte 5"},
        {"{" F32("a", "[1]", "[4,8]") "}", 8, "tensor a: begins at byte 4"},
        {"{" F32("a", "[1]", "[0,4]") "}", 5, "1 bytes after the last tensor"},
        {"{" F32("a", "[2]", "[0,8]") "}", 4, "tensor a: ends at byte 8 after the header, the file ends at 4"},
        {"{" F32("a", "[2]", "[0,4]") "}", 4, "tensor a: 4 bytes of data; [2] of F32 needs 8"},
        {"{" F32("a", "[2]", "[4,0]") "}", 8, "0 <= begin <= end"},
        {"{" F32("a", "[2]", "[-4,4]") "}", 8, "0 <= begin <= end"},
        {"{" F32("a", "[1]", "[0,4,4]") "}", 4, "data_offsets"},
        {"{" F32("a", "[1]", "[0]") "}", 4, "data_offsets"},
        {"{" F32("a", "[1]", "[0,4.0]") "}", 4, "data_offsets"},
        {"{" F32("a", "[1]", "{}") "}", 4, "data_offsets"},
        {"{" F32("a", "[1]", "[0,18446744073709551620]") "}", 4, "not valid JSON"},
        {"{" F32("a", "[0]", "[9223372036854775807,9223372036854775807]") "}", 0, "the file ends at 0"},
        {"{" F32("a", "[-1]", "[0,4]") "}", 4, "non-negative"},
        {"{" F32("a", "[-1,-1]", "[0,4]") "}", 4, "non-negative"},
        {"{" F32("a", "[1.0]", "[0,4]") "}", 4, "non-negative"},
        {"{" F32("a", "1", "[0,4]") "}", 4, "shape"},
        {"{" F32("a", "[4294967296,4294967296]", "[0,4]") "}", 4, "more elements than can be counted"},
        {"{" F32("a", "[4611686018427387904,4]", "[0,0]") "}", 0, "more elements than can be counted"},
        {"{" F32("a", "[1152921504606846976]", "[0,4]") "}", 4, ""},
        {"{" ENTRY("a", "\"F33\"", "[1]", "[0,4]") "}", 4, "unknown dtype \"F33\""},
        {"{" ENTRY("a", "4", "[1]", "[0,4]") "}", 4, "\"dtype\" is missing"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"dtype\" is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "\"shape\" is missing"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "\"data_offsets\" is missing"},
        {"{\"a\":[]}", 0, "not an object"},
        {"{" F32("a", "[1]", "[0,4]") "," F32("a", "[1]", "[4,8]") "}", 8, "two tensors are called a"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "__metadata__ has the key a twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "has __metadata__ twice"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "the value of a is not a string"},
        {"{\"__metadata__\":{\"a\":null}}", 0, "the value of a is not a string"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
        {"{} {}", 0, "not valid JSON"},
        {"{", 0, "not valid JSON"},
        {"{,}", 0, "not valid JSON"},
        {"{\"a\"}", 0, "not valid JSON"},
        {"{\"a\":}", 0, "not valid JSON"},
        {"{\"a", 0, "not valid JSON"},
        {"{" F32("a", "[1]", "[0,4]") ",}", 4, "not valid JSON"},
        {"{" F32("a", "[1]", "[0,4]") " " F32("b", "[1]", "[4,8]") "}", 8, "not valid JSON"},
        {"{" F32("a", "[1]", "[0,4]"), 4, "not valid JSON"},
        {"{\"__metadata__\":{\"a\":\"1\"", 0, "not valid JSON"},
        {"{\"__metadata__\":{\"a\":\"1\" \"2\"}}", 0, "not valid JSON"},
        {"{\"__metadata__\":{\"a\":\"\\q\"}}", 0, "not valid JSON"},
        {"{\"a\\u0000b\":1}", 0, "not valid JSON"},
        {"{\"\xFF\":1}", 0, "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(self, cases[i].header, cases[i].data);
        refuse(self, ATT_ERR_FORMAT, cases[i].reason);
    }
    write_file(self, "{" F32("a", "[1,1,1,1,1,1]", "[0,4]") "}", 4);
    refuse(self, ATT_ERR_UNSUPPORTED, "tensor a has 6 dimensions");
}

SCRATCH_TEST(deep_nesting_is_refused)
{
    char header[3000] = "{\"a\":{\"b\":";
    memset(header + 10, '[', sizeof(header) - 11);
    write_file(self, header, 0);
    refuse(self, ATT_ERR_FORMAT, "nested");
}

/* An entry is stored in memory as a whole. */
SCRATCH_TEST(a_too_long_entry_is_refused)
{
    enum { DIMS = 40000 };
    char *header = malloc(2 * DIMS + 100), *bytes = malloc(2 * DIMS + 108);
    assert_true(header && bytes);
    size_t size = (size_t)sprintf(header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[0");
    for (int i = 0; i < DIMS; i++)
        size += (size_t)sprintf(header + size, ",0");
    sprintf(header + size, "],\"data_offsets\":[0,0]}}");
    scratch_write(self, bytes, put_header(bytes, header));
    refuse(self, ATT_ERR_FORMAT, "tensor a: its entry has more than 65536 bytes");
    free(header);
    free(bytes);
}

/* Malformed members must not make lists longer than the header could fill: memory is at most 5 times the header's
 * length, as attscope/tensors.h states. */
SCRATCH_TEST(a_malformed_header_takes_little_memory)
{
    enum { LENGTH = 600000, BOUND = 5 };
    static const struct {
        const char *begin, *repeated, *end, *reason;
    } cases[] = {{"{\"a\"", ":", "}", "a value was expected"},
                 {"{", "\"\":0,", "}", "is not an object"},
                 {"{", "\"\":{},", "}", "\"dtype\" is missing"},
                 {"{\"__metadata__\":{\"a\"", ":", "}}", "a value was expected"},
                 {"{\"__metadata__\":{", "\"\":0,", "}}", "is not a string"}};
    char *header = malloc(LENGTH + 32), *bytes = malloc(LENGTH + 40);
    assert_true(header && bytes);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = strlen(cases[i].begin), step = strlen(cases[i].repeated);
        memcpy(header, cases[i].begin, size);
        for (; size + step <= LENGTH; size += step)
            memcpy(header + size, cases[i].repeated, step);
        strcpy(header + size, cases[i].end);
        scratch_write(self, bytes, put_header(bytes, header));
        refuse(self, ATT_ERR_FORMAT, cases[i].reason);
        size_t taken = att_context_allocations(self->context).bytes_peak;
        assert_in_range(taken, LENGTH, BOUND * LENGTH);
    }
    free(header);
    free(bytes);
}

/* A header of 100 MB has a million entries. */
SCRATCH_TEST(reading_a_header_can_be_stopped)
{
    enum { ENTRIES = 100, BYTES = 64 * ENTRIES };
    static const char *const begins[] = {"{", "{\"__metadata__\":{"};
    for (int i = 0; i < 2; i++) {
        char header[BYTES], bytes[BYTES + 8];
        size_t size = (size_t)sprintf(header, "%s", begins[i]);
        for (int e = 0; e < ENTRIES; e++)
            size += (size_t)sprintf(
                header + size, i ? "\"%d\":\"\"," : "\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
                e);
        strcpy(header + size - 1, i ? "}}" : "}");
        scratch_write(self, bytes, put_header(bytes, header));
        self->questions_left = ENTRIES / 2;
        refuse(self, ATT_ERR_STOPPED, "stop");
        self->questions_left = -1;
    }
}
