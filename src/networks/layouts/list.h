/* layouts/list.h - the layouts, each by the name of its descriptor att_layout_NAME. */
#ifndef ATT_LAYOUTS_LIST_H
#define ATT_LAYOUTS_LIST_H

#define ATT_LAYOUT_LIST(X)         \
    X(transformers_vit)            \
    X(transformers_dinov2)         \
    X(transformers_dinov3)         \
    X(transformers_beit)           \
    X(transformers_swin)           \
    X(transformers_swin_v2)        \
    X(transformers_resnet)         \
    X(transformers_clip)           \
    X(transformers_siglip)         \
    X(transformers_siglip2)        \
    X(transformers_upernet)        \
    X(transformers_bert)           \
    X(transformers_distilbert)     \
    X(transformers_albert)         \
    X(transformers_mpnet)          \
    X(mmsegmentation_resnet)       \
    X(mmsegmentation_swin)         \
    X(mmsegmentation_vit)          \
    X(mmsegmentation_beit)         \
    X(mmdetection_detector)        \
    X(torchvision_vit)             \
    X(torchvision_swin)            \
    X(torchvision_swin_v2)         \
    X(torchvision_resnet)          \
    X(torchvision_detector)        \
    X(torchvision_mobile_detector) \
    X(weiaicunzai_resnet)          \
    X(jeonsworld_vit)              \
    X(lucidrains_vit)              \
    X(lucidrains_simple_vit)       \
    X(xternalz_resnet)             \
    X(authors_dinov2_registers)    \
    X(authors_dinov2_giant)        \
    X(authors_dinov3)              \
    X(authors_eva02)               \
    X(authors_swin)                \
    X(authors_swin_v2)             \
    X(authors_convnext)            \
    X(authors_deit3)               \
    X(openai_clip)                 \
    X(google_vit)

#endif
