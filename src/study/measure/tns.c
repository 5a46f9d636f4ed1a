#include "study/measure/list.h"
#include "study/measure/stiffness.h"

enum { DT }; /* options */
static const att_detail options[] = {ATT_DT_OPTION};

static const att_statistic_info statistics[] = {
    {"tns", "TNS", NULL}, {"zeta*", "ζ*", NULL}, {"mu", "μ", NULL}, {"zeta*/mu", "ζ*/μ", NULL}, {NULL, NULL, NULL}};

static att_status request(att_requests *requests)
{
    ATT_TRY(att_stiffness_request(requests, (att_dt)att_requests_option(requests, DT)));
    for (int r = 0; r < ATT_READINGS; r++)
        for (const att_statistic_info *s = statistics; s->name; s++)
            att_requests_reading(requests, "", -1, s->name, att_nsi_readings[r]);
    return ATT_OK;
}

static void observe(const att_observed *observed, double *values)
{
    for (int r = 0; r < ATT_READINGS; r++) {
        const att_stiffness s = att_stiffness_of(observed, observed->count, r);
        double mean = s.sum / s.count;
        *values++ = att_tns(s.largest, mean);
        *values++ = s.largest;
        *values++ = mean;
        *values++ = s.largest / mean;
    }
}

static const att_statistic_scale scales[] = {
    {"tns", "0 if zeta is the same in all steps", "the formula"},
    {"tns attention", "1.50 in DeiT-Tiny (zeta* 1.06, mu 0.44)", ATT_OF_PHOTOGRAPHS},
    {"tns attention", "1.24 in ResNet-56 (zeta* 0.79, mu 0.32), 2.32 in ResNet-20 (2.04, 0.97)",
     "attscope measure, resnet56 and resnet20, 10,000 test images of CIFAR-10"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_tns = {
    .info = {.name = "tns",
             .view = "step size",
             .title = "Total neural stiffness",
             .summary = "total neural stiffness of the whole network, and its components",
             .unit = "1",
             .formula = "TNS = zeta* (zeta* / mu - 1), zeta* = max_t zeta, mu = mean_t zeta: the integral of 1[exists "
                        "t: zeta >= max(mu (1 + M1), M2)] over M1, M2 > 0",
             .source = "definition: Huang et al., ICCV 2023; the closed form follows from it",
             .scales = scales,
             .reading = "computed from nsi in its readings attention, gated and unit; the first step of each stage is "
                        "excluded (a stage ends where shapes change; a ViT is one stage); mu is per sample; TNS grows "
                        "with the square of zeta, so compare the scale of zeta as well; images in which zeta of a step "
                        "is not defined are counted, the others averaged",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .by_sample = true,
             .statistics = statistics,
             .readings = att_nsi_readings,
             .readings_agree = ATT_NSI_READINGS_AGREE,
             .predictor = "tns"},
    .request = request,
    .observe = observe,
};
