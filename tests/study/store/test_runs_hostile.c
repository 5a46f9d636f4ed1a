/* Databases of runs that are damaged or made by others; full disks. */
#include <signal.h>
#include <sys/resource.h>

#include "study/store/rows.h"

static void refuse(scratch *self, att_status expected, const char *part)
{
    att_sink sink;
    assert_int_equal(try_open(self, "run", NULL, &sink), expected);
    assert_message_has(self, part);
    assert_message_has(self, "runs.sqlite");
}

static void write_database(scratch *self, const char *text, size_t size)
{
    FILE *file = fopen(database_of(self), "wb");
    assert_non_null(file);
    fwrite(text, 1, size, file);
    fclose(file);
}

static void run_sql(scratch *self, const char *sql)
{
    free(ask(self, sql));
}

SCRATCH_TEST(foreign_databases_are_refused)
{
    static const char text[] =
        "this is a diary, and it has been one for years and years and years, as is well known "
        "to everybody who ever opened it";
    write_database(self, text, sizeof text);
    refuse(self, ATT_ERR_FORMAT, "is not an SQLite database");
    assert_file(database_of(self), text, sizeof text);
    remove(database_of(self));
    run_sql(self, "CREATE TABLE diary(day)");
    refuse(self, ATT_ERR_FORMAT, "another program");
    assert_rows(self, "PRAGMA journal_mode", "delete\n");
    run_sql(self, "PRAGMA application_id=1635021939");
    refuse(self, ATT_ERR_FORMAT, "version 0 of attscope's tables, expected 1");
    run_sql(self, "PRAGMA user_version=2");
    refuse(self, ATT_ERR_FORMAT, "version 2");
    run_sql(self, "PRAGMA user_version=1");
    refuse(self, ATT_ERR_FORMAT, "does not have the tables of attscope (no such table");
    remove(database_of(self));
    mkdir(database_of(self), 0700);
    refuse(self, ATT_ERR_IO, "is not a regular file");
    rmdir(database_of(self));
}

/* An event is recorded completely or not at all; later events are not affected. */
SCRATCH_TEST(a_failed_event_leaves_no_rows)
{
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    run_sql(self, "CREATE UNIQUE INDEX theirs ON measurements(run, step)");
    const att_event event = {.kind = ATT_EVENT_MEASURE, .step = 1, .measurements = figures, .measurement_count = 2};
    assert_int_equal(sink.emit(sink.user, &event), ATT_ERR_FORMAT);
    assert_message_has(self, "runs.sqlite does not have the tables of attscope");
    emit_run(&sink, 1, 2);
    sink.close(sink.user);
    assert_rows(self, "SELECT (SELECT count(*) FROM measurements),(SELECT count(*) FROM scalars)", "0|1\n");
}

/* Code in a database file does not run: neither views nor functions in table definitions. */
SCRATCH_TEST(views_and_functions_of_a_hostile_file_do_not_run)
{
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    sink.close(sink.user);
    run_sql(self, "ALTER TABLE runs RENAME TO theirs");
    run_sql(self, "CREATE VIEW runs AS SELECT * FROM theirs");
    refuse(self, ATT_ERR_FORMAT, "access to view \"runs\" prohibited");
    run_sql(self, "DROP VIEW runs");
    run_sql(self, "ALTER TABLE theirs RENAME TO runs");
    run_sql(self, "DROP TABLE scalars");
    run_sql(self, "CREATE TABLE scalars(run,step,epoch,event,name,value,theirs DEFAULT (load_extension('theirs')))");
    sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    assert_fails(self->context, emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", 1, NULL})), ATT_ERR_FORMAT,
                 "unsafe use of load_extension()");
    sink.close(sink.user);
}

/* Triggers in a database file do not run. */
SCRATCH_TEST(triggers_of_a_hostile_file_do_not_run)
{
    att_sink sink = open_run(self, "run", NULL);
    run_sql(self, "CREATE TRIGGER theirs AFTER INSERT ON scalars BEGIN DELETE FROM scalars; END");
    emit_begin(&sink);
    emit_run(&sink, 0, 2);
    sink.close(sink.user);
    assert_rows(self, "SELECT count(*) FROM scalars", "2\n");
}

/* With any part overwritten, the run's records are complete or one message names the fault; nothing crashes. */
SCRATCH_TEST(a_damaged_database_is_used_or_refused)
{
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    emit_measured_run(&sink, 0, 8);
    sink.close(sink.user);
    char *whole = malloc(1 << 20);
    FILE *file = fopen(database_of(self), "rb");
    size_t size = fread(whole, 1, 1 << 20, file);
    fclose(file);
    int refused = 0;
    for (size_t place = 0; place < size; place += 509) {
        char *bytes = malloc(size);
        memcpy(bytes, whole, size);
        memset(bytes + place, 0x5a, size - place < 64 ? size - place : 64);
        write_database(self, bytes, size);
        free(bytes);
        const att_store_resume resume = {1, 4, false};
        att_status status = try_open(self, "run", &resume, &sink);
        if (status == ATT_OK) {
            status = emit(&sink, ATT_EVENT_STEP, 1, 5, FIELDS({"loss", 1, NULL}));
            sink.close(sink.user);
        }
        refused += status != ATT_OK;
        if (status != ATT_OK)
            assert_message_has(self, "runs.sqlite");
    }
    assert_true(refused > 3);
    free(whole);
}

SCRATCH_TEST(a_full_disk_leaves_a_sound_database)
{
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 32768; /* the write-ahead log is larger than all other files here */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    att_status status = ATT_OK;
    for (int step = 1; status == ATT_OK && step < 100; step++)
        status = emit(&sink, ATT_EVENT_STEP, 0, step, FIELDS({"loss", 1, NULL}));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, ATT_ERR_IO);
    assert_message_has(self, "runs.sqlite could not be written");
    sink.close(sink.user);
    assert_rows(self, "PRAGMA integrity_check", "ok\n");
}
