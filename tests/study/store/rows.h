/* store/rows.h - for tests: the database of runs, read with SQLite itself. */
#ifndef TESTS_STORE_ROWS_H
#define TESTS_STORE_ROWS_H

#include <math.h>
#include <sqlite3.h>

#include "study/store/run.h"

static inline const char *database_of(scratch *self)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/runs.sqlite", self->folder);
    return path;
}

static inline att_status try_open(scratch *self, const char *run, const att_store_resume *resume, att_sink *sink)
{
    char folder[100];
    snprintf(folder, sizeof folder, "%s/%s", self->folder, run);
    const att_store_options options = {.resume = resume, .database = database_of(self)};
    return att_store_open(self->context, folder, &options, sink);
}

static inline att_sink open_run(scratch *self, const char *run, const att_store_resume *resume)
{
    att_sink sink;
    if (try_open(self, run, resume, &sink) != ATT_OK)
        fail_msg("%s", att_context_message(self->context));
    return sink;
}

/* Returns the rows of a query as text, with "|" between columns and "\n" between rows. */
static inline char *ask(scratch *self, const char *sql)
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

static inline void assert_rows(scratch *self, const char *sql, const char *expected)
{
    char *rows = ask(self, sql);
    assert_string_equal(rows, expected);
    free(rows);
}

static const att_measurement figures[] = {
    {"entropy", "blocks.3.attn", "mean", "nats", 2, 1.5, 0.25, 3, NULL, 0, 0, false, 0, 0},
    {"tns", "", "mu unit", "1", -1, INFINITY, NAN, 1, NULL, 0, 1, false, 0, 0},
};

static inline void emit_measure(const att_sink *sink, int64_t step)
{
    const att_event event = {.kind = ATT_EVENT_MEASURE,
                             .step = step,
                             .fields = (const att_event_field[]){{"split", 0, "train"}, {"images", 3, NULL}},
                             .field_count = 2,
                             .measurements = figures,
                             .measurement_count = 2};
    assert_int_equal(sink->emit(sink->user, &event), ATT_OK);
}

static inline void emit_measured_run(const att_sink *sink, int64_t step, int64_t until)
{
    for (; step < until; step++) {
        emit_measure(sink, step + 1);
        emit_run(sink, step, step + 1);
    }
}

#endif
