/* The entries of an index of tars. The target writes the rest of the file, with a checksum that is right: the names,
 * sizes and times of two tars. An index that can be read is written and read again. */
#include "fuzz.h"

#include "base/core/random.h"
#include "data/shards.h"
#include "data/tar_index.h"

enum { TAR_BYTES = 1 << 16, MOST = 1 << 14 };

/* Makes an index of two tars without entries. */
static void make(att_tar_index *index)
{
    *index = (att_tar_index){.arena.context = fuzz_context(), .tar_count = 2};
    index->tars = att_allocate_array(fuzz_context(), 2, sizeof *index->tars);
    fuzz_require(index->tars != NULL, "memory for two tars");
    for (int i = 0; i < 2; i++)
        index->tars[i] = (att_tar_file){.name = i ? "b" : "a", .size = TAR_BYTES, .seconds = 1, .nanoseconds = 1};
}

static void check(const att_tar_index *index)
{
    for (int64_t i = 0; i < index->count; i++) {
        const att_tar_entry *entry = &index->entries[i];
        fuzz_require(entry->tar >= 0 && entry->tar < 2, "an entry lies in one of the tars");
        fuzz_require(entry->offset <= TAR_BYTES && entry->size <= TAR_BYTES - entry->offset,
                     "an entry lies in its tar");
        fuzz_require(*entry->path && strlen(entry->path) <= ATT_TAR_MOST_PATH, "an entry has a path");
        fuzz_require(strlen(entry->class_name) <= ATT_SHARD_MOST_NAME, "a class name is short");
        fuzz_require(entry->label >= -1 && entry->label <= ATT_TAR_MOST_LABEL, "a label has no other value");
    }
}

static void read_again(const att_tar_index *index, const char *path)
{
    att_tar_index again;
    make(&again);
    fuzz_require(att_tar_index_write(index, path) == ATT_OK, "an index can be written");
    fuzz_require(att_tar_index_read(&again, path) == ATT_OK && again.count == index->count, "it can be read again");
    for (int64_t i = 0; i < index->count; i++)
        fuzz_require(strcmp(again.entries[i].path, index->entries[i].path) == 0, "it is the same");
    att_tar_index_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = "attscope tars 2\n";
    static const uint8_t tars[] = {2, 1, 'a', 0x80, 0x80, 4, 1, 1, 1, 'b', 0x80, 0x80, 4, 1, 1};
    enum { HEAD = sizeof magic - 1 + 8 };
    static uint8_t file[HEAD + sizeof tars + MOST];
    if (size > MOST)
        return 0;
    size_t before = fuzz_begin(), bytes = HEAD + sizeof tars + size;
    memcpy(file, magic, sizeof magic - 1);
    memcpy(file + HEAD, tars, sizeof tars);
    memcpy(file + HEAD + sizeof tars, data, size);
    uint64_t hash = att_random_hash_more(att_random_hash(""), file + HEAD, bytes - HEAD);
    for (int i = 0; i < 8; i++)
        file[HEAD - 8 + i] = (uint8_t)(hash >> 8 * i);
    char path[512];
    snprintf(path, sizeof path, "%s", fuzz_file("index", file, bytes));
    att_tar_index index;
    make(&index);
    if (att_tar_index_read(&index, path) == ATT_OK) {
        check(&index);
        read_again(&index, path);
    }
    att_tar_index_free(&index);
    fuzz_end(before);
    return 0;
}
