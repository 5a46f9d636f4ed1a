/* Opens a checkpoint and classifies an image.
 *
 *   predict CHECKPOINT IMAGE [MODEL]
 *   predict output/first cat.jpg
 *   predict deit_tiny_patch16_224.safetensors tench.jpg deit_tiny_patch16_224
 *
 * MODEL is needed only if neither the checkpoint nor a file beside it names the network.
 */
#include <stdio.h>

#include <attscope/attscope.h>

static void print(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

/* Prints the three most likely classes. */
static att_status predict(att_context *context, const char *checkpoint, const char *image, const char *model)
{
    att_network *network = NULL;
    att_network_options options = att_network_options_defaults();
    const att_answer_options shown = {.topk = 3};
    att_batch answer;
    options.model = model;
    att_status status = att_network_open(context, checkpoint, &options, &network);
    if (status == ATT_OK)
        status = att_network_run_file(network, image, &answer);
    if (status == ATT_OK)
        status = att_network_describe(network, &answer, &shown, print, NULL);
    att_network_close(&network);
    return status;
}

int main(int count, char **arguments)
{
    if (count < 3 || count > 4) {
        fprintf(stderr, "usage: predict CHECKPOINT IMAGE [MODEL]\n");
        return 2;
    }
    att_context *context = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = predict(context, arguments[1], arguments[2], count > 3 ? arguments[3] : NULL);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");
    att_context_destroy(&context);
    return status != ATT_OK;
}
