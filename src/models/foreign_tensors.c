#include "models/foreign_tensors.h"

#include "core/error.h"
#include "core/text.h"

#define TRANSFORMERS "the transformers library's names; only timm's are read"

/* Tensor names of other networks. The first match counts: specific patterns come before general ones. */
static const struct foreign_name {
    const char *pattern, *of;
} foreign_names[] = {
    /* ViTs */
    {"register_tokens", "register tokens"},
    {"*.attn.q_norm.*", "normalised queries and keys"},
    {"*.attn.k_norm.*", "normalised queries and keys"},
    {"*.attn.norm.*", "a norm inside the attention"},
    {"*.mlp.norm.*", "a norm inside the MLP"},
    {"*.mlp.w12.*", "a gated MLP"},
    {"*.mlp.fc1_g.*", "a gated MLP"},
    {"*.mlp.gate*", "a gated MLP"},
    {"*.attn.lambda_*", "differential attention"},
    {"blocks_token_only.*", "CaiT (talking heads, class attention)"},
    {"blocks.*.local_mp.*", "XCiT"},
    {"*.attn.?_proj.*", "separate query, key and value layers, as in EVA"},
    {"neck.*", "Segment Anything's ViT"},
    {"*.attn.rel_pos*", "relative positions"},
    {"layers.*relative_position*", "attention in shifted windows (Swin)"},
    {"stages.*.attn.tau", "a Swin V2-CR of an older timm, which stored tau in place of logit_scale"},
    {"*relative_position*", "relative positions"},
    {"*rope*", "rotary positions"},
    {"blocks.*.attns.*", "parallel branches"},
    {"blocks.*.ffns.*", "parallel branches"},
    {"blocks.*.in_proj.*", "attention and MLP in parallel"},
    {"blocks.*.mlp_tokens.*", "MLP-Mixer"},
    {"blocks.*.linear_tokens.*", "ResMLP"},
    {"blocks.*.mlp_channels.gate.*", "gMLP"},
    {"attn_pool.*", "pooling by attention"},
    {"patch_embed.backbone.*", "a convolutional network before the patches (a hybrid ViT)"},
    {"patch_embed.norm.*", "a norm after the patch embedding"},
    {"cls_token_*", "several class tokens"},
    {"fc_norm.*.*", "an unknown norm"},
    {"embeds.*", "NaFlexViT"},
    {"encoder.layers.encoder_layer_*", "torchvision's names of a ViT; only timm's are read"},
    {"vit.embeddings.*", TRANSFORMERS},
    {"vit.encoder.*", TRANSFORMERS},
    {"deit.embeddings.*", TRANSFORMERS},
    {"deit.encoder.*", TRANSFORMERS},
    {"embeddings.*", TRANSFORMERS},
    {"resnet.embedder.*", TRANSFORMERS},
    {"visual.*", "CLIP"},
    /* Residual networks */
    {"layer?.*.conv2.paths.*", "selective kernels (SKNet)"},
    {"layer?.*.conv2.attn.*", "selective kernels (SKNet)"},
    {"layer?.*.convs.*", "convolutions at several scales in a block (Res2Net)"},
    {"layer?.*.conv2.fc1.*", "split attention (ResNeSt)"},
    {"layer?.*.conv2.bn0.*", "split attention (ResNeSt)"},
    {"layer?.*.conv2.conv.*", "split attention (ResNeSt)"},
    {"layer?.*.se_module.*", "SE networks of an older code; only timm's names are read"},
    {"layer0.*", "SE networks of an older code; only timm's names are read"},
    {"last_linear.*", "SE networks of an older code; only timm's names are read"},
    {"layer?.*.conv1.conv.*", "selective kernels (SKNet)"},
    {"maxpool.*", "a convolution in place of the stem's pooling (ResNet-RS)"},
    {"layer?.*.aa.*", "anti-aliased downsampling"},
    {"layer?.*.conv?.gain", "convolutions with standardised weights"},
    {"layer?.*.se.*", "an attention module that attscope does not have"},
    {"stem.conv*.gain", "a normaliser-free network"},
    {"stages.*.blocks.*.conv_dw.*", "ConvNeXt"},
    {"stages.*.blocks.*.norm3.*", "ResNetV2: pre-activation blocks, as in BiT"},
    {"stages.*.blocks.*.norm1.*", "ResNetV2: pre-activation blocks, as in BiT"},
    {"stages.*.blocks.*.conv1.weight", "ResNetV2: pre-activation blocks, as in BiT"},
    {"stages.*.conv*_kxk.*", "timm's networks of configurable blocks"},
    {"downsample_layers.*", "ConvNeXt under its authors' names; only timm's are read"},
    {"conv_stem.*", "EfficientNet, MobileNet or a relative"},
    {"s1.b1.*", "RegNet"},
    {"features.denseblock*", "DenseNet"},
    {"features.*", "a network in the manner of VGG"},
    {"Mixed_*", "Inception"},
    {"stage?.*.branches.*", "HRNet"},
    /* Whole kinds */
    {"layers.*", "a hierarchical transformer (Swin and the like)"},
    {"stages.*", "a network of stages (ConvNeXt and the like)"},
    {"module.*", "names with the prefix \"module.\", left by parallel training"},
    {"backbone.*", "names with the prefix \"backbone.\""},
    {"model.*", "names with the prefix \"model.\""},
    {"*.patch_embed.proj.*", "names with a prefix, as of a ViT that is a part of another module"},
    {"*.layer1.0.conv1.*", "names with a prefix, as of a residual network that is a part of another module"},
};
enum { FOREIGN_NAMES = sizeof foreign_names / sizeof *foreign_names };

int att_foreign_rank(const char *name)
{
    int rank = 0;
    while (rank < FOREIGN_NAMES && !att_text_matches(foreign_names[rank].pattern, name))
        rank++;
    return rank;
}

att_status att_foreign_refuse(att_context *context, const att_tensors *file, const char *name, const char *what)
{
    int rank = att_foreign_rank(name);
    return att_fail(context, ATT_ERR_UNSUPPORTED, "%s: tensor \"%.100s\" belongs to no %s%s%s", att_tensors_path(file),
                    name, what, rank < FOREIGN_NAMES ? ": it is a sign of " : "",
                    rank < FOREIGN_NAMES ? foreign_names[rank].of : "");
}
