/* attscope/field.h - describes a named tensor of a sample. Loader, graph, plan and evaluation match tensors by these
 * names. */
#ifndef ATTSCOPE_FIELD_H
#define ATTSCOPE_FIELD_H

#include <attscope/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each sample has one tensor of this type and shape. A tensor whose length differs between samples is padded to
 * `shape`; a second field holds the number of valid elements. Names are unique among the fields of a sample. */
typedef struct att_field {
    const char *name;
    att_dtype dtype;
    att_shape shape;
} att_field;

/* Returns the bytes of one sample's tensor; 0 if att_shape_count() returns -1 for the shape. */
ATT_API size_t att_field_bytes(const att_field *field);

#ifdef __cplusplus
}
#endif
#endif
