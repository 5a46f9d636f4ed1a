/* The files of a network that is written for another program: a folder of their own until they are complete. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/io/file.h"
#include "base/io/system.h"
#include "networks/layouts/export.h"
#include "networks/models/identify.h"

static const char config_name[] = "config.json", weights_name[] = "model.safetensors";

/* Makes the folder `made` beside `path`. */
static att_status make_folder(att_context *context, att_export_files *files)
{
    enum { TRIES = 100, SUFFIX = 32 };
    char path[sizeof files->made - SUFFIX];
    ATT_TRY(att_path_copy(context, files->path, path, sizeof path));
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = '\0';
    for (int i = 0; i < TRIES; i++) {
        snprintf(files->made, sizeof files->made, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        if (mkdir(files->made, 0777) == 0)
            return ATT_OK;
        if (errno != EEXIST)
            break;
    }
    return att_system_fail(context, errno, files->made, "created");
}

static att_status name_files(att_context *context, att_export_files *files)
{
    ATT_TRY(att_path_join(context, files->made, config_name, files->config, sizeof files->config));
    ATT_TRY(att_path_join(context, files->made, att_from_processor, files->processor, sizeof files->processor));
    return att_path_join(context, files->made, weights_name, files->weights, sizeof files->weights);
}

void att_export_remove_files(const att_export_files *files)
{
    unlink(files->config);
    unlink(files->processor);
    unlink(files->weights);
    rmdir(files->made);
}

/* Returns whether something is at the path that may not be replaced: for a folder, all but an empty folder. */
static bool is_taken(const char *path)
{
    struct stat info;
    int names = 0;
    if (lstat(path, &info) != 0)
        return false;
    DIR *folder = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    while (folder && readdir(folder))
        names++;
    if (folder)
        closedir(folder);
    return !folder || names > 2; /* "." and ".." */
}

att_status att_export_begin_files(att_context *context, const char *path, bool is_folder, att_export_files *files)
{
    *files = (att_export_files){.path = path, .is_folder = is_folder};
    if (is_folder && is_taken(path))
        return att_fail(context, ATT_ERR_IO, "%s exists and is no empty folder; give the new folder another name",
                        path);
    ATT_TRY(att_context_check_write(context, path));
    ATT_TRY(make_folder(context, files));
    att_status status = name_files(context, files);
    if (status != ATT_OK)
        rmdir(files->made);
    return status;
}

/* Without a config.json, the metadata says to attscope which network this is, and how its images are prepared. */
static att_status write_weights(const att_layout_target *target, const att_layout_tensors *tensors, const char *path)
{
    char identity[ATT_IDENTITY_TEXT];
    const att_safetensors_pair metadata[] = {{"format", "pt"}, {ATT_IDENTITY_KEY, identity}};
    ATT_TRY(att_model_identity_text(target->context, target->identity, identity, sizeof identity));
    att_layout_filling filling = {target, tensors};
    const att_safetensors_content content = {.tensors = tensors->tensors,
                                             .tensor_count = tensors->count,
                                             .metadata = metadata,
                                             .metadata_count = target->form->type ? 1 : 2,
                                             .fill = att_layout_fill,
                                             .fill_user = &filling};
    return att_safetensors_write(target->context, path, &content);
}

att_status att_export_write_files(const att_layout_target *target, const att_layout_tensors *tensors,
                                  const att_export_files *files)
{
    if (target->form->type) {
        ATT_TRY(att_layout_write_config(target, files->config));
        ATT_TRY(att_layout_write_processor(target, files->processor));
    }
    return write_weights(target, tensors, files->weights);
}

att_status att_export_place_files(att_context *context, const att_export_files *files)
{
    if (rename(files->is_folder ? files->made : files->weights, files->path) != 0)
        return att_system_fail(context, errno, files->path, "moved into place");
    return ATT_OK;
}
