#include "io/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include <attscope/tensors.h>

#include "io/scratch.h"

static size_t put_header(char *bytes, const char *header)
{
    uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    return 8 + (size_t)length;
}

/* A file of this header, followed by `data` bytes 0, 1, 2... */
static void write_file(scratch *self, const char *header, size_t data)
{
    char bytes[4096];
    size_t size = put_header(bytes, header);
    assert_true(size + data <= sizeof(bytes));
    for (size_t i = 0; i < data; i++)
        bytes[size + i] = (char)i;
    scratch_write(self, bytes, size + data);
}

static void refuse(scratch *self, att_status expected, const char *reason)
{
    att_tensors *file = NULL;
    assert_int_equal(att_tensors_open(self->context, self->path, &file), expected);
    assert_null(file);
    assert_message_has(self, self->path);
    assert_message_has(self, reason);
}

static att_tensors *open_file(scratch *self)
{
    att_tensors *file = NULL;
    if (att_tensors_open(self->context, self->path, &file) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return file;
}

/* What the Python package safetensors 0.8 writes for {"b": f32 [2, 1], "a": f32 [], "half": f16 [3], "n": i64 [1],
 * "empty": u8 [0, 4]} with metadata {"format": "pt"}: eight-byte elements first, names in order within a size. */
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

/* The bytes of that file; returns how many. */
static size_t python_file(char *bytes)
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

static void test_read(void **state)
{
    scratch *self = *state;
    char bytes[2048];
    size_t size = python_file(bytes);
    scratch_write(self, bytes, size);
    att_tensors *file = open_file(self);
    assert_string_equal(att_tensors_path(file), self->path);
    assert_int_equal(att_tensors_count(file), 5);
    const char *const order[] = {"n", "a", "b", "half", "empty"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(att_tensors_at(file, i).name, order[i]);
        assert_int_equal(att_tensors_find(file, order[i]), i);
    }
    assert_int_equal(att_tensors_find(file, "c"), -1);
    assert_int_equal(att_tensors_find(file, "__metadata__"), -1);
    att_tensors_info info = att_tensors_at(file, 2);
    assert_int_equal(info.dtype, ATT_SAFETENSORS_F32);
    assert_true(att_shape_equal(info.shape, att_shape_of(2, 1)));
    assert_int_equal(info.count, 2);
    assert_int_equal(att_tensors_at(file, 1).shape.rank, 0);
    assert_int_equal(att_tensors_metadata_count(file), 1);
    assert_string_equal(att_tensors_metadata_key(file, 0), "format");
    assert_string_equal(att_tensors_metadata(file, "format"), "pt");
    assert_null(att_tensors_metadata(file, "other"));

    float out[3];
    assert_int_equal(att_tensors_read_f32(file, 2, out, 2), ATT_OK);
    assert_memory_equal(out, python_b, sizeof(python_b));
    assert_int_equal(att_tensors_read_f32(file, 3, out, 3), ATT_OK);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24F);
    assert_int_equal(att_tensors_read_f32(file, 2, out, 3), ATT_ERR_ARGUMENT);
    assert_message_has(self, "tensor b has 2 elements; 3 were asked for");
    assert_int_equal(att_tensors_read_f32(file, 5, out, 3), ATT_ERR_ARGUMENT);
    assert_int_equal(att_tensors_read_f32(file, -1, out, 3), ATT_ERR_ARGUMENT);
    assert_int_equal(att_tensors_read_f32(file, 0, out, 1), ATT_ERR_UNSUPPORTED);
    assert_message_has(self, "tensor n is I64");
    int64_t n;
    assert_int_equal(att_tensors_read(file, 0, ATT_SAFETENSORS_I64, &n, 1), ATT_OK);
    assert_int_equal(n, -2);
    assert_int_equal(att_tensors_read(file, 0, ATT_SAFETENSORS_U64, &n, 1), ATT_ERR_MISMATCH);
    assert_message_has(self, "tensor n is I64; expected U64");
    assert_int_equal(att_tensors_read(file, 4, ATT_SAFETENSORS_U8, NULL, 0), ATT_OK);
    att_tensors_close(&file);
    assert_null(file);
}

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

static void test_write_as_python(void **state)
{
    scratch *self = *state;
    char bytes[2048];
    size_t size = python_file(bytes);
    assert_int_equal(att_safetensors_write(self->context, self->path, &python_content), ATT_OK);
    assert_file(self->path, bytes, size);
    assert_int_equal(scratch_file_count(self), 1);
}

static void test_write_nothing(void **state)
{
    scratch *self = *state;
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
    assert_int_equal(att_safetensors_write(self->context, self->path, &content), ATT_ERR_ARGUMENT);
    assert_message_has(self, self->path);
    assert_message_has(self, reason);
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
}

static void test_write_refused(void **state)
{
    scratch *self = *state;
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

static void test_failing_fill(void **state)
{
    scratch *self = *state;
    scratch_write(self, "old", 3);
    const att_safetensors_tensor other = {"c", ATT_SAFETENSORS_F32, {1, {7}}, NULL};
    att_safetensors_content content = {.tensors = &other, .tensor_count = 1, .fill = fill_tensor};
    content.fill_user = &content;
    assert_int_equal(att_safetensors_write(self->context, self->path, &content), ATT_ERR_STOPPED);
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
}

static void test_full_disk(void **state)
{
    scratch *self = *state;
    scratch_write(self, "old", 3);
    char bytes[2048];
    size_t size = python_file(bytes);
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    /* The disk is full after the length, within the header, before and within the data. */
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

static void test_lack_of_memory(void **state)
{
    assert_survives_lack_of_memory(*state, write_and_read);
}

/* A buffer is allocated for the largest tensor that comes from the callback, not for all of them. */
static att_status fill_large(void *user, int index, void *out, size_t bytes)
{
    (void)user;
    memset(out, index, bytes);
    return ATT_OK;
}

static void test_memory_of_writing(void **state)
{
    scratch *self = *state;
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

static void test_misaligned(void **state)
{
    scratch *self = *state;
    /* No padding: the data begin at an odd address, and the f64 after a byte. */
    const char *header =
        "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[1,17]},"
        "\"h\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[17,19]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[19,23]}}";
    char bytes[512];
    size_t size = put_header(bytes, header);
    assert_int_equal(size % 2, 0);
    const double d[] = {0.1, 1e300};
    const uint16_t h = 0x3F80;
    const float f = -7;
    bytes[size] = 1;
    memcpy(bytes + size + 1, d, 16);
    memcpy(bytes + size + 17, &h, 2);
    memcpy(bytes + size + 19, &f, 4);
    scratch_write(self, bytes, size + 23);
    att_tensors *file = open_file(self);
    float out[2];
    double back[2];
    assert_int_equal(att_tensors_read_f32(file, 1, out, 2), ATT_OK);
    assert_true(out[0] == 0.1F && isinf(out[1]));
    assert_int_equal(att_tensors_read(file, 1, ATT_SAFETENSORS_F64, back, 2), ATT_OK);
    assert_memory_equal(back, d, sizeof(d));
    assert_int_equal(att_tensors_read_f32(file, 2, out, 1), ATT_OK);
    assert_true(out[0] == 1);
    assert_int_equal(att_tensors_read_f32(file, 3, out, 1), ATT_OK);
    assert_true(out[0] == -7);
    att_tensors_close(&file);
}

/* Every f16 against its definition: (-1)^s 2^(e - 15) (1 + f / 1024), subnormals 2^-14 f / 1024. */
static void test_every_half(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t half = (uint16_t)bits;
        float value;
        assert_true(att_safetensors_to_f32(ATT_SAFETENSORS_F16, (const uint8_t *)&half, &value, 1));
        int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
        double expected = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        if (exponent == 31)
            expected = fraction == 0 ? INFINITY : NAN;
        if (isnan(expected))
            assert_true(isnan(value));
        else
            assert_true((double)value == copysign(expected, bits >= 0x8000 ? -1 : 1));
        assert_int_equal(signbit(value) != 0, bits >= 0x8000);
    }
}

/* A whole file cut at every byte. */
static void test_truncated(void **state)
{
    scratch *self = *state;
    char bytes[2048];
    size_t size = python_file(bytes);
    for (size_t length = 0; length < size; length++) {
        scratch_write(self, bytes, length);
        refuse(self, ATT_ERR_FORMAT, "");
    }
    scratch_write(self, bytes, size + 1);
    refuse(self, ATT_ERR_FORMAT, "1 bytes after the last tensor");
}

/* Names and metadata are decoded where they lie. */
static void test_escapes(void **state)
{
    scratch *self = *state;
    write_file(self,
               "{\"__metadata__\" : { \"k\\u00e9\\n\" : \"\\ud83d\\ude00 \\\\ \\\"\" , \"{[:,\": \"]}\"} ,\n"
               "\"a\\\"b\" :"
               "{\"x\":[\"}\"],\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]} , "
               "\"\xc3\xa9\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]} } ",
               2);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 2);
    assert_string_equal(att_tensors_at(file, 0).name, "a\"b");
    assert_int_equal(att_tensors_find(file, "\xc3\xa9"), 1);
    assert_int_equal(att_tensors_metadata_count(file), 2);
    assert_string_equal(att_tensors_metadata(file, "k\xc3\xa9\n"), "\xf0\x9f\x98\x80 \\ \"");
    assert_string_equal(att_tensors_metadata(file, "{[:,"), "]}");
    att_tensors_close(&file);
}

/* A header of as few bytes a tensor as can be. */
static void put_entries(char *header, int count)
{
    size_t size = 1;
    header[0] = '{';
    for (int i = 0; i < count; i++)
        size += (size_t)sprintf(header + size, "\"%x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", i);
    header[size - 1] = '}';
}

/* {"__metadata__":{"0":"","1":"",...}} */
static void put_pairs(char *header, int count)
{
    size_t size = (size_t)sprintf(header, "{\"__metadata__\":{");
    for (int i = 0; i < count; i++)
        size += (size_t)sprintf(header + size, "\"%x\":\"\",", i);
    sprintf(header + size - 1, "}}");
}

/* Whether a header of `length` bytes takes the memory that attscope/safetensors.h allows. */
static void assert_memory(scratch *self, const char *header, int tensors, int pairs)
{
    enum { BOUND = 5 };
    size_t length = strlen(header);
    char *bytes = malloc(length + 8);
    assert_non_null(bytes);
    scratch_write(self, bytes, put_header(bytes, header));
    free(bytes);
    size_t before = att_context_allocations(self->context).bytes_now;
    att_tensors *file = open_file(self);
    size_t taken = att_context_allocations(self->context).bytes_peak - before;
    print_message("%zu bytes of header: %zu of memory\n", length, taken);
    assert_in_range(taken, length, BOUND * length);
    assert_int_equal(att_tensors_count(file), tensors);
    assert_int_equal(att_tensors_metadata_count(file), pairs);
    att_tensors_close(&file);
}

/* Measured: 2.9 times the header. */
static void test_memory_of_entries(void **state)
{
    enum { ENTRIES = 50000, MOST = 80 * ENTRIES };
    char *header = malloc(MOST);
    assert_non_null(header);
    put_entries(header, ENTRIES);
    assert_memory(*state, header, ENTRIES, 0);
    free(header);
}

/* Measured: 3.3 times the header. */
static void test_memory_of_metadata(void **state)
{
    enum { PAIRS = 200000, MOST = 16 * PAIRS };
    char *header = malloc(MOST);
    assert_non_null(header);
    put_pairs(header, PAIRS);
    assert_memory(*state, header, 0, PAIRS);
    free(header);
}

/* An entry is built in memory as a whole. */
static void test_long_entry(void **state)
{
    enum { DIMS = 40000 };
    char *header = malloc(2 * DIMS + 100), *bytes = malloc(2 * DIMS + 108);
    assert_true(header && bytes);
    size_t size = (size_t)sprintf(header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[0");
    for (int i = 0; i < DIMS; i++)
        size += (size_t)sprintf(header + size, ",0");
    sprintf(header + size, "],\"data_offsets\":[0,0]}}");
    scratch_write(*state, bytes, put_header(bytes, header));
    refuse(*state, ATT_ERR_FORMAT, "tensor a: its entry has more than 65536 bytes");
    free(header);
    free(bytes);
}

/* Another process shortens the file between opening and reading. */
static void test_shortened_while_read(void **state)
{
    scratch *self = *state;
    char bytes[2048];
    size_t size = python_file(bytes);
    float out[3];
    scratch_write(self, bytes, size);
    att_tensors *file = open_file(self);
    assert_int_equal(truncate(self->path, (off_t)size - 1), 0);
    assert_int_equal(att_tensors_read_f32(file, att_tensors_find(file, "a"), out, 1), ATT_OK);
    assert_int_equal(att_tensors_read_f32(file, att_tensors_find(file, "half"), out, 3), ATT_ERR_IO);
    assert_message_has(self, "while it was read");
    assert_int_equal(truncate(self->path, 0), 0);
    assert_int_equal(att_tensors_read_f32(file, att_tensors_find(file, "a"), out, 1), ATT_ERR_IO);
    assert_message_has(self, self->path);
    assert_string_equal(att_tensors_metadata(file, "format"), "pt");
    att_tensors_close(&file);
}

static void test_header_lengths(void **state)
{
    scratch *self = *state;
    char bytes[2048];
    size_t size = python_file(bytes);
    memset(bytes, 0xFF, 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "its first 8 bytes are not the length of a header");
    memcpy(bytes, "\x01\xE1\xF5\x05\0\0\0\0", 8); /* 100,000,001 */
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "at most 100000000");
    memcpy(bytes, "\x00\xE1\xF5\x05\0\0\0\0", 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "truncated");
    memset(bytes, 0, 8);
    scratch_write(self, bytes, size);
    refuse(self, ATT_ERR_FORMAT, "does not begin with '{'");
    write_file(self, " {}", 0);
    refuse(self, ATT_ERR_FORMAT, "does not begin with '{'");
}

#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F32(name, shape, offsets) ENTRY(name, "\"F32\"", shape, offsets)

/* As those of PyTorch's checkpoints; not where it is no prefix of all. */
static void test_prefixes(void **state)
{
    scratch *self = *state;
    write_file(self, "{" F32("module.model.a", "[1]", "[0,4]") "," F32("module.model.b", "[1]", "[4,8]") "}", 8);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_find(file, "b"), 1);
    assert_string_equal(att_tensors_at(file, 0).name, "a");
    assert_string_equal(att_tensors_origin(file), "without the prefix module.model.");
    att_tensors_close(&file);
    write_file(self, "{" F32("module.a", "[1]", "[0,4]") "," F32("b", "[1]", "[4,8]") "}", 8);
    file = open_file(self);
    assert_int_equal(att_tensors_find(file, "module.a"), 0);
    assert_string_equal(att_tensors_origin(file), "");
    att_tensors_close(&file);
}

static void test_hostile_headers(void **state)
{
    scratch *self = *state;
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

static void test_deep_nesting(void **state)
{
    scratch *self = *state;
    char header[3000] = "{\"a\":{\"b\":";
    memset(header + 10, '[', sizeof(header) - 11);
    write_file(self, header, 0);
    refuse(self, ATT_ERR_FORMAT, "nested");
}

static void test_accepted_oddities(void **state)
{
    scratch *self = *state;
    /* Order of the header is not the order of the data; empty tensors lie between; extra members are ignored. */
    write_file(self,
               "{" F32("z", "[1]", "[4,8]") "," F32("y", "[0]", "[4,4]") ",\"x\":{\"dtype\":\"I32\",\"extra\":{},"
                                                                         "\"shape\":[],\"data_offsets\":[0,4]}}   ",
               8);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 3);
    assert_string_equal(att_tensors_at(file, 0).name, "x");
    assert_string_equal(att_tensors_at(file, 1).name, "y");
    assert_string_equal(att_tensors_at(file, 2).name, "z");
    assert_int_equal(att_tensors_find(file, "z"), 2);
    assert_int_equal(att_tensors_metadata_count(file), 0);
    uint8_t raw[4];
    assert_int_equal(att_tensors_read(file, 0, ATT_SAFETENSORS_I32, raw, 1), ATT_OK);
    assert_memory_equal(raw, "\0\1\2\3", 4);
    att_tensors_close(&file);
}

/* Damage any one byte: it is refused or read, but never more than that. */
static void test_flipped_bytes(void **state)
{
    scratch *self = *state;
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

static void test_dtypes(void **state)
{
    (void)state;
    assert_int_equal(att_safetensors_dtype_of(ATT_F32), ATT_SAFETENSORS_F32);
    assert_int_equal(att_safetensors_dtype_of(ATT_BF16), ATT_SAFETENSORS_BF16);
    assert_int_equal(att_safetensors_dtype_of(ATT_U8), ATT_SAFETENSORS_U8);
    assert_string_equal(att_safetensors_dtype_name(ATT_SAFETENSORS_F8_E4M3), "F8_E4M3");
    assert_string_equal(att_safetensors_dtype_name((att_safetensors_dtype)99), "unknown");
    assert_int_equal(att_safetensors_dtype_size(ATT_SAFETENSORS_I64), 8);
    assert_int_equal(att_safetensors_dtype_size((att_safetensors_dtype)-1), 0);
}

static void test_deit(void **state)
{
    scratch *self = *state;
    const char *shared = getenv("ATT_SHARED");
    char path[4096];
    snprintf(path, sizeof(path), "%s/data/weights/deit_tiny_patch16_224.safetensors", shared != NULL ? shared : "");
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    att_tensors *file;
    assert_int_equal(att_tensors_open(self->context, path, &file), ATT_OK);
    assert_int_equal(att_tensors_count(file), 152);
    assert_string_equal(att_tensors_metadata(file, "architecture"), "deit_tiny_patch16_224");
    att_tensors_info info = att_tensors_at(file, att_tensors_find(file, "pos_embed"));
    assert_true(att_shape_equal(info.shape, att_shape_of(1, 197, 192)));
    int64_t parameters = 0;
    for (int i = 0; i < att_tensors_count(file); i++)
        parameters += att_tensors_at(file, i).count;
    assert_int_equal(parameters, 5717416);
    att_tensors_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(test_read),
        scratch_test(test_hostile_headers),
        scratch_test(test_write_as_python),
        scratch_test(test_write_nothing),
        scratch_test(test_write_refused),
        scratch_test(test_failing_fill),
        scratch_test(test_full_disk),
        scratch_test(test_lack_of_memory),
        scratch_test(test_memory_of_writing),
        scratch_test(test_misaligned),
        scratch_test(test_every_half),
        scratch_test(test_truncated),
        scratch_test(test_header_lengths),
        scratch_test(test_deep_nesting),
        scratch_test(test_accepted_oddities),
        scratch_test(test_flipped_bytes),
        scratch_test(test_dtypes),
        scratch_test(test_deit),
        scratch_test(test_prefixes),
        scratch_test(test_escapes),
        scratch_test(test_memory_of_entries),
        scratch_test(test_memory_of_metadata),
        scratch_test(test_long_entry),
        scratch_test(test_shortened_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
