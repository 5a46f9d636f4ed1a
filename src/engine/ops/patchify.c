#include <attscope/ops.h>

#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/patchify.h"
#include "engine/ops/rule.h"

att_value att_patchify(att_graph *graph, att_value image, int patch_h, int patch_w)
{
    att_patch_attrs attrs = {.patch = {patch_h, patch_w}};
    return att_emit(graph, "patchify", &attrs, &image, 1, NULL);
}

static att_status patches_of(const att_infer *infer, att_shape image, att_shape *patches)
{
    const int32_t *patch = ((const att_patch_attrs *)infer->attrs)->patch;
    if (patch[0] < 1 || patch[1] < 1 || image.dims[0] < patch[0] || image.dims[1] < patch[1])
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "an image of %lld x %lld has no patch of %d x %d",
                             (long long)image.dims[0], (long long)image.dims[1], (int)patch[0], (int)patch[1]);
    *patches =
        att_shape_of((image.dims[0] / patch[0]) * (image.dims[1] / patch[1]), image.dims[2] * patch[0] * patch[1]);
    return ATT_OK;
}

static att_status patchify_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "image", ATT_SAMPLE, 3));
    att_shape patches;
    ATT_TRY(patches_of(infer, infer->in[0].shape, &patches));
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, patches);
}

static void patchify_backward(att_backward *backward)
{
    att_patch_attrs attrs = *(const att_patch_attrs *)att_backward_attrs(backward);
    att_shape image = att_backward_in_desc(backward, 0).shape;
    attrs.height = (int32_t)image.dims[0];
    attrs.width = (int32_t)image.dims[1];
    attrs.channels = (int32_t)image.dims[2];
    att_rule_add_of_dy(backward, "patchify_grad", &attrs);
}

#define PATCHES(ph, pw, h, w, c) ATTRS(patch, {(ph), (pw)}, (h), (w), (c))
#define PATCH(p, h, w, c) PATCHES((p), (p), (h), (w), (c))
static const att_op_case patchify_cases[] = {
    {.name = "odd", PATCH(2, 4, 6, 3), IN(SAMPLE(4, 6, 3)), .gradient = true},
    {.name = "wide", PATCHES(2, 3, 4, 9, 3), IN(SAMPLE(4, 9, 3)), .gradient = true},
    {.name = "tall", PATCHES(18, 4, 36, 8, 1), IN(SAMPLE(36, 8, 1))},
    {.name = "remainder", PATCHES(3, 2, 8, 7, 3), IN(SAMPLE(8, 7, 3)), .gradient = true},
    {.name = "pixels", PATCH(1, 3, 5, 2), IN(SAMPLE(3, 5, 2))},
    {.name = "one_patch", PATCH(3, 3, 3, 1), IN(SAMPLE(3, 3, 1))},
    {.name = "demo", PATCH(4, 28, 28, 1), IN(SAMPLE(28, 28, 1)), .bench = true},
    {.name = "tiny", PATCH(16, 224, 224, 3), IN(SAMPLE(224, 224, 3)), .bench = true},
};

const att_op att_op_patchify = {
    .name = "patchify",
    .attrs_size = sizeof(att_patch_attrs),
    .help = "y [N, c P Q]: the P x Q patches of an image [h, w, c], row by row",
    .flags = ATT_OP_RECOMPUTE,
    .autocast_out = 1,
    .infer = patchify_infer,
    .backward = patchify_backward,
    .cost = att_rule_copy_cost,
    ATT_CASES(patchify_cases),
};

static att_status grad_infer(att_infer *infer)
{
    const att_patch_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require(infer, 0, "dy", ATT_SAMPLE));
    att_shape image = att_shape_of(attrs->height, attrs->width, attrs->channels), patches;
    ATT_TRY(patches_of(infer, image, &patches));
    if (!att_shape_equal(infer->in[0].shape, patches))
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "dy %s does not hold the patches of an image of %d x %d x %d",
                             ATT_SHOWN(&infer->in[0]), attrs->height, attrs->width, attrs->channels);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, image);
}

static const att_op_case grad_cases[] = {
    {.name = "odd", PATCH(2, 4, 6, 3), IN(SAMPLE(6, 12))},
    {.name = "wide", PATCHES(2, 3, 4, 9, 3), IN(SAMPLE(6, 18))},
    {.name = "remainder", PATCHES(3, 2, 8, 7, 3), IN(SAMPLE(6, 18))},
    {.name = "pixels", PATCH(1, 3, 5, 2), IN(SAMPLE(15, 2))},
    {.name = "tiny", PATCH(16, 224, 224, 3), IN(SAMPLE(196, 768)), .bench = true},
};

const att_op att_op_patchify_grad = {
    .name = "patchify_grad",
    .attrs_size = sizeof(att_patch_attrs),
    .help = "dimage [h, w, c]: the inverse of patchify on dy, zero beyond the patches",
    .infer = grad_infer,
    .cost = att_rule_copy_cost,
    ATT_CASES(grad_cases),
};
