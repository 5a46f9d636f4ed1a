/* A checkpoint of PyTorch, of either format: opened, every tensor read, the network in it guessed. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.pth", data, size);
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        fuzz_read_tensors(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
    }
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
