/* fuzz.h - shared by the fuzz targets: a context with little memory, and a temporary file.
 *
 * A target calls fuzz_end(fuzz_begin()) around its work, which checks that all memory was freed.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/attscope.h>
#include <attscope/lab.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "requirement failed: %s\n", what);
    abort();
}

static inline att_context *fuzz_context(void)
{
    static att_context *context;
    if (!context) {
        att_settings settings = att_settings_defaults();
        settings.threads = 1;
        settings.memory_limit = (size_t)256 << 20;
        fuzz_require(att_context_create(&settings, &context) == ATT_OK, "a context");
    }
    return context;
}

static inline size_t fuzz_begin(void)
{
    return att_context_allocations(fuzz_context()).bytes_now;
}

static inline void fuzz_end(size_t bytes_at_begin)
{
    fuzz_require(fuzz_begin() == bytes_at_begin, "all memory was freed");
}

/* The folder for this process's files: a new folder in $TMPDIR, which tools/fuzz removes. */
static inline const char *fuzz_folder(void)
{
    static char folder[256];
    if (!*folder) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/att_fuzz_XXXXXX", parent ? parent : "/tmp");
        fuzz_require(mkdtemp(folder) != NULL, "a folder");
    }
    return folder;
}

/* Writes the bytes to the file `name` in that folder. Returns its path, which is valid until the next call. */
static inline const char *fuzz_file(const char *name, const void *bytes, size_t size)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    fuzz_require(file >= 0 && write(file, bytes, size) == (ssize_t)size && close(file) == 0, "a file");
    return path;
}

/* An open file with one tensor that belongs to no network. Call it before fuzz_begin(): the file stays open. */
static inline const att_tensors *fuzz_weights(void)
{
    static const char header[] = "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    static att_tensors *file;
    if (!file) {
        char bytes[8 + sizeof header - 1 + 4] = {sizeof header - 1};
        memcpy(bytes + 8, header, sizeof header - 1);
        const char *path = fuzz_file("weights.safetensors", bytes, sizeof bytes);
        fuzz_require(att_tensors_open(fuzz_context(), path, &file) == ATT_OK, "weights");
    }
    return file;
}

/* Reads every tensor of an open file, as its type and as f32. Tensors of PyTorch files may be larger than the file. */
static inline void fuzz_read_tensors(const att_tensors *file)
{
    for (int i = 0; i < att_tensors_count(file); i++) {
        att_tensors_info info = att_tensors_at(file, i);
        fuzz_require(att_tensors_find(file, info.name) == i, "a tensor is found by its name");
        fuzz_require(info.count >= 0 && info.count <= 1 << 25, "a tensor is not larger than its file");
        void *out = malloc((size_t)info.count * 8 + 1);
        fuzz_require(out != NULL && att_tensors_read(file, i, info.dtype, out, info.count) == ATT_OK,
                     "a tensor of an open file can be read");
        (void)att_tensors_read_f32(file, i, out, info.count);
        free(out);
    }
    for (int i = 0; i < att_tensors_metadata_count(file); i++)
        fuzz_require(att_tensors_metadata(file, att_tensors_metadata_key(file, i)) != NULL,
                     "metadata is found by its key");
}

#endif
