/* A PNG image. */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_image("\x89PNG\r\n\x1a\n", 8, data, size);
}
