/* attscope/lab/yaml.h - flat YAML files of options, as timm's args.yaml: `key: value`, or `key:` with a list of values.
 *
 * A mapping as a value gives one entry for each of its keys, called "model_kwargs.img_size". Mappings in such mappings,
 * lists in lists, anchors, aliases, tags and second documents are refused, as is a key given twice.
 * "batch_size" and "batch-size" are the same key, and given back as the file has it.
 */
#ifndef ATTSCOPE_LAB_YAML_H
#define ATTSCOPE_LAB_YAML_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_yaml_kind {
    ATT_YAML_NULL, /* null, ~, nothing, or {}: not given; no values */
    ATT_YAML_SCALAR,
    ATT_YAML_LIST
} att_yaml_kind;

typedef struct att_yaml_entry {
    const char *key;
    att_yaml_kind kind;
    /* The value(s) as written, without quotes. */
    const char *const *values;
    int value_count;
    /* Read: the (only or last) value was quoted. Written: values are quoted wherever a YAML reader could take them for
     * something else than text (null, true, 1e-3). */
    bool text;
    int line; /* 1-based; not used for writing */
} att_yaml_entry;

typedef struct att_yaml att_yaml;

/* Reads a file of at most 1 MiB and 4096 keys. On success *yaml is the caller's, freed by att_yaml_destroy(). Errors,
 * with the line: ERR_FORMAT; ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_yaml_read(att_context *context, const char *path, att_yaml **yaml);
/* The same from bytes; what: the source's name in messages. */
ATT_API ATT_MUST_CHECK att_status att_yaml_parse(att_context *context, const char *what, const char *bytes, size_t size,
                                                 att_yaml **yaml);
ATT_API void att_yaml_destroy(att_yaml **yaml);

/* Entries in the file's order; what they point to lives as long as `yaml`. */
ATT_API int att_yaml_count(const att_yaml *yaml);
ATT_API att_yaml_entry att_yaml_at(const att_yaml *yaml, int index);

/* Replaces the file at `path` in one step; att_yaml_read() gives the same entries back. Errors: ERR_ARGUMENT where a
 * text is not UTF-8; ERR_IO, ERR_MEMORY. After a failure the file is what it was. */
ATT_API att_status att_yaml_write(att_context *context, const char *path, const att_yaml_entry *entries, int count);

#ifdef __cplusplus
}
#endif
#endif
