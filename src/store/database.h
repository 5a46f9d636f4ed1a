/* store/database.h - the file of all runs, and queries on it. Its tables: attscope/store.h. */
#ifndef ATT_STORE_DATABASE_H
#define ATT_STORE_DATABASE_H

#include <sqlite3.h>

#include <attscope/context.h>

typedef struct att_database {
    att_context *context;
    char *path;
    sqlite3 *connection;
} att_database;

/* Opens the file, or makes it with its tables. Errors: ERR_FORMAT for what is no database of attscope's, damaged, or of
 * a later version; ERR_IO, ERR_MEMORY. *database is zero after a failure. */
att_status att_database_open(att_context *context, const char *path, att_database *database);
void att_database_close(att_database *database);

/* From begin to end all or nothing is written; others wait meanwhile. end: `status` or, where that is ATT_OK, what
 * writing gave; after a failure all is as before begin. */
att_status att_database_begin(att_database *database);
att_status att_database_end(att_database *database, att_status status);
/* Waits until what was written is on the disk, as far as other connections allow. */
void att_database_sync(att_database *database);

/* One statement, run for one set of values after another. Sticky: after a failure calls do nothing, and close returns
 * it. Values are bound in the statement's order; NaN and NULL texts become NULL; texts must live until run or next. */
typedef struct att_query {
    att_database *database;
    sqlite3_stmt *statement;
    int bound;
    att_status status;
} att_query;
att_query att_query_open(att_database *database, const char *sql);
void att_query_integer(att_query *query, int64_t value);
void att_query_real(att_query *query, double value);
void att_query_text(att_query *query, const char *text);
/* Runs it to its end; the next set of values may follow. */
void att_query_run(att_query *query);
/* Goes to the first, or next, row of what it gives; false where there is none. */
bool att_query_next(att_query *query);
att_status att_query_close(att_query *query);

#endif
