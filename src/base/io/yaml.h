/* io/yaml.h - the entries of flat YAML files. */
#ifndef ATT_IO_YAML_H
#define ATT_IO_YAML_H

#include <attscope/lab/yaml.h>

#include "base/core/export.h"

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

/* Returns whether an unquoted scalar is YAML's null: empty, ~, null, Null or NULL. */
bool att_yaml_is_null(const char *text);

/* As att_yaml_read(), from bytes in memory. what: the name of the source in messages. */
ATT_MUST_CHECK att_status att_yaml_parse(att_context *context, const char *what, const char *bytes, size_t size,
                                         att_yaml **yaml);

/* Entries in the order of the file. Their texts live as long as `yaml`. */
ATT_FOR_LAB int att_yaml_count(const att_yaml *yaml);
ATT_FOR_LAB att_yaml_entry att_yaml_at(const att_yaml *yaml, int index);

/* Replaces the file at `path` in one step. att_yaml_read() reads the same entries back. Errors, which leave the file
 * unchanged: ERR_ARGUMENT (a text is not UTF-8; `path` is NULL); ERR_IO, ERR_MEMORY. */
att_status att_yaml_write(att_context *context, const char *path, const att_yaml_entry *entries, int count);

#endif
