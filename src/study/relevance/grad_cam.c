#include "base/core/error.h"
#include "study/relevance/list.h"

/* map_p = (sum_c w_c F_pc)_+ */
static void combine(const att_cam_features *f, const float *values, const float *gradient, double *map)
{
    const int64_t places = f->height * f->width;
    for (int64_t p = 0; p < places; p++)
        map[p] = 0;
    for (int64_t c = 0; c < f->count; c++) {
        double weight = 0;
        for (int64_t p = 0; p < places; p++)
            weight += (double)gradient[p * f->count + c] / (double)places;
        for (int64_t p = 0; p < places; p++)
            map[p] += weight * (double)values[p * f->count + c];
    }
    for (int64_t p = 0; p < places; p++)
        map[p] = map[p] > 0 ? map[p] : 0;
}

static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const att_cam_features *f = &r->features;
    if (f->value == ATT_NONE)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                        "Grad-CAM: neither the last attention nor the last residual block of this network has "
                        "features on a grid");
    ATT_TRY(att_relevance_differentiate(job, job->image));
    ATT_TRY(att_relevance_read(r, "features", -1));
    const int64_t first = f->prefix * f->count;
    combine(f, r->values + first, r->gradient + first, att_relevance_begin_map(job, f->height, f->width));
    return ATT_OK;
}

const att_relevance_method att_relevance_grad_cam = {
    .info = {.name = "grad_cam",
             .title = "Grad-CAM",
             .summary = "features of the last attention or block, weighted by their mean gradients",
             .source = "Selvaraju et al., ICCV 2017"},
    .compute = compute};
