/* The metadata of a checkpoint. The input has lines "key=value", which replace or extend the metadata of a real
 * checkpoint. That checkpoint is then described, identified, loaded and resumed. */
#include "fuzz.h"

#include <jansson.h>

#include "data/dataset.h"
#include "study/train/checkpoint.h"
#include "tiny.h"

/* The header of a real checkpoint, and the bytes of its tensors. */
typedef struct original {
    tiny *training;
    json_t *header;
    char *tensors, *fingerprint;
    size_t tensor_bytes;
} original;

static original *read_original(void)
{
    static original o;
    if (o.header)
        return &o;
    o.training = tiny_train();
    char path[300];
    snprintf(path, sizeof path, "%s/last.safetensors", fuzz_folder());
    FILE *file = fopen(path, "rb");
    uint64_t length = 0;
    fuzz_require(file && fread(&length, 8, 1, file) == 1 && length < 1 << 20, "a checkpoint");
    char *text = calloc(1, (size_t)length + 1);
    o.tensors = malloc(1 << 20);
    fuzz_require(text && o.tensors && fread(text, 1, (size_t)length, file) == (size_t)length, "its header");
    o.tensor_bytes = fread(o.tensors, 1, 1 << 20, file);
    fclose(file);
    o.header = json_loads(text, 0, NULL);
    free(text);
    const char *fingerprint =
        json_string_value(json_object_get(json_object_get(o.header, "__metadata__"), "attscope.train.fingerprint"));
    fuzz_require(fingerprint != NULL, "its fingerprint");
    o.fingerprint = strdup(fingerprint);
    return &o;
}

/* Returns a copy of the header with the values of the input's lines. */
static json_t *changed_header(const original *o, const uint8_t *data, size_t size)
{
    json_t *header = json_deep_copy(o->header), *metadata = json_object_get(header, "__metadata__");
    for (const char *line = (const char *)data, *end = line + size; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        const char *equals = memchr(line, '=', (size_t)(stop - line));
        char key[64];
        json_t *value = equals ? json_stringn(equals + 1, (size_t)(stop - equals - 1)) : NULL;
        if (value && (size_t)(equals - line) < sizeof key) {
            snprintf(key, sizeof key, "%.*s", (int)(equals - line), line);
            json_object_set(metadata, key, value); /* keys that are not UTF-8 are left out */
        }
        json_decref(value);
        line = stop + 1;
    }
    return header;
}

static const char *write_changed(const original *o, json_t *header)
{
    char *text = json_dumps(header, JSON_COMPACT);
    fuzz_require(text != NULL, "a header");
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    char *bytes = malloc(8 + padded + o->tensor_bytes);
    fuzz_require(bytes != NULL, "memory");
    uint64_t stated = padded;
    memcpy(bytes, &stated, 8);
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, text, length);
    memcpy(bytes + 8 + padded, o->tensors, o->tensor_bytes);
    const char *path = fuzz_file("changed.safetensors", bytes, 8 + padded + o->tensor_bytes);
    free(bytes);
    free(text);
    return path;
}

static void go_on(const original *o, const att_tensors *file)
{
    tiny *t = o->training;
    att_train_run run = {.context = fuzz_context(),
                         .model = t->model,
                         .weights = t->weights,
                         .data = &t->data,
                         .options = &t->options,
                         .fingerprint = o->fingerprint,
                         .lanes = 1,
                         .parts = 1};
    att_train_state state = {.epoch = 0};
    att_dataset_listing(t->data.train, run.listing);
    if (att_history_create(fuzz_context(), 10, false, &state.history) != ATT_OK)
        return;
    if (att_checkpoint_engine(fuzz_context(), file, &run.lanes, &run.parts, &run.memory) == ATT_OK &&
        att_checkpoint_resume(&run, file, &state) == ATT_OK)
        fuzz_require(state.epoch >= 0 && state.batch >= 0 && state.update >= 0 &&
                         state.history.count <= state.history.capacity,
                     "a resumed training is at a valid position");
    att_history_free(&state.history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const original *o = read_original();
    size_t before = fuzz_begin();
    json_t *header = changed_header(o, data, size);
    const char *path = write_changed(o, header);
    json_decref(header);
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        att_checkpoint_info info;
        (void)att_checkpoint_describe(fuzz_context(), file, &info);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
        /* Metadata that cannot be read is refused. */
        if (att_model_load(o->training->model, file, o->training->weights) == ATT_OK)
            go_on(o, file);
    }
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
