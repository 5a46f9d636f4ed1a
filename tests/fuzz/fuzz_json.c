/* JSON: a document, what config.json and a checkpoint's metadata claim of a network. */
#include "fuzz.h"
#include "fuzz_claims.h"

#include "io/json.h"
#include "models/claims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const att_tensors *weights = fuzz_weights();
    size_t before = fuzz_begin();
    json_t *root = NULL;
    if (att_json_parse(fuzz_context(), "text", (const char *)data, size, &root) == ATT_OK)
        json_decref(root);
    att_claims claims = att_claims_none();
    if (att_claims_read_config(fuzz_context(), fuzz_file("config.json", data, size), weights, &claims) == ATT_OK)
        fuzz_complete(&claims.options);
    char *text = calloc(1, size + 1);
    fuzz_require(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    claims = att_claims_none();
    if (att_claims_parse(fuzz_context(), "metadata", text, &claims) == ATT_OK)
        fuzz_complete(&claims.options);
    free(text);
    fuzz_end(before);
    return 0;
}
