#include "base/io/archive.h"

#include <pthread.h>

#include <zlib.h>

#include "base/core/memory.h"
#include "base/io/pack.h"

enum { LARGE = 100000, FILES = 4, CACHE = 1 << 20 };

static const char *const kinds[] = {"ustar", "pax", "gnutar", "zip", "zip0", "ustar.gz", "pax.gz"};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static char large[LARGE];
static char long_name[200];
static pack_file files[FILES] = {
    {"a/first", "first", 5}, {"a/empty", "", 0}, {long_name, "long name", 9}, {"b/large", large, LARGE}};

static int prepare(void **state)
{
    uint32_t noise = 1;
    for (int i = 0; i < LARGE; i++) {
        noise = noise * 1664525 + 1013904223;
        large[i] = (char)(i % 3 == 0 ? noise >> 24 : 7);
    }
    memset(long_name, 'x', sizeof(long_name) - 1);
    memcpy(long_name + 98, "/", 1);
    (void)state;
    return 0;
}

TEST_GROUP(prepare, NULL)

static void write_files(const scratch *self, const char *kind)
{
    pack_files(self->path, kind, files, FILES);
}

/* Opens the file self->path as an archive; the caller closes it. */
static att_archive *open_archive(scratch *self, size_t cache)
{
    att_archive *archive;
    CHECK(self->context, att_archive_open(self->context, self->path, cache, &archive));
    return archive;
}

static void refused(scratch *self, size_t cache, att_status expected, const char *reason)
{
    att_archive *archive = NULL;
    assert_int_equal(att_archive_open(self->context, self->path, cache, &archive), expected);
    assert_message_has(self, reason);
    assert_null(archive);
}

/* Reads the first bytes of the file self->path, at most `room`, and returns their number. */
static size_t read_back(const scratch *self, void *bytes, size_t room)
{
    FILE *file = fopen(self->path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    return size;
}

static void assert_member(const att_archive *archive, att_context *context, int64_t index, const pack_file *expected)
{
    assert_string_equal(att_archive_name(archive, index), expected->name);
    assert_int_equal(att_archive_size(archive, index), expected->size);
    char *bytes = malloc(expected->size + 1);
    att_status status = att_archive_read(archive, context, index, bytes);
    if (status != ATT_OK)
        fail_msg("%s", att_context_message(context));
    assert_memory_equal(bytes, expected->bytes, expected->size);
    free(bytes);
}

SCRATCH_TEST(every_format_is_read_in_any_order)
{
    for (int k = 0; k < KINDS; k++) {
        write_files(self, kinds[k]);
        att_archive *archive = open_archive(self, CACHE);
        bool gzipped = strchr(kinds[k], '.') != NULL, zipped = strncmp(kinds[k], "zip", 3) == 0;
        assert_string_equal(att_archive_kind(archive), gzipped ? "tar.gz" : zipped ? "zip" : "tar");
        assert_int_equal(att_archive_count(archive), FILES);
        assert_int_equal(att_archive_skipped(archive), 0);
        for (int i = FILES - 1; i >= 0; i--)
            assert_member(archive, self->context, i, &files[i]);
        att_archive_close(&archive);
        assert_null(archive);
    }
}

typedef struct reader {
    const att_archive *archive;
    att_context *context;
    bool wrong;
} reader;

static void *read_many(void *user)
{
    reader *self = user;
    char *bytes = malloc(LARGE);
    for (int round = 0; round < 50; round++)
        if (att_archive_read(self->archive, self->context, 3, bytes) != ATT_OK || memcmp(bytes, large, LARGE) != 0)
            self->wrong = true;
    free(bytes);
    return NULL;
}

SCRATCH_TEST(threads_read_one_archive_at_the_same_time)
{
    static const char *const some[] = {"pax", "zip", "ustar.gz"};
    for (int k = 0; k < 3; k++) {
        pthread_t threads[4];
        reader readers[4];
        write_files(self, some[k]);
        att_archive *archive = open_archive(self, CACHE);
        for (int t = 0; t < 4; t++) {
            readers[t] = (reader){archive, self->context, false};
            assert_int_equal(pthread_create(&threads[t], NULL, read_many, &readers[t]), 0);
        }
        for (int t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
            assert_false(readers[t].wrong);
        }
        att_archive_close(&archive);
    }
}

SCRATCH_TEST(unsafe_members_are_skipped)
{
    static const char *const skipped[] = {"../up", "a/../../up", "/absolute", "a/.."};
    static const pack_file kept = {"..a/b..", "kept", 4};
    pack made = pack_open(self->path, "pax");
    for (int i = 0; i < 4; i++)
        pack_entry(&made, skipped[i], AE_IFREG, NULL, "evil", 4);
    pack_entry(&made, "folder", AE_IFDIR, NULL, NULL, 0);
    pack_entry(&made, "link", AE_IFLNK, "/etc/passwd", NULL, 0);
    pack_entry(&made, "hard", AE_IFREG, "link", NULL, 0);
    pack_entry(&made, "pipe", AE_IFIFO, NULL, NULL, 0);
    pack_entry(&made, "././/..a/./b..", AE_IFREG, NULL, "kept", 4);
    pack_close(&made);
    att_archive *archive = open_archive(self, CACHE);
    assert_int_equal(att_archive_count(archive), 1);
    assert_int_equal(att_archive_skipped(archive), 7);
    assert_member(archive, self->context, 0, &kept);
    att_archive_close(&archive);
}

/* Writes the tar header of a file (type 0), or of a hard link in old tars (type 1). */
static void make_tar_header(uint8_t header[512], const char *name, int64_t size, char type)
{
    char *text = memset(header, 0, 512);
    snprintf(text, 100, "%s", name);
    memcpy(text + 100, "0000644", 8);
    snprintf(text + 124, 12, "%011llo", (long long)size);
    memcpy(text + 136, "00000000000", 12);
    memset(text + 148, ' ', 8);
    text[156] = type;
    memcpy(text + 157, "first", 6);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf(text + 148, 8, "%06o", sum);
}

/* Old tars mark a hard link as a plain file. It has no bytes of its own. */
SCRATCH_TEST(hard_links_are_skipped)
{
    static uint8_t tar[4 * 512];
    make_tar_header(tar, "hard", 0, '1');
    scratch_write(self, tar, sizeof(tar));
    att_archive *archive = open_archive(self, CACHE);
    assert_int_equal(att_archive_count(archive), 0);
    assert_int_equal(att_archive_skipped(archive), 1);
    att_archive_close(&archive);
}

/* Opens the bytes as an archive and returns the number of warnings. */
static int warnings_of(scratch *self, const void *bytes, size_t size)
{
    self->warnings = 0;
    scratch_write(self, bytes, size);
    att_archive *archive = open_archive(self, CACHE);
    assert_int_equal(att_archive_count(archive), 1);
    att_archive_close(&archive);
    return self->warnings;
}

/* A tar cut between two files looks complete. Two blocks of zeros inside a file are not taken for the end. */
SCRATCH_TEST(a_tar_without_its_end_gives_a_warning)
{
    enum { BLOCK = 512 };
    static uint8_t tar[5 * BLOCK];
    make_tar_header(tar, "zeros", 2 * BLOCK, '0');
    assert_int_equal(warnings_of(self, tar, 5 * BLOCK), 0);
    assert_int_equal(warnings_of(self, tar, 4 * BLOCK), 1);
    assert_int_equal(warnings_of(self, tar, 3 * BLOCK), 1);
    for (int k = 0; k < KINDS; k++) {
        self->warnings = 0;
        write_files(self, kinds[k]);
        att_archive *archive = open_archive(self, CACHE);
        att_archive_close(&archive);
        assert_int_equal(self->warnings, 0);
    }
}

SCRATCH_TEST(unpacked_files_are_kept_up_to_a_limit)
{
    write_files(self, "ustar.gz");
    refused(self, LARGE + 13, ATT_ERR_UNSUPPORTED, "unpack it");
    att_archive *archive = open_archive(self, LARGE + 14);
    att_archive_close(&archive);
    write_files(self, "ustar");
    archive = open_archive(self, 0);
    att_archive_close(&archive);
}

static size_t file_size(const scratch *self)
{
    struct stat info;
    assert_int_equal(stat(self->path, &info), 0);
    return (size_t)info.st_size;
}

/* Opens self->path and reads all listed files. Returns the number of files that could not be read, -1 if the archive
 * did not open. */
static int open_and_read_all(scratch *self)
{
    att_archive *archive;
    if (att_archive_open(self->context, self->path, CACHE, &archive) != ATT_OK)
        return -1;
    int failed = 0;
    for (int64_t i = 0; i < att_archive_count(archive); i++) {
        size_t size = att_archive_size(archive, i);
        if (size > 1 << 20)
            continue;
        char *bytes = malloc(size + 1);
        failed += att_archive_read(archive, self->context, i, bytes) != ATT_OK;
        free(bytes);
    }
    att_archive_close(&archive);
    return failed;
}

SCRATCH_TEST(a_truncated_archive_is_not_read_as_whole)
{
    size_t allocated = att_context_allocations(self->context).bytes_now;
    for (int k = 0; k < KINDS; k++) {
        write_files(self, kinds[k]);
        assert_int_equal(truncate(self->path, (off_t)(file_size(self) / 2)), 0);
        if (open_and_read_all(self) == 0)
            fail_msg("half a %s was read as if it were whole", kinds[k]);
        if (strstr(kinds[k], ".gz"))
            assert_message_has(self, "the gzip data are truncated");
    }
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

/* A zip without its directory, and one also cut between two files, still begins as a zip. */
SCRATCH_TEST(a_zip_without_its_directory_is_refused)
{
    static uint8_t zip[1 << 12];
    static const size_t end_record = 22;
    pack_files(self->path, "zip0", files, 3);
    size_t size = read_back(self, zip, sizeof(zip)), cut = 1;
    while (memcmp(zip + cut, "PK\3\4", 4) != 0)
        cut++;
    scratch_write(self, zip, size - end_record);
    refused(self, CACHE, ATT_ERR_FORMAT, "without its end");
    scratch_write(self, zip, cut);
    refused(self, CACHE, ATT_ERR_FORMAT, "without its end");
}

/* Without a checksum, one changed byte of stored content would decode as another image. */
SCRATCH_TEST(changed_bytes_of_a_zip_are_noticed_when_they_are_read)
{
    static uint8_t zip[1 << 12];
    char bytes[16];
    pack_files(self->path, "zip0", files, 3);
    size_t at = 0, size = read_back(self, zip, sizeof(zip));
    while (memcmp(zip + at, files[2].bytes, files[2].size) != 0)
        at++;
    assert_true(at < size);
    scratch_exchange_byte(self, at, 'L');
    att_archive *archive = open_archive(self, CACHE);
    assert_member(archive, self->context, 0, &files[0]);
    assert_fails(self->context, att_archive_read(archive, self->context, 2, bytes), ATT_ERR_FORMAT, files[2].name);
    assert_message_has(self, "its checksum (CRC-32) differs");
    att_archive_close(&archive);
}

/* As in a self-extracting archive: offsets in the directory do not count the bytes before the archive. Some programs
 * leave bytes after the end. */
SCRATCH_TEST(a_zip_among_other_bytes_is_read)
{
    static uint8_t zip[1 << 12];
    pack_files(self->path, "zip", files, 3);
    size_t size = read_back(self, zip + 100, sizeof(zip) - 200);
    memset(zip, '#', 100);
    memset(zip + 100 + size, '\n', 100);
    scratch_write(self, zip, 100 + size + 100);
    att_archive *archive = open_archive(self, CACHE);
    for (int i = 0; i < 3; i++)
        assert_member(archive, self->context, i, &files[i]);
    att_archive_close(&archive);
}

/* Sets two bytes at `local` of the header of a zip's only file, and two at `central` of the file's entry in the
 * directory. */
static void change_zip(const scratch *self, size_t local, size_t central, int value)
{
    uint8_t bytes[4096];
    size_t size = read_back(self, bytes, sizeof(bytes)), at = size - 4;
    while (at > 0 && memcmp(bytes + at, "PK\1\2", 4) != 0)
        at--;
    assert_true(at > 0);
    const uint8_t changed[2] = {(uint8_t)value};
    memcpy(bytes + local, changed, sizeof(changed));
    memcpy(bytes + at + central, changed, sizeof(changed));
    scratch_write(self, bytes, size);
}

SCRATCH_TEST(a_zip_with_wrong_sizes_is_refused)
{
    static const pack_file only = {"file", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 32};
    for (int more = -1; more <= 1; more++) {
        pack_files(self->path, "zip", &only, 1);
        change_zip(self, 22, 24, (int)only.size + more);
        assert_int_equal(open_and_read_all(self), more == 0 ? 0 : 1);
        if (more != 0)
            assert_message_has(self, "its size is wrong");
    }
}

static att_status list_all(void *user, const char *name, size_t size, att_archive_use *use)
{
    (void)user, (void)name, (void)size;
    *use = ATT_ARCHIVE_LIST;
    return ATT_OK;
}

static att_status pass_first(void *user, const char *name, size_t size, att_archive_use *use)
{
    (void)user, (void)size;
    *use = strcmp(name, "1") == 0 ? ATT_ARCHIVE_IGNORE : ATT_ARCHIVE_KEEP;
    return ATT_OK;
}

/* A directory may list files in another order than their bytes. */
SCRATCH_TEST(checksums_are_matched_by_offset)
{
    static const pack_file two[] = {{"1", "one", 3}, {"2", "two", 3}};
    static uint8_t zip[1 << 12], entry[1 << 8];
    size_t at[3] = {0}, found = 0;
    pack_files(self->path, "zip0", two, 2);
    size_t size = read_back(self, zip, sizeof(zip));
    for (size_t i = 0; i < size && found < 3; i++)
        if (memcmp(zip + i, found < 2 ? "PK\1\2" : "PK\5\6", 4) == 0)
            at[found++] = i;
    size_t length = at[1] - at[0];
    assert_true(found == 3 && length == at[2] - at[1] && length <= sizeof(entry));
    memcpy(entry, zip + at[0], length);
    memmove(zip + at[0], zip + at[1], length);
    memcpy(zip + at[1], entry, length);
    scratch_write(self, zip, size);
    att_archive *archive = open_archive(self, CACHE);
    assert_member(archive, self->context, 0, &two[0]);
    assert_member(archive, self->context, 1, &two[1]);
    att_archive_close(&archive);
    assert_int_equal(att_archive_open_some(self->context, self->path, CACHE, pass_first, NULL, &archive), ATT_OK);
    assert_member(archive, self->context, 0, &two[1]);
    att_archive_close(&archive);
}

SCRATCH_TEST(unsupported_compression_is_named)
{
    static const pack_file only = {"a/file", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 32};
    static const struct {
        size_t local, central;
        int value;
        const char *reason;
    } changes[] = {{8, 10, 12, "method \"bzip"},
                   {8, 10, 14, "method \"lzma\""},
                   {8, 10, 9, "method \"deflation-64"},
                   {8, 10, 93, "method \""},
                   {6, 8, 1, "encrypted"}};
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        pack_files(self->path, "zip", &only, 1);
        change_zip(self, changes[i].local, changes[i].central, changes[i].value);
        refused(self, CACHE, ATT_ERR_UNSUPPORTED, changes[i].reason);
        assert_message_has(self, "a/file in ");
        /* A file that is not read may have any compression method. */
        att_archive *archive;
        assert_int_equal(att_archive_open_some(self->context, self->path, CACHE, list_all, NULL, &archive), ATT_OK);
        assert_int_equal(att_archive_count(archive), 1);
        att_archive_close(&archive);
    }
}

/* Writes `bytes` as a gzip member, `times` times in a row; together they decompress to one stream. */
static void write_gzip(FILE *file, const void *bytes, size_t size, int times)
{
    static uint8_t packed[1 << 16];
    z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)bytes,
                  .avail_in = (unsigned)size,
                  .next_out = packed,
                  .avail_out = sizeof(packed)};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    for (int i = 0; i < times; i++)
        assert_int_equal(fwrite(packed, 1, sizeof(packed) - z.avail_out, file), sizeof(packed) - z.avail_out);
    deflateEnd(&z);
}

/* The tar ends long before the gzip data, whose checksum comes at their end. */
SCRATCH_TEST(gzip_data_are_checked_to_their_end)
{
    enum { SIZE = 1 << 18 };
    uint8_t *tar = calloc(1, SIZE);
    make_tar_header(tar, "file", 0, '0');
    FILE *file = fopen(self->path, "wb");
    write_gzip(file, tar, SIZE, 1);
    fclose(file);
    free(tar);
    att_archive *archive = open_archive(self, CACHE);
    att_archive_close(&archive);
    size_t checksum = file_size(self) - 8;
    scratch_exchange_byte(self, checksum, scratch_exchange_byte(self, checksum, 0) ^ 1);
    refused(self, CACHE, ATT_ERR_FORMAT, "incorrect data check");
}

/* 2 MB that decompress to 2 GiB of zeros are refused at 1 GiB. Neither a ratio of 1000 below that size nor more than 1
 * GiB from a file of 12 MiB is refused. Bytes after the gzip data are ignored. */
SCRATCH_TEST(a_gzip_bomb_is_refused)
{
    enum { MIB = 1 << 20 };
    static const struct {
        int mib, file; /* MiB of decompressed data, and MiB of the file; 0: any size */
        att_status status;
    } bombs[] = {{64, 0, ATT_OK}, {1040, 12, ATT_OK}, {2048, 0, ATT_ERR_FORMAT}};
    char *zeros = calloc(1, MIB);
    uint8_t header[512];
    att_archive *archive = NULL;
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(self->path, "wb");
        make_tar_header(header, "zeros", (int64_t)bombs[i].mib * MIB, '0');
        write_gzip(file, header, sizeof(header), 1);
        write_gzip(file, zeros, MIB, bombs[i].mib);
        fclose(file);
        assert_true(file_size(self) * 900 < (size_t)bombs[i].mib * MIB);
        if (bombs[i].file > 0)
            assert_int_equal(truncate(self->path, (off_t)bombs[i].file * MIB), 0);
        att_status status = att_archive_open_some(self->context, self->path, CACHE, list_all, NULL, &archive);
        assert_int_equal(status, bombs[i].status);
        att_archive_close(&archive);
    }
    assert_message_has(self, "unpacks to more than 1073741824 bytes");
    assert_message_has(self, "100 times the size");
    free(zeros);
}

static att_status list_members(scratch *self)
{
    att_archive *archive;
    att_status status = att_archive_open_some(self->context, self->path, CACHE, list_all, NULL, &archive);
    if (status == ATT_OK)
        att_archive_close(&archive);
    return status;
}

/* Decompression asks after each block whether to stop, also within one large file. */
SCRATCH_TEST(unpacking_stops_when_asked)
{
    enum { SIZE = 1 << 20, BLOCK = 1 << 15 };
    char *zeros = calloc(1, SIZE);
    pack_files(self->path, "ustar.gz", &(pack_file){"zeros", zeros, SIZE}, 1);
    assert_true(assert_stops(self, list_members) >= SIZE / BLOCK);
    free(zeros);
}

SCRATCH_TEST(double_compression_is_refused)
{
    static char tar[1 << 16];
    static const struct {
        const char *head, *reason;
    } inner[] = {{"\x1f\x8b\x08", "compressed twice, by gzip and then by gzip"},
                 {"BZh9", "compressed twice, by bzip2 and then by gzip"},
                 {"\xfd\x37zXZ", "compressed twice, by xz and then by gzip"}};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(self->path, "wb");
        write_gzip(file, inner[i].head, strlen(inner[i].head), 1);
        fclose(file);
        refused(self, CACHE, ATT_ERR_FORMAT, inner[i].reason);
    }
    write_files(self, "ustar.gz");
    size_t size = read_back(self, tar, sizeof(tar));
    FILE *file = fopen(self->path, "wb");
    write_gzip(file, tar, size, 1);
    fclose(file);
    refused(self, CACHE, ATT_ERR_FORMAT, "compressed twice");
    scratch_write(self, "\x28\xb5\x2f\xfd and more", 13);
    refused(self, CACHE, ATT_ERR_FORMAT, "compressed by zstd");
}

/* A zip of five small files, each with a stated size of 256 MiB. */
SCRATCH_TEST(a_zip_bomb_is_refused)
{
    static const pack_file five[] = {
        {"1", "aaaaaaaa", 8}, {"2", "aaaaaaaa", 8}, {"3", "aaaaaaaa", 8}, {"4", "aaaaaaaa", 8}, {"5", "aaaaaaaa", 8}};
    static uint8_t zip[1 << 12];
    pack_files(self->path, "zip", five, 5);
    size_t size = read_back(self, zip, sizeof(zip));
    for (size_t at = 0; at + 28 < size; at++) { /* sizes are little-endian */
        if (memcmp(zip + at, "PK\3\4", 4) == 0)
            memcpy(zip + at + 22, "\0\0\0\x10", 4);
        if (memcmp(zip + at, "PK\1\2", 4) == 0)
            memcpy(zip + at + 24, "\0\0\0\x10", 4);
    }
    scratch_write(self, zip, size);
    refused(self, CACHE, ATT_ERR_UNSUPPORTED, "unpack to more than 1073741824 bytes");
}

SCRATCH_TEST(damaged_archives_leak_nothing)
{
    size_t allocated = att_context_allocations(self->context).bytes_now;
    uint32_t noise = 1;
    for (int k = 0; k < KINDS; k++) {
        pack_files(self->path, kinds[k], files, 3);
        size_t size = file_size(self);
        for (size_t at = 0; at < size && at < 2000; at += 11) {
            noise = noise * 1664525 + 1013904223;
            int before = scratch_exchange_byte(self, at, (int)(noise >> 24));
            open_and_read_all(self);
            scratch_exchange_byte(self, at, before);
        }
        assert_int_equal(open_and_read_all(self), 0);
    }
    assert_int_equal(att_context_allocations(self->context).bytes_now, allocated);
}

SCRATCH_TEST(a_file_that_is_no_archive_is_refused)
{
    scratch_write(self, "hello, this is text", 19);
    refused(self, CACHE, ATT_ERR_FORMAT, self->path);
    scratch_write(self, "", 0);
    refused(self, CACHE, ATT_ERR_FORMAT, self->path);
    att_archive *archive;
    assert_int_equal(att_archive_open(self->context, "/no/such.tar", 1, &archive), ATT_ERR_NOT_FOUND);
}

static att_status open_gzipped(scratch *self)
{
    att_archive *archive;
    att_status status = att_archive_open(self->context, self->path, CACHE, &archive);
    if (status == ATT_OK)
        att_archive_close(&archive);
    return status;
}

static att_status read_deflated(scratch *self)
{
    att_archive *archive;
    att_status status = att_archive_open(self->context, self->path, CACHE, &archive);
    if (status != ATT_OK)
        return status;
    char *bytes = malloc(LARGE);
    status = att_archive_read(archive, self->context, 3, bytes);
    free(bytes);
    att_archive_close(&archive);
    return status;
}

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    write_files(self, "ustar.gz");
    assert_survives_lack_of_memory(self, open_gzipped);
    write_files(self, "zip");
    assert_survives_lack_of_memory(self, read_deflated);
}
