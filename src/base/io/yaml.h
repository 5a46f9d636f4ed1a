/* io/yaml.h - shared by the reader and the writer of YAML. */
#ifndef ATT_IO_YAML_H
#define ATT_IO_YAML_H

#include <attscope/lab/yaml.h>

/* Returns whether an unquoted scalar is YAML's null: empty, ~, null, Null or NULL. */
bool att_yaml_is_null(const char *text);

#endif
