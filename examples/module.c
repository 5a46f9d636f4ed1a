/* Registers a module of one's own, puts it into a residual network and into a ViT, runs them, writes them to a file,
 * and opens that again.
 *
 * The module multiplies every channel of a residual branch by a learned factor. Tokens are [N, C] and feature maps
 * [h, w, C], so that two descriptors share one function.
 */
#include <stdio.h>

#include <attscope/attscope.h>

enum { INIT }; /* indices of the options */

static att_value apply(const att_scope *scope, const double *values, att_value branch, att_value identity)
{
    (void)identity; /* what the branch will be added to */
    const att_shape shape = att_value_shape(scope->graph, branch);
    const int64_t channels = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0; /* rank 0: building has failed before */
    const att_init init = {.rule = ATT_INIT_CONSTANT, .value = values[INIT]};
    att_value factor = att_scope_parameter(scope, "factor", att_shape_of(channels), init, false);
    att_scope_enter(scope); /* nodes made from here on bear the module's name */
    return att_scale(scope->graph, branch, factor);
}

#define STRETCH(of, on)                                                                                          \
    {                                                                                                            \
        .name = of, .meaning = "x <- x (.) factor, a learned factor a channel", .place = on, .scope = "stretch", \
        .options = {[INIT] = {.name = "init", .meaning = "start of the factors", .start = 1, .high = 10}},       \
        .option_count = 1, .parameter = "factor", .apply = apply                                                 \
    }
static const att_module of_tokens = STRETCH("stretch", ATT_ON_TOKENS), of_maps = STRETCH("stretch2d", ATT_ON_MAPS);

enum { SIDE = 32 };

/* Opens a network, by its name with random weights or from a file, and runs it on a grey image. NULL: nothing is said
 * of its modules, or no file is written. */
static att_status run(att_context *context, const char *what, const char *modules, const char *written)
{
    static const float pixels[3 * SIDE * SIDE];
    att_network *network = NULL;
    att_batch answers;
    att_option_values values = att_options_none();
    att_network_options options = att_network_options_defaults();
    if (modules) {
        att_options_set(&values, "img_size", SIDE);
        att_options_set_text(&values, "modules", modules);
        options.options = &values;
    }
    att_status status = att_network_open(context, what, &options, &network);
    if (status == ATT_OK)
        status = att_network_run(network, pixels, 1, SIDE, SIDE, &answers);
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
        status = att_module_register(context, &of_tokens);
    if (status == ATT_OK)
        status = att_module_register(context, &of_maps);
    if (status == ATT_OK)
        status = run(context, "resnet20", "stretch2d@after_branch:layer3:all", path);
    if (status == ATT_OK)
        status = run(context, path, NULL, NULL); /* the file says which modules its network has */
    if (status == ATT_OK)
        status = run(context, "vit_tiny_patch16_224", "stretch:init=0.5@after_attn:0-5+cb", path);
    if (status == ATT_OK)
        status = run(context, path, NULL, NULL);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");

    /* A context without the module cannot open the file. */
    if (status == ATT_OK && att_context_create(NULL, &other) == ATT_OK && run(other, path, NULL, NULL) != ATT_OK)
        printf("elsewhere: %s\n", att_context_message(other));
    remove(path);
    att_context_destroy(&other);
    att_context_destroy(&context);
    return status != ATT_OK;
}
