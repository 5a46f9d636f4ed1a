"""The two shared libraries: structs of the public headers, and the functions that the package calls.

A struct has the name and the members of the C struct; tests/python/test_layout.py compares both. The headers describe
them. Functions that the package does not call are left out.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

INTERFACE = "0.2"
"""Version of the headers that this module describes; the libraries must have the same."""

F32, F64, I32 = 0, 1, 3  # att_dtype
FULL, MIXED = 0, 1  # att_precision
LOG_WARNING = 1  # att_log_level
EVENTS = ("begin", "step", "measure", "epoch", "end", "warning", "alert")  # att_event_kind
EVENT_EPOCH = EVENTS.index("epoch")
ERR_STOPPED = 9  # att_status
SWITCH = 3  # ATT_OPTION_SWITCH
HEAD_REMOVED, HEAD_UNIFORM = 1, 2  # att_head_change
CURVES = ("deletion", "insertion")  # att_curve
MOST_STEPS = 28  # ATT_CURVE_MOST_STEPS
# att_safetensors_dtype, by the names that torch uses
TORCH_DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()

MAX_RANK = 5
MOST_SCALES = 8

LogFn = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
StopFn = ctypes.CFUNCTYPE(c_bool, c_void_p)

# The types of members. "text" is const char *, "address" any other pointer.
_types: dict[str, Any] = {
    "int": c_int, "unsigned": ctypes.c_uint, "bool": c_bool, "char": c_char, "double": c_double, "int64_t": c_int64,
    "float": ctypes.c_float, "int32_t": c_int32,
    "uint64_t": c_uint64, "size_t": c_size_t, "text": c_char_p, "address": c_void_p, "LogFn": LogFn, "StopFn": StopFn,
}  # fmt: skip


def _struct(name: str, members: str) -> Any:
    """A struct from its members, which are written nearly as in C."""
    fields = []
    for declaration in members.split(";"):
        kind, labels = declaration.split(maxsplit=1)
        element = POINTER(_types[kind[:-1]]) if kind.endswith("*") else _types[kind]
        for label in labels.split(","):
            member, _, count = label.strip().rstrip("]").partition("[")
            fields.append((member, element * int(count) if count else element))
    _types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return _types[name]


att_settings = _struct(
    "att_settings",
    """
    int threads; unsigned features; address allocate, allocate_user; LogFn log; address log_user; StopFn stop;
    address stop_user; size_t memory_limit
    """,
)
att_shape = _struct("att_shape", "int rank; int64_t dims[5]")
att_field = _struct("att_field", "text name; int dtype; att_shape shape")
att_batch = _struct(
    "att_batch",
    """
    int64_t epoch, number; int count, first_row, rows; int64_t* indices; int field_count; att_field* fields;
    address* data; bool local
    """,
)
att_image = _struct("att_image", "int width, height, channels; address pixels")
att_rand_augment = _struct(
    "att_rand_augment",
    """
    int layers; double magnitude, deviation, most, probability; bool increasing
    """,
)
att_transform_options = _struct(
    "att_transform_options",
    """
    int height, width, channels, crop, interpolation; double crop_pct, scale[2], ratio[2]; int pad;
    int longer, shorter, divisor; double factor[2], cat_max_ratio;
    double flip, vertical_flip; att_rand_augment rand_augment; bool three_augment; double color_jitter[3];
    bool photometric; double erase; int erase_mode, erase_count, occlude; double mean[3], std[3]
    """,
)
att_preprocess = _struct(
    "att_preprocess",
    """
    int height, width, in_chans; double mean[3], std[3], crop_pct; char crop_mode[8], interpolation[16];
    bool exif_transpose
    """,
)
att_option_value = _struct(
    "att_option_value",
    """
    char key[24]; int count; double numbers[2]; char text[256]
    """,
)
att_option = _struct(
    "att_option",
    """
    text key, alias, flag, value, help; double low, high; address choice, choice_in;
    text implied_by, instead_of, differs_as, not_in_tensors; int kind; bool detailed, not_compared, compare_presence;
    bool training, internal, of_maps; size_t offset, size
    """,
)
att_family_info = _struct(
    "att_family_info", "text name; att_option* options; int option_count; address hooks; int hook_count"
)
att_option_values = _struct("att_option_values", "int count; bool overflowed; att_option_value items[64]")
att_model_input = _struct("att_model_input", "att_field field; att_preprocess* image; int32_t least, most")
att_identity = _struct(
    "att_identity",
    """
    char name[64]; att_option_values options; att_preprocess preprocess; int test_height, test_width;
    double test_crop_pct; char origin[512], brief[512]
    """,
)
att_safetensors_tensor = _struct(
    "att_safetensors_tensor",
    """
    text name; int dtype; att_shape shape; address data
    """,
)
att_network_options = _struct(
    "att_network_options",
    """
    text model; att_option_values* options; bool averaged, test_images; uint64_t seed; text backend;
    int dtype, precision
    """,
)
att_answer_options = _struct(
    "att_answer_options", "text* labels; int label_count, topk; bool outputs; address colours, geometry; text image; address class_ids"
)
att_mask = _struct("att_mask", "int width, height; address classes")
att_drawing = _struct("att_drawing", "att_image image; att_mask classes; int class_count; address colours")
att_explorer_layer = _struct(
    "att_explorer_layer",
    """
    text scope; int heads, queries, tokens, prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w;
    bool causal, content, positions
    """,
)
att_explorer_branch = _struct("att_explorer_branch", "text scope, content")
att_relevance_map = _struct("att_relevance_map", "int height, width; double* values; int target; double logit")
att_named_map = _struct("att_named_map", "text name; att_relevance_map map")
FoundFn = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, POINTER(att_named_map), c_int)
_types["FoundFn"] = FoundFn
att_measurement = _struct(
    "att_measurement",
    """
    text instrument, node, statistic, unit; int head; double mean, deviation; int64_t count; double* samples;
    int sample_count; int64_t undefined; bool excluded; double bound, uniform
    """,
)
att_progress = _struct(
    "att_progress",
    """
    text stage; int epoch, epochs; int64_t update, updates, batch, batches;
    double images_per_second, seconds_left, loss, lr; int slowest_rank; double others_share; int64_t done, total; text unit
    """,
)
ProgressFn = ctypes.CFUNCTYPE(c_bool, c_void_p, POINTER(att_progress))
_types["ProgressFn"] = ProgressFn
att_map_options = _struct(
    "att_map_options",
    """
    text show, layers, heads, query, at; int target; text means, form, format, colours, scale; bool smooth;
    double opacity; int zoom; FoundFn found; address found_user; ProgressFn progress; address progress_user
    """,
)
att_encode_text = _struct("att_encode_text", "text bytes; size_t length")
att_token_ids = _struct("att_token_ids", "int32_t* tokens, types, special; int count")
att_token_texts = _struct(
    "att_token_texts",
    "int64_t count; att_token_ids* texts; int64_t shortened; int most; int32_t* numbers; address tokenizer",
)
att_texts_options = _struct(
    "att_texts_options", "text output; bool unit; int batch_size; ProgressFn progress; address progress_user"
)
att_evaluation = _struct(
    "att_evaluation",
    """
    int64_t count, judged, corrupt, not_finite; double metrics[16], images_per_second, wait_share
    """,
)
att_metric = _struct("att_metric", "text name, label, unit; bool larger_is_better")
att_task_info = _struct(
    "att_task_info",
    """
    text name, help, head_scope; att_metric* metrics; int metric_count, best; address options; int option_count
    """,
)
att_pass_options = _struct(
    "att_pass_options", "int longer, shorter, stride[2]; double scales[8]; int scale_count; bool flips; int batch_size"
)
att_image_limits = _struct(
    "att_image_limits", "int side; int64_t pixels; size_t file_bytes, memory; bool exif_transpose"
)
att_dataset_options = _struct(
    "att_dataset_options",
    """
    text split, class_map; text* trained; int trained_count, classes; unsigned annotations;
    int reduce_zero_label, ignore_label; bool unlabelled, coarse; size_t cache_bytes; att_image_limits limits
    """,
)
DetailedFn = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(att_measurement), c_int)
_types["DetailedFn"] = DetailedFn
att_evaluate_options = _struct(
    "att_evaluate_options",
    """
    address task_options; text backend; int precision, batch_size, workers; address measure, observed, observed_user;
    DetailedFn detailed; address detailed_user; bool unlabelled, skip_corrupt; int64_t limit;
    address corrupt_found, corrupt_user;
    int occlude; double fgsm; bool subset; text real_labels; address comm; text stage; ProgressFn progress;
    address progress_user
    """,
)
att_measuring_options = _struct(
    "att_measuring_options",
    """
    text with_; double budget; text nodes; int samples, maps; text map_images, raw, raw_arrays; int init_seed; text split, class_map;
    bool coarse_labels; int reduce_zero_label, ignore_label; size_t cache_bytes; int64_t limit; int batch_size,
    workers; bool skip_corrupt; address comm; text output, experiment; ProgressFn progress; address progress_user
    """,
)
att_measured = _struct(
    "att_measured",
    """
    address measure; att_evaluation evaluation; char split[64], folder[4096]
    """,
)
att_ablation_options = _struct(
    "att_ablation_options",
    """
    text heads, branches, tokens; bool uniform, greedy; double bound; int batch_size, workers; bool skip_corrupt;
    ProgressFn progress; address progress_user
    """,
)
att_ablation_image = _struct("att_ablation_image", "text name; int64_t index; int label; bool labelled")
att_embed_options = _struct(
    "att_embed_options",
    """
    text output; int batch_size, workers; bool skip_corrupt; ProgressFn progress; address progress_user
    """,
)
att_embedding = _struct(
    "att_embedding",
    """
    int64_t count; att_shape shape; float* values; int64_t* indices; int32_t* labels;
    double images_per_second, wait_share
    """,
)
att_embedding_result = _struct("att_embedding_result", "int64_t count; double top1, top5")
att_probe_options = _struct(
    "att_probe_options",
    """
    double c, held_out; int iterations; uint64_t seed; ProgressFn progress; address progress_user
    """,
)
att_probe_fit = _struct("att_probe_fit", "double c, top1; int iterations; bool converged")
att_probe = _struct(
    "att_probe",
    """
    int classes, channels; int32_t* numbers; double* weights, biases; double c, objective; int iterations;
    bool converged; int64_t held_out_count; att_probe_fit fits[15]; int fit_count
    """,
)
att_model_info = _struct("att_model_info", "text name, summary; int64_t parameters; double gmacs; int height, width")
att_model_tag = _struct("att_model_tag", "char name[64]; int num_classes; att_preprocess preprocess")
att_event_field = _struct("att_event_field", "text name; double number; text text")
att_event = _struct(
    "att_event",
    """
    int kind; int64_t epoch, step; double seconds; att_event_field* fields; int field_count;
    att_measurement* measurements; int measurement_count
    """,
)
EmitFn = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(att_event))
_types["EmitFn"] = EmitFn
att_sink = _struct("att_sink", "EmitFn emit; address close, user")
att_training_observer = _struct(
    "att_training_observer",
    """
    att_sink* sink; ProgressFn progress; address progress_user
    """,
)
att_train_result = _struct(
    "att_train_result",
    """
    int epochs; int64_t updates; double train_loss, eval[16], best_metric; int best_epoch; int64_t best_update;
    double images_per_second, wait_share, measure_share, teacher_share; int64_t train_corrupt, eval_corrupt
    """,
)
att_run_folder = _struct("att_run_folder", "char folder[4096], resume[4096], database[4096]; bool unnamed")
att_serve_options = _struct(
    "att_serve_options",
    """
    address paths; int path_count; text images, texts, tokenizer, network, labels; int port; address hosts; int host_count; bool framed
    """,
)
att_report_options = _struct("att_report_options", "text title; size_t map_bytes; text reference")

_object = POINTER(c_void_p)  # where a function stores a new object
_texts = POINTER(c_char_p)

_CORE: dict[str, tuple[Any, list[Any]]] = {
    "att_version": (c_char_p, []),
    "att_status_name": (c_char_p, [c_int]),
    "att_settings_defaults": (att_settings, []),
    "att_context_create": (c_int, [POINTER(att_settings), _object]),
    "att_context_destroy": (None, [_object]),
    "att_context_threads": (c_int, [c_void_p]),
    "att_context_message": (c_char_p, [c_void_p]),
    "att_options_set": (None, [POINTER(att_option_values), c_char_p, c_double]),
    "att_options_set_sides": (None, [POINTER(att_option_values), c_char_p, c_int, c_int]),
    "att_options_set_text": (None, [POINTER(att_option_values), c_char_p, c_char_p]),
    "att_model_family_count": (c_int, []),
    "att_model_family_at": (att_family_info, [c_int]),
    "att_model_count": (c_int, []),
    "att_model_at": (att_model_info, [c_int]),
    "att_model_tag_at": (c_int, [c_void_p, c_char_p, c_int, POINTER(att_model_tag)]),
    "att_network_read_image": (c_int, [c_void_p, c_char_p, c_int, POINTER(att_image)]),
    "att_dataset_open_images": (c_int, [c_void_p, _texts, c_int, POINTER(att_dataset_options), _object]),
    "att_dataset_count": (c_int64, [c_void_p]),
    "att_dataset_class_name": (c_char_p, [c_void_p, c_int]),
    "att_dataset_name": (c_char_p, [c_void_p, c_int64, c_char_p, c_size_t]),
    "att_dataset_short_name": (c_char_p, [c_void_p, c_int64, c_char_p, c_size_t]),
    "att_embed_options_defaults": (att_embed_options, []),
    "att_network_embed": (c_int, [c_void_p, c_void_p, POINTER(att_embed_options), POINTER(att_embedding)]),
    "att_embedding_free": (None, [c_void_p, POINTER(att_embedding)]),
    "att_embedding_check_sets": (c_int, [c_void_p, c_void_p, c_void_p]),
    "att_embedding_write": (c_int, [c_void_p, POINTER(att_embedding), c_void_p, c_char_p]),
    "att_probe_options_defaults": (att_probe_options, []),
    "att_embedding_probe": (
        c_int, [c_void_p, POINTER(att_embedding), POINTER(att_probe_options), POINTER(att_probe)],
    ),
    "att_probe_classify": (
        c_int, [c_void_p, POINTER(att_probe), POINTER(att_embedding), POINTER(att_embedding_result)],
    ),
    "att_probe_free": (None, [c_void_p, POINTER(att_probe)]),
    "att_image_read": (c_int, [c_void_p, c_char_p, c_int, c_void_p, POINTER(att_image)]),
    "att_image_free": (None, [c_void_p, POINTER(att_image)]),
    "att_transform_image": (
        c_int,
        [c_void_p, POINTER(att_transform_options), POINTER(att_image), c_uint64, c_int64, c_int64, c_void_p],
    ),
    "att_network_options_defaults": (att_network_options, []),
    "att_network_open": (c_int, [c_void_p, c_char_p, POINTER(att_network_options), _object]),
    "att_network_open_tensors": (
        c_int,
        [c_void_p, POINTER(att_safetensors_tensor), c_int, POINTER(att_network_options), _object],
    ),
    "att_network_wrap": (c_int, [c_void_p, c_void_p, POINTER(att_network_options), _object]),
    "att_network_close": (None, [_object]),
    "att_network_path": (c_char_p, [c_void_p]),
    "att_network_file": (c_void_p, [c_void_p]),
    "att_network_identity": (POINTER(att_identity), [c_void_p]),
    "att_network_model": (c_void_p, [c_void_p]),
    "att_network_weights": (c_void_p, [c_void_p]),
    "att_network_backend": (c_char_p, [c_void_p]),
    "att_network_precision": (c_int, [c_void_p]),
    "att_network_class_names": (_texts, [c_void_p, POINTER(c_int)]),
    "att_network_transform": (att_transform_options, [c_void_p]),
    "att_network_set_preprocess": (c_int, [c_void_p, POINTER(att_preprocess)]),
    "att_network_select_outputs": (c_int, [c_void_p, c_char_p]),
    "att_network_run": (c_int, [c_void_p, POINTER(att_batch), POINTER(att_batch)]),
    "att_network_run_planes": (c_int, [c_void_p, POINTER(c_void_p), c_int, c_int, c_int, POINTER(att_batch)]),
    "att_network_run_images": (c_int, [c_void_p, POINTER(att_image), c_int, POINTER(att_batch)]),
    "att_network_run_files": (c_int, [c_void_p, _texts, c_int, POINTER(att_batch)]),
    "att_texts_options_defaults": (att_texts_options, []),
    "att_network_tokenize": (
        c_int,
        [c_void_p, c_char_p, POINTER(att_encode_text), c_int64, c_int, c_char_p, POINTER(att_token_texts)],
    ),
    "att_token_texts_free": (None, [c_void_p, POINTER(att_token_texts)]),
    "att_network_embed_texts": (
        c_int,
        [c_void_p, POINTER(att_token_ids), c_int64, POINTER(att_texts_options), POINTER(att_embedding)],
    ),
    "att_embedding_free": (None, [c_void_p, POINTER(att_embedding)]),
    "att_network_write": (c_int, [c_void_p, POINTER(att_batch), POINTER(att_answer_options), c_void_p]),
    "att_network_draw": (
        c_int,
        [c_void_p, POINTER(att_batch), POINTER(att_answer_options), POINTER(att_image), POINTER(att_drawing)],
    ),
    "att_drawing_free": (None, [c_void_p, POINTER(att_drawing)]),
    "att_network_varies": (c_bool, [c_void_p]),
    "att_network_set_passes": (c_int, [c_void_p, POINTER(att_pass_options)]),
    "att_network_need_head": (c_int, [c_void_p, c_char_p]),
    "att_dataset_options_defaults": (att_dataset_options, []),
    "att_network_open_dataset": (c_int, [c_void_p, _texts, c_int, POINTER(att_dataset_options), _object]),
    "att_network_compare_classes": (c_int, [c_void_p, c_void_p, c_bool]),
    "att_dataset_close": (None, [_object]),
    "att_dataset_class_count": (c_int, [c_void_p]),
    "att_evaluate_options_defaults": (att_evaluate_options, []),
    "att_network_evaluate": (c_int, [c_void_p, c_void_p, POINTER(att_evaluate_options), POINTER(att_evaluation)]),
    "att_model_task": (att_task_info, [c_void_p]),
    "att_network_observe": (c_int, [c_void_p, c_char_p, c_char_p, _object]),
    "att_network_measure": (c_int, [c_void_p, c_void_p, POINTER(att_batch), POINTER(c_int32)]),
    "att_model_classes": (c_int, [c_void_p]),
    "att_model_input_at": (att_model_input, [c_void_p, c_int]),
    "att_measure_keep_samples": (c_int, [c_void_p, c_int]),
    "att_measure_observed": (POINTER(att_measurement), [c_void_p, POINTER(c_int)]),
    "att_measure_destroy": (None, [_object]),
    "att_explorer_create": (c_int, [c_void_p, _object]),
    "att_explorer_create_for": (c_int, [c_void_p, POINTER(att_batch), c_char_p, _object]),
    "att_network_most_tokens": (c_int, [c_void_p]),
    "att_tokenizer_piece": (c_char_p, [c_void_p, c_int]),
    "att_explorer_destroy": (None, [_object]),
    "att_explorer_layer_count": (c_int, [c_void_p]),
    "att_explorer_layer_at": (att_explorer_layer, [c_void_p, c_int]),
    "att_explorer_branch_count": (c_int, [c_void_p]),
    "att_explorer_branch_at": (att_explorer_branch, [c_void_p, c_int]),
    "att_explorer_change_head": (c_int, [c_void_p, c_int, c_int, c_int]),
    "att_explorer_remove_branch": (c_int, [c_void_p, c_int, c_bool]),
    "att_explorer_remove_token": (c_int, [c_void_p, c_int, c_bool]),
    "att_explorer_reset": (None, [c_void_p]),
    "att_explorer_run": (c_int, [c_void_p, POINTER(att_batch), POINTER(att_batch)]),
    "att_explorer_row": (c_int, [c_void_p, c_int, c_int, c_void_p, c_void_p]),
    "att_explorer_map": (c_int, [c_void_p, c_int, c_int, c_int, c_void_p]),
    "att_relevance_create": (c_int, [c_void_p, _object]),
    "att_relevance_destroy": (None, [_object]),
    "att_relevance_run": (c_int, [c_void_p, POINTER(att_batch), c_char_p, c_int, POINTER(att_relevance_map)]),
    "att_relevance_curve": (
        c_int,
        [c_void_p, POINTER(att_batch), POINTER(att_relevance_map), c_int, c_int, c_int, c_void_p, POINTER(c_double)],
    ),
    "att_map_options_defaults": (att_map_options, []),
    "att_map_files_open": (c_int, [c_void_p, POINTER(att_map_options), c_char_p, _object]),
    "att_map_files_close": (None, [_object]),
    "att_map_files_add": (c_int, [c_void_p, c_char_p, c_int32, c_void_p]),
    "att_map_files_add_dataset": (c_int, [c_void_p, c_void_p]),
    "att_map_files_add_texts": (c_int, [c_void_p, POINTER(att_token_texts)]),
    "att_map_files_finish": (c_int, [c_void_p]),
    # Public functions of lab/json.h, which libattscope contains.
    "att_json_writer_create": (c_int, [c_void_p, c_bool, _object]),
    "att_json_writer_destroy": (None, [_object]),
    "att_json_begin_object": (None, [c_void_p]),
    "att_json_end_object": (None, [c_void_p]),
    "att_json_writer_finish": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_size_t)]),
}

_LAB: dict[str, tuple[Any, list[Any]]] = {
    "att_measuring_options_defaults": (att_measuring_options, []),
    "att_measure_checkpoint": (
        c_int,
        [c_void_p, _texts, c_int, POINTER(att_measuring_options), POINTER(att_measured)],
    ),
    "att_measured_free": (None, [POINTER(att_measured)]),
    "att_ablation_options_defaults": (att_ablation_options, []),
    "att_ablate": (c_int, [c_void_p, c_void_p, POINTER(att_ablation_options), _object]),
    "att_ablate_texts": (c_int, [c_void_p, POINTER(att_token_texts), POINTER(att_ablation_options), _object]),
    "att_ablation_destroy": (None, [_object]),
    "att_ablation_losses": (POINTER(c_double), [c_void_p, c_int]),
    "att_ablation_right": (POINTER(c_bool), [c_void_p, c_int]),
    "att_ablation_image_at": (att_ablation_image, [c_void_p, c_int64]),
    "att_ablation_write_json": (None, [c_void_p, c_void_p]),
    "att_ablation_write_npz": (c_int, [c_void_p, c_char_p]),
    "att_recipe_flags": (c_int, [c_void_p, _object]),
    "att_recipe_read": (c_int, [c_void_p, c_char_p, c_void_p, _object]),
    "att_yaml_destroy": (None, [_object]),
    "att_flags_destroy": (None, [_object]),
    "att_flags_size": (c_size_t, [c_void_p]),
    "att_flags_default": (None, [c_void_p, c_void_p]),
    "att_flags_set": (c_int, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "att_training_open": (c_int, [c_void_p, c_void_p, _object]),
    "att_training_run": (c_int, [c_void_p, POINTER(att_training_observer), POINTER(att_train_result)]),
    "att_training_folder": (POINTER(att_run_folder), [c_void_p]),
    "att_training_close": (None, [_object]),
    "att_serve_options_defaults": (att_serve_options, []),
    "att_server_start": (c_int, [c_void_p, POINTER(att_serve_options), _object]),
    "att_server_url": (c_char_p, [c_void_p]),
    "att_server_close": (None, [_object]),
    "att_report_options_defaults": (att_report_options, []),
    "att_report_write": (c_int, [c_void_p, _texts, c_int, POINTER(att_report_options), c_char_p, c_void_p]),
}


def bundled(*path: str) -> Path:
    """A file that the wheel contains; Debian's package has none and uses the system's libraries."""
    return Path(__file__).parent.joinpath(*path)


def _load(name: str, functions: dict[str, tuple[Any, list[Any]]]) -> ctypes.CDLL:
    file = f"{name}.so.{INTERFACE}"
    own = bundled("lib", file)
    try:
        library = ctypes.CDLL(str(own) if own.exists() else file)
    except OSError as error:
        raise ImportError(
            f"{file} cannot be loaded ({error}); install the package {name}{INTERFACE}, or attscope's wheel"
        ) from error
    for function, (result, arguments) in functions.items():
        entry = getattr(library, function)
        entry.restype, entry.argtypes = result, arguments
    return library


core = _load("libattscope", _CORE)
lab = _load("libattscope-lab", _LAB)
version: str = core.att_version().decode()
if version.rsplit(".", 1)[0] != INTERFACE:
    raise ImportError(f"libattscope has version {version}, and this package needs {INTERFACE}.x")


def status_name(status: int) -> str:
    """ "ERR_IO" and the like"""
    name: bytes = core.att_status_name(status)
    return name.decode()
