/* A safetensors file: opened, every tensor read, its network identified. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.safetensors", data, size);
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        att_checkpoint_info info;
        fuzz_read_tensors(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
        (void)att_checkpoint_describe(fuzz_context(), file, &info);
    }
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
