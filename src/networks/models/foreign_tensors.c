#include "networks/models/foreign_tensors.h"

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/models/checkpoint.h"
#include "networks/tasks/task.h"

#define TORCHVISION "torchvision's names"
#define READ " are read if all of them are there and no config.json lies beside the file"
#define COMPLETE ", which" READ
#define TRANSFORMERS \
    "the transformers library's names, which are read with the library's config.json in the same folder"

#define OPEN_PART "; FILE#PART opens the tensors whose names begin with PART"

#define PRUNED "pruning by torch.nn.utils.prune; call its remove() for each pruned layer and save the network again"
#define NORMALISES                                                                                               \
    "a layer that normalises images in front of the network; FILE#PART opens the network alone, as FILE#1 in a " \
    "Sequential, and --mean and --std give what the layer does"
#define SEVERAL "a classifier of several layers; only one linear layer is read"

/* Tensor names of other networks. The first match counts: specific patterns come before general ones. */
static const struct foreign_name {
    const char *pattern, *of;
} foreign_names[] = {
    /* What programs do to any network */
    {"*.weight_orig", PRUNED},
    {"*.weight_mask", PRUNED},
    {"*.bias_orig", PRUNED},
    {"*lora_?*",
     "adapters (LoRA); merge them into the weights (merge_and_unload() of peft) and save the network again"},
    {"*.weight_g", "weight normalisation; call torch.nn.utils.remove_weight_norm() and save the network again"},
    {"*.parametrizations.*",
     "parametrised layers; call torch.nn.utils.parametrize.remove_parametrizations() and save the "
     "network again"},
    {"?.mean", NORMALISES},
    {"?.std", NORMALISES},
    {"*normali?e*.mean", NORMALISES},
    {"*normali?e*.std", NORMALISES},
    {"head.?.*", SEVERAL},
    {"fc.?.*", SEVERAL},
    {"classifier.?.*", SEVERAL},
    /* Networks by tensors that no other network of timm has */
    {"class_embed.*", "DETR or a relative (a detector of tokens)"},
    {"*transformer.decoder.layers.*", "DETR or a relative (a detector of tokens)"},
    {"*rpn.*", "a detector such as Faster R-CNN"},
    {"stages.*.attn.tau", "a Swin V2-CR of an older timm, which stored tau in place of logit_scale"},
    {"blocks_token_only.*", "CaiT (talking heads, class attention)"},
    {"pixel_pos", "TNT"},
    {"cls_token4", "CoaT"},
    {"blocks.*.attn.gating_param", "ConViT"},
    {"blocks.*.fn.*", "ConvMixer"},
    {"cls_token_*", "CrossViT (several class tokens)"},
    {"stem_dct.*", "CSATv2"},
    {"stages.*.conv_down.bn.*", "a cross stage partial network"},
    {"stages.*.spatial_block.*", "DaViT"},
    {"stages.*.blocks.0.0.norm1.*", "DaViT"},
    {"features.denseblock*", "DenseNet"},
    {"level0.0.*", "a network of deep layer aggregation (DLA)"},
    {"features.conv1_1.*", "a dual path network (DPN)"},
    {"stages.*.xca.*", "EdgeNeXt"},
    {"stages.*.mlp.norm1.*", "EfficientFormer"},
    {"stages.*.mlp.fc1.bn.*", "EfficientFormerV2"},
    {"stem.in_conv.*", "EfficientViT"},
    {"patch_embed.conv4.bn.*", "EfficientViT"},
    {"stages.*.token_mixer.*.reparam*", "FastViT"},
    {"final_conv.se.*", "FastViT"},
    {"patch_embed.norm.running_mean", "FasterNet"},
    {"layers.*.modulation.*", "FocalNet"},
    {"stem.down.norm1.*", "GCViT"},
    {"pos_embed_window", "Hiera of Segment Anything 2"},
    {"pos_embed_win", "Hiera"},
    {"blocks.?.proj.*", "Hiera"},
    {"final_layer.*", "HRNet"},
    {"stage?.*.branches.*", "HRNet"},
    {"head.last_conv.*", "HGNet"},
    {"stages.*.cpe.module.*", "iFormer"},
    {"classif.*", "Inception-ResNet"},
    {"Mixed_*", "Inception"},
    {"features.*.branch0.*", "Inception"},
    {"stem.conv4.linear.weight", "LeViT"},
    {"stages.*.attn.qkv.linear.*", "LeViT"},
    {"stages.*.conv.m.c.*", "SHViT"},
    {"patch_embed.0.c.*", "LeViT under its authors' names"},
    {"features.*.layer_scale", "ConvNeXt under torchvision's names"},
    {"stages.*.attn_block.*", "MaxViT"},
    {"stages.*.attn_grid.*", "MaxViT"},
    {"stages.*.blocks.*.conv3_1x1.*", "CoAtNet or a relative"},
    {"stages.*.layer_scale1.*", "PoolFormer or a relative"},
    {"stages.*.token_mixer.*", "a network with token mixers (MetaFormer, RepViT and the like)"},
    {"stages.?.?.conv_proj.bn.*", "MobileViT"},
    {"stages.*.attn.rel_pos_h", "MViTv2"},
    {"conv0.*", "NASNet"},
    {"conv_0.*", "PNASNet"},
    {"levels.*.pos_embed", "a nested transformer (NesT)"},
    {"stages.*.e_mhsa.*", "Next-ViT"},
    {"*conv*.gain", "convolutions with standardised weights, as in normaliser-free networks"},
    {"transformers.*", "PiT"},
    {"stages.*.attn.sr.*", "PVTv2"},
    {"dense_stages.*", "RDNet"},
    {"s1.b1.norm1.*", "a RegNet with pre-activation (RegNetV)"},
    {"layer?.*.bns.*", "Res2Net (convolutions at several scales in a block)"},
    {"layer?.*.convs.*", "Res2Net (convolutions at several scales in a block)"},
    {"layer?.*.paths.*", "SKNet (selective kernels)"},
    {"layer?.*.conv?.attn.*", "SKNet (selective kernels)"},
    {"layer?.*.conv2.fc1.*", "ResNeSt (split attention)"},
    {"layer?.*.conv2.bn0.*", "ResNeSt (split attention)"},
    {"features.*.se.bn.*", "ReXNet"},
    {"stages.*.rnn_tokens.*", "Sequencer"},
    {"stages.*.attn.w_g", "SwiftFormer"},
    {"stages.*.attn.attention_bias_cache", "TinyViT"},
    {"stages.*.local_conv.*", "TinyViT"},
    {"body.conv1.*", "TResNet"},
    {"pos_block.*", "Twins"},
    {"stages.*.conv_concat.*", "VoVNet"},
    {"pos_embed3", "Visformer"},
    {"network.*", "VOLO"},
    {"blocks.*.stack.*", "Xception"},
    {"bn4.*", "Xception"},
    {"blocks.*.local_mp.*", "XCiT"},
    {"neck.*", "Segment Anything's ViT"},
    {"embeds.*", "NaFlexViT"},
    {"blocks.*.linear_tokens.*", "ResMLP"},
    {"blocks.*.mlp_channels.gate.*", "gMLP"},
    {"conv_stem.*", "EfficientNet, MobileNet or a relative"},
    {"stages.*.conv*_kxk.*", "timm's networks of configurable blocks"},
    {"layer?.*.se_module.*", "SE networks of an older code; only timm's names are read"},
    {"layer0.*", "SE networks of an older code; only timm's names are read"},
    {"stages.*.blocks.*.conv1.weight", "ResNetV2 (pre-activation blocks, as in BiT)"},
    {"stages.*.attn.rel_pos.*", "CoAtNet or a relative"},
    {"stages.*.self_attn.pos_embed.*", "timm's networks of configurable blocks"},
    {"stages.?.conv_down.*", "a cross stage partial network"},
    {"stages.*.attention.fc.*", "CSPNeXt"},
    {"stages.*.mixer.BCdt_proj.*", "EfficientViM"},
    {"stages.*.dw_conv.conv.*", "PP-LCNetV2"},
    {"stages.*.main.spatial_conv.*", "CPUBone, LowFormer or a relative"},
    {"stages.?.blocks.?.fc1.*", "MambaOut"},
    {"stages.*.dwconv2.conv.*", "StarNet"},
    {"features.?.conv6.*", "SelecSLS"},
    {"merger.*", "Qwen's network of images"},
    {"aligner.*", "DeepSeek's network of images"},
    {"*patch_embed.input_proj.*", "Gemma's network of images"},
    {"stages.*.grn.*", "ConvNeXt V2 (response norms)"},
    {"downsample_layers.*", "ConvNeXt under its authors' names" COMPLETE},
    {"storage_tokens", "DINOv3 under its authors' names" COMPLETE},
    {"register_tokens", "DINOv2 under its authors' names" COMPLETE},
    {"layers.0.downsample.*", "Swin under its authors' names" COMPLETE},
    {"*.attn.inner_attn_ln.*", "EVA under its authors' names; only timm's are read"},
    {"*.mlp.ffn_ln.*", "EVA under its authors' names; only timm's are read"},
    {"*.attn.wq.*", "Sapiens2"},
    {"features.*.attn.*", TORCHVISION " of a Swin transformer" COMPLETE},
    {"encoder.layers.encoder_layer_*", TORCHVISION " of a ViT" COMPLETE},
    {"embeddings.*", TRANSFORMERS},
    {"*.embeddings.*", TRANSFORMERS},
    {"*encoder.layer.*", TRANSFORMERS},
    {"*embedder.embedder.*", TRANSFORMERS},
    {"visual.layer?.*", "CLIP's residual network, which pools by attention"},
    {"visual.*", "CLIP under other names than OpenAI's, open_clip's and timm's"},
    {"conv_root.*", "a convolutional network before the patches (a hybrid ViT)"},
    /* Parts of ViTs */
    {"patch_embed.backbone.*", "a convolutional network before the patches (a hybrid ViT)"},
    {"*.attn.q_norm.*", "normalised queries and keys"},
    {"*.attn.k_norm.*", "normalised queries and keys"},
    {"*.attn.norm.*", "a norm inside the attention"},
    {"*.mlp.norm.*", "a norm inside the MLP"},
    {"*.mlp.w12.*", "a gated MLP"},
    {"*.mlp.fc1_g.*", "a gated MLP"},
    {"*.mlp.gate*", "a gated MLP"},
    {"*.attn.lambda_*", "differential attention"},
    {"*.attn.?_proj.*", "separate query, key and value layers, as in EVA"},
    {"*.attn.rel_pos*", "relative positions"},
    {"layers.*relative_position*", "attention in shifted windows (Swin)"},
    {"*relative_position*", "relative positions"},
    {"*rope*", "rotary positions"},
    {"blocks.*.attns.*", "parallel branches"},
    {"blocks.*.ffns.*", "parallel branches"},
    {"blocks.*.in_proj.*", "attention and MLP in parallel"},
    {"blocks.*.mlp_tokens.*", "MLP-Mixer"},
    {"attn_pool.*", "pooling by attention"},
    {"patch_embed.norm.*", "a norm after the patch embedding"},
    {"fc_norm.*.*", "an unknown norm"},
    /* Parts of residual networks */
    {"layer?.*.conv2.conv.*", "a block whose second convolution has parts"},
    {"maxpool.*", "a convolution in place of the stem's pooling (ResNet-RS)"},
    {"layer?.*.aa.*", "anti-aliased downsampling"},
    {"layer?.*.se.*", "an attention module that attscope does not have"},
    {"last_linear.*", "a residual network of an older code; only timm's names are read"},
    /* Whole kinds */
    {"features.*", "a convolutional network such as VGG"},
    {"layers.*", "a hierarchical transformer (Swin and the like)"},
    {"stages.*", "a network of stages that attscope lacks"},
    {"module.*", "names with the prefix \"module.\", left by parallel training"},
    {"backbone.*", "names with the prefix \"backbone.\""},
    {"model.*", "names with the prefix \"model.\""},
    {"*.patch_embed.proj.*", "names with a prefix, as of a ViT that is a part of another module" OPEN_PART},
    {"*.layer1.0.conv1.*", "names with a prefix, as of a residual network that is a part of another module" OPEN_PART},
};
enum { FOREIGN_NAMES = sizeof foreign_names / sizeof *foreign_names };

/* The first pattern that matches a name; FOREIGN_NAMES if none does. */
static int rank_of(const char *name)
{
    int rank = 0;
    while (rank < FOREIGN_NAMES && !att_text_matches(foreign_names[rank].pattern, name))
        rank++;
    return rank;
}

att_foreign att_foreign_find(const att_context *context, const att_tensors *file, att_knows *knows, const void *user)
{
    att_foreign found = {0};
    int best = FOREIGN_NAMES + 1;
    for (int i = 0; i < att_tensors_count(file) && !att_stop_asked(context); i++) {
        const char *name = att_tensors_at(file, i).name;
        if (att_checkpoint_ignores(context, file, name) || att_task_of_parameter(context, name))
            continue;
        found.total++;
        if (knows(user, name))
            continue;
        int rank = rank_of(name);
        found.count++;
        if (rank < best) {
            best = rank;
            found.name = name;
        }
    }
    found.sign = best < FOREIGN_NAMES ? foreign_names[best].of : NULL;
    return found;
}

att_status att_foreign_refuse(att_context *context, const att_tensors *file, const att_foreign *foreign,
                              const char *what)
{
    ATT_TRY(att_check_stop(context, att_tensors_path(file)));
    if (foreign->count == 0)
        return ATT_OK;
    return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: tensor \"%.100s\" belongs to no %s%s%s", att_tensors_path(file),
                    foreign->name, what, foreign->sign ? ": it is a sign of " : "", foreign->sign ? foreign->sign : "");
}
