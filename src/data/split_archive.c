/* A folder with one archive per split, such as train.tar.gz and test.tar.gz. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "data/dataset.h"

static const char *const endings[] = {".tar.gz", ".tgz", ".tar", ".zip"};

static bool find_archive(const char *folder, const char *split, char *path, size_t size)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct stat info;
        int length = snprintf(path, size, "%s/%s%s", folder, split, endings[i]);
        if (length >= 0 && (size_t)length < size && stat(path, &info) == 0 && S_ISREG(info.st_mode))
            return true;
    }
    return false;
}

/* Returns the first of the splits (NULL-terminated) that has an archive in the folder, and the archive's path; NULL if
 * none has. */
static const char *find_split(const char *folder, const char *const *splits, char *path, size_t size)
{
    for (; *splits; splits++)
        if (find_archive(folder, *splits, path, size))
            return *splits;
    return NULL;
}

/* If the folder contains folders, archives next to them are ignored: the folders are assumed to hold the extracted
 * archives. */
static bool accepts(const att_dataset *dataset)
{
    const char *folder = dataset->path;
    char path[ATT_DATA_MAX_NAME];
    return !att_holds_folder(folder) && find_split(folder, att_split_names(NULL), path, sizeof path) != NULL;
}

/* Replaces the data set by the archive of its split. */
static att_status open_split(att_dataset *dataset, const att_dataset_options *options)
{
    char path[ATT_DATA_MAX_NAME];
    const char *split = find_split(dataset->path, att_split_names(options->split), path, sizeof path);
    if (!split)
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s has no archive of the split \"%s\", but %s",
                        dataset->path, options->split,
                        find_split(dataset->path, att_split_names(NULL), path, sizeof path));
    char *archive = att_copy_string(dataset->context, path);
    if (!archive)
        return att_fail_memory(dataset->context, strlen(path), path);
    att_free(dataset->context, dataset->path);
    dataset->path = archive;
    dataset->format = att_data_tars.accepts(dataset) ? &att_data_tars : &att_data_archive;
    ATT_TRY(dataset->format->open(dataset, options));
    dataset->split = split;
    return ATT_OK;
}

const att_data_format att_data_split_archive = {.accepts = accepts, .open = open_split};
