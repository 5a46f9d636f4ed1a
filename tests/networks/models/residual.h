/* models/residual.h - for tests of residual networks: small networks, and checkpoints with other tensor names. */
#ifndef TESTS_MODELS_RESIDUAL_H
#define TESTS_MODELS_RESIDUAL_H

#include "networks/models/checkpoints.h"

static inline att_option_values tiny(const char *module, const char *blocks)
{
    char modules[ATT_OPTION_TEXT_BYTES];
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 20), att_options_set(&options, "width", 4),
        att_options_set(&options, "img_size", 8), att_options_set(&options, "num_classes", 7);
    snprintf(modules, sizeof modules, strcmp(blocks, "all") == 0 ? "%s" : "%s@after_branch:%s", module, blocks);
    att_options_set_text(&options, "modules", modules);
    return options;
}

static inline void identifies(const place *p, const char *name, att_identity *identity)
{
    CHECK(p->context, identify(p, name, NULL, identity));
}

/* Loads the file into the network of these options. */
static inline att_status load_into(const place *p, const char *name, const att_option_values *options)
{
    att_model *model = make(p, name, options);
    att_weights *weights;
    att_tensors *file;
    CHECK(p->context, att_weights_create(att_model_graph(model), "cpu", &weights));
    CHECK(p->context, att_tensors_open(p->context, p->weights, &file));
    att_status status = att_model_load(model, file, weights);
    att_tensors_close(&file);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}

/* Replaces `from` by `to` in the names that contain it. Returns how many do. */
static inline int rename_tensors(tensors *t, char names[][96], const char *from, const char *to)
{
    int renamed = 0;
    for (int i = 0; i < t->count; i++) {
        att_safetensors_tensor *item = &t->items[i];
        const char *own = strstr(item->name, from);
        if (!own)
            continue;
        snprintf(names[i], sizeof *names, "%.*s%s%s", (int)(own - item->name), item->name, to, own + strlen(from));
        item->name = names[i];
        renamed++;
    }
    return renamed;
}

#endif
