#include "base/core/context.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/log.h"
#include "base/core/machine.h"
#include "base/core/memory.h"
#include "base/core/pages.h"
#include "base/core/processor.h"
#include "base/core/text.h"
#include "base/core/threads_pool.h"

enum { MESSAGE_BYTES = 4096, ALIGNMENT = 64, MAX_THREADS = 1024 };

struct att_context {
    att_settings settings;
    int tier; /* index in att_tiers */
    const struct att_registry *registry;
    att_registered_list registered;
    att_thread_pool *pool;
    att_progress_fn show_progress;
    void *show_progress_user;
    pthread_mutex_t message_lock;
    char message[MESSAGE_BYTES];
    uint64_t message_count; /* messages so far */
    bool stop_held;
    const char *log_subject;        /* NULL: none */
    att_write_check_fn check_write; /* NULL: none */
    const void *check_write_user;
    atomic_size_t bytes_now, bytes_peak;
    atomic_uint_fast64_t calls;
    atomic_bool refused_by_limit; /* why the last allocation failed: the memory limit, or the system */
};

/* Stored in front of every block, so that att_free() and att_reallocate() know the block's size. */
typedef struct block_header {
    size_t size;
    char pad[ALIGNMENT - sizeof(size_t)];
} block_header;

/* Blocks of at least LARGE bytes begin at a huge page, and the system is asked for such pages: fewer misses of the
 * processor's page tables make training 2 to 3 % faster. Smaller blocks would waste too much of their last page. */
enum { HUGE_PAGE = 1 << 21, LARGE = 4 * HUGE_PAGE };

static void *aligned_block(size_t size)
{
    void *block = NULL;
    if (posix_memalign(&block, size < LARGE ? ALIGNMENT : HUGE_PAGE, size) != 0)
        return NULL;
    if (size >= LARGE)
        (void)madvise(block, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* a system without huge pages refuses */
    return block;
}

static void *default_allocate(void *user, void *old, size_t old_size, size_t size)
{
    (void)user;
    if (size == 0) {
        free(old);
        return NULL;
    }
    void *block = aligned_block(size);
    if (!block)
        return NULL;
    if (old) {
        memcpy(block, old, old_size < size ? old_size : size);
        free(old);
    }
    return block;
}

att_settings att_settings_defaults(void)
{
    return (att_settings){.features = att_default_features()};
}

/* 15/16 of the available memory. The rest is left to other libraries and processes. */
static size_t default_limit(void)
{
    size_t spare = att_machine_memory("");
    return spare - spare / 16;
}

static int usable_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int)count;
}

att_status att_context_create_with(const att_settings *settings, const struct att_registry *registry, att_context **out)
{
    att_settings chosen = settings ? *settings : att_settings_defaults();
    if (chosen.threads < 0 || chosen.threads > MAX_THREADS)
        return ATT_ERR_ARGUMENT;
    if (!chosen.allocate)
        chosen.allocate = default_allocate;
    if (chosen.threads == 0)
        chosen.threads = usable_processors();
    if (chosen.memory_limit == 0)
        chosen.memory_limit = default_limit();
    att_context *context = chosen.allocate(chosen.allocate_user, NULL, 0, sizeof *context);
    if (!context)
        return ATT_ERR_MEMORY;
    memset(context, 0, sizeof *context);
    context->settings = chosen;
    context->registry = registry;
    context->tier = att_tier_within(att_processor_features() & chosen.features);
    pthread_mutex_init(&context->message_lock, NULL);
    att_status status = att_thread_pool_create(context, chosen.threads, &context->pool);
    if (status != ATT_OK) {
        att_context_destroy(&context);
        return status;
    }
    *out = context;
    return ATT_OK;
}

void att_context_destroy(att_context **context)
{
    if (!context || !*context)
        return;
    att_context *closing = *context;
    att_free(closing, closing->registered.items);
    att_thread_pool_destroy(closing, &closing->pool);
    pthread_mutex_destroy(&closing->message_lock);
    closing->settings.allocate(closing->settings.allocate_user, closing, sizeof *closing, 0);
    *context = NULL;
}

const struct att_registry *att_context_registry(const att_context *context)
{
    return context->registry;
}

const att_registered_list *att_context_registered(const att_context *context)
{
    return &context->registered;
}

att_status att_context_register(att_context *context, const void *kind, const void *descriptor)
{
    att_registered_list *list = &context->registered;
    if (!att_list_grow(context, &list->items, list->count, &list->capacity, sizeof *list->items))
        return att_fail_memory(context, sizeof *list->items, "a registration");
    list->items[list->count++] = (att_registered){kind, descriptor};
    return ATT_OK;
}

att_thread_pool *att_context_pool(const att_context *context)
{
    return context->pool;
}

const char *att_context_message(const att_context *context)
{
    return context->message;
}

int att_context_threads(const att_context *context)
{
    return context->settings.threads;
}

int att_context_tier_index(const att_context *context)
{
    return context->tier;
}

unsigned att_context_features(const att_context *context)
{
    return att_tiers[context->tier].features;
}

const char *att_context_tier(const att_context *context)
{
    return att_tiers[context->tier].name;
}

bool att_context_has_bf16(const att_context *context)
{
    return att_context_features(context) & ATT_AVX512_BF16;
}

att_allocation_count att_context_allocations(const att_context *context)
{
    return (att_allocation_count){.bytes_now = atomic_load(&context->bytes_now),
                                  .bytes_peak = atomic_load(&context->bytes_peak),
                                  .bytes_limit = context->settings.memory_limit,
                                  .calls = atomic_load(&context->calls)};
}

const char *att_version(void)
{
    return ATT_VERSION;
}

/* --- failing ----------------------------------------------------------------------------------------------------- */

void att_context_set_message(att_context *context, const char *format, ...)
{
    char sentence[MESSAGE_BYTES]; /* a separate buffer, because arguments may point into the old message */
    va_list arguments;
    if (!context)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    att_text_printable(sentence, false);
    pthread_mutex_lock(&context->message_lock);
    memcpy(context->message, sentence, sizeof sentence);
    context->message_count++;
    pthread_mutex_unlock(&context->message_lock);
}

uint64_t att_message_count(att_context *context)
{
    pthread_mutex_lock(&context->message_lock);
    uint64_t count = context->message_count;
    pthread_mutex_unlock(&context->message_lock);
    return count;
}

att_status att_fail_memory(att_context *context, size_t bytes, const char *what)
{
    char wanted[24], now[24], limit[24];
    att_allocation_count count = att_context_allocations(context);
    att_size_format(bytes, wanted, sizeof wanted);
    /* The failed allocation may have been larger than `bytes`, and memory may have been freed since. */
    if (bytes <= att_memory_left(context) && atomic_load(&context->refused_by_limit))
        return att_fail(context, ATT_ERR_MEMORY, "out of memory: no memory for %s within the limit of %s", what,
                        att_size_format(count.bytes_limit, limit, sizeof limit));
    if (bytes <= att_memory_left(context))
        return att_fail(context, ATT_ERR_MEMORY, "out of memory: the system refused %s for %s", wanted, what);
    return att_fail(context, ATT_ERR_MEMORY, "out of memory: cannot allocate %s for %s (%s of at most %s are in use)",
                    wanted, what, att_size_format(count.bytes_now, now, sizeof now),
                    att_size_format(count.bytes_limit, limit, sizeof limit));
}

att_status att_new_array(att_context *context, void *pointer, size_t count, size_t size, const char *what)
{
    void *block = att_allocate_array(context, count, size);
    memcpy(pointer, &block, sizeof block);
    return block ? ATT_OK : att_fail_memory(context, att_size_product(count, size), what);
}

att_status att_require(att_context *context, const void *pointer, const char *what)
{
    return pointer ? ATT_OK : att_fail(context, ATT_ERR_ARGUMENT, "%s is missing: the pointer is NULL", what);
}

att_status att_require_texts(att_context *context, const char *const *texts, int count, const char *what)
{
    if (count > 0)
        ATT_TRY(att_require(context, texts, what));
    for (int i = 0; i < count; i++)
        ATT_TRY(att_require(context, texts[i], what));
    return ATT_OK;
}

void att_log(att_context *context, att_log_level level, const char *format, ...)
{
    if (!context->settings.log)
        return;
    char line[MESSAGE_BYTES];
    va_list arguments;
    int begun = snprintf(line, sizeof line, "%s", context->log_subject ? context->log_subject : "");
    size_t length = begun > 0 && (size_t)begun < sizeof line ? (size_t)begun : 0;
    va_start(arguments, format);
    vsnprintf(line + length, sizeof line - length, format, arguments);
    va_end(arguments);
    att_text_printable(line, false);
    context->settings.log(context->settings.log_user, level, line);
}

void att_log_about(att_context *context, const char *subject)
{
    context->log_subject = subject;
}

void att_hold_stop(att_context *context, bool hold)
{
    context->stop_held = hold;
}

bool att_stop_asked(const att_context *context)
{
    return !context->stop_held && context->settings.stop && context->settings.stop(context->settings.stop_user);
}

att_status att_check_stop(att_context *context, const char *what)
{
    if (!att_stop_asked(context))
        return ATT_OK;
    return att_fail(context, ATT_ERR_STOPPED, "%s: stopped on request while reading it", what);
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

void att_context_guard_writes(att_context *context, att_write_check_fn check, const void *user)
{
    context->check_write = check;
    context->check_write_user = user;
}

void att_context_set_progress(att_context *context, att_progress_fn show, void *user)
{
    context->show_progress = show;
    context->show_progress_user = user;
}

bool att_context_show_progress(const att_context *context, const att_progress *progress)
{
    return !context->show_progress || context->show_progress(context->show_progress_user, progress);
}

bool att_context_is_guarded(const att_context *context)
{
    return context->check_write != NULL;
}

att_status att_context_check_write(att_context *context, const char *path)
{
    return context->check_write ? context->check_write(context->check_write_user, context, path) : ATT_OK;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void count_bytes(att_context *context, size_t more, size_t less)
{
    size_t now = atomic_fetch_add(&context->bytes_now, more - less) + more - less;
    size_t peak = atomic_load(&context->bytes_peak);
    while (now > peak && !atomic_compare_exchange_weak(&context->bytes_peak, &peak, now))
        ;
}

size_t att_memory_left(const att_context *context)
{
    size_t now = atomic_load(&context->bytes_now), limit = context->settings.memory_limit;
    return now < limit ? limit - now : 0;
}

att_status att_memory_require(att_context *context, size_t bytes, const char *what)
{
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room != MAP_FAILED) {
        munmap(room, bytes);
        return ATT_OK;
    }
    atomic_store(&context->refused_by_limit, false);
    return att_fail_memory(context, bytes, what);
}

void *att_reallocate(att_context *context, void *block, size_t size)
{
    if (size == 0 || size > SIZE_MAX / 2)
        return NULL;
    block_header *old = block ? (block_header *)block - 1 : NULL;
    size_t old_size = old ? old->size : 0;
    if (size > old_size && size - old_size > att_memory_left(context)) {
        atomic_store(&context->refused_by_limit, true);
        return NULL;
    }
    atomic_fetch_add(&context->calls, 1);
    block_header *header = context->settings.allocate(context->settings.allocate_user, old,
                                                      old ? old_size + sizeof *old : 0, size + sizeof *header);
    if (!header) {
        atomic_store(&context->refused_by_limit, false);
        return NULL;
    }
    header->size = size;
    count_bytes(context, size, old_size);
    return header + 1;
}

/* The whole pages of [block, block + size), if it is the system's memory. */
static size_t whole_pages(const att_context *context, char *block, size_t size, char **first)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)block + page - 1) / page * page, end = ((uintptr_t)block + size) / page * page;
    *first = block + (begin - (uintptr_t)block);
    return end > begin && context->settings.allocate == default_allocate ? end - begin : 0;
}

void att_discard(const att_context *context, void *block, size_t size)
{
    char *bytes = block, *first;
    const size_t pages = whole_pages(context, bytes, size, &first);
    if (pages == 0 || madvise(first, pages, MADV_DONTNEED) != 0) {
        memset(bytes, 0, size);
        return;
    }
    memset(bytes, 0, (size_t)(first - bytes));
    memset(first + pages, 0, (size_t)(bytes + size - first) - pages);
}

void *att_allocate(att_context *context, size_t size)
{
    void *block = att_reallocate(context, NULL, size);
    if (block && size >= LARGE)
        att_discard(context, block, size);
    else if (block)
        memset(block, 0, size);
    return block;
}

void *att_allocate_array(att_context *context, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        return NULL;
    return att_allocate(context, count * size);
}

void att_free(att_context *context, void *block)
{
    if (!block)
        return;
    block_header *header = (block_header *)block - 1;
    count_bytes(context, 0, header->size);
    context->settings.allocate(context->settings.allocate_user, header, header->size + sizeof *header, 0);
}

bool att_list_grow(att_context *context, void *items_at, int count, int *capacity, size_t item_size)
{
    enum { FIRST_CAPACITY = 32 };
    if (count < *capacity)
        return true;
    void *items;
    memcpy(&items, items_at, sizeof items); /* the list's pointer, read without knowing its type */
    int larger = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    void *grown = att_reallocate(context, items, (size_t)larger * item_size);
    if (!grown)
        return false;
    memcpy(items_at, &grown, sizeof grown);
    *capacity = larger;
    return true;
}

char *att_copy_string(att_context *context, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = att_allocate(context, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}
