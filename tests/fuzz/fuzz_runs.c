/* An existing database of runs: opened for a resumed training and for a measured checkpoint, and written to. A fault in
 * it must give one sentence. */
#include "fuzz.h"

static void write_database(const uint8_t *data, size_t size)
{
    char path[512];
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/runs.sqlite%s", fuzz_folder(), beside[i]);
        remove(path);
    }
    fuzz_file("runs.sqlite", data, size);
}

static att_status emit_all(const att_sink *sink)
{
    const att_event_field fields[] = {{"lr", 0.1, NULL}, {"split", 0, "val"}};
    const att_measurement figure = {"entropy", "blocks.3.attn", "mean", "nats", 2, 1.5, 0.25, 3, NULL, 0,
                                    0,         false,           0,      0};
    static const att_event_kind kinds[] = {ATT_EVENT_RUN_BEGIN, ATT_EVENT_STEP, ATT_EVENT_MEASURE, ATT_EVENT_RUN_END};
    att_status status = ATT_OK;
    for (int i = 0; i < 4 && status == ATT_OK; i++) {
        att_event event = {.kind = kinds[i], .epoch = 1, .step = 5, .fields = fields, .field_count = 2};
        event.measurements = &figure;
        event.measurement_count = kinds[i] == ATT_EVENT_MEASURE;
        status = sink->emit(sink->user, &event);
    }
    return status;
}

static void use(bool measured)
{
    char folder[300], database[300];
    snprintf(folder, sizeof folder, "%s/run", fuzz_folder());
    snprintf(database, sizeof database, "%s/runs.sqlite", fuzz_folder());
    const att_store_resume resume = {1, 4, false};
    const att_store_options options = {.resume = &resume, .database = database};
    att_sink sink;
    att_status status = measured ? att_store_open_measured(fuzz_context(), folder, database, &sink)
                                 : att_store_open(fuzz_context(), folder, &options, &sink);
    if (status == ATT_OK) {
        status = emit_all(&sink);
        sink.close(sink.user);
    }
    const char *message = att_context_message(fuzz_context());
    if (status != ATT_OK)
        fuzz_require(strstr(message, "runs.sqlite") != NULL && strlen(message) < 1000,
                     "the message names the database");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    write_database(data, size);
    use(false);
    use(true);
    fuzz_end(before);
    return 0;
}
