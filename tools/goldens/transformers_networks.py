"""Small networks of every model type of the transformers library that attscope opens: imported by layouts.py and
tools/versus_transformers; run alone it writes nothing."""
import collections

import torch
import transformers as hf

# make() returns the network with its first weights. processor prepares images; None: as config.json says.
# answer(network, image), for an image [1, 3, side, side], returns what attscope computes. saving: arguments of
# save_pretrained().
Network = collections.namedtuple("Network", "name make processor side answer saving", defaults=[{}])


# --- answers ---------------------------------------------------------------------------------------------------------

def logits(model, image):
    return model(pixel_values=image).logits


def pooled(model, image):
    return model(pixel_values=image).pooler_output


def class_token(model, image):
    return model(pixel_values=image).last_hidden_state[:, 0]


def mean_of_tokens(model, image):
    return model(pixel_values=image).last_hidden_state.mean(1)


def mean_of_patches(model, image):
    return model(pixel_values=image).last_hidden_state[:, 1:].mean(1)


def projected(model, image):
    return model(pixel_values=image).image_embeds


def pooled_image(model, image):
    """Of the image network of a pair."""
    return model.vision_model(pixel_values=image).pooler_output


def projected_image(model, image):
    return model.visual_projection(pooled_image(model, image))


def class_token_of_encoder(model, image):
    """Of a masked autoencoder that masks nothing and leaves the patches in their order."""
    patches = (model.config.image_size // model.config.patch_size) ** 2
    return model.vit(pixel_values=image, noise=torch.arange(patches)[None].to(image)).last_hidden_state[:, 0]


def pooled_map(model, image):
    """Of a ResNet."""
    return model(pixel_values=image).pooler_output.flatten(1)


def map_of_logits(model, image):
    """Before they are resized to the image's size."""
    return model.decode_head(model.backbone(image).feature_maps).permute(0, 2, 3, 1)


def in_patches(member):
    """Of a SigLIP 2, which takes patches of a grid of any proportions: here a square one."""
    def run(model, image):
        patch = getattr(model.config, "vision_config", model.config).patch_size
        side = image.shape[-1] // patch
        patches = image.reshape(1, 3, side, patch, side, patch).permute(0, 2, 4, 3, 5, 1).reshape(1, side * side, -1)
        grid = {"pixel_attention_mask": torch.ones(1, side * side, dtype=torch.long),
                "spatial_shapes": torch.tensor([[side, side]])}
        return model(pixel_values=patches, **grid)[member]
    return run


# --- the networks ----------------------------------------------------------------------------------------------------

def networks(side, width):
    """Returns the networks with `width` channels, two blocks and 16 patches, for images of side x side pixels, and ResNets,
    which need larger ones, for 4 side x 4 side."""
    vit = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * width,
           "image_size": side, "patch_size": side // 4}
    text = {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": width,
            "vocab_size": 8, "max_position_embeddings": 4, "projection_size": width}
    decoder = {"decoder_hidden_size": 4, "decoder_num_hidden_layers": 1, "decoder_intermediate_size": 4,
               "decoder_num_attention_heads": 1, "mask_ratio": 0.0}
    swin = {"image_size": side, "patch_size": side // 4, "embed_dim": width, "depths": [1, 1], "num_heads": [1, 2],
            "window_size": 2}
    resnet = {"embedding_size": width // 4, "hidden_sizes": [width // 4 * 2**i for i in range(4)], "depths": [1] * 4,
              "layer_type": "basic"}
    larger_table = {"mlp_ratio": 2, "image_size": 9 * side // 4}  # of positions, for 9 x 9 patches
    classes, whole = {"num_labels": 3}, {"height": side, "width": side}
    larger = {"size": {"shortest_edge": side * 5 // 4}, "crop_size": whole}
    squashed = hf.ViTImageProcessor(size=whole)
    clip = hf.CLIPImageProcessor(size={"shortest_edge": side}, crop_size=whole)
    deit, dinov2 = hf.DeiTImageProcessor(**larger), hf.BitImageProcessor(**larger)
    dinov3, siglip = hf.DINOv3ViTImageProcessor(size=whole), hf.SiglipImageProcessor(size=whole)
    siglip2 = hf.Siglip2ImageProcessor(patch_size=side // 4, max_num_patches=16)
    beit = hf.BeitImageProcessor(size=whole, crop_size=whole, do_center_crop=False)
    cropped = hf.ConvNextImageProcessor(size={"shortest_edge": 4 * side}, crop_pct=0.8)
    both = {"text_config": text, "vision_config": vit}
    prepared = {"input_size": [3, side, side], "mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 0.8,
                "crop_mode": "center", "interpolation": "bicubic"}
    wrapped = {"architecture": "vit_tiny_patch16_224", "pretrained_cfg": prepared,
               "model_args": {"img_size": side, "patch_size": side // 4, "embed_dim": width, "depth": 2,
                              "num_heads": 2, "mlp_ratio": 2, "reg_tokens": 1}}
    naflex = {k: v for k, v in vit.items() if k != "image_size"} | {"num_patches": 16}

    def row(name, network, config, options, processor, answer):
        needed = 4 * side if network in (hf.ResNetModel, hf.ResNetForImageClassification) else side
        return Network(name, lambda: network(config(**options)), processor, needed, answer)

    return [
        row("vit", hf.ViTForImageClassification, hf.ViTConfig, vit | classes, squashed, logits),
        row("vit_base", hf.ViTModel, hf.ViTConfig, vit | {"hidden_act": "gelu_pytorch_tanh"}, squashed, class_token),
        row("vit_masked", hf.ViTForMaskedImageModeling, hf.ViTConfig, vit | {"encoder_stride": side // 4}, squashed,
            lambda model, image: class_token(model.vit, image)),
        row("deit", hf.DeiTForImageClassification, hf.DeiTConfig, vit | classes, deit, logits),
        row("deit_teacher", hf.DeiTForImageClassificationWithTeacher, hf.DeiTConfig, vit | classes, deit, logits),
        row("vit_mae", hf.ViTMAEForPreTraining, hf.ViTMAEConfig, vit | decoder, squashed, class_token_of_encoder),
        row("vit_msn", hf.ViTMSNForImageClassification, hf.ViTMSNConfig, vit | classes, squashed, logits),
        row("ijepa", hf.IJepaForImageClassification, hf.IJepaConfig, vit | classes, squashed, logits),
        row("ijepa_base", hf.IJepaModel, hf.IJepaConfig, vit, squashed, mean_of_tokens),
        row("dinov2", hf.Dinov2ForImageClassification, hf.Dinov2Config, vit | classes | {"mlp_ratio": 2}, dinov2,
            logits),
        row("dinov2_base", hf.Dinov2Model, hf.Dinov2Config, vit | {"use_swiglu_ffn": True}, dinov2, pooled),
        row("dinov2_registers", hf.Dinov2WithRegistersForImageClassification, hf.Dinov2WithRegistersConfig,
            vit | classes | {"mlp_ratio": 2}, dinov2, logits),
        row("dinov2_resized", hf.Dinov2Model, hf.Dinov2Config,
            vit | larger_table | {"layer_norm_eps": 0.01}, dinov2, pooled),
        row("dinov2_registers_resized", hf.Dinov2WithRegistersModel, hf.Dinov2WithRegistersConfig,
            vit | larger_table | {"num_register_tokens": 2}, dinov2, pooled),
        row("dinov2_registers_none", hf.Dinov2WithRegistersForImageClassification, hf.Dinov2WithRegistersConfig,
            vit | classes | {"mlp_ratio": 2, "num_register_tokens": 0}, dinov2, logits),
        row("dinov3", hf.DINOv3ViTModel, hf.DINOv3ViTConfig, vit | {"num_register_tokens": 2}, dinov3, pooled),
        row("dinov3_gated", hf.DINOv3ViTModel, hf.DINOv3ViTConfig,
            vit | {"num_register_tokens": 2, "use_gated_mlp": True, "hidden_act": "silu"}, dinov3, pooled),
        row("dinov3_query_bias", hf.DINOv3ViTModel, hf.DINOv3ViTConfig,
            vit | {"key_bias": True, "value_bias": False, "rope_theta": 10.0, "layer_norm_eps": 0.01}, dinov3,
            pooled),
        row("dinov3_value_bias", hf.DINOv3ViTModel, hf.DINOv3ViTConfig,
            vit | {"query_bias": False, "proj_bias": False}, dinov3, pooled),
        row("beit", hf.BeitForImageClassification, hf.BeitConfig,
            vit | classes | {"use_relative_position_bias": True}, beit, logits),
        row("beit_masked", hf.BeitForMaskedImageModeling, hf.BeitConfig,
            vit | {"vocab_size": 8, "use_shared_relative_position_bias": True,
                   "use_absolute_position_embeddings": True},
            beit, lambda model, image: model.layernorm(class_token(model.beit, image))),
        row("beit_class", hf.BeitForImageClassification, hf.BeitConfig,
            vit | classes | {"use_absolute_position_embeddings": True, "use_mean_pooling": False,
                             "layer_scale_init_value": 0.0},
            beit, logits),
        row("beit_backbone", hf.BeitForMaskedImageModeling, hf.BeitConfig,
            vit | {"vocab_size": 8, "use_mean_pooling": False}, beit,
            lambda model, image: class_token(model.beit, image)),
        row("data2vec", hf.Data2VecVisionForImageClassification, hf.Data2VecVisionConfig,
            vit | classes | {"use_relative_position_bias": True}, beit, logits),
        row("data2vec_base", hf.Data2VecVisionModel, hf.Data2VecVisionConfig,
            vit | {"use_shared_relative_position_bias": True}, beit, mean_of_patches),
        row("swin", hf.SwinForImageClassification, hf.SwinConfig, swin | classes, squashed, logits),
        row("swin_base", hf.SwinModel, hf.SwinConfig, swin, squashed, pooled),
        row("swin_masked", hf.SwinForMaskedImageModeling, hf.SwinConfig,
            swin | {"depths": [2, 1], "qkv_bias": False, "encoder_stride": side // 2}, squashed,
            lambda model, image: mean_of_tokens(model.swin, image)),
        row("swinv2", hf.Swinv2ForImageClassification, hf.Swinv2Config,
            swin | classes | {"pretrained_window_sizes": [3, 4, 0, 0]}, squashed, logits),
        row("resnet", hf.ResNetForImageClassification, hf.ResNetConfig, resnet | classes, cropped, logits),
        row("resnet_bottleneck", hf.ResNetForImageClassification, hf.ResNetConfig,
            resnet | classes | {"layer_type": "bottleneck", "embedding_size": width // 8,
                                "hidden_sizes": [width // 2 * 2**i for i in range(4)]}, cropped, logits),
        row("resnet_early", hf.ResNetForImageClassification, hf.ResNetConfig,
            resnet | classes | {"layer_type": "bottleneck", "embedding_size": width // 8,
                                "hidden_sizes": [width // 2 * 2**i for i in range(4)],
                                "downsample_in_bottleneck": True}, cropped, logits),
        row("resnet_base", hf.ResNetModel, hf.ResNetConfig, resnet, cropped, pooled_map),
        row("clip", hf.CLIPModel, hf.CLIPConfig, both | {"projection_dim": 4}, clip, projected_image),
        row("clip_classes", hf.CLIPForImageClassification, hf.CLIPConfig, both | classes, clip, logits),
        row("clip_vision", hf.CLIPVisionModel, hf.CLIPVisionConfig, vit, clip, pooled),
        row("clip_projection", hf.CLIPVisionModelWithProjection, hf.CLIPVisionConfig, vit | {"projection_dim": 4}, clip,
            projected),
        row("siglip", hf.SiglipModel, hf.SiglipConfig, both, siglip, pooled_image),
        row("siglip_classes", hf.SiglipForImageClassification, hf.SiglipConfig, both | classes, siglip, logits),
        row("siglip_vision", hf.SiglipVisionModel, hf.SiglipVisionConfig, vit, siglip, pooled),
        row("siglip2_vision", hf.Siglip2VisionModel, hf.Siglip2VisionConfig, naflex, siglip2,
            in_patches("pooler_output")),
        row("siglip2_classes", hf.Siglip2ForImageClassification, hf.Siglip2Config,
            {"text_config": text, "vision_config": naflex} | classes, siglip2, in_patches("logits")),
        row("timm_wrapper", hf.TimmWrapperForImageClassification, hf.TimmWrapperConfig, wrapped | classes,
            hf.TimmWrapperImageProcessor(prepared, wrapped["architecture"]), logits),
    ]


def other_networks(side, width):
    """Returns small networks without a golden here: one of timm in the library's wrapper, in several files, one whose
    images are smaller than the crop, and a segmenter."""
    small = hf.CLIPImageProcessor(size={"shortest_edge": side - 15}, crop_size={"height": side, "width": side})
    padded = hf.CLIPVisionConfig(hidden_size=width, num_hidden_layers=1, num_attention_heads=2, intermediate_size=width,
                                 image_size=side, patch_size=side // 4)
    config = {"architecture": "vit_tiny_patch16_224", "num_labels": 3,
              "model_args": {"img_size": side, "patch_size": side // 4, "embed_dim": width, "depth": 2, "num_heads": 2},
              "pretrained_cfg": {"input_size": [3, side, side], "crop_pct": 0.8, "interpolation": "bilinear",
                                 "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}}

    swin = hf.SwinConfig(image_size=2 * side, patch_size=4, embed_dim=width, depths=[2] * 4, num_heads=[1, 2, 4, 8],
                         window_size=7, out_features=["stage1", "stage2", "stage3", "stage4"])
    upernet = hf.UperNetConfig(backbone_config=swin, hidden_size=width, auxiliary_channels=width, num_labels=5)
    segformer = hf.SegformerImageProcessor(size={"height": 2 * side, "width": 2 * side}, do_reduce_labels=True)

    def wrapped():
        return hf.TimmWrapperForImageClassification(hf.TimmWrapperConfig(**config))

    return [Network("timm_in_parts", wrapped, None, side, logits, {"max_shard_size": "64KB"}),
            Network("clip_padded", lambda: hf.CLIPVisionModel(padded), small, side, pooled),
            Network("upernet", lambda: hf.UperNetForSemanticSegmentation(upernet), segformer, 2 * side, map_of_logits)]
