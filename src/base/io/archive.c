#include "base/io/archive_members.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/archive_source.h"
#include "base/io/system.h"
#include "base/io/zip.h"

enum { MAX_NAME = 4096 };
#define DEFLATED "deflation" /* libarchive's names of the two methods */
#define STORED "uncompressed"
static const int64_t max_members = (int64_t)1 << 26;

typedef struct archive_walk {
    att_archive *archive;
    att_archive_source source;
    struct archive *reader;
    struct archive_entry *entry;
    att_file_reader *directory; /* for reading a zip's directory; NULL if the archive is not a zip */
    att_zip zip;
    size_t cache_bytes, unpacked;
    att_archive_choose choose; /* NULL: the use of every file is KEEP */
    void *user;
} archive_walk;

static att_status fail_walk(const archive_walk *walk)
{
    ATT_TRY(att_check_stop(walk->archive->context, walk->archive->path));
    const char *own = walk->source.reason, *reason = *own ? own : archive_error_string(walk->reader);
    int code = *own ? 0 : archive_errno(walk->reader);
    return att_fail(walk->archive->context, code == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_FORMAT,
                    "%s: not a .tar, .tar.gz or .zip that can be read: %s", walk->archive->path,
                    reason ? reason : "it is truncated or damaged");
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Returns whether the path is relative, not empty, and without a ".." part. */
static bool name_is_safe(const char *name)
{
    if (*name == '\0' || *name == '/' || strlen(name) > MAX_NAME)
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return false;
    }
    return true;
}

/* Writes the normalized path to `text`: without empty parts and "." parts. Returns false if the path is not safe or the
 * result is empty. */
static bool normalize_name(const char *name, char text[MAX_NAME + 1])
{
    size_t length = 0;
    if (!name || !name_is_safe(name))
        return false;
    for (const char *part = name; *part;) {
        size_t size = strcspn(part, "/");
        if (size > 0 && !(size == 1 && *part == '.')) {
            if (length > 0)
                text[length++] = '/';
            memcpy(text + length, part, size);
            length += size;
        }
        part += size + (part[size] == '/');
    }
    text[length] = '\0';
    return length > 0;
}

static bool member_is_plain(struct archive_entry *entry)
{
    return archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) &&
           archive_entry_size_is_set(entry) && archive_entry_size(entry) >= 0 && archive_entry_sparse_count(entry) == 0;
}

/* --- a zip's directory ------------------------------------------------------------------------------------------- */

/* Returns the first member whose data begins after offset `begin`, or NULL. Members of a zip are sorted by offset. */
static att_archive_member *member_behind(const att_archive *archive, uint64_t begin)
{
    int64_t low = 0, high = archive->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((uint64_t)archive->members[middle].offset > begin)
            high = middle;
        else
            low = middle + 1;
    }
    return low < archive->count ? &archive->members[low] : NULL;
}

/* Stores the checksum of the directory entry whose local header is at offset `begin`. A member's local header is the
 * last one before its data. */
static void store_checksum(const att_archive *archive, uint64_t begin, uint32_t checksum)
{
    att_archive_member *found = member_behind(archive, begin);
    if (found && begin >= found->header) {
        found->header = begin;
        found->checksum = checksum;
    }
}

static att_status walk_directory(const att_archive *archive, const att_zip *zip, att_file_window *window)
{
    enum { PART = 1 << 20 };
    const uint8_t *bytes = NULL;
    size_t shown = 0;
    uint64_t at = zip->directory, end = at + zip->directory_bytes, length;
    for (uint64_t i = 0; i < zip->entries; i++, at += length, bytes += length, shown -= (size_t)length) {
        att_zip_entry entry;
        if (shown < ATT_ZIP_MOST_ENTRY)
            ATT_TRY(att_file_window_peek(window, at, PART, &bytes, &shown));
        uint64_t left = end - at < shown ? end - at : shown;
        ATT_TRY(att_zip_read_entry(zip, bytes, left, &entry, &length));
        store_checksum(archive, entry.begin + zip->offset, entry.checksum);
    }
    return ATT_OK;
}

/* Fails if the zip lacks its directory, as a truncated zip does. libarchive accepts such a zip. */
static att_status open_directory(archive_walk *walk)
{
    att_archive *archive = walk->archive;
    ATT_TRY(att_file_reader_open(archive->context, archive->path, &walk->directory));
    walk->zip = (att_zip){.context = archive->context, .path = archive->path, .reader = walk->directory};
    return att_zip_find_directory(&walk->zip);
}

/* Reads the checksums from the zip's directory, because libarchive does not provide them. */
static att_status read_checksums(const archive_walk *walk)
{
    att_file_window window = {.reader = walk->directory};
    att_status status = walk_directory(walk->archive, &walk->zip, &window);
    att_file_window_free(&window);
    return status;
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

static att_status grow(att_archive *archive)
{
    if (archive->count < archive->capacity)
        return ATT_OK;
    if (archive->count >= max_members)
        return att_fail(archive->context, ATT_ERR_UNSUPPORTED, "%s: more than %lld files", archive->path,
                        (long long)max_members);
    int64_t capacity = archive->capacity ? 2 * archive->capacity : 256;
    size_t bytes = (size_t)capacity * sizeof(att_archive_member);
    att_archive_member *members = att_reallocate(archive->context, archive->members, bytes);
    if (!members)
        return att_fail_memory(archive->context, bytes, archive->path);
    archive->members = members;
    archive->capacity = capacity;
    return ATT_OK;
}

static att_status keep_bytes(const archive_walk *walk, att_archive_member *added)
{
    att_archive *archive = walk->archive;
    if (added->size > walk->cache_bytes - archive->kept_bytes)
        return att_fail(archive->context, ATT_ERR_UNSUPPORTED,
                        "%s: its files exceed the limit of %zu bytes kept in memory; unpack it, or pack it as .tar or "
                        ".zip, which are read in place",
                        archive->path, walk->cache_bytes);
    if (added->size == 0)
        return ATT_OK;
    uint8_t *kept = att_reallocate(archive->context, NULL, added->size);
    if (!kept)
        return att_fail_memory(archive->context, added->size, added->name);
    la_ssize_t got = archive_read_data(walk->reader, kept, added->size);
    if (got < 0 || (size_t)got != added->size) {
        att_free(archive->context, kept);
        return fail_walk(walk);
    }
    added->kept = kept;
    archive->kept_bytes += added->size;
    return ATT_OK;
}

/* Writes libarchive's name of a zip member's compression method to `text`, "" for other archives. libarchive shows the
 * method only in the name of the format: "ZIP 2.0 (deflation)". */
static void get_compression(struct archive *reader, char *text, size_t size)
{
    const char *name = NULL;
    if ((archive_format(reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP)
        name = archive_format_name(reader);
    const char *from = name ? strchr(name, '(') : NULL;
    snprintf(text, size, "%.*s", from ? (int)strcspn(from + 1, ")") : 0, from ? from + 1 : "");
}

/* Fails if the member is encrypted or compressed by an unsupported method. */
static att_status check_compression(const archive_walk *walk, const char *name, const char *compression)
{
    const att_archive *archive = walk->archive;
    if (archive_entry_is_data_encrypted(walk->entry))
        return att_fail(archive->context, ATT_ERR_UNSUPPORTED, "%s in %s: encrypted; expected a zip without a password",
                        name, archive->path);
    if (*compression && strcmp(compression, DEFLATED) != 0 && strcmp(compression, STORED) != 0)
        return att_fail(archive->context, ATT_ERR_UNSUPPORTED,
                        "%s in %s: compressed by the method \"%s\", which is not supported; expected deflated or "
                        "stored files: unpack the zip and pack it again with zip -r",
                        name, archive->path, compression);
    return ATT_OK;
}

/* Limits the total uncompressed size of a zip. Files of a zip can share compressed data, so a small zip can claim any
 * total size. */
static att_status count_unpacked(archive_walk *walk, size_t size)
{
    att_archive *archive = walk->archive;
    walk->unpacked = att_size_sum(walk->unpacked, size);
    if (walk->unpacked > (size_t)walk->source.limit)
        return att_fail(archive->context, ATT_ERR_UNSUPPORTED, "%s: its files unpack to " ATT_UNPACK_TOO_MUCH,
                        archive->path, (long long)walk->source.limit);
    return ATT_OK;
}

static att_status add_member(archive_walk *walk)
{
    att_archive *archive = walk->archive;
    char compression[64], name[MAX_NAME + 1];
    if (archive_entry_filetype(walk->entry) == AE_IFDIR)
        return ATT_OK;
    if (!normalize_name(archive_entry_pathname(walk->entry), name) || !member_is_plain(walk->entry)) {
        archive->skipped++;
        return ATT_OK;
    }
    size_t size = (size_t)archive_entry_size(walk->entry);
    att_archive_use use = ATT_ARCHIVE_KEEP;
    if (walk->choose)
        ATT_TRY(walk->choose(walk->user, name, size, &use));
    if (use == ATT_ARCHIVE_IGNORE)
        return ATT_OK;
    get_compression(walk->reader, compression, sizeof compression);
    if (use == ATT_ARCHIVE_KEEP)
        ATT_TRY(check_compression(walk, name, compression));
    bool deflated = strcmp(compression, DEFLATED) == 0,
         plain = *compression == '\0' || strcmp(compression, STORED) == 0;
    if (deflated && use == ATT_ARCHIVE_KEEP)
        ATT_TRY(count_unpacked(walk, size));
    ATT_TRY(grow(archive));
    att_archive_member added = {.name = att_arena_string(&archive->names, name),
                                .size = size,
                                .offset = archive->begin + archive_filter_bytes(walk->reader, 0),
                                .deflated = deflated};
    if (!added.name)
        return att_fail_memory(archive->context, strlen(name), archive->path);
    if (archive->descriptor < 0 && use == ATT_ARCHIVE_KEEP)
        ATT_TRY(keep_bytes(walk, &added));
    else if (archive->descriptor >= 0 && plain && (int64_t)added.size > archive->end - added.offset)
        return att_fail(archive->context, ATT_ERR_FORMAT, "%s: truncated in %s", archive->path, added.name);
    archive->members[archive->count++] = added;
    return ATT_OK;
}

static att_status open_descriptor(att_archive *archive)
{
    struct stat info;
    archive->descriptor = att_system_open_regular(archive->path, O_RDONLY, &info);
    if (archive->descriptor < 0)
        return att_system_fail(archive->context, errno, archive->path, "opened");
    archive->end = info.st_size;
    return ATT_OK;
}

/* Called after the first header, when libarchive knows the format. Opens the descriptor unless the archive is a gzipped
 * tar. */
static att_status set_kind(archive_walk *walk)
{
    att_archive *archive = walk->archive;
    bool zip = (archive_format(walk->reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
    if (walk->source.packed) {
        archive->kind = "tar.gz";
        if (zip)
            return att_fail(archive->context, ATT_ERR_UNSUPPORTED,
                            "%s: a zip that is compressed by gzip; decompress it once", archive->path);
        return ATT_OK;
    }
    archive->kind = zip ? "zip" : "tar";
    if (archive->descriptor < 0)
        ATT_TRY(open_descriptor(archive));
    return zip ? open_directory(walk) : ATT_OK;
}

/* Warns if the tar may be truncated between two files: it lacks the two blocks of zeros at its end. This is not an
 * error, because some programs omit the two blocks. bytes: number of bytes read after the last file. */
static void check_tar_end(const archive_walk *walk, int64_t bytes)
{
    enum { TAR_END = 2 * 512 };
    const att_archive *archive = walk->archive;
    if (archive->kind && !att_archive_is_zip(archive) && bytes < TAR_END)
        att_log(archive->context, ATT_LOG_WARNING,
                "%s ends without the two blocks of zeros that end a tar: files at its end may be missing; compare its "
                "size or checksum with the original's",
                archive->path);
}

static att_status walk_members(archive_walk *walk)
{
    att_archive *archive = walk->archive;
    for (;;) {
        bool skipped = !archive->kind || archive_read_data_skip(walk->reader) != ARCHIVE_FATAL;
        int64_t end = archive_filter_bytes(walk->reader, 0);
        int code = skipped ? archive_read_next_header(walk->reader, &walk->entry) : ARCHIVE_FATAL;
        if (code == ARCHIVE_EOF) {
            check_tar_end(walk, archive_filter_bytes(walk->reader, 0) - end);
            break;
        }
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
            return fail_walk(walk);
        if (!archive->kind)
            ATT_TRY(set_kind(walk));
        ATT_TRY(add_member(walk));
        ATT_TRY(att_check_stop(archive->context, archive->path));
    }
    if (!archive->kind)
        return att_fail(archive->context, ATT_ERR_FORMAT, "%s: an archive without files", archive->path);
    if (!att_archive_source_finish(&walk->source))
        return fail_walk(walk);
    return walk->directory ? read_checksums(walk) : ATT_OK;
}

/* Returns NULL if memory is exhausted. */
static struct archive *make_reader(void)
{
    struct archive *reader = archive_read_new();
    if (reader) {
        archive_read_support_format_tar(reader);
        archive_read_support_format_zip(reader);
    }
    return reader;
}

/* An archive inside another one has a descriptor of the other's file from the start. */
static bool open_source(archive_walk *walk)
{
    const att_archive *archive = walk->archive;
    if (archive->descriptor < 0)
        return att_archive_source_open(&walk->source, walk->reader, archive->path);
    int descriptor = fcntl(archive->descriptor, F_DUPFD_CLOEXEC, 0);
    if (descriptor >= 0)
        return att_archive_source_open_part(&walk->source, walk->reader, descriptor, archive->begin,
                                            archive->end - archive->begin);
    snprintf(walk->source.reason, sizeof walk->source.reason, "%s", strerror(errno));
    return false;
}

static att_status open_and_walk(archive_walk *walk)
{
    att_archive *archive = walk->archive;
    walk->reader = make_reader();
    if (!walk->reader)
        return att_fail(archive->context, ATT_ERR_MEMORY, "%s: out of memory for reading it", archive->path);
    if (!open_source(walk))
        return fail_walk(walk);
    return walk_members(walk);
}

/* Switches the thread to a UTF-8 locale, because libarchive converts names from UTF-8 to the thread's locale and drops
 * those that the locale cannot represent. */
static att_status walk_in_utf8(archive_walk *walk)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    att_status status = open_and_walk(walk);
    archive_read_free(walk->reader);
    att_archive_source_close(&walk->source);
    att_file_reader_close(&walk->directory);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    return status;
}

att_status att_archive_open(att_context *context, const char *path, size_t cache_bytes, att_archive **out)
{
    return att_archive_open_some(context, path, cache_bytes, NULL, NULL, out);
}

/* Returns NULL if memory is exhausted. */
static att_archive *create(att_context *context, const char *path)
{
    att_archive *archive = att_allocate(context, sizeof *archive);
    if (!archive)
        return NULL;
    archive->context = context;
    archive->names.context = context;
    archive->descriptor = -1;
    archive->path = att_copy_string(context, path);
    if (!archive->path)
        att_archive_close(&archive);
    return archive;
}

att_status att_archive_open_some(att_context *context, const char *path, size_t cache_bytes, att_archive_choose choose,
                                 void *user, att_archive **out)
{
    if (access(path, R_OK) != 0)
        return att_fail(context, errno == ENOENT ? ATT_ERR_NOT_FOUND : ATT_ERR_IO, "%s could not be opened", path);
    att_archive *archive = create(context, path);
    if (!archive)
        return att_fail_memory(context, sizeof *archive, path);
    archive_walk walk = {
        .archive = archive, .cache_bytes = cache_bytes, .choose = choose, .user = user, .source.context = context};
    att_status status = walk_in_utf8(&walk);
    if (status == ATT_OK)
        *out = archive;
    else
        att_archive_close(&archive);
    return status;
}

/* Fails unless the archive begins with the header of a tar. */
static att_status check_begins_as_tar(const att_archive *archive)
{
    uint8_t header[ATT_TAR_HEADER];
    int64_t size = archive->end - archive->begin;
    ssize_t got = att_system_read_at(archive->descriptor, header, size < ATT_TAR_HEADER ? (size_t)size : ATT_TAR_HEADER,
                                     archive->begin);
    if (got < 0)
        return att_fail(archive->context, ATT_ERR_IO, "%s could not be read: %s", archive->path, strerror(errno));
    if (att_tar_begins(header, (size_t)got))
        return ATT_OK;
    return att_fail(archive->context, ATT_ERR_UNSUPPORTED,
                    "%s is not an uncompressed tar; files in it cannot be read: unpack the outer archive",
                    archive->path);
}

att_status att_archive_open_inner(const att_archive *outer, int64_t index, att_archive **out)
{
    att_context *context = outer->context;
    const att_archive_member *from = &outer->members[index];
    char path[2 * MAX_NAME];
    snprintf(path, sizeof path, "%s/%s", outer->path, from->name);
    att_archive *archive = create(context, path);
    if (!archive)
        return att_fail_memory(context, sizeof *archive, path);
    archive->begin = from->offset;
    archive->end = from->offset + (int64_t)from->size;
    archive->descriptor = fcntl(outer->descriptor, F_DUPFD_CLOEXEC, 0);
    archive_walk walk = {.archive = archive, .source.context = context};
    att_status status = archive->descriptor >= 0 ? check_begins_as_tar(archive)
                                                 : att_fail(context, ATT_ERR_IO, "%s: %s", path, strerror(errno));
    if (status == ATT_OK)
        status = walk_in_utf8(&walk);
    if (status == ATT_OK)
        *out = archive;
    else
        att_archive_close(&archive);
    return status;
}

void att_archive_close(att_archive **archive)
{
    if (!archive || !*archive)
        return;
    att_archive *closing = *archive;
    for (int64_t i = 0; i < closing->count; i++)
        att_free(closing->context, closing->members[i].kept);
    att_free(closing->context, closing->members);
    att_arena_free(&closing->names);
    if (closing->descriptor >= 0)
        close(closing->descriptor);
    att_free(closing->context, closing->path);
    att_free(closing->context, closing);
    *archive = NULL;
}

bool att_archive_begins_with(att_context *context, const char *path, int max_files,
                             bool (*fits)(void *user, const char *name), void *user)
{
    struct archive *reader = make_reader();
    struct archive_entry *entry;
    att_archive_source source = {.context = context};
    bool found = false;
    if (reader && att_archive_source_open(&source, reader, path))
        for (int files = 0; files < max_files && !found && archive_read_next_header(reader, &entry) == ARCHIVE_OK;) {
            char name[MAX_NAME + 1];
            bool is_file = archive_entry_filetype(entry) == AE_IFREG;
            files += is_file;
            found = is_file && normalize_name(archive_entry_pathname(entry), name) && fits(user, name);
        }
    archive_read_free(reader);
    att_archive_source_close(&source);
    return found;
}

const char *att_archive_kind(const att_archive *archive)
{
    return archive->kind;
}

int64_t att_archive_count(const att_archive *archive)
{
    return archive->count;
}

int64_t att_archive_skipped(const att_archive *archive)
{
    return archive->skipped;
}

const char *att_archive_name(const att_archive *archive, int64_t index)
{
    return archive->members[index].name;
}

size_t att_archive_size(const att_archive *archive, int64_t index)
{
    return archive->members[index].size;
}

int64_t att_archive_offset(const att_archive *archive, int64_t index)
{
    return archive->members[index].offset;
}
