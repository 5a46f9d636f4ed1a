/* The index of several safetensors files. One of them exists: weights.safetensors, with the tensor x. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_weights();
    const size_t before = fuzz_begin();
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), fuzz_file("model.index", data, size), &file) == ATT_OK)
        fuzz_read_tensors(file);
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
