/* The database of runs, read with SQLite itself. */
#include "study/store/import.h"
#include "study/store/rows.h"

static const char all_rows[] =
    "SELECT folder,model,status,message,settings,started GLOB '20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*Z',"
    "(SELECT group_concat(step||' '||epoch||' '||event||' '||name||' '||value,', ') FROM scalars WHERE run=id),"
    "(SELECT group_concat(source||' '||step||' '||value,', ') FROM measurements WHERE run=id) FROM runs ORDER BY "
    "folder";

SCRATCH_TEST(events_become_rows)
{
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

SCRATCH_TEST(a_resumed_run_has_the_rows_of_one_run)
{
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
            const att_store_resume resume = {saved / STEPS_PER_EPOCH, saved, false};
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
    const att_store_resume resume = {1, 5, true};
    sink = open_run(self, "run", &resume);
    emit_begin(&sink);
    emit_run(&sink, 5, 6);
    sink.close(sink.user);
    assert_rows(self, "SELECT folder,model,step,name FROM runs JOIN scalars ON run=id", "run|vit|6|loss\n");
}

/* Runs elsewhere are known by their whole path. */
SCRATCH_TEST(a_run_elsewhere_is_known_by_its_whole_path)
{
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
SCRATCH_TEST(a_resumed_epoch_ends_only_once)
{
    static const char epochs[] = "SELECT step,epoch,name,value FROM scalars WHERE event='epoch' AND name='lr'";
    att_sink sink = open_run(self, "run", NULL);
    emit_begin(&sink);
    emit_run(&sink, 0, STEPS_PER_EPOCH);
    sink.close(sink.user);
    assert_rows(self, epochs, "4|0|lr|0.1\n");
    assert_int_equal(emit_checkpoint(self, 7, true), ATT_OK);
    const att_store_resume resume = {.step = STEPS_PER_EPOCH, .unevaluated = true};
    sink = open_run(self, "run", &resume);
    emit_begin(&sink);
    sink.close(sink.user);
    assert_rows(self, epochs, "");
    assert_rows(self, "SELECT count(*) FROM scalars", "4\n");
    assert_rows(self, "SELECT source,count(*) FROM measurements GROUP BY source", "measure|2\n");
}

/* A measurement replaces the earlier one completely or not at all, and leaves the training's records unchanged. */
SCRATCH_TEST(a_measurement_replaces_the_earlier_one_whole)
{
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
        "\"deviation\":null,\"n\":1,\"undefined\":1}]}\n"
        "{\"event\":\"run_end\",\"epoch\":1,\"step\":9,\"seconds\":0.5,\"status\":\"OK\"}\n");
    free(metrics);
}

/* Other statistics stay if checkpoint and settings are the same; a damaged file is replaced. */
SCRATCH_TEST(other_statistics_of_the_same_checkpoint_stay)
{
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
    const att_measurement figure = {"nsi", node, "unit", "1", -1, 1.5, 0.25, 3, NULL, 0, 0, false, 0, 0};
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

/* Digests decide, not paths. Nodes that were not measured again keep their figures; the replaced
 * figures are kept in another file, all of them. */
SCRATCH_TEST(measurements_are_matched_by_digests_not_paths)
{
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
    assert_int_equal(count_in(self, previous, "blocks."), 3);
    assert_int_equal(count_in(self, previous, "run_begin"), 2);
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

SCRATCH_TEST(lack_of_memory_is_reported_without_leaks)
{
    assert_survives_lack_of_memory(self, open_and_emit);
    assert_survives_lack_of_memory(self, measure_checkpoint);
    assert_rows(self, "SELECT folder,step FROM runs JOIN measurements ON run=id", "run|3\nrun|3\n");
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
    CHECK(self->context, att_store_import(self->context, database_of(self), folders, count));
}

/* A database made from the files of the runs has the rows of one that was written while the runs were at work. */
SCRATCH_TEST(imported_runs_have_the_same_rows)
{
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
