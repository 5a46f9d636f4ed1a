#include "lab/bench/triad.h"

#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"
#include "engine/backend/kernel.h"

/* Limits of the size of all three arrays together. */
static const size_t MIN_BYTES = (size_t)96 << 20, MAX_BYTES = (size_t)1 << 30;

struct att_triad {
    att_context *context;
    float *arrays[3];
    int64_t count; /* elements per array */
};

static size_t all_bytes(void)
{
    size_t bytes = MIN_BYTES;
#ifdef _SC_LEVEL3_CACHE_SIZE
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache > 0 && 4 * (size_t)cache > bytes)
        bytes = 4 * (size_t)cache;
#endif
    return bytes < MAX_BYTES ? bytes : MAX_BYTES;
}

static void pass(const att_triad *triad, int thread)
{
    int64_t begin, end;
    att_share(triad->count, 16, thread, att_context_threads(triad->context), &begin, &end);
    float *restrict a = triad->arrays[0];
    const float *restrict b = triad->arrays[1], *restrict c = triad->arrays[2];
    for (int64_t i = begin; i < end; i++)
        a[i] = b[i] + 3 * c[i];
}

static void work(void *user, int thread)
{
    pass(user, thread);
}

att_status att_triad_create(att_context *context, att_triad **out)
{
    att_triad *triad;
    ATT_TRY(att_new(context, &triad, 1, "the memory's measurement"));
    triad->context = context;
    size_t bytes = all_bytes() / 3;
    triad->count = (int64_t)(bytes / sizeof(float));
    for (int i = 0; i < 3; i++) {
        triad->arrays[i] = att_allocate(context, bytes);
        if (!triad->arrays[i]) {
            att_triad_destroy(&triad);
            return att_fail_memory(context, bytes, "the memory's measurement");
        }
    }
    *out = triad;
    return ATT_OK;
}

void att_triad_destroy(att_triad **triad)
{
    if (!triad || !*triad)
        return;
    att_context *context = (*triad)->context;
    for (int i = 0; i < 3; i++)
        att_free(context, (*triad)->arrays[i]);
    att_free(context, *triad);
    *triad = NULL;
}

double att_triad_bytes(const att_triad *triad)
{
    return 3.0 * (double)triad->count * sizeof(float);
}

void att_triad_run(att_triad *triad)
{
    att_threads_run(triad->context, att_context_threads(triad->context), work, triad);
}
