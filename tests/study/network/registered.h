/* network/registered.h - for tests of what a program registers with a context. */
#ifndef TESTS_NETWORK_REGISTERED_H
#define TESTS_NETWORK_REGISTERED_H

#include "study/network/pixels.h"
#include "study/train/fixture.h"

/* Creates a second context, without registrations. */
static inline att_context *open_other(void)
{
    att_context *other = NULL;
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    assert_int_equal(att_context_create(&settings, &other), ATT_OK);
    return other;
}

/* The fixture checks what is left allocated in its context; registrations stay until the end. */
static inline void registered(fixture *f, size_t bytes_before)
{
    f->bytes_at_first += att_context_allocations(f->context).bytes_now - bytes_before;
}

static inline void add_module(fixture *f, const att_module *module)
{
    size_t before = att_context_allocations(f->context).bytes_now;
    CHECK(f->context, att_module_register(f->context, module));
    registered(f, before);
}

static inline void add_instrument(fixture *f, const att_instrument *instrument)
{
    size_t before = att_context_allocations(f->context).bytes_now;
    CHECK(f->context, att_instrument_register(f->context, instrument));
    registered(f, before);
}

static inline void add_task(fixture *f, const att_task *task)
{
    size_t before = att_context_allocations(f->context).bytes_now;
    CHECK(f->context, att_task_register(f->context, task));
    registered(f, before);
}

/* Writes a copy of a file in which `to`, of the same length, replaces every `from`. */
static inline void write_with(const fixture *f, const char *name, const char *from, const char *to, const char *copy)
{
    size_t size, length = strlen(from);
    char path[160], *bytes = read_all(f, name, &size);
    int replaced = 0;
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, from, length) == 0) {
            memcpy(bytes + i, to, length);
            replaced++;
        }
    assert_true(replaced > 0);
    FILE *file = fopen(path_in(f, copy, path), "wb");
    assert_true(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    free(bytes);
}

#endif
