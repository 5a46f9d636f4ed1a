#include "study/measure/stiffness.h"

#include <math.h>

bool att_stiffness_next(const att_graph *graph, att_residual_step *step)
{
    while (att_residual_step_next(graph, step->node, step))
        if (!step->begins)
            return true;
    return false;
}

att_status att_stiffness_request(att_requests *requests, att_dt dt)
{
    const att_graph *graph = att_requests_graph(requests);
    att_residual_step step = {.node = -1};
    if (!att_stiffness_next(graph, &step))
        return att_requests_found_nothing(requests, "second residual addition");
    for (step.node = -1; att_residual_step_next(graph, step.node, &step);)
        att_requests_step_norms(requests, &step, dt);
    return ATT_OK;
}

att_stiffness att_stiffness_of(const att_observed *observed, int rows, att_reading reading)
{
    att_stiffness s = {.where = -1};
    bool defined = true;
    for (int t = 0; t < rows; t++) {
        if (observed->constants[t] == 0)
            continue;
        double zeta = att_nsi(observed->rows[t], reading);
        bool is_largest = s.where < 0 || zeta > s.largest;
        s.second = is_largest ? s.largest : fmax(s.second, zeta);
        s.largest = is_largest ? zeta : s.largest;
        s.where = is_largest ? t : s.where;
        s.sum += zeta;
        s.count++;
        defined &= isfinite(zeta) != 0;
    }
    return defined ? s : (att_stiffness){NAN, NAN, NAN, -1, s.count};
}

double att_tns(double largest, double mean)
{
    return largest * (largest / mean - 1);
}
