#include "base/io/file.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/system.h"

struct att_file_lock {
    att_context *context;
    int descriptor;
};

/* Waits a tenth of a second at a time, so that a request to stop is noticed. */
static att_status wait_for_lock(att_context *context, int descriptor, const char *path, const char *what)
{
    const struct timespec tenth = {.tv_nsec = 100 * 1000 * 1000};
    bool told = false;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return ATT_OK;
        if (!told)
            att_log(context, ATT_LOG_INFO, "waiting for another process: %s", what);
        told = true;
        ATT_TRY(att_check_stop(context, path));
        nanosleep(&tenth, NULL);
    }
    return ATT_OK;
}

/* The process that had the lock may have removed the file; then another process could lock a new one. */
static att_status take_lock(att_file_lock *lock, const char *path, const char *what)
{
    struct stat info;
    for (;;) {
        ATT_TRY(att_system_open_writable(lock->context, path, 0, &lock->descriptor, &info));
        ATT_TRY(wait_for_lock(lock->context, lock->descriptor, path, what));
        if (att_system_is_named(lock->descriptor, path))
            return ATT_OK;
        close(lock->descriptor);
        lock->descriptor = -1;
    }
}

/* Without a lock if the folder cannot be read. */
static att_status take_folder_lock(att_file_lock *lock, const char *path, const char *what)
{
    lock->descriptor = att_system_open(path, O_RDONLY | O_DIRECTORY);
    return lock->descriptor < 0 ? ATT_OK : wait_for_lock(lock->context, lock->descriptor, path, what);
}

att_status att_file_lock_take(att_context *context, const char *path, const char *what, att_file_lock **lock)
{
    att_file_lock *created;
    ATT_TRY(att_new(context, &created, 1, path));
    *created = (att_file_lock){.context = context, .descriptor = -1};
    att_status status =
        att_file_is_folder(path) ? take_folder_lock(created, path, what) : take_lock(created, path, what);
    if (status == ATT_OK)
        *lock = created;
    else
        att_file_lock_release(&created);
    return status;
}

void att_file_lock_release(att_file_lock **lock)
{
    if (lock == NULL || *lock == NULL)
        return;
    if ((*lock)->descriptor >= 0)
        close((*lock)->descriptor);
    att_free((*lock)->context, *lock);
    *lock = NULL;
}
