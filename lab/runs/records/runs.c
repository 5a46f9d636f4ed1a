/* Looks into folders of runs: whether they are runs, which checkpoints they have, which database they belong to. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include <attscope/lab/runs.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "lab/runs/records/folder.h"

bool att_run_is_folder(const char *folder)
{
    return folder && (att_file_exists_in(folder, "args.yaml") || att_file_exists_in(folder, "metrics.jsonl"));
}

/* --- the database ------------------------------------------------------------------------------------------------- */

/* Writes the parent folder of `folder`, whose path may end in slashes, "." or "..". */
static att_status find_output(att_context *context, const char *folder, char *output, size_t size)
{
    char trimmed[ATT_RUN_PATH];
    ATT_TRY(att_path_copy(context, folder, trimmed, sizeof trimmed));
    for (size_t length = strlen(trimmed); length > 1 && trimmed[length - 1] == '/'; length--)
        trimmed[length - 1] = '\0';
    const char *last = att_path_last(trimmed);
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return att_path_join(context, trimmed, "..", output, size);
    return att_path_folder(context, trimmed, output, size);
}

att_status att_run_database(att_context *context, const char *folder, char *path, size_t size)
{
    char output[ATT_RUN_PATH];
    ATT_TRY(att_require(context, folder, "the folder of a run"));
    ATT_TRY(find_output(context, folder, output, sizeof output));
    return att_path_join(context, output, "runs.sqlite", path, size);
}

/* --- the checkpoints of a run ------------------------------------------------------------------------------------- */

/* Compares files of the same size. */
static att_status compare_bytes(att_file_window *a, att_file_window *b, bool *same)
{
    enum { PIECE = 1 << 16 };
    const uint64_t size = att_file_reader_size(a->reader);
    bool differs = false;
    for (uint64_t offset = 0; !differs && offset < size; offset += PIECE) {
        const uint8_t *from_a, *from_b;
        size_t in_a, in_b;
        const size_t wanted = size - offset < PIECE ? (size_t)(size - offset) : PIECE;
        ATT_TRY(att_file_window_peek(a, offset, wanted, &from_a, &in_a));
        ATT_TRY(att_file_window_peek(b, offset, wanted, &from_b, &in_b));
        differs = memcmp(from_a, from_b, wanted) != 0;
    }
    *same = !differs;
    return ATT_OK;
}

/* Compares the file at `path` with the checkpoint. *same stays false if the file cannot be read. */
static att_status compare_file(att_context *context, const char *path, att_file_window *checkpoint, bool *same)
{
    att_file_reader *reader = NULL;
    att_status status = att_file_reader_open(context, path, &reader);
    att_file_window file = {.reader = reader};
    if (status == ATT_OK && att_file_reader_size(reader) == att_file_reader_size(checkpoint->reader))
        status = compare_bytes(&file, checkpoint, same);
    att_file_window_free(&file);
    att_file_reader_close(&reader);
    return status == ATT_ERR_MEMORY || status == ATT_ERR_STOPPED ? status : ATT_OK;
}

static bool is_checkpoint(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

static att_status look_for_copy(att_context *context, const char *folder, DIR *files, att_file_window *checkpoint,
                                bool *found)
{
    char path[ATT_RUN_PATH];
    for (struct dirent *entry; !*found && (entry = readdir(files));) {
        if (!is_checkpoint(entry->d_name))
            continue;
        ATT_TRY(att_path_join(context, folder, entry->d_name, path, sizeof path));
        ATT_TRY(compare_file(context, path, checkpoint, found));
    }
    return ATT_OK;
}

static att_status holds_copy(att_context *context, const char *folder, const char *checkpoint, bool *found)
{
    att_file_reader *reader;
    ATT_TRY(att_file_reader_open(context, checkpoint, &reader));
    att_file_window file = {.reader = reader};
    DIR *files = opendir(folder);
    att_status status = files ? look_for_copy(context, folder, files, &file, found)
                              : att_fail(context, ATT_ERR_IO, "%s: %s", folder, strerror(errno));
    if (files)
        closedir(files);
    att_file_window_free(&file);
    att_file_reader_close(&reader);
    return status;
}

att_status att_run_owns(att_context *context, const char *folder, const char *checkpoint, bool *belongs)
{
    char own[ATT_RUN_PATH];
    ATT_TRY(att_require(context, folder, "the folder of a run"));
    ATT_TRY(att_require(context, checkpoint, "the path of a checkpoint"));
    ATT_TRY(att_require(context, belongs, "the result of att_run_owns()"));
    ATT_TRY(att_path_folder(context, checkpoint, own, sizeof own));
    bool found = att_file_is_same(folder, own);
    if (!found)
        ATT_TRY(holds_copy(context, folder, checkpoint, &found));
    *belongs = found;
    return ATT_OK;
}
