/* attscope/tensors.h - reads the named tensors of a file: safetensors, a PyTorch checkpoint, an archive of NumPy, or an
 * index or table of several files.
 *
 * The format is recognised by the contents, never by the file name. An index (model.safetensors.index.json,
 * pytorch_model.bin.index.json) is JSON whose object "weight_map" gives the file of each tensor. These files must lie
 * in its folder and hold exactly its tensors. They are read as one, without metadata. The table (.metadata) of
 * torch.distributed.checkpoint is a pickle that says where in the files beside it the chunks of each tensor are; a
 * tensor may be split along its first dimension only. PyTorch checkpoints are the files that torch.save() writes (.pth,
 * .pt, .pth.tar, .th, .bin): a zip archive of one folder with one pickle, or the pickles of PyTorch before 1.6.
 * Checksums of a zip archive are verified if it has them. A restricted interpreter reads the pickles: it builds tensors
 * and containers only, and never runs code from the file. TorchScript programs are read as the containers that their
 * parts are, without their code; so are modules that torch.save() wrote whole, with the names of their state_dict().
 * Archives of NumPy (.npz) are those of numpy.savez() and numpy.savez_compressed(), whose arrays are unpacked into
 * memory; slashes in names become dots. Other objects of a training run are skipped, also those of classes that
 * attscope does not know, unless they contain tensors where weights are expected. The tensors of a PyTorch checkpoint
 * are found in these steps:
 *
 *   1. the dictionary under the first of these keys that holds tensors; the search is repeated inside it: state_dict,
 *      model_state_dict, model, module, net, network, weights, params, teacher, student, online_model. If
 *      there is none, the file's only dictionary of tensors, if at most two tensors are beside it; else its own object:
 *      a dictionary, a list, or one tensor, which is named "tensor".
 *      In a table of torch.distributed.checkpoint, the first part of the tensors' names is the key, or the second if
 *      they share the first;
 *   2. the keys of nested containers are joined by dots;
 *   3. the names of wrappers (_orig_mod., _fsdp_wrapped_module., _checkpoint_wrapped_module., module.) are removed
 *      inside names (module. as the first or second part only), and prefixes that nearly all names have (module.,
 *      _orig_mod., model., backbone., ..., and what a program calls a ViT or ResNet in it). At most 16 names, and at
 *      most a quarter of them, may lack such a prefix (a counter). If names of one dictionary begin with
 *      several keys of step 1, or with one and the key of a moving average ("model.", "ema."), at least four names with
 *      each, they are read as if each key had a dictionary;
 *   4. weight and bias of the only linear layer of a classifier, under head., fc. or classifier., which may be numbered
 *      (fc.1.weight), are named head. in a ViT and fc. in a ResNet.
 *
 * Steps 3 and 4 also apply to safetensors files, archives of NumPy and an index.
 *
 * The path "FILE#PART" opens a part of a file: the tensors whose full names (the keys of all containers, joined by
 * dots) begin with "PART.", without this beginning. They replace steps 1 and 2, and no average is looked for. PART has
 * no '/'. A part that the file lacks is refused (ERR_NOT_FOUND) with a list of those beside it. A file that is itself
 * called "FILE#PART" has precedence. If step 1 finds several of its keys, the others are named by
 * att_tensors_skipped(). A checkpoint without such a key that has several dictionaries of tensors is refused
 * (ERR_FORMAT); the message lists them as parts. The state of an optimiser is none of them.
 *
 * In both formats, tensors that only training uses are skipped: mask_token; MAE's decoder
 * (decoder_embed., decoder_pos_embed, decoder_blocks., decoder_norm., decoder_pred.); the projection heads of DINO,
 * iBOT and DINOv2 (head.mlp.0., head.last_layer, dino_head., ibot_head., ...), of MSN (fc.fc1., fc.bn1., ...) and SwAV
 * (projection_head., prototypes.); the head of masked patches of BEiT and EVA-02 (lm_head.). If the network's names
 * begin with encoder_q., base_encoder. or, in a file with a projection and a predictor, encoder., the projection (fc.
 * or head. in it), second encoder, predictor and queue of MoCo and SimSiam are skipped as well. If they begin with
 * visual.trunk., open_clip's text network and projection are. If the network's names have any prefix of step 3, tensors
 * without it whose names show that they are part of a loss (criterion., loss_fn.weight, class_weights, ...), a metric
 * (val_acc., metrics., states of torchmetrics such as auc.preds), a moving average (ema., ema_model., ...), a teacher
 * (teacher.) or a projection (projector.) are skipped, too: programs with Lightning store them beside the network. They
 * do not count in step 3. Blocks of a ViT that DINOv2 has split into chunks ("blocks.<chunk>.<block>.") get their usual
 * names.
 *
 * A moving average of the weights (state_dict_ema, model_ema, ...) is found in the same way. If the file also has
 * weights, the average's tensors are called "ema.<name>" and come after the others; if not, the average is taken as the
 * weights.
 */
#ifndef ATTSCOPE_TENSORS_H
#define ATTSCOPE_TENSORS_H

#include <attscope/safetensors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open file. Several threads may read it at the same time, but they share the context's message. */
typedef struct att_tensors att_tensors;

/* Opens a file and checks everything except the tensors' contents. In a zip archive the contents are checked too, by
 * their checksums. The file stays open, and a tensor is read when it is requested. The file must not be changed
 * meanwhile, but it may be replaced by rename(). The file is not mapped into memory: if another program truncates it,
 * reading fails with ERR_IO instead of a signal.
 *
 * Memory: for safetensors at most 5 times the length of the header, which may have 100,000,000 bytes as in the format's
 * reference implementation. For a PyTorch checkpoint, while it is being opened: its pickles (at most 1 GiB) and about
 * 100 bytes for each value in them (at most 16,777,216).
 *
 * On success the caller owns *file and closes it with att_tensors_close(). Errors, all with a message that names the
 * file and, if there is one, the tensor: ERR_FORMAT (says what was found and expected; for a pickle, which function it
 * would call); ERR_UNSUPPORTED (a tensor of rank above ATT_MAX_RANK, quantised or sparse tensors, a compressed
 * archive); ERR_NOT_FOUND, ERR_IO, ERR_MEMORY, ERR_STOPPED (att_settings.stop).
 */
ATT_API ATT_MUST_CHECK att_status att_tensors_open(att_context *context, const char *path, att_tensors **file);
ATT_API void att_tensors_close(att_tensors **file);
/* Returns the number of bytes of `path` before "#PART"; the length of `path` if it names a whole file. */
ATT_API size_t att_tensors_path_length(const char *path);
/* Returns whether the file or folder of `path`, which may be "FILE#PART", exists. */
ATT_API bool att_tensors_exist(const char *path);

/* Returns the path of the file, without "#PART". */
ATT_API const char *att_tensors_path(const att_tensors *file);

/* Describes in words which part of a PyTorch checkpoint the tensors are, and what was left out: "PyTorch's state_dict
 * without the prefix module.; left out: epoch, optimizer". For safetensors "" or "without the prefix module.". Lives as
 * long as `file`. */
ATT_API const char *att_tensors_origin(const att_tensors *file);
/* Describes the tensors that are skipped, as only training or another network in the file uses them: "mask_token,
 * decoder_blocks.* (96)"; "" if there are none. Lives as long as `file`. */
ATT_API const char *att_tensors_skipped(const att_tensors *file);

/* The tensors, in the order of their bytes (safetensors) or of their names in the file (PyTorch). The name lives as
 * long as `file`. */
typedef struct att_tensors_info {
    const char *name;
    att_safetensors_dtype dtype;
    att_shape shape;
    int64_t count; /* number of elements */
} att_tensors_info;
ATT_API int att_tensors_count(const att_tensors *file);
ATT_API att_tensors_info att_tensors_at(const att_tensors *file, int index);
/* Returns the index of the tensor `name`, -1 if there is none. */
ATT_API int att_tensors_find(const att_tensors *file, const char *name);

/* Returns the value of a metadata key, NULL if there is none; it lives as long as `file`. For PyTorch checkpoints these
 * are values that training scripts store beside the weights, under the scripts' own keys: the architecture's name
 * (arch, architecture, model_name, model, timm_model); options of the training (args, hyper_parameters), as a JSON
 * object of those options whose values are texts, numbers, or lists of them, with "model_kwargs.<key>" for members of a
 * dictionary; arguments of the network's constructor (model_args, model_kwargs), as such an object, or, if they cannot
 * be represented, as a text that is not JSON; what OpenMMLab's programs store ("meta"): names and colours of the
 * classes, a class or its colour ("#0060ff") on each line, under the keys ATT_TENSORS_CLASSES and ATT_TENSORS_COLOURS,
 * and the configuration, a text in Python, under the key ATT_TENSORS_CONFIGURATION. Of a network that was saved whole:
 * the settings that its modules have as attributes and tensors do not show, such as {"num_heads": 3}, as a JSON object
 * under ATT_TENSORS_ATTRIBUTES, and timm's configuration under "config". */
#define ATT_TENSORS_ARCHITECTURE "arch"
#define ATT_TENSORS_OPTIONS "args"
#define ATT_TENSORS_HYPER_PARAMETERS "hyper_parameters"
#define ATT_TENSORS_CLASSES "meta.CLASSES"
#define ATT_TENSORS_COLOURS "meta.PALETTE"
#define ATT_TENSORS_CONFIGURATION "meta.config"
#define ATT_TENSORS_ATTRIBUTES "attributes"
ATT_API const char *att_tensors_metadata(const att_tensors *file, const char *key);
ATT_API int att_tensors_metadata_count(const att_tensors *file);
/* Returns key `index`, in the order of the header. */
ATT_API const char *att_tensors_metadata_key(const att_tensors *file, int index);

/* Reads tensor `index`, row-major, into out[0..count-1], converted from F32, F16, BF16 or F64 (rounded to nearest).
 * Errors: ERR_ARGUMENT if the tensor does not have `count` elements; ERR_UNSUPPORTED if it has another type; ERR_IO if
 * the file cannot be read or has become shorter; ERR_MEMORY (tensors with strides); ERR_STOPPED. */
ATT_API att_status att_tensors_read_f32(const att_tensors *file, int index, float *out, int64_t count);
/* Reads tensor `index`, row-major, without conversion. Errors: those of att_tensors_read_f32(), and ERR_MISMATCH if the
 * tensor's type is not `dtype`. */
ATT_API att_status att_tensors_read(const att_tensors *file, int index, att_safetensors_dtype dtype, void *out,
                                    int64_t count);

#ifdef __cplusplus
}
#endif
#endif
