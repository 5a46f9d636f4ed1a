/* attscope/lab/yaml.h - reads flat YAML files of options, such as timm's args.yaml, for att_flags_read(): `key: value`,
 * or `key:` with a list.
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

typedef struct att_yaml att_yaml;

/* Reads a file of at most 1 MiB and 4096 keys. On success the caller owns *yaml and frees it with att_yaml_destroy().
 * Errors: ERR_FORMAT (the message gives the line), ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_yaml_read(att_context *context, const char *path, att_yaml **yaml);
ATT_API void att_yaml_destroy(att_yaml **yaml);

#ifdef __cplusplus
}
#endif
#endif
