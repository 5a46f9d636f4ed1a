/* A safetensors file: opened, every tensor read, the network in it guessed. */
#include "fuzz.h"

static void read_all(const att_safetensors *file)
{
    for (int i = 0; i < att_safetensors_count(file); i++) {
        att_safetensors_info info = att_safetensors_at(file, i);
        fuzz_require(att_safetensors_find(file, info.name) == i, "a tensor is found by its name");
        fuzz_require(info.count >= 0 && info.count <= 1 << 20, "a tensor is no larger than its file");
        void *out = malloc((size_t)info.count * 8 + 1);
        fuzz_require(out != NULL && att_safetensors_read(file, i, info.dtype, out, info.count) == ATT_OK,
                     "a tensor of an opened file is read");
        (void)att_safetensors_read_f32(file, i, out, info.count);
        free(out);
    }
    for (int i = 0; i < att_safetensors_metadata_count(file); i++)
        fuzz_require(att_safetensors_metadata(file, att_safetensors_metadata_key(file, i)) != NULL,
                     "metadata is found by its key");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.safetensors", data, size);
    att_safetensors *file = NULL;
    if (att_safetensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        att_checkpoint_info info;
        read_all(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
        (void)att_checkpoint_describe(fuzz_context(), file, &info);
    }
    att_safetensors_close(&file);
    fuzz_end(before);
    return 0;
}
