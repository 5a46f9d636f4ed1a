#include "base/io/other_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/io/image_codec.h"

#define SAVE "; in the program that made it, save the weights as safetensors"
#define FROM "; open the PyTorch checkpoint or the safetensors that it was made from"

#define MESSAGE_PACK "MessagePack, as Flax writes" SAVE

typedef struct kind {
    const char *bytes; /* at `offset`; letters match in both cases */
    size_t offset;
    const char *ending; /* of the path; NULL: files of this kind have `bytes` */
    const char *is;
} kind;

static const kind kinds[] = {
    {"version https://git-lfs", 0, NULL,
     "a pointer of Git LFS in place of the weights; fetch these by running git lfs pull in its folder"},
    {"<!doctype html", 0, NULL,
     "an HTML page; download the file itself (on the Hugging Face hub from /resolve/, not from /blob/)"},
    {"<html", 0, NULL,
     "an HTML page; download the file itself (on the Hugging Face hub from /resolve/, not from /blob/)"},
    {"\x89HDF\r\n\x1a\n", 0, NULL, "HDF5, as Keras writes" SAVE},
    {"GGUF", 0, NULL, "GGUF, as llama.cpp reads" FROM},
    {"TFL3", 4, NULL, "TensorFlow Lite" FROM},
    {"\x93NUMPY", 0, NULL, "an array of NumPy; expected tensors with names"},
    {"\x1f\x8b", 0, NULL, "a gzip archive; unpack it"},
    {"ustar", 257, NULL, "a tar archive; unpack it"},
    {NULL, 0, ".onnx", "ONNX" FROM},
    {NULL, 0, ".msgpack", MESSAGE_PACK},
    {NULL, 0, ".pb", "a graph of TensorFlow" SAVE},
};

static bool begins(const kind *k, const uint8_t *begin, size_t size)
{
    const size_t length = strlen(k->bytes);
    return k->offset + length <= size && strncasecmp((const char *)begin + k->offset, k->bytes, length) == 0;
}

static bool ends(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length >= end && strcasecmp(path + length - end, ending) == 0;
}

/* ONNX has no signature: field 1, the version of its format, then its text fields 2 to 4 or the graph in field 7. */
static bool is_onnx(const uint8_t *begin, size_t size)
{
    enum { VERSION = 0x08, LAST_VERSION = 30, TEXT = 2, GRAPH = 7 << 3 | TEXT };
    if (size < 4 || begin[0] != VERSION || begin[1] == 0 || begin[1] > LAST_VERSION)
        return false;
    return begin[2] == GRAPH || (begin[2] >= (2 << 3 | TEXT) && begin[2] <= (4 << 3 | TEXT) && begin[2] % 8 == TEXT);
}

/* A map of at most 15 items, whose first key is a text of at most 31 bytes: "params" of Flax. */
static bool is_message_pack(const uint8_t *begin, size_t size)
{
    return size > 2 && begin[0] > 0x80 && begin[0] < 0x90 && begin[1] > 0xa0 && begin[1] < 0xc0 && begin[2] >= 'a' &&
           begin[2] <= 'z';
}

static bool is_text(const uint8_t *begin, size_t size)
{
    enum { LEAST = 8 };
    bool text = size >= LEAST;
    for (size_t i = 0; text && i < LEAST; i++)
        text = (begin[i] >= ' ' && begin[i] < 0x7f) || (begin[i] >= '\t' && begin[i] <= '\r');
    return text;
}

static const char *kind_of(const char *path, const uint8_t *begin, size_t size)
{
    size_t blanks = 0; /* HTML may begin with them */
    while (blanks < size && (begin[blanks] == ' ' || (begin[blanks] >= '\t' && begin[blanks] <= '\r')))
        blanks++;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t skipped = kinds[i].bytes && kinds[i].bytes[0] == '<' ? blanks : 0;
        if (kinds[i].ending ? ends(path, kinds[i].ending) : begins(&kinds[i], begin + skipped, size - skipped))
            return kinds[i].is;
    }
    return is_onnx(begin, size)           ? "ONNX" FROM
           : is_message_pack(begin, size) ? MESSAGE_PACK
           : is_text(begin, size)         ? "text"
                                          : NULL;
}

bool att_other_file(const char *path, const uint8_t *begin, size_t size, char text[ATT_OTHER_FILE_TEXT])
{
    const char *image = att_image_format_of(begin, size), *other = image ? image : kind_of(path, begin, size);
    if (other)
        snprintf(text, ATT_OTHER_FILE_TEXT, "%s%s", image ? "an image: " : "", other);
    return other != NULL;
}
