#include "study/store/database.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"

/* "atts" in ASCII: SQLite's application_id of attscope's databases. */
enum { APPLICATION = 0x61747473, VERSION = 1 };
enum { TIMEOUT_SECONDS = 60, RETRY_MILLISECONDS = 20 };

static const char schema[] =
    "CREATE TABLE runs(id INTEGER PRIMARY KEY, folder TEXT NOT NULL UNIQUE, model TEXT, started TEXT, status TEXT,"
    " message TEXT, settings TEXT);"
    "CREATE TABLE scalars(run INTEGER NOT NULL REFERENCES runs(id), step INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " event TEXT NOT NULL, name TEXT NOT NULL, value REAL);"
    "CREATE INDEX scalars_of_run ON scalars(run, step);"
    "CREATE TABLE measurements(run INTEGER NOT NULL REFERENCES runs(id), source TEXT NOT NULL, step INTEGER NOT NULL,"
    " split TEXT, instrument TEXT NOT NULL, node TEXT NOT NULL, head INTEGER NOT NULL, statistic TEXT NOT NULL,"
    " unit TEXT, value REAL, deviation REAL, n INTEGER NOT NULL);"
    "CREATE INDEX measurements_of_run ON measurements(run, source, step);";

static const char advice[] =
    "move it away, and attscope creates a new one; the files of each run still have all records";

/* Fails with a message for SQLite's result code. */
static att_status fail(att_database *database, int code)
{
    att_context *context = database->context;
    const char *path = database->path, *reason = sqlite3_errmsg(database->connection);
    int system = sqlite3_system_errno(database->connection);
    switch (code & 255) {
    case SQLITE_NOMEM:
        return att_fail(context, ATT_ERR_MEMORY, "%s: there is no memory for SQLite", path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return att_fail(context, ATT_ERR_IO, "%s was locked by another process for more than %d s", path,
                        TIMEOUT_SECONDS);
    case SQLITE_FULL:
        return att_fail(context, ATT_ERR_IO, "%s could not be written: the disk is full", path);
    case SQLITE_NOTADB:
        return att_fail(context, ATT_ERR_FORMAT, "%s is not an SQLite database; %s", path, advice);
    case SQLITE_CORRUPT:
        return att_fail(context, ATT_ERR_FORMAT, "%s is damaged (%s); %s", path, reason, advice);
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return att_fail(context, ATT_ERR_FORMAT, "%s does not have the tables of attscope (%s); %s", path, reason,
                        advice);
    default:
        return att_fail(context, ATT_ERR_IO, "%s could not be written: %s%s%s", path, reason, system ? ": " : "",
                        system ? strerror(system) : "");
    }
}

/* --- queries ------------------------------------------------------------------------------------------------------ */

static void check(att_query *query, int code)
{
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        query->status = fail(query->database, code);
}

att_query att_query_open(att_database *database, const char *sql)
{
    att_query query = {.database = database, .status = ATT_OK};
    check(&query, sqlite3_prepare_v2(database->connection, sql, -1, &query.statement, NULL));
    return query;
}

void att_query_integer(att_query *query, int64_t value)
{
    if (query->status == ATT_OK)
        check(query, sqlite3_bind_int64(query->statement, ++query->bound, value));
}

void att_query_real(att_query *query, double value)
{
    if (query->status == ATT_OK)
        check(query, sqlite3_bind_double(query->statement, ++query->bound, value));
}

void att_query_text(att_query *query, const char *text)
{
    if (query->status == ATT_OK)
        check(query, sqlite3_bind_text(query->statement, ++query->bound, text, -1, SQLITE_STATIC));
}

bool att_query_next(att_query *query)
{
    if (query->status != ATT_OK)
        return false;
    int code = sqlite3_step(query->statement);
    check(query, code);
    return code == SQLITE_ROW;
}

void att_query_run(att_query *query)
{
    while (att_query_next(query)) {
    }
    sqlite3_reset(query->statement);
    query->bound = 0;
}

att_status att_query_close(att_query *query)
{
    sqlite3_finalize(query->statement);
    query->statement = NULL;
    return query->status;
}

static att_status run_sql(att_database *database, const char *sql)
{
    int code = sqlite3_exec(database->connection, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? ATT_OK : fail(database, code);
}

static att_status ask_number(att_database *database, const char *sql, int64_t *number)
{
    att_query query = att_query_open(database, sql);
    if (att_query_next(&query))
        *number = sqlite3_column_int64(query.statement, 0);
    return att_query_close(&query);
}

/* --- transactions ------------------------------------------------------------------------------------------------- */

att_status att_database_begin(att_database *database)
{
    return run_sql(database, "BEGIN IMMEDIATE");
}

att_status att_database_end(att_database *database, att_status status)
{
    if (status == ATT_OK)
        status = att_context_check_write(database->context, database->path);
    if (status == ATT_OK)
        status = run_sql(database, "COMMIT");
    if (status != ATT_OK && !sqlite3_get_autocommit(database->connection))
        sqlite3_exec(database->connection, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

void att_database_sync(att_database *database)
{
    sqlite3_wal_checkpoint_v2(database->connection, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Fails unless the file is a database of attscope in this version, or empty (*empty). */
static att_status check_owner(att_database *database, bool *empty)
{
    int64_t application = 0, version = 0, objects = 0;
    ATT_TRY(ask_number(database, "PRAGMA application_id", &application));
    ATT_TRY(ask_number(database, "PRAGMA user_version", &version));
    ATT_TRY(ask_number(database, "SELECT count(*) FROM sqlite_master", &objects));
    *empty = application == 0 && version == 0 && objects == 0;
    if (!*empty && application != APPLICATION)
        return att_fail(database->context, ATT_ERR_FORMAT, "%s is a database of another program; %s", database->path,
                        advice);
    if (!*empty && version != VERSION)
        return att_fail(database->context, ATT_ERR_FORMAT, "%s has version %lld of attscope's tables, expected %d; %s",
                        database->path, (long long)version, (int)VERSION, advice);
    return ATT_OK;
}

/* Runs check_owner() in a transaction, because another process may create the tables between two of its queries. */
static att_status find_owner(att_database *database, bool *empty)
{
    ATT_TRY(run_sql(database, "BEGIN"));
    return att_database_end(database, check_owner(database, empty));
}

static att_status write_tables(att_database *database)
{
    char owner[80];
    bool empty;
    ATT_TRY(check_owner(database, &empty)); /* another process may have created the tables */
    if (!empty)
        return ATT_OK;
    sqlite3_snprintf(sizeof owner, owner, "PRAGMA application_id=%d;PRAGMA user_version=%d", (int)APPLICATION,
                     (int)VERSION);
    ATT_TRY(run_sql(database, schema));
    return run_sql(database, owner);
}

static att_status make_tables(att_database *database)
{
    ATT_TRY(att_database_begin(database));
    return att_database_end(database, write_tables(database));
}

/* Selects the kind of journal. With the write-ahead log, commits do not wait for the disk, and writers wait only for
 * each other's commits; if the file system does not support it, SQLite keeps its rollback journal. The loop is
 * necessary because SQLite fails at once, without waiting, if other processes use the database. */
static att_status use_journal(att_database *database, att_database_journal journal)
{
    const bool wal = journal == ATT_DATABASE_WAL;
    int code = SQLITE_BUSY;
    for (int waited = 0; code == SQLITE_BUSY && waited < 1000 * TIMEOUT_SECONDS; waited += RETRY_MILLISECONDS) {
        code = sqlite3_exec(database->connection, wal ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE", NULL,
                            NULL, NULL) &
               255;
        if (code == SQLITE_BUSY)
            sqlite3_sleep(RETRY_MILLISECONDS);
    }
    ATT_TRY(code == SQLITE_OK ? ATT_OK : fail(database, code));
    return wal ? run_sql(database, "PRAGMA synchronous=NORMAL") : ATT_OK;
}

/* Configures the connection for untrusted files: triggers and views are disabled, and the schema is not trusted. */
static void restrict_connection(sqlite3 *connection)
{
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_busy_timeout(connection, 1000 * TIMEOUT_SECONDS);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

/* Resolves symbolic links in the path's folder, because SQLITE_OPEN_NOFOLLOW fails for a link in any part of a path. */
static att_status resolve_folder(const att_database *database, att_text *path)
{
    const char *slash = strrchr(database->path, '/'), *name = slash ? slash + 1 : database->path;
    char folder[PATH_MAX], *resolved = NULL;
    int length = slash ? (int)(slash - database->path) : 1;
    snprintf(folder, sizeof folder, "%.*s/", length, slash ? database->path : ".");
    resolved = realpath(folder, NULL);
    if (!resolved)
        return att_fail(database->context, errno == ENOMEM ? ATT_ERR_MEMORY : ATT_ERR_IO, "%s could not be opened: %s",
                        database->path, strerror(errno));
    att_text_append(path, "%s/%s", resolved, name);
    free(resolved);
    return path->failed ? att_fail_memory(database->context, path->capacity, database->path) : ATT_OK;
}

/* SQLite waits for ever if it opens a pipe. It does not follow links at the paths of its journal files. */
static att_status check_kinds(const att_database *database, const char *path)
{
    static const char *const endings[] = {"", "-journal", "-wal", "-shm"};
    struct stat info;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        if (lstat(file, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
            return att_fail(database->context, ATT_ERR_IO, "%s%s is not a regular file; %s", database->path, endings[i],
                            advice);
    }
    return ATT_OK;
}

/* Opens the file without following a symbolic link. */
static att_status open_file(att_database *database, bool reading)
{
    int flags = reading ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    att_text path = {.context = database->context};
    att_status status = resolve_folder(database, &path);
    int code = SQLITE_OK;
    if (status == ATT_OK)
        status = check_kinds(database, path.data);
    if (status == ATT_OK)
        code = sqlite3_open_v2(path.data, &database->connection, flags | SQLITE_OPEN_NOFOLLOW, NULL);
    att_text_free(&path);
    ATT_TRY(status);
    if (!database->connection)
        return att_fail(database->context, ATT_ERR_MEMORY, "%s: there is no memory for SQLite", database->path);
    struct stat info;
    if (code != SQLITE_OK && lstat(database->path, &info) == 0 && S_ISLNK(info.st_mode))
        return att_fail(database->context, ATT_ERR_IO, "%s is a symbolic link, which is not followed for writing; %s",
                        database->path, advice);
    return code == SQLITE_OK ? ATT_OK : fail(database, code);
}

static att_status open_connection(att_database *database, att_database_journal journal)
{
    const bool reading = journal == ATT_DATABASE_READ;
    bool empty;
    ATT_TRY(open_file(database, reading));
    restrict_connection(database->connection);
    ATT_TRY(find_owner(database, &empty));
    if (reading)
        return ATT_OK;
    if (empty)
        ATT_TRY(make_tables(database));
    return use_journal(database, journal);
}

att_status att_database_open(att_context *context, const char *path, att_database_journal journal,
                             att_database *database)
{
    *database = (att_database){.context = context, .path = att_copy_string(context, path)};
    att_status status = database->path ? open_connection(database, journal)
                                       : att_fail_memory(context, strlen(path), "a database's name");
    if (status != ATT_OK)
        att_database_close(database);
    return status;
}

void att_database_close(att_database *database)
{
    sqlite3_close(database->connection);
    att_free(database->context, database->path);
    *database = (att_database){0};
}
