/* The database of runs, read with SQLite itself. */
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/import.h"
#include "store/run.h"

static const char *database_of(scratch *self)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/runs.sqlite", self->folder);
    return path;
}

static att_status try_open(scratch *self, const char *run, const att_store_resume *resume, att_sink *sink)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/%s", self->folder, run);
    const att_store_options options = {.resume = resume, .database = database_of(self)};
    return att_store_open(self->context, folder, &options, sink);
}

static att_sink open_run(scratch *self, const char *run, const att_store_resume *resume)
{
    att_sink sink;
    if (try_open(self, run, resume, &sink) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return sink;
}

/* Returns the rows of a query as text, with "|" between columns and "\n" between rows. */
static char *ask(scratch *self, const char *sql)
{
    sqlite3 *connection;
    sqlite3_stmt *statement;
    char *text = calloc(1, 100000), *end = text;
    assert_int_equal(sqlite3_open(database_of(self), &connection), SQLITE_OK);
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(connection));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const unsigned char *cell = sqlite3_column_text(statement, i);
            end += sprintf(end, "%s%s", i ? "|" : "", cell ? (const char *)cell : "NULL");
        }
        end += sprintf(end, "\n");
    }
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    sqlite3_close(connection);
    return text;
}

static void assert_rows(scratch *self, const char *sql, const char *expected)
{
    char *rows = ask(self, sql);
    assert_string_equal(rows, expected);
    free(rows);
}

static const char all_rows[] =
    "SELECT folder,model,status,message,settings,started GLOB '20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*Z',"
    "(SELECT group_concat(step||' '||epoch||' '||event||' '||name||' '||value,', ') FROM scalars WHERE run=id),"
    "(SELECT group_concat(source||' '||step||' '||value,', ') FROM measurements WHERE run=id) FROM runs ORDER BY "
    "folder";

static const att_measurement figures[] = {
    {"entropy", "blocks.3.attn", "mean", "nats", 2, 1.5, 0.25, 3, NULL, 0, 0, false},
    {"tns", "", "mu unit", "1", -1, INFINITY, NAN, 1, NULL, 0, 0, false},
};

static void emit_measure(const att_sink *sink, int64_t step)
{
    const att_event event = {.kind = ATT_EVENT_MEASURE,
                             .step = step,
                             .fields = (const att_event_field[]){{"split", 0, "train"}, {"images", 3, NULL}},
                             .field_count = 2,
                             .measurements = figures,
                             .measurement_count = 2};
    assert_int_equal(sink->emit(sink->user, &event), ATT_OK);
}

static void events_become_rows(void **state)
{
    scratch *self = *state;
    att_sink sink = open_run(self, "first", NULL);
    emit_begin(&sink);
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", NAN, NULL}, {"lr", 0.1, NULL}, {"t", 0, "x"})),
                     ATT_OK);
    emit_measure(&sink, 1);
    assert_rows(self, "SELECT folder,model,status,message,settings FROM runs",
                "first|vit|NULL|NULL|{\"model\":\"vit\",\"seed\":\"42\"}\n");
    emit_end(&sink, 4);
    sink.close(sink.user);
    sink = open_run(self, "a/b", NULL);
    emit_begin(&sink);
    sink.close(sink.user);
    assert_rows(self, "SELECT * FROM scalars", "1|1|0|step|loss|NULL\n1|1|0|step|lr|0.1\n");
    assert_rows(self, "SELECT * FROM measurements",
                "1|train|1|train|entropy|blocks.3.attn|2|mean|nats|1.5|0.25|3\n"
                "1|train|1|train|tns||-1|mu unit|1|Inf|NULL|1\n");
    assert_rows(self, "SELECT id,folder,status FROM runs", "1|first|OK\n2|a/b|NULL\n");
    assert_rows(self, "PRAGMA application_id", "1635021939\n");
    assert_rows(self, "PRAGMA user_version", "1\n");
    assert_rows(self, "PRAGMA journal_mode", "wal\n");
    /* A second run in the same folder: the first run stays. */
    sink = open_run(self, "first", NULL);
    emit_begin(&sink);
    sink.close(sink.user);
    assert_rows(self, "SELECT folder,status FROM runs ORDER BY folder", "a/b|NULL\nfirst|NULL\n");
    assert_rows(self, "SELECT (SELECT count(*) FROM scalars),(SELECT count(*) FROM measurements)", "0|0\n");
}

static void emit_measured_run(const att_sink *sink, int64_t step, int64_t until)
{
    for (; step < until; step++) {
        emit_measure(sink, step + 1);
        emit_run(sink, step, step + 1);
    }
}

static void a_resumed_run_has_the_rows_of_one_run(void **state)
{
    scratch *self = *state;
    enum { STEPS = 5 };
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    emit_measured_run(&sink, 0, STEPS);
    emit_end(&sink, STEPS);
    sink.close(sink.user);
    char *whole = ask(self, all_rows);
    for (int64_t stop = 0; stop <= STEPS; stop++)
        for (int64_t saved = 0; saved <= stop; saved++) {
            sink = open_run(self, "run", NULL);
            emit_begin(&sink);
            emit_measured_run(&sink, 0, stop);
            if (stop % 2 == 0)
                emit_end(&sink, stop);
            sink.close(sink.user);
            const att_store_resume resume = {saved / STEPS_PER_EPOCH, saved};
            sink = open_run(self, "run", &resume);
            emit_begin(&sink);
            assert_rows(self, "SELECT status,message FROM runs", "NULL|NULL\n");
            emit_measured_run(&sink, saved, STEPS);
            emit_end(&sink, STEPS);
            sink.close(sink.user);
            assert_rows(self, all_rows, whole);
        }
    free(whole);
    /* Without the database, a new one has the run from this point on. */
    remove(database_of(self));
    const att_store_resume resume = {1, 5};
    sink = open_run(self, "run", &resume);
    emit_begin(&sink);
    emit_run(&sink, 5, 6);
    sink.close(sink.user);
    assert_rows(self, "SELECT folder,model,step,name FROM runs JOIN scalars ON run=id", "run|vit|6|loss\n");
}

/* Runs elsewhere are known by their whole path. */
static void a_run_elsewhere_is_known_by_its_whole_path(void **state)
{
    scratch *self = *state;
    char folder[100], database[100], expected[4200];
    att_sink sink;
    snprintf(folder, sizeof folder, "%s/runs", self->folder);
    mkdir(path_of(self, "elsewhere"), 0700);
    snprintf(database, sizeof database, "%s/elsewhere/runs.sqlite", self->folder);
    const att_store_options options = {.database = database};
    assert_int_equal(att_store_open(self->context, folder, &options, &sink), ATT_OK);
    emit_begin(&sink);
    sink.close(sink.user);
    char *whole = realpath(folder, NULL);
    assert_int_equal(rename(database, database_of(self)), 0);
    snprintf(expected, sizeof expected, "%s\n", whole);
    assert_rows(self, "SELECT folder FROM runs", expected);
    free(whole);
}

/* count: number of figures, whose names begin with `first`. */
static att_status emit_some(scratch *self, int64_t step, const char *data, int first, int count, bool ends)
{
    att_sink sink;
    char folder[100];
    snprintf(folder, sizeof folder, "%s/run", self->folder);
    att_status status = att_store_open_measured(self->context, folder, database_of(self), &sink);
    if (status != ATT_OK)
        return status;
    status = emit(&sink, ATT_EVENT_RUN_BEGIN, 1, step, FIELDS({"model", 0, "vit"}, {"data", 0, data}));
    const att_event event = {.kind = ATT_EVENT_MEASURE,
                             .epoch = 1,
                             .step = step,
                             .seconds = 0.5,
                             .fields = (const att_event_field[]){{"split", 0, "val"}},
                             .field_count = 1,
                             .measurements = figures + first,
                             .measurement_count = count};
    if (status == ATT_OK)
        status = sink.emit(sink.user, &event);
    if (status == ATT_OK && ends)
        status = emit(&sink, ATT_EVENT_RUN_END, 1, step, FIELDS({"status", 0, "OK"}));
    sink.close(sink.user);
    return status;
}

static att_status emit_checkpoint(scratch *self, int64_t step, bool ends)
{
    return emit_some(self, step, "last", 0, 2, ends);
}

/* Saved after the last step of an epoch and before its end: the epoch ends again after the resume, and is recorded
 * once. Measurements of a checkpoint are not part of the training. */
static void a_resumed_epoch_ends_only_once(void **state)
{
    scratch *self = *state;
    static const char epochs[] = "SELECT step,epoch,name,value FROM scalars WHERE event='epoch' AND name='lr'";
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    emit_run(&sink, 0, STEPS_PER_EPOCH);
    sink.close(sink.user);
    assert_rows(self, epochs, "4|0|lr|0.1\n");
    assert_int_equal(emit_checkpoint(self, 7, true), ATT_OK);
    const att_store_resume resume = {.epoch = 0, .step = STEPS_PER_EPOCH};
    sink = open_run(self, "run", &resume);
    emit_begin(&sink);
    sink.close(sink.user);
    assert_rows(self, epochs, "");
    assert_rows(self, "SELECT count(*) FROM scalars", "4\n");
    assert_rows(self, "SELECT source,count(*) FROM measurements GROUP BY source", "measure|2\n");
}

/* A measurement replaces the earlier one completely or not at all, and leaves the training's records unchanged. */
static void a_measurement_replaces_the_earlier_one_whole(void **state)
{
    scratch *self = *state;
    static const char rows[] =
        "SELECT folder,model,settings IS NULL,source,step,split,value FROM runs LEFT JOIN "
        "measurements ON run=id ORDER BY source,step";
    assert_int_equal(emit_checkpoint(self, 7, true), ATT_OK);
    assert_rows(self, rows, "run|vit|0|measure|7|val|1.5\nrun|vit|0|measure|7|val|Inf\n");
    assert_rows(self, "SELECT status,settings FROM runs", "OK|{\"model\":\"vit\",\"data\":\"last\"}\n");
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    emit_measure(&sink, 1);
    sink.close(sink.user);
    assert_rows(self, rows, "run|vit|0|train|1|train|1.5\nrun|vit|0|train|1|train|Inf\n");
    char *metrics = read_log(self, "run/metrics.jsonl");
    assert_int_equal(emit_checkpoint(self, 8, true), ATT_OK);
    assert_int_equal(emit_checkpoint(self, 9, true), ATT_OK);
    assert_int_equal(emit_checkpoint(self, 10, false), ATT_OK);
    assert_rows(self, rows,
                "run|vit|0|measure|9|val|1.5\nrun|vit|0|measure|9|val|Inf\n"
                "run|vit|0|train|1|train|1.5\nrun|vit|0|train|1|train|Inf\n");
    assert_text_file(path_of(self, "run/metrics.jsonl"), metrics);
    assert_text_file(
        path_of(self, "run/measure.jsonl"),
        "{\"event\":\"run_begin\",\"epoch\":1,\"step\":9,\"seconds\":0.5,\"model\":\"vit\",\"data\":\"last\"}\n"
        "{\"event\":\"measure\",\"epoch\":1,\"step\":9,\"seconds\":0.5,\"split\":\"val\",\"measurements\":["
        "{\"instrument\":\"entropy\",\"node\":\"blocks.3.attn\",\"head\":2,\"statistic\":\"mean\",\"mean\":1.5,"
        "\"deviation\":0.25,\"n\":3},{\"instrument\":\"tns\",\"node\":\"\",\"statistic\":\"mu unit\",\"mean\":null,"
        "\"deviation\":null,\"n\":1}]}\n"
        "{\"event\":\"run_end\",\"epoch\":1,\"step\":9,\"seconds\":0.5,\"status\":\"OK\"}\n");
    free(metrics);
}

/* Other statistics stay if checkpoint and settings are the same; a damaged file is replaced. */
static void other_statistics_of_the_same_checkpoint_stay(void **state)
{
    scratch *self = *state;
    static const char rows[] = "SELECT instrument,unit,split,step FROM measurements ORDER BY rowid";
    static const char begin[] = "{\"event\":\"run_begin\",\"epoch\":1,\"step\":7,\"seconds\":0.5,";
    assert_int_equal(emit_some(self, 7, "a", 0, 1, true), ATT_OK);
    assert_int_equal(emit_some(self, 7, "a", 1, 1, true), ATT_OK);
    assert_rows(self, rows, "tns|1|val|7\nentropy|nats|val|7\n");
    assert_int_equal(emit_some(self, 7, "a", 0, 1, true), ATT_OK);
    assert_rows(self, rows, "entropy|nats|val|7\ntns|1|val|7\n");
    char *text = read_log(self, "run/measure.jsonl");
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_non_null(strstr(text, "\"instrument\":\"tns\",\"node\":\"\",\"statistic\":\"mu unit\",\"mean\":null"));
    free(text);

    assert_int_equal(emit_some(self, 7, "b", 1, 1, true), ATT_OK);
    assert_rows(self, rows, "tns|1|val|7\n");
    assert_int_equal(emit_some(self, 8, "b", 0, 1, true), ATT_OK);
    assert_rows(self, rows, "entropy|nats|val|8\n");
    FILE *file = fopen(path_of(self, "run/measure.jsonl"), "ab");
    assert_non_null(file);
    fputs("nonsense\n", file);
    fclose(file);
    assert_int_equal(emit_some(self, 8, "b", 1, 1, true), ATT_OK);
    assert_rows(self, rows, "tns|1|val|8\n");
}

/* Emits one figure for each node. place: of data and checkpoint; weights, contents: digests. */
static void emit_node(scratch *self, int64_t step, const char *place, const char *weights, const char *contents,
                      const char *node)
{
    att_sink sink;
    char folder[100];
    snprintf(folder, sizeof folder, "%s/run", self->folder);
    const att_measurement figure = {"nsi", node, "unit", "1", -1, 1.5, 0.25, 3, NULL, 0, 0, false};
    assert_int_equal(att_store_open_measured(self->context, folder, NULL, &sink), ATT_OK);
    assert_int_equal(emit(&sink, ATT_EVENT_RUN_BEGIN, 1, step,
                          FIELDS({"checkpoint", 0, place}, {"weights", 0, weights}, {"data", 0, place},
                                 {"contents", 0, contents}, {"precision", 0, "f32"})),
                     ATT_OK);
    const att_event event = {.kind = ATT_EVENT_MEASURE, .step = step, .measurements = &figure, .measurement_count = 1};
    assert_int_equal(sink.emit(sink.user, &event), ATT_OK);
    assert_int_equal(emit(&sink, ATT_EVENT_RUN_END, 1, step, FIELDS({"status", 0, "OK"})), ATT_OK);
    sink.close(sink.user);
}

static int count_in(scratch *self, const char *file, const char *node)
{
    char *text = read_log(self, file), *at = text;
    int count = 0;
    while ((at = strstr(at, node)) != NULL)
        at++, count++;
    free(text);
    return count;
}

/* Digests decide, not paths. Nodes that were not measured again keep their figures; the replaced file is kept under
 * another name. */
static void measurements_are_matched_by_digests_not_paths(void **state)
{
    scratch *self = *state;
    static const char file[] = "run/measure.jsonl", previous[] = "run/measure.previous.jsonl";
    emit_node(self, 7, "sp2/x", "w1", "c1", "blocks.0");
    emit_node(self, 8, "./sp2/x", "w1", "c1", "blocks.1");
    emit_node(self, 8, "/sp2/x", "w1", "c1", "blocks.1");
    assert_int_equal(count_in(self, file, "blocks.0"), 1);
    assert_int_equal(count_in(self, file, "blocks.1"), 1);
    assert_int_equal(access(path_of(self, previous), F_OK), -1);
    emit_node(self, 8, "sp2/x", "w2", "c1", "blocks.2");
    assert_int_equal(count_in(self, file, "blocks."), 1);
    assert_int_equal(count_in(self, previous, "blocks."), 2);
    emit_node(self, 8, "sp2/x", "w2", "c2", "blocks.3");
    assert_int_equal(count_in(self, file, "blocks."), 1);
    assert_int_equal(count_in(self, previous, "blocks.2"), 1);
}

/* --- databases from others ---------------------------------------------------------------------------------------- */

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

static void foreign_databases_are_refused(void **state)
{
    scratch *self = *state;
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
    refuse(self, ATT_ERR_IO, "could not be written");
    rmdir(database_of(self));
}

/* An event is recorded completely or not at all; later events are not affected. */
static void a_failed_event_leaves_no_rows(void **state)
{
    scratch *self = *state;
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
static void views_and_functions_of_a_hostile_file_do_not_run(void **state)
{
    scratch *self = *state;
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
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", 1, NULL})), ATT_ERR_FORMAT);
    assert_message_has(self, "unsafe use of load_extension()");
    sink.close(sink.user);
}

/* Triggers in a database file do not run. */
static void triggers_of_a_hostile_file_do_not_run(void **state)
{
    scratch *self = *state;
    att_sink sink = open_run(self, "run", NULL);
    run_sql(self, "CREATE TRIGGER theirs AFTER INSERT ON scalars BEGIN DELETE FROM scalars; END");
    emit_begin(&sink);
    emit_run(&sink, 0, 2);
    sink.close(sink.user);
    assert_rows(self, "SELECT count(*) FROM scalars", "2\n");
}

/* With any part overwritten, the run's records are complete or one message names the fault; nothing crashes. */
static void a_damaged_database_is_used_or_refused(void **state)
{
    scratch *self = *state;
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
        const att_store_resume resume = {1, 4};
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

static void a_full_disk_leaves_a_sound_database(void **state)
{
    scratch *self = *state;
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

static att_status open_and_emit(scratch *self)
{
    att_sink sink;
    att_status status = try_open(self, "run", NULL, &sink);
    if (status != ATT_OK)
        return status;
    status = emit(&sink, ATT_EVENT_RUN_BEGIN, 0, 0, FIELDS({"model", 0, "vit"}));
    sink.close(sink.user);
    return status;
}

static att_status measure_checkpoint(scratch *self)
{
    return emit_checkpoint(self, 3, true);
}

static void lack_of_memory_is_reported_without_leaks(void **state)
{
    scratch *self = *state;
    assert_survives_lack_of_memory(self, open_and_emit);
    assert_survives_lack_of_memory(self, measure_checkpoint);
    assert_rows(self, "SELECT folder,step FROM runs JOIN measurements ON run=id", "run|3\nrun|3\n");
}

/* --- several processes -------------------------------------------------------------------------------------------- */

enum { WRITERS = 4, EVENTS = 200 };

static int write_events(const char *folder, const char *database)
{
    att_context *context;
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    att_sink sink;
    const att_store_options options = {.database = database};
    if (att_context_create_with(&settings, NULL, &context) != ATT_OK)
        return 2;
    att_status status = att_store_open(context, folder, &options, &sink);
    if (status == ATT_OK)
        status = emit(&sink, ATT_EVENT_RUN_BEGIN, 0, 0, FIELDS({"model", 0, "vit"}));
    for (int step = 1; step <= EVENTS && status == ATT_OK; step++)
        status = emit(&sink, ATT_EVENT_STEP, 0, step, FIELDS({"loss", step, NULL}, {"lr", step, NULL}));
    if (status != ATT_OK)
        fprintf(stderr, "%s\n", att_context_message(context));
    return status != ATT_OK;
}

static pid_t start_writer(scratch *self, int number)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/%d", self->folder, number);
    pid_t child = fork();
    if (child == 0)
        _exit(write_events(folder, database_of(self)));
    assert_true(child > 0);
    return child;
}

static void remove_database(scratch *self)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char file[120];
        snprintf(file, sizeof file, "%s%s", database_of(self), endings[i]);
        remove(file);
    }
}

/* All processes start at once, without a database. */
static void write_at_once(scratch *self)
{
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        children[i] = start_writer(self, i);
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_rows(self, "SELECT folder,count(*),sum(value) FROM runs JOIN scalars ON run=id GROUP BY folder",
                "0|400|40200.0\n1|400|40200.0\n2|400|40200.0\n3|400|40200.0\n");
}

static void several_processes_write_at_once(void **state)
{
    for (int round = 0; round < 8; round++) {
        remove_database(*state);
        write_at_once(*state);
    }
}

/* A process killed at any moment: the database has a row for each line of metrics.jsonl, except the one being written,
 * and the training can be resumed. */
static void a_killed_run_leaves_whole_rows(void **state)
{
    scratch *self = *state;
    for (int round = 0; round < 12; round++) {
        char sql[160], run[8], file[32];
        pid_t child = start_writer(self, round);
        usleep(1500U * (unsigned)round);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const att_store_resume end = {0, EVENTS};
        snprintf(run, sizeof run, "%d", round);
        snprintf(file, sizeof file, "%d/metrics.jsonl", round);
        att_sink sink = open_run(self, run, &end);
        sink.close(sink.user);
        char *metrics = read_log(self, file);
        int lines = 0;
        for (const char *at = metrics; (at = strstr(at, "\"event\":\"step\"")) != NULL; at++)
            lines++;
        free(metrics);
        snprintf(sql, sizeof sql,
                 "SELECT %d-count(*)/2 BETWEEN 0 AND 1,count(*)%%2 FROM scalars JOIN runs ON run=id WHERE folder='%d'",
                 lines, round);
        assert_rows(self, sql, "1|0\n");
        assert_rows(self, "PRAGMA integrity_check", "ok\n");
    }
}

static const char every_row[] =
    "SELECT folder,model,status,message,settings,"
    "(SELECT group_concat(step||' '||epoch||' '||event||' '||name||' '||ifnull(value,'none'),', ') FROM scalars "
    "WHERE run=runs.id),"
    "(SELECT group_concat(source||' '||step||' '||ifnull(split,'none')||' '||instrument||' '||node||' '||head||' '||"
    "statistic||' '||unit||' '||value||' '||ifnull(deviation,'none')||' '||n,', ') FROM measurements WHERE "
    "run=runs.id) "
    "FROM runs ORDER BY folder";

static void import(scratch *self, int count)
{
    char run[100], stopped[100], empty[100];
    snprintf(run, sizeof run, "%s/run", self->folder);
    snprintf(stopped, sizeof stopped, "%s/stopped", self->folder);
    snprintf(empty, sizeof empty, "%s/empty", self->folder);
    const char *const folders[] = {run, stopped, empty};
    if (att_store_import(self->context, database_of(self), folders, count) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
}

/* A database made from the files of the runs has the rows of one that was written while the runs were at work. */
static void imported_runs_have_the_same_rows(void **state)
{
    scratch *self = *state;
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", NAN, NULL}, {"lr", 0.1, NULL}, {"t", 0, "x"})),
                     ATT_OK);
    const att_event measured = {.kind = ATT_EVENT_MEASURE,
                                .step = 1,
                                .fields = (const att_event_field[]){{"split", 0, "train"}},
                                .field_count = 1,
                                .measurements = figures,
                                .measurement_count = 1};
    assert_int_equal(sink.emit(sink.user, &measured), ATT_OK);
    emit_run(&sink, 1, STEPS_PER_EPOCH);
    emit_end(&sink, STEPS_PER_EPOCH);
    sink.close(sink.user);
    assert_int_equal(emit_some(self, 4, "last", 0, 1, true), ATT_OK);
    sink = open_run(self, "stopped", NULL);
    emit_begin(&sink);
    emit_run(&sink, 0, 2);
    assert_int_equal(
        emit(&sink, ATT_EVENT_RUN_END, 0, 2, FIELDS({"status", 0, "ERR_STOPPED"}, {"message", 0, "on request"})),
        ATT_OK);
    sink.close(sink.user);
    char *live = ask(self, every_row);
    assert_non_null(strstr(live, "ERR_STOPPED|on request"));
    assert_non_null(strstr(live, "measure 4 val entropy blocks.3.attn 2 mean nats 1.5 0.25 3"));

    /* Into a database with other rows of these runs, then into a new one. */
    import(self, 3);
    assert_rows(self, every_row, live);
    assert_rows(self, "PRAGMA journal_mode", "delete\n");
    assert_int_equal(unlink(database_of(self)), 0);
    import(self, 0);
    assert_rows(self, "SELECT count(*) FROM runs", "0\n");
    import(self, 3);
    assert_rows(self, every_row, live);
    assert_rows(self, "SELECT abs(julianday(started) - julianday('now')) < 0.01 FROM runs", "1\n1\n");

    /* Files that have not changed are not read again. */
    char *ids = ask(self, "SELECT id,folder FROM runs");
    import(self, 2);
    assert_rows(self, "SELECT id,folder FROM runs", ids);
    assert_int_equal(emit_some(self, 4, "moved", 0, 1, true), ATT_OK);
    import(self, 1);
    assert_rows(self, every_row, live);

    /* A damaged run keeps its rows; the others are imported. */
    FILE *file = fopen(path_of(self, "run/metrics.jsonl"), "a");
    fputs("damaged\n", file);
    fclose(file);
    import(self, 3);
    assert_rows(self, every_row, live);
    free(ids);
    free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(events_become_rows),
        scratch_test(imported_runs_have_the_same_rows),
        scratch_test(a_resumed_run_has_the_rows_of_one_run),
        scratch_test(a_measurement_replaces_the_earlier_one_whole),
        scratch_test(other_statistics_of_the_same_checkpoint_stay),
        scratch_test(measurements_are_matched_by_digests_not_paths),
        scratch_test(foreign_databases_are_refused),
        scratch_test(triggers_of_a_hostile_file_do_not_run),
        scratch_test(a_damaged_database_is_used_or_refused),
        scratch_test(a_full_disk_leaves_a_sound_database),
        scratch_test(lack_of_memory_is_reported_without_leaks),
        scratch_test(several_processes_write_at_once),
        scratch_test(a_killed_run_leaves_whole_rows),
        scratch_test(a_resumed_epoch_ends_only_once),
        scratch_test(a_run_elsewhere_is_known_by_its_whole_path),
        scratch_test(a_failed_event_leaves_no_rows),
        scratch_test(views_and_functions_of_a_hostile_file_do_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
