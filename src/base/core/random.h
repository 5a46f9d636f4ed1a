/* core/random.h - counter-based random numbers: Philox 4x32-10 (Salmon et al., SC 2011).
 *
 * A draw is a pure function of (key, counter), so it does not depend on the order of draws, the thread or the device.
 */
#ifndef ATT_CORE_RANDOM_H
#define ATT_CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/core/export.h"

typedef struct att_philox {
    uint32_t word[4];
} att_philox;

/* Multipliers and Weyl constants of Philox 4x32 (Salmon et al. 2011, table 2 and section 3). */
#define ATT_PHILOX_M0 0xD2511F53u
#define ATT_PHILOX_M1 0xCD9E8D57u
#define ATT_PHILOX_W0 0x9E3779B9u
#define ATT_PHILOX_W1 0xBB67AE85u
enum { ATT_PHILOX_ROUNDS = 10 };

/* Returns the four words for the 128-bit counter high:low under `key`. */
att_philox att_philox_block(uint64_t key, uint64_t high, uint64_t low);

/* Derives a key from the three values, whose order matters. */
ATT_FOR_LAB uint64_t att_random_key(uint64_t seed, uint64_t a, uint64_t b);
/* Returns the FNV-1a hash of a string. att_random_hash("") is the initial value for att_random_hash_more(). */
ATT_FOR_LAB uint64_t att_random_hash(const char *text);
/* Continues an FNV-1a hash with more bytes. */
uint64_t att_random_hash_more(uint64_t hash, const void *bytes, size_t count);

/* A generator for code that needs a sequence of draws. */
typedef struct att_random {
    uint64_t key, counter;
    att_philox block;
    int used; /* words of `block` already returned; 4 at the start */
} att_random;
ATT_FOR_LAB att_random att_random_from(uint64_t key);
ATT_FOR_LAB double att_random_uniform(att_random *random);               /* [0, 1), 53 bits */
ATT_FOR_LAB double att_random_normal(att_random *random);                /* N(0, 1), Box-Muller */
ATT_FOR_LAB int64_t att_random_below(att_random *random, int64_t bound); /* 0..bound-1, unbiased; bound >= 1 */
/* Fills order[0..count-1] with a permutation of 0..count-1. */
ATT_FOR_LAB void att_random_permutation(att_random *random, int64_t *order, int64_t count);

#endif
