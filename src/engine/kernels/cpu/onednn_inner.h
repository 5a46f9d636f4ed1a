/* kernels/cpu/onednn_inner.h - shared by the files that call oneDNN: a common interface to oneDNN 2 and 3, and running
 * primitives on one thread. */
#ifndef ATT_KERNELS_CPU_ONEDNN_INNER_H
#define ATT_KERNELS_CPU_ONEDNN_INNER_H

#include <oneapi/dnnl/dnnl.h>

#include "engine/kernels/cpu/onednn_conv.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t att_onednn_ref;
#else
typedef const dnnl_memory_desc_t *att_onednn_ref;
#endif

/* A tensor of `rank` axes. strides NULL: any layout that oneDNN prefers. The caller frees it with
 * att_onednn_desc_free(). */
dnnl_status_t att_onednn_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int rank, const int64_t *dims,
                              const int64_t *strides);
dnnl_status_t att_onednn_desc_copy(dnnl_memory_desc_t *desc, att_onednn_ref from);
void att_onednn_desc_free(dnnl_memory_desc_t *desc);
/* Valid as long as *desc. */
att_onednn_ref att_onednn_ref_of(const dnnl_memory_desc_t *desc);
/* A hash of the layout. Different layouts have different hashes, and equal blocked layouts have equal hashes. */
uint64_t att_onednn_layout_hash(att_onednn_ref desc);

/* Attributes with a scratchpad that the caller provides. adds: add the result to the destination. */
dnnl_status_t att_onednn_attr(dnnl_primitive_attr_t *attr, bool adds);

/* desc: x, weight, y or their gradients. dilation as oneDNN counts it: 0 for none. */
typedef struct att_onednn_conv {
    att_conv_kind kind;
    dnnl_memory_desc_t desc[3];
    dnnl_dims_t stride, dilation, before, after;
} att_onednn_conv;
dnnl_status_t att_onednn_conv_desc(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *conv,
                                   dnnl_primitive_attr_t attr);

/* oneDNN's name for the implementation that it chose. */
const char *att_onednn_implementation(const_dnnl_primitive_desc_t desc);

/* Primitives are created and run between enter and leave. att_onednn_enter() returns the number of threads to pass to
 * att_onednn_leave(). */
int att_onednn_enter(void);
void att_onednn_leave(int before);
/* Called before primitives are created. Caps oneDNN's instruction set. Fails with ERR_MEMORY if there is too little
 * memory for oneDNN, which does not check all of its allocations. what: as in att_onednn_check(). */
att_status att_onednn_begin(att_context *context, const char *what);

typedef struct att_onednn_argument {
    int name;
    att_onednn_ref desc;
    const void *data;
} att_onednn_argument;
enum { ATT_ONEDNN_ARGUMENTS = 5 };
dnnl_status_t att_onednn_execute(dnnl_engine_t engine, dnnl_primitive_t primitive, const att_onednn_argument *arguments,
                                 int count);

/* ATT_OK, ERR_MEMORY, ERR_UNSUPPORTED or ERR_INTERNAL; the message names `what`. */
att_status att_onednn_check(att_context *context, dnnl_status_t status, const char *what);

#endif
