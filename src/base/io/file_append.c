#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

struct att_file_appender {
    att_context *context;
    char *path;
    int descriptor;
    size_t size;
};

static att_status start_appender(att_file_appender *appender, const char *path, size_t keep)
{
    att_context *context = appender->context;
    appender->path = att_copy_string(context, path);
    if (appender->path == NULL)
        return att_fail_memory(context, strlen(path) + 1, path);
    ATT_TRY(att_context_check_write(context, path));
    struct stat info;
    ATT_TRY(att_system_open_writable(context, path, O_APPEND, &appender->descriptor, &info));
    if (info.st_nlink > 1)
        return att_fail(
            context, ATT_ERR_IO,
            "%s has %llu names (hard links), and writing to it would change the file under all of them: put "
            "a copy of it in its place",
            path, (unsigned long long)info.st_nlink);
    ATT_TRY(att_system_lock(context, appender->descriptor, path));
    if ((uint64_t)info.st_size < keep)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s has %lld bytes; expected at least %zu", path,
                        (long long)info.st_size, keep);
    if (ftruncate(appender->descriptor, (off_t)keep) != 0)
        return att_system_fail(context, errno, path, "truncated");
    appender->size = keep;
    return ATT_OK;
}

att_status att_file_appender_open(att_context *context, const char *path, size_t keep, att_file_appender **appender)
{
    att_file_appender *created;
    ATT_TRY(att_new(context, &created, 1, path));
    created->context = context;
    created->descriptor = -1;
    att_status status = start_appender(created, path, keep);
    if (status != ATT_OK) {
        att_file_appender_close(&created);
        return status;
    }
    *appender = created;
    return ATT_OK;
}

att_status att_file_appender_write(att_file_appender *appender, const void *bytes, size_t size)
{
    ATT_TRY(att_context_check_write(appender->context, appender->path));
    int code = att_system_write(appender->descriptor, bytes, size);
    if (code != 0) {
        if (ftruncate(appender->descriptor, (off_t)appender->size) != 0)
            return att_system_fail(appender->context, code, appender->path,
                                   "appended to, nor its incomplete last record removed");
        return att_system_fail(appender->context, code, appender->path, "appended to");
    }
    appender->size += size;
    return ATT_OK;
}

att_status att_file_appender_sync(att_file_appender *appender)
{
    int code = att_system_sync(appender->descriptor);
    return code == 0 ? ATT_OK : att_system_fail(appender->context, code, appender->path, "flushed to the disk");
}

void att_file_appender_close(att_file_appender **appender)
{
    if (appender == NULL || *appender == NULL)
        return;
    att_file_appender *done = *appender;
    if (done->descriptor >= 0)
        close(done->descriptor);
    att_free(done->context, done->path);
    att_free(done->context, done);
    *appender = NULL;
}
