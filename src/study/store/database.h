/* store/database.h - the SQLite database of all runs, and queries on it. attscope/store.h describes its tables. */
#ifndef ATT_STORE_DATABASE_H
#define ATT_STORE_DATABASE_H

#include <sqlite3.h>

#include <attscope/context.h>

typedef struct att_database {
    att_context *context;
    char *path;
    sqlite3 *connection;
} att_database;

/* How changes are made safe. */
typedef enum att_database_journal {
    ATT_DATABASE_WAL,      /* a write-ahead log: readers do not wait for writers. For processes of one machine */
    ATT_DATABASE_ROLLBACK, /* a rollback journal: works on network file systems, too */
    ATT_DATABASE_READ      /* no changes: the file must exist, and keeps its journal */
} att_database_journal;

/* Opens the file, or creates it with its tables. After a failure *database is zero. Errors: ERR_FORMAT (the file is
 * damaged, not an attscope database, or has another version), ERR_IO, ERR_MEMORY. */
att_status att_database_open(att_context *context, const char *path, att_database_journal journal,
                             att_database *database);
void att_database_close(att_database *database);

/* Begins a transaction. Other writers of the database wait until it ends. */
att_status att_database_begin(att_database *database);
/* Ends a transaction: commits it if `status` is ATT_OK and the context's guard allows it, else rolls it back. Returns
 * `status`, or the error of the commit, after which the transaction is rolled back, too. */
att_status att_database_end(att_database *database, att_status status);
/* Flushes committed transactions to the disk, except parts that other connections are using (a passive checkpoint). */
void att_database_sync(att_database *database);

/* A prepared statement, which can be run for several sets of values. Errors are sticky: after a failure, calls do
 * nothing, and att_query_close() returns the error. Values are bound in the order of the statement's parameters. NaN
 * and NULL texts are bound as NULL. Texts must live until the next call of run or next. */
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
/* Runs the statement with the bound values and resets it for the next set of values. */
void att_query_run(att_query *query);
/* Moves to the first or next row of the result. Returns false after the last row and after a failure. */
bool att_query_next(att_query *query);
att_status att_query_close(att_query *query);

#endif
