/* A checkpoint of another program. The first line of the input is config.json, the second preprocessor_config.json,
 * neither of which there is if the line is empty, and each other line a tensor: its name and its shape,
 * "vit.embeddings.cls_token 1 1 8". */
#include "fuzz.h"

enum { MOST_TENSORS = 256, LARGEST = 1 << 14 };

static float zeros[LARGEST];

/* Ends the line at *at, and moves *at behind it. Returns the line. */
static char *take_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

/* Returns whether the line is a small tensor. */
static bool take_tensor(char *line, att_safetensors_tensor *tensor)
{
    char *number = strchr(line, ' ');
    att_shape shape = {.rank = 0};
    if (!number)
        return false;
    *number++ = '\0';
    for (char *end; *number && shape.rank < ATT_MAX_RANK; number = end) {
        shape.dims[shape.rank++] = strtol(number, &end, 10) & 1023;
        if (end == number)
            return false;
    }
    *tensor = (att_safetensors_tensor){line, ATT_SAFETENSORS_F32, shape, zeros};
    return !*number && att_shape_count(shape) <= LARGEST;
}

static const char *write_tensors(char *at)
{
    static char path[300];
    att_safetensors_tensor tensors[MOST_TENSORS];
    int count = 0;
    while (*at && count < MOST_TENSORS)
        count += take_tensor(take_line(&at), &tensors[count]);
    const att_safetensors_content content = {.tensors = tensors, .tensor_count = count};
    snprintf(path, sizeof path, "%s/model.safetensors", fuzz_folder());
    return att_safetensors_write(fuzz_context(), path, &content) == ATT_OK ? path : NULL;
}

static void write_side_file(const char *name, const char *line)
{
    const char *path = fuzz_file(name, line, strlen(line));
    if (!*line)
        unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = fuzz_begin();
    char *text = calloc(1, size + 1), *at = text;
    att_tensors *file = NULL;
    fuzz_require(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    write_side_file("config.json", take_line(&at));
    write_side_file("preprocessor_config.json", take_line(&at));
    const char *path = write_tensors(at);
    if (path && att_model_open_file(fuzz_context(), path, &file) == ATT_OK) {
        att_identity identity;
        fuzz_read_tensors(file);
        (void)att_model_identify(fuzz_context(), file, path, NULL, NULL, &identity);
    }
    att_tensors_close(&file);
    free(text);
    fuzz_end(before);
    return 0;
}
