#include "base/flags/unsupported_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/flags/flags.h"

/* Names from timm's train.py, validate.py, inference.py and benchmark.py (1.0.x and the main branch of August 2026),
 * and from DeiT's main.py. */
static const struct {
    const char *name;
    const char *off_value; /* a value that turns the flag off, besides false, 0 and an empty value; "*": any value in a
                            * file, as the flag has no effect alone */
    const char *instead;   /* what to use in attscope; NULL: nothing */
} refused[] = {
    {"apex-amp", NULL, "--amp is mixed precision"},
    {"attn-only", NULL, NULL},
    {"aug-splits", NULL, NULL},
    {"bn-eps", NULL, NULL},
    {"bn-momentum", NULL, NULL},
    {"clip-mode", "norm", "gradients are clipped by their norm"},
    {"color-jitter-prob", "*", NULL},
    {"cooldown-epochs", NULL, NULL},
    {"cosub", NULL, NULL},
    {"crop-border-pixels", NULL, NULL},
    {"dataset", NULL, "DATA is a folder, an archive or tars"},
    {"dataset-download", NULL, "DATA is a folder, an archive or tars"},
    {"dataset-trust-remote-code", NULL, NULL},
    {"distill-loss-weight", "*", "--distillation-alpha weights the teacher's part of the loss"},
    {"drop-block", NULL, NULL},
    {"drop-connect", NULL, NULL},
    {"epoch-repeats", NULL, NULL},
    {"gaussian-blur-prob", NULL, NULL},
    {"grayscale-prob", NULL, NULL},
    {"head-init-bias", NULL, NULL},
    {"head-init-scale", NULL, NULL},
    {"inat-category", "name", NULL},
    {"input-img-mode", NULL, NULL},
    {"input-key", NULL, NULL},
    {"jsd-loss", NULL, "the loss is cross entropy"},
    {"kd-distill-type", "*", NULL},
    {"kd-loss-type", "*", NULL},
    {"kd-model-name", NULL, "--teacher names the checkpoint of a teacher"},
    {"kd-student-feature-dim", "*", NULL},
    {"kd-teacher-feature-dim", "*", NULL},
    {"kd-temperature", "*", "--distillation-tau is the temperature"},
    {"kd-token-distill-type", "*", NULL},
    {"log-freq", "*", NULL},
    {"log-wandb", NULL, "the run's folder has metrics.jsonl and scalars for TensorBoard"},
    {"lr-base-scale", NULL, NULL},
    {"lr-base-size", "256", "--lr-base is meant for a batch of 256"},
    {"lr-cycle-decay", "*", NULL},
    {"lr-cycle-limit", "1", NULL},
    {"lr-cycle-mul", "*", NULL},
    {"lr-k-decay", "1", NULL},
    {"lr-noise", NULL, NULL},
    {"lr-noise-pct", "*", NULL},
    {"lr-noise-std", "*", NULL},
    {"metrics-avg", NULL, NULL},
    {"model-dtype", "float32", "weights are kept in f32"},
    {"model-kwargs", NULL, "each argument of a network is a separate option"},
    {"naflex-loader", NULL, NULL},
    {"naflex-loss-scale", "*", NULL},
    {"naflex-max-seq-len", "*", NULL},
    {"naflex-patch-size-probs", "*", NULL},
    {"naflex-patch-sizes", "*", NULL},
    {"naflex-patchify-channels-first", "*", NULL},
    {"naflex-train-seq-lens", "*", NULL},
    {"native-amp", NULL, "--amp is mixed precision"},
    {"no-resume-opt", NULL, "--initial-checkpoint starts a new training from a file's weights"},
    {"no-train-mode", NULL, NULL},
    {"num-samples", NULL, NULL},
    {"opt-kwargs", NULL, "--momentum, --opt-betas and --opt-eps are options of their own"},
    {"patience-epochs", "*", NULL},
    {"pretrained", NULL,
     "training starts from pretrained weights with --initial-checkpoint timm/NETWORK.TAG, and other commands take "
     "timm/NETWORK.TAG as their checkpoint"},
    {"pretrained-path", NULL, "training starts from a file's weights with --initial-checkpoint FILE"},
    {"reparam", NULL, NULL},
    {"resplit", "*", NULL},
    {"results-format", "csv", NULL},
    {"save-images", NULL, NULL},
    {"split-bn", NULL, NULL},
    {"start-epoch", NULL, "--resume continues a run where it stopped"},
    {"target-key", NULL, NULL},
    {"task-loss-weight", "*", NULL},
    {"test-pool", NULL, NULL},
    {"tf-preprocessing", NULL, NULL},
    {"train-batch-sizes", NULL, NULL},
    {"train-batches-per-epoch", NULL, "--eval-every and --updates count a run in updates"},
    {"train-steps-per-epoch", NULL, "--eval-every and --updates count a run in updates"},
    {"train-img-sizes", NULL, NULL},
    {"train-mode", "true", NULL},
    {"train-num-samples", NULL, NULL},
    {"train-size-probs", "*", NULL},
    {"train-size-random-mix", "*", NULL},
    {"train-size-schedule", "*", NULL},
    {"train-size-schedule-spread", "*", NULL},
    {"tta", NULL, NULL},
    {"val-interval", "1", "--eval-every is the number of updates between two evaluations"},
    {"val-num-samples", NULL, NULL},
    {"valid-labels", NULL, "--subset lets only the classes of DATA compete"},
    {"validation-batch-size", NULL, "evaluation takes --batch-size"},
    {"variable-batch-loss-scale", "*", NULL},
    {"wandb-project", "*", NULL},
    {"wandb-resume-id", "*", NULL},
    {"wandb-tags", "*", NULL},
    {"warmup-prefix", NULL, NULL},
};
enum { REFUSED = sizeof refused / sizeof *refused };

static const char *const refused_of_deit[] = {"attn-only", "cosub", "inat-category", "no-train-mode", "train-mode"};

/* Flags of these scripts, and short forms of them, whose meaning attscope has by another name. */
static const struct {
    const char *name;
    const char *own; /* the flag of attscope; "": a command */
    const char *instead;
} renamed[] = {
    {"bce", "bce-loss", "use --bce-loss"},
    {"data-path", "data-dir", "give the folder as DATA, or use --data-dir"},
    {"data-set", "data-dir", "leave it out, because the format of DATA is recognised"},
    {"eval", "", "use attscope validate"},
    {"eval-crop-ratio", "crop-pct", "use --crop-pct"},
    {"finetune", "initial-checkpoint", "use --initial-checkpoint"},
    {"kd-loss", "teacher", "use --teacher and --distillation-type"},
    {"no-repeated-aug", "aug-repeats", "use --aug-repeats 0"},
    {"repeated-aug", "aug-repeats", "use --aug-repeats 3"},
    {"src", "train-crop-mode", "use --train-crop-mode src"},
    {"teacher-path", "teacher", "use --teacher"},
    {"unscale-lr", "lr", "leave it out, because --lr is never scaled by the batch size"},
};
enum { RENAMED = sizeof renamed / sizeof *renamed };

/* Flags that only affect the speed, memory, device or number of processes of PyTorch. */
static const struct {
    const char *name;
    att_flag_words takes;
    const char *off_value; /* timm's default, besides false, 0 and an empty value; it is ignored without a note */
} ignored[] = {
    {"amp-impl", ATT_TAKES_ONE, "*"},
    {"aot-autograd", ATT_TAKES_NOTHING, NULL},
    {"channels-last", ATT_TAKES_NOTHING, NULL},
    {"device", ATT_TAKES_ONE, "cuda"},
    {"device-modules", ATT_TAKES_SEVERAL, NULL},
    {"dist-bn", ATT_TAKES_ONE, "*"},
    {"dist-eval", ATT_TAKES_NOTHING, NULL},
    {"dist-url", ATT_TAKES_ONE, "*"},
    {"distributed", ATT_TAKES_NOTHING, NULL},
    {"fast-norm", ATT_TAKES_NOTHING, NULL},
    {"fuser", ATT_TAKES_ONE, NULL},
    {"grad-checkpointing", ATT_TAKES_NOTHING, NULL},
    {"local-rank", ATT_TAKES_ONE, "*"},
    {"model-ema-force-cpu", ATT_TAKES_NOTHING, NULL},
    {"no-ddp-bb", ATT_TAKES_NOTHING, NULL},
    {"no-pin-mem", ATT_TAKES_NOTHING, NULL},
    {"no-prefetcher", ATT_TAKES_NOTHING, NULL},
    {"num-gpu", ATT_TAKES_ONE, "1"},
    {"pin-mem", ATT_TAKES_NOTHING, NULL},
    {"retry", ATT_TAKES_NOTHING, NULL},
    {"synchronize-step", ATT_TAKES_NOTHING, NULL},
    {"torchcompile", ATT_TAKES_COMPILER, NULL},
    {"torchcompile-mode", ATT_TAKES_ONE, NULL},
    {"torchscript", ATT_TAKES_NOTHING, NULL},
    {"use-multi-epochs-loader", ATT_TAKES_NOTHING, NULL},
    {"worker-seeding", ATT_TAKES_ONE, "*"},
    {"world-size", ATT_TAKES_ONE, "1"},
};
enum { IGNORED = sizeof ignored / sizeof *ignored };

/* Names of parts match, too: "model_kwargs.img_size" is a part of model_kwargs. */
static bool same_name(const char *name, const char *own)
{
    while (*name && (*name == *own || (*name == '_' && *own == '-')))
        name++, own++;
    return (!*name || *name == '.') && !*own;
}

static int find_refused(const char *name)
{
    int index = REFUSED - 1;
    while (index >= 0 && !same_name(name, refused[index].name))
        index--;
    return index;
}

static int find_renamed(const char *name)
{
    int index = RENAMED - 1;
    while (index >= 0 && !same_name(name, renamed[index].name))
        index--;
    return index;
}

static int find_ignored(const char *name)
{
    int index = IGNORED - 1;
    while (index >= 0 && !same_name(name, ignored[index].name))
        index--;
    return index;
}

static const char *script_of(const char *name)
{
    for (size_t i = 0; i < sizeof refused_of_deit / sizeof *refused_of_deit; i++)
        if (same_name(name, refused_of_deit[i]))
            return "DeiT's";
    return "timm's";
}

att_unsupported_flag att_unsupported_flag_find(const char *name)
{
    int index = find_refused(name), other = find_renamed(name);
    if (other >= 0)
        return (att_unsupported_flag){.own = renamed[other].own, .instead = renamed[other].instead};
    if (index >= 0)
        return (att_unsupported_flag){.script = script_of(name), .instead = refused[index].instead};
    return (att_unsupported_flag){0};
}

att_flag_words att_unsupported_flag_takes(const char *name)
{
    int index = find_ignored(name);
    return index >= 0 ? ignored[index].takes : ATT_TAKES_UNKNOWN;
}

/* Whether the word is a backend of torch.compile(). timm takes any word after the flag as its value, even a data set;
 * attscope takes known backends only. */
bool att_is_torch_compiler(const char *word)
{
    static const char *const names[] = {"inductor", "cudagraphs", "eager",    "aot_eager", "aot_ts",
                                        "onnxrt",   "openxla",    "tensorrt", "tvm",       "ipex"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

void att_unsupported_flag_ignore(att_ignored_flags *list, const char *name)
{
    int index = find_ignored(name);
    if (index < 0)
        return; /* a flag of `refused` whose value turns it off */
    const char *own = ignored[index].name;
    for (int i = 0; i < list->count; i++)
        if (list->names[i] == own)
            return;
    if (list->count < ATT_MOST_IGNORED)
        list->names[list->count++] = own;
}

/* Numbers are compared by value: "1.0" equals "1". */
static bool is_same_value(const char *a, const char *b)
{
    char *a_end, *b_end;
    double left = strtod(a, &a_end), right = strtod(b, &b_end);
    bool numbers = a_end != a && !*a_end && b_end != b && !*b_end;
    return numbers ? left == right : strcmp(a, b) == 0;
}

static bool is_off_value(const char *off_value, const char *value)
{
    static const char *const nothing[] = {"", "0", "{}", "[]"};
    bool truth, off = (off_value && is_same_value(value, off_value)) || (att_flag_to_truth(value, &truth) && !truth);
    for (size_t i = 0; !off && i < sizeof nothing / sizeof *nothing; i++)
        off = is_same_value(value, nothing[i]);
    return off;
}

static bool is_off(const char *off_value, const char *const *values, int count)
{
    return count == 0 || (off_value && strcmp(off_value, "*") == 0) ||
           (count == 1 && is_off_value(off_value, values[0]));
}

bool att_unsupported_flag_is_off(const char *name, const char *word)
{
    int index = find_refused(name);
    return index >= 0 && is_off_value(refused[index].off_value, word);
}

bool att_unsupported_flag_accepts(const char *name, const char *word)
{
    bool truth;
    return att_flag_to_truth(word, &truth) || att_unsupported_flag_takes(name) != ATT_TAKES_NOTHING;
}

const char *att_unsupported_flag_ignored_name(int index)
{
    return index < IGNORED ? ignored[index].name : NULL;
}

bool att_unsupported_entry_is_off(const char *name, const char *const *values, int count)
{
    int index = find_refused(name), speed = find_ignored(name);
    if (index < 0 && speed < 0)
        return false;
    return is_off(index >= 0 ? refused[index].off_value : ignored[speed].off_value, values, count);
}

void att_ignored_flags_log(att_context *context, const att_ignored_flags *list)
{
    char text[512] = "";
    size_t length = 0;
    for (int i = 0; i < list->count && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s--%s", i ? ", " : "", list->names[i]);
    if (list->count > 0)
        att_log(context, ATT_LOG_INFO,
                "%s: ignored, because this only concerns the speed, memory, device or processes of PyTorch", text);
}
