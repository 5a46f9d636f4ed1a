/* A journal to which several processes append. */
#include "base/io/journal.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/core/memory.h"
#include "base/io/scratch.h"

/* Returns the path of a file in the test's folder, valid until the next call. */
static const char *path_of(const scratch *self, const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    return path;
}

static const char *journal_path(const scratch *self)
{
    return path_of(self, "journal");
}

static att_journal *open_journal(scratch *self, const char *name)
{
    att_journal *journal = NULL;
    assert_int_equal(att_journal_open(self->context, journal_path(self), name, &journal), ATT_OK);
    return journal;
}

static att_journal *create_journal(scratch *self, const char *name)
{
    att_journal *journal = NULL;
    CHECK(self->context, att_journal_create(self->context, journal_path(self), name, "first\n", &journal));
    return journal;
}

/* Expects this entry as the next one; NULL: none. */
static void assert_next(scratch *self, att_journal *journal, const char *expected)
{
    char *entry;
    assert_int_equal(att_journal_read(journal, &entry), ATT_OK);
    if (expected)
        assert_string_equal(entry, expected);
    else
        assert_null(entry);
    att_free(self->context, entry);
}

static bool append(att_journal *journal, const char *entry)
{
    bool appended;
    assert_int_equal(att_journal_append(journal, entry, &appended), ATT_OK);
    return appended;
}

SCRATCH_TEST(entries_have_one_order)
{
    assert_null(open_journal(self, "b"));
    att_journal *a = create_journal(self, "a"), *b = open_journal(self, "b");
    assert_null(create_journal(self, "c")); /* exists */
    assert_false(append(b, "too early\n"));
    assert_next(self, a, "first\n");
    assert_next(self, b, "first\n");
    assert_true(append(a, "second\n"));
    assert_false(append(b, "third\n")); /* b has not read the second */
    assert_true(append(a, "second\n")); /* the same text counts as the same entry, as after a lost answer */
    assert_next(self, a, "second\n");
    assert_next(self, a, NULL);
    assert_next(self, b, "second\n");
    assert_true(append(b, "third\n"));
    assert_next(self, a, "third\n");
    att_journal_close(&a);
    att_journal_close(&b);
}

/* Only in child processes, where a failed assertion would return to the parent's test. */
static void child_appends(scratch *self, int child, int count)
{
    char name[8], entry[32];
    att_journal *journal = NULL;
    snprintf(name, sizeof name, "c%d", child);
    if (att_journal_open(self->context, journal_path(self), name, &journal) != ATT_OK)
        _exit(1);
    for (int i = 0; i < count;) {
        char *read;
        bool appended = false;
        snprintf(entry, sizeof entry, "%d %d\n", child, i);
        do {
            if (att_journal_read(journal, &read) != ATT_OK)
                _exit(2);
            if (read && strcmp(read, entry) == 0)
                _exit(3); /* an entry that was not appended */
        } while (read);
        if (att_journal_append(journal, entry, &appended) != ATT_OK)
            _exit(4);
        if (appended && (att_journal_read(journal, &read) != ATT_OK || !read || strcmp(read, entry) != 0))
            _exit(5); /* another entry took its place */
        i += appended;
    }
    _exit(0);
}

static void wait_for_children(int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

SCRATCH_TEST(processes_append_at_the_same_time)
{
    enum { CHILDREN = 4, ENTRIES = 40 };
    int next[CHILDREN] = {0};
    att_journal *journal = create_journal(self, "a");
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0)
            child_appends(self, i, ENTRIES);
    wait_for_children(CHILDREN);
    assert_next(self, journal, "first\n");
    for (int i = 0; i < CHILDREN * ENTRIES; i++) {
        char *entry;
        int child, number;
        assert_int_equal(att_journal_read(journal, &entry), ATT_OK);
        assert_non_null(entry);
        assert_int_equal(sscanf(entry, "%d %d", &child, &number), 2);
        assert_int_equal(number, next[child]++);
        att_free(self->context, entry);
    }
    assert_next(self, journal, NULL);
    att_journal_close(&journal);
}

SCRATCH_TEST(one_of_several_processes_creates_it)
{
    enum { CHILDREN = 4, REPEATS = 20 };
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        int created = 0;
        for (int i = 0; i < CHILDREN; i++)
            if (fork() == 0) {
                char name[8];
                att_journal *journal = NULL;
                snprintf(name, sizeof name, "c%d", i);
                att_status status = att_journal_create(self->context, journal_path(self), name, "first\n", &journal);
                _exit(status != ATT_OK ? 2 : journal ? 1 : 0);
            }
        for (int i = 0; i < CHILDREN; i++) {
            int status;
            assert_true(wait(&status) > 0);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
            created += WEXITSTATUS(status);
        }
        assert_int_equal(created, 1);
        att_journal *journal = open_journal(self, "a");
        assert_next(self, journal, "first\n");
        att_journal_remove(journal);
        att_journal_close(&journal);
        assert_int_equal(access(journal_path(self), F_OK), -1);
    }
}

/* A process that still has a removed journal open neither appends to it nor to a new one at the same path. */
SCRATCH_TEST(a_removed_journal_takes_no_entries)
{
    att_journal *a = create_journal(self, "a"), *b = open_journal(self, "b");
    assert_next(self, b, "first\n");
    assert_true(att_journal_exists(b));
    att_journal_remove(a);
    att_journal_close(&a);
    assert_false(att_journal_exists(b));
    assert_false(append(b, "late\n"));
    a = create_journal(self, "a");
    assert_false(append(b, "late\n"));
    att_journal_remove(b); /* leaves the new one alone */
    assert_next(self, a, "first\n");
    assert_next(self, a, NULL);
    assert_true(append(a, "second\n"));
    att_journal_close(&a);
    att_journal_close(&b);
}

/* The first entry is removed first, so that nobody appends where a later entry has just been removed. */
SCRATCH_TEST(a_journal_that_is_being_removed_takes_no_entries)
{
    att_journal *journal = create_journal(self, "a");
    assert_next(self, journal, "first\n");
    assert_int_equal(unlink(path_of(self, "journal/00000001")), 0);
    assert_false(append(journal, "late\n"));
    att_journal_remove(journal);
    assert_int_equal(access(journal_path(self), F_OK), -1);
    att_journal_close(&journal);
}

SCRATCH_TEST(ages_are_by_the_clock_of_the_file_system)
{
    char mark[256];
    att_journal *a = create_journal(self, "a"), *b = open_journal(self, "b");
    assert_int_equal(att_journal_mark_path(b, "a", mark, sizeof mark), ATT_OK);
    assert_int_equal(att_journal_look(b), ATT_OK);
    assert_true(fabs(att_journal_mark_age(b, "a")) < 5);
    assert_true(isinf(att_journal_mark_age(b, "nobody")));
    struct stat info;
    assert_int_equal(stat(mark, &info), 0);
    const struct timespec earlier[] = {{.tv_sec = info.st_mtime - 100}, {.tv_sec = info.st_mtime - 100}};
    assert_int_equal(utimensat(AT_FDCWD, mark, earlier, 0), 0);
    assert_true(fabs(att_journal_mark_age(b, "a") - 100) < 5);
    assert_int_equal(att_mark_renew(mark), ATT_MARK_RENEWED);
    assert_int_equal(att_journal_look(b), ATT_OK);
    assert_true(fabs(att_journal_mark_age(b, "a")) < 5);
    att_journal_unmark(b, "a");
    assert_int_equal(att_mark_renew(mark), ATT_MARK_GONE);
    att_journal_close(&a);
    att_journal_close(&b);
}

SCRATCH_TEST(an_incomplete_entry_is_not_read)
{
    att_journal *journal = create_journal(self, "a");
    assert_next(self, journal, "first\n");
    int file = open(path_of(self, "journal/00000002"), O_WRONLY | O_CREAT, 0666);
    assert_int_equal(write(file, "sec", 3), 3);
    assert_next(self, journal, NULL);
    assert_false(append(journal, "other\n"));
    assert_int_equal(write(file, "ond\n", 4), 4);
    close(file);
    assert_next(self, journal, "second\n");
    att_journal_close(&journal);
}

SCRATCH_TEST(a_file_in_its_place_is_refused)
{
    att_journal *journal = NULL;
    int file = open(journal_path(self), O_WRONLY | O_CREAT, 0666);
    close(file);
    assert_int_equal(att_journal_open(self->context, journal_path(self), "a", &journal), ATT_ERR_IO);
    assert_int_equal(att_journal_create(self->context, journal_path(self), "a", "first\n", &journal), ATT_ERR_IO);
    assert_null(journal);
    assert_int_equal(access(path_of(self, "journal-a"), F_OK), -1);
}
