/* heads/heads.h - heads of dense tasks: they turn a network's features into a map of answers.
 *
 * In training, the batch norms of these heads take their statistics over the places of all images of a batch. UPerNet
 * pools a map to 1 x 1, so that a batch of one image gives a batch norm a single value, which has no variance: such a
 * run fails with ERR_ARGUMENT, as in att_batch_norm() and in PyTorch.
 */
#ifndef ATT_HEADS_HEADS_H
#define ATT_HEADS_HEADS_H

#include <attscope/task.h>

/* Values of the options "head" and "neck". */
#define ATT_HEAD_LINEAR "linear"
#define ATT_HEAD_UPER "uper"
#define ATT_HEAD_RCNN "rcnn"
#define ATT_HEAD_RCNN_V2 "rcnn_v2"
#define ATT_NECK_NONE "none"
#define ATT_NECK_PYRAMID "feature2pyramid"
#define ATT_NECK_MULTI_LEVEL "multi_level"

/* Returns whether the backbone has stages. If not, the graph fails (ERR_UNSUPPORTED). */
bool att_head_has_stages(att_graph *graph, const att_backbone *backbone);

/* Refuses options that the head lacks: the graph fails (ERR_ARGUMENT) if one of the `count` keys is given. having: what
 * has them, for the message, as "the head \"uper\" (--head uper)". Returns whether none is given. */
bool att_head_lacks(att_graph *graph, const att_option_values *options, const char *const *keys, int count,
                    const char *having);
/* Keys of the options of detectors (ATT_DETECTOR_OPTIONS). */
extern const char *const att_detector_keys[];
extern const int att_detector_key_count;

/* The linear head of DINOv2's segmentation (Oquab et al. 2024; BNHead of its code): batch norm, dropout with the
 * backbone's drop_rate, then a linear layer for each place. It reads the stages whose map has the size of the last one,
 * with their channels side by side, the first stage first: of a ViT all blocks that the task taps, of a network that
 * shrinks its map from stage to stage the last one. Returns [h, w, outputs]. Fails the graph (ERR_UNSUPPORTED) if the
 * network has no stages. Parameters: bn.weight, bn.bias, linear.weight and linear.bias (att_nn_linear()); the buffers
 * of bn.
 */
att_value att_head_linear(const att_scope *scope, const att_backbone *backbone, int64_t outputs);

/* The maps that a head of several levels reads, the first the largest: the stages of the backbone, changed by the neck
 * that its option "neck" names. Returns their number, 0 after the graph has failed.
 *
 * Stages of tokens (Swin) are sums of residual branches, which no norm has seen: each gets a layer norm (eps 1e-5),
 * norms.#.weight and norms.#.bias, as in mmsegmentation and transformers (hidden_states_norms). Stages of convolutional
 * networks and blocks of ViTs get none, as in mmsegmentation and XCiT.
 *
 * Necks make four maps of 4, 2, 1 and 1/2 times the size of four maps of one size [h, w, C], and leave C unchanged:
 * - "feature2pyramid", as in XCiT, BEiT and mmsegmentation's Feature2Pyramid: two transposed convolutions of 2 x 2 and
 *   stride 2 with batch norm and GELU between them (neck.fpn1.0, fpn1.1, fpn1.3), one such convolution (neck.fpn2.0),
 *   the map itself, max pooling of 2 x 2.
 * - "multi_level", mmsegmentation's MultiLevelNeck: a convolution of 1 x 1 (neck.lateral_convs.#.conv), bilinear
 *   resizing, a convolution of 3 x 3 (neck.convs.#.conv), both with bias and initialised uniformly as by Glorot and
 *   Bengio (2010).
 *
 * Other errors: ERR_UNSUPPORTED for a neck and maps of several sizes or another number. (Touvron et al., XCiT, NeurIPS
 * 2021; Bao et al., ICLR 2022) */
int att_head_maps(const att_scope *scope, const att_backbone *backbone, att_value maps[ATT_FEATURE_STAGES]);

/* UPerNet (Xiao et al., ECCV 2018), as mmsegmentation's UPerHead and transformers' UperNetHead with pool scales 1, 2, 3
 * and 6. All convolutions but the last have `channels` outputs, no bias, batch norm and ReLU:
 *
 *   pyramid pooling: the last map, and means of it over 1, 2 x 2, 3 x 3 and 6 x 6 areas (psp_modules.#.1, 1 x 1) that
 *     are resized to its size, side by side; then 3 x 3 (bottleneck)
 *   from top to bottom: 1 x 1 of each other map (lateral_convs.#) plus the map above it, resized to its size
 *   each of these sums: 3 x 3 (fpn_convs.#)
 *   all levels resized to the size of the first, side by side: 3 x 3 (fpn_bottleneck)
 *   dropout of whole channels, then a convolution of 1 x 1 with bias (conv_seg)
 *
 * Resizing is bilinear (att_upsample_bilinear()). Parameters have mmsegmentation's names: bottleneck.conv.weight,
 * bottleneck.bn.weight, .., conv_seg.weight; convolutions start as N(0, 2 / (O kernel^2)), conv_seg as N(0, 0.01^2).
 * maps: `count` maps, at least 1, the largest first. Returns [h, w, outputs], of the size of the first map. */
typedef struct att_conv_head_options {
    int64_t channels;
    double drop_rate;
} att_conv_head_options;
att_value att_head_uper(const att_scope *scope, const att_value *maps, int count, const att_conv_head_options *options,
                        int64_t outputs);

/* The auxiliary head, mmsegmentation's FCNHead with one convolution and concat_input false: 3 x 3 with batch norm and
 * ReLU (convs.0), dropout of whole channels, a convolution of 1 x 1 (conv_seg). Parameters as above. [h, w, C] -> [h,
 * w, outputs]. (Long et al., CVPR 2015) */
att_value att_head_fcn(const att_scope *scope, att_value map, const att_conv_head_options *options, int64_t outputs);

/* Parts of these heads. A convolution of kernel x kernel without bias (conv), batch norm (bn) and ReLU. */
att_value att_head_conv(const att_scope *scope, att_value x, int64_t outputs, int kernel);
/* Dropout and conv_seg. */
att_value att_head_classify(const att_scope *scope, att_value x, double drop_rate, int64_t outputs);

#endif
