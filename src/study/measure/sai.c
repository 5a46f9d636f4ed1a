#include "study/measure/list.h"

enum { DT }; /* options */
static const att_detail options[] = {ATT_DT_OPTION};

static const att_statistic_info statistics[] = {{"full", "SAI", NULL},
                                                {"simplified", "Simplified SAI", NULL},
                                                {"state", "Norm of the state |x_t|", NULL},
                                                {NULL, NULL, NULL}};
enum { FULL, SIMPLIFIED, STATE };

static att_status request(att_requests *requests)
{
    const int found = att_requests_steps(requests, false, (att_dt)att_requests_option(requests, DT));
    for (int s = FULL; s <= SIMPLIFIED; s++)
        for (int r = 0; r < ATT_READINGS; r++)
            att_requests_step_series(requests, false, statistics[s].name, att_nsi_readings[r]);
    att_requests_step_series(requests, false, statistics[STATE].name, NULL);
    return found > 0 ? ATT_OK : att_requests_found_nothing(requests, "residual addition");
}

static void observe(const att_observed *observed, double *values)
{
    int count = observed->count;
    for (int i = 0; i < count; i++) {
        const float *row = observed->rows[i];
        for (int r = 0; r < ATT_READINGS; r++) {
            values[r * count + i] = att_nsi(row, r);
            values[(ATT_READINGS + r) * count + i] = att_step_size(row, r);
        }
        values[2 * ATT_READINGS * count + i] = (double)row[0];
    }
}

static const att_statistic_scale scales[] = {
    {"simplified attention", "41 to 144 by step in DeiT-Tiny, beside states of 97 to 235", ATT_OF_PHOTOGRAPHS},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_sai = {
    .info = {.name = "sai",
             .view = "step size",
             .title = "Stiffness-aware index",
             .summary = "stiffness-aware index of each residual step, full and simplified, and the norm of its state",
             .unit = "1",
             .formula =
                 "full: |(x_{t+1} - x_t) / dt|_2 / |x_t|_2; simplified: |(x_{t+1} - x_t) / dt|_2; state: |x_t|_2",
             .source = "Huang et al., ICCV 2023",
             .scales = scales,
             .reading =
                 "steps and readings as in nsi, which is the full index; so simplified is the norm of the branch |f| "
                 "before its gate (attention), of what is added (gated), and of the change with dt = 1 (unit); norms "
                 "are over all tokens and channels and grow with their number, so compare them within one stage",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .costly = true,
             .statistics = statistics,
             .readings = att_nsi_readings,
             .readings_agree = ATT_NSI_READINGS_AGREE,
             .excluded = "the first step of its stage, which TNS leaves out"},
    .request = request,
    .observe = observe,
};
