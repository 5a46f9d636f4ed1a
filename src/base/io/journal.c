#include "base/io/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "base/io/system.h"

enum { NAME = 64, MOST_BYTES = 4 << 20, FIRST = 1 };

struct att_journal {
    att_context *context;
    char *path;
    char name[NAME]; /* of this process */
    int folder;      /* a descriptor, so that all calls concern the same folder, also if it is removed and another one
                        takes its path */
    int64_t read;    /* number of the last entry that was read; 0: none */
    double now;      /* the file system's clock at the last att_journal_look() */
};

/* --- files of the folder ------------------------------------------------------------------------------------------ */

static void name_entry(int64_t number, char name[NAME])
{
    snprintf(name, NAME, "%08lld", (long long)number);
}

static void name_own(const char *process, const char *kind, char name[NAME])
{
    snprintf(name, NAME, "%.40s.%s", process, kind);
}

static att_status fail_system(const att_journal *journal, int code, const char *name, const char *action)
{
    char reason[128];
    if (strerror_r(code, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "the system's error %d", code);
    return att_fail(journal->context, code == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s/%s could not be %s: %s",
                    journal->path, name, action, reason);
}

/* Whether the system's error means that a file, or its whole folder, does not exist. ESTALE: another machine removed it
 * from a network file system. */
static bool is_gone(int code)
{
    return code == ENOENT || code == ESTALE;
}

static int open_at(int folder, const char *name, int flags)
{
    int descriptor;
    do
        descriptor = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* Writes and flushes the whole text. Returns 0 or an error number. */
static int write_text(int descriptor, const char *text)
{
    int code = att_system_write(descriptor, text, strlen(text));
    if (code != 0 || *text == '\0')
        return code;
    code = att_system_sync(descriptor);
    return code == EINVAL ? 0 : code; /* the file system does not flush files */
}

/* Creates a file, which must not exist. Returns 0 or an error number. */
static int create_file(int folder, const char *name, const char *text)
{
    int descriptor = open_at(folder, name, O_WRONLY | O_CREAT | O_EXCL);
    if (descriptor < 0)
        return errno;
    int code = write_text(descriptor, text);
    if (close(descriptor) != 0 && code == 0)
        code = errno;
    if (code != 0)
        unlinkat(folder, name, 0);
    return code;
}

static void remove_files(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = copy < 0 ? NULL : fdopendir(copy);
    if (!files && copy >= 0)
        close(copy);
    for (struct dirent *entry; files && (entry = readdir(files));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(folder, entry->d_name, 0);
    if (files)
        closedir(files);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static att_status make_journal(att_context *context, const char *path, const char *name, att_journal **journal)
{
    att_journal *made = att_allocate(context, sizeof *made);
    char *copy = att_copy_string(context, path);
    if (!made || !copy) {
        att_free(context, made);
        att_free(context, copy);
        return att_fail_memory(context, sizeof *made, path);
    }
    *made = (att_journal){.context = context, .path = copy, .folder = -1};
    snprintf(made->name, sizeof made->name, "%s", name);
    *journal = made;
    return ATT_OK;
}

void att_journal_close(att_journal **journal)
{
    if (!journal || !*journal)
        return;
    att_journal *closed = *journal;
    if (closed->folder >= 0)
        close(closed->folder);
    att_free(closed->context, closed->path);
    att_free(closed->context, closed);
    *journal = NULL;
}

/* Opens the folder at `path`. Returns 0 or an error number. */
static int open_folder(att_journal *journal, const char *path)
{
    journal->folder = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    return journal->folder < 0 ? errno : 0;
}

att_status att_journal_open(att_context *context, const char *path, const char *name, att_journal **journal)
{
    att_journal *made = NULL;
    ATT_TRY(make_journal(context, path, name, &made));
    int code = open_folder(made, path);
    att_status status = code == 0 || is_gone(code) ? ATT_OK : fail_system(made, code, "", "opened");
    if (code != 0)
        att_journal_close(&made);
    *journal = made;
    return status;
}

/* Fills the folder at `fresh`, and gives it the journal's path. *created: false if that path exists. */
static att_status fill_and_publish(att_journal *journal, const char *fresh, const char *first, bool *created)
{
    char entry[NAME];
    name_entry(FIRST, entry);
    int code = open_folder(journal, fresh);
    if (code == 0)
        code = create_file(journal->folder, entry, first);
    if (code != 0)
        return fail_system(journal, code, entry, "written");
    ATT_TRY(att_journal_mark(journal));
    *created = rename(fresh, journal->path) == 0;
    /* A folder that is not empty is not replaced. */
    return *created || errno == EEXIST || errno == ENOTEMPTY ? ATT_OK
                                                             : fail_system(journal, errno, "", "created as a folder");
}

att_status att_journal_create(att_context *context, const char *path, const char *name, const char *first,
                              att_journal **journal)
{
    char fresh[PATH_MAX];
    att_journal *made = NULL;
    bool created = false;
    *journal = NULL;
    if (snprintf(fresh, sizeof fresh, "%s-%s", path, name) >= (int)sizeof fresh)
        return att_fail(context, ATT_ERR_ARGUMENT, "\"%.64s...\" is longer than a path may be", path);
    ATT_TRY(make_journal(context, path, name, &made));
    att_status status = mkdir(fresh, 0777) == 0 ? fill_and_publish(made, fresh, first, &created)
                                                : fail_system(made, errno, "", "created as a folder");
    if (!created) {
        if (made->folder >= 0)
            remove_files(made->folder);
        rmdir(fresh);
        att_journal_close(&made);
    }
    *journal = made;
    return status;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Reads the whole file. *text: NULL if its last line has no end: on a file system without hard links, an entry is
 * visible while it is written. */
static att_status read_whole(const att_journal *journal, const char *name, int descriptor, char **text)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return fail_system(journal, errno, name, "examined");
    if (!S_ISREG(info.st_mode) || info.st_size > MOST_BYTES)
        return att_fail(journal->context, ATT_ERR_FORMAT, "%s/%s is not an entry: expected a file of at most %d bytes",
                        journal->path, name, (int)MOST_BYTES);
    size_t size = (size_t)info.st_size, done = 0;
    char *bytes = att_allocate(journal->context, size + 1);
    if (!bytes)
        return att_fail_memory(journal->context, size + 1, name);
    for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR); done += got > 0 ? (size_t)got : 0)
        got = read(descriptor, bytes + done, size - done);
    if (done == size && size > 0 && bytes[size - 1] == '\n')
        *text = bytes;
    else
        att_free(journal->context, bytes);
    return ATT_OK;
}

/* Reads the entry `number`. *text: NULL if it does not exist yet. */
static att_status read_entry(const att_journal *journal, int64_t number, char **text)
{
    char name[NAME];
    *text = NULL;
    name_entry(number, name);
    int descriptor = open_at(journal->folder, name, O_RDONLY);
    if (descriptor < 0)
        return is_gone(errno) ? ATT_OK : fail_system(journal, errno, name, "opened");
    att_status status = read_whole(journal, name, descriptor, text);
    close(descriptor);
    return status;
}

att_status att_journal_read(att_journal *journal, char **entry)
{
    ATT_TRY(read_entry(journal, journal->read + 1, entry));
    journal->read += *entry != NULL;
    return ATT_OK;
}

bool att_journal_exists(const att_journal *journal)
{
    char name[NAME];
    name_entry(FIRST, name);
    int descriptor = open_at(journal->folder, name, O_RDONLY); /* opening asks the file server; a look-up may not */
    if (descriptor < 0)
        return !is_gone(errno);
    close(descriptor);
    return true;
}

/* Returns whether the entry has this text. A file server may carry out a request whose answer was lost, and then answer
 * the repeated request with an error. */
static bool is_entry(const att_journal *journal, int64_t number, const char *text)
{
    char *found = NULL;
    bool same = read_entry(journal, number, &found) == ATT_OK && found && strcmp(found, text) == 0;
    att_free(journal->context, found);
    return same;
}

/* Gives the file `own` the name of the next entry. Returns 0 or an error number. */
static int publish(const att_journal *journal, const char *own, const char *entry, const char *text)
{
    if (linkat(journal->folder, own, journal->folder, entry, 0) == 0)
        return 0;
    bool has_links = errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS;
    return has_links ? errno : create_file(journal->folder, entry, text);
}

att_status att_journal_append(att_journal *journal, const char *text, bool *appended)
{
    char own[NAME], entry[NAME];
    name_own(journal->name, "new", own);
    name_entry(journal->read + 1, entry);
    *appended = false;
    unlinkat(journal->folder, own, 0);
    int code = create_file(journal->folder, own, text);
    if (code == 0)
        code = publish(journal, own, entry, text);
    unlinkat(journal->folder, own, 0);
    if (code == EEXIST && is_entry(journal, journal->read + 1, text))
        code = 0;
    if (code != 0 && code != EEXIST && !is_gone(code))
        return fail_system(journal, code, entry, "written");
    *appended = code == 0 && att_journal_exists(journal);
    return ATT_OK;
}

/* The first entry is removed first: att_journal_append() relies on it. */
void att_journal_remove(att_journal *journal)
{
    char name[NAME];
    name_entry(FIRST, name);
    unlinkat(journal->folder, name, 0);
    remove_files(journal->folder);
    rmdir(journal->path); /* fails for another journal, which is not empty */
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

att_status att_journal_mark(att_journal *journal)
{
    char name[NAME];
    name_own(journal->name, "alive", name);
    int code = create_file(journal->folder, name, "");
    return code == 0 ? ATT_OK : fail_system(journal, code, name, "created");
}

att_status att_journal_mark_path(const att_journal *journal, const char *name, char *path, size_t size)
{
    char file[NAME];
    name_own(name, "alive", file);
    return att_path_join(journal->context, journal->path, file, path, size);
}

void att_journal_unmark(att_journal *journal, const char *name)
{
    char file[NAME];
    name_own(name, "alive", file);
    unlinkat(journal->folder, file, 0);
}

att_mark att_mark_renew(const char *path)
{
    if (utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
        return ATT_MARK_RENEWED;
    return is_gone(errno) ? ATT_MARK_GONE : ATT_MARK_UNKNOWN;
}

/* Modification time of the open file in seconds, which the file server is asked for; infinite after a failure. Closes
 * the file. */
static double time_of(int descriptor)
{
    struct stat info;
    double time = INFINITY;
    if (descriptor >= 0 && fstat(descriptor, &info) == 0)
        time = (double)info.st_mtim.tv_sec + 1e-9 * (double)info.st_mtim.tv_nsec;
    if (descriptor >= 0)
        close(descriptor);
    return time;
}

att_status att_journal_look(att_journal *journal)
{
    char name[NAME];
    name_own(journal->name, "clock", name);
    unlinkat(journal->folder, name, 0);
    int code = create_file(journal->folder, name, "");
    if (code == 0)
        journal->now = time_of(open_at(journal->folder, name, O_RDONLY));
    unlinkat(journal->folder, name, 0);
    return code == 0 || is_gone(code) ? ATT_OK : fail_system(journal, code, name, "created");
}

double att_journal_mark_age(const att_journal *journal, const char *name)
{
    char file[NAME];
    name_own(name, "alive", file);
    int descriptor = open_at(journal->folder, file, O_RDONLY);
    if (descriptor < 0)
        return is_gone(errno) ? INFINITY : 0; /* a failure does not tell that the process is dead */
    double time = time_of(descriptor);
    return isfinite(time) && isfinite(journal->now) ? journal->now - time : 0;
}
