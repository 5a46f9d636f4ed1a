/* Reading: the content of valid files, and the memory that reading takes. */
#include "base/io/safetensors.h"

#include "base/io/safetensors_file.h"
#include "shared.h"

SCRATCH_TEST(tensors_and_metadata_are_read)
{
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
    assert_fails(self->context, att_tensors_read_f32(file, 2, out, 3), ATT_ERR_ARGUMENT,
                 "tensor b has 2 elements; 3 requested");
    assert_int_equal(att_tensors_read_f32(file, 5, out, 3), ATT_ERR_ARGUMENT);
    assert_int_equal(att_tensors_read_f32(file, -1, out, 3), ATT_ERR_ARGUMENT);
    assert_fails(self->context, att_tensors_read_f32(file, 0, out, 1), ATT_ERR_UNSUPPORTED, "tensor n is I64");
    int64_t n;
    assert_int_equal(att_tensors_read(file, 0, ATT_SAFETENSORS_I64, &n, 1), ATT_OK);
    assert_int_equal(n, -2);
    assert_fails(self->context, att_tensors_read(file, 0, ATT_SAFETENSORS_U64, &n, 1), ATT_ERR_MISMATCH,
                 "tensor n is I64; expected U64");
    assert_int_equal(att_tensors_read(file, 4, ATT_SAFETENSORS_U8, NULL, 0), ATT_OK);
    att_tensors_close(&file);
    assert_null(file);
}

SCRATCH_TEST(misaligned_tensors_are_read)
{
    /* No padding: the data begin at an odd address, and the f64 follows a single byte. */
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

/* Every f16 number against its definition: (-1)^s 2^(e - 15) (1 + f / 1024), subnormal numbers 2^-14 f / 1024. */
SCRATCH_TEST(every_f16_converts_to_its_value)
{
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

/* A search from the first entry on would take minutes. */
SCRATCH_TEST(many_entries_of_metadata_are_found)
{
    enum { COUNT = 500000, ENTRY = 32 };
    char key[ENTRY], value[ENTRY], *header = malloc((size_t)COUNT * ENTRY), *bytes = malloc((size_t)COUNT * ENTRY);
    size_t length = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"");
    for (int i = 0; i < COUNT; i++)
        length += (size_t)sprintf(header + length, ",\"k%d\":\"%d\"", i * 7 % COUNT, i);
    strcpy(header + length, "}}");
    scratch_write(self, bytes, put_header(bytes, header));
    free(header);
    free(bytes);
    att_tensors *file = open_file(self);
    assert_string_equal(att_tensors_metadata_key(file, 0), "format");
    alarm(60); /* ends the test if it takes long */
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "k%d", i * 7 % COUNT);
        snprintf(value, sizeof value, "%d", i);
        assert_string_equal(att_tensors_metadata_key(file, i + 1), key);
        assert_string_equal(att_tensors_metadata(file, key), value);
    }
    alarm(0);
    assert_null(att_tensors_metadata(file, "k"));
    att_tensors_close(&file);
}

/* Names and metadata are decoded in place. */
SCRATCH_TEST(escapes_in_names_and_metadata_are_decoded)
{
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

/* As in PyTorch's checkpoints. A prefix that some names lack is kept. */
SCRATCH_TEST(a_common_prefix_is_removed)
{
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

static void assert_kept(scratch *self, const char *const names[], int count)
{
    char header[1024] = "{";
    for (int i = 0; i < count; i++)
        snprintf(header + strlen(header), sizeof(header) - strlen(header),
                 "\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}%s", names[i], i, i + 1,
                 i + 1 < count ? "," : "}");
    write_file(self, header, (size_t)count);
    att_tensors *file = open_file(self);
    for (int i = 0; i < count; i++)
        assert_string_equal(att_tensors_at(file, i).name, names[i]);
    assert_string_equal(att_tensors_origin(file), "");
    att_tensors_close(&file);
}

SCRATCH_TEST(names_that_would_become_equal_keep_their_prefix)
{
    /* Without the prefix, another tensor would have the same name. */
    static const char *const prefixed[] = {"module.a", "module.b", "module.c", "module.d", "a"};
    assert_kept(self, prefixed, 5);
    /* Blocks whose numbers start again in every chunk. */
    static const char *const chunks[] = {"patch_embed.proj.weight", "blocks.0.0.norm1.weight",
                                         "blocks.1.0.norm1.weight"};
    assert_kept(self, chunks, 3);
}

SCRATCH_TEST(unusual_but_valid_headers_are_read)
{
    /* The order of the header is not the order of the data; empty tensors lie between others; unknown members are
     * ignored. */
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

/* Writes a header with as few bytes per tensor as possible. */
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

/* Checks that a header of `length` bytes takes no more memory than attscope/safetensors.h states. */
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
SCRATCH_TEST(entries_take_little_more_memory_than_the_header)
{
    enum { ENTRIES = 50000, MOST = 80 * ENTRIES };
    char *header = malloc(MOST);
    assert_non_null(header);
    put_entries(header, ENTRIES);
    assert_memory(self, header, ENTRIES, 0);
    free(header);
}

/* Measured: 3.3 times the header. */
SCRATCH_TEST(metadata_take_little_more_memory_than_the_header)
{
    enum { PAIRS = 200000, MOST = 16 * PAIRS };
    char *header = malloc(MOST);
    assert_non_null(header);
    put_pairs(header, PAIRS);
    assert_memory(self, header, 0, PAIRS);
    free(header);
}

SCRATCH_TEST(dtypes_have_names_and_sizes)
{
    assert_int_equal(att_safetensors_dtype_of(ATT_F32), ATT_SAFETENSORS_F32);
    assert_int_equal(att_safetensors_dtype_of(ATT_BF16), ATT_SAFETENSORS_BF16);
    assert_int_equal(att_safetensors_dtype_of(ATT_U8), ATT_SAFETENSORS_U8);
    assert_string_equal(att_safetensors_dtype_name(ATT_SAFETENSORS_F8_E4M3), "F8_E4M3");
    assert_string_equal(att_safetensors_dtype_name((att_safetensors_dtype)99), "unknown");
    assert_int_equal(att_safetensors_dtype_size(ATT_SAFETENSORS_I64), 8);
    assert_int_equal(att_safetensors_dtype_size((att_safetensors_dtype)-1), 0);
}

SCRATCH_TEST(a_published_deit_is_read)
{
    char path[SHARED_PATH];
    if (!shared_path(SHARED_DEIT, path))
        skip();
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
