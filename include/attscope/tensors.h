/* attscope/tensors.h - the named tensors of a file: safetensors, or a checkpoint of PyTorch.
 *
 * The kind is found from the contents, never from the name. What torch.save() writes (.pth, .pt, .pth.tar, .th, .bin:
 * a zip archive of one folder with one pickle, whose checksums are compared where it has them, or the pickles of
 * PyTorch before 1.6) is read by a machine that builds tensors and containers and nothing else: no code runs, whatever
 * the file says. What else a training keeps beside its weights is left out: of classes that attscope does not know,
 * too, unless tensors lie in their objects where weights are looked for. Of such a file these are its tensors:
 *
 *   1. the dictionary under the first of these keys that holds tensors, looked for again in what was found:
 *      state_dict, model_state_dict, model, module, net, network, weights, params, teacher, student; where there is
 *      none, what the file holds itself (a dictionary, a list or one tensor, which is named "tensor");
 *   2. names of what is nested are joined by dots;
 *   3. prefixes that all names share (module., _orig_mod., model., backbone., ...) are removed. A few names may lack
 *      them, such as a counter or the weights of a loss.
 *
 * Such prefixes are taken off in safetensors, too.
 *
 * Of self-supervised training, tensors that only the training uses are skipped, in both kinds: mask_token; MAE's
 * decoder (decoder_embed., decoder_pos_embed, decoder_blocks., decoder_norm., decoder_pred.); the projection heads of
 * DINO, iBOT and DINOv2 (head.mlp., head.last_layer, dino_head., ibot_head., ...); and where encoder_q. or
 * base_encoder. precedes the names of the network, MoCo's projection (fc. or head. in it), its second encoder,
 * predictor and queue. Blocks of a ViT that DINOv2 has split into chunks ("blocks.<chunk>.<block>.") get their usual
 * names.
 *
 * An average of the weights (state_dict_ema, model_ema, ...) is found in the same way. Where it lies beside them its
 * tensors are called "ema.<name>" and come after the others; where it is all there is, it is the weights.
 */
#ifndef ATTSCOPE_TENSORS_H
#define ATTSCOPE_TENSORS_H

#include <attscope/safetensors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open file. Reading is thread-safe except for the context's message. */
typedef struct att_tensors att_tensors;

/* Checks all of the file but the tensors' contents, and of a zip archive these too. The file stays open: a tensor is
 * read from it when it is asked for. The file must not be changed meanwhile; replacing it by renaming another one is
 * harmless. Nothing is mapped into memory, so that a file that another program shortens gives ERR_IO and no signal.
 *
 * Memory: for safetensors at most 5 times the length of the header, which may have 100,000,000 bytes as in the format's
 * reference implementation. For a checkpoint of PyTorch, until it is open, its pickles (at most 1 GiB) and about 100
 * bytes for each value in them (at most 16,777,216).
 *
 * On success *file is the caller's, freed by att_tensors_close(). Errors, each naming the file, and the tensor where
 * there is one: ERR_FORMAT (what was found and what was expected; what would have to be called to read a pickle);
 * ERR_UNSUPPORTED (a tensor of more than ATT_MAX_RANK dims, quantised or sparse, a compressed archive, a program);
 * ERR_NOT_FOUND, ERR_IO, ERR_MEMORY, ERR_STOPPED (att_settings.stop).
 */
ATT_API ATT_MUST_CHECK att_status att_tensors_open(att_context *context, const char *path, att_tensors **file);
ATT_API void att_tensors_close(att_tensors **file);

ATT_API const char *att_tensors_path(const att_tensors *file);

/* What of a checkpoint of PyTorch its tensors are, and what was left out, in words: "PyTorch's state_dict without the
 * prefix module.; left out: epoch, optimizer". Of safetensors, which tensors are all of: "", or "without the prefix
 * module.". Lives as long as `file`. */
ATT_API const char *att_tensors_origin(const att_tensors *file);
/* The tensors that were skipped, in words: "mask_token, decoder_blocks.* (96)"; "" where there are none. Lives as long
 * as `file`. */
ATT_API const char *att_tensors_skipped(const att_tensors *file);
/* Whether the tensors "ema.<name>" are the average that a checkpoint of PyTorch keeps beside its weights. */
ATT_API bool att_tensors_has_average(const att_tensors *file);

/* Tensors in the order of their bytes in the file (safetensors) or of their names in it (PyTorch); name lives as long
 * as `file`. */
typedef struct att_tensors_info {
    const char *name;
    att_safetensors_dtype dtype;
    att_shape shape;
    int64_t count; /* elements */
} att_tensors_info;
ATT_API int att_tensors_count(const att_tensors *file);
ATT_API att_tensors_info att_tensors_at(const att_tensors *file, int index);
/* Index of a name, -1 where there is none. */
ATT_API int att_tensors_find(const att_tensors *file, const char *name);

/* The metadata's value under a key, NULL where there is none; lives as long as `file`. PyTorch's files have at most
 * what training scripts write beside the weights, under its own keys: the architecture's name (arch, architecture,
 * model_name, model, timm_model); options of the training (args, hyper_parameters), which are given as a JSON object
 * with those whose values are texts, numbers, or lists of them, "model_kwargs.<key>" for a dictionary's; arguments of
 * the network's constructor (model_args, model_kwargs) as such an object, or as a text that is no JSON where they
 * cannot be given so. */
#define ATT_TENSORS_ARCHITECTURE "arch"
#define ATT_TENSORS_OPTIONS "args"
#define ATT_TENSORS_HYPER_PARAMETERS "hyper_parameters"
ATT_API const char *att_tensors_metadata(const att_tensors *file, const char *key);
ATT_API int att_tensors_metadata_count(const att_tensors *file);
/* Key `index` in the header's order. */
ATT_API const char *att_tensors_metadata_key(const att_tensors *file, int index);

/* Copies tensor `index`, row-major, to out[0..count-1], from F32, F16, BF16 or F64 (rounded to nearest). Errors:
 * ERR_ARGUMENT where the tensor does not have `count` elements; ERR_UNSUPPORTED where it has another type; ERR_IO where
 * the file cannot be read, or has become shorter since it was opened; ERR_MEMORY (of tensors with strides);
 * ERR_STOPPED. */
ATT_API att_status att_tensors_read_f32(const att_tensors *file, int index, float *out, int64_t count);
/* Copies tensor `index`, row-major, which must be of type `dtype` (ERR_MISMATCH), unchanged. */
ATT_API att_status att_tensors_read(const att_tensors *file, int index, att_safetensors_dtype dtype, void *out,
                                    int64_t count);

#ifdef __cplusplus
}
#endif
#endif
