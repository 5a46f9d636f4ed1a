/* core/export.h - marks private functions that libattscope exports for libattscope-lab. */
#ifndef ATT_CORE_EXPORT_H
#define ATT_CORE_EXPORT_H

#include <attscope/status.h>

/* Put this mark in front of a private function's declaration. libattscope then exports the function to the
 * libattscope-lab of the same build, under the symbol version ATTSCOPE_PRIVATE_<version> (cmake/versions.cmake).
 * Linking libattscope-lab fails if a function that it calls lacks the mark. The test tools/symbols_private fails if
 * libattscope-lab does not call a marked function. */
#define ATT_FOR_LAB ATT_API

#endif
