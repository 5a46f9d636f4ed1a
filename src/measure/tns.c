#include <math.h>

#include "measure/list.h"

/* Largest and mean zeta of one sample, over all steps except the first of each stage. */
typedef struct stiffness {
    double largest, mean;
} stiffness;

static att_status request(att_requests *requests)
{
    static const char *const statistics[] = {"tns attention", "zeta* attention", "mu attention", "zeta*/mu attention",
                                             "tns gated",     "zeta* gated",     "mu gated",     "zeta*/mu gated",
                                             "tns unit",      "zeta* unit",      "mu unit",      "zeta*/mu unit"};
    att_residual_step step = {.node = -1};
    int steps = 0;
    while (att_residual_step_next(att_requests_graph(requests), step.node, &step)) {
        att_requests_step_norms(requests, &step);
        steps += !step.begins;
    }
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++)
        att_requests_series(requests, "", -1, statistics[i]);
    return steps > 0 ? ATT_OK : att_requests_found_nothing(requests, "second residual addition");
}

static stiffness stiffness_of(const att_observed *observed, double (*index)(const float *row))
{
    stiffness s = {0};
    int count = 0;
    for (int t = 0; t < observed->count; t++) {
        if (observed->constants[t] == 0)
            continue;
        double zeta = index(observed->rows[t]);
        if (!isnan(s.largest) && !(zeta <= s.largest)) /* an undefined zeta makes the result undefined */
            s.largest = zeta;
        s.mean += zeta;
        count++;
    }
    s.mean /= count;
    return s;
}

static void store(stiffness s, double *values)
{
    values[0] = s.largest * (s.largest / s.mean - 1);
    values[1] = s.largest;
    values[2] = s.mean;
    values[3] = s.largest / s.mean;
}

static void observe(const att_observed *observed, double *values)
{
    store(stiffness_of(observed, att_nsi_attention), values);
    store(stiffness_of(observed, att_nsi_gated), values + 4);
    store(stiffness_of(observed, att_nsi_unit), values + 8);
}

static const att_statistic_info statistics[] = {
    {"tns", "TNS", NULL}, {"zeta*", "ζ*", NULL}, {"mu", "μ", NULL}, {"zeta*/mu", "ζ*/μ", NULL}, {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {"tns", "0 if zeta is the same in all steps", "the formula"},
    {"tns attention", "1.50 in DeiT-Tiny (zeta* 1.06, mu 0.44)",
     "attscope measure, deit_tiny_patch16_224, 200 photographs of ImageNet"},
    {"tns attention", "1.24 in ResNet-56 (zeta* 0.79, mu 0.32), 2.32 in ResNet-20 (2.04, 0.97)",
     "attscope measure, resnet56 and resnet20, 10,000 test images of CIFAR-10"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_tns = {
    .info =
        {.name = "tns",
         .title = "Total neural stiffness",
         .summary = "total neural stiffness of the whole network, and its components",
         .unit = "1",
         .formula = "TNS = zeta* (zeta* / mu - 1), zeta* = max_t zeta, mu = mean_t zeta: the integral of "
                    "1[exists t: zeta >= max(mu (1 + M1), M2)] over M1, M2 > 0",
         .source = "definition: Huang et al., ICCV 2023; the closed form follows from it",
         .scales = scales,
         .reading =
             "computed from nsi in its readings attention, gated and unit; the first step of each stage is excluded (a "
             "stage ends where shapes change; a ViT is one stage); mu is per sample; TNS grows with the square of "
             "zeta, so compare the scale of zeta as well; not defined if zeta of a step is not",
         .statistics = statistics,
         .readings = att_nsi_readings,
         .readings_agree = ATT_NSI_READINGS_AGREE,
         .predictor = "tns"},
    .request = request,
    .observe = observe,
};
