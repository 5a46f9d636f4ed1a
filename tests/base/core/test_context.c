#include <sys/mman.h>
#include <unistd.h>

#include <attscope/tensor.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/pages.h"
#include "base/core/threads.h"
#include "failing.h"

static att_context *context_with(int threads)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    att_context *context;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    return context;
}

TEST(message_survives_its_own_text)
{
    att_context *context = context_with(1);
    assert_int_equal(att_fail(context, ATT_ERR_IO, "%s: cannot be read", "a.png"), ATT_ERR_IO);
    att_context_set_message(context, "index 3: %s", att_context_message(context));
    assert_string_equal(att_context_message(context), "index 3: a.png: cannot be read");
    att_context_set_message(context, "tensor \"\x1b[2Jx\"\nnext\x7f");
    assert_string_equal(att_context_message(context), "tensor \"?[2Jx\"?next?");
    att_context_destroy(&context);
}

TEST(settings_are_checked)
{
    att_settings settings = att_settings_defaults();
    settings.threads = -1;
    att_context *context = NULL;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_ERR_ARGUMENT);
    assert_null(context);
}

TEST(blocks_are_zeroed_aligned_and_counted)
{
    att_context *context = context_with(1);
    size_t before = att_context_allocations(context).bytes_now;
    unsigned char *block = att_allocate(context, 1000);
    assert_int_equal((uintptr_t)block % 64, 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(block[i], 0);
    memset(block, 7, 1000);
    assert_int_equal(att_context_allocations(context).bytes_now - before, 1000);
    block = att_reallocate(context, block, 5000);
    assert_int_equal(block[999], 7);
    att_free(context, block);
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    assert_null(att_allocate_array(context, SIZE_MAX / 2, 16));
    assert_null(att_allocate(context, 0));
    att_context_destroy(&context);
}

/* The page in the middle of a block. */
static bool is_resident(char *block, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char resident = 0;
    assert_int_equal(mincore((void *)(((uintptr_t)block + size / 2) / page * page), page, &resident), 0);
    return resident & 1;
}

TEST(large_blocks_take_memory_where_they_are_written)
{
    enum { SIZE = 32 << 20, FROM = SIZE / 4 + 5, COUNT = SIZE / 2 };
    att_context *context = context_with(1);
    char *block = att_allocate(context, SIZE);
    assert_false(is_resident(block, SIZE));
    memset(block, 7, SIZE);
    assert_true(is_resident(block, SIZE));
    att_discard(context, block + FROM, COUNT);
    assert_false(is_resident(block, SIZE));
    for (int i = 0; i < SIZE; i++)
        if (block[i] != (i >= FROM && i < FROM + COUNT ? 0 : 7))
            fail_msg("byte %d is %d", i, block[i]);
    att_discard(context, block + 3, 10); /* no whole page */
    assert_int_equal(block[2], 7);
    assert_int_equal(block[12], 0);
    assert_int_equal(block[13], 7);
    att_free(context, block);
    att_context_destroy(&context);
}

TEST(nothing_goes_beyond_the_limit)
{
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.memory_limit = 1 << 20;
    att_context *context;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    att_allocation_count before = att_context_allocations(context);
    assert_int_equal(before.bytes_limit, 1 << 20);
    assert_int_equal(att_memory_left(context), (1 << 20) - before.bytes_now);
    assert_null(att_allocate(context, 1 << 20));
    char *block = att_allocate(context, att_memory_left(context));
    assert_non_null(block);
    assert_int_equal(att_memory_left(context), 0);
    assert_null(att_allocate(context, 1));
    assert_int_equal(att_fail_memory(context, 3 << 20, "a test"), ATT_ERR_MEMORY);
    assert_string_equal(att_context_message(context),
                        "out of memory: cannot allocate 3.0 MiB for a test (1.0 MiB of at most 1.0 MiB are in use)");
    block = att_reallocate(context, block, 1000); /* freed memory may be allocated again */
    assert_non_null(block);
    assert_null(att_reallocate(context, block, 1 << 20));
    assert_non_null(block = att_reallocate(context, block, 1 << 19));
    assert_int_equal(att_fail_memory(context, 1000, "a test"), ATT_ERR_MEMORY);
    assert_string_equal(att_context_message(context),
                        "out of memory: no memory for a test within the limit of 1.0 MiB");
    att_free(context, block);
    assert_int_equal(att_context_allocations(context).bytes_now, before.bytes_now);
    att_context_destroy(&context);
    context = context_with(1);
    size_t limit = att_context_allocations(context).bytes_limit;
    assert_true(limit > 1 << 20 && limit < SIZE_MAX); /* the limit of this machine */
    att_context_destroy(&context);
}

TEST(sizes_are_counted_to_the_end)
{
    assert_int_equal(att_size_product(3, 5), 15);
    assert_int_equal(att_size_product(SIZE_MAX / 2, 3), SIZE_MAX);
    assert_int_equal(att_size_product(0, SIZE_MAX), 0);
    assert_int_equal(att_size_product(SIZE_MAX, 0), 0);
    assert_int_equal(att_size_sum(SIZE_MAX - 1, 1), SIZE_MAX);
    assert_int_equal(att_size_sum(SIZE_MAX - 1, 2), SIZE_MAX);
    assert_int_equal(att_size_sum(SIZE_MAX, SIZE_MAX), SIZE_MAX);
}

TEST(arenas_keep_blocks_apart)
{
    att_context *context = context_with(1);
    size_t before = att_context_allocations(context).bytes_now;
    att_arena arena = {.context = context};
    char *a = att_arena_allocate(&arena, 100), *b = att_arena_allocate(&arena, 1 << 20);
    memset(a, 1, 100);
    memset(b, 2, 1 << 20);
    assert_int_equal(a[99], 1);
    assert_string_equal(att_arena_string(&arena, "blocks.0"), "blocks.0");
    att_arena_free(&arena);
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    att_context_destroy(&context);
}

typedef struct tally {
    int seen[8];
    att_barrier barrier;
    atomic_int arrived;
    int late;
    bool slow; /* the others wait so long for thread 0 that they sleep */
} tally;

static void tally_thread(void *user, int thread)
{
    tally *it = user;
    it->seen[thread]++;
    if (it->slow && thread == 0)
        usleep(2000);
    atomic_fetch_add(&it->arrived, 1);
    att_barrier_wait(&it->barrier);
    if (atomic_load(&it->arrived) < it->barrier.count)
        it->late = 1; /* a thread passed the barrier before all had arrived */
    att_barrier_wait(&it->barrier);
}

TEST(every_thread_works_once_a_round)
{
    att_context *context = context_with(4);
    tally it = {0};
    for (int round = 0; round < 200; round++) {
        int threads = 1 + round % 4;
        it.slow = round < 20;
        att_barrier_init(&it.barrier, threads);
        atomic_store(&it.arrived, 0);
        att_threads_run(context, threads, tally_thread, &it);
    }
    assert_int_equal(it.late, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(it.seen[i], 200 - 50 * i);
    att_context_destroy(&context);
}

static void halve(void *user, int thread)
{
    volatile float *numbers = user, half = 0.5F;
    numbers[thread] *= half;
}

/* On the pool's threads and on the caller's, whose arithmetic is the same again afterwards. */
TEST(subnormal_numbers_are_zero_in_the_work_only)
{
    enum { THREADS = 3 };
    const float smallest = 0x1p-126F;
    volatile float numbers[THREADS] = {smallest, smallest, smallest}, outside = smallest;
    att_context *context = context_with(THREADS);
    att_threads_run(context, THREADS, halve, (void *)numbers);
    outside *= 0.5F;
#if defined(__SSE2__)
    for (int i = 0; i < THREADS; i++)
        assert_true(numbers[i] == 0);
#endif
    assert_true(outside == 0x1p-127F);
    att_context_destroy(&context);
}

TEST(shapes_are_counted_formatted_and_compared)
{
    char text[32];
    assert_int_equal(att_shape_count(att_shape_of(2, 3, 4)), 24);
    assert_int_equal(att_shape_count((att_shape){0}), 1);
    assert_int_equal(att_shape_count(att_shape_of(INT64_MAX / 2, 8)), -1);
    assert_int_equal(att_shape_count(att_shape_of(-1)), -1);
    assert_string_equal(att_shape_format(att_shape_of(2, 3), text, sizeof text), "[2, 3]");
    assert_string_equal(att_shape_format(att_shape_of(2, 3), text, 4), "[2,");
    assert_true(att_shape_equal(att_shape_of(2, 3), att_shape_of(2, 3)));
    assert_false(att_shape_equal(att_shape_of(2, 3), att_shape_of(3, 2)));
}

TEST(statuses_have_names)
{
    assert_string_equal(att_status_name(ATT_ERR_NONFINITE), "ERR_NONFINITE");
    assert_string_equal(att_status_name((att_status)999), "ERR_UNKNOWN");
    assert_non_null(att_status_meaning((att_status)999));
}

TEST(creation_survives_failing_allocations)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    settings.threads = 2;
    att_status status = ATT_ERR_MEMORY;
    for (int n = 0; status != ATT_OK; n++) {
        memory.left = n;
        att_context *context = NULL;
        status = att_context_create_with(&settings, NULL, &context);
        assert_true(status == ATT_OK || (status == ATT_ERR_MEMORY && !context));
        att_context_destroy(&context);
    }
}

TEST(a_refusal_of_the_system_is_told_from_the_limit)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    settings.memory_limit = 1 << 20;
    att_context *context;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    assert_null(att_allocate(context, 1 << 20));
    memory.left = 0;
    assert_null(att_allocate(context, 1000));
    assert_int_equal(att_fail_memory(context, 1000, "a test"), ATT_ERR_MEMORY);
    assert_string_equal(att_context_message(context), "out of memory: the system refused 1000 bytes for a test");
    att_context_destroy(&context);
}
