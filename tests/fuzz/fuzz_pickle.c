/* The main pickle of a checkpoint in PyTorch's old format. The parts before it and the storages after it are valid, so
 * that the input reaches the unpickler and the code that interprets its result. */
#include "fuzz.h"

enum { MOST = 1 << 16 };

/* Magic number, version, system information. */
static const char preface[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.";
/* Keys "0" and "1" of storages with four elements of up to eight bytes. */
static const char keys[] =
    "\x80\x02](X\x01\0\0\0"
    "0"
    "X\x01\0\0\0"
    "1"
    "e.";

static size_t build(uint8_t *file, const uint8_t *data, size_t size)
{
    size_t at = 0;
    memcpy(file, preface, sizeof preface - 1);
    at += sizeof preface - 1;
    memcpy(file + at, data, size);
    at += size;
    memcpy(file + at, keys, sizeof keys - 1);
    at += sizeof keys - 1;
    for (int i = 0; i < 2; i++) {
        memcpy(file + at, &(uint64_t){4}, 8);
        at += 8;
        for (int b = 0; b < 16; b++)
            file[at++] = (uint8_t)(b * 17);
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[MOST + 256];
    if (size > MOST)
        return 0;
    size_t before = fuzz_begin();
    const char *path = fuzz_file("weights.pth", bytes, build(bytes, data, size));
    att_tensors *file = NULL;
    if (att_tensors_open(fuzz_context(), path, &file) == ATT_OK)
        fuzz_read_tensors(file);
    att_tensors_close(&file);
    fuzz_end(before);
    return 0;
}
