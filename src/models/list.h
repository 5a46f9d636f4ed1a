/* models/list.h - every family of networks: one line here, one file that ends in its descriptor. */
#ifndef ATT_MODELS_LIST_H
#define ATT_MODELS_LIST_H

#define ATT_FAMILY_LIST(X) X(vit) X(resnet) X(mixer)

#endif
