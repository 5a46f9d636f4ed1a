/* What is compiled for shapes of inputs is found again, and kept within memory. */
#include "study/train/shape_cache.h"

#include "failing.h"

#include "context.h"

SHARED_CONTEXT(threads, 1)

typedef struct compiled {
    int number;
    int *freed; /* how many entries were freed */
} compiled;

static void free_compiled(void *entry)
{
    const compiled *held = entry;
    if (held->freed)
        ++*held->freed;
}

static att_shape_cache cache_of(att_context *of, size_t most_bytes)
{
    return (att_shape_cache){
        .context = of, .entry_size = sizeof(compiled), .free_entry = free_compiled, .most_bytes = most_bytes};
}

static att_shapes shapes_of(int height, int tokens)
{
    return (att_shapes){.count = 2, .of = {att_shape_of(height, 8, 3), att_shape_of(tokens)}};
}

static void add(att_shape_cache *cache, int height, int tokens, int number, size_t bytes, int *freed)
{
    const att_shapes shapes = shapes_of(height, tokens);
    void *entry;
    CHECK(cache->context, att_shape_cache_add(cache, &shapes, &entry));
    *(compiled *)entry = (compiled){.number = number, .freed = freed};
    att_shape_cache_make_room(cache, entry, bytes);
}

/* The number of the entry for these shapes; 0: none. */
static int find(att_shape_cache *cache, int height, int tokens)
{
    const att_shapes shapes = shapes_of(height, tokens);
    const compiled *entry = att_shape_cache_find(cache, &shapes);
    return entry ? entry->number : 0;
}

TEST(entries_are_found_by_the_shapes_of_all_inputs)
{
    int freed = 0;
    att_shape_cache cache = cache_of(context, 1000);
    assert_int_equal(find(&cache, 8, 5), 0);
    add(&cache, 8, 5, 1, 10, &freed);
    add(&cache, 8, 6, 2, 10, &freed);
    add(&cache, 9, 5, 3, 10, &freed);
    assert_int_equal(find(&cache, 8, 5), 1);
    assert_int_equal(find(&cache, 8, 6), 2);
    assert_int_equal(find(&cache, 9, 5), 3);
    assert_int_equal(find(&cache, 9, 6), 0);
    const att_shapes fewer = {.count = 1, .of = {att_shape_of(8, 8, 3)}};
    assert_null(att_shape_cache_find(&cache, &fewer));
    assert_int_equal(freed, 0);
    att_shape_cache_clear(&cache);
    assert_int_equal(freed, 3);
}

TEST(the_entry_that_is_unused_longest_makes_room)
{
    int freed = 0;
    att_shape_cache cache = cache_of(context, 100);
    add(&cache, 1, 5, 1, 40, &freed);
    add(&cache, 2, 5, 2, 40, &freed);
    assert_int_equal(find(&cache, 1, 5), 1);
    add(&cache, 3, 5, 3, 20, &freed);
    assert_int_equal(freed, 0); /* exactly 100 bytes */
    add(&cache, 4, 5, 4, 1, &freed);
    assert_int_equal(freed, 1);
    assert_int_equal(find(&cache, 2, 5), 0);
    assert_int_equal(find(&cache, 1, 5), 1);
    add(&cache, 5, 5, 5, 1000, &freed); /* larger than all may be: it is kept alone */
    assert_int_equal(freed, 4);
    assert_int_equal(find(&cache, 5, 5), 5);
    add(&cache, 6, 5, 6, 99, &freed);
    assert_int_equal(find(&cache, 5, 5), 0);
    assert_int_equal(find(&cache, 6, 5), 6);
    att_shape_cache_clear(&cache);
    assert_int_equal(freed, 6);
}

TEST(room_is_made_below_the_limit_of_the_context_too)
{
    att_context *own = NULL;
    att_settings settings = att_settings_defaults();
    int freed = 0;
    settings.memory_limit = 1 << 20;
    assert_int_equal(att_context_create(&settings, &own), ATT_OK);
    att_shape_cache cache = cache_of(own, SIZE_MAX);
    add(&cache, 1, 5, 1, 1000, &freed);
    add(&cache, 2, 5, 2, 1000, &freed);
    assert_int_equal(freed, 0);
    add(&cache, 3, 5, 3, 2 << 20, &freed);
    assert_int_equal(freed, 2);
    att_shape_cache_clear(&cache);
    att_context_destroy(&own);
}

TEST(an_entry_is_dropped_alone)
{
    int freed = 0;
    att_shape_cache cache = cache_of(context, 100);
    const att_shapes shapes = shapes_of(1, 5);
    add(&cache, 1, 5, 1, 40, &freed);
    add(&cache, 2, 5, 2, 40, &freed);
    att_shape_cache_drop(&cache, att_shape_cache_find(&cache, &shapes));
    att_shape_cache_drop(&cache, NULL);
    assert_int_equal(freed, 1);
    assert_int_equal(find(&cache, 1, 5), 0);
    assert_int_equal(find(&cache, 2, 5), 2);
    att_shape_cache_clear(&cache);
    att_shape_cache_clear(&cache);
}

TEST(a_lack_of_memory_adds_nothing)
{
    failing memory = {0};
    att_context *own = NULL;
    const att_settings settings = failing_settings(&memory);
    const att_shapes shapes = shapes_of(1, 5);
    assert_int_equal(att_context_create(&settings, &own), ATT_OK);
    att_shape_cache cache = cache_of(own, 100);
    lack of = lack_of_memory(own, &memory);
    while (lack_again(&of)) {
        void *entry;
        of.status = att_shape_cache_add(&cache, &shapes, &entry);
        assert_int_equal(cache.count, of.status == ATT_OK);
        att_shape_cache_clear(&cache);
    }
    assert_true(of.allowed > 0);
    att_context_destroy(&own);
}
