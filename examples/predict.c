/* Loads a checkpoint and says what it sees in a photograph.
 *
 *   predict [CHECKPOINT MODEL IMAGE]
 *   predict deit_tiny_patch16_224.safetensors deit_tiny_patch16_224 tench.jpg
 *
 * The model's name is needed only where nothing beside or in the checkpoint says it. Without arguments the files of the
 * test data are taken, where there are any (ATT_SHARED).
 */
#include <stdio.h>
#include <stdlib.h>

#include <attscope/evaluate.h>
#include <attscope/models.h>
#include <attscope/plan.h>

enum { SKIPPED = 77 };

typedef struct network {
    att_context *context;
    att_identity identity;
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
} network;

static att_status load(network *n, const char *path, const char *name)
{
    att_tensors *file = NULL;
    att_plan_options options = att_plan_options_defaults();
    att_status status = att_tensors_open(n->context, path, &file);
    if (status == ATT_OK)
        status = att_model_identify(n->context, file, path, name, NULL, &n->identity);
    if (status == ATT_OK)
        status = att_model_create(n->context, n->identity.name, &n->identity.options, ATT_F32, &n->model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(n->model), "cpu", &n->weights);
    if (status == ATT_OK)
        status = att_model_load(n->model, file, n->weights);
    if (status == ATT_OK)
        status = att_plan_compile(att_model_graph(n->model), &options, &n->plan);
    if (status == ATT_OK)
        status = att_session_create(n->plan, n->weights, 1, &n->session);
    att_tensors_close(&file);
    return status;
}

/* The photograph as the network wants it; *pixels is to be freed. */
static att_status read_image(const network *n, const char *path, float **pixels)
{
    const att_preprocess *look = &n->identity.preprocess;
    att_transform_options options = att_evaluate_transform(look);
    *pixels = malloc((size_t)look->height * (size_t)look->width * (size_t)look->in_chans * sizeof **pixels);
    att_image image = {0};
    att_status status = *pixels ? ATT_OK : ATT_ERR_MEMORY;
    if (status == ATT_OK)
        status = att_image_read(n->context, path, look->in_chans, NULL, &image);
    if (status == ATT_OK)
        status = att_transform_image(n->context, &options, &image, 0, 0, 0, *pixels);
    att_image_free(n->context, &image);
    return status;
}

static att_status predict(const network *n, const char *path)
{
    int classes = (int)att_options_number(&n->identity.options, "num_classes", 0), best = 0;
    float *pixels = NULL, *logits = malloc((size_t)classes * sizeof *logits);
    att_status status = logits ? read_image(n, path, &pixels) : ATT_ERR_MEMORY;
    if (status == ATT_OK)
        status = att_session_bind(n->session, "image", pixels);
    if (status == ATT_OK)
        status = att_session_run(n->session, 1);
    if (status == ATT_OK)
        status = att_session_output(n->session, "logits", 0, 1, logits);
    for (int c = 1; status == ATT_OK && c < classes; c++)
        best = logits[c] > logits[best] ? c : best;
    if (status == ATT_OK)
        printf("%s\n%s\nclass %d, logit %.4f\n", path, n->identity.origin, best, logits[best]);
    free(pixels);
    free(logits);
    return status;
}

int main(int count, char **arguments)
{
    const char *shared = getenv("ATT_SHARED"), *name = "deit_tiny_patch16_224";
    char checkpoint[1024], image[1024];
    snprintf(checkpoint, sizeof checkpoint, "%s/data/weights/%s.safetensors", shared ? shared : "", name);
    snprintf(image, sizeof image, "%s/data/imagenet200/val/n01440764/n01440764_tench.JPEG", shared ? shared : "");
    if (count == 4) {
        snprintf(checkpoint, sizeof checkpoint, "%s", arguments[1]);
        name = arguments[2];
        snprintf(image, sizeof image, "%s", arguments[3]);
    }

    network n = {0};
    att_status status = att_context_create(NULL, &n.context);
    if (status == ATT_OK)
        status = load(&n, checkpoint, name);
    if (status == ATT_OK)
        status = predict(&n, image);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), n.context ? att_context_message(n.context) : "");

    att_session_destroy(&n.session);
    att_plan_destroy(&n.plan);
    att_weights_destroy(&n.weights);
    att_model_destroy(&n.model);
    att_context_destroy(&n.context);
    if (status == ATT_ERR_NOT_FOUND && count != 4)
        return SKIPPED;
    return status != ATT_OK;
}
