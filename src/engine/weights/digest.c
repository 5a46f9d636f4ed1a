/* A digest of the weights' values, independent of their layout. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "engine/weights/weights.h"

/* FNV-1a (Fowler, Noll, Vo) on words of 32 bits instead of bytes: four times as fast. */
static uint64_t digest_words(uint64_t digest, const void *values, size_t bytes)
{
    const uint64_t prime = 0x100000001b3u;
    uint32_t word;
    for (size_t at = 0; at < bytes; at += sizeof word) {
        memcpy(&word, (const char *)values + at, sizeof word);
        digest = (digest ^ word) * prime;
    }
    return digest;
}

/* Takes a value that is exact in f32 as f32, so that a network opened in f64 has the digest of its file in f32. */
static uint64_t digest_wide(uint64_t digest, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const float narrow = fabs(values[i]) <= (double)FLT_MAX ? (float)values[i] : NAN;
        digest = (double)narrow == values[i] ? digest_words(digest, &narrow, sizeof narrow)
                                             : digest_words(digest, &values[i], sizeof values[i]);
    }
    return digest;
}

static size_t bytes_of(const att_weights *weights, int index)
{
    return (size_t)att_shape_count(weights->parameters[index].shape) * att_dtype_size(weights->dtype);
}

static size_t most_bytes(const att_weights *weights)
{
    size_t most = 1;
    for (int i = 0; i < weights->count; i++)
        most = bytes_of(weights, i) > most ? bytes_of(weights, i) : most;
    return most;
}

/* values: room for the largest parameter. Elements have 4 or 8 bytes. */
static att_status digest_all(const att_weights *weights, void *values, uint64_t *digest)
{
    for (int i = 0; i < weights->count; i++) {
        const int64_t count = att_shape_count(weights->parameters[i].shape);
        ATT_TRY(att_weights_get(weights, -1, i, values, count));
        *digest = weights->dtype == ATT_F64 ? digest_wide(*digest, values, count)
                                            : digest_words(*digest, values, bytes_of(weights, i));
    }
    return ATT_OK;
}

att_status att_weights_digest(const att_weights *weights, char text[ATT_WEIGHTS_DIGEST])
{
    const size_t room = most_bytes(weights);
    void *values = att_allocate(weights->context, room);
    if (!values)
        return att_fail_memory(weights->context, room, "a digest of the weights");
    uint64_t digest = att_random_hash("");
    att_status status = digest_all(weights, values, &digest);
    att_free(weights->context, values);
    if (status == ATT_OK)
        snprintf(text, ATT_WEIGHTS_DIGEST, "%016" PRIx64, digest);
    return status;
}
