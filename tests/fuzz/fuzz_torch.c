/* A PyTorch checkpoint of either format: opened, every tensor read, its network identified. */
#include "fuzz.h"

/* Clears the checksums in a zip archive's directory, so that the code behind their check is reached. */
static void drop_checksums(uint8_t *bytes, size_t size)
{
    enum { CHECKSUM = 16, END = 20 };
    for (size_t at = 0; at + END <= size; at++)
        if (memcmp(bytes + at, "PK\1\2", 4) == 0)
            memset(bytes + at + CHECKSUM, 0, END - CHECKSUM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    drop_checksums(bytes, size);
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.pth", bytes, size);
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        fuzz_read_tensors(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
    }
    att_tensors_close(&file);
    fuzz_end(before);
    free(bytes);
    return 0;
}
