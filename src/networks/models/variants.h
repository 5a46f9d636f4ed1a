/* models/variants.h - settings that named networks of several families have, for att_variant_row. Each ends in a blank,
 * so that they can be joined. */
#ifndef ATT_MODELS_VARIANTS_H
#define ATT_MODELS_VARIANTS_H

/* Widths of tokens, blocks and heads. */
#define ATT_TINY "embed_dim=192 depth=12 num_heads=3 "
#define ATT_SMALL "embed_dim=384 depth=12 num_heads=6 "
#define ATT_MEDIUM "embed_dim=512 depth=12 num_heads=8 "
#define ATT_MEDIUMD "embed_dim=512 depth=20 num_heads=8 "
#define ATT_BETWIXT "embed_dim=640 depth=12 num_heads=10 "
#define ATT_BASE "embed_dim=768 depth=12 num_heads=12 "
#define ATT_LARGE "embed_dim=1024 depth=24 num_heads=16 "

/* Images. */
#define ATT_HALF "mean=0.5 std=0.5 "
#define ATT_IMAGENET "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "
#define ATT_CIFAR "mean=0.4914,0.4822,0.4465 std=0.2023,0.1994,0.2010 interpolation=bilinear "
#define ATT_CLIP "mean=0.48145466,0.4578275,0.40821073 std=0.26862954,0.26130258,0.27577711 "
#define ATT_SQUASHED "crop_mode=squash "
#define ATT_LINEAR_IMAGES "interpolation=bilinear "

#endif
