/* TensorBoard files, read back by a reader that shares no code with the writer. */
#include "study/store/run.h"

enum { MOST = 256 };
static const char file_name[] = "events.out.tfevents.attscope";

typedef struct scalar {
    int64_t step;
    char tag[64];
    float value;
} scalar;

typedef struct scalars {
    scalar items[MOST];
    int count, versions;
} scalars;

/* Computed bit by bit, from the definition in RFC 3720. */
static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        uint32_t low = (crc ^ (uint32_t)(bytes[bit / 8] >> bit % 8)) & 1;
        crc = crc >> 1 ^ (low ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static uint32_t unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8;
    return rotated >> 17 | rotated << 15;
}

static uint64_t varint(const uint8_t **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 127) << shift;
        if (*(*at)++ < 128)
            return value;
    }
}

static void read_value(const uint8_t *at, const uint8_t *end, scalar *out)
{
    while (at < end)
        switch (varint(&at)) {
        case 1 << 3 | 2: {
            uint64_t length = varint(&at);
            assert_true(length < sizeof out->tag);
            memcpy(out->tag, at, length);
            at += length;
            break;
        }
        case 2 << 3 | 5:
            memcpy(&out->value, at, 4);
            at += 4;
            break;
        default:
            fail_msg("an unknown field of a value");
        }
    assert_ptr_equal(at, end);
}

static void read_event(const uint8_t *at, const uint8_t *end, scalars *out)
{
    int64_t step = 0;
    while (at < end)
        switch (varint(&at)) {
        case 1 << 3 | 1: {
            double time;
            memcpy(&time, at, 8);
            assert_true(time > 1.7e9 && time < 1e11);
            at += 8;
            break;
        }
        case 2 << 3 | 0:
            step = (int64_t)varint(&at);
            break;
        case 3 << 3 | 2:
            assert_int_equal(varint(&at), strlen("brain.Event:2"));
            assert_memory_equal(at, "brain.Event:2", strlen("brain.Event:2"));
            at += strlen("brain.Event:2");
            out->versions++;
            break;
        case 5 << 3 | 2: {
            uint64_t size = varint(&at);
            for (const uint8_t *last = at + size; at < last;) {
                assert_int_equal(varint(&at), 1 << 3 | 2);
                uint64_t length = varint(&at);
                assert_true(out->count < MOST);
                scalar *item = &out->items[out->count++];
                item->step = step;
                read_value(at, at + length, item);
                at += length;
            }
            break;
        }
        default:
            fail_msg("an unknown field of an event");
        }
    assert_ptr_equal(at, end);
}

static uint8_t *read_bytes(scratch *self, size_t *size)
{
    FILE *file = fopen(path_of(self, file_name), "rb");
    assert_non_null(file);
    uint8_t *bytes = malloc(100000);
    *size = fread(bytes, 1, 100000, file);
    fclose(file);
    return bytes;
}

static scalars read_file(scratch *self)
{
    scalars found = {0};
    size_t size;
    uint8_t *bytes = read_bytes(self, &size);
    for (const uint8_t *at = bytes; at < bytes + size;) {
        uint64_t length;
        uint32_t crc;
        memcpy(&length, at, 8);
        memcpy(&crc, at + 8, 4);
        assert_int_equal(crc32c(at, 8), unmask(crc));
        memcpy(&crc, at + 12 + length, 4);
        assert_int_equal(crc32c(at + 12, length), unmask(crc));
        read_event(at + 12, at + 12 + length, &found);
        at += 12 + length + 4;
    }
    free(bytes);
    assert_int_equal(found.versions, 1);
    return found;
}

static void assert_scalar(const scalars *found, int index, int64_t step, const char *tag, double value)
{
    assert_true(index < found->count);
    const scalar *item = &found->items[index];
    assert_int_equal(item->step, step);
    assert_string_equal(item->tag, tag);
    if (isnan(value))
        assert_true(isnan(item->value));
    else
        assert_true(item->value == (float)value);
}

static void assert_same(const scalars *a, const scalars *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        assert_scalar(a, i, b->items[i].step, b->items[i].tag, (double)b->items[i].value);
}

/* The check value of CRC-32C. */
TEST(the_checksum_of_the_reader_is_crc32c)
{
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
}

SCRATCH_TEST(scalars_are_written_under_their_tags)
{
    att_sink sink = open_store(self, NULL);
    emit_begin(&sink);
    assert_int_equal(emit(&sink, ATT_EVENT_STEP, 0, 1, FIELDS({"loss", NAN, NULL}, {"lr", 0.1, NULL}, {"t", 0, "x"})),
                     ATT_OK);
    const att_measurement measurements[] = {
        {"entropy", "blocks.3.attn", "mean", "nats", 0, 1, 2, 3, NULL, 0, 0, false, 0, 0},
        {"entropy", "blocks.3.attn", "mean", "nats", -1, 4.5, 2, 3, NULL, 0, 0, false, 0, 0},
        {"tns", "", "mu unit", "1", -1, -0.0, NAN, 1, NULL, 0, 0, false, 0, 0},
    };
    const att_event measured = {.kind = ATT_EVENT_MEASURE,
                                .step = 300,
                                .fields = (const att_event_field[]){{"images", 3, NULL}},
                                .field_count = 1,
                                .measurements = measurements,
                                .measurement_count = 3};
    assert_int_equal(sink.emit(sink.user, &measured), ATT_OK);
    assert_int_equal(emit(&sink, ATT_EVENT_WARNING, 0, 300, FIELDS({"message", 0, "odd"})), ATT_OK);
    assert_int_equal(emit(&sink, ATT_EVENT_EPOCH, 7, 1LL << 40,
                          FIELDS({"train_loss", 0.25, NULL}, {"lr", 1, NULL}, {"eval_top1", INFINITY, NULL})),
                     ATT_OK);
    emit_end(&sink, 1LL << 40);
    sink.close(sink.user);
    scalars found = read_file(self);
    assert_int_equal(found.count, 7);
    assert_scalar(&found, 0, 1, "loss", NAN);
    assert_scalar(&found, 1, 1, "lr", 0.1);
    assert_scalar(&found, 2, 300, "entropy/blocks.3.attn/mean", 4.5);
    assert_scalar(&found, 3, 300, "tns/mu unit", 0);
    assert_scalar(&found, 4, 1LL << 40, "train_loss", 0.25);
    assert_scalar(&found, 5, 1LL << 40, "eval_top1", INFINITY);
    assert_scalar(&found, 6, 1LL << 40, "epoch", 7);
}

/* Stopped after any number of updates and resumed from a checkpoint of any earlier moment: one file, as from one run.
 * */
SCRATCH_TEST(a_resumed_file_equals_that_of_one_run)
{
    enum { STEPS = 10 };
    att_sink sink = open_store(self, NULL);
    emit_run(&sink, 0, STEPS);
    sink.close(sink.user);
    scalars whole = read_file(self);
    assert_int_equal(whole.count, STEPS + 2 * 4);
    for (int64_t stop = 0; stop <= STEPS; stop++)
        for (int64_t saved = 0; saved <= stop; saved++) {
            sink = open_store(self, NULL);
            emit_run(&sink, 0, stop);
            sink.close(sink.user);
            const att_store_resume resume = {saved / STEPS_PER_EPOCH, saved, false};
            sink = open_store(self, &(att_store_options){.resume = &resume});
            emit_run(&sink, saved, STEPS);
            sink.close(sink.user);
            scalars found = read_file(self);
            assert_same(&found, &whole);
        }
    /* A checkpoint written between an epoch's last update and its evaluation. */
    const att_store_resume before = {0, STEPS_PER_EPOCH, true};
    sink = open_store(self, &(att_store_options){.resume = &before});
    sink.close(sink.user);
    scalars found = read_file(self);
    assert_int_equal(found.count, STEPS_PER_EPOCH);
}

static void count_warning(void *user, att_log_level level, const char *line)
{
    assert_int_equal(level, ATT_LOG_WARNING);
    assert_non_null(strstr(line, file_name));
    ++*(int *)user;
}

/* Truncated anywhere, or with any byte changed: complete events are kept, and a changed byte is reported. */
SCRATCH_TEST(damaged_files_keep_only_whole_events)
{
    enum { STRIDE = 5 };
    int warnings = 0, changes = 0;
    att_context *context;
    att_settings settings = att_settings_defaults();
    settings.log = count_warning;
    settings.log_user = &warnings;
    assert_int_equal(att_context_create_with(&settings, NULL, &context), ATT_OK);
    att_sink sink = open_store(self, NULL);
    emit_run(&sink, 0, STEPS_PER_EPOCH);
    sink.close(sink.user);
    size_t size;
    uint8_t *bytes = read_bytes(self, &size);
    const att_store_resume never = {9, 99, false};
    for (size_t place = 0; place < 2 * size; place += STRIDE) {
        bool cut = place < size;
        FILE *file = fopen(path_of(self, file_name), "wb");
        uint8_t changed = bytes[place % size] ^ 0x14;
        fwrite(bytes, 1, place % size, file);
        if (!cut) {
            fwrite(&changed, 1, 1, file);
            fwrite(bytes + place - size + 1, 1, 2 * size - place - 1, file);
        }
        fclose(file);
        assert_int_equal(att_store_open(context, self->folder, &(att_store_options){.resume = &never}, &sink), ATT_OK);
        sink.close(sink.user);
        assert_true(read_file(self).count <= STEPS_PER_EPOCH + 3);
        changes += !cut;
        assert_int_equal(warnings, changes);
    }
    free(bytes);
    att_context_destroy(&context);
}
