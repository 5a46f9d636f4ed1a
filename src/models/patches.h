/* models/patches.h - what families that cut images into patches share: grids of patches, and widths of MLPs. */
#ifndef ATT_MODELS_PATCHES_H
#define ATT_MODELS_PATCHES_H

#include <attscope/options.h>
#include <attscope/tensors.h>

/* ERR_ARGUMENT where a side of the image is not a multiple of the patch's. Both are height and width. */
att_status att_patches_check(att_context *context, const int img_size[2], const int patch_size[2]);

/* The side of a square grid of `count` patches; 0 where `count` is not a square. */
int att_patches_side(int64_t count);

/* Sets embed_dim, in_chans and patch_size by the shape [width, channels, P, Q] of the patch embedding's weight, which
 * is tensor `name`. ERR_UNSUPPORTED where there is none of that rank. */
att_status att_patches_read(att_context *context, const att_tensors *file, const char *name, att_option_values *found);
/* Sets img_size, of a square grid with that side; found: with patch_size. */
void att_patches_read_side(int side, att_option_values *found);

/* Channels inside an MLP: width * ratio, rounded down. */
int64_t att_mlp_hidden(int width, double ratio);
/* ERR_ARGUMENT, which names the option `key`, where that is no channel at all. */
att_status att_mlp_check(att_context *context, const char *key, int width, double ratio);
/* A ratio that gives `hidden` channels. */
double att_mlp_ratio(int width, int64_t hidden);
/* ERR_UNSUPPORTED for a gated MLP, as the largest DINOv2 network has it: it has timm's names for a plain one, but
 * "<scope>.fc2" reads half of the channels that "<scope>.fc1" gives. */
att_status att_mlp_check_gate(att_context *context, const att_tensors *file, const char *scope);

#endif
