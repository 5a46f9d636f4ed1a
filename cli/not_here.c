#include "not_here.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Names from timm's train.py, validate.py, inference.py and benchmark.py (1.0.x and the main branch of August 2026). */
static const struct {
    const char *name;
    const char *idle;    /* the value, besides false, 0 and nothing, that leaves the flag without effect; "*" where any
                          * does as long as the flag it belongs to is off */
    const char *instead; /* what there is; NULL: nothing like it */
} flags[] = {
    {"amp-impl", "*", NULL},
    {"aot-autograd", NULL, NULL},
    {"apex-amp", NULL, "--amp is mixed precision"},
    {"aug-splits", NULL, NULL},
    {"bce-loss", NULL, "the loss is cross entropy"},
    {"bce-pos-weight", "*", NULL},
    {"bce-sum", "*", NULL},
    {"bce-target-thresh", "*", NULL},
    {"bn-eps", NULL, NULL},
    {"bn-momentum", NULL, NULL},
    {"channels-last", "*", NULL},
    {"clip-mode", "norm", "gradients are clipped by their norm"},
    {"color-jitter-prob", "*", NULL},
    {"cooldown-epochs", NULL, NULL},
    {"crop-border-pixels", NULL, NULL},
    {"crop-mode", "center", "evaluation crops the centre"},
    {"dataset", NULL, "DATA is a folder or an archive"},
    {"dataset-download", NULL, "DATA is a folder or an archive"},
    {"dataset-trust-remote-code", NULL, NULL},
    {"device", "*", NULL},
    {"device-modules", "*", NULL},
    {"dist-bn", "*", NULL},
    {"distill-loss-weight", "*", NULL},
    {"drop-block", NULL, NULL},
    {"drop-connect", NULL, NULL},
    {"epoch-repeats", NULL, NULL},
    {"fast-norm", "*", NULL},
    {"fuser", "*", NULL},
    {"gaussian-blur-prob", NULL, NULL},
    {"grad-checkpointing", "*", NULL},
    {"grayscale-prob", NULL, NULL},
    {"head-init-bias", NULL, NULL},
    {"head-init-scale", NULL, NULL},
    {"input-img-mode", NULL, NULL},
    {"input-key", NULL, NULL},
    {"input-size", NULL, "--img-size and --in-chans say it"},
    {"jsd-loss", NULL, "the loss is cross entropy"},
    {"kd-distill-type", "*", NULL},
    {"kd-loss-type", "*", NULL},
    {"kd-model-name", NULL, "a network learns from labels alone"},
    {"kd-student-feature-dim", "*", NULL},
    {"kd-teacher-feature-dim", "*", NULL},
    {"kd-temperature", "*", NULL},
    {"kd-token-distill-type", "*", NULL},
    {"layer-decay", NULL, NULL},
    {"layer-decay-min-scale", "*", NULL},
    {"layer-decay-no-opt-scale", "*", NULL},
    {"local-rank", NULL, NULL},
    {"log-freq", "*", NULL},
    {"log-wandb", NULL, NULL},
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
    {"model-ema-force-cpu", "*", NULL},
    {"model-kwargs", NULL, "what a network can be made with are options of their own"},
    {"naflex-loader", NULL, NULL},
    {"naflex-loss-scale", "*", NULL},
    {"naflex-max-seq-len", "*", NULL},
    {"naflex-patch-size-probs", "*", NULL},
    {"naflex-patch-sizes", "*", NULL},
    {"naflex-patchify-channels-first", "*", NULL},
    {"naflex-train-seq-lens", "*", NULL},
    {"native-amp", NULL, "--amp is mixed precision"},
    {"no-ddp-bb", "*", NULL},
    {"no-prefetcher", "*", NULL},
    {"no-resume-opt", NULL, "--initial-checkpoint starts anew from a file's weights"},
    {"num-gpu", "1", "networks run on the processor"},
    {"num-samples", NULL, NULL},
    {"opt-kwargs", NULL, "--momentum, --opt-betas and --opt-eps are options of their own"},
    {"patience-epochs", "*", NULL},
    {"pin-mem", "*", NULL},
    {"pretrained", NULL, "weights come from a file"},
    {"pretrained-path", NULL, "weights come from a file"},
    {"real-labels", NULL, NULL},
    {"reparam", NULL, NULL},
    {"resplit", "*", NULL},
    {"results-format", "csv", NULL},
    {"retry", "*", NULL},
    {"save-images", NULL, NULL},
    {"split-bn", NULL, NULL},
    {"start-epoch", NULL, "--resume goes on where a training stood"},
    {"sync-bn", NULL, NULL},
    {"synchronize-step", "*", NULL},
    {"target-key", NULL, NULL},
    {"task-loss-weight", "*", NULL},
    {"test-pool", NULL, NULL},
    {"tf-preprocessing", NULL, NULL},
    {"torchcompile", "*", NULL},
    {"torchcompile-mode", "*", NULL},
    {"torchscript", "*", NULL},
    {"train-batch-sizes", NULL, NULL},
    {"train-batches-per-epoch", NULL, NULL},
    {"train-img-sizes", NULL, NULL},
    {"train-num-samples", NULL, NULL},
    {"train-size-probs", "*", NULL},
    {"train-size-random-mix", "*", NULL},
    {"train-size-schedule", "*", NULL},
    {"train-size-schedule-spread", "*", NULL},
    {"tta", NULL, NULL},
    {"use-multi-epochs-loader", "*", NULL},
    {"use-train-size", NULL, NULL},
    {"val-interval", "1", NULL},
    {"val-num-samples", NULL, NULL},
    {"valid-labels", NULL, NULL},
    {"validation-batch-size", NULL, "evaluation takes --batch-size"},
    {"variable-batch-loss-scale", "*", NULL},
    {"wandb-project", "*", NULL},
    {"wandb-resume-id", "*", NULL},
    {"wandb-tags", "*", NULL},
    {"warmup-prefix", NULL, NULL},
    {"worker-seeding", "*", NULL},
};
enum { FLAG_COUNT = sizeof flags / sizeof *flags };

static int find(const char *name)
{
    for (int i = 0; i < FLAG_COUNT; i++) {
        const char *a = name, *b = flags[i].name;
        while (*a && (*a == *b || (*a == '_' && *b == '-')))
            a++, b++;
        if (!*a && !*b)
            return i;
    }
    return -1;
}

bool cli_not_here(const char *name, const char **instead)
{
    int index = find(name);
    *instead = index >= 0 ? flags[index].instead : NULL;
    return index >= 0;
}

/* "1.0" is 1. */
static bool is_same_value(const char *a, const char *b)
{
    char *a_end, *b_end;
    double left = strtod(a, &a_end), right = strtod(b, &b_end);
    bool numbers = a_end != a && !*a_end && b_end != b && !*b_end;
    return numbers ? left == right : strcmp(a, b) == 0;
}

bool cli_not_here_but_idle(const char *name, const char *const *values, int count)
{
    static const char *const nothing[] = {"", "0", "false", "{}", "[]"};
    int index = find(name);
    if (index < 0)
        return false;
    const char *idle = flags[index].idle;
    bool off = count == 0 || (idle && strcmp(idle, "*") == 0) || (idle && count == 1 && is_same_value(values[0], idle));
    for (size_t i = 0; !off && count == 1 && i < sizeof nothing / sizeof *nothing; i++)
        off = is_same_value(values[0], nothing[i]);
    return off;
}
