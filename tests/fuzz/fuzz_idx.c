/* An IDX file, plain or gzipped. */
#include "fuzz.h"

#include "base/core/memory.h"
#include "base/io/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    att_idx idx = {.bytes = NULL};
    if (att_idx_read(fuzz_context(), fuzz_file("images", data, size), (size_t)1 << 22, &idx) == ATT_OK) {
        int64_t sum = 0, count = att_shape_count(idx.shape);
        for (int64_t i = 0; i < count; i++)
            sum += idx.bytes[i];
        fuzz_require(sum <= count * 255, "every element of an IDX file is a byte");
    }
    att_free(fuzz_context(), idx.bytes);
    fuzz_end(before);
    return 0;
}
