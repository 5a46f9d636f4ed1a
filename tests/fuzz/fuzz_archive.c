/* A tar, gzipped tar or zip archive: lists it, reads every member, and opens it as a data set. */
#include "fuzz.h"

#include "base/io/archive.h"

enum { LARGEST_MEMBER = 1 << 20 };

static void read_members(const att_archive *archive)
{
    for (int64_t i = 0; i < att_archive_count(archive); i++) {
        const char *name = att_archive_name(archive, i);
        fuzz_require(*name && *name != '/' && !strstr(name, "/../") && strncmp(name, "../", 3) != 0,
                     "a member's name has no path outside the archive");
        size_t bytes = att_archive_size(archive, i);
        void *out = bytes <= LARGEST_MEMBER ? malloc(bytes + 1) : NULL;
        if (out)
            (void)att_archive_read(archive, fuzz_context(), i, out);
        free(out);
    }
}

static void read_as_data(const char *path)
{
    att_dataset_options options = att_dataset_options_defaults();
    options.cache_bytes = (size_t)1 << 24;
    options.limits =
        (att_image_limits){.side = 256, .pixels = 1 << 14, .file_bytes = LARGEST_MEMBER, .memory = (size_t)1 << 24};
    att_dataset *dataset = NULL;
    if (att_dataset_open(fuzz_context(), path, &options, &dataset) == ATT_OK)
        for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
            att_image image = {0};
            (void)att_dataset_read(dataset, fuzz_context(), i, 3, &image);
            att_image_free(fuzz_context(), &image);
            fuzz_require(att_dataset_label(dataset, i) < att_dataset_class_count(dataset),
                         "labels are indices of classes");
        }
    att_dataset_close(&dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("pictures.tar", data, size);
    att_archive *archive = NULL;
    if (att_archive_open(fuzz_context(), path, (size_t)1 << 24, &archive) == ATT_OK)
        read_members(archive);
    att_archive_close(&archive);
    read_as_data(path);
    fuzz_end(before);
    return 0;
}
