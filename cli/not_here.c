#include "not_here.h"

#include <stddef.h>
#include <string.h>

/* Names from timm's train.py, validate.py, inference.py and benchmark.py (1.0.x). idle: the value, besides false, 0 and
 * nothing, that leaves the flag without effect; "*" where any does as long as the flag it belongs to is off. */
static const struct {
    const char *name, *idle;
} flags[] = {
    {"amp-impl", "*"},
    {"aot-autograd", NULL},
    {"apex-amp", NULL},
    {"aug-splits", NULL},
    {"bce-loss", NULL},
    {"bce-pos-weight", "*"},
    {"bce-sum", "*"},
    {"bce-target-thresh", "*"},
    {"bn-eps", NULL},
    {"bn-momentum", NULL},
    {"channels-last", "*"},
    {"clip-mode", "norm"},
    {"color-jitter-prob", "*"},
    {"cooldown-epochs", NULL},
    {"crop-border-pixels", NULL},
    {"crop-mode", "center"},
    {"dataset", NULL},
    {"dataset-download", NULL},
    {"dataset-trust-remote-code", NULL},
    {"device", "*"},
    {"device-modules", "*"},
    {"dist-bn", "*"},
    {"drop-block", NULL},
    {"drop-connect", NULL},
    {"epoch-repeats", NULL},
    {"fast-norm", "*"},
    {"fuser", "*"},
    {"gaussian-blur-prob", NULL},
    {"grad-checkpointing", "*"},
    {"grayscale-prob", NULL},
    {"head-init-bias", NULL},
    {"head-init-scale", NULL},
    {"input-img-mode", NULL},
    {"input-key", NULL},
    {"input-size", NULL},
    {"jsd-loss", NULL},
    {"layer-decay", NULL},
    {"local-rank", NULL},
    {"log-freq", "*"},
    {"log-wandb", NULL},
    {"lr-base-scale", NULL},
    {"lr-base-size", "256"},
    {"lr-cycle-decay", "*"},
    {"lr-cycle-limit", "1"},
    {"lr-cycle-mul", "*"},
    {"lr-k-decay", "1.0"},
    {"lr-noise", NULL},
    {"lr-noise-pct", "*"},
    {"lr-noise-std", "*"},
    {"metrics-avg", NULL},
    {"model-dtype", "float32"},
    {"model-ema-force-cpu", "*"},
    {"model-kwargs", NULL},
    {"naflex-loader", NULL},
    {"naflex-max-seq-len", "*"},
    {"native-amp", NULL},
    {"no-ddp-bb", "*"},
    {"no-prefetcher", "*"},
    {"no-resume-opt", NULL},
    {"num-gpu", "1"},
    {"num-samples", NULL},
    {"opt-kwargs", NULL},
    {"patience-epochs", "*"},
    {"pin-mem", "*"},
    {"pretrained", NULL},
    {"pretrained-path", NULL},
    {"real-labels", NULL},
    {"reparam", NULL},
    {"resplit", "*"},
    {"results-format", "csv"},
    {"retry", "*"},
    {"save-images", NULL},
    {"split-bn", NULL},
    {"start-epoch", NULL},
    {"sync-bn", NULL},
    {"synchronize-step", "*"},
    {"target-key", NULL},
    {"test-pool", NULL},
    {"tf-preprocessing", NULL},
    {"torchcompile", "*"},
    {"torchcompile-mode", "*"},
    {"torchscript", "*"},
    {"train-num-samples", NULL},
    {"tta", NULL},
    {"use-multi-epochs-loader", "*"},
    {"use-train-size", NULL},
    {"val-num-samples", NULL},
    {"valid-labels", NULL},
    {"validation-batch-size", NULL},
    {"wandb-project", "*"},
    {"wandb-resume-id", "*"},
    {"wandb-tags", "*"},
    {"warmup-prefix", NULL},
    {"worker-seeding", "*"},
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

bool cli_not_here(const char *name)
{
    return find(name) >= 0;
}

bool cli_not_here_but_idle(const char *name, const char *value)
{
    static const char *const nothing[] = {"", "0", "0.0", "false", "{}", "[]"};
    int index = find(name);
    if (index < 0)
        return false;
    const char *idle = flags[index].idle;
    bool off = !value || (idle && (strcmp(idle, "*") == 0 || strcmp(idle, value) == 0));
    for (size_t i = 0; !off && i < sizeof nothing / sizeof *nothing; i++)
        off = strcmp(value, nothing[i]) == 0;
    return off;
}
