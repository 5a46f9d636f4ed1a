/* Hostile pickles, and pickles with more than tensors, in files that are otherwise valid. */
#include "base/io/torch_file.h"

/* --- hostile pickles ---------------------------------------------------------------------------------------------- */

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

SCRATCH_TEST(hostile_pickles_are_refused)
{
    static const hostile cases[] = {
        HOSTILE("cos\nsystem\n(X\x02\0\0\0lstR", ATT_ERR_UNSUPPORTED, "the file uses os.system"),
        HOSTILE("cposix\nsystem\n(X\x02\0\0\0lstR", ATT_ERR_UNSUPPORTED, "never runs code from a file"),
        HOSTILE("cbuiltins\neval\n(X\x01\0\0\0 tR", ATT_ERR_UNSUPPORTED, "builtins.eval"),
        HOSTILE("c__builtin__\nexec\n.", ATT_ERR_UNSUPPORTED, "__builtin__.exec"),
        HOSTILE("cbuiltins\ngetattr\n", ATT_ERR_UNSUPPORTED, "builtins.getattr"),
        HOSTILE("\x8c\x02os\x8c\x06system\x93", ATT_ERR_UNSUPPORTED, "os.system"),
        HOSTILE("}\x8c\x06system\x93", ATT_ERR_FORMAT, "a name that is not a text"),
        HOSTILE("cos\x1b[2J\nsystem\n", ATT_ERR_UNSUPPORTED, "os?[2J.system"),
        HOSTILE("ctorch.storage\n_load_from_bytes\n", ATT_ERR_UNSUPPORTED, "_load_from_bytes"),
        HOSTILE("(ios\nsystem\n", ATT_ERR_FORMAT, "opcode 0x69"),
        HOSTILE("\x82\x01", ATT_ERR_FORMAT, "opcode 0x82"),
        HOSTILE("P1\n", ATT_ERR_FORMAT, "opcode 0x50"),
        HOSTILE("\xff", ATT_ERR_FORMAT, "opcode 0xff"),
        HOSTILE("(X\x06\0\0\0moduleNNNtQ", ATT_ERR_FORMAT, "a storage that is not"),
        HOSTILE("X\x01\0\0\0aQ", ATT_ERR_FORMAT, "arguments are not a tuple"),
        HOSTILE("))R", ATT_ERR_FORMAT, "a call of a value that is not a function"),
        HOSTILE("ctorch\nfloat32\n)R", ATT_ERR_FORMAT, "a call of a value that is not a function"),
        HOSTILE("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)NtR", ATT_ERR_FORMAT,
                "a call of a value that is not a function"),
        HOSTILE("ctorch._utils\n_rebuild_tensor_v2\n)R", ATT_ERR_FORMAT, "a tensor that is not"),
        HOSTILE("ctorch._utils\n_rebuild_parameter\n)R", ATT_ERR_FORMAT, "a parameter without a tensor"),
        HOSTILE("ctorch\nSize\n(K\1tR", ATT_ERR_FORMAT, "a size that is not a tuple"),
        HOSTILE("ccollections\nOrderedDict\n](K\1e\x85R", ATT_ERR_FORMAT, "not made from pairs"),
        HOSTILE("X\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("\x8b\xff\xff\xff\xff", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("}r\xff\xff\xff\xff", ATT_ERR_FORMAT, "a memo index is beyond the length"),
        HOSTILE("j\0\0\0\1", ATT_ERR_FORMAT, "a memo entry that is not set"),
        HOSTILE("h\0", ATT_ERR_FORMAT, "a memo entry that is not set"),
        HOSTILE("Nq\1h\2", ATT_ERR_FORMAT, "a memo entry that is not set"),
        HOSTILE("Nq\1h\0", ATT_ERR_FORMAT, "a memo entry that is not set"),
        /* One value less than the opcode needs; values below a mark do not count. */
        HOSTILE("q\0", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("2", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("N(2", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("\x85", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("N\x86", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("NN\x87", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("](Na", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("}(NNs", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("N\x93", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE(")R", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("))\x92", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("Nb", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("Q", ATT_ERR_FORMAT, "more values than are on the stack"),
        HOSTILE("0", ATT_ERR_FORMAT, "needs a mark, but there is none"),
        HOSTILE("u", ATT_ERR_FORMAT, "needs a mark, but there is none"),
        HOSTILE("(u", ATT_ERR_FORMAT, "there is no container"),
        HOSTILE("K\1(NNu", ATT_ERR_FORMAT, "a value that is not a container"),
        HOSTILE("}(Nu", ATT_ERR_FORMAT, "a key without a value"),
        HOSTILE("]((K\1e", ATT_ERR_FORMAT, "there is no container"),
        HOSTILE("K\1Nb", ATT_ERR_FORMAT, "the state of a value that has none"),
        HOSTILE("NN", ATT_ERR_FORMAT, "expected exactly one value"),
        HOSTILE("(N", ATT_ERR_FORMAT, "expected exactly one value"),
        HOSTILE("", ATT_ERR_FORMAT, "expected exactly one value"),
        HOSTILE("\x80\x06", ATT_ERR_FORMAT, "protocol above 5"),
        HOSTILE("N", ATT_ERR_FORMAT, "a PyTorch file without tensors"),
        /* A list that contains itself. */
        HOSTILE("]q\0h\0a", ATT_ERR_FORMAT, "contain themselves"),
        HOSTILE("}q\0X\1\0\0\0ah\0s", ATT_ERR_FORMAT, "contain themselves"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes *object = calloc(1, sizeof *object);
        put(object, cases[i].bytes, cases[i].size);
        write_old(self, object, NULL, 0);
        refused(self, cases[i].status, cases[i].reason);
        free(object);
    }
}

/* Writes an archive, whose pickle ends with data.pkl. `object` is the pickle without PROTO. */
static void write_archive(scratch *self, const bytes *object)
{
    bytes *pickle = calloc(1, sizeof *pickle);
    ops(pickle, "\x80\x02");
    put(pickle, object->data, object->size);
    const zipped files[] = {{"a/data.pkl", pickle->data, pickle->size, 0, 0, 0, 0, 0},
                            {"a/data/0", four, sizeof four, 0, 0, 0, 0, 0}};
    write_zip(self, files, 2);
    free(pickle);
}

/* Each would be whole with one byte more. */
SCRATCH_TEST(a_pickle_that_lacks_a_byte_is_refused)
{
    static const hostile cases[] = {
        HOSTILE("N", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("K", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("M\1", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("U\2.", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("X\2\0\0\0.", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("\x8a\2.", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("G\0\0\0\0\0\0.", ATT_ERR_FORMAT, "truncated"),
        HOSTILE("ctorch\nSize", ATT_ERR_FORMAT, "truncated"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes *object = calloc(1, sizeof *object);
        put(object, cases[i].bytes, cases[i].size);
        write_archive(self, object);
        refused(self, cases[i].status, cases[i].reason);
        free(object);
    }
}

/* No entry's number exceeds the length of the pickle. */
SCRATCH_TEST(memo_entries_are_limited_by_the_length)
{
    for (size_t beyond = 0; beyond < 2; beyond++) {
        bytes *object = calloc(1, sizeof *object);
        put_state(object, &plain);
        ops(object, "r");
        put_number(object, 2 + object->size + 4 + 1 + beyond, 4); /* PROTO, this number, STOP */
        ops(object, ".");
        write_archive(self, object);
        if (beyond) {
            refused(self, ATT_ERR_FORMAT, "a memo index is beyond the length");
        } else {
            att_tensors *file = open_path(self, self->path);
            assert_f32(file, "w", att_shape_of(2, 2), (const double[]){1, 2, 3, 4});
            att_tensors_close(&file);
        }
        free(object);
    }
}

SCRATCH_TEST(more_than_16777216_values_are_refused)
{
    enum { MOST = 1 << 24 };
    static const char head[] =
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02";
    char *all = malloc(sizeof head + MOST + 1);
    assert_non_null(all);
    memset(all, '(', sizeof head + MOST + 1);
    memcpy(all, head, sizeof head - 1);
    scratch_write(self, all, sizeof head - 1 + MOST + 1);
    refused(self, ATT_ERR_UNSUPPORTED, "its pickle has more than 16777216 values");
    all[sizeof head - 1 + MOST] = '.';
    scratch_write(self, all, sizeof head - 1 + MOST + 1);
    refused(self, ATT_ERR_FORMAT, "expected exactly one value");
    free(all);
}

SCRATCH_TEST(names_in_messages_are_short_and_printable)
{
    static const struct {
        const char *name;
        int length;
        const char *shown;
    } cases[] = {
        {"\x1f ~\x7f", 4, "the file uses os.? ~?;"},
        {NULL, 80, "aaa;"},
        {NULL, 81, "aaa...;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[82] = "";
        bytes *object = calloc(1, sizeof *object);
        memset(name, 'a', (size_t)cases[i].length);
        global(object, "os", cases[i].name ? cases[i].name : name);
        write_old(self, object, NULL, 0);
        refused(self, ATT_ERR_UNSUPPORTED, cases[i].shown);
        name[80] = '\0';
        if (!cases[i].name)
            assert_message_has(self, name);
        free(object);
    }
}

/* Returns the number of elements of tensor `name`, -1 if there is none. */
static int64_t count_of(const att_tensors *file, const char *name)
{
    int index = att_tensors_find(file, name);
    return index < 0 ? -1 : att_tensors_at(file, index).count;
}

static void pair(bytes *object, const char *key, int64_t count)
{
    described vector = {"FloatStorage", "0", 4, 0, {count}, {1}, 1, 1};
    text(object, key);
    tensor(object, &vector);
}

/* If a key is set again, Python keeps the last value at the place of the first, for every opcode that sets keys. */
SCRATCH_TEST(the_last_value_of_a_repeated_key_counts)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    text(object, "state_dict");
    ops(object, "}");
    pair(object, "hidden", 1);
    ops(object, "s");
    text(object, "state_dict");
    ops(object, "}(");
    pair(object, "b", 1); /* SETITEMS */
    pair(object, "a", 1);
    pair(object, "a", 2);
    ops(object, "u");
    pair(object, "c", 1); /* SETITEM */
    ops(object, "s");
    pair(object, "c", 3);
    ops(object, "s");
    pair(object, "b", 4);
    ops(object, "s");
    text(object, "d"); /* OrderedDict of pairs */
    global(object, "collections", "OrderedDict");
    ops(object, "](");
    pair(object, "x", 1);
    ops(object, "\x86");
    pair(object, "x", 2);
    ops(object, "\x86");
    ops(object, "e\x85Rs");
    text(object, "e"); /* True is 1; DICT */
    ops(object, "(K\1");
    tensor(object, &plain);
    ops(object, "\x88");
    tensor(object, &(described){"FloatStorage", "0", 4, 0, {3}, {1}, 1, 1});
    ops(object, "dsu");
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 5);
    assert_int_equal(count_of(file, "a"), 2);
    assert_int_equal(count_of(file, "b"), 4);
    assert_int_equal(count_of(file, "c"), 3);
    assert_int_equal(count_of(file, "d.x"), 2);
    assert_int_equal(count_of(file, "e.1"), 3);
    assert_string_equal(att_tensors_at(file, 0).name, "b");
    assert_string_equal(att_tensors_at(file, 1).name, "a");
    att_tensors_close(&file);
    /* A key of bytes is not text, so these are two keys, and two tensors with one name. */
    object->size = 0;
    ops(object, "}(");
    pair(object, "a", 1);
    ops(object, "C\1a");
    tensor(object, &plain);
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    refused(self, ATT_ERR_FORMAT, "two tensors are called a");
    free(object);
}

/* Opaque objects absorb what is stored in them, including calls and tensors, but not the items of containers. */
SCRATCH_TEST(opaque_objects_are_left_out)
{
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

/* An object of a class that is not in the list, created without arguments. */
static void object_of_unknown(bytes *object)
{
    global(object, "a.b", "_Outer.C");
    ops(object, ")\x81");
}

/* Such objects are ignored beside the weights. */
SCRATCH_TEST(objects_of_unknown_classes_are_left_out)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    text(object, "config");
    object_of_unknown(object);
    ops(object, "}(");
    text(object, "rate");
    ops(object, "K\x01ub"); /* its state */
    text(object, "settings");
    object_of_unknown(object);
    ops(object, "(");
    text(object, "rate");
    ops(object, "K\x01u"); /* items of a subclass of dict */
    text(object, "colour");
    global(object, "a", "Colour");
    ops(object, "(K\x01tR");
    text(object, "loss");
    global(object, "torch.nn.functional", "mse_loss");
    text(object, "scheduler");
    object_of_unknown(object);
    ops(object, "}(");
    text(object, "w");
    tensor(object, &plain); /* not used, because "model" exists */
    ops(object, "ub");
    text(object, "model");
    put_state(object, &plain);
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    att_tensors *file = open_path(self, self->path);
    assert_int_equal(att_tensors_count(file), 1);
    assert_string_equal(att_tensors_origin(file),
                        "PyTorch's model; left out: config, settings, colour, loss, scheduler");
    att_tensors_close(&file);
    free(object);
}

/* {"v": what `make` writes, "w": a tensor} */
static void refuse_beside_weights(scratch *self, void (*make)(bytes *), att_status status, const char *reason)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    text(object, "v");
    make(object);
    text(object, "w");
    tensor(object, &plain);
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    refused(self, status, reason);
    free(object);
}

static void tensor_in_state(bytes *object)
{
    object_of_unknown(object);
    ops(object, "N}(");
    text(object, "w");
    tensor(object, &plain);
    ops(object,
        "u\x86"
        "b");
}

static void tensor_in_items(bytes *object)
{
    object_of_unknown(object);
    text(object, "w");
    tensor(object, &plain);
    ops(object, "s");
}

static void tensor_in_arguments(bytes *object)
{
    global(object, "a", "C");
    ops(object, "(");
    tensor(object, &plain);
    ops(object, "tR");
}

static void storage_in_arguments(bytes *object)
{
    global(object, "a", "C");
    ops(object, "(");
    storage(object, &plain);
    ops(object, "tR");
}

static void tensor_in_partial(bytes *object)
{
    global(object, "functools", "partial");
    ops(object, "(");
    tensor(object, &plain);
    ops(object, "tR");
}

static void unknown_function(bytes *object)
{
    global(object, "torch._utils", "_rebuild_something");
    ops(object, "(");
    storage(object, &plain);
    ops(object, "tR");
}

static void tensor_of_an_object(bytes *object)
{
    global(object, "torch._utils", "_rebuild_tensor_v2");
    ops(object, "(");
    object_of_unknown(object);
    ops(object, "K\x01K\x01\x85K\x01\x85\x89}tR");
}

static void parameter_of_an_object(bytes *object)
{
    global(object, "torch._utils", "_rebuild_parameter");
    ops(object, "(");
    object_of_unknown(object);
    ops(object, "\x89}tR");
}

static void storage_of_unknown_type(bytes *object)
{
    described odd = plain;
    odd.type = "OddStorage";
    tensor(object, &odd);
}

static void class_that_acts(bytes *object)
{
    global(object, "subprocess", "Popen");
}

SCRATCH_TEST(tensors_within_unknown_objects_are_refused)
{
    static const char within[] = "v is an object of the class _Outer.C with tensors in it; attscope runs no code";
    refuse_beside_weights(self, tensor_in_state, ATT_ERR_UNSUPPORTED, within);
    refuse_beside_weights(self, tensor_in_items, ATT_ERR_UNSUPPORTED, within);
    refuse_beside_weights(self, tensor_in_arguments, ATT_ERR_UNSUPPORTED, "of the class C with tensors");
    refuse_beside_weights(self, storage_in_arguments, ATT_ERR_UNSUPPORTED, "of the class C with tensors");
    refuse_beside_weights(self, tensor_in_partial, ATT_ERR_UNSUPPORTED, "of the class partial with tensors");
    refuse_beside_weights(self, unknown_function, ATT_ERR_UNSUPPORTED, "the file uses torch._utils._rebuild_something");
    refuse_beside_weights(self, tensor_of_an_object, ATT_ERR_FORMAT, "a tensor that is not (storage");
    refuse_beside_weights(self, parameter_of_an_object, ATT_ERR_FORMAT, "a parameter without a tensor");
    refuse_beside_weights(self, storage_of_unknown_type, ATT_ERR_UNSUPPORTED, "torch.OddStorage");
    refuse_beside_weights(self, class_that_acts, ATT_ERR_UNSUPPORTED, "the file uses subprocess.Popen");
}

/* Nested a hundred thousand times. Nothing recurses, and only 16 levels are searched. */
SCRATCH_TEST(too_deep_nesting_is_refused)
{
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
    refused(self, ATT_ERR_FORMAT, "expected exactly one value");
    free(object);
}

/* Fourteen dictionaries, each ten times in the next one: 10^14 paths to the innermost. */
SCRATCH_TEST(too_many_shared_values_are_refused)
{
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
    refused(self, ATT_ERR_FORMAT, "have more than 4194304 values");
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

SCRATCH_TEST(names_that_are_empty_or_not_utf8_are_refused)
{
    write_names(self, "", "b");
    refused(self, ATT_ERR_FORMAT, "name is empty");
    write_names(self, "a\xff", "b");
    refused(self, ATT_ERR_FORMAT, "not valid UTF-8");
}

SCRATCH_TEST(common_prefixes_of_names_are_removed)
{
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

/* {"module.model.a": ..., "module.model.b": ..., <other tensors>} */
static void write_strangers(scratch *self, int count, const char *const *strangers, int stranger_count)
{
    bytes *object = calloc(1, sizeof *object);
    ops(object, "}(");
    for (int i = 0; i < count + stranger_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "module.model.%c", 'a' + i);
        text(object, i < count ? name : strangers[i - count]);
        tensor(object, &plain);
    }
    ops(object, "u");
    write_old(self, object, &plain_storage, 1);
    free(object);
}

SCRATCH_TEST(a_few_other_tensors_do_not_hide_the_prefix)
{
    static const struct {
        int count;
        const char *strangers[2];
        int stranger_count;
        const char *first, *last, *origin;
    } cases[] = {
        {3, {"counter"}, 1, "a", "counter", "PyTorch's tensors without the prefix module.model. (1 other tensor)"},
        {6, {"module.x.w", "n"}, 2, "a", "n", "PyTorch's tensors without the prefix module.model. (2 other tensors)"},
        {2, {"counter"}, 1, "module.model.a", "counter", "PyTorch's tensors"}, /* more than a quarter of the tensors */
        {5, {"module.x.w", "n"}, 2, "model.a", "n", "PyTorch's tensors without the prefix module. (1 other tensor)"},
        {4,
         {"a"},
         1,
         "model.a",
         "a",
         "PyTorch's tensors without the prefix module. (1 other tensor)"}, /* two tensors of one name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_strangers(self, cases[i].count, cases[i].strangers, cases[i].stranger_count);
        att_tensors *file = open_path(self, self->path);
        assert_string_equal(att_tensors_origin(file), cases[i].origin);
        assert_true(att_tensors_find(file, cases[i].first) >= 0);
        assert_true(att_tensors_find(file, cases[i].last) >= 0);
        assert_int_equal(att_tensors_count(file), cases[i].count + cases[i].stranger_count);
        att_tensors_close(&file);
    }
}
