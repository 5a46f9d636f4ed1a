#include "networks/models/patches.h"

#include <stdio.h>

#include "base/core/error.h"
#include "base/core/options.h"
#include "networks/models/checkpoint.h"

att_status att_patches_check(att_context *context, const int img_size[2], const int patch_size[2])
{
    for (int i = 0; i < 2; i++)
        if (img_size[i] < patch_size[i])
            return att_fail(context, ATT_ERR_ARGUMENT, "img_size %d is smaller than patch_size %d%s", img_size[i],
                            patch_size[i],
                            img_size[0] == img_size[1] ? ""
                            : i                        ? " (width)"
                                                       : " (height)");
    return ATT_OK;
}

bool att_patches_grid(const att_option_values *options, const att_option_value *patch, int grid[2])
{
    const att_option_value *sides = att_options_find(options, "img_size");
    for (int i = 0; i < 2 && sides && patch; i++)
        grid[i] = (int)(sides->numbers[i < sides->count ? i : 0] / patch->numbers[i < patch->count ? i : 0]);
    return sides && patch;
}

void att_patches_adopt_size(const att_option_values *own, att_option_values *found)
{
    const att_option_value *patch = att_options_find(found, "patch_size");
    int grid[2], own_grid[2];
    if (att_patches_grid(found, patch, grid) && att_patches_grid(own, patch, own_grid) && grid[0] == own_grid[0] &&
        grid[1] == own_grid[1])
        att_option_copy("img_size", own, found);
}

int att_patches_side(int64_t count)
{
    int side = 0;
    while ((int64_t)side * side < count)
        side++;
    return (int64_t)side * side == count ? side : 0;
}

att_status att_patches_read(att_context *context, const att_tensors *file, const char *name, att_option_values *found)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(file, name, 4, &shape);
    if (!dims)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "%s: there is no patch embedding (\"%s\" [width, channels, P, Q])", att_tensors_path(file),
                        name);
    att_options_set(found, "embed_dim", (double)dims[0]);
    att_options_set(found, "in_chans", (double)dims[1]);
    att_options_set_sides(found, "patch_size", (int)dims[2], (int)dims[3]);
    return ATT_OK;
}

void att_patches_read_side(int side, att_option_values *found)
{
    const double *patch = att_options_find(found, "patch_size")->numbers;
    if (side <= INT32_MAX / patch[0] && side <= INT32_MAX / patch[1])
        att_options_set_sides(found, "img_size", side * (int)patch[0], side * (int)patch[1]);
}

int64_t att_mlp_hidden(int width, double ratio)
{
    return (int64_t)(width * ratio);
}

att_status att_mlp_check(att_context *context, const char *key, int width, double ratio)
{
    if (att_mlp_hidden(width, ratio) < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %g leaves no hidden channel of embed_dim %d", key, ratio, width);
    return ATT_OK;
}

double att_mlp_ratio(int width, int64_t hidden)
{
    double ratio = (double)hidden / width;
    /* If the quotient was rounded down, the product would be too small. */
    return att_mlp_hidden(width, ratio) < hidden ? ((double)hidden + 0.5) / width : ratio;
}

att_status att_mlp_check_gate(att_context *context, const att_tensors *file, const char *scope)
{
    att_shape first, second;
    char first_name[64], second_name[64];
    snprintf(first_name, sizeof first_name, "%s.fc1.weight", scope);
    snprintf(second_name, sizeof second_name, "%s.fc2.weight", scope);
    const int64_t *in = att_checkpoint_dims(file, first_name, 2, &first);
    const int64_t *out = att_checkpoint_dims(file, second_name, 2, &second);
    if (!in || !out || 2 * out[1] != in[0])
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED,
                    "%s: tensor \"%s\" reads %d of the %d channels that \"%s\" gives: it is a sign of a gated MLP "
                    "(SwiGLU), which attscope has in ViTs only",
                    att_tensors_path(file), second_name, (int)out[1], (int)in[0], first_name);
}
