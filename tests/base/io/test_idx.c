#include "base/io/idx.h"

#include <zlib.h>

#include "base/core/memory.h"
#include "base/io/scratch.h"

enum { CAP = 1000 };

static const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60};

static void write_gzipped(const scratch *self, const void *bytes, unsigned size)
{
    gzFile file = gzopen(self->path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

static att_status read_idx(scratch *self)
{
    att_idx idx;
    att_status status = att_idx_read(self->context, self->path, CAP, &idx);
    if (status == ATT_OK) {
        assert_true(att_shape_equal(idx.shape, att_shape_of(2, 3)));
        assert_memory_equal(idx.bytes, good + 12, 6);
        att_free(self->context, idx.bytes);
    }
    return status;
}

SCRATCH_TEST(plain_and_gzipped_files_are_read)
{
    scratch_write(self, good, sizeof(good));
    assert_int_equal(read_idx(self), ATT_OK);
    write_gzipped(self, good, sizeof(good));
    assert_int_equal(read_idx(self), ATT_OK);
}

static void expect(scratch *self, const void *bytes, size_t size, att_status status, const char *part)
{
    att_idx idx = {.bytes = NULL};
    size_t allocated = att_context_allocations(self->context).bytes_now;
    scratch_write(self, bytes, size);
    assert_fails(self->context, att_idx_read(self->context, self->path, CAP, &idx), status, self->path);
    assert_message_has(self, part);
    write_gzipped(self, bytes, (unsigned)size);
    assert_int_equal(att_idx_read(self->context, self->path, CAP, &idx), status);
    assert_null(idx.bytes);
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

SCRATCH_TEST(truncated_and_malformed_files_are_refused)
{
    for (size_t size = 0; size < sizeof(good); size++)
        expect(self, good, size, ATT_ERR_FORMAT, size < 12 ? "truncated" : "");
    uint8_t bytes[sizeof(good) + 1] = {0};
    memcpy(bytes, good, sizeof(good));
    expect(self, bytes, sizeof(bytes), ATT_ERR_FORMAT, "longer");
    bytes[0] = 1;
    expect(self, bytes, sizeof(good), ATT_ERR_FORMAT, "not an IDX");
    bytes[0] = 0;
    bytes[2] = 0x0d;
    expect(self, bytes, sizeof(good), ATT_ERR_UNSUPPORTED, "0x0d");
    bytes[2] = 8;
    bytes[3] = 5;
    expect(self, bytes, sizeof(good), ATT_ERR_FORMAT, "5 dimensions");
    bytes[3] = 0;
    expect(self, bytes, sizeof(good), ATT_ERR_FORMAT, "0 dimensions");
    bytes[3] = 2;
    bytes[10] = 4;
    expect(self, bytes, sizeof(good), ATT_ERR_UNSUPPORTED, "limit of 1000");
    memset(bytes + 4, 0xff, 8);
    expect(self, bytes, sizeof(good), ATT_ERR_UNSUPPORTED, "limit");
}

SCRATCH_TEST(dimensions_beyond_what_a_gzip_can_hold_are_refused)
{
    static const uint8_t large[] = {0, 0, 8, 1, 0x10, 0, 0, 0};
    att_idx idx;
    write_gzipped(self, large, sizeof(large));
    assert_int_equal(att_idx_read(self->context, self->path, SIZE_MAX / 4, &idx), ATT_ERR_FORMAT);
    assert_true(att_context_allocations(self->context).bytes_peak < 1 << 20);
}

SCRATCH_TEST(a_damaged_gzip_is_refused)
{
    write_gzipped(self, good, sizeof(good));
    uint8_t bytes[256];
    FILE *file = fopen(self->path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    bytes[size - 6] ^= 1; /* in the checksum */
    scratch_write(self, bytes, size);
    assert_int_equal(read_idx(self), ATT_ERR_FORMAT);
    scratch_write(self, bytes, size - 9);
    assert_int_equal(read_idx(self), ATT_ERR_FORMAT);
}

SCRATCH_TEST(a_missing_file_is_not_found)
{
    assert_int_equal(read_idx(self), ATT_ERR_NOT_FOUND);
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    write_gzipped(self, good, sizeof(good));
    assert_survives_lack_of_memory(self, read_idx);
}
