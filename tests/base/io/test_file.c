#include "base/io/file.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/core/memory.h"
#include "base/io/scratch.h"

/* These functions replace the C library's: the linker prefers definitions in the program. */
static bool fail_fsync, fail_rename;
static const char *to_move, *moved; /* before the next lock, `to_move` is renamed to `moved` and replaced by a link */

int fsync(int descriptor)
{
    if (fail_fsync) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

int rename(const char *from, const char *to)
{
    if (fail_rename) {
        errno = EIO;
        return -1;
    }
    return renameat(-100 /* AT_FDCWD */, from, -100, to);
}

int flock(int descriptor, int operation)
{
    const char *path = to_move;
    to_move = NULL;
    if (path != NULL && (rename(path, moved) != 0 || symlink(moved, path) != 0))
        return -1;
    return (int)syscall(SYS_flock, descriptor, operation);
}

static int setup(void **state)
{
    to_move = NULL;
    fail_fsync = fail_rename = false;
    return scratch_setup(state);
}

#define FILE_TEST(name) TEST_WITH(name, scratch *self, setup, scratch_teardown)

FILE_TEST(a_file_within_the_limit_is_read_whole)
{
    char *bytes;
    size_t size;
    scratch_write(self, "hello", 5);
    assert_int_equal(att_file_read(self->context, self->path, 5, &bytes, &size), ATT_OK);
    assert_int_equal(size, 5);
    assert_string_equal(bytes, "hello");
    att_free(self->context, bytes);

    assert_fails(self->context, att_file_read(self->context, self->path, 4, &bytes, &size), ATT_ERR_FORMAT, self->path);
    assert_message_has(self, "4 bytes");
    assert_int_equal(att_file_read(self->context, self->folder, 4, &bytes, &size), ATT_ERR_IO);
    assert_fails(self->context, att_file_read(self->context, "/no/such/file", 4, &bytes, &size), ATT_ERR_NOT_FOUND,
                 "/no/such/file");

    scratch_write(self, "", 0);
    assert_int_equal(att_file_read(self->context, self->path, 0, &bytes, &size), ATT_OK);
    assert_int_equal(size, 0);
    assert_string_equal(bytes, "");
    att_free(self->context, bytes);
}

FILE_TEST(a_large_file_is_read_whole)
{
    enum { SIZE = 300001 };
    char *written = malloc(SIZE), *bytes;
    for (int i = 0; i < SIZE; i++)
        written[i] = (char)(i * 7 + i / 256);
    scratch_write(self, written, SIZE);
    size_t size;
    assert_int_equal(att_file_read(self->context, self->path, SIZE_MAX, &bytes, &size), ATT_OK);
    assert_int_equal(size, SIZE);
    assert_memory_equal(bytes, written, SIZE);
    att_free(self->context, bytes);
    assert_int_equal(att_file_read(self->context, self->path, SIZE - 1, &bytes, &size), ATT_ERR_FORMAT);
    free(written);
}

FILE_TEST(any_part_of_a_file_is_read)
{
    att_file_reader *reader = NULL;
    char part[4] = "";
    scratch_write(self, "in parts", 8);
    assert_int_equal(att_file_reader_open(self->context, self->path, &reader), ATT_OK);
    assert_int_equal(att_file_reader_size(reader), 8);
    assert_int_equal(att_file_reader_read(reader, 3, part, 3), ATT_OK);
    assert_string_equal(part, "par");
    assert_int_equal(att_file_reader_read(reader, 6, part, 3), ATT_ERR_IO);
    att_file_reader_close(&reader);
    att_file_reader_close(&reader);
    assert_int_equal(unlink(self->path), 0);
    assert_int_equal(att_file_reader_open(self->context, self->path, &reader), ATT_ERR_NOT_FOUND);
}

FILE_TEST(only_regular_files_are_read)
{
    att_file_reader *reader = NULL;
    assert_int_equal(att_file_reader_open(self->context, self->folder, &reader), ATT_ERR_IO);
    assert_int_equal(mkfifo(self->path, 0600), 0);
    assert_int_equal(att_file_reader_open(self->context, self->path, &reader), ATT_ERR_IO);
    assert_null(reader);
    char *bytes; /* the read blocks: nobody writes into the pipe */
    size_t size;
    assert_fails(self->context, att_file_read(self->context, self->path, 5, &bytes, &size), ATT_ERR_IO,
                 "is not a regular file");
    assert_int_equal(att_file_read(self->context, "/dev/zero", 5, &bytes, &size), ATT_ERR_IO);
}

/* Nobody reads from the pipe: opening it for writing would wait. */
FILE_TEST(a_pipe_is_neither_locked_nor_appended_to)
{
    att_file_appender *appender = NULL;
    att_file_lock *lock = NULL;
    assert_int_equal(mkfifo(self->path, 0600), 0);
    alarm(60); /* ends the test if it blocks */
    for (int reader = -1, round = 0; round < 2; round++) {
        assert_fails(self->context, att_file_lock_take(self->context, self->path, "a test", &lock), ATT_ERR_IO,
                     "is not a regular file");
        assert_fails(self->context, att_file_appender_open(self->context, self->path, 0, &appender), ATT_ERR_IO,
                     "is not a regular file");
        if (round == 0)
            reader = open(self->path, O_RDONLY | O_NONBLOCK);
        else
            close(reader);
    }
    alarm(0);
    assert_null(lock);
    assert_null(appender);
    assert_int_equal(unlink(self->path), 0);
    assert_int_equal(symlink("elsewhere", self->path), 0);
    assert_fails(self->context, att_file_lock_take(self->context, self->path, "a test", &lock), ATT_ERR_IO,
                 "is a symbolic link, which is not followed for writing: remove it");
}

FILE_TEST(a_file_shortened_while_read_is_reported)
{
    att_file_reader *reader = NULL;
    char part[4];
    scratch_write(self, "complete", 8);
    assert_int_equal(att_file_reader_open(self->context, self->path, &reader), ATT_OK);
    assert_int_equal(truncate(self->path, 6), 0);
    assert_int_equal(att_file_reader_read(reader, 2, part, 4), ATT_OK);
    assert_fails(self->context, att_file_reader_read(reader, 4, part, 4), ATT_ERR_IO, self->path);
    assert_message_has(self, "ended at byte 6 while it was read, and had 8 bytes when it was opened");
    att_file_reader_close(&reader);
}

/* After a failed read, the window must not show earlier bytes as the requested ones. */
FILE_TEST(a_window_shows_right_bytes_after_a_failure)
{
    const uint8_t *bytes;
    size_t size;
    scratch_write(self, "abcdefghIJKLMNOP", 16);
    att_file_window window = {.reader = NULL};
    assert_int_equal(att_file_reader_open(self->context, self->path, &window.reader), ATT_OK);
    assert_int_equal(att_file_window_peek(&window, 0, 8, &bytes, &size), ATT_OK);
    assert_int_equal(truncate(self->path, 12), 0);
    assert_int_equal(att_file_window_peek(&window, 8, 8, &bytes, &size), ATT_ERR_IO);
    assert_int_equal(att_file_window_peek(&window, 0, 8, &bytes, &size), ATT_OK);
    assert_int_equal(size, 8);
    assert_memory_equal(bytes, "abcdefgh", 8);
    att_file_reader *reader = window.reader;
    att_file_window_free(&window);
    att_file_reader_close(&reader);
}

FILE_TEST(lines_are_found_and_too_long_ones_refused)
{
    enum { LONG = 300000 };
    char *text = malloc(LONG);
    memset(text, 'x', LONG);
    memcpy(text, "a\n\n", 3);
    text[LONG - 4] = '\n';
    scratch_write(self, text, LONG);
    free(text);
    const size_t begins[] = {0, 2, 3, LONG - 3, LONG}, lengths[] = {1, 0, LONG - 7, 3};
    att_file_window window = {.reader = NULL};
    assert_int_equal(att_file_reader_open(self->context, self->path, &window.reader), ATT_OK);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 4; i++) {
            const char *line;
            size_t length;
            bool whole;
            assert_int_equal(att_file_window_line(&window, begins[i], LONG, &line, &length, &whole), ATT_OK);
            assert_int_equal(length, lengths[i]);
            assert_int_equal(whole, i < 3);
            assert_true(length == 0 || line[length - 1] == (i == 0 ? 'a' : 'x'));
        }
    const char *line;
    size_t length;
    bool whole;
    assert_int_equal(att_file_window_line(&window, begins[4], LONG, &line, &length, &whole), ATT_OK);
    assert_null(line);
    assert_fails(self->context, att_file_window_line(&window, 3, 1000, &line, &length, &whole), ATT_ERR_FORMAT,
                 "a line of more than 1000 bytes");
    att_file_reader *reader = window.reader;
    att_file_window_free(&window);
    att_file_reader_close(&reader);
}

FILE_TEST(missing_folders_are_made)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/a//b/c/", self->folder);
    assert_false(att_file_exists(path));
    assert_int_equal(att_file_make_folders(self->context, path), ATT_OK);
    assert_true(att_file_exists(path));
    assert_int_equal(att_file_make_folders(self->context, path), ATT_OK);
    scratch_write(self, "", 0);
    snprintf(path, sizeof(path), "%s/file/below", self->folder);
    assert_fails(self->context, att_file_make_folders(self->context, path), ATT_ERR_IO, "/file");
    assert_int_equal(att_file_make_folders(self->context, "/"), ATT_OK);
    assert_int_equal(att_file_make_folders(self->context, ""), ATT_ERR_NOT_FOUND);
}

FILE_TEST(a_file_is_replaced_only_on_commit)
{
    assert_int_equal(att_file_replace(self->context, self->path, "old", 3), ATT_OK);
    att_file_writer *writer;
    assert_int_equal(att_file_writer_open(self->context, self->path, &writer), ATT_OK);
    assert_int_equal(att_file_writer_write(writer, "ne", 2), ATT_OK);
    assert_text_file(self->path, "old");
    assert_int_equal(att_file_writer_write(writer, "w", 1), ATT_OK);
    assert_int_equal(att_file_writer_commit(&writer), ATT_OK);
    assert_null(writer);
    assert_text_file(self->path, "new");
    assert_int_equal(scratch_file_count(self), 1);

    assert_int_equal(att_file_writer_open(self->context, self->path, &writer), ATT_OK);
    assert_int_equal(att_file_writer_write(writer, "unwanted", 8), ATT_OK);
    att_file_writer_abort(&writer);
    assert_null(writer);
    att_file_writer_abort(&writer);
    assert_text_file(self->path, "new");
    assert_int_equal(scratch_file_count(self), 1);

    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(self->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

FILE_TEST(a_leftover_temporary_file_is_overwritten)
{
    char leftover[200];
    snprintf(leftover, sizeof(leftover), "%s.tmp", self->path);
    FILE *file = fopen(leftover, "w");
    fputs("the half of a checkpoint, left by a process that was killed", file);
    fclose(file);
    assert_int_equal(att_file_replace(self->context, self->path, "whole", 5), ATT_OK);
    assert_text_file(self->path, "whole");
    assert_int_equal(scratch_file_count(self), 1);
}

/* Writing does not follow links. */
FILE_TEST(writing_follows_no_links)
{
    char mine[200], temporary[200];
    snprintf(mine, sizeof(mine), "%s/mine", self->folder);
    snprintf(temporary, sizeof(temporary), "%s.tmp", self->path);
    assert_int_equal(att_file_replace(self->context, mine, "mine", 4), ATT_OK);
    assert_int_equal(symlink(mine, self->path), 0);
    att_file_appender *appender = NULL;
    assert_int_equal(att_file_appender_open(self->context, self->path, 0, &appender), ATT_ERR_IO);
    assert_null(appender);
    assert_message_has(self, self->path);
    assert_message_has(self, "is a symbolic link, which is not followed for writing: remove it");
    assert_int_equal(symlink(mine, temporary), 0);
    assert_int_equal(att_file_replace(self->context, self->path, "theirs", 6), ATT_OK);
    assert_text_file(self->path, "theirs");
    assert_text_file(mine, "mine");
    assert_int_equal(scratch_file_count(self), 2);
    assert_int_equal(link(mine, temporary), 0);
    assert_int_equal(att_file_replace(self->context, self->path, "again", 5), ATT_OK);
    assert_text_file(mine, "mine");
    assert_int_equal(mkdir(temporary, 0700), 0);
    assert_fails(self->context, att_file_replace(self->context, self->path, "never", 5), ATT_ERR_IO, temporary);
    assert_text_file(self->path, "again");
}

/* The temporary file is renamed before it is locked, and replaced by a link to it: it must not be written. */
FILE_TEST(a_link_in_place_of_the_temporary_file_is_noticed)
{
    char temporary[200], elsewhere[200];
    struct stat info;
    snprintf(temporary, sizeof(temporary), "%s.tmp", self->path);
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", self->folder);
    to_move = temporary;
    moved = elsewhere;
    assert_int_equal(att_file_replace(self->context, self->path, "whole", 5), ATT_OK);
    assert_text_file(elsewhere, "");
    assert_int_equal(lstat(self->path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_text_file(self->path, "whole");
    assert_int_equal(scratch_file_count(self), 2);
}

/* Opening a pipe waits for neither a reader nor a writer. */
FILE_TEST(a_pipe_in_place_of_the_temporary_file_is_removed)
{
    char temporary[200];
    snprintf(temporary, sizeof(temporary), "%s.tmp", self->path);
    assert_int_equal(mkfifo(temporary, 0600), 0);
    alarm(60); /* ends the test if it blocks */
    assert_int_equal(att_file_replace(self->context, self->path, "whole", 5), ATT_OK);
    alarm(0);
    assert_text_file(self->path, "whole");
    assert_int_equal(scratch_file_count(self), 1);
}

FILE_TEST(a_file_with_several_names_is_not_appended_to)
{
    char mine[200];
    snprintf(mine, sizeof(mine), "%s/mine", self->folder);
    assert_int_equal(att_file_replace(self->context, mine, "mine", 4), ATT_OK);
    assert_int_equal(link(mine, self->path), 0);
    att_file_appender *appender = NULL;
    assert_int_equal(att_file_appender_open(self->context, self->path, 0, &appender), ATT_ERR_IO);
    assert_null(appender);
    assert_message_has(self, self->path);
    assert_message_has(self, "has 2 names (hard links)");
    assert_text_file(mine, "mine");
    assert_int_equal(unlink(mine), 0);
    assert_int_equal(att_file_appender_open(self->context, self->path, 4, &appender), ATT_OK);
    att_file_appender_close(&appender);
}

FILE_TEST(a_file_being_written_and_special_files_are_refused)
{
    att_file_writer *first, *second;
    assert_int_equal(att_file_writer_open(self->context, self->path, &first), ATT_OK);
    assert_fails(self->context, att_file_writer_open(self->context, self->path, &second), ATT_ERR_IO, "being written");
    assert_int_equal(att_file_writer_write(first, "1", 1), ATT_OK);
    assert_int_equal(att_file_writer_commit(&first), ATT_OK);
    assert_text_file(self->path, "1");
    assert_int_equal(att_file_writer_open(self->context, "/dev/null", &first), ATT_ERR_IO);
    assert_int_equal(att_file_writer_open(self->context, self->folder, &first), ATT_ERR_IO);
    assert_int_equal(att_file_writer_open(self->context, "/no/such/folder/file", &first), ATT_ERR_NOT_FOUND);
}

FILE_TEST(a_failed_flush_or_rename_keeps_the_old_file)
{
    assert_int_equal(att_file_replace(self->context, self->path, "old", 3), ATT_OK);
    fail_fsync = true;
    assert_int_equal(att_file_replace(self->context, self->path, "new", 3), ATT_ERR_IO);
    fail_fsync = false;
    assert_message_has(self, "No space left");
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
    fail_rename = true;
    assert_int_equal(att_file_replace(self->context, self->path, "new", 3), ATT_ERR_IO);
    fail_rename = false;
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
}

/* Runs `call` with a limit of `limit` bytes for files, as on a full disk. */
static att_status call_with_full_disk(scratch *self, size_t limit, att_status (*call)(scratch *self))
{
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    att_status status = call(self);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

static char block[10000];

static att_status replace_in_pieces(scratch *self)
{
    att_file_writer *writer;
    att_status status = att_file_writer_open(self->context, self->path, &writer);
    for (int i = 0; i < 3 && status == ATT_OK; i++)
        status = att_file_writer_write(writer, block, sizeof(block));
    /* A failed writer cannot be committed by mistake. */
    assert_int_equal(att_file_writer_commit(&writer), status);
    return status;
}

FILE_TEST(a_full_disk_keeps_the_old_file)
{
    assert_int_equal(att_file_replace(self->context, self->path, "old", 3), ATT_OK);
    assert_fails(self->context, call_with_full_disk(self, 15000, replace_in_pieces), ATT_ERR_IO, self->path);
    assert_text_file(self->path, "old");
    assert_int_equal(scratch_file_count(self), 1);
    assert_int_equal(call_with_full_disk(self, 30000, replace_in_pieces), ATT_OK);
}

static att_status append_too_much(scratch *self)
{
    att_file_appender *appender;
    att_status status = att_file_appender_open(self->context, self->path, 4, &appender);
    assert_int_equal(status, ATT_OK);
    assert_int_equal(att_file_appender_write(appender, "two\n", 4), ATT_OK);
    status = att_file_appender_write(appender, block, sizeof(block));
    assert_text_file(self->path, "one\ntwo\n");
    assert_int_equal(att_file_appender_write(appender, "three\n", 6), ATT_OK);
    att_file_appender_close(&appender);
    return status;
}

FILE_TEST(records_are_appended_whole_or_not_at_all)
{
    att_file_appender *appender;
    assert_int_equal(att_file_appender_open(self->context, self->path, 0, &appender), ATT_OK);
    assert_int_equal(att_file_appender_write(appender, "one\n", 4), ATT_OK);
    assert_int_equal(att_file_appender_write(appender, "lost\n", 5), ATT_OK);
    att_file_appender *second = NULL;
    assert_int_equal(att_file_appender_open(self->context, self->path, 0, &second), ATT_ERR_IO);
    assert_null(second);
    assert_int_equal(att_file_appender_sync(appender), ATT_OK);
    assert_text_file(self->path, "one\nlost\n");
    att_file_appender_close(&appender);
    assert_null(appender);
    /* On a full disk, no partial record stays in the file. */
    assert_int_equal(call_with_full_disk(self, 1000, append_too_much), ATT_ERR_IO);
    assert_text_file(self->path, "one\ntwo\nthree\n");
    assert_int_equal(att_file_appender_open(self->context, self->path, 15, &appender), ATT_ERR_ARGUMENT);
    assert_int_equal(att_file_appender_open(self->context, "/dev/full", 0, &appender), ATT_ERR_IO);
    assert_int_equal(att_file_appender_open(self->context, "/no/such/log", 0, &appender), ATT_ERR_NOT_FOUND);
}

static att_status use_everything(scratch *self)
{
    char *bytes;
    size_t size;
    att_status status = att_file_make_folders(self->context, self->folder);
    if (status == ATT_OK)
        status = att_file_replace(self->context, self->path, "x", 1);
    if (status != ATT_OK)
        return status;
    status = att_file_read(self->context, self->path, 10, &bytes, &size);
    if (status != ATT_OK)
        return status;
    att_free(self->context, bytes);
    att_file_appender *appender;
    status = att_file_appender_open(self->context, self->path, 0, &appender);
    if (status == ATT_OK)
        att_file_appender_close(&appender);
    return status;
}

FILE_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, use_everything);
    assert_int_equal(scratch_file_count(self), 1);
}

/* A process killed between any two system calls leaves the old file or the new one. */
FILE_TEST(a_kill_leaves_the_old_file_or_the_new_one)
{
    for (int round = 0; round < 20; round++) {
        assert_int_equal(att_file_replace(self->context, self->path, "0", 1), ATT_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            memset(block, '1', sizeof(block));
            for (;;)
                if (att_file_replace(self->context, self->path, block, sizeof(block)) != ATT_OK)
                    _exit(1);
        }
        usleep((useconds_t)(round * 500));
        kill(child, SIGKILL);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        char *bytes;
        size_t size;
        assert_int_equal(att_file_read(self->context, self->path, sizeof(block), &bytes, &size), ATT_OK);
        assert_true((size == 1 && bytes[0] == '0') || (size == sizeof(block) && bytes[size - 1] == '1'));
        att_free(self->context, bytes);
    }
}

SCRATCH_TEST(paths_are_joined_and_parted_where_they_fit)
{
    char path[8];
    assert_int_equal(att_path_join(self->context, "a", "b", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, "a/b");
    assert_int_equal(att_path_join(self->context, "a/", "b", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, "a/b");
    assert_int_equal(att_path_join(self->context, "", "b", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, "b");
    assert_fails(self->context, att_path_join(self->context, "folder", "b", path, sizeof(path)), ATT_ERR_ARGUMENT,
                 "the buffer of 8 bytes is too small for a path of 8 bytes and its terminating zero");
    assert_string_equal(path, "");
    char name[PATH_MAX + 1];
    memset(name, 'x', PATH_MAX);
    name[PATH_MAX] = '\0';
    assert_fails(self->context, att_path_join(self->context, "a", name, path, sizeof(path)), ATT_ERR_ARGUMENT,
                 "\"a/xxxxx...\" is longer than a path may be");
    assert_int_equal(att_path_folder(self->context, "/b", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, "/");
    assert_int_equal(att_path_folder(self->context, "a/b/c", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, "a/b");
    assert_int_equal(att_path_folder(self->context, "c", path, sizeof(path)), ATT_OK);
    assert_string_equal(path, ".");
    assert_int_equal(att_path_folder(self->context, "a folder/c", path, sizeof(path)), ATT_ERR_ARGUMENT);
    assert_int_equal(att_path_copy(self->context, "a folder", path, sizeof(path)), ATT_ERR_ARGUMENT);
    assert_true(att_file_exists_in("/", "tmp"));
    assert_false(att_file_exists_in(self->folder, "tmp"));
}
