#include "base/core/random.h"

#include <math.h>
#include <string.h>

att_philox att_philox_block(uint64_t key, uint64_t high, uint64_t low)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32), c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    for (int round = 0; round < ATT_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)ATT_PHILOX_M0 * c0, p1 = (uint64_t)ATT_PHILOX_M1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += ATT_PHILOX_W0;
        k1 += ATT_PHILOX_W1;
    }
    return (att_philox){{c0, c1, c2, c3}};
}

uint64_t att_random_key(uint64_t seed, uint64_t a, uint64_t b)
{
    att_philox block = att_philox_block(seed, a, b);
    return (uint64_t)block.word[1] << 32 | block.word[0];
}

uint64_t att_random_hash(const char *text)
{
    return att_random_hash_more(0xcbf29ce484222325u, text, strlen(text));
}

uint64_t att_random_hash_more(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

att_random att_random_from(uint64_t key)
{
    return (att_random){.key = key, .used = 4};
}

static uint32_t next_word(att_random *random)
{
    if (random->used == 4) {
        random->block = att_philox_block(random->key, 0, random->counter++);
        random->used = 0;
    }
    return random->block.word[random->used++];
}

static uint64_t random_u64(att_random *random)
{
    uint64_t low = next_word(random);
    return (uint64_t)next_word(random) << 32 | low;
}

double att_random_uniform(att_random *random)
{
    return (double)(random_u64(random) >> 11) * 0x1p-53;
}

double att_random_normal(att_random *random)
{
    const double two_pi = 6.283185307179586477;
    double radius = sqrt(-2 * log(1 - att_random_uniform(random)));
    return radius * cos(two_pi * att_random_uniform(random));
}

int64_t att_random_below(att_random *random, int64_t bound)
{
    uint64_t range = (uint64_t)bound;
    /* A multiple of `range`. Draws from `limit` on are rejected, because they would make small results more likely. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % range;
    uint64_t draw;
    do
        draw = random_u64(random);
    while (draw >= limit);
    return (int64_t)(draw % range);
}

void att_random_permutation(att_random *random, int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t j = att_random_below(random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}
