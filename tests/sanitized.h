/* sanitized.h - whether a test program was built with a sanitizer, which makes it several times slower. Tests then
 * leave out large sizes that run the same code as small ones. */
#ifndef ATT_TESTS_SANITIZED_H
#define ATT_TESTS_SANITIZED_H

#include <stdbool.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED_BY_CLANG
#endif
#endif

static inline bool is_sanitized(void)
{
#if defined(SANITIZED_BY_CLANG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

#endif
