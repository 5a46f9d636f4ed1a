/* Checkpoints of PyTorch: what it wrote is read to the bit, what is hostile is refused in a sentence. */
#include <attscope/tensors.h>

#include "io/golden.h"
#include "io/torch_file.h"

/* --- what torch.save() wrote -------------------------------------------------------------------------------------- */

static att_tensors *open_path(scratch *self, const char *path)
{
    att_tensors *file = NULL;
    if (att_tensors_open(self->context, path, &file) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return file;
}

static att_tensors *open_golden(scratch *self, const char *name)
{
    char path[4096], inner[64];
    snprintf(inner, sizeof inner, "checkpoints/%s", name);
    golden_path(inner, path, sizeof path);
    return open_path(self, path);
}

static void assert_f32(att_tensors *file, const char *name, att_shape shape, const double *expected)
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

static void assert_bytes(att_tensors *file, const char *name, att_safetensors_dtype dtype, const void *expected)
{
    uint8_t out[256];
    int index = att_tensors_find(file, name);
    assert_true(index >= 0);
    att_tensors_info info = att_tensors_at(file, index);
    assert_int_equal(info.dtype, dtype);
    assert_int_equal(att_tensors_read(file, index, dtype, out, info.count), ATT_OK);
    assert_memory_equal(out, expected, (size_t)info.count * att_safetensors_dtype_size(dtype));
}

/* tools/goldens/checkpoints.py, kinds(). */
static void assert_floats(att_tensors *file)
{
    static const double up[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    static const double turned[] = {0, 3, 1, 4, 2, 5}, thirds[] = {2, 5, 8, 11},
                        half_turned[] = {0, 1.5, 0.5, 2, 1, 2.5};
    static const double rows[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, halves[] = {0, 0.5, 1, 1.5, 2, 2.5};
    static const double quarters[] = {0, 0.25, 0.5};
    assert_f32(file, "plain", att_shape_of(2, 3), up);
    assert_f32(file, "transposed", att_shape_of(3, 2), turned);
    assert_f32(file, "every_third", att_shape_of(4), thirds);
    assert_f32(file, "expanded", att_shape_of(3, 4), rows);
    assert_f32(file, "channels_last", att_shape_of(1, 2, 3, 4), up);
    assert_f32(file, "first_shared", att_shape_of(2, 5), up);
    assert_f32(file, "second_shared", att_shape_of(10), up + 5);
    assert_f32(file, "scalar", (att_shape){.rank = 0}, halves + 1);
    assert_f32(file, "empty", att_shape_of(0, 3), up);
    assert_f32(file, "f64", att_shape_of(3), quarters);
    assert_f32(file, "f16", att_shape_of(3, 2), half_turned);
    assert_f32(file, "bf16", att_shape_of(4), halves);
    assert_f32(file, "parameter", att_shape_of(4), up);
}

static void assert_integers(att_tensors *file)
{
    assert_bytes(file, "i64", ATT_SAFETENSORS_I64, (const int64_t[]){-1, 0, 1});
    assert_bytes(file, "i32", ATT_SAFETENSORS_I32, (const int32_t[]){0, 1, 2});
    assert_bytes(file, "i16", ATT_SAFETENSORS_I16, (const int16_t[]){0, 1, 2});
    assert_bytes(file, "i8", ATT_SAFETENSORS_I8, (const int8_t[]){-1, 0, 1});
    assert_bytes(file, "u8", ATT_SAFETENSORS_U8, (const uint8_t[]){0, 1, 2});
    assert_bytes(file, "bool", ATT_SAFETENSORS_BOOL, (const uint8_t[]){1, 0, 1});
    /* -1 does not turn into a float unasked, and what is transposed is laid out anew for others than f32, too. */
    assert_bytes(file, "f16", ATT_SAFETENSORS_F16, (const uint16_t[]){0, 0x3e00, 0x3800, 0x4000, 0x3c00, 0x4100});
    float out[3];
    assert_int_equal(att_tensors_read_f32(file, att_tensors_find(file, "i64"), out, 3), ATT_ERR_UNSUPPORTED);
}

static void assert_average(att_tensors *file)
{
    assert_true(att_tensors_has_average(file));
    assert_f32(file, "ema.plain", att_shape_of(2, 3), (const double[]){1, 2, 3, 4, 5, 6});
}

static const char beside[] =
    "PyTorch's state_dict without the prefix module.; averaged weights: state_dict_ema; left "
    "out: epoch, optimizer, args, metric, history, huge, names, blob, ...";

static void test_goldens(void **state)
{
    static const struct {
        const char *name, *origin;
        int count;
    } files[] = {
        {"kinds_zip.pth", beside, 22}, {"kinds_old.pth", beside, 20}, {"kinds_protocol5.pth", "PyTorch's tensors", 21}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        att_tensors *file = open_golden(*state, files[i].name);
        assert_string_equal(att_tensors_origin(file), files[i].origin);
        assert_int_equal(att_tensors_count(file), files[i].count);
        assert_string_equal(att_tensors_at(file, 0).name, "plain");
        assert_string_equal(att_tensors_at(file, 18).name, "parameter");
        assert_int_equal(att_tensors_metadata_count(file), 0);
        assert_floats(file);
        assert_integers(file);
        if (strcmp(files[i].origin, beside) == 0)
            assert_average(file);
        else
            assert_false(att_tensors_has_average(file));
        if (att_tensors_find(file, "u16") >= 0) { /* with the type beside the storage, not in it */
            assert_bytes(file, "u16", ATT_SAFETENSORS_U16, (const uint16_t[]){0, 1, 2});
            assert_bytes(file, "f8", ATT_SAFETENSORS_F8_E4M3, (const uint8_t[]){0, 0x38, 0x40});
        }
        att_tensors_close(&file);
    }
}

/* "Trained ResNet on CIFAR-10 by akamaster", of the format before 1.6; figures by torch.load() of PyTorch 2.15. */
static void test_resnet20(void **state)
{
    scratch *self = *state;
    char path[4096];
    const char *shared = getenv("ATT_SHARED");
    snprintf(path, sizeof path, "%s/data/weights/resnet20-12fca82f.th", shared ? shared : "../shared");
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    att_tensors *file = open_path(self, path);
    assert_int_equal(att_tensors_count(file), 97);
    assert_string_equal(att_tensors_origin(file),
                        "PyTorch's state_dict without the prefix module.; left out: best_prec1");
    int index = att_tensors_find(file, "linear.weight");
    assert_true(att_shape_equal(att_tensors_at(file, index).shape, att_shape_of(10, 64)));
    float *weight = malloc(640 * sizeof *weight);
    assert_non_null(weight);
    assert_int_equal(att_tensors_read_f32(file, index, weight, 640), ATT_OK);
    assert_true(weight[0] == -0x1.0f4fe0p+0F && weight[639] == 0x1.d03c04p-3F);
    free(weight);
    att_tensors_close(&file);
}

/* --- made by hand ------------------------------------------------------------------------------------------------- */

static const float four[] = {1, 2, 3, 4};
static const described plain = {"FloatStorage", "0", 4, 0, {2, 2}, {2, 1}, 2, 2};
static const stored plain_storage = {"0", four, sizeof four, 4};

static void write_old(scratch *self, const bytes *object, const stored *storages, int count)
{
    bytes *file = calloc(1, sizeof *file);
    assert_non_null(file);
    old_file(file, object, storages, count);
    scratch_write(self, file->data, file->size);
    free(file);
}

static void refused(scratch *self, att_status expected, const char *reason)
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
static void put_state(bytes *object, const described *t)
{
    ops(object, "}");
    text(object, "w");
    tensor(object, t);
    ops(object, "s");
}

static void test_by_hand(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    put_state(object, &plain);
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_f32(file, "w", att_shape_of(2, 2), (const double[]){1, 2, 3, 4});
    att_tensors_close(&file);
    free(object);
}

static void test_tensors_that_do_not_fit(void **state)
{
    scratch *self = *state;
    const int64_t huge = INT64_MAX;
    const struct {
        described tensor;
        att_status status;
        const char *reason;
    } cases[] = {
        {{"FloatStorage", "0", 4, 1, {2, 2}, {2, 1}, 2, 2}, ATT_ERR_FORMAT, "would be number 4 of a storage of 4"},
        {{"FloatStorage", "0", 4, 0, {2, 2}, {3, 1}, 2, 2}, ATT_ERR_FORMAT, "would be number 4 of a storage of 4"},
        {{"FloatStorage", "0", 4, 0, {2, 2}, {huge, huge}, 2, 2}, ATT_ERR_FORMAT, "its last element"},
        {{"FloatStorage", "0", 4, huge, {2}, {huge}, 1, 1}, ATT_ERR_FORMAT, "its last element"},
        {{"FloatStorage", "0", 4, -1, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "not (storage, offset, size, stride, ...)"},
        {{"FloatStorage", "0", 4, 0, {2}, {-1}, 1, 1}, ATT_ERR_FORMAT, "not as many numbers from 0"},
        {{"FloatStorage", "0", 4, 0, {-2}, {1}, 1, 1}, ATT_ERR_FORMAT, "not as many numbers from 0"},
        {{"FloatStorage", "0", 4, 0, {2, 2}, {2}, 2, 1}, ATT_ERR_FORMAT, "not as many numbers from 0"},
        {{"FloatStorage", "0", 4, 0, {huge, huge}, {0, 0}, 2, 2}, ATT_ERR_FORMAT, "more elements than can be counted"},
        {{"FloatStorage", "0", 4, 0, {1LL << 40}, {0}, 1, 1}, ATT_ERR_FORMAT, "the file is too small"},
        {{"FloatStorage", "0", 4, 0, {1, 1, 1, 1, 1, 1}, {0}, 6, 6}, ATT_ERR_UNSUPPORTED, "more than 5 dimensions"},
        {{"FloatStorage", "0", 5, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "not as large as its tensors say"},
        {{"FloatStorage", "0", 3, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "another number of elements"},
        {{"FloatStorage", "0", huge, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "not as large as its tensors say"},
        {{"FloatStorage", "0", -4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "a storage that is not"},
        {{"FloatStorage", "1", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "storage \"0\" belongs to no tensor"},
        {{"QInt8Storage", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "storage \"0\" belongs to no tensor"},
        {{"NoStorage", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_UNSUPPORTED, "torch.NoStorage to be called"},
        {{"Size", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "a storage of no known type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes *object = calloc(1, sizeof *object);
        put_state(object, &cases[i].tensor);
        write_old(self, object, &plain_storage, 1);
        refused(self, cases[i].status, cases[i].reason);
        free(object);
    }
}

/* A step over one element leaves the storage; it is never taken. */
static void test_strides_of_single_elements(void **state)
{
    scratch *self = *state;
    const described odd = {"FloatStorage", "0", 4, 0, {1, 4}, {INT64_MAX, 1}, 2, 2};
    bytes *object = calloc(1, sizeof *object);
    put_state(object, &odd);
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_f32(file, "w", att_shape_of(1, 4), (const double[]){1, 2, 3, 4});
    att_tensors_close(&file);
    free(object);
}

static void test_storages(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    put_state(object, &plain);
    const stored twice[] = {plain_storage, plain_storage}, other = {"x", four, sizeof four, 4};
    write_old(self, object, twice, 2);
    refused(self, ATT_ERR_FORMAT, "storage \"0\" is there twice");
    write_old(self, object, twice, 0);
    refused(self, ATT_ERR_FORMAT, "storage \"0\" is missing");
    write_old(self, object, &other, 1);
    refused(self, ATT_ERR_FORMAT, "storage \"x\" belongs to no tensor");
    /* One storage, of which two tensors say different things. */
    const described wider = {"FloatStorage", "0", 2, 0, {2}, {1}, 1, 1};
    text(object, "v");
    tensor(object, &wider);
    ops(object, "s");
    write_old(self, object, &plain_storage, 1);
    refused(self, ATT_ERR_FORMAT, "another number of elements");
    free(object);
}

/* --- pickles that do harm ----------------------------------------------------------------------------------------- */

typedef struct hostile {
    const char *bytes;
    size_t size;
    att_status status;
    const char *reason;
} hostile;
#define HOSTILE(text, status, reason)          \
    {                                          \
        text, sizeof(text) - 1, status, reason \
    }

static void test_hostile_pickles(void **state)
{
    scratch *self = *state;
    static const hostile cases[] = {
        HOSTILE("cos\nsystem\n(X\x02\0\0\0lstR", ATT_ERR_UNSUPPORTED, "asks for os.system to be called"),
        HOSTILE("cposix\nsystem\n(X\x02\0\0\0lstR", ATT_ERR_UNSUPPORTED, "runs no code, whatever the file says"),
        HOSTILE("cbuiltins\neval\n(X\x01\0\0\0 tR", ATT_ERR_UNSUPPORTED, "builtins.eval"),
        HOSTILE("c__builtin__\nexec\n.", ATT_ERR_UNSUPPORTED, "__builtin__.exec"),
        HOSTILE("cbuiltins\ngetattr\n", ATT_ERR_UNSUPPORTED, "builtins.getattr"),
        HOSTILE("\x8c\x02os\x8c\x06system\x93", ATT_ERR_UNSUPPORTED, "os.system"),
        HOSTILE("}\x8c\x06system\x93", ATT_ERR_FORMAT, "a name that is no text"),
        HOSTILE("cos\x1b[2J\nsystem\n", ATT_ERR_UNSUPPORTED, "os?[2J.system"),
        HOSTILE("ctorch.storage\n_load_from_bytes\n", ATT_ERR_UNSUPPORTED, "_load_from_bytes"),
        HOSTILE("(ios\nsystem\n", ATT_ERR_FORMAT, "opcode 0x69"),
        HOSTILE("\x82\x01", ATT_ERR_FORMAT, "opcode 0x82"),
        HOSTILE("P1\n", ATT_ERR_FORMAT, "opcode 0x50"),
        HOSTILE("\xff", ATT_ERR_FORMAT, "opcode 0xff"),
        HOSTILE("(X\x06\0\0\0moduleNNNtQ", ATT_ERR_UNSUPPORTED, "a whole network with its program"),
        HOSTILE("X\x01\0\0\0aQ", ATT_ERR_FORMAT, "arguments are no tuple"),
        HOSTILE("))R", ATT_ERR_FORMAT, "calls something that is no function"),
        HOSTILE("ctorch\nfloat32\n)R", ATT_ERR_FORMAT, "calls something that is no function"),
        HOSTILE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)NtR", ATT_ERR_FORMAT,
                "calls something that is no function"),
        HOSTILE("ctorch._utils\n_rebuild_tensor_v2\n)R", ATT_ERR_FORMAT, "a tensor that is not"),
        HOSTILE("ctorch._utils\n_rebuild_parameter\n)R", ATT_ERR_FORMAT, "a parameter without a tensor"),
        HOSTILE("ctorch\nSize\n(K\1tR", ATT_ERR_FORMAT, "a size that is no tuple"),
        HOSTILE("ccollections\nOrderedDict\n](K\1e\x85R", ATT_ERR_FORMAT, "something else than pairs"),
        HOSTILE("X\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("\x8b\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("}r\xff\xff\xff\xff", ATT_ERR_FORMAT, "keeps more values than it can have"),
        HOSTILE("j\0\0\0\1", ATT_ERR_FORMAT, "recalls a value that it has not kept"),
        HOSTILE("q\0", ATT_ERR_FORMAT, "takes values that are not there"),
        HOSTILE("0", ATT_ERR_FORMAT, "a mark that is not there"),
        HOSTILE("u", ATT_ERR_FORMAT, "a mark that is not there"),
        HOSTILE("(u", ATT_ERR_FORMAT, "nothing to put values into"),
        HOSTILE("K\1(NNu", ATT_ERR_FORMAT, "something that holds none"),
        HOSTILE("}(Nu", ATT_ERR_FORMAT, "a key without a value"),
        HOSTILE("]((K\1e", ATT_ERR_FORMAT, "nothing to put values into"),
        HOSTILE("K\1Nb", ATT_ERR_FORMAT, "a state to something that has none"),
        HOSTILE("NN", ATT_ERR_FORMAT, "something else than one value"),
        HOSTILE("(N", ATT_ERR_FORMAT, "something else than one value"),
        HOSTILE("", ATT_ERR_FORMAT, "something else than one value"),
        HOSTILE("\x80\x06", ATT_ERR_FORMAT, "a protocol above 5"),
        HOSTILE("N", ATT_ERR_FORMAT, "no tensors were found"),
        /* A list in itself. */
        HOSTILE("]q\0h\0a", ATT_ERR_FORMAT, "hold themselves"),
        HOSTILE("}q\0X\1\0\0\0ah\0s", ATT_ERR_FORMAT, "hold themselves"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes *object = calloc(1, sizeof *object);
        put(object, cases[i].bytes, cases[i].size);
        write_old(self, object, NULL, 0);
        refused(self, cases[i].status, cases[i].reason);
        free(object);
    }
}

/* Opaque objects swallow what is put into them, calls and tensors included; containers are none of theirs. */
static void test_inert(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    text(object, "args");
    global(object, "argparse", "Namespace");
    ops(object, ")\x81}(");
    text(object, "w");
    tensor(object, &plain);
    ops(object, "ub");
    text(object, "metric");
    global(object, "numpy.core.multiarray", "scalar");
    global(object, "numpy", "dtype");
    ops(object, "(");
    text(object, "f8");
    ops(object, "K");
    put_number(object, 1, 1);
    ops(object, "tR");
    global(object, "_codecs", "encode");
    ops(object, "(");
    text(object, "12345678");
    text(object, "latin1");
    ops(object, "tR\x86R");
    text(object, "model");
    put_state(object, &plain);
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 1);
    assert_string_equal(att_tensors_origin(file), "PyTorch's model; left out: args, metric");
    att_tensors_close(&file);
    free(object);
}

/* Nested a hundred thousand times; nothing recurses, and only 16 levels are looked into. */
static void test_nesting(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    for (int i = 0; i < 30000; i++)
        ops(object, "]");
    for (int i = 1; i < 30000; i++)
        ops(object, "a");
    write_old(self, object, NULL, 0);
    refused(self, ATT_ERR_FORMAT, "nested deeper than 16 levels");
    object->size = 0;
    for (int i = 0; i < 60000; i++)
        ops(object, "(");
    write_old(self, object, NULL, 0);
    refused(self, ATT_ERR_FORMAT, "something else than one value");
    free(object);
}

/* Fourteen dictionaries, each ten times in the next: 10^14 ways to the one in the middle. */
static void test_sharing(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    ops(object, "N");
    for (int level = 0; level < 14; level++) {
        uint8_t memo[] = {'q', (uint8_t)level, '0', '}'};
        put(object, memo, sizeof memo);
        for (char key = '0'; key <= '9'; key++) {
            text(object, (char[]){key, '\0'});
            put(object, (uint8_t[]){'h', (uint8_t)level, 's'}, 3);
        }
    }
    write_old(self, object, NULL, 0);
    refused(self, ATT_ERR_FORMAT, "hold more than 4194304 values");
    free(object);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* {<name>: <tensor>, <other>: <tensor>} */
static void write_names(scratch *self, const char *name, const char *other)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    text(object, name);
    tensor(object, &plain);
    text(object, other);
    tensor(object, &plain);
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    free(object);
}

static void test_names(void **state)
{
    scratch *self = *state;
    write_names(self, "a", "a");
    refused(self, ATT_ERR_FORMAT, "two tensors are called a");
    write_names(self, "", "b");
    refused(self, ATT_ERR_FORMAT, "name is empty");
    write_names(self, "a\xff", "b");
    refused(self, ATT_ERR_FORMAT, "no text in UTF-8");
    static const struct {
        const char *given[2], *found[2];
    } cases[] = {
        {{"module.a", "module.b"}, {"a", "b"}},
        {{"module.a", "b"}, {"module.a", "b"}},
        {{"module.", "module.b"}, {"module.", "module.b"}},
        {{"_orig_mod.module.model.a", "_orig_mod.module.model.b"}, {"a", "b"}},
        {{"module._orig_mod.a", "module._orig_mod.b.c"}, {"a", "b.c"}},
        {{"backbone.a", "backbone.b"}, {"a", "b"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_names(self, cases[i].given[0], cases[i].given[1]);
        att_tensors *file = open_path(self, self->path);
        for (int n = 0; n < 2; n++)
            assert_string_equal(att_tensors_at(file, n).name, cases[i].found[n]);
        att_tensors_close(&file);
    }
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

static void write_zip(scratch *self, const zipped *files, int count)
{
    bytes *file = calloc(1, sizeof *file);
    assert_non_null(file);
    zip_file(file, files, count);
    scratch_write(self, file->data, file->size);
    free(file);
}

typedef struct zip_case {
    zipped files[4];
    int count;
    att_status status;
    const char *reason;
} zip_case;

static void test_archives(void **state)
{
    scratch *self = *state;
    bytes *object = calloc(1, sizeof *object);
    ops(object, "\x80\x02");
    put_state(object, &plain);
    ops(object, ".");
    const zipped data = {"a/data.pkl", object->data, object->size, 0, 0, 0, 0};
    const zipped numbers = {"a/data/0", four, sizeof four, 0, 0, 0, 0};
    zipped packed = numbers, locked = numbers, short_one = numbers, long_one = numbers, far = numbers, over = numbers;
    packed.method = 8, locked.flags = 1, short_one.size_off = -4, long_one.size_off = 1 << 20;
    far.place_off = 1 << 20, over.place_off = -(int64_t)(30 + strlen("a/data.pkl") + object->size);
    zipped big_data = data, longer = data;
    big_data.method = 8, longer.size_off = 10;
    const zip_case cases[] = {
        {{data, numbers}, 2, ATT_OK, ""},
        {{data, numbers, {"a/byteorder", "little", 6, 0, 0, 0, 0}}, 3, ATT_OK, ""},
        {{data, numbers, {"a/byteorder", "big", 3, 0, 0, 0, 0}}, 3, ATT_ERR_UNSUPPORTED, "not little-endian"},
        {{data, numbers, {"a/constants.pkl", "", 0, 0, 0, 0, 0}}, 3, ATT_ERR_UNSUPPORTED, "a program of TorchScript"},
        {{data}, 1, ATT_ERR_FORMAT, "a storage that is missing"},
        {{numbers}, 1, ATT_ERR_FORMAT, "it has no data.pkl"},
        {{{"a/x", "", 0, 0, 0, 0, 0}, {"b/data.pkl", "N.", 2, 0, 0, 0, 0}}, 2, ATT_ERR_FORMAT, "it has no data.pkl"},
        {{{"a/x", "", 0, 0, 0, 0, 0}}, 0, ATT_ERR_FORMAT, "damaged"},
        {{data, packed}, 2, ATT_ERR_UNSUPPORTED, "a/data/0 in it is compressed"},
        {{big_data, numbers}, 2, ATT_ERR_UNSUPPORTED, "a/data.pkl in it is compressed"},
        {{data, locked}, 2, ATT_ERR_UNSUPPORTED, "encrypted"},
        {{data, numbers, numbers}, 3, ATT_ERR_FORMAT, "is there twice"},
        {{data, short_one}, 2, ATT_ERR_FORMAT, "not as large as its tensors say"},
        {{data, long_one}, 2, ATT_ERR_FORMAT, "reaches beyond the archive"},
        {{data, far}, 2, ATT_ERR_FORMAT, "does not begin where the directory says"},
        {{data, over}, 2, ATT_ERR_FORMAT, "lies over another file's bytes"},
        {{longer, numbers}, 2, ATT_ERR_FORMAT, "lies over another file's bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_zip(self, cases[i].files, cases[i].count);
        if (cases[i].status != ATT_OK) {
            refused(self, cases[i].status, cases[i].reason);
            continue;
        }
        att_tensors *file = open_path(self, self->path);
        assert_f32(file, "w", att_shape_of(2, 2), (const double[]){1, 2, 3, 4});
        att_tensors_close(&file);
    }
    free(object);
}

/* --- damage ------------------------------------------------------------------------------------------------------- */

static uint8_t *read_golden(const char *name, size_t *size)
{
    char path[4096], inner[64];
    snprintf(inner, sizeof inner, "checkpoints/%s", name);
    golden_path(inner, path, sizeof path);
    uint8_t *data = malloc(1 << 16);
    FILE *file = fopen(path, "rb");
    assert_true(data && file);
    *size = fread(data, 1, 1 << 16, file);
    fclose(file);
    return data;
}

static const char *const golden_names[] = {"kinds_zip.pth", "kinds_old.pth"};

/* Every byte counts: the old format ends with its last storage, a zip with its directory. */
static void test_truncated(void **state)
{
    scratch *self = *state;
    for (int i = 0; i < 2; i++) {
        size_t size;
        uint8_t *data = read_golden(golden_names[i], &size);
        for (size_t left = 0; left < size; left += 7) {
            scratch_write(self, data, left);
            att_tensors *file = NULL;
            assert_int_equal(att_tensors_open(self->context, self->path, &file), ATT_ERR_FORMAT);
            assert_message_has(self, self->path);
        }
        free(data);
    }
}

/* Whatever a byte is changed to, what comes back can be read to its end. */
static void test_flipped(void **state)
{
    scratch *self = *state;
    float *out = malloc(1 << 20);
    for (int i = 0; i < 2; i++) {
        size_t size;
        uint8_t *data = read_golden(golden_names[i], &size);
        for (size_t at = 0; at < size; at += 3) {
            data[at] ^= (uint8_t)(1u << at % 8);
            scratch_write(self, data, size);
            data[at] ^= (uint8_t)(1u << at % 8);
            att_tensors *file = NULL;
            if (att_tensors_open(self->context, self->path, &file) != ATT_OK)
                continue;
            for (int t = 0; t < att_tensors_count(file); t++) {
                att_tensors_info info = att_tensors_at(file, t);
                if (info.count <= 1 << 17)
                    assert_int_equal(att_tensors_read(file, t, info.dtype, out, info.count), ATT_OK);
            }
            att_tensors_close(&file);
        }
        free(data);
    }
    free(out);
}

static att_status open_path_of(scratch *self)
{
    att_tensors *file = NULL;
    att_status status = att_tensors_open(self->context, self->path, &file);
    att_tensors_close(&file);
    return status;
}

static void test_lack_of_memory(void **state)
{
    scratch *self = *state;
    for (int i = 0; i < 2; i++) {
        size_t size;
        uint8_t *data = read_golden(golden_names[i], &size);
        scratch_write(self, data, size);
        free(data);
        assert_survives_lack_of_memory(self, open_path_of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(test_goldens),
        scratch_test(test_resnet20),
        scratch_test(test_by_hand),
        scratch_test(test_tensors_that_do_not_fit),
        scratch_test(test_strides_of_single_elements),
        scratch_test(test_storages),
        scratch_test(test_hostile_pickles),
        scratch_test(test_inert),
        scratch_test(test_nesting),
        scratch_test(test_sharing),
        scratch_test(test_names),
        scratch_test(test_archives),
        scratch_test(test_truncated),
        scratch_test(test_flipped),
        scratch_test(test_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
