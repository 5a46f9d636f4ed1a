#include "data/tar_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "base/io/archive.h"
#include "base/io/archive_source.h"
#include "base/io/file.h"
#include "data/class_tree.h"
#include "data/shards.h"

enum { LEAST_FILES = 1000 }; /* a list of fewer files is quickly made */

/* --- the tars ----------------------------------------------------------------------------------------------------- */

static att_tar_file describe(const char *name, const struct stat *info)
{
    return (att_tar_file){.name = name,
                          .size = (uint64_t)info->st_size,
                          .seconds = info->st_mtim.tv_sec > 0 ? (int64_t)info->st_mtim.tv_sec : 0,
                          .nanoseconds = (int64_t)info->st_mtim.tv_nsec};
}

bool att_tar_unchanged(const att_tar_file *tar, int descriptor)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return false;
    att_tar_file now = describe(tar->name, &info);
    return now.size == tar->size && now.seconds == tar->seconds && now.nanoseconds == tar->nanoseconds;
}

static att_status describe_tar(const att_tar_set *set, const char *name, att_tar_file *tar, att_context *context)
{
    char path[ATT_DATA_MAX_NAME];
    struct stat info;
    ATT_TRY(att_path_join(context, set->folder, name, path, sizeof path));
    if (stat(path, &info) != 0)
        return att_fail(context, errno == ENOENT ? ATT_ERR_NOT_FOUND : ATT_ERR_IO, "%s could not be opened: %s", path,
                        strerror(errno));
    if (!S_ISREG(info.st_mode))
        return att_fail(context, ATT_ERR_FORMAT, "%s is not a file", path);
    *tar = describe(name, &info);
    return ATT_OK;
}

static att_status describe_tars(const att_tar_set *set, att_tar_index *index)
{
    att_context *context = index->arena.context;
    ATT_TRY(att_new(context, &index->tars, (size_t)set->count, "a list of tars"));
    for (; index->tar_count < set->count; index->tar_count++) {
        const char *name = att_arena_string(&index->arena, set->names[index->tar_count]);
        if (!name)
            return att_fail_memory(context, strlen(set->names[index->tar_count]) + 1, "a list of tars");
        ATT_TRY(describe_tar(set, name, &index->tars[index->tar_count], context));
    }
    return ATT_OK;
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

/* A listing that is being made. */
typedef struct listing {
    att_context *context;
    const att_tar_set *set;
    att_tar_index *index;
    int tar;      /* number of the current tar */
    bool decided; /* index->shards is */
} listing;

/* Whether the archive has images, and all of them lie in no folder. Hidden files do not count. */
static bool is_flat(const att_archive *archive)
{
    bool found = false;
    for (int64_t i = 0; i < att_archive_count(archive); i++) {
        const char *name = att_archive_name(archive, i);
        bool image = !att_path_is_hidden(name) && att_class_tree_is_image(name);
        if (image && strchr(name, '/'))
            return false;
        found |= image;
    }
    return found;
}

/* Writes the folder that stands for a tar: its path without ".tar" if `named`, else the folder where it lies. Ends in a
 * slash unless it is empty. */
static void name_folder(const char *tar, bool named, char folder[ATT_DATA_MAX_NAME])
{
    size_t length = named ? strlen(tar) : (size_t)(att_path_last(tar) - tar);
    if (named && att_tar_named(tar))
        length -= strlen(".tar");
    snprintf(folder, ATT_DATA_MAX_NAME, "%.*s%s", (int)length, tar, named ? "/" : "");
}

/* Adds a file. sample: that of a shard; NULL: none. */
static att_status add_file(listing *it, const att_archive *archive, int64_t file, const char *folder,
                           const att_shard_sample *sample)
{
    char path[ATT_DATA_MAX_NAME];
    int length = snprintf(path, sizeof path, "%s%s", folder, att_archive_name(archive, file));
    if (length < 0 || length > ATT_TAR_MOST_PATH) {
        it->index->skipped++;
        return ATT_OK;
    }
    att_tar_entry entry = {.path = path,
                           .offset = (uint64_t)att_archive_offset(archive, file),
                           .size = att_archive_size(archive, file),
                           .tar = it->tar,
                           .state = sample ? sample->state : ATT_LABEL_READ,
                           .label = sample ? sample->label : -1,
                           .class_name = sample ? sample->class_name : ""};
    return att_tar_index_add(it->index, &entry);
}

/* Lists a tar inside a tar. folder: where the outer tar is unpacked. */
static att_status list_inner(listing *it, const att_archive *outer, int64_t file, const char *folder)
{
    char path[ATT_DATA_MAX_NAME], inside[ATT_DATA_MAX_NAME];
    att_archive *inner;
    int length = snprintf(path, sizeof path, "%s%s", folder, att_archive_name(outer, file));
    if (length < 0 || (size_t)length >= sizeof path) {
        it->index->skipped++;
        return ATT_OK;
    }
    ATT_TRY(att_archive_open_inner(outer, file, &inner));
    name_folder(path, is_flat(inner), inside);
    att_status status = ATT_OK;
    for (int64_t i = 0; status == ATT_OK && i < att_archive_count(inner); i++)
        if (!att_path_is_hidden(att_archive_name(inner, i)))
            status = add_file(it, inner, i, inside, NULL);
    it->index->skipped += att_archive_skipped(inner);
    att_archive_close(&inner);
    return status;
}

static att_status list_files(listing *it, const att_archive *archive)
{
    char folder[ATT_DATA_MAX_NAME];
    name_folder(it->index->tars[it->tar].name, it->set->class_tars && is_flat(archive), folder);
    for (int64_t i = 0; i < att_archive_count(archive); i++) {
        const char *name = att_archive_name(archive, i);
        if (att_path_is_hidden(name))
            continue;
        ATT_TRY(att_tar_named(name) ? list_inner(it, archive, i, folder) : add_file(it, archive, i, folder, NULL));
    }
    return ATT_OK;
}

static att_status count_unused(listing *it, const att_archive *archive, const char *folder,
                               const att_shard_sample *sample)
{
    char begin[ATT_DATA_MAX_NAME], other[ATT_DATA_MAX_NAME];
    bool imageless = sample->image < 0 && (sample->labelled || sample->others > 0);
    if (!imageless && sample->others == 0)
        return ATT_OK;
    snprintf(begin, sizeof begin, "%s%s", folder, att_archive_name(archive, sample->begin));
    snprintf(other, sizeof other, "%s%s", folder, sample->others ? att_archive_name(archive, sample->other) : "");
    ATT_TRY(att_tar_index_count(it->index, &it->index->imageless, imageless, begin));
    return att_tar_index_count(it->index, &it->index->further, sample->others, other);
}

static att_status list_samples(listing *it, const att_archive *archive)
{
    char folder[ATT_DATA_MAX_NAME];
    snprintf(folder, sizeof folder, "%s/", it->index->tars[it->tar].name);
    att_shard_sample sample = {.end = 0};
    while (sample.end < att_archive_count(archive)) {
        ATT_TRY(att_shard_sample_read(archive, it->context, sample.end, &sample));
        if (sample.image >= 0)
            ATT_TRY(add_file(it, archive, sample.image, folder, &sample));
        ATT_TRY(count_unused(it, archive, folder, &sample));
        ATT_TRY(att_check_stop(it->context, it->set->folder));
    }
    return ATT_OK;
}

/* Decides whether the tars are shards: if any sample of the first tar with images has an image and a label. Labels
 * apart from images, and other files beside images, decide only if the images lie in no folder; the latter also only if
 * such a tar is no class. */
static att_status decide(listing *it, const att_archive *archive)
{
    att_shard_sample sample = {.end = 0};
    bool labels = false;
    while (!it->index->shards && sample.end < att_archive_count(archive)) {
        ATT_TRY(att_shard_sample_read(archive, it->context, sample.end, &sample));
        bool images = sample.image >= 0 || sample.others > 0;
        it->decided = it->decided || images;
        it->index->shards = images && sample.labelled;
        labels = labels || sample.labelled || (images && sample.others_beside && !it->set->class_tars);
    }
    it->index->shards = it->index->shards || (labels && is_flat(archive));
    return ATT_OK;
}

/* Fails unless the file is a tar that is not compressed. */
static att_status check_plain(const listing *it, const char *path)
{
    if (access(path, R_OK) != 0)
        return att_fail(it->context, ATT_ERR_IO, "%s could not be opened: %s", path, strerror(errno));
    if (att_tar_is_plain(path))
        return ATT_OK;
    return att_fail(it->context, ATT_ERR_UNSUPPORTED,
                    "%s is not an uncompressed tar; sets of tars are read in place: decompress it, or remove it", path);
}

static att_status list_tar(listing *it)
{
    char path[ATT_DATA_MAX_NAME];
    att_archive *archive;
    ATT_TRY(att_path_join(it->context, it->set->folder, it->index->tars[it->tar].name, path, sizeof path));
    ATT_TRY(check_plain(it, path));
    ATT_TRY(att_archive_open(it->context, path, 0, &archive));
    att_status status = it->decided ? ATT_OK : decide(it, archive);
    if (status == ATT_OK)
        status = it->index->shards ? list_samples(it, archive) : list_files(it, archive);
    it->index->skipped += att_archive_skipped(archive);
    att_archive_close(&archive);
    return status;
}

static att_status list_tars(const att_tar_set *set, att_tar_index *index)
{
    listing it = {.context = index->arena.context, .set = set, .index = index};
    for (; it.tar < index->tar_count; it.tar++)
        ATT_TRY(list_tar(&it));
    return ATT_OK;
}

/* --- the index file ----------------------------------------------------------------------------------------------- */

/* Where the index file can lie: beside the tars, or in the cache if that folder cannot be written. "": nowhere. */
typedef struct index_places {
    char beside[ATT_DATA_MAX_NAME], cache_folder[ATT_DATA_MAX_NAME], cached[ATT_DATA_MAX_NAME];
} index_places;

static bool format_path(char path[ATT_DATA_MAX_NAME], const char *format, ...) ATT_PRINTF(2, 3);
static bool format_path(char path[ATT_DATA_MAX_NAME], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, ATT_DATA_MAX_NAME, format, arguments);
    va_end(arguments);
    if (length >= 0 && length < ATT_DATA_MAX_NAME)
        return true;
    *path = '\0';
    return false;
}

/* Hash of all that decides the entries, besides the contents of the tars. */
static uint64_t hash_set(const att_tar_set *set)
{
    uint64_t hash = att_random_hash(set->class_tars ? "classes" : "");
    for (int i = 0; i < set->count; i++)
        hash = att_random_hash_more(hash, set->names[i], strlen(set->names[i]) + 1);
    return hash;
}

/* hash: hash_set(). In the cache lie the indices of all folders, so there the name depends on the folder, too. */
static void find_cache(const char *tar, const char *name, uint64_t hash, index_places *places)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char absolute[PATH_MAX];
    if (cache && *cache == '/')
        format_path(places->cache_folder, "%s/attscope", cache);
    else if (home && *home == '/')
        format_path(places->cache_folder, "%s/.cache/attscope", home);
    if (*places->cache_folder && realpath(tar, absolute))
        format_path(places->cached, "%s/%s-%016" PRIx64 ".index", places->cache_folder, name,
                    att_random_hash_more(hash, absolute, strlen(absolute)));
}

static void find_places(const att_tar_set *set, index_places *places)
{
    char tar[ATT_DATA_MAX_NAME], folder[ATT_DATA_MAX_NAME];
    *places = (index_places){.beside = ""};
    if (!format_path(tar, "%s/%s", set->folder, set->names[0]))
        return;
    const char *name = att_path_last(tar);
    uint64_t hash = hash_set(set);
    format_path(folder, "%.*s", (int)(name - tar), tar);
    format_path(places->beside, "%s.%s-%016" PRIx64 ".index", folder, name, hash);
    if (faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0)
        find_cache(tar, name, hash, places);
}

/* *found: whether the index was read. A file that cannot be used is not an error. */
static att_status read_index(att_tar_index *index, const char *path, bool *found)
{
    att_context *context = index->arena.context;
    *found = false;
    if (!*path || !att_file_exists(path))
        return ATT_OK;
    att_status status = att_tar_index_read(index, path);
    *found = status == ATT_OK;
    if (status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED)
        return status;
    if (!*found)
        att_log(context, ATT_LOG_INFO, "%s; listing the tars again", att_context_message(context));
    return ATT_OK;
}

/* Failing is no error: perhaps another process is writing the same index. */
static void write_index(const att_tar_index *index, const index_places *places)
{
    att_context *context = index->arena.context;
    const char *path = *places->cached ? places->cached : places->beside;
    att_status status = ATT_OK;
    if (*places->cached)
        status = att_file_make_folders(context, places->cache_folder);
    if (status == ATT_OK && *path)
        status = att_tar_index_write(index, path);
    if (status != ATT_OK)
        att_log(context, ATT_LOG_INFO, "the index of the tars was not written: %s", att_context_message(context));
}

static void announce(const att_tar_index *index, const att_tar_set *set)
{
    static const uint64_t large = (uint64_t)1 << 30;
    uint64_t bytes = 0;
    char size[ATT_NUMBER_TEXT];
    for (int i = 0; i < index->tar_count; i++)
        bytes += index->tars[i].size;
    if (bytes >= large)
        att_log(index->arena.context, ATT_LOG_INFO, "listing %d tar%s (%s) in %s; later this takes seconds",
                index->tar_count, index->tar_count == 1 ? "" : "s", att_size_format((size_t)bytes, size, sizeof size),
                set->folder);
}

static att_status make_index(const att_tar_set *set, att_tar_index *index, const index_places *places)
{
    announce(index, set);
    ATT_TRY(list_tars(set, index));
    if (index->count >= LEAST_FILES)
        write_index(index, places);
    return ATT_OK;
}

att_status att_tar_list(const att_tar_set *set, att_tar_index *index)
{
    index_places places;
    bool found;
    ATT_TRY(describe_tars(set, index));
    find_places(set, &places);
    ATT_TRY(read_index(index, places.beside, &found));
    if (!found)
        ATT_TRY(read_index(index, places.cached, &found));
    return found ? ATT_OK : make_index(set, index, &places);
}
