/* attscope/field.h - a named tensor of a sample: what loader, graph and evaluation agree on. */
#ifndef ATTSCOPE_FIELD_H
#define ATTSCOPE_FIELD_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each sample has one tensor of this type and shape. A field whose length differs between samples is padded to `shape`,
 * and a second field holds its count. The name is unique among the fields of a sample. */
typedef struct att_field {
    const char *name;
    att_dtype dtype;
    att_shape shape;
} att_field;

/* Bytes of one sample's tensor; 0 where att_shape_count() refuses the shape. */
ATT_API size_t att_field_bytes(const att_field *field);

#ifdef __cplusplus
}
#endif
#endif
