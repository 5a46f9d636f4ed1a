/* YAML: a document is read, written, and read again with the same result; also args.yaml as the configuration of a
 * network. */
#include "fuzz.h"
#include "fuzz_config.h"

#include "base/io/yaml.h"
#include "networks/models/config.h"

static void require_same(const att_yaml *a, const att_yaml *b)
{
    fuzz_require(att_yaml_count(a) == att_yaml_count(b), "the number of entries read back is that of the written ones");
    for (int i = 0; i < att_yaml_count(a); i++) {
        att_yaml_entry one = att_yaml_at(a, i), other = att_yaml_at(b, i);
        fuzz_require(strcmp(one.key, other.key) == 0 && one.kind == other.kind && one.value_count == other.value_count,
                     "a written entry is read back unchanged");
        for (int v = 0; v < one.value_count; v++)
            fuzz_require(strcmp(one.values[v], other.values[v]) == 0, "a written value is read back unchanged");
    }
}

static void write_and_read(const att_yaml *yaml)
{
    int count = att_yaml_count(yaml);
    att_yaml_entry *entries = calloc((size_t)count + 1, sizeof *entries);
    fuzz_require(entries != NULL, "memory");
    for (int i = 0; i < count; i++)
        entries[i] = att_yaml_at(yaml, i);
    const char *path = fuzz_file("written.yaml", "", 0);
    att_yaml *again = NULL;
    if (att_yaml_write(fuzz_context(), path, entries, count) == ATT_OK) {
        fuzz_require(att_yaml_read(fuzz_context(), path, &again) == ATT_OK, "a written file can be read");
        require_same(yaml, again);
    }
    att_yaml_destroy(&again);
    free(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const att_tensors *weights = fuzz_weights();
    size_t before = fuzz_begin();
    att_yaml *yaml = NULL;
    if (att_yaml_parse(fuzz_context(), "text", (const char *)data, size, &yaml) == ATT_OK)
        write_and_read(yaml);
    att_yaml_destroy(&yaml);
    att_config config = att_config_none();
    if (att_config_read_args(fuzz_context(), fuzz_file("args.yaml", data, size), weights, &config) == ATT_OK)
        fuzz_complete(&config.options);
    fuzz_end(before);
    return 0;
}
