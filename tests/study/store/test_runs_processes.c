/* A database of runs that several processes write, or that a killed process leaves. */
#include <signal.h>
#include <sys/wait.h>

#include "study/store/rows.h"

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

SCRATCH_TEST(several_processes_write_at_once)
{
    for (int round = 0; round < 8; round++) {
        remove_database(self);
        write_at_once(self);
    }
}

/* A process killed at any moment: the database has a row for each line of metrics.jsonl, except the one being written,
 * and the training can be resumed. */
SCRATCH_TEST(a_killed_run_leaves_whole_rows)
{
    for (int round = 0; round < 12; round++) {
        char sql[160], run[8], file[32];
        pid_t child = start_writer(self, round);
        usleep(1500U * (unsigned)round);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const att_store_resume end = {0, EVENTS, false};
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
