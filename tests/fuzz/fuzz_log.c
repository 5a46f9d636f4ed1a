/* The log files that a resumed training finds. The first byte is the number of updates after which it resumes; the
 * lines up to an empty one are metrics.jsonl, the rest is summary.csv, and the whole input is a TensorBoard file. New
 * events are appended to what is kept of them. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t before = fuzz_begin();
    const uint8_t *lines = data + 1, *gap = lines, *end = data + size;
    while (gap < end && !(gap[0] == '\n' && (gap + 1 == end || gap[1] == '\n')))
        gap++;
    const uint8_t *kept = gap < end ? gap + 1 : end, *csv = kept < end ? kept + 1 : end;
    fuzz_file("metrics.jsonl", lines, (size_t)(kept - lines));
    fuzz_file("summary.csv", csv, (size_t)(end - csv));
    fuzz_file("events.out.tfevents.attscope", data, size);
    att_store_resume resume = {data[0] / 4, data[0], data[0] % 2};
    att_sink sink;
    if (att_store_open(fuzz_context(), fuzz_folder(), &(att_store_options){.resume = &resume}, &sink) == ATT_OK) {
        const att_event_field fields[] = {{"lr", 0.1, NULL}, {"train_loss", 1.5, NULL}, {"eval_note", 0, "a,\"b\""}};
        att_event event = {.kind = ATT_EVENT_EPOCH,
                           .epoch = resume.epoch,
                           .step = resume.step + 1,
                           .fields = fields,
                           .field_count = 3};
        (void)sink.emit(sink.user, &event);
        sink.close(sink.user);
    }
    fuzz_end(before);
    return 0;
}
