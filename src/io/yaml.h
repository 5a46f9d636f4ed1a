/* io/yaml.h - what reading and writing YAML share. */
#ifndef ATT_IO_YAML_H
#define ATT_IO_YAML_H

#include <attscope/lab/yaml.h>

/* Whether a plain scalar means "nothing": empty, ~, null. */
bool att_yaml_is_null(const char *text);

#endif
