/* A WebP image or animation. */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char signature[] = "RIFF....WEBP";
    if (size >= 8)
        memcpy(signature + 4, data + 4, 4); /* the file size in the header */
    return fuzz_image(signature, 12, data, size);
}
