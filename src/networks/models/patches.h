/* models/patches.h - grids of patches and widths of MLPs, for families that divide images into patches. */
#ifndef ATT_MODELS_PATCHES_H
#define ATT_MODELS_PATCHES_H

#include <attscope/options.h>
#include <attscope/tensors.h>

/* Returns ERR_ARGUMENT if a side of the image is smaller than the patch's. The grid of patches is that of timm: sides
 * are divided and rounded down, so that SigLIP's images of 384 pixels have 27 x 27 patches of 14 pixels. (timm pads
 * images instead only if a network is made with dynamic_img_pad.) Arrays: height, width. */
att_status att_patches_check(att_context *context, const int img_size[2], const int patch_size[2]);

/* Computes the grid of patches from the image size in the options and a patch size; returns false without these. */
bool att_patches_grid(const att_option_values *options, const att_option_value *patch, int grid[2]);

/* Returns the side of a square grid of `count` patches; 0 if `count` is not a square. */
int att_patches_side(int64_t count);

/* Sets embed_dim, in_chans and patch_size from the patch embedding's weight, tensor `name` [width, channels, P, Q].
 * Errors: ERR_UNSUPPORTED if there is no such tensor of that rank. */
att_status att_patches_read(att_context *context, const att_tensors *file, const char *name, att_option_values *found);
/* Sets img_size for a square grid of `side` x `side` patches. `found` must have patch_size. */
void att_patches_read_side(int side, att_option_values *found);
/* Sets img_size of `found`, read from a number of patches, to that of `own` if both have the same grid of patches. */
void att_patches_adopt_size(const att_option_values *own, att_option_values *found);

/* Returns the hidden channels of an MLP: width * ratio, rounded down. */
int64_t att_mlp_hidden(int width, double ratio);
/* Returns ERR_ARGUMENT, naming the option `key`, if there would be no hidden channel. */
att_status att_mlp_check(att_context *context, const char *key, int width, double ratio);
/* Returns a ratio that gives `hidden` channels. */
double att_mlp_ratio(int width, int64_t hidden);
/* Returns ERR_UNSUPPORTED for a gated MLP, as in timm's gmixer. It has the tensor names of a plain MLP,
 * but "<scope>.fc2" reads only half of the channels of "<scope>.fc1". */
att_status att_mlp_check_gate(att_context *context, const att_tensors *file, const char *scope);

#endif
