/* Registers a module of the program, adds it to a residual network and to a ViT, runs both, writes their checkpoints,
 * and opens these again.
 *
 * The module multiplies every channel of a residual branch by a learned factor. It works on tokens [N, C] and on
 * feature maps [h, w, C].
 */
#include <stdio.h>

#include <attscope/attscope.h>

enum { INIT }; /* indices of the options */

static att_value apply(const att_scope *scope, const double *values, const att_module_site *site)
{
    const att_shape shape = att_value_shape(scope->graph, site->branch);
    const int64_t channels = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0; /* rank 0: an earlier operation failed */
    const att_init init = {.rule = ATT_INIT_CONSTANT, .value = values[INIT]};
    att_value factor = att_scope_parameter(scope, "factor", att_shape_of(channels), init, false);
    att_scope_enter(scope); /* name the following nodes by the module */
    return att_scale(scope->graph, site->branch, factor);
}

static const att_module stretch = {
    .name = "stretch",
    .meaning = "x <- x (.) factor, a learned factor for each channel",
    .places = ATT_ON_TOKENS | ATT_ON_MAPS,
    .scope = "stretch",
    .options = {[INIT] = {.name = "init", .meaning = "initial factor", .start = 1, .high = 10}},
    .option_count = 1,
    .parameter = "factor",
    .apply = apply,
};

enum { SIDE = 32 };

/* Opens the network `name_or_file`, with random weights if it is a name, and runs it on an image of zeros. modules:
 * value of the option "modules"; NULL: not set. written: checkpoint to write; NULL: none. */
static att_status run(att_context *context, const char *name_or_file, const char *modules, const char *written)
{
    static const float pixels[3 * SIDE * SIDE];
    const att_field image = {.name = "image", .dtype = ATT_F32, .shape = att_shape_of(SIDE, SIDE, 3)};
    const void *const data[] = {pixels};
    const att_batch inputs = {.count = 1, .field_count = 1, .fields = &image, .data = data};
    att_network *network = NULL;
    att_batch answers;
    att_option_values values = att_options_none();
    att_network_options options = att_network_options_defaults();
    if (modules) {
        att_options_set(&values, "img_size", SIDE);
        att_options_set_text(&values, "modules", modules);
        options.options = &values;
    }
    att_status status = att_network_open(context, name_or_file, &options, &network);
    if (status == ATT_OK)
        status = att_network_run(network, &inputs, &answers);
    if (status == ATT_OK)
        printf("%s, %s: first logit %.4f\n", att_network_identity(network)->name,
               att_options_text(att_model_options(att_network_model(network)), "modules"),
               (double)((const float *)att_batch_field(&answers, "logits"))[0]);
    if (status == ATT_OK && written)
        status = att_checkpoint_export(att_network_model(network), att_network_weights(network), written);
    att_network_close(&network);
    return status;
}

int main(void)
{
    static const char path[] = "module_example.safetensors";
    att_context *context = NULL, *other = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_module_register(context, &stretch);
    if (status == ATT_OK)
        status = run(context, "resnet20", "stretch@after_branch:layer3:all", path);
    if (status == ATT_OK)
        status = run(context, path, NULL, NULL); /* the file records the modules of its network */
    if (status == ATT_OK)
        status = run(context, "vit_tiny_patch16_224", "stretch:init=0.5@after_attn:0-5+cb", path);
    if (status == ATT_OK)
        status = run(context, path, NULL, NULL);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");

    /* A context without the module cannot open the file. */
    if (status == ATT_OK && att_context_create(NULL, &other) == ATT_OK && run(other, path, NULL, NULL) != ATT_OK)
        printf("without the module: %s\n", att_context_message(other));
    remove(path);
    att_context_destroy(&other);
    att_context_destroy(&context);
    return status != ATT_OK;
}
