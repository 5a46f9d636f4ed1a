/* The routes of `attscope serve`: the list of runs, their pages, and the events of a training run. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/io/json.h"
#include "lab/report/page.h"
#include "lab/serve/client.h"

enum { PATH = 256 };

/* A folder with the runs of the test, and a server that shows it. */
typedef struct site {
    served served;
    char folder[64];
} site;

static void path_of(const site *s, const char *run, const char *file, char path[static PATH])
{
    snprintf(path, PATH, "%s/%s%s%s", s->folder, run, file[0] != '\0' ? "/" : "", file);
}

static void put(const site *s, const char *run, const char *file, const char *mode, const char *text)
{
    char path[PATH];
    path_of(s, run, "", path);
    mkdir(path, 0700);
    path_of(s, run, file, path);
    FILE *out = fopen(path, mode);
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
    assert_int_equal(fclose(out), 0);
}

#define BEGIN                                                                                                        \
    "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0,\"seconds\":0.5,\"model\":\"vit\",\"task\":\"classification\"," \
    "\"train_images\":100,\"batch_size\":\"8\",\"grad_accum_steps\":\"2\",\"epochs\":\"3\"}\n"
#define STEP(step, seconds)                                                  \
    "{\"event\":\"step\",\"epoch\":0,\"step\":" step ",\"seconds\":" seconds \
    ",\"loss\":1.5,\"images_per_second\":80}"                                \
    "\n"
#define EPOCH(epoch, step, seconds, top1)                                             \
    "{\"event\":\"epoch\",\"epoch\":" epoch ",\"step\":" step ",\"seconds\":" seconds \
    ",\"train_loss\":1.25,"                                                           \
    "\"eval_loss\":1,\"eval_top1\":" top1 ",\"eval_top5\":100}\n"
#define END(status) \
    "{\"event\":\"run_end\",\"epoch\":3,\"step\":18,\"seconds\":9,\"status\":\"" status "\",\"message\":\"why\"}\n"

static void start_site(site *s)
{
    strcpy(s->folder, "/tmp/attscope-serve-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    att_serve_options options = att_serve_options_defaults();
    const char *const paths[] = {s->folder};
    options.paths = paths;
    options.path_count = 1;
    served_start(&s->served, &options, NULL, NULL, 0);
}

static int setup(void **state)
{
    static site s;
    start_site(&s);
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    site *s = *state;
    char command[128];
    served_stop(&s->served);
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    return system(command);
}

#define SITE_TEST(name) TEST_WITH(name, site *s, setup, teardown)

/* --- the list of runs --------------------------------------------------------------------------------------------- */

static json_t *answer_of(const site *s, const char *line)
{
    json_t *root = NULL;
    assert_int_equal(ask(&s->served, line), 200);
    assert_header("Content-Type", "application/json");
    assert_int_equal(att_json_parse(s->served.context, "answer", body(), strlen(body()), &root), ATT_OK);
    return root;
}

/* The run with this name in an answer of /api/runs. */
static const json_t *run_called(const json_t *answer, const char *name)
{
    size_t i;
    const json_t *run;
    json_array_foreach(json_object_get(answer, "runs"), i, run)
    {
        if (strcmp(json_string_value(json_object_get(run, "run")), name) == 0)
            return run;
    }
    fail_msg("there is no run %s", name);
    return NULL;
}

static void assert_state(const json_t *answer, const char *name, const char *state)
{
    assert_string_equal(json_string_value(json_object_get(run_called(answer, name), "state")), state);
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

SITE_TEST(states_follow_from_records_and_locks)
{
    put(s, "finished", "metrics.jsonl", "w", BEGIN EPOCH("0", "6", "3", "25") END("OK"));
    put(s, "stopped", "metrics.jsonl", "w", BEGIN END("ERR_STOPPED"));
    put(s, "failed", "metrics.jsonl", "w", BEGIN END("ERR_NONFINITE"));
    put(s, "unfinished", "metrics.jsonl", "w", BEGIN STEP("1", "1"));
    put(s, "running", "metrics.jsonl", "w", BEGIN STEP("1", "1") "{\"event\":\"st");
    put(s, "measured", "measure.jsonl", "w", "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0}\n");
    put(s, "damaged", "metrics.jsonl", "w", BEGIN "nonsense\n");
    put(s, "other", "notes.txt", "w", "no run\n");
    put(s, ".hidden", "metrics.jsonl", "w", BEGIN);
    char path[PATH];
    path_of(s, "running", "metrics.jsonl", path);
    FILE *writer = fopen(path, "a");
    assert_non_null(writer);
    assert_int_equal(flock(fileno(writer), LOCK_EX | LOCK_NB), 0); /* as a training run locks it (io/file.h) */
    json_t *answer = answer_of(s, "GET /api/runs");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 7);
    const char *const names[] = {"finished", "stopped", "failed", "unfinished", "running", "measured"};
    for (int i = 0; i < 6; i++)
        assert_state(answer, names[i], names[i]);
    assert_non_null(strstr(json_string_value(json_object_get(run_called(answer, "damaged"), "problem")),
                           "damaged/metrics.jsonl, line 2: not valid JSON"));
    json_decref(answer);
    /* Asking locks nothing: a training run can be started at any time. */
    assert_int_equal(flock(fileno(writer), LOCK_UN), 0);
    assert_int_equal(flock(fileno(writer), LOCK_EX | LOCK_NB), 0);
    fclose(writer);
    answer = answer_of(s, "GET /api/runs");
    assert_state(answer, "running", "unfinished");
    json_decref(answer);
}

SITE_TEST(the_list_has_progress_and_the_best_value)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN EPOCH("0", "7", "3", "50") EPOCH("1", "14", "5", "25"));
    json_t *answer = answer_of(s, "GET /api/runs");
    const json_t *run = run_called(answer, "run"), *best = json_object_get(run, "best");
    assert_string_equal(json_string_value(json_object_get(run, "model")), "vit");
    assert_true(number_of(run, "epochs") == 2 && number_of(run, "epochs_wanted") == 3);
    assert_true(number_of(run, "step") == 14 && number_of(run, "seconds") == 5);
    assert_string_equal(json_string_value(json_object_get(best, "metric")), "top-1");
    assert_true(number_of(best, "value") == 50);
    json_decref(answer);
    put(s, "run", "metrics.jsonl", "a", EPOCH("2", "21", "7", "75") END("OK"));
    answer = answer_of(s, "GET /api/runs");
    run = run_called(answer, "run");
    assert_true(number_of(run, "epochs") == 3 && number_of(json_object_get(run, "best"), "value") == 75);
    assert_state(answer, "run", "finished");
    json_decref(answer);
}

/* Options that differ are listed; facts that are no options are not. */
SITE_TEST(the_list_has_the_settings_that_differ)
{
#define OPTIONS(seed, lr, more)                                                                        \
    "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0,\"model\":\"m" seed "\",\"fingerprint\":\"f" seed \
    "\",\"train_images\":1" seed ",\"seed\":\"" seed "\",\"lr\":\"" lr "\",\"epochs\":\"" seed "\"" more "}\n"
    put(s, "a", "metrics.jsonl", "w", OPTIONS("1", "0.1", ""));
    json_t *answer = answer_of(s, "GET /api/runs");
    assert_int_equal(json_object_size(json_object_get(run_called(answer, "a"), "settings")), 0);
    json_decref(answer);
    put(s, "b", "metrics.jsonl", "w", OPTIONS("2", "0.1", ",\"mixup\":\"0.8\""));
    put(s, "c", "measure.jsonl", "w", "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0}\n");
    answer = answer_of(s, "GET /api/runs");
    for (int i = 0; i < 2; i++) {
        const json_t *settings = json_object_get(run_called(answer, i ? "b" : "a"), "settings");
        assert_int_equal(json_object_size(settings), 1);
        assert_string_equal(json_string_value(json_object_get(settings, "seed")), i ? "2" : "1");
    }
    assert_int_equal(json_object_size(json_object_get(run_called(answer, "c"), "settings")), 0);
    json_decref(answer);
    /* args.yaml has more options, of which the number of threads does not matter. */
    put(s, "a", "args.yaml", "w", "model: m1\nmodules: none\nseed: 1\nthreads: 1\n");
    put(s, "b", "args.yaml", "w", "model: m2\nmodules: cb\nseed: 1\nthreads: 2\n");
    put(s, "a", "metrics.jsonl", "a", STEP("1", "1"));
    put(s, "b", "metrics.jsonl", "a", STEP("1", "1"));
    answer = answer_of(s, "GET /api/runs");
    const json_t *settings = json_object_get(run_called(answer, "b"), "settings");
    assert_int_equal(json_object_size(settings), 1);
    assert_string_equal(json_string_value(json_object_get(settings, "modules")), "cb");
    json_decref(answer);
    put(s, "b", "args.yaml", "w", "a: b: c\n");
    put(s, "b", "metrics.jsonl", "a", STEP("2", "1"));
    answer = answer_of(s, "GET /api/runs");
    assert_non_null(strstr(json_string_value(json_object_get(run_called(answer, "b"), "problem")), "args.yaml"));
    json_decref(answer);
}

/* The number of a run in an answer of /api/runs. */
static size_t place_of(const json_t *answer, const char *name)
{
    size_t i = 0;
    while (json_array_get(json_object_get(answer, "runs"), i) != run_called(answer, name))
        i++;
    return i;
}

SITE_TEST(runs_that_start_later_appear_at_the_end)
{
    json_t *answer = answer_of(s, "GET /api/runs");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 0);
    json_decref(answer);
    put(s, "b", "metrics.jsonl", "w", BEGIN);
    json_decref(answer_of(s, "GET /api/runs"));
    put(s, "a", "metrics.jsonl", "w", BEGIN);
    answer = answer_of(s, "GET /api/runs");
    assert_int_equal(place_of(answer, "b"), 0);
    assert_int_equal(place_of(answer, "a"), 1);
    json_decref(answer);
}

/* A run is called by the shortest end of its path that no other run or model has. */
SITE_TEST(runs_of_two_folders_with_one_name_are_told_apart)
{
    char one[PATH], other[PATH];
    path_of(s, "one", "", one);
    path_of(s, "other", "", other);
    mkdir(one, 0700);
    mkdir(other, 0700);
    put(s, "one/run", "metrics.jsonl", "w", BEGIN);
    put(s, "other/run", "metrics.jsonl", "w", BEGIN STEP("2", "1.5"));
    const char *const paths[] = {one, other};
    const att_serve_options options = {.paths = paths, .path_count = 2};
    site both = *s;
    served_start(&both.served, &options, NULL, NULL, 0);
    json_t *answer = answer_of(&both, "GET /api/runs");
    assert_int_equal(number_of(run_called(answer, "run"), "step"), 0);
    assert_int_equal(number_of(run_called(answer, "other/run"), "step"), 2);
    json_decref(answer);
    assert_int_equal(ask(&both.served, "GET /report?run=other/run"), 200);
    assert_non_null(strstr(body(), "\"served\":\"other/run\""));
    assert_int_equal(ask(&both.served, "GET /report?run=other%2Frun&run=run"), 200);
    assert_non_null(strstr(body(), "\"served\":\"run\""));
    served_stop(&both.served);
}

/* A run started before its last record by the seconds in it. */
SITE_TEST(the_list_has_the_start_of_runs)
{
    char path[PATH];
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    put(s, "trained", "metrics.jsonl", "w", BEGIN STEP("2", "600"));
    put(s, "measured", "measure.jsonl", "w", "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0}\n");
    path_of(s, "trained", "metrics.jsonl", path);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    path_of(s, "measured", "measure.jsonl", path);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    json_t *answer = answer_of(s, "GET /api/runs");
    assert_true(number_of(run_called(answer, "trained"), "started") == 1000000 - 600);
    assert_true(number_of(run_called(answer, "measured"), "started") == 1000000);
    json_decref(answer);
}

SITE_TEST(no_answer_has_the_path_of_a_folder)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN);
    json_decref(answer_of(s, "GET /api/runs"));
    assert_null(strstr(received, s->folder));
}

SITE_TEST(operands_are_runs_models_or_folders)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN);
    put(s, "model", "model.safetensors", "w", "x");
    put(s, "second", "model.safetensors", "w", "x");
    char run[PATH], again[PATH], model[PATH], file[PATH], second[PATH];
    path_of(s, "run", "", run);
    snprintf(again, sizeof again, "%s/./run//", s->folder);
    path_of(s, "model", "", model);
    path_of(s, "model", "model.safetensors", file);
    path_of(s, "second", "model.safetensors", second);
    const char *const names[] = {"model", "model/model.safetensors", "second/model.safetensors"};
    const char *const paths[] = {run, again, model, file, second};
    const att_serve_options options = {.paths = paths, .path_count = 5};
    site other = *s;
    served_start(&other.served, &options, NULL, NULL, 0);
    json_t *answer = answer_of(&other, "GET /api/runs");
    assert_int_equal(json_array_size(json_object_get(answer, "runs")), 1);
    const json_t *models = json_object_get(answer, "models");
    assert_int_equal(json_array_size(models), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(models, i), "name")), names[i]);
    json_decref(answer);
    served_stop(&other.served);
}

/* --- pages -------------------------------------------------------------------------------------------------------- */

SITE_TEST(pages_show_runs_and_run_only_their_own_scripts)
{
    put(s, "<script>boom()<", "metrics.jsonl", "w", BEGIN STEP("1", "1"));
    json_decref(answer_of(s, "GET /api/runs"));
    const char *const lines[] = {"GET /", "GET /live?run=%3Cscript%3Eboom()%3C",
                                 "GET /report?run=%3Cscript%3Eboom()%3C"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(&s->served, lines[i]), 200);
        assert_header("Content-Type", "text/html; charset=utf-8");
        assert_null(strstr(body(), "<script>"));
        assert_non_null(strstr(body(), "<script nonce=\""));
        assert_non_null(strstr(body(), "<script type=\"application/json\" id=\"data\">{\"attscope\":"));
        if (i > 0)
            assert_non_null(strstr(body(), "\"name\":\"\\u003cscript>boom()\\u003c\""));
    }
}

SITE_TEST(unknown_runs_are_not_found)
{
    const char *const pages[] = {"/report", "/live", "/api/events"};
    for (int i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "GET %s?run=absent", pages[i]);
        assert_int_equal(ask(&s->served, line), 404);
        assert_non_null(strstr(body(), "there is no run"));
        assert_non_null(strstr(body(), "absent"));
        const char *const bad[] = {"", "?run=", "?run=%", "?run=a%00", "?runs=a", "?run="};
        for (int k = 0; k < 6; k++) {
            snprintf(line, sizeof line, "GET %s%s", pages[i], bad[k]);
            assert_int_equal(ask(&s->served, line), 400);
        }
    }
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static int open_events(const site *s)
{
    char head[512];
    snprintf(head, sizeof head,
             "GET /api/events?run=run HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n", s->served.token);
    const int stream = dial(&s->served);
    send_text(stream, head);
    received[0] = '\0';
    receive_until(stream, "event: restart\ndata: {\"run\":\"run\"}\n\n", received);
    return stream;
}

/* Receives the next event of the kind "record" and parses its data. */
static json_t *next_record(const site *s, int stream, char **at)
{
    static const char begin[] = "event: record\ndata: ";
    for (;;) {
        char *found = strstr(*at, begin), *end = found != NULL ? strstr(found, "\n\n") : NULL;
        if (end != NULL) {
            json_t *root = NULL;
            found += sizeof begin - 1;
            assert_null(memchr(found, '\n', (size_t)(end - found)));
            assert_null(memchr(found, '\r', (size_t)(end - found))); /* ends a line of an event, too */
            assert_int_equal(att_json_parse(s->served.context, "event", found, (size_t)(end - found), &root), ATT_OK);
            *at = end;
            return root;
        }
        const size_t size = strlen(received), count = receive_some(stream, received + size, ANSWER - 1 - size);
        assert_true(count > 0);
        received[size + count] = '\0';
    }
}

/* Checks the next record: its step, and its progress. A negative number stands for null. */
static void assert_record(const site *s, int stream, char **at, int step, double speed, double left, double updates)
{
    json_t *event = next_record(s, stream, at);
    const struct {
        const char *key;
        double value;
    } wanted[] = {{"images_per_second", speed}, {"seconds_left", left}, {"updates", updates}};
    assert_int_equal(number_of(json_object_get(event, "record"), "step"), step);
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_object_get(event, wanted[i].key);
        if (wanted[i].value < 0 ? !json_is_null(value)
                                : !(json_is_number(value) && json_number_value(value) == wanted[i].value))
            fail_msg("step %d, %s: %s", step, wanted[i].key, *at);
    }
    json_decref(event);
}

SITE_TEST(records_come_with_throughput_and_time_left)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN STEP("2", "1.5"));
    const int stream = open_events(s);
    char *at = received;
    /* 100 / 8 = 12 batches, the last one dropped, 2 per update, 3 epochs: 18 updates. 0.5 s per update. */
    assert_record(s, stream, &at, 0, -1, -1, 18);
    assert_record(s, stream, &at, 2, 80, 8, 18);
    put(s, "run", "metrics.jsonl", "a", STEP("4", "2.5") "{\"event\":\"st");
    assert_record(s, stream, &at, 4, 80, 7, 18);
    put(s, "run", "metrics.jsonl", "a", "ep\",\r\"epoch\":0,\"step\":5,\"seconds\":5.5}\n");
    assert_record(s, stream, &at, 5, 80, 13, 18); /* (18 - 5) (5.5 - 0.5) / 5 */
    /* After an epoch the number of updates is known exactly: here it had 8. */
    put(s, "run", "metrics.jsonl", "a", EPOCH("0", "8", "4.5", "50"));
    assert_record(s, stream, &at, 8, 80, -1, 24); /* time has gone back: another process continues */
    put(s, "run", "metrics.jsonl", "a", STEP("10", "5.5") END("OK"));
    assert_record(s, stream, &at, 10, 80, 7, 24);
    assert_record(s, stream, &at, 18, 80, 0, 24);
    close(stream);
}

/* A stream has the records of all its runs, with their names; a damaged one does not end it. */
SITE_TEST(one_stream_follows_several_runs)
{
    put(s, "a", "metrics.jsonl", "w", BEGIN STEP("2", "1.5"));
    put(s, "b", "metrics.jsonl", "w", BEGIN "nonsense\n");
    char head[512];
    snprintf(head, sizeof head,
             "GET /api/events?run=a&run=b&run=a HTTP/1.1\r\nHost: localhost\r\nAuthorization: token %s\r\n\r\n",
             s->served.token);
    const int stream = dial(&s->served);
    send_text(stream, head);
    received[0] = '\0';
    receive_until(stream, "event: problem\ndata: {\"run\":\"b\",\"error\":", received);
    assert_non_null(strstr(received, "event: restart\ndata: {\"run\":\"b\"}"));
    put(s, "a", "metrics.jsonl", "a", STEP("4", "2.5"));
    receive_until(stream, "\"step\":4,", received);
    int restarts = 0;
    for (const char *found = received; (found = strstr(found, "event: restart\n")) != NULL; found++)
        restarts++;
    assert_int_equal(restarts, 2); /* a run that is named twice is followed once */
    close(stream);
}

SITE_TEST(too_many_runs_together_are_refused)
{
    char line[2048] = "GET /api/events?run=run0";
    for (int i = 0; i <= 32; i++) {
        char name[32];
        snprintf(name, sizeof name, "run%d", i);
        put(s, name, "metrics.jsonl", "w", BEGIN);
        snprintf(line + strlen(line), sizeof line - strlen(line), "&run=%s", name);
    }
    assert_int_equal(ask(&s->served, line), 400);
    assert_non_null(strstr(body(), "more than 32 runs together"));
}

/* Records that say how many updates the training has, and evaluations within epochs. */
SITE_TEST(a_training_in_updates_has_their_number)
{
    put(s, "run", "metrics.jsonl", "w",
        "{\"event\":\"run_begin\",\"epoch\":0,\"step\":0,\"seconds\":0.5,\"model\":\"vit\",\"task\":\"classification\","
        "\"train_images\":100,\"epoch_updates\":12,\"batch_size\":\"8\",\"epochs\":\"4\",\"updates\":\"40\","
        "\"eval_every\":\"6\"}\n" EPOCH("0", "6", "3.5", "50") EPOCH("1", "18", "9.5", "75"));
    const int stream = open_events(s);
    char *at = received;
    assert_record(s, stream, &at, 0, -1, -1, 40);
    assert_record(s, stream, &at, 6, -1, 17, 40); /* (40 - 6) (3.5 - 0.5) / 6 */
    assert_record(s, stream, &at, 18, -1, 11, 40);
    close(stream);
    json_t *answer = answer_of(s, "GET /api/runs");
    const json_t *run = run_called(answer, "run");
    assert_true(number_of(run, "epochs") == 1.5 && number_of(run, "epochs_wanted") == 4);
    json_decref(answer);
}

/* Waits until the streams have no more than this memory. */
static size_t wait_for_memory(const site *s, size_t most)
{
    size_t now = SIZE_MAX;
    for (double end = att_seconds_now() + PATIENCE_MS / 1000.0; now > most && att_seconds_now() < end; att_sleep(0.01))
        now = att_context_allocations(s->served.context).bytes_now;
    return now;
}

/* Each stream has a place in the file, and no memory for what it has sent; all share what is known of the file. */
SITE_TEST(many_streams_need_little_memory)
{
    enum { STREAMS = 20, EACH = 8 << 10 };
    int streams[STREAMS];
    put(s, "run", "metrics.jsonl", "w", BEGIN);
    for (int i = 0; i < 3000; i++)
        put(s, "run", "metrics.jsonl", "a", STEP("2", "1.5"));
    put(s, "run", "metrics.jsonl", "a", STEP("3", "1.5"));
    assert_int_equal(ask(&s->served, "GET /api/runs"), 200);
    const size_t before = att_context_allocations(s->served.context).bytes_now;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = open_events(s);
        receive_until(streams[i], "\"step\":3,", received);
    }
    const size_t open = wait_for_memory(s, before + STREAMS * EACH) - before;
    print_message("%zu bytes for a stream\n", open / STREAMS);
    assert_true(open <= STREAMS * EACH); /* measured: 6 KiB each, most for the context */
    for (int i = 0; i < STREAMS; i++)
        close(streams[i]);
    assert_true(wait_for_memory(s, before) <= before);
}

SITE_TEST(a_restarted_run_begins_anew)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN STEP("2", "1.5") STEP("4", "2"));
    const int stream = open_events(s);
    char *at = received;
    for (int i = 0; i < 3; i++)
        json_decref(next_record(s, stream, &at));
    put(s, "run", "metrics.jsonl", "w", BEGIN);
    assert_record(s, stream, &at, 0, -1, -1, 18);
    assert_int_equal(strncmp(at + 2, "event", 5) != 0, 1);
    int restarts = 0;
    for (const char *found = received; (found = strstr(found, "event: restart\n")) != NULL; found++)
        restarts++;
    assert_int_equal(restarts, 2);
    put(s, "run", "metrics.jsonl", "w", STEP("6", "3")); /* nothing is known of the whole training */
    assert_record(s, stream, &at, 6, 80, -1, -1);
    close(stream);
}

SITE_TEST(a_damaged_file_ends_the_stream_with_a_sentence)
{
    put(s, "run", "metrics.jsonl", "w", BEGIN "nonsense\n" STEP("1", "1"));
    const int stream = open_events(s);
    char rest[ANSWER / 4] = "";
    char *at = received;
    assert_record(s, stream, &at, 0, -1, -1, 18);
    receive_until(stream, "event: problem\ndata: {\"run\":\"run\",\"error\":\"", received);
    assert_non_null(strstr(received, "not valid JSON"));
    /* The end of the chunks may have come with the sentence; the connection stays open for a while. */
    const char *last = at;
    while (strstr(last, "0\r\n\r\n") == NULL && receive_some(stream, rest, sizeof rest - 1) > 0)
        last = rest;
    assert_null(strstr(received, "\"step\":1,"));
    close(stream);
}
