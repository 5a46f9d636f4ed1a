#include "study/store/run_list.h"

#include "base/core/error.h"
#include "base/io/file.h"
#include "study/store/database.h"

static att_status list(att_database *database, att_status (*visit)(void *user, const char *folder), void *user)
{
    att_status status = ATT_OK;
    att_query query = att_query_open(database, "SELECT folder FROM runs ORDER BY id");
    while (status == ATT_OK && att_query_next(&query)) {
        const char *folder = (const char *)sqlite3_column_text(query.statement, 0);
        if (folder)
            status = visit(user, folder);
    }
    att_status closed = att_query_close(&query);
    return status != ATT_OK ? status : closed;
}

att_status att_store_list_runs(att_context *context, const char *path,
                               att_status (*visit)(void *user, const char *folder), void *user)
{
    att_database database;
    if (!att_file_exists(path))
        return att_fail(context, ATT_ERR_NOT_FOUND, "%s: there is no such database", path);
    ATT_TRY(att_database_open(context, path, ATT_DATABASE_READ, &database));
    att_status status = list(&database, visit, user);
    att_database_close(&database);
    return status;
}
