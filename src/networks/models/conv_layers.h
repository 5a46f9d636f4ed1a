/* models/conv_layers.h - which convolutions of a network are attention, and the same network with others of them. */
#ifndef ATT_MODELS_CONV_LAYERS_H
#define ATT_MODELS_CONV_LAYERS_H

#include <attscope/models.h>

enum { ATT_CONV_NAME = 128, ATT_MOST_CONVS = 1024 };

typedef struct att_conv_layers {
    att_context *context;
    const att_model *model;
    const att_weights *weights;
    bool chosen[ATT_MOST_CONVS]; /* by the number of the convolution */
    int count;                   /* of the chosen ones */
} att_conv_layers;

att_conv_layers att_conv_layers_of(const att_model *model, const att_weights *weights);
/* Writes the name of convolution `index`; false past the last. */
bool att_conv_layer_at(const att_conv_layers *layers, int index, char name[ATT_CONV_NAME]);
/* Index in the weights of the parameter "<layer>.<parameter>"; -1 if there is none. */
int att_conv_parameter(const att_weights *weights, const char *layer, const char *parameter);
/* Whether attention is in the place of the convolution of this name. */
bool att_conv_attends(const att_conv_layers *layers, const char *layer);

/* Copies the next name of a list, without blanks around it, and moves *at past its comma. Returns false at the end. A
 * longer name is cut off. */
bool att_conv_next_name(const char **at, char name[ATT_OPTION_TEXT_BYTES]);
/* Chooses the layers in a list of names and patterns, or "all", that are attention (attention true) or convolutions
 * (false). A layer of the other kind is refused if it is named, and left as it is if a pattern matches it. Errors:
 * those of att_model_to_attention(). */
att_status att_conv_layers_choose(att_conv_layers *layers, const char *list, bool attention);

/* The convolutions of a network by number, and which of them are attention. */
typedef struct att_conv_names {
    bool (*at)(const void *user, int index, char *name, size_t size); /* writes a name; false past the last */
    bool (*attends)(const void *user, int index, const char *name);
    const void *user;
} att_conv_names;
/* Writes the value of the option "attention_layers" that names those that are attention; false if it is too long. */
bool att_conv_names_format(const att_conv_names *names, char *text, size_t size);

/* Makes the network with other convolutions as attention, the value of its option "attention_layers". Parameters that
 * both have are copied, the others have their initial values. After a failure the caller frees what was made. */
att_status att_conv_layers_remake(const att_conv_layers *layers, const char *attention_layers, att_model **model,
                                  att_weights **weights);

#endif
