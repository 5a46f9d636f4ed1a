/* Following a file to which another process writes: nothing is lost, sent twice, or sent in part. */
#include <fcntl.h>

#include "base/core/error.h"
#include "base/io/scratch.h"
#include "lab/serve/tail.h"

typedef struct followed {
    att_tail tail;
    att_tail_place place;
    att_text lines;
    bool restarted;
} followed;

static followed follow(scratch *self)
{
    return (followed){.tail = {.path = self->path}, .lines = {.context = self->context}};
}

static void put(const scratch *self, const char *mode, const char *text)
{
    FILE *file = fopen(self->path, mode);
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Reads once and checks the new lines. */
static void assert_read(followed *f, bool restarted, const char *lines)
{
    f->lines.length = 0;
    assert_int_equal(att_tail_read(&f->tail, &f->place, &f->restarted, &f->lines), ATT_OK);
    assert_int_equal(f->restarted, restarted);
    assert_int_equal(f->lines.length, strlen(lines));
    assert_memory_equal(f->lines.length > 0 ? f->lines.data : "", lines, strlen(lines));
}

SCRATCH_TEST(lines_arrive_whole_and_once)
{
    followed f = follow(self);
    put(self, "w", "one\ntwo\nthr");
    assert_read(&f, true, "one\ntwo\n");
    assert_read(&f, false, "");
    put(self, "a", "ee");
    assert_read(&f, false, "");
    put(self, "a", "\n");
    assert_read(&f, false, "three\n");
    put(self, "a", "four\nfive\n");
    assert_read(&f, false, "four\nfive\n");
    assert_read(&f, false, "");
    att_text_free(&f.lines);
}

SCRATCH_TEST(a_file_that_is_replaced_begins_anew)
{
    followed f = follow(self);
    char other[200];
    snprintf(other, sizeof other, "%s.new", self->path);
    put(self, "w", "one\n");
    assert_read(&f, true, "one\n");
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    fputs("one\ntwo\n", file);
    fclose(file);
    assert_int_equal(rename(other, self->path), 0);
    assert_read(&f, true, "one\ntwo\n");
    att_text_free(&f.lines);
}

SCRATCH_TEST(a_file_that_is_cut_begins_anew)
{
    followed f = follow(self);
    put(self, "w", "begin\nstep 1\nstep 2\n");
    assert_read(&f, true, "begin\nstep 1\nstep 2\n");
    put(self, "w", "begin\n"); /* a resumed run, just opened */
    assert_read(&f, true, "begin\n");
    put(self, "a", "step 1\n");
    assert_read(&f, false, "step 1\n");
    put(self, "w", "begin\nstep X\nstep Y\n"); /* cut, and longer again at the next look */
    assert_read(&f, true, "begin\nstep X\nstep Y\n");
    put(self, "w", "");
    assert_read(&f, true, "");
    put(self, "a", "a\n");
    assert_read(&f, false, "a\n");
    att_text_free(&f.lines);
}

SCRATCH_TEST(a_file_may_appear_later)
{
    followed f = follow(self);
    assert_read(&f, true, "");
    assert_read(&f, false, "");
    put(self, "w", "one\n");
    assert_read(&f, true, "one\n");
    unlink(self->path);
    assert_read(&f, false, "");
    put(self, "w", "two, another file\n");
    assert_read(&f, true, "two, another file\n");
    /* The same file goes away and comes back. */
    char other[200];
    snprintf(other, sizeof other, "%s.away", self->path);
    assert_int_equal(rename(self->path, other), 0);
    assert_read(&f, false, "");
    assert_int_equal(rename(other, self->path), 0);
    assert_read(&f, true, "two, another file\n");
    att_text_free(&f.lines);
}

/* Each has a place of its own in what they share. */
SCRATCH_TEST(readers_share_a_tail)
{
    followed f = follow(self);
    put(self, "w", "one\n");
    assert_read(&f, true, "one\n");
    put(self, "a", "two\nthr");
    const att_tail_place first = f.place;
    f.place = (att_tail_place){.edition = 0};
    assert_read(&f, true, "one\ntwo\n");
    assert_read(&f, false, "");
    const att_tail_place second = f.place;
    f.place = first;
    assert_read(&f, false, "two\n");
    put(self, "w", "new\n");
    assert_read(&f, true, "new\n");
    f.place = second;
    assert_read(&f, true, "new\n");
    att_text_free(&f.lines);
}

/* Writes over a byte of the file and sets its time to the earlier one, plus `later`. */
static void overwrite_later(const scratch *self, off_t at, char byte, struct timespec later)
{
    struct stat before;
    const int file = open(self->path, O_WRONLY);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &before), 0);
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    const long nanoseconds = (before.st_mtim.tv_nsec + later.tv_nsec) % 1000000000;
    const struct timespec time = {before.st_mtim.tv_sec + later.tv_sec, nanoseconds};
    assert_int_equal(futimens(file, (struct timespec[]){before.st_atim, time}), 0);
    close(file);
}

static void overwrite(const scratch *self, off_t at, char byte)
{
    overwrite_later(self, at, byte, (struct timespec){0, 0});
}

SCRATCH_TEST(a_file_of_equal_size_is_another_if_its_time_is)
{
    followed f = follow(self);
    put(self, "w", "step 1\n");
    assert_read(&f, true, "step 1\n");
    overwrite_later(self, 5, '2', (struct timespec){1, 0});
    assert_read(&f, true, "step 2\n");
    overwrite_later(self, 5, '3', (struct timespec){0, 1000});
    assert_read(&f, true, "step 3\n");
    att_text_free(&f.lines);
}

/* A last line without newline, of which more is written again and again, is not searched again from its begin. Here the
 * byte that was looked at has become a newline, which no writer of lines does. */
SCRATCH_TEST(an_unfinished_line_is_looked_at_once)
{
    followed f = follow(self);
    char line[2 * ATT_TAIL_CHECKED + 1] = "";
    memset(line, 'a', sizeof line - 1);
    put(self, "w", line);
    assert_read(&f, true, "");
    overwrite(self, 2 * ATT_TAIL_CHECKED - 1, 'b');
    assert_read(&f, false, ""); /* size and time are the same: nothing is read, else the file would begin anew */
    overwrite(self, 2 * ATT_TAIL_CHECKED - 1, 'a');
    overwrite(self, 0, '\n');
    put(self, "a", line);
    assert_read(&f, false, ""); /* only what is new is read */
    put(self, "a", "\n");
    f.lines.length = 0;
    assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_OK);
    assert_int_equal(f.lines.length, 2 * strlen(line) + 1);
    att_text_free(&f.lines);
}

/* An unfinished line that is cut off and written anew, and a record after it. */
SCRATCH_TEST(an_unfinished_line_may_be_replaced)
{
    followed f = follow(self);
    put(self, "w", "one\ntwo, unfinished");
    assert_read(&f, true, "one\n");
    put(self, "w", "one\n2\nthree and more");
    assert_read(&f, true, "one\n2\n");
    att_text_free(&f.lines);
}

SCRATCH_TEST(long_files_arrive_in_parts)
{
    followed f = follow(self);
    enum { LINES = 50000, LINE = 100 };
    FILE *file = fopen(self->path, "w");
    assert_non_null(file);
    for (int i = 0; i < LINES; i++)
        fprintf(file, "%0*d\n", LINE - 1, i);
    fclose(file);
    int lines = 0, calls = 0;
    for (; lines < LINES && calls < LINES; calls++) {
        f.lines.length = 0;
        assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_OK);
        assert_int_equal(f.restarted, calls == 0);
        assert_int_equal(f.lines.length % LINE, 0);
        for (size_t at = 0; at < f.lines.length; at += LINE)
            assert_int_equal(atoi(f.lines.data + at), lines++);
    }
    assert_int_equal(lines, LINES);
    assert_true(calls > 1);
    att_text_free(&f.lines);
}

SCRATCH_TEST(a_line_has_at_most_16_mebibytes)
{
    followed f = follow(self);
    enum { LONG = 16 << 20 };
    char *text = malloc(LONG + 3);
    assert_non_null(text);
    memset(text, 'a', LONG + 2);
    text[LONG - 1] = '\n';
    text[LONG] = '\0';
    put(self, "w", text);
    assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_OK);
    assert_int_equal(f.lines.length, LONG);
    text[LONG - 1] = 'a';
    text[LONG] = '\n';
    text[LONG + 1] = '\0';
    put(self, "w", text);
    assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_ERR_FORMAT);
    text[LONG] = 'a';
    put(self, "w", text);
    for (int i = 0; i < 2; i++) /* the end without newline is too long, also if the file has not changed */
        assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_ERR_FORMAT);
    free(text);
    att_text_free(&f.lines);
}

SCRATCH_TEST(only_regular_files_are_followed)
{
    followed f = follow(self);
    assert_int_equal(mkfifo(self->path, 0600), 0); /* would block */
    assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_ERR_IO);
    f.tail.path = self->folder;
    assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_ERR_IO);
    att_text_free(&f.lines);
}

SCRATCH_TEST(no_memory_loses_no_line)
{
    followed f = follow(self);
    put(self, "w", "one\ntwo\n");
    for (int attempt = 0; attempt < 3; attempt++) { /* to look, to read, and to keep what was read */
        self->memory.left = attempt > 0;
        assert_int_equal(att_tail_read(&f.tail, &f.place, &f.restarted, &f.lines), ATT_ERR_MEMORY);
        att_text_free(&f.lines);
    }
    self->memory.left = -1;
    assert_read(&f, false, "one\ntwo\n");
    att_text_free(&f.lines);
}
