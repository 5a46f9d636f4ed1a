/* attscope/task.h - what a network is trained for: head, targets, loss, metrics.
 *
 * A task defines the head of a network and its outputs, the targets of a sample and how they change with the
 * augmentation of its image, the loss, the metrics of an evaluation, and how predictions are shown. The loader,
 * training, evaluation and records use this definition. Tasks are found by name; "classification", "segment" and
 * "detect" are built in. A network's task is its option "task".
 */
#ifndef ATTSCOPE_TASK_H
#define ATTSCOPE_TASK_H

#include <attscope/data.h>
#include <attscope/drawing.h>
#include <attscope/event.h>
#include <attscope/graph.h>
#include <attscope/nn.h>
#include <attscope/options.h>
#include <attscope/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_json_writer att_json_writer; /* declared in attscope/lab/json.h */

/* One figure of an evaluation. In events it is called "eval_<name>". A metric called "loss" is the mean of the task's
 * loss over the evaluated images; the training loss has its unit. */
typedef struct att_metric {
    const char *name;  /* "top1" */
    const char *label; /* shown to people: "top-1" */
    const char *unit;  /* "%", "nats"; "": no unit */
    bool larger_is_better;
} att_metric;

enum { ATT_MAX_METRICS = 16 };

/* Description of a task. Every text is one line. */
typedef struct att_task_info {
    const char *name, *help;
    /* Scope of the head's parameters ("detector"). NULL: the head is the network's own classifier. */
    const char *head_scope;
    const att_metric *metrics; /* in the order in which they are reported */
    int metric_count;          /* 1..ATT_MAX_METRICS */
    int best;                  /* index of the metric that determines the best epoch by default */
    const att_option *options; /* options of targets and loss */
    int option_count;
} att_task_info;
/* The tasks of a context: the built-in ones, then the registered ones in the order of registration. context NULL: the
 * built-in ones. index: 0..count-1; all zero for another index. */
ATT_API int att_task_count(const att_context *context);
ATT_API att_task_info att_task_at(const att_context *context, int index);

/* The settings that a task gets from the network and its training. */
typedef struct att_task_setup {
    int classes;                      /* classes of the network's head */
    bool mixed;                       /* training mixes images with each other (att_mix_options) */
    bool taught;                      /* a teacher sees the images, too (att_train_options.teacher) */
    const att_option_values *options; /* options of the task; missing ones, or all if NULL, have their defaults */
    const att_option_values *network; /* options of the network; NULL: none is given */
} att_task_setup;

/* Adds to a graph what training needs besides the network: an input for each target, and the output "loss", a scalar
 * per sample. The new nodes have the scope "loss". Errors: ERR_NOT_FOUND (no such task; the graph lacks an output that
 * the loss reads), ERR_ARGUMENT (an option out of range or unknown to the task).
 *
 * "classification" reads the output "logits" [classes]. Its target is "target": the class, I32, which stands for t = (1
 * - smoothing) onehot + smoothing / classes (option "smoothing", in [0, 1); default 0.1, as in timm). If images are
 * mixed, the target is t itself, [classes] of the graph's type. The loss is L = -sum t ln softmax(logits). With the
 * option "bce_loss" L is att_binary_cross_entropy() of the same t; "bce_sum", "bce_pos_weight" and "bce_target_thresh"
 * (below 0: none) are its options sum, positive_weight and threshold, and ERR_ARGUMENT without "bce_loss".
 *
 * With `taught`, L becomes (1 - a) L + a D, where a is the option "distillation_alpha" (in [0, 1]; default 0.5) and D
 * follows from the option "distillation_type". With T = "distillation_tau" (default 1), the logits z and the teacher's
 * logits y for the same image, D is as in DeiT's code (Touvron et al., ICML 2021):
 *
 *   "hard" (default)  -ln softmax(z)_c, c the class with the largest y (the first of equal ones). Input
 *                     "teacher_class", I32
 *   "soft"            T^2 / classes KL(softmax(y / T) || softmax(z / T)). Input "teacher_logits", [classes] of the
 *                     graph's type
 *   "none"            L does not change
 *
 * The paper has no division by the number of classes C. The code has it, as it divides the divergence of a batch by the
 * number of its logits; its options then give the results that it is known for. The paper's (1 - l) L + l T^2 KL is,
 * but for a constant factor, the loss with a = l C / (1 - l + l C).
 *
 * "segment" reads the output "pixel_logits" [h, w, classes]. Its target is "mask" [H, W], I32, of the image's size: the
 * class of each pixel, or -1. The loss is att_upsampled_cross_entropy(), the mean over the pixels that have a class, or
 * with the option "pixel_mean" "all" (default: "labeled") over all pixels. If the network has an auxiliary head (its
 * option "head" is "uper"), "aux_weight" (default 0.4) times the same loss of that head's logits is added. Its other
 * output is "class_map" [H, W], I32, att_upsampled_argmax() of the logits. Its metrics compare the photographs' own
 * pixels (docs/segment.md).
 *
 * "detect" has the outputs of att_box_detections(): "boxes" [D, 4], "scores" [D], "classes" [D] and "count"; boxes are
 * in pixels of the network's input. Its metrics are COCO's twelve figures in per cent (docs/detect.md), "ap", "ap50"
 * and so on, of boxes in pixels of the photographs. Probes, for att_network_select_outputs(): "pyramid#", "objectness#"
 * and "deltas#" of each level, from 0; "proposals" [R, 4]; "box_logits" and "box_deltas" of each proposal.
 *
 * Its loss is that of Faster R-CNN (Ren et al., NeurIPS 2015), as in torchvision and mmdetection. Targets are
 * "image_size" and "true_boxes" [most_boxes, 5], as att_boxes_move() writes them. With S_a = "anchor_samples" (256), S
 * = "box_samples" (512) and beta = "box_beta" (1 / 9; mmdetection: 0)
 *
 *   L = 1 / S_a (sum BCE(objectness) + sum att_smooth_l1(deltas)) + 1 / S (sum CE(classes) + sum att_smooth_l1(deltas))
 *
 * The first part is over the anchors that att_anchor_sample() takes, with overlaps of 0.7 and 0.3 and half of them
 * positive at most; "anchor_best" ("overlap" or, as mmdetection, "box") and "anchor_least" (0; mmdetection: 0.3) choose
 * among the best anchors of a true box. The second part is over the boxes that att_box_sample() takes of
 * "train_proposals" (2000; mmdetection: 1000) proposals, from "train_level_proposals" (2000) of each level, with an
 * overlap of 0.5 and a quarter of them positive at most; deltas have the weights 10, 10, 5, 5 and are those of the
 * right class. Both programs divide by the number of samples in the batch, which is smaller than S only if an image has
 * too few candidates. "crowd_share" (0.5) is att_box_sampling.crowd; both programs: 1. att_task_setup.network describes
 * the head. The graph loses the answers and probes of this task.
 */
ATT_API att_status att_task_add_loss(const char *task, att_graph *graph, const att_task_setup *setup);

/* How predictions are shown. */
typedef struct att_answer_options {
    const char *const *labels; /* names of the classes, by number; classes from label_count on have none */
    int label_count;
    int topk;               /* number of classes to show, the most probable first; less than 1 means 1 */
    bool outputs;           /* show the network's outputs too */
    const uint8_t *colours; /* red, green and blue of each class of the network; NULL: those of att_class_colours() */
    /* The map from the photograph to the network's input: shares are those of the pixels that show the photograph.
     * NULL: of all pixels of the input */
    const att_geometry *geometry;
    const char *image; /* name of the photograph's file; NULL: unknown */
    /* Ids that the classes of the network have in the data set of its training; NULL: unknown */
    const int64_t *class_ids;
} att_answer_options;
/* No labels, no colours, no geometry, 5 classes, no outputs. */
ATT_API att_answer_options att_answer_options_defaults(void);
/* JSON key for the name of the image; the caller that begins the object writes it. */
#define ATT_ANSWER_IMAGE "image"

/* --- writing a task ----------------------------------------------------------------------------------------------
 *
 * A task is one descriptor. A program registers its own task and selects it by the option "task" of a network:
 *
 *     static const att_task mine = {.info = {.name = "mine", ...}, .head = head, .fields = fields, ...};
 *     att_task_register(context, &mine);
 *     att_options_set_text(&options, "task", "mine");
 *
 * Every later call for this context treats it like a built-in task; other contexts do not know it. Checkpoints record
 * its name; a program that opens such a checkpoint must register the task first. examples/task.c is a whole program;
 * docs/dev/adding-a-task.md has a longer example, with options.
 */

/* Values of a network that a head can use. ATT_NONE where the family has no such value. */
enum { ATT_FEATURE_STAGES = 4 };
typedef struct att_features {
    att_value tokens; /* [N, C]: result of the last block, after the last norm if that precedes the pooling */
    att_value pooled; /* [C]: the input of a classifier */
    /* [C]: the inputs of both classifiers of a distilled network, whose mean is `pooled`. */
    att_value classified[2];
    /* [1, N]: the share of each token in the mean of all, 0 for padding. ATT_NONE: all tokens after the prefix have the
     * same share. */
    att_value shares;
    int prefix;  /* tokens before those of the grid: class, distillation, registers */
    int grid[2]; /* height, width: the other tokens in rows from top left to bottom right; 0, 0: they form no grid */
    /* [N, C], with the prefix: result of each block of a family without stages (ViT, EVA, MLP-Mixer, attention_cnn), or
     * block_count 0. The list lives as long as the graph. */
    int block_count;
    const att_value *blocks;
    /* [h, w, C]: result of each stage (ResNet, Swin). Of a family without stages: the blocks that att_task.taps
     * chooses, without the prefix and before any norm after the last block. */
    int stage_count;
    att_value stages[ATT_FEATURE_STAGES];
} att_features;

/* The linear layer of a family's classifier, as in its checkpoint files. */
typedef struct att_classifier_form {
    const char *scope; /* scope of its tensors ("head"), whose first axis is the classes */
    att_value (*build)(const att_scope *scope, att_value features, int64_t classes);
    /* Scope of the second classifier of a distilled network; the logits are the mean of both. NULL: there is none. */
    const char *second;
} att_classifier_form;

/* A network without its head. */
typedef struct att_backbone {
    att_value image; /* the input with the image [h, w, c]; ATT_NONE: no input is an image */
    att_features features;
    att_classifier_form classifier;
    int classes;                      /* the option "num_classes", at least 1 */
    double drop_rate;                 /* rate of dropout in the head */
    const att_option_values *options; /* of the network */
} att_backbone;
/* Applies dropout and the family's classifiers to their features. Returns the logits [classes]. */
ATT_API att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone);

typedef struct att_label_sets att_label_sets;

/* A checked att_task_setup. */
typedef struct att_task_settings {
    int classes;
    bool mixed;
    bool taught;
    const att_option_values *network; /* NULL: no option is given */
    /* In an evaluation: the data set that is evaluated; att_batch.indices are those of its samples. NULL: training. */
    const att_dataset *evaluated;
    /* Set by evaluations that ask for it (att_evaluate_options); a task without classes ignores both. */
    const bool *competing;      /* [classes]: loss and metrics only compare these classes; NULL: all */
    const att_label_sets *real; /* right classes of each image, instead of its label; NULL: the label */
    /* The options, in the task's own struct: *(const mine_options *)(const void *)&settings->options. */
    att_settings_buffer options;
} att_task_settings;

/* The image of a prediction. */
typedef struct att_task_image {
    const att_dataset *dataset;
    int64_t index;   /* in the data set */
    bool unlabelled; /* the data set's classes are not those of the network: show their names, but not their numbers */
} att_task_image;

/* How a task that finds things in whole photographs makes its images; crop_pct is 1. */
typedef struct att_task_images {
    int height, width;         /* sides to resize to, as of the option "img_size"; 0: those of the network */
    const char *crop_mode;     /* word of att_preprocess */
    const char *interpolation; /* the same; NULL: that of the network */
} att_task_images;

/* A task. Functions that return att_status set the message with att_fail(). A member may be NULL only if its comment
 * allows it. */
typedef struct att_task {
    /* info.name and info.head_scope: 1 to 23 letters, digits and underscores, the first a letter. Names of metrics are
     * unique. No other task has an option of the same key, and neither has a family; the families' keys are compared
     * when a network with the task is made, which is then refused (ERR_ARGUMENT). */
    att_task_info info;

    /* --- options: ATT_OPTION_AT() places those of info.options in a struct of this size --- */
    size_t options_size; /* at most sizeof(att_settings_buffer); 0: no options */
    /* Sets every option to its default. NULL: no options. */
    void (*defaults)(att_option_values *options);
    /* Refuses (ERR_ARGUMENT) options that have no effect beside the others, or without a teacher unless
     * settings->taught. The message names flags. Called when the settings of a training run are checked; there is no
     * network then, so settings->classes is 0. NULL: every option has an effect. */
    att_status (*check_options)(att_context *context, const att_task_settings *settings);

    /* --- head --- */
    /* Chooses the blocks whose results become features.stages in a family that has blocks and no stages, unless the
     * option "taps" of the network lists them; 1 <= block_count. options: those of the network. Writes their numbers,
     * from 0, and returns how many there are, 1..ATT_FEATURE_STAGES. A head that reads stages needs it;
     * att_taps_last() chooses the last four. NULL: such a family has no stages. */
    int (*taps)(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES]);
    /* Images of a network that gets this task, in place of those of its family or of another task. A caller's options
     * and files of networks of this task have precedence. NULL: those stay. */
    const att_task_images *images;
    /* Name of an input [2] of the graph's type that head() adds: height and width of the part of the image's input that
     * shows the photograph; what lies to the right and below fills it up. Runs set it to the whole input unless they
     * know better; evaluations and training read the field of this name, which fill() writes. NULL: there is none. */
    const char *image_size;
    /* Adds the head and its outputs to the network. Parameters of the task's own head have the scope info.head_scope,
     * which no family and no other task uses; the scopes of the family are compared when a network is made. At least
     * one output is needed, and the name "loss" is not one. Reports failures with att_graph_fail(). */
    void (*head)(att_graph *graph, const att_backbone *backbone);

    /* --- targets --- */
    /* What fill() reads of a sample besides its class: ATT_ANNOTATION_MASK or ATT_ANNOTATION_BOXES; 0: nothing. Data
     * sets are opened with these annotations; one that lacks them is refused (ERR_MISMATCH). */
    unsigned annotations;
    /* Describes the targets of a sample and returns their number, 0..ATT_MAX_TARGETS. Every target has a name, which
     * lives as long as the descriptor. A training run is refused (ERR_ARGUMENT) if the loss reads a target that is
     * missing here. */
    int (*fields)(const att_task_settings *settings, att_field fields[ATT_MAX_TARGETS]);
    /* As in att_target_rules; `user` is the att_task_settings. NULL: crops cannot be chosen by the targets. */
    att_status (*choose_crop)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                              const att_geometry crops[ATT_CROP_CHOICES], double most, int *chosen);
    /* As in att_target_rules, for these fields; `user` is the att_task_settings. fill() runs on the loader's threads.
     * mix may be NULL: targets cannot be mixed. */
    att_status (*fill)(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields);
    void (*mix)(const void *user, void *const *own, const void *const *other, const att_mixing *mixing);
    /* Checks a data set before training or evaluation. Returns ERR_MISMATCH, with a message that names the sample, if
     * the network cannot predict a target (see att_task_check_classes()). NULL: every target is possible. */
    att_status (*check)(att_context *context, const att_task_settings *settings, const att_dataset *dataset);
    /* Name of the target that holds the sample's class (I32); instruments compare predictions with it. NULL: samples
     * have no class. */
    const char *class_field;
    /* Name of the output that holds a score for each class; the largest is the predicted class. Instruments read it.
     * NULL: there is none. */
    const char *class_output;

    /* --- loss --- */
    /* Builds the loss of a sample, a scalar, from the graph's outputs (att_graph_find_output()) and from targets, for
     * which it adds inputs by the targets' names. Returns ATT_NONE after att_graph_fail(). */
    att_value (*loss)(att_graph *graph, const att_task_settings *settings);

    /* --- learning from a teacher. The first two are NULL: the task does not support it --- */
    /* Describes the input of the loss that holds what it reads of a teacher's answer, if settings->taught. The name
     * NULL means that the options ask for no teacher. */
    att_field (*teacher_field)(const att_task_settings *settings);
    /* Writes this input for one image. answers: the outputs of the teacher, a network of the same task with as many
     * classes, F32, by name; row: the image's row. Runs on one thread. */
    void (*read_teacher)(const att_task_settings *settings, const att_batch *answers, int row, void *field);
    /* Logs how the loss uses the teacher's answers, before a training run with one. NULL: there is nothing to say. */
    void (*log_teacher)(att_context *context, const att_task_settings *settings);

    /* Sets the options of the loss so that nothing regularises it, such as label smoothing; adversarial images are made
     * with this loss. NULL: nothing does. */
    void (*plain)(att_option_values *options);

    /* --- metrics --- */
    /* Names of the outputs that observe() reads, NULL after the last: neither evaluations nor training runs compute
     * other ones, except the loss and probes. NULL: all. */
    const char *const *observed;
    /* Size of the state that accumulates the metrics, at least 1. The initial state is all zeros. The task owns memory
     * that a state points to, and end() frees it. */
    size_t state_size;
    /* Adds a batch to the state. answers: the network's outputs for these samples, F32, or I32 for
     * integers, by name (att_batch_field()). */
    att_status (*observe)(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers);
    /* For states that are counts, of many pixels for example: sets *values to the counts in the state, and *count to
     * their number, which follows from the settings alone. Several processes then each observe() their own samples
     * only, and add up the counts at the end, so that neither targets nor answers are exchanged. NULL: each process
     * gets the samples of all. */
    att_status (*counts)(att_context *context, void *state, const att_task_settings *settings, int64_t **values,
                         int64_t *count);
    /* Computes what report() and details() write from the state of all samples. Called once at the end of an
     * evaluation, by all processes. NULL: the state has it at any time. */
    att_status (*conclude)(att_context *context, void *state, const att_task_settings *settings);
    /* Writes the metrics of all samples so far: values[i] is info.metrics[i], NaN without samples, or before
     * conclude() where there is one. */
    void (*report)(const void *state, double *values);
    /* Sets *figures to figures beside the metrics, such as one for each class. They belong to the state, names
     * included. Called once at the end of an evaluation, by all processes. NULL: there are none. */
    att_status (*details)(att_context *context, void *state, const att_task_settings *settings,
                          const att_measurement **figures, int *count);
    /* Frees the memory that the state points to, but not the state. NULL: there is none. */
    void (*end)(att_context *context, void *state);

    /* --- passes over a photograph (att_pass_options): for tasks that give each pixel a class. All NULL: the task sees
     * each image once --- */
    /* Name of the output [h, w, classes], F32, that is interpolated: logits of the classes. */
    const char *pixel_logits;
    /* Name of the output [height, width], I32, with the class of each pixel. Passes replace all outputs by this one, of
     * the photograph's size. */
    const char *pixel_classes;
    /* As observe(), for the classes of the pixels of photograph `index` of settings->evaluated. Needs `counts`. */
    att_status (*observe_pixels)(att_context *context, void *state, const att_task_settings *settings, int64_t index,
                                 const att_mask *classes);

    /* --- predictions --- */
    /* As att_network_write() and att_network_describe(). If a member is NULL, the function of the library returns
     * ERR_UNSUPPORTED for the task. */
    att_status (*write)(att_context *context, const att_batch *answer, const att_answer_options *options,
                        att_json_writer *writer);
    att_status (*describe)(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user);
    /* Appends a caption for an image, as on the page of attention maps: one line with the prediction and the data set's
     * target. Of the options only `labels`, `label_count` and `geometry` are set. `text` is empty at first; leave it
     * empty if there is nothing to say. `answer` may lack the task's outputs (a network without a head). A caption of
     * more than 4096 bytes is truncated. NULL: no captions. */
    att_status (*caption)(att_context *context, const att_batch *answer, const att_answer_options *options,
                          const att_task_image *image, att_text *text);
    /* Paints the answer into drawing->image, which is a copy of the photograph; class_count and colours are set. Sets
     * drawing->classes if the answer gives each pixel a class. geometry: the map from the photograph to the network's
     * input. att_draw_classes() paints classes of pixels. After a failure the caller frees the drawing. NULL: answers
     * cannot be drawn. */
    att_status (*draw)(att_context *context, const att_batch *answer, const att_answer_options *options,
                       const att_geometry *geometry, att_drawing *drawing);
} att_task;

/* Registers a task with the context. The descriptor is not copied; it and everything that it points to must outlive the
 * context. Do not call this while another call for this context runs. Errors, which leave the context unchanged:
 * ERR_ARGUMENT (a name that is taken, also by an earlier registration, or invalid; a member that is missing or invalid;
 * an option without a default), ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_task_register(att_context *context, const att_task *task);

/* A `taps` function: the last ATT_FEATURE_STAGES blocks, or all if there are fewer. */
ATT_API int att_taps_last(const att_option_values *options, int block_count, int blocks[ATT_FEATURE_STAGES]);
/* For a `draw` function: sets drawing->classes to the class of each pixel of the photograph, [height][width], and
 * paints them. A pixel has ATT_MASK_NONE if its class is not one of drawing->class_count, or if its centre moves out of
 * the network's input. Of the colour of any other pixel, a half is the photograph's and a half that of its class.
 * Errors: ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_draw_classes(att_context *context, const uint16_t *classes,
                                                   const att_geometry *geometry, att_drawing *drawing);

/* For a `draw` function: paints the frame of a box (left, top, right, bottom in pixels of the image, which has three
 * channels) and, on a ground of its colour, the name of what is in it; name NULL: none. The name lies above the box, or
 * at its upper side if there is no room, and within the image, unless it is wider. Letters without accents, digits, "-"
 * and "." are shown, other characters as "?". */
ATT_API void att_draw_box(att_image *image, const double box[4], const uint8_t colour[3], const char *name);

/* A `check` function for targets that are the data set's classes: every class must be one of the network's. */
ATT_API att_status att_task_check_classes(att_context *context, const att_task_settings *settings,
                                          const att_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
