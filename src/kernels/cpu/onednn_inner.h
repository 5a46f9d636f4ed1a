/* kernels/cpu/onednn_inner.h - what the users of oneDNN in this folder share: its versions' different ways to say the
 * same thing, and the running of primitives under one thread. */
#ifndef ATT_KERNELS_CPU_ONEDNN_INNER_H
#define ATT_KERNELS_CPU_ONEDNN_INNER_H

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/onednn_conv.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t att_onednn_ref;
#else
typedef const dnnl_memory_desc_t *att_onednn_ref;
#endif

/* A tensor of `rank` axes; strides NULL: laid out as oneDNN likes best. To be freed with att_onednn_desc_free(). */
dnnl_status_t att_onednn_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int rank, const int64_t *dims,
                              const int64_t *strides);
dnnl_status_t att_onednn_desc_copy(dnnl_memory_desc_t *desc, att_onednn_ref from);
void att_onednn_desc_free(dnnl_memory_desc_t *desc);
/* Lives as long as *desc. */
att_onednn_ref att_onednn_ref_of(const dnnl_memory_desc_t *desc);
/* Equal for equal layouts. */
uint64_t att_onednn_layout_hash(att_onednn_ref desc);

/* With a scratchpad of the caller's; adds: the result is added to what is there. */
dnnl_status_t att_onednn_attr(dnnl_primitive_attr_t *attr, bool adds);

/* desc: x (or its gradient), weight (or its gradient), y (or its gradient). dilation as oneDNN counts it: 0 for none.
 */
typedef struct att_onednn_conv {
    att_conv_kind kind;
    dnnl_memory_desc_t desc[3];
    dnnl_dims_t stride, dilation, before, behind;
} att_onednn_conv;
dnnl_status_t att_onednn_conv_desc(dnnl_primitive_desc_t *made, dnnl_engine_t engine, const att_onednn_conv *conv,
                                   dnnl_primitive_attr_t attr);

/* oneDNN's name for what it chose. */
const char *att_onednn_implementation(const_dnnl_primitive_desc_t desc);

/* Both return what was before. Primitives are made, and run, between the two. */
int att_onednn_enter(void);
void att_onednn_leave(int before);
/* Before the first use of oneDNN for a context. */
void att_onednn_cap(const att_context *context);

typedef struct att_onednn_argument {
    int name;
    att_onednn_ref desc;
    const void *data;
} att_onednn_argument;
enum { ATT_ONEDNN_ARGUMENTS = 5 };
dnnl_status_t att_onednn_execute(dnnl_engine_t engine, dnnl_primitive_t primitive, const att_onednn_argument *arguments,
                                 int count);

/* ATT_OK or ERR_MEMORY, ERR_UNSUPPORTED, ERR_INTERNAL with a sentence on `what`. */
att_status att_onednn_check(att_context *context, dnnl_status_t status, const char *what);

#endif
