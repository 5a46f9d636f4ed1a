/* attscope/version.h - which version these headers, and the library, are of.
 *
 * Before 1.0 every minor version may change the interface, and the library's name on disk says which one it has:
 * libattscope.so.0.2. From 1.0 on only major versions do.
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

/* Of the headers: #if ATT_VERSION_AT_LEAST(0, 3, 0) */
#define ATT_VERSION_AT_LEAST(major, minor, patch) \
    (ATT_VERSION_MAJOR > (major) ||               \
     (ATT_VERSION_MAJOR == (major) &&             \
      (ATT_VERSION_MINOR > (minor) || (ATT_VERSION_MINOR == (minor) && ATT_VERSION_PATCH >= (patch)))))

/* Of the library: "major.minor.patch". */
ATT_API const char *att_version(void);

#ifdef __cplusplus
}
#endif

#endif
