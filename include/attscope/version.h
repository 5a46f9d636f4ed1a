/* attscope/version.h - the version of these headers and of the library.
 *
 * Before 1.0 every minor version may change the interface. The name of the shared library contains the interface's
 * version: libattscope.so.0.2. From 1.0 on, only major versions change the interface.
 */
#ifndef ATTSCOPE_VERSION_H
#define ATTSCOPE_VERSION_H

#include <attscope/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATT_VERSION_MAJOR 0
#define ATT_VERSION_MINOR 2
#define ATT_VERSION_PATCH 0
#define ATT_VERSION "0.2.0"

/* Compares the version of the headers: #if ATT_VERSION_AT_LEAST(0, 3, 0) */
#define ATT_VERSION_AT_LEAST(major, minor, patch) \
    (ATT_VERSION_MAJOR > (major) ||               \
     (ATT_VERSION_MAJOR == (major) &&             \
      (ATT_VERSION_MINOR > (minor) || (ATT_VERSION_MINOR == (minor) && ATT_VERSION_PATCH >= (patch)))))

/* Version of the library at run time, "major.minor.patch". */
ATT_API const char *att_version(void);

#ifdef __cplusplus
}
#endif

#endif
