/* Files for numpy.load(), read back by libarchive, whose reader of zip archives checks sizes and checksums. */
#include "base/io/npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <attscope/npz.h>

#include "base/io/scratch.h"

enum { LARGEST = 4096 };

/* A member of an archive: the header of its .npy file as text, and the numbers behind it. */
typedef struct member {
    char name[256], header[512];
    uint8_t bytes[LARGEST];
    const uint8_t *numbers;
    size_t size; /* of the numbers */
} member;

/* The archive in the test's main file. */
static struct archive *begin_reading(const scratch *self)
{
    struct archive *archive = archive_read_new();
    archive_read_support_format_zip(archive);
    assert_int_equal(archive_read_open_filename(archive, self->path, 512), ARCHIVE_OK);
    return archive;
}

/* Reads the next member; false at the end. */
static bool next_member(struct archive *archive, member *m)
{
    struct archive_entry *entry;
    const int found = archive_read_next_header(archive, &entry);
    if (found == ARCHIVE_EOF)
        return false;
    assert_int_equal(found, ARCHIVE_OK);
    snprintf(m->name, sizeof m->name, "%s", archive_entry_pathname(entry));
    const ssize_t length = archive_read_data(archive, m->bytes, LARGEST);
    assert_true(length >= 10);
    assert_int_equal(archive_entry_size(entry), length);
    assert_memory_equal(m->bytes, "\x93NUMPY\x01\x00", 8);
    const size_t header = m->bytes[8] + 256u * m->bytes[9];
    assert_true(header < sizeof m->header && 10 + header <= (size_t)length);
    assert_int_equal((10 + header) % 64, 0); /* numpy aligns the numbers */
    assert_int_equal(m->bytes[10 + header - 1], '\n');
    memcpy(m->header, m->bytes + 10, header);
    m->header[header] = '\0';
    m->numbers = m->bytes + 10 + header;
    m->size = (size_t)length - 10 - header;
    return true;
}

static void expect_member(struct archive *archive, const char *name, const char *type, const char *shape,
                          const void *numbers, size_t size)
{
    member m;
    char header[256];
    assert_true(next_member(archive, &m));
    assert_string_equal(m.name, name);
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    assert_memory_equal(m.header, header, (size_t)length);
    assert_int_equal(m.header[length + (int)strspn(m.header + length, " ")], '\n');
    assert_int_equal(m.size, size);
    if (size > 0)
        assert_memory_equal(m.numbers, numbers, size);
}

static void end_reading(struct archive *archive)
{
    member m;
    assert_false(next_member(archive, &m));
    archive_read_free(archive);
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

static const double map[2][3] = {{0.25, -1, 1e300}, {NAN, INFINITY, -0.0}};
static const float weights[1][2][2] = {{{1, 2}, {3, 4}}};
static const int64_t classes[] = {INT64_MIN, 7};
static const int32_t labels[] = {-1, 2, 3};
static const uint8_t pixels[] = {0, 255};
static const att_npz_array arrays[] = {
    {"map", "<f8", {2, {2, 3}}, map},           {"weights", "<f4", {3, {1, 2, 2}}, weights},
    {"classes", "<i8", {1, {2}}, classes},      {"labels", "<i4", {1, {3}}, labels},
    {"blocks.0.attn", "|u1", {1, {2}}, pixels}, {"logit", "<f8", {0}, map},
    {"nothing", "<f8", {2, {0, 3}}, NULL},
};
enum { ARRAYS = sizeof arrays / sizeof *arrays };

SCRATCH_TEST(arrays_are_read_as_they_were_written)
{
    CHECK(self->context, att_npz_write(self->context, arrays, ARRAYS, self->path));
    struct archive *archive = begin_reading(self);
    expect_member(archive, "map.npy", "<f8", "2, 3,", map, sizeof map);
    expect_member(archive, "weights.npy", "<f4", "1, 2, 2,", weights, sizeof weights);
    expect_member(archive, "classes.npy", "<i8", "2,", classes, sizeof classes);
    expect_member(archive, "labels.npy", "<i4", "3,", labels, sizeof labels);
    expect_member(archive, "blocks.0.attn.npy", "|u1", "2,", pixels, sizeof pixels);
    expect_member(archive, "logit.npy", "<f8", "", map, sizeof(double));
    expect_member(archive, "nothing.npy", "<f8", "0, 3,", NULL, 0);
    end_reading(archive);
}

SCRATCH_TEST(a_file_without_arrays_is_an_empty_archive)
{
    CHECK(self->context, att_npz_write(self->context, arrays, 0, self->path));
    end_reading(begin_reading(self));
}

static const char *text(const void *user, int64_t index)
{
    return ((const char *const *)user)[index];
}

/* Texts are code points of 4 bytes, as many for each as the longest has; bytes that are not UTF-8 are '?'. */
SCRATCH_TEST(texts_are_code_points)
{
    static const char *const texts[] = {"ab", "\xc3\xa9", "", "\xff"};
    static const uint32_t codes[4][2] = {{'a', 'b'}, {0xe9, 0}, {0, 0}, {'?', 0}};
    att_npz *npz;
    CHECK(self->context, att_npz_open(self->context, self->path, &npz));
    CHECK(self->context, att_npz_add_texts(npz, "names", 4, text, texts));
    CHECK(self->context, att_npz_commit(&npz));
    struct archive *archive = begin_reading(self);
    expect_member(archive, "names.npy", "<U2", "4,", codes, sizeof codes);
    end_reading(archive);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

SCRATCH_TEST(what_numpy_could_not_load_is_refused)
{
    char long_name[202];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const att_npz_array refused[] = {
        {"", "<f8", {0}, map},    {"a/b", "<f8", {0}, map}, {long_name, "<f8", {0}, map},
        {"map", "<f2", {0}, map}, {"map", "f8", {0}, map},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_fails(self->context, att_npz_write(self->context, &refused[i], 1, self->path), ATT_ERR_ARGUMENT,
                     "cannot be written as .npz");
    const att_npz_array large = {"map", "<f8", {2, {1 << 14, 1 << 14}}, map};
    assert_fails(self->context, att_npz_write(self->context, &large, 1, self->path), ATT_ERR_ARGUMENT,
                 "more than 2 GiB");
    assert_fails(self->context, att_npz_write(self->context, arrays, 65536, self->path), ATT_ERR_ARGUMENT,
                 "at most 65535 arrays");
    assert_int_equal(scratch_file_count(self), 0);
}

/* An earlier file stays as it was. */
SCRATCH_TEST(what_is_not_finished_leaves_no_file)
{
    att_npz *npz;
    scratch_text(self, "file", "before");
    CHECK(self->context, att_npz_open(self->context, self->path, &npz));
    CHECK(self->context, att_npz_add(npz, "labels", "<i4", att_shape_of(3), labels, sizeof labels));
    att_npz_abort(&npz);
    assert_null(npz);
    assert_text_file(self->path, "before");
    assert_int_equal(scratch_file_count(self), 1);
}

static att_status write_arrays(scratch *self)
{
    return att_npz_write(self->context, arrays, ARRAYS, self->path);
}

SCRATCH_TEST(lack_of_memory_is_survived)
{
    assert_survives_lack_of_memory(self, write_arrays);
}
