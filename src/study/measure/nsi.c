#include "study/measure/list.h"

enum { PER, DT }; /* options */
static const att_detail options[] = {{.name = "per",
                                      .meaning = "what is one step: a residual addition or a block",
                                      .high = ATT_PER_BLOCK,
                                      .choices = att_per_choices},
                                     ATT_DT_OPTION};

static att_status request(att_requests *requests)
{
    const bool block = att_requests_option(requests, PER) == ATT_PER_BLOCK;
    const int found = att_requests_steps(requests, block, (att_dt)att_requests_option(requests, DT));
    if (block)
        att_requests_step_series(requests, block, "block", NULL);
    for (int r = 0; r < ATT_READINGS && !block; r++)
        att_requests_step_series(requests, block, NULL, att_nsi_readings[r]);
    return found > 0 ? ATT_OK : att_requests_found_nothing(requests, "residual addition");
}

static void observe(const att_observed *observed, double *values)
{
    const bool block = observed->options[PER] == ATT_PER_BLOCK;
    int count = observed->count;
    for (int i = 0; i < count; i++) {
        const float *row = observed->rows[i];
        for (int r = 0; r < ATT_READINGS && !block; r++)
            values[r * count + i] = att_nsi(row, r);
        if (block)
            values[i] = att_nsi(row, ATT_READING_UNIT);
    }
}

static const att_statistic_info statistics[] = {{"block", "whole blocks", NULL}, {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {"attention", "0.20 to 1.06 by step in DeiT-Tiny", ATT_OF_PHOTOGRAPHS},
    {"attention", "0.18 to 0.76 by block in ResNet-56, 0.60 to 2.04 in ResNet-20, without first blocks of stages",
     "attscope measure, resnet56 and resnet20, 10,000 test images of CIFAR-10"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_nsi = {
    .info = {.name = "nsi",
             .view = "step size",
             .title = "Neural stiffness index",
             .summary = "neural stiffness index: size of a residual step relative to its input",
             .unit = "1",
             .formula = "zeta(x_t) = |(x_{t+1} - x_t) / dt|_2 / |x_t|_2, t over the network's residual additions",
             .source = "Huang et al., ICCV 2023",
             .statistics = statistics,
             .scales = scales,
             .reading = "attention: dt is the gate of an attention module on the branch, so the quotient is the branch "
                        "before its gate, |f| / |x_t|; LayerScale and drop path belong to f, and to dt with "
                        "nsi:dt=all; gated: |dt (.) f| / |x_t|, what is added, before a ReLU after the addition, so "
                        "that beside attention it shows dt alone; unit: dt = 1, and x_{t+1} is taken after the ReLU if "
                        "one follows; the three agree without gates and ReLUs. Norms are over all tokens and channels. "
                        "A ViT has two steps per block; with nsi:per=block, a block is one step, from before its first "
                        "addition to after its last, with dt = 1. Not defined if |x_t| = 0",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .by_sample = true,
             .readings = att_nsi_readings,
             .readings_agree = ATT_NSI_READINGS_AGREE,
             .excluded = "the first step of its stage, which TNS leaves out"},
    .request = request,
    .observe = observe,
};
