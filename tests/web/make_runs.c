/* make_runs FOLDER - writes runs for the tests of the report in a browser, with tests/lab/report/fixture.h: two
 * configurations with two seeds each, one of them with a hostile name. If $ATT_SHARED has DeiT-Tiny and photographs,
 * also "deit", a run with the attention maps of one photograph; maps.f32 has them in full,
 * [layers][heads][tokens][tokens]. */
#include "lab/report/fixture.h"
#include "study/train/inference.h"
#include "study/train/maps.h"

#include <stdlib.h>

enum { DEIT_LAYERS = 12, DEIT_HEADS = 3, DEIT_TOKENS = 197, DEIT_SIDE = 224 };

typedef struct deit {
    att_context *context;
    const char *shared;
    char folder[512];
    att_tensors *file;
    att_identity identity;
    att_model *model;
    att_weights *weights;
    att_dataset *dataset;
    att_plan *plan;
    att_session *session;
    att_image image;
    float pixels[DEIT_SIDE * DEIT_SIDE * 3], map[DEIT_HEADS * DEIT_TOKENS * DEIT_TOKENS];
} deit;

#define TRY(call)                    \
    do {                             \
        att_status status_ = (call); \
        if (status_ != ATT_OK)       \
            return status_;          \
    } while (0)

static att_status deit_load(deit *d)
{
    char path[512], images[512];
    snprintf(path, sizeof path, "%s/data/weights/deit_tiny_patch16_224.safetensors", d->shared);
    snprintf(images, sizeof images, "%s/data/imagenet200/val", d->shared);
    TRY(att_tensors_open(d->context, path, &d->file));
    TRY(att_model_identify(d->context, d->file, path, "deit_tiny_patch16_224", NULL, &d->identity));
    TRY(att_model_create(d->context, d->identity.name, &d->identity.options, ATT_F32, &d->model));
    TRY(att_weights_create(att_model_graph(d->model), "cpu", &d->weights));
    TRY(att_model_load(d->model, d->file, d->weights));
    return att_dataset_open(d->context, images, NULL, &d->dataset);
}

static att_status deit_run(deit *d, const att_transform_options *transform)
{
    att_plan_options options = att_plan_options_defaults();
    TRY(att_dataset_read(d->dataset, d->context, 0, 3, &d->image));
    TRY(att_transform_image(d->context, transform, &d->image, 0, 0, 0, d->pixels));
    TRY(att_graph_probe_attention_map(att_model_graph(d->model), "*"));
    TRY(att_plan_compile(att_model_graph(d->model), &options, &d->plan));
    TRY(att_session_create(d->plan, d->weights, 1, &d->session));
    TRY(att_session_bind(d->session, "image", d->pixels));
    return att_session_run(d->session, 1);
}

static att_status deit_write_whole(deit *d, FILE *file)
{
    for (int layer = 0; layer < DEIT_LAYERS; layer++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.map", layer);
        TRY(att_session_output(d->session, name, 0, 1, d->map));
        if (fwrite(d->map, sizeof d->map, 1, file) != 1)
            return ATT_ERR_IO;
    }
    return ATT_OK;
}

static att_status deit_make(deit *d)
{
    char path[600];
    TRY(deit_load(d));
    mkdir(d->folder, 0777);
    att_transform_options transform = att_evaluate_transform(&d->identity.preprocess);
    att_maps_options options = att_maps_options_defaults();
    options.count = 1;
    options.unlabelled = true;
    snprintf(path, sizeof path, "%s/maps.safetensors", d->folder);
    TRY(att_maps_write(d->model, d->weights, d->dataset, &transform, &options, path));
    TRY(deit_run(d, &transform));
    snprintf(path, sizeof path, "%s/metrics.jsonl", d->folder);
    FILE *log = fopen(path, "w");
    snprintf(path, sizeof path, "%s/maps.f32", d->folder);
    FILE *maps = fopen(path, "wb");
    att_status status = log && maps ? deit_write_whole(d, maps) : ATT_ERR_IO;
    if (log && (fputs("{\"event\":\"run_begin\"}\n", log) < 0 || fclose(log) != 0))
        status = ATT_ERR_IO;
    if (maps && fclose(maps) != 0)
        status = ATT_ERR_IO;
    return status;
}

static att_status make_deit(att_context *context, const char *folder)
{
    char path[512];
    const char *shared = getenv("ATT_SHARED");
    struct stat info;
    snprintf(path, sizeof path, "%s/data/weights/deit_tiny_patch16_224.safetensors", shared ? shared : "");
    if (stat(path, &info) != 0)
        return ATT_OK;
    snprintf(path, sizeof path, "%s/data/imagenet200/val", shared);
    if (stat(path, &info) != 0)
        return ATT_OK;
    deit *d = calloc(1, sizeof *d);
    if (!d)
        return ATT_ERR_MEMORY;
    d->context = context;
    d->shared = shared;
    snprintf(d->folder, sizeof d->folder, "%s/deit", folder);
    att_status status = deit_make(d);
    att_session_destroy(&d->session);
    att_plan_destroy(&d->plan);
    att_image_free(context, &d->image);
    att_dataset_close(&d->dataset);
    att_weights_destroy(&d->weights);
    att_model_destroy(&d->model);
    att_tensors_close(&d->file);
    free(d);
    return status;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name, *model, *seed, *broadcast;
    } runs[] = {
        {"plain-1", "vit_tiny_patch16_224", "1", "none"},
        {"plain-2", "vit_tiny_patch16_224", "2", "none"},
        {"cb-1", "vit_tiny_patch16_224", "1", "cb"},
        {"<img src=x onerror=boom()>", "</script><script>boom()</script>", "\"><svg onload=boom()>", "&lt;b&gt;"},
    };
    att_context *context = NULL;
    if (count != 2 || att_context_create(NULL, &context) != ATT_OK)
        return 2;
    att_status status = ATT_OK;
    for (size_t i = 0; i < sizeof runs / sizeof *runs && status == ATT_OK; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", arguments[1], runs[i].name);
        fixture f;
        status = fixture_make(context, i + 1, &f);
        if (status == ATT_OK)
            status = fixture_run(context, &f, folder, runs[i].model, runs[i].seed, runs[i].broadcast);
        fixture_free(&f);
    }
    if (status == ATT_OK)
        status = make_deit(context, arguments[1]);
    if (status != ATT_OK)
        fprintf(stderr, "%s\n", att_context_message(context));
    att_context_destroy(&context);
    return status != ATT_OK;
}
