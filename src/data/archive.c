/* Class folders in an archive. */
#include "base/io/archive.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/image_codec.h"
#include "data/annotations.h"
#include "data/tar_set.h"

typedef struct archive_source {
    att_archive *archive;
    bool images; /* the archive has images */
    bool labels; /* it has labels of WebDataset samples */
    att_class_tree tree;
} archive_source;

static bool accepts(const att_dataset *dataset)
{
    struct stat info;
    return stat(dataset->path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Loads images and annotation lists. A file above the size limit is listed but not loaded; a later attempt to read it
 * reports the error. Fails for a compressed archive of tars, such as ImageNet's training images compressed once more:
 * it holds no images of its own, and need not be read to its end to know this. */
static att_status choose(void *user, const char *name, size_t size, att_archive_use *use)
{
    const att_dataset *dataset = user;
    archive_source *source = dataset->source;
    if (att_path_is_hidden(name)) {
        *use = ATT_ARCHIVE_IGNORE;
        return ATT_OK;
    }
    if (!source->images && att_tar_named(name))
        return att_fail(dataset->context, ATT_ERR_UNSUPPORTED,
                        "%s holds tars, such as %s; images in tars inside it can be read only if it is an uncompressed "
                        "tar: decompress it",
                        dataset->path, name);
    source->images = source->images || att_class_tree_is_image(name);
    source->labels = source->labels || att_text_matches("*.cls", name);
    if (!(att_class_tree_is_image(name) ? size <= dataset->limits.file_bytes
                                        : att_annotations_named(name) && size <= ATT_ANNOTATIONS_MAX))
        *use = ATT_ARCHIVE_LIST;
    return ATT_OK;
}

static att_status read_text(const att_dataset *dataset, const att_tree_file *file, size_t most, char **text,
                            size_t *size)
{
    const archive_source *source = dataset->source;
    att_context *context = dataset->context;
    *size = att_archive_size(source->archive, file->member);
    if (*size > most)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s/%s: %zu bytes, more than the limit of %zu", dataset->path,
                        file->path, *size, most);
    *text = att_reallocate(context, NULL, *size + 1);
    if (!*text)
        return att_fail_memory(context, *size + 1, file->path);
    (*text)[*size] = '\0';
    att_status status = att_archive_read(source->archive, context, file->member, *text);
    if (status != ATT_OK)
        att_free(context, *text);
    return status;
}

static att_status open_archive(att_dataset *dataset, const att_dataset_options *options)
{
    att_context *context = dataset->context;
    archive_source *source;
    ATT_TRY(att_new(context, &source, 1, dataset->path));
    dataset->source = source;
    source->tree.context = context;
    source->tree.read = read_text;
    ATT_TRY(att_archive_open_some(context, dataset->path, options->cache_bytes, choose, dataset, &source->archive));
    dataset->kind = att_archive_kind(source->archive);
    for (int64_t i = 0; i < att_archive_count(source->archive); i++)
        ATT_TRY(att_class_tree_add(&source->tree, att_archive_name(source->archive, i), i));
    att_status status = att_class_tree_resolve(&source->tree, dataset, options);
    if (status == ATT_ERR_FORMAT && source->labels)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s holds WebDataset samples, which are read from uncompressed tars only: decompress it",
                        dataset->path);
    ATT_TRY(status);
    int64_t skipped = att_archive_skipped(source->archive);
    if (skipped > 0)
        att_log(context, ATT_LOG_WARNING, "%s: skipped %lld links, devices, sparse files or unsafe names",
                dataset->path, (long long)skipped);
    return ATT_OK;
}

static void close_archive(att_dataset *dataset)
{
    archive_source *source = dataset->source;
    att_class_tree_free(&source->tree);
    att_archive_close(&source->archive);
    att_free(dataset->context, source);
}

static void name(const att_dataset *dataset, int64_t index, char *text, size_t size)
{
    const archive_source *source = dataset->source;
    snprintf(text, size, "%s/%s", dataset->path, source->tree.images.files[index].path);
}

static att_status read_image(const att_dataset *dataset, att_context *context, int64_t index, int channels,
                             const att_image_need *need, att_image *image)
{
    const archive_source *source = dataset->source;
    int64_t member = source->tree.images.files[index].member;
    size_t bytes = att_archive_size(source->archive, member);
    char path[ATT_DATA_MAX_NAME];
    name(dataset, index, path, sizeof path);
    if (bytes > dataset->limits.file_bytes)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: %zu bytes, more than the limit of %zu", path, bytes,
                        dataset->limits.file_bytes);
    uint8_t *file = att_reallocate(context, NULL, bytes + 1);
    if (!file)
        return att_fail_memory(context, bytes + 1, path);
    att_status status = att_archive_read(source->archive, context, member, file);
    if (status == ATT_OK)
        status = att_image_decode_named(context, path, file, bytes, channels, &dataset->limits, need, image);
    att_free(context, file);
    return status;
}

const att_data_format att_data_archive = {.accepts = accepts,
                                          .open = open_archive,
                                          .close = close_archive,
                                          .name = name,
                                          .read = read_image,
                                          .single_files = true};
