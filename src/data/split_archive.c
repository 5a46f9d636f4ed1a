/* A folder with one archive per split, such as train.tar.gz and test.tar.gz. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "data/dataset.h"

static const char *const endings[] = {".tar.gz", ".tgz", ".tar", ".zip"};

/* Writes the path of the archive <folder>/<name> plus an ending. Returns false if there is none. */
static bool find_archive(const char *folder, const char *name, char path[ATT_DATA_MAX_NAME])
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct stat info;
        int length = snprintf(path, ATT_DATA_MAX_NAME, "%s/%s%s", folder, name, endings[i]);
        if (length >= 0 && length < ATT_DATA_MAX_NAME && stat(path, &info) == 0 && S_ISREG(info.st_mode))
            return true;
    }
    return false;
}

/* Adds an archive that is named after a split. */
static void add_archive(const char *folder, const char *file, att_splits *splits)
{
    char name[ATT_SPLIT_NAME], path[ATT_DATA_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    if (att_split_is_name(name) && find_archive(folder, name, path))
        att_splits_add(splits, name, strlen(name));
}

static void list_archives(const char *folder, att_splits *splits)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        add_archive(folder, entry->d_name, splits);
    if (entries)
        closedir(entries);
}

/* If the folder contains folders, archives next to them are ignored: the folders are assumed to hold the extracted
 * archives. */
static bool accepts(const att_dataset *dataset)
{
    att_splits splits = {.flat = {""}};
    if (att_holds_folder(dataset->path))
        return false;
    list_archives(dataset->path, &splits);
    return att_splits_find(&splits, att_split_names(NULL)) != NULL;
}

/* Replaces the data set by the archive of its split. */
static att_status open_split(att_dataset *dataset, const att_dataset_options *options)
{
    char path[ATT_DATA_MAX_NAME];
    att_splits splits = {.flat = {""}};
    const att_split *split;
    list_archives(dataset->path, &splits);
    ATT_TRY(att_splits_choose(&splits, dataset->context, dataset->path, options->split, &split));
    if (!split)
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s has no archive of the split \"%s\", but %s",
                        dataset->path, options->split, att_splits_find(&splits, att_split_names(NULL))->name);
    if (!find_archive(dataset->path, split->name, path))
        return att_fail(dataset->context, ATT_ERR_NOT_FOUND, "%s: the archive %s has disappeared", dataset->path,
                        split->name);
    char *archive = att_copy_string(dataset->context, path);
    if (!archive)
        return att_fail_memory(dataset->context, strlen(path), path);
    att_free(dataset->context, dataset->path);
    dataset->path = archive;
    dataset->format = att_data_tars.accepts(dataset) ? &att_data_tars : &att_data_archive;
    ATT_TRY(dataset->format->open(dataset, options));
    dataset->split = split->split;
    return ATT_OK;
}

const att_data_format att_data_split_archive = {.accepts = accepts, .open = open_split};
