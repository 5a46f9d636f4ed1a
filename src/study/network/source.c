#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "networks/hub/hub.h"
#include "study/network/network.h"

/* Refuses a symbolic link whose target does not exist, as in a cache from which files were deleted. */
static att_status check_link(att_context *context, const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 || lstat(path, &found) != 0 || !S_ISLNK(found.st_mode))
        return ATT_OK;
    return att_fail(context, ATT_ERR_NOT_FOUND,
                    "%s is a symbolic link to a file that does not exist; restore that file, or download it again",
                    path);
}

/* Sets *there to whether the folder has this file, whose path is then in `path`. */
static att_status has_file(att_context *context, const char *folder, const char *name, char *path, size_t size,
                           bool *there)
{
    struct stat found;
    ATT_TRY(att_path_join(context, folder, name, path, size));
    *there = stat(path, &found) == 0 && !S_ISDIR(found.st_mode);
    return *there ? ATT_OK : check_link(context, path);
}

/* Refuses a folder of a program whose weights are not in a file of their own. */
static att_status refuse_folder(att_context *context, const char *folder, char *path, size_t size)
{
    static const struct {
        const char *file, *is;
    } others[] = {
        {"data.pkl",
         "is the content of a PyTorch checkpoint that was unpacked; pack it again, without compression: zip -0 -r "
         "weights.pth FOLDER"},
        {".metadata",
         "is a checkpoint of torch.distributed.checkpoint, in parts; make one file of it: python -m "
         "torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER weights.pth"},
        {"zero_pp_rank_0_mp_rank_00_model_states.pt",
         "holds DeepSpeed's parts of the weights, one for each process (ZeRO-3); make one file of them with "
         "zero_to_fp32.py, which DeepSpeed wrote into the folder above it"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool there;
        ATT_TRY(has_file(context, folder, others[i].file, path, size, &there));
        if (there)
            return att_fail(context, ATT_ERR_FORMAT, "%s %s", folder, others[i].is);
    }
    return att_fail(context, ATT_ERR_NOT_FOUND,
                    "%s is a folder without weights; expected model_best.safetensors, last.safetensors, "
                    "model.safetensors or pytorch_model.bin in it, or the index of one of the latter",
                    folder);
}

/* Finds the first of the usual checkpoint files in a folder. */
static att_status find_file(att_context *context, const char *folder, char *path, size_t size)
{
    static const char *const names[] = {"model_best.safetensors",      "last.safetensors",
                                        "model.safetensors",           "model.safetensors.index.json",
                                        "pytorch_model.bin",           "pytorch_model.bin.index.json",
                                        "open_clip_model.safetensors", "open_clip_pytorch_model.bin",
                                        "mp_rank_00_model_states.pt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool there;
        ATT_TRY(has_file(context, folder, names[i], path, size, &there));
        if (there)
            return ATT_OK;
    }
    return refuse_folder(context, folder, path, size);
}

/* The same in a folder of DeepSpeed, which names the folder of the newest checkpoint in the file "latest". */
static att_status find_in(att_context *context, const char *folder, char *path, size_t size)
{
    enum { MOST_BYTES = 256 };
    char newest[PATH_MAX], *name;
    size_t length;
    bool there;
    ATT_TRY(has_file(context, folder, "latest", path, size, &there));
    if (!there)
        return find_file(context, folder, path, size);
    ATT_TRY(att_file_read(context, path, MOST_BYTES, &name, &length));
    name[strcspn(name, "\r\n")] = '\0';
    const bool plain = *name && !strchr(name, '/') && strcmp(name, "..") != 0;
    att_status status = plain ? att_path_join(context, folder, name, newest, sizeof newest)
                              : att_fail(context, ATT_ERR_FORMAT,
                                         "%s: expected the name of a folder beside it, as DeepSpeed writes", path);
    att_free(context, name);
    return status == ATT_OK ? find_file(context, newest, path, size) : status;
}

static att_status check_name(att_context *context, const char *what)
{
    att_network_name name;
    att_status status = att_model_resolve(context, what, &name);
    if (status == ATT_OK || status == ATT_ERR_MEMORY)
        return status;
    att_text why = {.context = context};
    att_text_append(&why, "%s", att_context_message(context));
    status = why.failed ? att_fail_memory(context, why.length, "a message")
                        : att_fail(context, status, "%s is neither a file nor a folder; as a network's name: %s", what,
                                   why.data);
    att_text_free(&why);
    return status;
}

static att_status find(att_context *context, const char *what, char *path, size_t size)
{
    struct stat found;
    if (!*what)
        return att_fail(
            context, ATT_ERR_NOT_FOUND,
            "the name of the checkpoint is empty; expected a file, a folder, pretrained weights or a network");
    ATT_TRY(check_link(context, what));
    if (stat(what, &found) != 0)
        return att_hub_is_name(what) ? att_hub_find(context, what, path, size) : check_name(context, what);
    return S_ISDIR(found.st_mode) ? find_in(context, what, path, size) : att_path_copy(context, what, path, size);
}

/* As find(), for "WHAT#PART", too: the part follows the path of the file. */
static att_status find_part(att_context *context, const char *what, char *path, size_t size)
{
    char whole[PATH_MAX];
    const size_t length = att_tensors_path_length(what);
    if (!what[length])
        return find(context, what, path, size);
    if (length >= sizeof whole)
        return att_fail(context, ATT_ERR_ARGUMENT, "the path before '#' has more than %zu bytes", sizeof whole - 1);
    memcpy(whole, what, length);
    whole[length] = '\0';
    ATT_TRY(find(context, whole, path, size));
    const size_t found = strlen(path);
    if (!found)
        return att_fail(context, ATT_ERR_NOT_FOUND, "%s: the network's name %s has no parts; name a file before '#'",
                        what, whole);
    if (strlen(what + length) >= size - found)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s: the buffer for a path is too small", what);
    strcpy(path + found, what + length);
    return ATT_OK;
}

att_status att_network_find_file(att_context *context, const char *what, char *path, size_t size)
{
    ATT_TRY(att_require(context, path, "the buffer for a path"));
    if (size == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "the buffer for a path has 0 bytes");
    *path = '\0';
    ATT_TRY(att_require(context, what, "the file, folder or name of a network"));
    att_status status = find_part(context, what, path, size);
    if (status != ATT_OK)
        *path = '\0';
    return status;
}
