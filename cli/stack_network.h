/* stack_network.h - the attention layers of a ViT and the tokens of an image, for attscope stack. */
#ifndef CLI_STACK_NETWORK_H
#define CLI_STACK_NETWORK_H

#include "cli.h"

/* Weights of the layers and tokens of one image, in f64. */
typedef struct stack_network {
    int depth, heads, width, hidden, tokens;
    double norm_eps;
    att_stack_weights *layers; /* [depth]; they point into `blocks` */
    double **blocks;           /* [block_count] */
    int block_count;
    double *image_tokens; /* [tokens, width]: the input of the first block */
} stack_network;

/* Opens the network and reads its blocks and the tokens of the image. The network's blocks must be those of a ViT with
 * layer norm in front of each branch: layer norm, linear (q, k, v together or apart), attention, linear, addition,
 * layer norm, linear, GELU, linear, addition; layer scale is multiplied into the weights. model: NULL: the file gives
 * the name. The caller frees *network with stack_network_free(), also after a failure. Returns CLI_OK or an exit code.
 */
int stack_network_load(cli_app *cli, const char *checkpoint, const char *model, const char *image,
                       stack_network *network);
void stack_network_free(stack_network *network);

#endif
