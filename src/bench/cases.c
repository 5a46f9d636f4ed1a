#include <attscope/bench.h>

/* The two ends of what small machines train, at 224 pixels. */
static const att_bench_case cases[] = {
    {"vit_tiny_patch16_224/infer", "vit_tiny_patch16_224", false},
    {"vit_tiny_patch16_224/train", "vit_tiny_patch16_224", true},
    {"vit_small_patch16_224/infer", "vit_small_patch16_224", false},
    {"vit_small_patch16_224/train", "vit_small_patch16_224", true},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

int att_bench_case_count(void)
{
    return CASE_COUNT;
}

att_bench_case att_bench_case_at(int index)
{
    return index >= 0 && index < CASE_COUNT ? cases[index] : (att_bench_case){"", "", false};
}
