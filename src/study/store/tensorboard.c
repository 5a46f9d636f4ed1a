/* Writes scalars for TensorBoard as TFRecords of these protocol buffers (event.proto and summary.proto of
 * https://github.com/tensorflow/tensorflow):
 *
 *   Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5
 *   Summary: repeated value = 1
 *   Value: tag = 1 (string), simple_value = 2 (float)
 */
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/file.h"
#include "study/store/log.h"
#include "study/store/tfrecord.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };
enum { FIRST_WINDOW = 1 << 12, LARGEST_RECORD = 16 << 20 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
/* Tag of the scalar that contains the epoch's number. A resume finds the events of ATT_EVENT_EPOCH by it. */
static const char epoch_tag[] = "epoch";

typedef struct tensorboard {
    att_context *context;
    att_file_appender *file;
    att_crc32c crc;
    att_text value, summary, event, record;
} tensorboard;

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void clear_failures(tensorboard *t)
{
    t->value.failed = t->summary.failed = t->event.failed = t->record.failed = false;
}

static void put_varint(att_text *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)(value & 127) | (value > 127 ? 128 : 0);
        value >>= 7;
    } while (value > 0);
    att_text_append_bytes(out, bytes, count);
}

static void put_key(att_text *out, int field, int wire)
{
    put_varint(out, (uint64_t)(field << 3 | wire));
}

static void put_little_endian(att_text *out, uint64_t bits, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(bits >> 8 * i);
        att_text_append_bytes(out, &byte, 1);
    }
}

static void put_double(att_text *out, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_64);
    put_little_endian(out, bits, 8);
}

static void put_float(att_text *out, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, WIRE_32);
    put_little_endian(out, bits, 4);
}

static void put_bytes(att_text *out, int field, const void *bytes, size_t size)
{
    put_key(out, field, WIRE_BYTES);
    put_varint(out, size);
    att_text_append_bytes(out, bytes, size);
}

static double wall_time(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void begin_event(tensorboard *t, int64_t step)
{
    t->event.length = 0;
    put_double(&t->event, EVENT_WALL_TIME, wall_time());
    put_key(&t->event, EVENT_STEP, WIRE_VARINT);
    put_varint(&t->event, (uint64_t)step);
}

static att_status write_event(tensorboard *t)
{
    t->record.length = 0;
    att_tfrecord_append(&t->crc, t->event.data, t->event.length, &t->record);
    if (t->value.failed || t->summary.failed || t->event.failed || t->record.failed)
        return att_fail_memory(t->context, t->event.length, "an event for TensorBoard");
    return att_file_appender_write(t->file, t->record.data, t->record.length);
}

/* Completes t->value, which contains a tag, with its number and adds it to the summary. */
static void add_value(tensorboard *t, double number)
{
    put_float(&t->value, VALUE_SIMPLE, (float)number);
    put_bytes(&t->summary, SUMMARY_VALUE, t->value.data, t->value.length);
}

static void add_scalar(tensorboard *t, const char *tag, double number)
{
    t->value.length = 0;
    put_bytes(&t->value, VALUE_TAG, tag, strlen(tag));
    add_value(t, number);
}

/* Returns whether a field is written. Of the fields of ATT_EVENT_EPOCH, only the results are written: learning rate and
 * speed are written for each step. */
static bool is_shown(const att_event *event, const char *name)
{
    return event->kind != ATT_EVENT_EPOCH || strncmp(name, "train_", 6) == 0 || strncmp(name, "eval_", 5) == 0;
}

static void add_fields(tensorboard *t, const att_event *event)
{
    for (int i = 0; i < event->field_count; i++)
        if (!event->fields[i].text && is_shown(event, event->fields[i].name))
            add_scalar(t, event->fields[i].name, event->fields[i].number);
    if (event->kind == ATT_EVENT_EPOCH)
        add_scalar(t, epoch_tag, (double)event->epoch);
}

/* Adds measurements of all heads together, with the tags "entropy/blocks.3.attn/mean" and, for the network, "tns/mu
 * unit". */
static void add_measurements(tensorboard *t, const att_event *event)
{
    for (int i = 0; i < event->measurement_count; i++) {
        const att_measurement *m = &event->measurements[i];
        if (m->head >= 0)
            continue;
        const char *const parts[] = {m->instrument, *m->node ? "/" : "", m->node, "/", m->statistic};
        size_t length = 0;
        for (int part = 0; part < 5; part++)
            length += strlen(parts[part]);
        t->value.length = 0;
        put_key(&t->value, VALUE_TAG, WIRE_BYTES);
        put_varint(&t->value, length);
        for (int part = 0; part < 5; part++)
            att_text_append_bytes(&t->value, parts[part], strlen(parts[part]));
        add_value(t, m->mean);
    }
}

static att_status emit_tensorboard(void *log, const att_event *event)
{
    tensorboard *t = log;
    if (event->kind == ATT_EVENT_RUN_END)
        return att_file_appender_sync(t->file);
    clear_failures(t);
    t->summary.length = 0;
    if (event->kind == ATT_EVENT_MEASURE)
        add_measurements(t, event);
    else if (event->kind == ATT_EVENT_STEP || event->kind == ATT_EVENT_EPOCH)
        add_fields(t, event);
    if (t->summary.length == 0 && !t->summary.failed && !t->value.failed)
        return ATT_OK;
    begin_event(t, event->step);
    put_bytes(&t->event, EVENT_SUMMARY, t->summary.data, t->summary.length);
    ATT_TRY(write_event(t));
    return event->kind == ATT_EVENT_EPOCH ? att_file_appender_sync(t->file) : ATT_OK;
}

/* --- reading an existing file ------------------------------------------------------------------------------------- */

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static bool take_varint(bytes *from, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* A field of a message. varint: value if the wire type is WIRE_VARINT. inner: bytes of other types. */
typedef struct field {
    int number, wire;
    uint64_t varint;
    bytes inner;
} field;

static bool take_field(bytes *from, field *found)
{
    uint64_t key, size;
    if (!take_varint(from, &key) || key >> 3 > 1000)
        return false;
    *found = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (found->wire == WIRE_VARINT)
        return take_varint(from, &found->varint);
    if (found->wire == WIRE_64)
        size = 8;
    else if (found->wire == WIRE_32)
        size = 4;
    else if (found->wire != WIRE_BYTES || !take_varint(from, &size))
        return false;
    if (size > (uint64_t)(from->end - from->at))
        return false;
    found->inner = (bytes){from->at, from->at + size};
    from->at += size;
    return true;
}

/* Sets *evaluated if the value's tag is epoch_tag. Returns false if the value is malformed. */
static bool read_value(bytes value, bool *evaluated)
{
    field part;
    while (value.at < value.end) {
        if (!take_field(&value, &part))
            return false;
        size_t length = (size_t)(part.inner.end - part.inner.at);
        if (part.number == VALUE_TAG && part.wire == WIRE_BYTES)
            *evaluated |= length == strlen(epoch_tag) && memcmp(part.inner.at, epoch_tag, length) == 0;
    }
    return true;
}

static bool read_summary(bytes summary, bool *evaluated)
{
    field value;
    while (summary.at < summary.end)
        if (!take_field(&summary, &value) || value.wire != WIRE_BYTES || !read_value(value.inner, evaluated))
            return false;
    return true;
}

static att_line judge_event(bytes event, const att_store_resume *resume)
{
    field part;
    uint64_t step = 0;
    bool evaluated = false;
    while (event.at < event.end) {
        if (!take_field(&event, &part))
            return ATT_LINE_UNREADABLE;
        if (part.number == EVENT_STEP && part.wire == WIRE_VARINT)
            step = part.varint;
        if (part.number == EVENT_SUMMARY && part.wire == WIRE_BYTES && !read_summary(part.inner, &evaluated))
            return ATT_LINE_UNREADABLE;
    }
    return att_log_drops(resume, (int64_t)step, evaluated) ? ATT_LINE_DROP : ATT_LINE_KEEP;
}

/* Reads the record at `offset` and sets *data if it is whole; *found is CUT_SHORT if the file ends within it. */
static att_status read_record(const tensorboard *t, att_file_window *window, uint64_t offset, bytes *data, size_t *size,
                              att_tfrecord_found *found)
{
    uint64_t left = att_file_reader_size(window->reader) - offset;
    for (size_t wanted = FIRST_WINDOW;; wanted *= 2) {
        const uint8_t *shown, *payload = NULL;
        size_t available, length = 0;
        ATT_TRY(att_file_window_peek(window, offset, wanted, &shown, &available));
        *found = att_tfrecord_read(&t->crc, shown, available, &payload, &length, size);
        if (*found == ATT_TFRECORD_WHOLE)
            *data = (bytes){payload, payload + length};
        if (*found != ATT_TFRECORD_CUT_SHORT || available >= left)
            return ATT_OK;
        if (available > LARGEST_RECORD) {
            *found = ATT_TFRECORD_DAMAGED;
            return ATT_OK;
        }
    }
}

static att_status count_kept(const tensorboard *t, const char *path, att_file_window *window,
                             const att_store_resume *resume, size_t *kept)
{
    uint64_t end = att_file_reader_size(window->reader);
    for (*kept = 0; *kept < end;) {
        bytes data = {NULL, NULL};
        size_t size = 0;
        att_tfrecord_found found;
        ATT_TRY(read_record(t, window, *kept, &data, &size, &found));
        if (found == ATT_TFRECORD_CUT_SHORT)
            return ATT_OK;
        att_line verdict = found == ATT_TFRECORD_WHOLE ? judge_event(data, resume) : ATT_LINE_UNREADABLE;
        if (verdict == ATT_LINE_UNREADABLE)
            att_log_unreadable(t->context, path, *kept, (size_t)(end - *kept));
        if (verdict != ATT_LINE_KEEP)
            return ATT_OK;
        *kept += size;
    }
    return ATT_OK;
}

static att_status find_kept(const tensorboard *t, const att_log_place *place, size_t *kept)
{
    *kept = 0;
    if (!place->resume || !att_file_exists(place->path))
        return ATT_OK;
    att_file_reader *reader = NULL;
    ATT_TRY(att_file_reader_open(t->context, place->path, &reader));
    att_file_window window = {.reader = reader};
    att_status status = count_kept(t, place->path, &window, place->resume, kept);
    att_file_window_free(&window);
    att_file_reader_close(&reader);
    return status;
}

/* --- the log ------------------------------------------------------------------------------------------------------ */

static void close_tensorboard(void *log)
{
    tensorboard *t = log;
    att_file_appender_close(&t->file);
    att_text_free(&t->value);
    att_text_free(&t->summary);
    att_text_free(&t->event);
    att_text_free(&t->record);
    att_free(t->context, t);
}

static att_status start(tensorboard *t, const att_log_place *place)
{
    static const char version[] = "brain.Event:2";
    size_t kept;
    ATT_TRY(find_kept(t, place, &kept));
    ATT_TRY(att_file_appender_open(t->context, place->path, kept, &t->file));
    if (kept > 0)
        return ATT_OK;
    t->event.length = 0;
    put_double(&t->event, EVENT_WALL_TIME, wall_time());
    put_bytes(&t->event, EVENT_VERSION, version, strlen(version));
    return write_event(t);
}

static att_status open_tensorboard(att_context *context, const att_log_place *place, void **log)
{
    tensorboard *t;
    ATT_TRY(att_new(context, &t, 1, place->path));
    t->context = t->value.context = t->summary.context = t->event.context = t->record.context = context;
    t->crc = att_crc32c_make();
    att_status status = start(t, place);
    if (status != ATT_OK)
        close_tensorboard(t);
    else
        *log = t;
    return status;
}

/* TensorBoard reads every file with "tfevents" in its name. The usual date and host are omitted from the name, so that
 * a resumed training continues the same file. */
const att_log_format att_log_tensorboard = {.file = "events.out.tfevents.attscope",
                                            .open = open_tensorboard,
                                            .emit = emit_tensorboard,
                                            .close = close_tensorboard};
