/* JSON: a document, config.json, and the metadata of a checkpoint. */
#include "fuzz.h"
#include "fuzz_config.h"

#include "base/io/json.h"
#include "networks/models/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const att_tensors *weights = fuzz_weights();
    size_t before = fuzz_begin();
    json_t *root = NULL;
    if (att_json_parse(fuzz_context(), "text", (const char *)data, size, &root) == ATT_OK)
        json_decref(root);
    att_config config = att_config_none();
    if (att_config_read_json(fuzz_context(), fuzz_file("config.json", data, size), weights, &config) == ATT_OK)
        fuzz_complete(&config.options);
    char *text = calloc(1, size + 1);
    fuzz_require(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    config = att_config_none();
    if (att_config_parse(fuzz_context(), "metadata", text, &config) == ATT_OK)
        fuzz_complete(&config.options);
    free(text);
    fuzz_end(before);
    return 0;
}
