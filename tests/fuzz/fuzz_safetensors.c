/* A safetensors file: opened, every tensor read, the network in it guessed. */
#include "fuzz.h"

static void read_all(const att_tensors *file)
{
    for (int i = 0; i < att_tensors_count(file); i++) {
        att_tensors_info info = att_tensors_at(file, i);
        fuzz_require(att_tensors_find(file, info.name) == i, "a tensor is found by its name");
        fuzz_require(info.count >= 0 && info.count <= 1 << 20, "a tensor is no larger than its file");
        void *out = malloc((size_t)info.count * 8 + 1);
        fuzz_require(out != NULL && att_tensors_read(file, i, info.dtype, out, info.count) == ATT_OK,
                     "a tensor of an opened file is read");
        (void)att_tensors_read_f32(file, i, out, info.count);
        free(out);
    }
    for (int i = 0; i < att_tensors_metadata_count(file); i++)
        fuzz_require(att_tensors_metadata(file, att_tensors_metadata_key(file, i)) != NULL,
                     "metadata is found by its key");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.safetensors", data, size);
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        att_checkpoint_info info;
        read_all(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
        (void)att_checkpoint_describe(fuzz_context(), file, &info);
    }
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
