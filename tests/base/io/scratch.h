/* io/scratch.h - for tests: a context, a temporary folder with files, and an allocator that fails on demand. */
#ifndef TESTS_IO_SCRATCH_H
#define TESTS_IO_SCRATCH_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/context.h"
#include "failing.h"

typedef struct scratch {
    att_context *context;
    char folder[64], path[128]; /* path: "<folder>/file", for the test's main file */
    failing memory;
    long questions_left; /* number of stop questions answered no before all are answered yes; -1: always no */
    int warnings;        /* number of logged warnings */
} scratch;

static inline bool scratch_stop(void *user)
{
    scratch *self = user;
    if (self->questions_left > 0)
        self->questions_left--;
    else
        return self->questions_left == 0;
    return false;
}

static inline void scratch_log(void *user, att_log_level level, const char *line)
{
    scratch *self = user;
    (void)line;
    self->warnings += level == ATT_LOG_WARNING;
}

static inline int scratch_setup(void **state)
{
    scratch *self = calloc(1, sizeof(*self));
    self->questions_left = -1;
    strcpy(self->folder, "/tmp/att_test_XXXXXX");
    if (mkdtemp(self->folder) == NULL)
        return -1;
    snprintf(self->path, sizeof(self->path), "%s/file", self->folder);
    att_settings settings = failing_settings(&self->memory);
    settings.stop = scratch_stop;
    settings.stop_user = self;
    settings.log = scratch_log;
    settings.log_user = self;
    *state = self;
    return att_context_create_with(&settings, NULL, &self->context) == ATT_OK ? 0 : -1;
}

/* Returns the number of names in the folder, without "." and "..". */
static inline int scratch_file_count(const scratch *self)
{
    DIR *folder = opendir(self->folder);
    int count = -2;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Checks that the test has freed all memory. */
static inline int scratch_teardown(void **state)
{
    scratch *self = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", self->folder);
    int result = system(command);
    att_context_destroy(&self->context);
    free(self);
    return result;
}

/* Writes the path of a file in the folder, and creates the folders that it lies in. Returns the path. */
static inline const char *scratch_path(const scratch *self, const char *name, char path[512])
{
    assert_true(snprintf(path, 512, "%s/%s", self->folder, name) < 512);
    for (char *slash = strchr(path + strlen(self->folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return path;
}

/* Writes <folder>/<name>, and creates missing folders. */
static inline void scratch_write_as(const scratch *self, const char *name, const void *bytes, size_t size)
{
    char path[512];
    FILE *file = fopen(scratch_path(self, name, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void scratch_text(const scratch *self, const char *name, const char *text)
{
    scratch_write_as(self, name, text, strlen(text));
}

static inline void scratch_write(const scratch *self, const void *bytes, size_t size)
{
    FILE *file = fopen(self->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Writes a byte into the test's main file and returns the previous byte. */
static inline int scratch_exchange_byte(const scratch *self, size_t at, int byte)
{
    FILE *file = fopen(self->path, "r+b");
    assert_non_null(file);
    fseek(file, (long)at, SEEK_SET);
    int before = fgetc(file);
    fseek(file, (long)at, SEEK_SET);
    fputc(byte, file);
    assert_int_equal(fclose(file), 0);
    return before;
}

static inline void assert_file(const char *path, const void *expected, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc(size + 1);
    size_t got = fread(bytes, 1, size + 1, file);
    fclose(file);
    assert_int_equal(got, size);
    assert_memory_equal(bytes, expected, size);
    free(bytes);
}

static inline void assert_text_file(const char *path, const char *expected)
{
    assert_file(path, expected, strlen(expected));
}

/* Runs `call` with the 1st, 2nd, ... allocation failing, until it succeeds. After success, `call` frees what it made.
 */
static inline void assert_survives_lack_of_memory(scratch *self, att_status (*call)(scratch *self))
{
    lack of = lack_of_memory(self->context, &self->memory);
    while (lack_again(&of))
        of.status = call(self);
}

/* Runs `call` with the 1st, 2nd, ... stop question answered yes, until it succeeds. Each earlier run must return
 * ERR_STOPPED with a message and leave no memory allocated. Returns the number of questions. */
static inline long assert_stops(scratch *self, att_status (*call)(scratch *self))
{
    for (long allowed = 0; allowed < 10000; allowed++) {
        size_t before = att_context_allocations(self->context).bytes_now;
        self->questions_left = allowed;
        att_status status = call(self);
        self->questions_left = -1;
        assert_int_equal(att_context_allocations(self->context).bytes_now, before);
        if (status == ATT_OK)
            return allowed;
        assert_int_equal(status, ATT_ERR_STOPPED);
        assert_message_has(self, "stopped on request while reading it");
    }
    fail_msg("the call never succeeded");
    return 0;
}

/* A test with a scratch, `self`. */
#define SCRATCH_TEST(name) TEST_WITH(name, scratch *self, scratch_setup, scratch_teardown)

#endif
