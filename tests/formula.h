/* formula.h - for tests: the numbers of tools/goldens/formula.py. */
#ifndef TESTS_FORMULA_H
#define TESTS_FORMULA_H

#include <stdint.h>

/* Returns element `index` of `key`, uniform in [-1/2, 1/2): FNV-1a of the key, a counter, the finalizer of MurmurHash3.
 */
static inline double formula(const char *key, uint32_t index)
{
    uint32_t seed = 0x811c9dc5u;
    for (; *key; key++)
        seed = (seed ^ (unsigned char)*key) * 0x01000193u;
    uint32_t z = seed + index * 0x9e3779b9u;
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return (double)(z ^ (z >> 16)) / 4294967296.0 - 0.5;
}

#endif
