#include <dirent.h>
#include <limits.h>
#include <stdio.h>
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
static att_status check_folder(att_context *context, const char *folder, char *path, size_t size)
{
    static const struct {
        const char *file, *is;
    } others[] = {
        {"data.pkl",
         "is the content of a PyTorch checkpoint that was unpacked; pack it again, without compression: zip -0 -r "
         "weights.pth FOLDER"},
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
    return ATT_OK;
}

/* Finds the first of the usual checkpoint files in a folder. */
static att_status find_file(att_context *context, const char *folder, char *path, size_t size, bool *there)
{
    static const char *const names[] = {"model_best.safetensors",
                                        "last.safetensors",
                                        "model.safetensors",
                                        "model.safetensors.index.json",
                                        "pytorch_model.bin",
                                        "pytorch_model.bin.index.json",
                                        "open_clip_model.safetensors",
                                        "open_clip_pytorch_model.bin",
                                        "model_best.pth.tar",
                                        "last.pth.tar",
                                        "pytorch_model_fsdp.bin",
                                        "mp_rank_00_model_states.pt",
                                        ".metadata"};
    *there = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*there; i++)
        ATT_TRY(has_file(context, folder, names[i], path, size, there));
    return ATT_OK;
}

/* Names in a folder, of which one may be that of the weights. */
enum { LISTED = 8 };
typedef struct candidates {
    char first[LISTED][NAME_MAX + 1]; /* in order */
    int count;
    bool shards; /* files that only an index can join are among them */
} candidates;

static void add_candidate(candidates *c, const char *name)
{
    int at = c->count < LISTED ? c->count : LISTED;
    c->count++;
    for (; at > 0 && strcmp(name, c->first[at - 1]) < 0; at--)
        if (at < LISTED)
            strcpy(c->first[at], c->first[at - 1]);
    if (at < LISTED)
        snprintf(c->first[at], sizeof c->first[at], "%s", name);
}

/* Whether the file has one of several parts of the weights: "model-00001-of-00002.safetensors". */
static bool is_shard(const char *name)
{
    return att_text_matches(
               "*-?????" /* two texts, because "??-" is a trigraph */ "-of-?????.*", name) &&
           !att_text_matches("*-of-00001.*", name);
}

static att_status list_candidates(att_context *context, const char *folder, char *path, size_t size, candidates *c)
{
    static const char weights[] = "*.ckpt,*.pth,*.pt,*.th,*.tar,*.bin,*.safetensors,*.npz",
                      states[] = "optim*,scheduler*,scaler*,random_state*,rng_state*,training_args*,meta.pt",
                      folders[] = "checkpoint*,version_*,lightning_logs,pytorch_model_fsdp_*,*.ckpt";
    struct stat info;
    att_status status = ATT_OK;
    *c = (candidates){.count = 0};
    DIR *entries = opendir(folder);
    for (struct dirent *entry; status == ATT_OK && entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        const bool file = att_text_matches_any(weights, name) && !att_text_matches_any(states, name);
        if (*name == '.' || (!file && !att_text_matches_any(folders, name)))
            continue;
        status = att_path_join(context, folder, name, path, size);
        if (status != ATT_OK || stat(path, &info) != 0 ||
            (S_ISDIR(info.st_mode) ? !att_text_matches_any(folders, name) : !file))
            continue;
        c->shards |= is_shard(name);
        add_candidate(c, name);
    }
    if (entries)
        closedir(entries);
    return status;
}

/* Refuses a folder that has no weights, several, or parts of some. */
static att_status refuse_folder(att_context *context, const char *folder, const candidates *c)
{
    if (c->count == 0)
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "%s is a folder without weights; expected model_best.safetensors, last.safetensors, "
                        "model.safetensors or pytorch_model.bin in it, or the index of one of the latter",
                        folder);
    if (c->shards)
        return att_fail(context, ATT_ERR_NOT_FOUND,
                        "%s holds parts of weights, such as %s, and lacks their index, model.safetensors.index.json or "
                        "pytorch_model.bin.index.json; copy or download it, too",
                        folder, c->first[0]);
    att_text list = {.context = context};
    for (int i = 0; i < c->count && i < LISTED; i++)
        att_text_append(&list, "%s%s", i > 0 ? ", " : "", c->first[i]);
    att_status status =
        list.failed ? att_fail_memory(context, list.capacity, "a message")
                    : att_fail(context, ATT_ERR_NOT_FOUND, "%s holds several checkpoints: %s%s; name one of them",
                               folder, list.data, c->count > LISTED ? ", ..." : "");
    att_text_free(&list);
    return status;
}

/* Finds the weights in a folder: a usual file, or else the only one that may be them. Lightning's and Accelerate's
 * folders hold folders. */
static att_status find_weights(att_context *context, const char *folder, int depth, char *path, size_t size)
{
    enum { MOST_DEPTH = 4 };
    char inside[PATH_MAX];
    struct stat info;
    candidates c;
    bool there;
    ATT_TRY(find_file(context, folder, path, size, &there));
    if (there)
        return ATT_OK;
    ATT_TRY(check_folder(context, folder, path, size));
    ATT_TRY(list_candidates(context, folder, path, size, &c));
    if (c.count != 1 || c.shards || depth == MOST_DEPTH)
        return refuse_folder(context, folder, &c);
    ATT_TRY(att_path_join(context, folder, c.first[0], path, size));
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return ATT_OK;
    ATT_TRY(att_path_copy(context, path, inside, sizeof inside));
    return find_weights(context, inside, depth + 1, path, size);
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
        return find_weights(context, folder, 0, path, size);
    ATT_TRY(att_file_read(context, path, MOST_BYTES, &name, &length));
    name[strcspn(name, "\r\n")] = '\0';
    const bool plain = *name && !strchr(name, '/') && strcmp(name, "..") != 0;
    att_status status = plain ? att_path_join(context, folder, name, newest, sizeof newest)
                              : att_fail(context, ATT_ERR_FORMAT,
                                         "%s: expected the name of a folder beside it, as DeepSpeed writes", path);
    att_free(context, name);
    return status == ATT_OK ? find_weights(context, newest, 0, path, size) : status;
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
    if (S_ISDIR(found.st_mode))
        return find_in(context, what, path, size);
    if (is_shard(att_path_last(what)))
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s has one of several parts of the weights; name its folder, or the index, which ends in "
                        ".index.json",
                        what);
    return att_path_copy(context, what, path, size);
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
