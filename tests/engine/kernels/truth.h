/* kernels/truth.h - the reference results of drawn cases, computed once for all processor tiers.
 *
 * The reference kernel takes most of the time of a comparison, and its results do not depend on the tier. The parent
 * process of kernels/tiers.h opens an unnamed file, which its children inherit one after another. A child that finds no
 * result for its inputs runs the reference and appends the result. The key of a result is a hash of everything that the
 * reference reads, so a test may change inputs after they were drawn.
 */
#ifndef ATT_TESTS_KERNELS_TRUTH_H
#define ATT_TESTS_KERNELS_TRUTH_H

#include <unistd.h>

#include "engine/kernels/case.h"
#include "engine/kernels/ref/list.h"

#define TRUTH_VARIABLE "ATT_TEST_TRUTHS" /* environment variable with the file's descriptor */

typedef struct truth_record {
    uint64_t key;
    int64_t bytes; /* of the outputs that follow */
} truth_record;

enum { TRUTH_MOST = 8192 };

typedef struct truth_file {
    int descriptor; /* -1: no file; every result is computed */
    bool opened;
    int64_t end;
    int count;
    struct {
        truth_record record;
        int64_t at;
    } known[TRUTH_MOST];
} truth_file;

static truth_file truths;

/* Called in the parent. Tests also work without the file. */
static inline void truth_create(void)
{
    char path[4096], number[16];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/att_truths_XXXXXX", folder ? folder : "/tmp");
    int descriptor = mkstemp(path);
    if (descriptor < 0)
        return;
    unlink(path);
    snprintf(number, sizeof number, "%d", descriptor);
    setenv(TRUTH_VARIABLE, number, 1);
}

static inline void truth_remember(truth_record record)
{
    if (truths.count < TRUTH_MOST) {
        truths.known[truths.count].record = record;
        truths.known[truths.count++].at = truths.end;
    }
    truths.end += (int64_t)sizeof record + record.bytes;
}

static inline void truth_open(void)
{
    const char *number = getenv(TRUTH_VARIABLE);
    truths.opened = true;
    truths.descriptor = number ? atoi(number) : -1;
    truth_record record;
    while (truths.descriptor >= 0 &&
           pread(truths.descriptor, &record, sizeof record, truths.end) == (ssize_t)sizeof record && record.key)
        truth_remember(record);
}

static inline uint64_t truth_mix(uint64_t key, const void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof key) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + at, bytes - at < sizeof word ? bytes - at : sizeof word);
        key = (key ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 29;
    }
    return key;
}

static inline uint64_t truth_mix_descs(uint64_t key, const att_desc *descs, int count)
{
    for (int i = 0; i < count; i++) {
        const int64_t scalars[] = {descs[i].dtype, descs[i].kind, descs[i].shape.rank};
        key = truth_mix(key, scalars, sizeof scalars);
        for (int axis = 0; axis < descs[i].shape.rank; axis++)
            key = truth_mix(key, &descs[i].shape.dims[axis], sizeof descs[i].shape.dims[axis]);
    }
    return key;
}

static inline uint64_t truth_key(const case_drawn *drawn)
{
    const case_setup *setup = &drawn->setup;
    uint64_t key = truth_mix(1, setup->op->name, strlen(setup->op->name));
    key = truth_mix(key, setup->definition->name, strlen(setup->definition->name)); /* seeds initial outputs */
    key = truth_mix(key, att_op_case_attrs(setup->op, setup->definition), setup->op->attrs_size);
    key = truth_mix(key, &setup->group, sizeof setup->group);
    key = truth_mix_descs(key, drawn->in, drawn->in_count);
    key = truth_mix_descs(key, drawn->out, drawn->out_count);
    for (int i = 0; i < drawn->in_count; i++)
        if (drawn->data[i])
            key = truth_mix(key, drawn->data[i],
                            (size_t)case_count(setup, &drawn->in[i]) * att_dtype_size(drawn->in[i].dtype));
    return key ? key : 1;
}

static inline size_t truth_bytes_of(const case_result *result, int out)
{
    return (size_t)result->count[out] * att_dtype_size(result->desc[out].dtype);
}

static inline bool truth_find(uint64_t key, case_result *result)
{
    int64_t at = 0, bytes = 0;
    for (int out = 0; out < result->out_count; out++)
        bytes += (int64_t)truth_bytes_of(result, out);
    for (int i = 0; i < truths.count && !at; i++)
        if (truths.known[i].record.key == key && truths.known[i].record.bytes == bytes)
            at = truths.known[i].at + (int64_t)sizeof(truth_record);
    for (int out = 0; at && out < result->out_count; out++) {
        size_t size = truth_bytes_of(result, out);
        assert_int_equal(pread(truths.descriptor, result->data[out], size, at), size);
        at += (int64_t)size;
    }
    return at != 0;
}

static inline void truth_keep(uint64_t key, const case_result *result)
{
    truth_record record = {.key = key};
    int64_t at = truths.end + (int64_t)sizeof record;
    bool written = true;
    for (int out = 0; written && out < result->out_count; out++) {
        size_t size = truth_bytes_of(result, out);
        written = pwrite(truths.descriptor, result->data[out], size, at + record.bytes) == (ssize_t)size;
        record.bytes += (int64_t)size;
    }
    /* The record is written last, so that a full disk leaves no incomplete result: its place then reads as zeros. */
    if (written && pwrite(truths.descriptor, &record, sizeof record, truths.end) == (ssize_t)sizeof record)
        truth_remember(record);
}

/* As case_run() of the op's reference kernel in one part, with all outputs read. */
static inline void truth_run(const case_drawn *drawn, case_result *result)
{
    if (!truths.opened)
        truth_open();
    uint64_t key = truths.descriptor >= 0 ? truth_key(drawn) : 0;
    case_outputs(drawn, 0, result);
    if (truths.descriptor >= 0 && truth_find(key, result))
        return;
    case_result_free(result);
    assert_true(case_run(drawn, case_kernel(att_kernels_ref, drawn->setup.op->name), 1, 0, result));
    if (truths.descriptor >= 0)
        truth_keep(key, result);
}

#endif
