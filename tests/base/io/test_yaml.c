#include "base/io/yaml.h"

#include "base/io/scratch.h"

static att_yaml *parse(scratch *self, const char *text)
{
    att_yaml *yaml = NULL;
    att_status status = att_yaml_parse(self->context, "args.yaml", text, strlen(text), &yaml);
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return yaml;
}

static void assert_entry(att_yaml_entry entry, const char *key, att_yaml_kind kind, int line)
{
    assert_string_equal(entry.key, key);
    assert_int_equal(entry.kind, kind);
    assert_int_equal(entry.line, line);
}

SCRATCH_TEST(scalars_lists_and_nulls_are_parsed)
{
    att_yaml *yaml = parse(self,
                           "# timm\n"
                           "aa: null\n"
                           "batch_size: 128\n"
                           "data-dir: '/a: b'\n"
                           "scale:\n"
                           "- 0.08\n"
                           "- 1.0\n"
                           "ratio: [0.75, \"1.33\"]\n"
                           "model_kwargs: {}\n"
                           "experiment: ''\n"
                           "tilde: ~\n"
                           "none:\n"
                           "long: one\n"
                           "  line\n"
                           "quoted: 'null'\n");
    assert_int_equal(att_yaml_count(yaml), 11);
    assert_entry(att_yaml_at(yaml, 0), "aa", ATT_YAML_NULL, 2);
    assert_entry(att_yaml_at(yaml, 1), "batch_size", ATT_YAML_SCALAR, 3);
    assert_string_equal(att_yaml_at(yaml, 1).values[0], "128");
    assert_false(att_yaml_at(yaml, 1).text);
    assert_entry(att_yaml_at(yaml, 2), "data-dir", ATT_YAML_SCALAR, 4);
    assert_string_equal(att_yaml_at(yaml, 2).values[0], "/a: b");
    assert_true(att_yaml_at(yaml, 2).text);
    assert_entry(att_yaml_at(yaml, 3), "scale", ATT_YAML_LIST, 5);
    assert_int_equal(att_yaml_at(yaml, 3).value_count, 2);
    assert_string_equal(att_yaml_at(yaml, 3).values[1], "1.0");
    assert_entry(att_yaml_at(yaml, 4), "ratio", ATT_YAML_LIST, 8);
    assert_string_equal(att_yaml_at(yaml, 4).values[1], "1.33");
    assert_entry(att_yaml_at(yaml, 5), "model_kwargs", ATT_YAML_NULL, 9);
    assert_entry(att_yaml_at(yaml, 6), "experiment", ATT_YAML_SCALAR, 10);
    assert_string_equal(att_yaml_at(yaml, 6).values[0], "");
    assert_entry(att_yaml_at(yaml, 7), "tilde", ATT_YAML_NULL, 11);
    assert_entry(att_yaml_at(yaml, 8), "none", ATT_YAML_NULL, 12);
    assert_entry(att_yaml_at(yaml, 9), "long", ATT_YAML_SCALAR, 13);
    assert_string_equal(att_yaml_at(yaml, 9).values[0], "one line");
    assert_entry(att_yaml_at(yaml, 10), "quoted", ATT_YAML_SCALAR, 15);
    assert_string_equal(att_yaml_at(yaml, 10).values[0], "null");
    att_yaml_destroy(&yaml);
    assert_null(yaml);
}

SCRATCH_TEST(a_byte_order_mark_is_left_out)
{
    att_yaml *yaml = parse(self,
                           "\xEF\xBB\xBF"
                           "epochs: 2\nlr: 0.1\n");
    assert_int_equal(att_yaml_count(yaml), 2);
    assert_entry(att_yaml_at(yaml, 0), "epochs", ATT_YAML_SCALAR, 1);
    assert_entry(att_yaml_at(yaml, 1), "lr", ATT_YAML_SCALAR, 2);
    att_yaml_destroy(&yaml);
}

SCRATCH_TEST(an_empty_document_has_no_entries)
{
    const char *const texts[] = {"", "# nothing\n", "---\n", "---\n...\n", "{}\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        att_yaml *yaml = parse(self, texts[i]);
        assert_int_equal(att_yaml_count(yaml), 0);
        att_yaml_destroy(&yaml);
    }
}

SCRATCH_TEST(unsupported_yaml_is_refused_with_its_line)
{
    const struct {
        const char *text, *reason;
    } cases[] = {
        {"a: 1\nb:\n  c:\n    d: 2\n", "line 4: `key: value` lines nested twice"},
        {"a: 1\nb: {c: {d: 2}}\n", "line 2: `key: value` lines nested twice"},
        {"b: {c: 1, c: 2}\n", "line 1: b.c was given in line 1 already"},
        {"a: [[1]]\n", "line 1: a list may contain only plain values"},
        {"a:\n- b: 1\n", "line 2: a list may contain only plain values"},
        {"a: [1, null]\n", "line 1: an empty value"},
        {"a: &x 1\nb: 2\n", "line 1: anchors"},
        {"a: 1\nb: *x\n", "line 2: aliases"},
        {"a: !!python/object:os.system ls\n", "line 1: tags"},
        {"a: !!str 1\n", "line 1: tags"},
        {"&x {a: 1}\n", "line 1: anchors"},
        {"batch-size: 1\nlr: 2\nbatch_size: 3\n", "line 3: batch_size was given in line 1 already"},
        {"? [a]\n: b\n", "line 1: a key"},
        {"- a\n- b\n", "line 1: expected lines of"},
        {"hello\n", "line 1: expected lines of"},
        {"a: 1\n---\nb: 2\n", "line 2: a second document"},
        {"a: \"x\\0y\"\n", "line 1: a NUL"},
        {"a: 1\n\tb: 2\n", "not valid YAML"},
        {"a: 'open\n", "not valid YAML"},
        {"a: \xFF\n", "not valid YAML"},
        {"a: [1, 2\n", "not valid YAML"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        att_yaml *yaml = NULL;
        const char *text = cases[i].text;
        assert_int_equal(att_yaml_parse(self->context, "args.yaml", text, strlen(text), &yaml), ATT_ERR_FORMAT);
        assert_null(yaml);
        assert_message_has(self, "args.yaml");
        assert_message_has(self, cases[i].reason);
    }
}

SCRATCH_TEST(too_long_texts_and_too_many_keys_are_refused)
{
    const size_t size = (1 << 20) + 1;
    char *text = malloc(size + 1);
    memset(text, '[', size);
    att_yaml *yaml;
    assert_int_equal(att_yaml_parse(self->context, "x", text, size, &yaml), ATT_ERR_FORMAT);
    assert_int_equal(att_yaml_parse(self->context, "x", text, size - 1, &yaml), ATT_ERR_FORMAT);
    scratch_write(self, text, size);
    assert_fails(self->context, att_yaml_read(self->context, self->path, &yaml), ATT_ERR_FORMAT, self->path);
    size_t used = 0;
    for (int i = 0; i < 5000; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d: 1\n", i);
    assert_fails(self->context, att_yaml_parse(self->context, "x", text, used, &yaml), ATT_ERR_FORMAT,
                 "more than 4096 keys");
    free(text);
}

static const char *const scale[] = {"0.08", "1.0"};
static const char *const awkward[] = {"null",          "true",   "",         "- x",         "a: b # c", "two\nlines",
                                      "1e-3",          " edge ", "\xC3\xA4", "it's \"so\"", "\t",       "~",
                                      "plain/name.jpg"};
static const char *const one[] = {"64"}, *const yes[] = {"true"}, *const path[] = {"/data/my images"},
                         *const null_text[] = {"null"};
static const att_yaml_entry entries[] = {
    {.key = "data_dir", .kind = ATT_YAML_SCALAR, .values = path, .value_count = 1, .text = true},
    {.key = "batch_size", .kind = ATT_YAML_SCALAR, .values = one, .value_count = 1},
    {.key = "amp", .kind = ATT_YAML_SCALAR, .values = yes, .value_count = 1},
    {.key = "aa", .kind = ATT_YAML_NULL},
    {.key = "scale", .kind = ATT_YAML_LIST, .values = scale, .value_count = 2},
    {.key = "empty", .kind = ATT_YAML_LIST},
    {.key = "names", .kind = ATT_YAML_LIST, .values = awkward, .value_count = 13, .text = true},
    {.key = "as-written", .kind = ATT_YAML_SCALAR, .values = null_text, .value_count = 1},
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

SCRATCH_TEST(written_entries_are_read_back)
{
    assert_int_equal(att_yaml_write(self->context, self->path, entries, 6), ATT_OK);
    assert_text_file(self->path,
                     "data_dir: /data/my images\nbatch_size: 64\namp: true\naa: null\nscale:\n- 0.08\n"
                     "- 1.0\nempty: []\n");
    assert_int_equal(att_yaml_write(self->context, self->path, entries, ENTRIES), ATT_OK);
    att_yaml *yaml;
    assert_int_equal(att_yaml_read(self->context, self->path, &yaml), ATT_OK);
    assert_int_equal(att_yaml_count(yaml), ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        assert_string_equal(entry.key, entries[i].key);
        assert_int_equal(entry.kind, entries[i].kind);
        assert_int_equal(entry.value_count, entries[i].value_count);
        for (int j = 0; j < entry.value_count; j++)
            assert_string_equal(entry.values[j], entries[i].values[j]);
    }
    att_yaml_destroy(&yaml);
}

SCRATCH_TEST(a_refused_write_keeps_the_old_file)
{
    const char *const broken[] = {"\xFF"};
    const att_yaml_entry entry = {.key = "a", .kind = ATT_YAML_SCALAR, .values = broken, .value_count = 1};
    assert_int_equal(att_yaml_write(self->context, self->path, entries, 1), ATT_OK);
    assert_int_equal(att_yaml_write(self->context, self->path, &entry, 1), ATT_ERR_ARGUMENT);
    assert_text_file(self->path, "data_dir: /data/my images\n");
    assert_int_equal(scratch_file_count(self), 1);
}

static att_status write_and_read(scratch *self)
{
    att_yaml *yaml;
    att_status status = att_yaml_write(self->context, self->path, entries, ENTRIES);
    if (status == ATT_OK)
        status = att_yaml_read(self->context, self->path, &yaml);
    if (status == ATT_OK)
        att_yaml_destroy(&yaml);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, write_and_read);
}
