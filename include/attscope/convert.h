/* attscope/convert.h - makes networks whose convolutions are attention, and convolutions of such attention again;
 * writes networks in the form of other programs. */
#ifndef ATTSCOPE_CONVERT_H
#define ATTSCOPE_CONVERT_H

#include <attscope/models.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest error that conversions promise, relative to the largest output. */
#define ATT_CONVERSION_ERROR 1e-5

/* A conversion. */
typedef struct att_conversion {
    att_model *model;     /* the converted network; its option "attention_layers" names the layers that are attention */
    att_weights *weights; /* its weights */
    int layers, heads;    /* converted layers, and the heads that they have or had */
    /* Of att_model_to_attention(): */
    double alpha;
    double leak; /* 4 exp(-alpha), a bound of the weight that a head gives to pixels around its center */
    /* Of att_model_to_convolution(): */
    double error;    /* the largest of the layers' errors, see there */
    char worst[128]; /* the layer that has it */
} att_conversion;
/* Frees model and weights. */
ATT_API void att_conversion_free(att_conversion *conversion);

/* Makes the network in which attention takes the place of convolutions, with the same outputs but for an error that
 * falls with alpha. A layer with a kernel of K x K becomes K K heads (att_nn_attention_conv()). Head (i, j) has its
 * center Delta at the shift of the kernel's row i and column j, the score -alpha |delta - Delta|^2 for the shift delta
 * from query to key, and the kernel's matrix weight[:, :, i, j] as projection. For alpha to infinity it selects one
 * pixel. Zeros around the map are keys, a stride leaves out queries, and bias and groups are those of the convolution.
 * (Cordonnier et al., ICLR 2020, theorem 1)
 *
 * layers: a list of names of convolutions separated by commas, which may contain '*' and '?', or "all". A layer that is
 * attention already may only be meant by a pattern, and stays as it is. alpha: 13 to 1e6; 0 means ATT_ATTENTION_ALPHA.
 * On success the caller owns the model and the weights of *conversion, and frees them with
 * att_conversion_free(). After a failure *conversion is unchanged. Errors: ERR_NOT_FOUND (a name that no
 * layer has; the message has the nearest name), ERR_UNSUPPORTED (a network without convolutions; a layer that is no
 * convolution of the network itself; no layer is left to convert), ERR_ARGUMENT (alpha; no names), ERR_NONFINITE (a
 * parameter is not finite), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_model_to_attention(const att_model *model, const att_weights *weights,
                                                         const char *layers, double alpha, att_conversion *conversion);

/* Makes the network in which layers of attention that are in the place of convolutions are convolutions again, with the
 * kernel, stride, groups and bias that the attention has. The output pixel q of a layer receives x_k M(q, k) from input
 * pixel k, M(q, k) = sum_h a_h(q, k) W_h, with the weight a_h(q, k) that head h gives to k and its projection W_h. For
 * the query q in the middle of the map, the convolution is T(q, k) = M(q, k) if its kernel reaches k, else 0. That is
 * the one which minimises the error |M(q, .) - T(q, .)| / |M(q, .)| (Frobenius norms over all keys and channels). Heads
 * as att_model_to_attention() makes them give the weights of its convolutions back, but for an error of the order of
 * exp(-alpha). If heads were trained and moved, this is the nearest convolution.
 *
 * layers: as for att_model_to_attention(). A layer that is a convolution already may only be meant by a pattern, and
 * stays as it is. On success the caller owns the model and the weights of *conversion, and frees them with
 * att_conversion_free(). After a failure *conversion is unchanged. Errors: ERR_NOT_FOUND (a name that no
 * layer has), ERR_UNSUPPORTED (no attention in the place of convolutions; a layer of another kind; the names of the
 * layers that stay attention are too long for the option), ERR_ARGUMENT (no names), ERR_NONFINITE (a parameter is not
 * finite), ERR_MISMATCH (weights of another network), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_model_to_convolution(const att_model *model, const att_weights *weights,
                                                           const char *layers, att_conversion *conversion);

/* Returns the number of layers of attention that are in the place of convolutions. */
ATT_API int att_model_attention_convolutions(const att_model *model, const att_weights *weights);

/* Runs two networks with the same inputs and outputs on `count` images of normally distributed numbers, drawn from
 * `seed`. Sets *error to the largest absolute difference of their outputs, divided by the largest absolute output of
 * the first network. Errors: ERR_MISMATCH (other inputs or outputs), ERR_NONFINITE (an output is not finite),
 * ERR_UNSUPPORTED (all outputs of both are 0, which compares nothing), those of sessions. */
ATT_API ATT_MUST_CHECK att_status att_models_compare(const att_model *first, att_weights *first_weights,
                                                     const att_model *second, att_weights *second_weights, int count,
                                                     uint64_t seed, double *error);

/* Writes a network so that another program opens it. program:
 *   "transformers"  path: a new folder, which gets config.json, preprocessor_config.json and model.safetensors, for
 *                   AutoModel, AutoModelForImageClassification and AutoImageProcessor. ERR_IO if there is something at
 *                   `path` that is no empty folder
 *   "torchvision"   path: a file, which is replaced: safetensors for load_state_dict(). It does not tell torchvision
 *                   how images are prepared; the log says what the network expects. attscope reads that, and which
 *                   network it is, from the metadata of the file
 *
 * The network is written as the first class of the program that can express it: the files are read back, and must give
 * the same options, the same preprocessing and, bit for bit, the same weights. One pixel of a crop is no difference:
 * the transformers library begins the crop at floor(rest / 2), timm (crop_mode "center") at rest / 2 rounded to even.
 * The log names the class. identity: of the network, whose classifier may be missing. weights: its weights, in F32.
 * class_names: [classes], stored as id2label, "LABEL_0" and so on for NULL. Tensors that the program computes or draws
 * anew, and that do not change the answer, are not written: poolers, mask tokens, counters of batches.
 *
 * Errors, after which nothing is left behind: ERR_UNSUPPORTED for a network that no class of the program can express
 * (the message says what: a tensor, options); ERR_ARGUMENT (program); ERR_IO, ERR_MEMORY, ERR_STOPPED. */
ATT_API ATT_MUST_CHECK att_status att_model_export(att_context *context, const att_identity *identity,
                                                   const att_weights *weights, const char *const *class_names,
                                                   const char *program, const char *path);

#ifdef __cplusplus
}
#endif
#endif
