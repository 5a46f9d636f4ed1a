/* Registers a module of one's own, puts it into a ViT and into a residual network, writes both to files, and opens them
 * again.
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

/* Makes the network with random weights, and writes it to a file. */
static att_status save(att_context *context, const char *network, const char *modules, const char *path)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_option_values options = att_options_none();
    att_options_set_text(&options, "modules", modules);
    att_status status = att_model_create(context, network, &options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_weights_initialise(weights, 42);
    if (status == ATT_OK)
        status = att_checkpoint_export(model, weights, path);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}

/* The file says which modules its network has. */
static att_status open(att_context *context, const char *path)
{
    att_network *network = NULL;
    att_status status = att_network_open(context, path, NULL, &network);
    if (status == ATT_OK)
        printf("%s: %s\n", att_network_identity(network)->name,
               att_options_text(att_model_options(att_network_model(network)), "modules"));
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
        status = save(context, "resnet20", "stretch2d@after_branch:layer3:all", path);
    if (status == ATT_OK)
        status = open(context, path);
    if (status == ATT_OK)
        status = save(context, "vit_tiny_patch16_224", "stretch:init=0.5@after_attn:0-5+cb", path);
    if (status == ATT_OK)
        status = open(context, path);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");

    /* A context without the module cannot open the file. */
    if (status == ATT_OK && att_context_create(NULL, &other) == ATT_OK && open(other, path) != ATT_OK)
        printf("elsewhere: %s\n", att_context_message(other));
    remove(path);
    att_context_destroy(&other);
    att_context_destroy(&context);
    return status != ATT_OK;
}
