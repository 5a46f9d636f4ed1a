/* attscope/lab/yaml.h - flat YAML files of options, such as timm's args.yaml: `key: value`, or `key:` with a list.
 *
 * A mapping as a value gives one entry per key, such as "model_kwargs.img_size". Reading refuses deeper mappings, lists
 * in lists, anchors, aliases, tags, several documents, and a key that is given twice. "batch_size" and "batch-size" are
 * the same key; the entry has the spelling of the file.
 */
#ifndef ATTSCOPE_LAB_YAML_H
#define ATTSCOPE_LAB_YAML_H

#include <attscope/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_yaml_kind {
    ATT_YAML_NULL, /* null, ~, {} or nothing: not given, no values */
    ATT_YAML_SCALAR,
    ATT_YAML_LIST
} att_yaml_kind;

typedef struct att_yaml_entry {
    const char *key;
    att_yaml_kind kind;
    /* The values as in the file, without quotes. */
    const char *const *values;
    int value_count;
    /* Reading: whether the last value was quoted. Writing: quote values that YAML readers would not take for text, such
     * as null, true or 1e-3. */
    bool text;
    int line; /* 1-based; not used for writing */
} att_yaml_entry;

typedef struct att_yaml att_yaml;

/* Reads a file of at most 1 MiB and 4096 keys. On success the caller owns *yaml and frees it with att_yaml_destroy().
 * Errors: ERR_FORMAT (the message gives the line), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_yaml_read(att_context *context, const char *path, att_yaml **yaml);
/* As att_yaml_read(), from bytes in memory. what: the name of the source in messages. */
ATT_API ATT_MUST_CHECK att_status att_yaml_parse(att_context *context, const char *what, const char *bytes, size_t size,
                                                 att_yaml **yaml);
ATT_API void att_yaml_destroy(att_yaml **yaml);

/* Entries in the order of the file. Their texts live as long as `yaml`. */
ATT_API int att_yaml_count(const att_yaml *yaml);
ATT_API att_yaml_entry att_yaml_at(const att_yaml *yaml, int index);

/* Replaces the file at `path` in one step. att_yaml_read() reads the same entries back. Errors, which leave the file
 * unchanged: ERR_ARGUMENT (a text is not UTF-8; `path` is NULL); ERR_IO, ERR_MEMORY. */
ATT_API att_status att_yaml_write(att_context *context, const char *path, const att_yaml_entry *entries, int count);

#ifdef __cplusplus
}
#endif
#endif
