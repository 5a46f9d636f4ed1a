/* core/export.h - what libattscope exports beyond its public headers. */
#ifndef ATT_CORE_EXPORT_H
#define ATT_CORE_EXPORT_H

#include <attscope/status.h>

/* Before the declaration of a function: libattscope exports it for libattscope-lab of the same build alone, under the
 * symbol version ATTSCOPE_PRIVATE_<version> (cmake/versions.cmake). The link of libattscope-lab fails where a function
 * lacks the mark; the test tools/symbols_private fails where libattscope-lab needs it no longer. */
#define ATT_FOR_LAB ATT_API

#endif
