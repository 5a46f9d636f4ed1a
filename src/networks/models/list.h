/* models/list.h - the families of networks, each by the name of its descriptor. A family whose signature
 * (att_family.signatures) is a tensor of other families, too, comes before them. */
#ifndef ATT_MODELS_LIST_H
#define ATT_MODELS_LIST_H

#define ATT_FAMILY_LIST(X) X(vit) X(eva) X(resnet) X(mixer) X(swin) X(attention_cnn) X(bert) X(convnext) X(regnet)

#endif
