#include <attscope/lab/bench.h>

#define BOTH(name, model, attn)          \
    {name "/infer", model, attn, false}, \
    {                                    \
        name "/train", model, attn, true \
    }

/* The smallest and the largest ViT that small machines train at 224 pixels, and residual networks: the smallest one for
 * CIFAR, a deep one without and with attention, and ResNet-50. */
static const att_bench_case cases[] = {
    BOTH("vit_tiny_patch16_224", "vit_tiny_patch16_224", ""),
    BOTH("vit_small_patch16_224", "vit_small_patch16_224", ""),
    BOTH("resnet20", "resnet20", ""),
    BOTH("resnet164", "resnet164", ""),
    BOTH("seresnet164", "resnet164", "se"),
    BOTH("resnet50", "resnet50", ""),
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

int att_bench_case_count(void)
{
    return CASE_COUNT;
}

att_bench_case att_bench_case_at(int index)
{
    return index >= 0 && index < CASE_COUNT ? cases[index] : (att_bench_case){"", "", "", false};
}
