/* preprocessor_config.json of transformers: how its image processors prepare images. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

att_status att_layout_preprocess(att_context *context, const char *path, const json_t *root, att_config *config)
{
    static const char *const keys[][2] = {{"image_mean", "mean"}, {"image_std", "std"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(root, keys[i][0]);
        att_fact fact = att_fact_of_json(value);
        if (value && !json_is_null(value))
            ATT_TRY(att_config_note(context, path, keys[i][1], &fact, config));
    }
    return ATT_OK;
}
