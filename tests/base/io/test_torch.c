/* PyTorch checkpoints: files written by PyTorch are read exactly, hostile files are refused with a message. */
#include "base/io/golden.h"
#include "base/io/tensors.h"
#include "base/io/torch_file.h"
#include "shared.h"

/* --- files written by torch.save() -------------------------------------------------------------------------------- */

static att_tensors *open_golden(scratch *self, const char *name)
{
    char path[4096], inner[64];
    snprintf(inner, sizeof inner, "checkpoints/%s", name);
    golden_path(inner, path, sizeof path);
    return open_path(self, path);
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

/* The tensors of kinds() in tools/goldens/checkpoints.py. */
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
    /* -1 is not converted to a float, and transposed tensors are also made contiguous for types other than f32. */
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
    "PyTorch's state_dict without the prefix module.; averaged weights: state_dict_ema without the prefix module.; "
    "left "
    "out: epoch, optimizer, args, metric, history, huge, names, blob, ...";

SCRATCH_TEST(checkpoints_of_torch_save_are_read_exactly)
{
    static const struct {
        const char *name, *origin;
        int count;
    } files[] = {
        {"kinds_zip.pth", beside, 22}, {"kinds_old.pth", beside, 20}, {"kinds_protocol5.pth", "PyTorch's tensors", 21}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        att_tensors *file = open_golden(self, files[i].name);
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
        if (att_tensors_find(file, "u16") >= 0) { /* its type is stored beside the storage */
            assert_bytes(file, "u16", ATT_SAFETENSORS_U16, (const uint16_t[]){0, 1, 2});
            assert_bytes(file, "f8", ATT_SAFETENSORS_F8_E4M3, (const uint8_t[]){0, 0x38, 0x40});
        }
        att_tensors_close(&file);
    }
}

/* "Trained ResNet on CIFAR-10 by akamaster", in the format before 1.6; the figures are from torch.load() of PyTorch
 * 2.15. */
SCRATCH_TEST(a_published_resnet20_is_read_exactly)
{
    char path[SHARED_PATH];
    if (!shared_path("data/weights/resnet20-12fca82f.th", path))
        skip();
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

/* --- files built by hand ------------------------------------------------------------------------------------------ */

/* Writes {"w": <tensor>} with a storage of four numbers. */
static void write_state(scratch *self, const described *t)
{
    bytes *object = calloc(1, sizeof *object);
    put_state(object, t);
    write_old(self, object, &plain_storage, 1);
    free(object);
}

/* Checks that the file self->path has the four numbers as tensor "w". */
static void assert_four(scratch *self, att_shape shape)
{
    att_tensors *file = open_path(self, self->path);
    assert_f32(file, "w", shape, (const double[]){1, 2, 3, 4});
    att_tensors_close(&file);
}

SCRATCH_TEST(a_checkpoint_made_by_hand_is_read)
{
    write_state(self, &plain);
    assert_four(self, att_shape_of(2, 2));
}

/* A program is an object of a class of its own, whose state has its parts. Its lists are calls of functions. */
SCRATCH_TEST(tensors_of_a_torchscript_program_are_read)
{
    bytes *object = calloc(1, sizeof *object);
    global(object, "__torch__", "Net");
    ops(object, ")\x81}");
    text(object, "training");
    ops(object, "\x88s");
    text(object, "sides");
    global(object, "torch.jit._pickle", "build_intlist");
    ops(object, "]\x85Rs");
    text(object, "layer");
    global(object, "__torch__.torch.nn", "___torch_mangle_1");
    ops(object, ")\x81}");
    text(object, "w");
    tensor(object, &plain);
    ops(object, "sbsb");
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 1);
    assert_f32(file, "layer.w", att_shape_of(2, 2), (const double[]){1, 2, 3, 4});
    assert_string_equal(att_tensors_origin(file), "TorchScript's tensors");
    att_tensors_close(&file);
    free(object);
}

/* Writes {<name>: <the object>, "epoch": 3, "state_dict": {"w": <tensor>}}. */
static void write_checkpoint(scratch *self, const char *name, const bytes *value)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}");
    text(object, name);
    put(object, value->data, value->size);
    ops(object, "s");
    text(object, "epoch");
    integer(object, 3);
    ops(object, "s");
    text(object, "state_dict");
    put_state(object, &plain);
    ops(object, "s");
    write_old(self, object, &plain_storage, 1);
    free(object);
}

/* old: as before PyTorch 1.6, which stored the class with its code. */
static void begin_module(bytes *to, const char *class, bool old)
{
    if (old) {
        ops(to, "(");
        text(to, "module");
    }
    global(to, "my.code", class);
    if (old) {
        text(to, "code.py");
        text(to, "class Net: ...");
        ops(to, "tQ");
    }
    ops(to, ")\x81}(");
    text(to, "training");
    ops(to, "\x89");
}

static void begin_group(bytes *to, const char *name)
{
    text(to, name);
    ops(to, "}(");
}

/* A network that torch.save() wrote as a whole: {w, bias: None, kept and temporary buffers, layer: {w}}. */
static void whole_network(bytes *to, bool old)
{
    begin_module(to, "Net", old);
    begin_group(to, "_parameters");
    text(to, "w");
    tensor(to, &plain);
    text(to, "bias");
    ops(to, "Nu");
    begin_group(to, "_buffers");
    text(to, "kept");
    tensor(to, &plain);
    text(to, "temporary");
    tensor(to, &plain);
    text(to, "passing");
    tensor(to, &plain);
    ops(to, "u");
    text(to, "_non_persistent_buffers_set");
    global(to, "__builtin__", "set");
    ops(to, "](");
    text(to, "temporary");
    text(to, "passing");
    ops(to, "e\x85R");
    begin_group(to, "_modules");
    text(to, "layer");
    begin_module(to, "Layer", false);
    begin_group(to, "_parameters");
    text(to, "w");
    tensor(to, &plain);
    ops(to, "u");
    begin_group(to, "_modules");
    ops(to, "uub");
    text(to, "none");
    ops(to, "Nuub");
}

/* The classes are not known, and no code of theirs is needed. */
SCRATCH_TEST(a_network_that_was_saved_whole_is_read)
{
    static const struct {
        const char *key, *origin;
    } all[] = {{NULL, "PyTorch's whole Net"},
               {"model", "PyTorch's model, a whole Net; left out: epoch"},
               {"mine", "PyTorch's mine, a whole Net; left out: epoch"}};
    static const double expected[] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bytes *object = calloc(1, sizeof *object);
        assert_non_null(object);
        if (all[i].key) {
            ops(object, "}(");
            text(object, "epoch");
            integer(object, 3);
            text(object, all[i].key);
        }
        whole_network(object, i == 1);
        if (all[i].key)
            ops(object, "u");
        write_old(self, object, &plain_storage, 1);
        free(object);
        att_tensors *file = open_path(self, self->path);
        assert_int_equal(att_tensors_count(file), 3);
        assert_f32(file, "w", att_shape_of(2, 2), expected);
        assert_f32(file, "kept", att_shape_of(2, 2), expected);
        assert_f32(file, "layer.w", att_shape_of(2, 2), expected);
        assert_string_equal(att_tensors_origin(file), all[i].origin);
        att_tensors_close(&file);
    }
}

static void real(bytes *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    ops(to, "G");
    for (int shift = 56; shift >= 0; shift -= 8)
        put(to, &(uint8_t){(uint8_t)(bits >> shift)}, 1);
}

/* A module without parameters and with one attribute, which is a number or, if `text` is given, a text. */
static void put_module(bytes *to, const char *name, const char *class, const char *key, double number, const char *word)
{
    text(to, name);
    begin_module(to, class, false);
    begin_group(to, "_parameters");
    ops(to, "u");
    text(to, key);
    if (word)
        text(to, word);
    else if (number >= 1)
        integer(to, (int64_t)number);
    else
        real(to, number);
    begin_group(to, "_modules");
    ops(to, "uub");
}

/* Settings that the modules of a network have as attributes; one in which they differ is not known. */
SCRATCH_TEST(attributes_of_a_network_that_was_saved_whole_are_settings)
{
    for (int other = 0; other < 2; other++) {
        bytes *object = calloc(1, sizeof *object);
        assert_non_null(object);
        begin_module(object, "Net", false);
        text(object, "global_pool");
        text(object, "avg");
        text(object, "pretrained_cfg");
        ops(object, "}(");
        text(object, "architecture");
        text(object, "vit_tiny_patch16_224");
        text(object, "num_classes");
        integer(object, 1000);
        ops(object, "u");
        begin_group(object, "_parameters");
        text(object, "w");
        tensor(object, &plain);
        ops(object, "u");
        begin_group(object, "_modules");
        put_module(object, "attn", "Attention", "num_heads", 6, NULL);
        put_module(object, "norm1", "LayerNorm", "eps", 0.25, NULL);
        put_module(object, "act", "GELU", "approximate", 0, "tanh");
        put_module(object, "act1", other ? "ReLU" : "GELUTanh", "inplace", 1, NULL);
        ops(object, "uub");
        write_old(self, object, &plain_storage, 1);
        free(object);
        att_tensors *file = open_path(self, self->path);
        assert_string_equal(att_tensors_metadata(file, ATT_TENSORS_ATTRIBUTES),
                            other ? "{\"num_heads\":6,\"norm_eps\":0.25,\"global_pool\":\"avg\"}"
                                  : "{\"num_heads\":6,\"act_layer\":\"gelu_tanh\",\"norm_eps\":0.25,"
                                    "\"global_pool\":\"avg\"}");
        assert_string_equal(att_tensors_metadata(file, "config"),
                            "{\"pretrained_cfg\":{\"architecture\":\"vit_tiny_patch16_224\"}}");
        att_tensors_close(&file);
    }
}

SCRATCH_TEST(the_architecture_becomes_metadata)
{
    bytes *said = calloc(1, sizeof *said);
    text(said, "resnet18");
    write_checkpoint(self, "arch", said);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 1);
    assert_int_equal(att_tensors_metadata_count(file), 1);
    assert_string_equal(att_tensors_metadata(file, ATT_TENSORS_ARCHITECTURE), "resnet18");
    assert_string_equal(att_tensors_origin(file), "PyTorch's state_dict; left out: epoch");
    att_tensors_close(&file);
    said->size = 0;
    integer(said, 18);
    write_checkpoint(self, "arch", said);
    file = open_path(self, self->path);
    assert_null(att_tensors_metadata(file, ATT_TENSORS_ARCHITECTURE));
    att_tensors_close(&file);
    static const char *const damaged[] = {"resnet\xff", "resnet\xc3"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        said->size = 0;
        text(said, damaged[i]);
        write_checkpoint(self, "arch", said);
        refused(self, ATT_ERR_FORMAT, "arch, the name of the architecture, is not valid UTF-8");
    }
    free(said);
}

/* The architecture name, options and arguments of the network, at every place where a script stores them. */
SCRATCH_TEST(every_description_becomes_metadata)
{
    static const char *const names[] = {"arch", "architecture", "model_name", "timm_model"};
    bytes *said = calloc(1, sizeof *said);
    text(said, "resnet18");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_checkpoint(self, names[i], said);
        att_tensors *file = open_path(self, self->path);
        assert_string_equal(att_tensors_metadata(file, names[i]), "resnet18");
        att_tensors_close(&file);
    }
    static const struct {
        const char *key, *opcodes, *expected; /* opcodes: {"arch": "r", "k": 7} unless given */
    } all[] = {{"hyper_parameters", NULL, "{\"arch\":\"r\"}"},
               {"model_args", NULL, "{\"arch\":\"r\",\"k\":7}"},
               {"model_kwargs", NULL, "{\"arch\":\"r\",\"k\":7}"},
               {"model_args", "]K\1a", "unreadable"},
               {"model_args", "}K\1K\2s", "unreadable"},
               {"model_args", "}", NULL},
               {"model_args", "N", NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        said->size = 0;
        ops(said, all[i].opcodes ? all[i].opcodes : "}");
        if (!all[i].opcodes) {
            text(said, "arch");
            text(said, "r");
            ops(said, "s");
            text(said, "k");
            integer(said, 7);
            ops(said, "s");
        }
        write_checkpoint(self, all[i].key, said);
        att_tensors *file = open_path(self, self->path);
        const char *found = att_tensors_metadata(file, all[i].key);
        if (all[i].expected)
            assert_string_equal(found, all[i].expected);
        else
            assert_null(found);
        att_tensors_close(&file);
    }
    free(said);
}

/* Checks what becomes of {"meta": {<key>: <value>}}, or with `nested` of {"meta": {"dataset_meta": {<key>: <value>}}}.
 * opcodes: of the value. */
static void assert_meta(scratch *self, bool nested, const char *key, const char *opcodes, const char *as,
                        const char *expected)
{
    bytes *meta = calloc(1, sizeof *meta);
    ops(meta, "}");
    if (nested) {
        text(meta, "dataset_meta");
        ops(meta, "}");
    }
    text(meta, key);
    ops(meta, opcodes);
    ops(meta, nested ? "ss" : "s");
    write_checkpoint(self, "meta", meta);
    att_tensors *file = open_path(self, self->path);
    const char *found = att_tensors_metadata(file, as);
    if (expected)
        assert_string_equal(found, expected);
    else
        assert_null(found);
    att_tensors_close(&file);
    free(meta);
}

/* As OpenMMLab's programs store them. */
SCRATCH_TEST(names_and_colours_of_classes_become_metadata)
{
    static const struct {
        const char *opcodes, *names, *colours;
    } all[] = {{"(\x8c\3sky\x8c\11tall treet", "sky\ntall tree\n", NULL},
               {"(\x8c\3skyl", "sky\n", NULL},
               {"(\x8c\1AK\1t", NULL, NULL},
               {"(\x8c\3a\nbt", NULL, NULL},
               {"(t", NULL, NULL},
               {"}", NULL, NULL},
               {"((K\1K\2K\xfft(K\x10K\x20K\x30ll", NULL, "#0102ff\n#102030\n"},
               {"((K\1K\2tl", NULL, NULL},
               {"((K\1K\2M\1\1tl", NULL, NULL},
               {"((K\1K\2K\3K\4tl", NULL, NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_meta(self, false, "CLASSES", all[i].opcodes, ATT_TENSORS_CLASSES, all[i].names);
        assert_meta(self, true, "classes", all[i].opcodes, ATT_TENSORS_CLASSES, all[i].names);
        assert_meta(self, true, "CLASSES", all[i].opcodes, ATT_TENSORS_CLASSES, all[i].names);
        assert_meta(self, false, "PALETTE", all[i].opcodes, ATT_TENSORS_COLOURS, all[i].colours);
        assert_meta(self, true, "palette", all[i].opcodes, ATT_TENSORS_COLOURS, all[i].colours);
    }
}

SCRATCH_TEST(the_configuration_becomes_metadata)
{
    assert_meta(self, false, "config", "\x8c\7a = [1]", ATT_TENSORS_CONFIGURATION, "a = [1]");
    assert_meta(self, false, "cfg", "\x8c\3\n\"\t", ATT_TENSORS_CONFIGURATION, "\n\"\t");
    assert_meta(self, false, "cfg", "}", ATT_TENSORS_CONFIGURATION, NULL);
    assert_meta(self, true, "cfg", "\x8c\3a=1", ATT_TENSORS_CONFIGURATION, NULL);
}

/* Writes a checkpoint whose "args" are {"model": "m", "model_kwargs": <the object>}. */
static void write_arguments(scratch *self, const bytes *arguments)
{
    bytes *args = calloc(1, sizeof *args);
    ops(args, "}");
    text(args, "model");
    text(args, "m");
    ops(args, "s");
    text(args, "model_kwargs");
    put(args, arguments->data, arguments->size);
    ops(args, "s");
    write_checkpoint(self, "args", args);
    free(args);
}

static void assert_arguments(scratch *self, const bytes *arguments, const char *json)
{
    char expected[256];
    snprintf(expected, sizeof expected, "{\"model\":\"m\"%s}", json);
    write_arguments(self, arguments);
    att_tensors *file = open_path(self, self->path);
    assert_string_equal(att_tensors_metadata(file, ATT_TENSORS_OPTIONS), expected);
    att_tensors_close(&file);
}

/* Values that cannot be represented are marked instead of left out. */
SCRATCH_TEST(training_arguments_become_metadata)
{
    static const char key[] = "}X\1\0\0\0k";
    static const struct {
        const char *opcodes, *json;
        bool is_value; /* of the key "k" */
    } all[] = {
        {"N", "", false},
        {"}", "", false},
        {"]", "", false},
        {"]K\1a", ",\"model_kwargs\":{\"unreadable\":true}", false},
        {"}K\1K\2s", ",\"model_kwargs\":{\"unreadable\":true}", false},
        {"N", ",\"model_kwargs.k\":null", true},
        {"}", ",\"model_kwargs.k\":null", true},
        {"\x88", ",\"model_kwargs.k\":true", true},
        {"}K\1K\2s", ",\"model_kwargs.k\":{\"unreadable\":true}", true},
        {"(K\1Nt", ",\"model_kwargs.k\":[1,null]", true},
        {"ctorch.nn.modules.activation\nReLU\n", ",\"model_kwargs.k\":{\"unreadable\":true}", true},
    };
    bytes *arguments = calloc(1, sizeof *arguments);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        arguments->size = 0;
        if (all[i].is_value)
            put(arguments, key, sizeof key - 1);
        ops(arguments, all[i].opcodes);
        if (all[i].is_value)
            ops(arguments, "s");
        assert_arguments(self, arguments, all[i].json);
    }
    for (int length = 127; length <= 128; length++) { /* the longest allowed text, and one that is too long */
        char value[129] = "", json[192];
        memset(value, 'v', (size_t)length);
        arguments->size = 0;
        put(arguments, key, sizeof key - 1);
        text(arguments, value);
        ops(arguments, "s");
        snprintf(json, sizeof json, ",\"model_kwargs.k\":\"%s\"", value);
        assert_arguments(self, arguments, length == 127 ? json : ",\"model_kwargs.k\":{\"unreadable\":true}");
    }
    free(arguments);
}

SCRATCH_TEST(tensors_outside_their_storage_are_refused)
{
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
        {{"FloatStorage", "0", 4, 0, {2}, {-1}, 1, 1}, ATT_ERR_FORMAT, "not tuples of equal length of numbers >= 0"},
        {{"FloatStorage", "0", 4, 0, {-2}, {1}, 1, 1}, ATT_ERR_FORMAT, "not tuples of equal length of numbers >= 0"},
        {{"FloatStorage", "0", 4, 0, {2, 2}, {2}, 2, 1}, ATT_ERR_FORMAT, "not tuples of equal length of numbers >= 0"},
        {{"FloatStorage", "0", 4, 0, {huge, huge}, {0, 0}, 2, 2}, ATT_ERR_FORMAT, "more elements than can be counted"},
        {{"FloatStorage", "0", 4, 0, {1LL << 40}, {0}, 1, 1}, ATT_ERR_FORMAT, "the file is too small"},
        {{"FloatStorage", "0", 4, 0, {1, 1, 1, 1, 1, 1}, {0}, 6, 6}, ATT_ERR_UNSUPPORTED, "more than 5 dimensions"},
        {{"FloatStorage", "0", 5, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "has another size than its tensors require"},
        {{"FloatStorage", "0", 3, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "another number of elements"},
        {{"FloatStorage", "0", huge, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "has another size than its tensors require"},
        {{"FloatStorage", "0", -4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "a storage that is not"},
        {{"FloatStorage", "1", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "storage \"0\" belongs to no tensor"},
        {{"QInt8Storage", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "storage \"0\" belongs to no tensor"},
        {{"NoStorage", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_UNSUPPORTED, "the file uses torch.NoStorage"},
        {{"Size", "0", 4, 0, {2}, {1}, 1, 1}, ATT_ERR_FORMAT, "a storage of an unknown type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_state(self, &cases[i].tensor);
        refused(self, cases[i].status, cases[i].reason);
    }
}

/* The stride of a dimension with one element leaves the storage, but is never used. */
SCRATCH_TEST(strides_of_single_elements_are_ignored)
{
    write_state(self, &(described){"FloatStorage", "0", 4, 0, {1, 4}, {INT64_MAX, 1}, 2, 2});
    assert_four(self, att_shape_of(1, 4));
}

SCRATCH_TEST(missing_repeated_and_unused_storages_are_refused)
{
    bytes *object = calloc(1, sizeof *object);
    put_state(object, &plain);
    const stored twice[] = {plain_storage, plain_storage}, other = {"x", four, sizeof four, 4};
    write_old(self, object, twice, 2);
    refused(self, ATT_ERR_FORMAT, "storage \"0\" occurs twice");
    write_old(self, object, twice, 0);
    refused(self, ATT_ERR_FORMAT, "storage \"0\" is missing");
    write_old(self, object, &other, 1);
    refused(self, ATT_ERR_FORMAT, "storage \"x\" belongs to no tensor");
    /* One storage that two tensors describe differently. */
    const described wider = {"FloatStorage", "0", 2, 0, {2}, {1}, 1, 1};
    text(object, "v");
    tensor(object, &wider);
    ops(object, "s");
    write_old(self, object, &plain_storage, 1);
    refused(self, ATT_ERR_FORMAT, "another number of elements");
    free(object);
}

/* --- archives ----------------------------------------------------------------------------------------------------- */

typedef struct zip_case {
    zipped files[4];
    int count;
    att_status status;
    const char *reason;
} zip_case;

SCRATCH_TEST(only_whole_uncompressed_archives_are_read)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "\x80\x02");
    put_state(object, &plain);
    ops(object, ".");
    const zipped data = {"a/data.pkl", object->data, object->size, 0, 0, 0, 0, 0};
    const zipped numbers = {"a/data/0", four, sizeof four, 0, 0, 0, 0, 0};
    zipped packed = numbers, locked = numbers, short_one = numbers, long_one = numbers, far = numbers, over = numbers;
    packed.method = 8, locked.flags = 1, short_one.size_off = -4, long_one.size_off = 1;
    far.place_off = 1 << 20, over.place_off = -(int64_t)(30 + strlen("a/data.pkl") + object->size);
    zipped big_data = data, longer = data;
    big_data.method = 8, longer.size_off = 1;
    const zipped packed_order = {"a/byteorder", "?", 1, 8, 0, 0, 0, 0};
    zipped bad = numbers, bad_data = data, unsaid = numbers;
    bad.crc_off = bad_data.crc_off = 1;
    unsaid.crc_off = -checksum((const uint8_t *)four, sizeof four);
    const zip_case cases[] = {
        {{data, numbers}, 2, ATT_OK, ""},
        {{data, numbers, {"a/byteorder", "little", 6, 0, 0, 0, 0, 0}}, 3, ATT_OK, ""},
        {{data, numbers, {"a/byteorder", "big", 3, 0, 0, 0, 0, 0}}, 3, ATT_ERR_UNSUPPORTED, "not little-endian"},
        {{data, numbers, {"a/byteorder", "littler", 7, 0, 0, 0, 0, 0}}, 3, ATT_ERR_UNSUPPORTED, "not little-endian"},
        {{data, numbers, {"a/constants.pkl", "", 0, 0, 0, 0, 0, 0}}, 3, ATT_OK, ""},
        {{data, numbers, {"a/traced_inputs.pkl", "", 0, 0, 0, 0, 0, 0}}, 3, ATT_OK, ""},
        {{{"a/archive_format", "pt2", 3, 0, 0, 0, 0, 0}, {"a/data/w.pt", "", 0, 0, 0, 0, 0, 0}},
         2,
         ATT_ERR_FORMAT,
         "seems to be a program of torch.export"},
        {{{"weights/net.pth", "", 0, 0, 0, 0, 0, 0}}, 1, ATT_ERR_FORMAT, "an archive of other files; unpack it"},
        {{data}, 1, ATT_ERR_FORMAT, "a storage that is missing"},
        {{numbers}, 1, ATT_ERR_FORMAT, "it has no data.pkl"},
        {{{"config.json", "{}", 2, 0, 0, 0, 0, 0}, {"model.weights.h5", "", 0, 0, 0, 0, 0, 0}},
         2,
         ATT_ERR_FORMAT,
         "seems to be Keras' archive"},
        {{{"a/x.npy", "", 0, 0, 0, 0, 0, 0}, {"b/y.npy", "", 0, 0, 0, 0, 0, 0}},
         2,
         ATT_ERR_FORMAT,
         "no array of NumPy"},
        {{{"", "", 0, 0, 0, 0, 0, 0}}, 1, ATT_ERR_FORMAT, "it has no data.pkl"}, /* a local header and no more */
        {{{"a/x", "", 0, 0, 0, 0, 0, 0}, {"b/data.pkl", "N.", 2, 0, 0, 0, 0, 0}},
         2,
         ATT_ERR_FORMAT,
         "two folders in it, a/ and b/data.pkl; expected one"},
        {{data, numbers, {"b/data/0", "", 0, 0, 0, 0, 0, 0}}, 3, ATT_ERR_FORMAT, "two folders in it, a/ and b/data/0"},
        {{data, numbers, {"b.pkl", "N.", 2, 0, 0, 0, 0, 0}}, 3, ATT_ERR_FORMAT, "two folders in it, a/ and b.pkl"},
        {{data, numbers, {"a/other.pkl", "N.", 2, 0, 0, 0, 0, 0}},
         3,
         ATT_ERR_FORMAT,
         "two pickles in it, a/data.pkl and a/other.pkl; expected one"},
        {{data, bad}, 2, ATT_ERR_FORMAT, "a/data/0 in it has a wrong checksum (CRC-32)"},
        {{bad_data, numbers}, 2, ATT_ERR_FORMAT, "a/data.pkl in it has a wrong checksum"},
        {{data, unsaid}, 2, ATT_OK, ""},
        {{{"a/x", "", 0, 0, 0, 0, 0, 0}}, 0, ATT_ERR_FORMAT, "a zip archive without files"},
        {{data, packed}, 2, ATT_ERR_UNSUPPORTED, "a/data/0 in it is compressed"},
        {{big_data, numbers}, 2, ATT_ERR_UNSUPPORTED, "a/data.pkl in it is compressed"},
        {{big_data, packed, packed_order},
         3,
         ATT_ERR_UNSUPPORTED,
         "a/data.pkl in it is compressed or encrypted; expected"},
        {{data, numbers, packed_order}, 3, ATT_ERR_UNSUPPORTED, "a/byteorder in it is compressed"},
        {{data, locked}, 2, ATT_ERR_UNSUPPORTED, "encrypted"},
        {{data, numbers, numbers}, 3, ATT_ERR_FORMAT, "occurs twice"},
        {{data, short_one}, 2, ATT_ERR_FORMAT, "a/data/0 in it has 12 bytes, its tensors need 16"},
        {{data, long_one}, 2, ATT_ERR_FORMAT, "extends beyond the archive"},
        {{data, far}, 2, ATT_ERR_FORMAT, "has no local header at the offset given in the directory"},
        {{data, over}, 2, ATT_ERR_FORMAT, "overlaps another file"},
        {{longer, numbers}, 2, ATT_ERR_FORMAT, "overlaps another file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_zip(self, cases[i].files, cases[i].count);
        if (cases[i].status != ATT_OK)
            refused(self, cases[i].status, cases[i].reason);
        else
            assert_four(self, att_shape_of(2, 2));
    }
    free(object);
}

/* The local header of the last file places its bytes after the directory. */
SCRATCH_TEST(bytes_behind_the_directory_are_refused)
{
    static const uint8_t extra[] = {1, 2, 3, 255}; /* the length of its extra field */
    const zipped only = {"a/data.pkl", "N.", 2, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof extra; i++) {
        bytes *file = calloc(1, sizeof *file);
        zip_file(file, &only, 1);
        file->data[28] = extra[i];
        scratch_write(self, file->data, file->size);
        refused(self, ATT_ERR_FORMAT, "a/data.pkl in it extends beyond the archive");
        free(file);
    }
}

/* Writes a checkpoint whose folder and storage have names of these lengths; the folder's includes its slash. */
static void write_long_names(scratch *self, size_t folder, size_t key)
{
    enum { MOST = 4096 };
    char data_name[MOST] = "", numbers_name[MOST] = "", key_name[8] = "";
    bytes *object = calloc(1, sizeof *object);
    memset(key_name, 'k', key);
    memset(data_name, 'f', folder - 1);
    snprintf(numbers_name, sizeof numbers_name, "%.4000s/data/%s", data_name, key_name);
    strcat(data_name, "/data.pkl");
    described tensor = plain;
    tensor.key = key_name;
    ops(object, "\x80\x02");
    put_state(object, &tensor);
    ops(object, ".");
    const zipped files[] = {{data_name, object->data, object->size, 0, 0, 0, 0, 0},
                            {numbers_name, four, sizeof four, 0, 0, 0, 0, 0}};
    write_zip(self, files, 2);
    free(object);
}

SCRATCH_TEST(names_of_more_than_300_bytes_are_not_found)
{
    write_long_names(self, 292, 3); /* "<folder>data.pkl" and "<folder>data/kkk" have 300 bytes */
    assert_four(self, att_shape_of(2, 2));
    write_long_names(self, 292, 4);
    refused(self, ATT_ERR_FORMAT, "kkkk in it is a storage that is missing");
    static const size_t folders[] = {293, 300, 301, 4000};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        write_long_names(self, folders[i], 1);
        refused(self, ATT_ERR_FORMAT, "it has no data.pkl");
    }
}

/* Writes a sparse file: `begin`, then `zeros` bytes, then `end`. */
static void write_sparse(scratch *self, const void *begin, size_t begin_size, uint64_t zeros, const void *end,
                         size_t end_size)
{
    scratch_write(self, begin, begin_size);
    assert_int_equal(truncate(self->path, (off_t)(begin_size + zeros)), 0);
    FILE *file = fopen(self->path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(end, 1, end_size, file), end_size);
    assert_int_equal(fclose(file), 0);
}

/* Writes a sparse file of `size` zeros that the archive declares as its directory, with one file. */
static void write_directory_of(scratch *self, uint32_t size)
{
    static const uint8_t begin[] = "PK\3\4";
    bytes *end = calloc(1, sizeof *end);
    put(end, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put_number(end, size, 4);
    put_number(end, sizeof begin, 4);
    put_number(end, 0, 2);
    write_sparse(self, begin, sizeof begin, size, end->data, end->size);
    free(end);
}

SCRATCH_TEST(a_directory_of_more_than_64_mib_is_refused)
{
    enum { MOST = 1 << 26 };
    write_directory_of(self, MOST);
    refused(self, ATT_ERR_FORMAT, "a zip archive whose directory is damaged");
    write_directory_of(self, MOST + 1);
    refused(self, ATT_ERR_FORMAT, "a zip archive whose directory has more than 67108864 bytes");
}

/* Writes an archive whose pickle is `size` zeros, without a checksum, and opens it with so many allocations. */
static att_status open_pickle_of(scratch *self, uint32_t size, long allocations)
{
    static const zipped empty = {"a/data.pkl", "", 0, 0, 0, 0, 0, 0};
    zipped only = empty;
    only.size_off = size;
    bytes *file = calloc(1, sizeof *file), *place = calloc(1, sizeof *place);
    zip_file(file, &only, 1);
    const size_t local = 30 + strlen(only.name);
    put_number(place, local + size, 4);
    memcpy(file->data + file->size - 6, place->data, 4); /* the offset of the directory */
    write_sparse(self, file->data, local, size, file->data + local, file->size - local);
    free(file);
    free(place);
    self->memory.left = allocations;
    att_tensors *opened = NULL;
    att_status status = att_tensors_open(self->context, self->path, &opened);
    self->memory.left = -1;
    assert_null(opened);
    return status;
}

/* Refused before memory for the pickle is allocated, unlike one of 1 GiB. */
SCRATCH_TEST(a_pickle_of_more_than_1_gib_is_refused)
{
    enum { MOST = 1 << 30 };
    long allocations = 0;
    while (open_pickle_of(self, MOST + 1, allocations) == ATT_ERR_MEMORY)
        allocations++;
    assert_message_has(self, "its pickle has more than 1073741824 bytes");
    assert_int_equal(open_pickle_of(self, MOST, allocations), ATT_ERR_MEMORY);
}

/* --- files that are not checkpoints ------------------------------------------------------------------------------- */

/* Writes a file beside the scratch file, whose name ends in `ending`, and expects that it is refused. */
static void refuse_other(scratch *self, const char *ending, const char *text, size_t size, const char *is)
{
    char path[4096];
    att_tensors *file = NULL;
    snprintf(path, sizeof path, "%s%s", self->path, ending);
    FILE *out = fopen(path, "w");
    assert_true(out && fwrite(text, 1, size, out) == size && fclose(out) == 0);
    assert_fails(self->context, att_tensors_open(self->context, path, &file), ATT_ERR_FORMAT, is);
    unlink(path);
}

#define OTHER(ending, text, is) refuse_other(self, ending, text, sizeof text - 1, is)

SCRATCH_TEST(files_that_are_no_checkpoints_are_refused)
{
    scratch_write(self, "", 0);
    refused(self, ATT_ERR_FORMAT, "an empty file; expected weights, as safetensors or as torch.save() writes them");
    OTHER(".pth", "\1\2\3\4\5\6\7\1 noise",
          "not a PyTorch checkpoint: expected a zip archive or a pickle, as torch.save() writes them");
    static const char *const endings[] = {"", ".pth", ".safetensors"};
    char tar[512] = "net.pth";
    memcpy(tar + 257, "ustar", 5);
    for (int i = 0; i < 3; i++) {
        OTHER(endings[i], "<!DOCTYPE html><html>", "seems to be an HTML page; download the file itself");
        OTHER(endings[i], "<HTML>not found</HTML>", "seems to be an HTML page");
        OTHER(endings[i], "\n\n  <html lang=\"en\">", "seems to be an HTML page");
        OTHER(endings[i], "\x82\xa6params\x82\xa9", "seems to be MessagePack");
        OTHER(endings[i], "\x89HDF\r\n\x1a\n0123456789", "seems to be HDF5, as Keras writes");
        OTHER(endings[i], "GGUF\3\0\0\0\0\0\0\0", "seems to be GGUF, as llama.cpp reads");
        OTHER(endings[i], "\x1c\0\0\0TFL3\0\0\0\0", "seems to be TensorFlow Lite");
        OTHER(endings[i], "\x93NUMPY\1\0v\0{'descr'", "seems to be an array of NumPy");
        OTHER(endings[i], "\x1f\x8b\x08\0\0\0\0\1\0\3", "seems to be a gzip archive; unpack it");
        OTHER(endings[i], tar, "seems to be a tar archive; unpack it");
        OTHER(endings[i], "\x08\x08\x12\x07pytorch\x1a", "seems to be ONNX; open the PyTorch checkpoint");
        OTHER(endings[i], "\x08\x07\x3a\xff\xff\xff\x7f\x0a", "seems to be ONNX");
    }
    OTHER(".onnx", "\x0a\x08\x12\x07pytorch\x1a", "seems to be ONNX");
    OTHER(".pb", "\x08\x01\x12\xee\x0a\x02\x08\x01", "seems to be a graph of TensorFlow");
    OTHER(".MsgPack", "\x82\xa6params\x81\xa5", "seems to be MessagePack, as Flax writes");
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

/* Copies a golden file to self->path and returns its size. */
static size_t copy_golden(scratch *self, const char *name)
{
    size_t size;
    uint8_t *data = read_golden(name, &size);
    scratch_write(self, data, size);
    free(data);
    return size;
}

/* Every byte is needed: the old format ends with its last storage, a zip with its directory. */
SCRATCH_TEST(a_truncated_checkpoint_is_refused)
{
    for (int i = 0; i < 2; i++) {
        size_t left = copy_golden(self, golden_names[i]);
        while (left > 0) {
            left = (left - 1) / 7 * 7;
            assert_int_equal(truncate(self->path, (off_t)left), 0);
            att_tensors *file = NULL;
            assert_fails(self->context, att_tensors_open(self->context, self->path, &file), ATT_ERR_FORMAT, self->path);
        }
    }
}

static void assert_readable(att_tensors *file)
{
    static double out[1 << 17];
    for (int t = 0; t < att_tensors_count(file); t++) {
        att_tensors_info info = att_tensors_at(file, t);
        if (info.count <= (int64_t)(sizeof out / sizeof *out))
            assert_int_equal(att_tensors_read(file, t, info.dtype, out, info.count), ATT_OK);
    }
}

/* With any one byte changed, what is accepted can be read completely. */
SCRATCH_TEST(changed_bytes_are_refused_or_read_to_the_end)
{
    for (int i = 0; i < 2; i++) {
        size_t size;
        uint8_t *data = read_golden(golden_names[i], &size);
        scratch_write(self, data, size);
        for (size_t at = 0; at < size; at += 3) {
            scratch_exchange_byte(self, at, data[at] ^ 1 << at % 8);
            att_tensors *file = NULL;
            if (att_tensors_open(self->context, self->path, &file) == ATT_OK)
                assert_readable(file);
            att_tensors_close(&file);
            scratch_exchange_byte(self, at, data[at]);
        }
        free(data);
    }
}

/* Another process shortens the file between opening and reading. */
SCRATCH_TEST(a_file_shortened_while_it_is_open_is_reported)
{
    for (int i = 0; i < 2; i++) {
        copy_golden(self, golden_names[i]);
        att_tensors *file = open_path(self, self->path);
        assert_int_equal(truncate(self->path, 0), 0);
        for (int t = 0; t < att_tensors_count(file); t++) {
            uint8_t out[4096];
            att_tensors_info info = att_tensors_at(file, t);
            assert_fails(self->context, att_tensors_read(file, t, info.dtype, out, info.count), ATT_ERR_IO,
                         "has changed since it was opened");
        }
        att_tensors_close(&file);
    }
}

/* Pickles longer than the part of a file that is read first. */
SCRATCH_TEST(long_pickles_are_read_whole)
{
    enum { LENGTH = 3 << 20 };
    static const char head[] =
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02}"
        "X\4\0\0\0noteX\0\0\x30\0";
    bytes *rest = calloc(1, sizeof *rest);
    uint8_t *all = calloc(1, LENGTH + sizeof *rest);
    assert_true(rest && all);
    ops(rest, "s");
    text(rest, "w");
    tensor(rest, &plain);
    ops(rest, "s.\x80\x02](");
    text(rest, "0");
    ops(rest, "e.");
    put_number(rest, 4, 8);
    put(rest, four, sizeof four);
    memcpy(all, head, sizeof head - 1);
    memset(all + sizeof head - 1, 'x', LENGTH);
    memcpy(all + sizeof head - 1 + LENGTH, rest->data, rest->size);
    scratch_write(self, all, sizeof head - 1 + LENGTH + rest->size);
    assert_four(self, att_shape_of(2, 2));
    scratch_write(self, all, LENGTH);
    refused(self, ATT_ERR_FORMAT, "truncated");
    free(rest);
    free(all);
}

static att_status open_path_of(scratch *self)
{
    att_tensors *file = NULL;
    att_status status = att_tensors_open(self->context, self->path, &file);
    att_tensors_close(&file);
    return status;
}

SCRATCH_TEST(opening_stops_when_asked)
{
    for (int i = 0; i < 2; i++) {
        copy_golden(self, golden_names[i]);
        assert_true(assert_stops(self, open_path_of) > 3);
    }
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    for (int i = 0; i < 2; i++) {
        copy_golden(self, golden_names[i]);
        assert_survives_lack_of_memory(self, open_path_of);
    }
}
