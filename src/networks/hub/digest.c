#include "networks/hub/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64 };

static uint32_t rotate_left(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t rotate_right(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static uint32_t read_word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Round r of 8. The working variables a to h of the standard are s[-r], s[1 - r], ..., with indices modulo 8: each
 * round changes two of them instead of moving all. */
static inline void sha256_round(uint32_t s[8], int r, uint32_t word)
{
    uint32_t a = s[-r & 7], b = s[(1 - r) & 7], c = s[(2 - r) & 7], e = s[(4 - r) & 7], f = s[(5 - r) & 7],
             g = s[(6 - r) & 7];
    uint32_t e1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
    uint32_t e0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
    uint32_t t1 = s[(7 - r) & 7] + e1 + ((e & f) ^ (~e & g)) + word;
    s[(3 - r) & 7] += t1;
    s[(7 - r) & 7] = t1 + e0 + ((a & b) ^ (a & c) ^ (b & c));
}

static void sha256_block(uint32_t state[8], const uint8_t *block)
{
    /* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], s[8];
    for (int t = 0; t < 16; t++)
        w[t] = read_word(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    memcpy(s, state, sizeof s);
    for (int t = 0; t < 64; t += 8)
        for (int r = 0; r < 8; r++) /* unrolled by compilers, so that all indices are constants */
            sha256_round(s, r, k[t + r] + w[t + r]);
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void sha1_block(uint32_t state[8], const uint8_t *block)
{
    static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int t = 0; t < 16; t++)
        w[t] = read_word(block + 4 * t);
    for (int t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    for (int t = 0; t < 80; t++) {
        uint32_t f = t < 20 ? (b & c) | (~b & d) : t >= 40 && t < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t next = rotate_left(a, 5) + f + e + k[t / 20] + w[t];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

static void add_block(att_digest *digest, const uint8_t *block)
{
    if (digest->kind == ATT_SHA256)
        sha256_block(digest->state, block);
    else
        sha1_block(digest->state, block);
}

void att_digest_add(att_digest *digest, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    size_t filled = digest->bytes % BLOCK;
    digest->bytes += size;
    if (filled > 0) {
        size_t some = size < BLOCK - filled ? size : BLOCK - filled;
        memcpy(digest->block + filled, from, some);
        from += some;
        size -= some;
        if (filled + some < BLOCK)
            return;
        add_block(digest, digest->block);
    }
    for (; size >= BLOCK; from += BLOCK, size -= BLOCK)
        add_block(digest, from);
    if (size > 0)
        memcpy(digest->block, from, size);
}

void att_digest_begin(att_digest *digest, att_digest_kind kind, uint64_t size)
{
    static const uint32_t sha256[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static const uint32_t sha1[8] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    char header[32];
    *digest = (att_digest){.kind = kind};
    memcpy(digest->state, kind == ATT_SHA256 ? sha256 : sha1, sizeof digest->state);
    if (kind == ATT_GIT_SHA1) /* the length includes the NUL */
        att_digest_add(digest, header, (size_t)snprintf(header, sizeof header, "blob %" PRIu64, size) + 1);
}

void att_digest_end(att_digest *digest, char text[ATT_DIGEST_TEXT])
{
    uint64_t bits = 8 * digest->bytes;
    uint8_t padding[2 * BLOCK] = {0x80};
    size_t filled = digest->bytes % BLOCK, size = (filled < BLOCK - 8 ? BLOCK : 2 * BLOCK) - filled;
    for (int i = 0; i < 8; i++)
        padding[size - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
    att_digest_add(digest, padding, size);
    for (int i = 0; i < (digest->kind == ATT_SHA256 ? 8 : 5); i++)
        snprintf(text + 8 * i, 9, "%08" PRIx32, digest->state[i]);
}
