/* Weights in several files, found by their index. */
#include "base/io/safetensors_file.h"
#include "base/io/torch_file.h"

/* Writes a file of two F32 tensors [2]; the first holds bytes 0..7, the second 8..15. */
static void write_shard(const scratch *self, const char *name, const char *first, const char *second)
{
    scratch other = *self;
    char header[512];
    snprintf(other.path, sizeof other.path, "%s/%s", self->folder, name);
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
             "\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
             first, second);
    write_file(&other, header, 16);
}

static void write_index(const scratch *self, const char *text)
{
    scratch_write(self, text, strlen(text));
}

static void make_shards(const scratch *self)
{
    write_shard(self, "1.safetensors", "module.a", "module.b");
    write_shard(self, "2.safetensors", "module.c", "module.d");
}

#define MAP(d)                                                                          \
    "{\"metadata\":{\"total_size\":64},\"weight_map\":{\"module.a\":\"1.safetensors\"," \
    "\"module.b\":\"1.safetensors\",\"module.c\":\"2.safetensors\"" d "}}"
#define WHOLE MAP(",\"module.d\":\"2.safetensors\"")

SCRATCH_TEST(tensors_of_all_files_are_read)
{
    make_shards(self);
    write_index(self, WHOLE);
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 4);
    static const char *const names[] = {"a", "b", "c", "d"}; /* the prefix is removed */
    for (int i = 0; i < 4; i++) {
        float values[2];
        uint8_t raw[8];
        int index = att_tensors_find(file, names[i]);
        assert_true(index >= 0);
        assert_int_equal(att_tensors_read_f32(file, index, values, 2), ATT_OK);
        memcpy(raw, values, sizeof raw);
        for (int b = 0; b < 8; b++)
            assert_int_equal(raw[b], 8 * (i % 2) + b);
    }
    att_tensors_close(&file);
}

SCRATCH_TEST(an_index_that_does_not_fit_its_files_is_refused)
{
    static const struct {
        const char *index, *reason;
        att_status status;
    } cases[] = {
        {"{\"weight_map\":{}}", "expected an object \"weight_map\"", ATT_ERR_FORMAT},
        {"{\"weight_map\":[]}", "expected an object \"weight_map\"", ATT_ERR_FORMAT},
        {"{\"weight_map\": ", "not valid JSON", ATT_ERR_FORMAT},
        {MAP(""), "tensor module.d is in 2.safetensors, but the index has it in no file", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\"1.safetensors\""), "but the index has it in 1.safetensors", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\"2.safetensors\",\"e\":\"1.safetensors\""), "lists 5 tensors, but its files hold 4",
         ATT_ERR_FORMAT},
        {MAP(",\"module.d\":3"), "names \"\"; expected the name of a file of weights", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\"../2.safetensors\""), "names \"../2.safetensors\"; expected", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\"/etc/passwd\""), "names \"/etc/passwd\"; expected", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\".hidden\""), "names \".hidden\"; expected", ATT_ERR_FORMAT},
        {MAP(",\"module.d\":\"2.safetensors\\u0000x\""), "not valid JSON", ATT_ERR_FORMAT},
    };
    make_shards(self);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_index(self, cases[i].index);
        refuse(self, cases[i].status, cases[i].reason);
    }
}

/* {"module.model": <tensor>, "module.w": <tensor>}: the names are those of the index, before prefixes are removed. */
static void write_pickles(const scratch *self, const char *name)
{
    scratch other = *self;
    bytes *object = calloc(1, sizeof *object);
    assert_non_null(object);
    snprintf(other.path, sizeof other.path, "%s/%s", self->folder, name);
    ops(object, "}");
    text(object, "module.model");
    tensor(object, &plain);
    ops(object, "s");
    text(object, "module.w");
    tensor(object, &plain);
    ops(object, "s");
    write_old(&other, object, &plain_storage, 1);
    free(object);
}

SCRATCH_TEST(pytorchs_files_are_read)
{
    static const double expected[] = {1, 2, 3, 4};
    write_shard(self, "1.safetensors", "module.a", "module.b");
    write_pickles(self, "2.bin");
    write_index(self,
                "{\"weight_map\":{\"module.a\":\"1.safetensors\",\"module.b\":\"1.safetensors\","
                "\"module.model\":\"2.bin\",\"module.w\":\"2.bin\"}}");
    att_tensors *file = open_file(self);
    assert_int_equal(att_tensors_count(file), 4);
    assert_f32(file, "w", att_shape_of(2, 2), expected);
    assert_f32(file, "model", att_shape_of(2, 2), expected);
    att_tensors_close(&file);
    write_index(self, "{\"weight_map\":{\"module.w\":\"2.bin\"}}");
    refuse(self, ATT_ERR_FORMAT, "tensor module.model is in 2.bin, but the index has it in no file");
    write_index(self, "{\"weight_map\":{\"module.w\":\"3.bin\"}}");
    scratch other = *self;
    snprintf(other.path, sizeof other.path, "%s/3.bin", self->folder);
    write_index(&other, "{\"weight_map\":{\"w\":\"3.bin\"}}");
    att_tensors *none = NULL;
    assert_fails(self->context, att_tensors_open(self->context, self->path, &none), ATT_ERR_FORMAT,
                 "3.bin: expected a safetensors file or a PyTorch checkpoint, but it seems to be text"); /* an index of
                                                                                                            an index */
}

SCRATCH_TEST(a_file_that_is_missing_or_damaged_is_named)
{
    att_tensors *file = NULL;
    write_shard(self, "1.safetensors", "module.a", "module.b");
    write_index(self, WHOLE);
    assert_fails(self->context, att_tensors_open(self->context, self->path, &file), ATT_ERR_NOT_FOUND,
                 "/2.safetensors, but there is no such file; all files of the index must be in its folder");
    write_shard(self, "2.safetensors", "module.c", "module.c");
    assert_int_equal(att_tensors_open(self->context, self->path, &file), ATT_ERR_FORMAT);
    /* An index is no tensor file itself. */
    write_index(self, "{\"weight_map\":{\"a\":\"file\"}}");
    assert_int_equal(att_tensors_open(self->context, self->path, &file), ATT_ERR_FORMAT);
}

static att_status open_and_close(scratch *self)
{
    att_tensors *file = NULL;
    att_status status = att_tensors_open(self->context, self->path, &file);
    att_tensors_close(&file);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_survived)
{
    make_shards(self);
    write_index(self, WHOLE);
    assert_survives_lack_of_memory(self, open_and_close);
}
