/* Systems of differential equations from files, and matrices: an accepted one is evaluated and integrated. */
#include "fuzz.h"
#include "lab/papers/ode/system.h"

static void integrate(att_ode *ode)
{
    const double *u = ode->initial;
    att_ode_info info = att_ode_info_of(ode);
    const att_ode_options options = {
        .step = (info.end - info.start) / 20, .rtol = 1e-3, .atol = 1e-3, .most_steps = 50};
    att_spectrum_ends ends;
    att_ode_trajectory trajectory = {0};
    if (att_ode_spectrum(ode, info.start, u, &ends) == ATT_OK)
        fuzz_require(ends.stiffness_index >= 0, "the stiffness index is not negative");
    for (int i = 0; i < att_ode_method_count(); i++)
        if (att_ode_run(ode, att_ode_method_at(i).name, &options, &trajectory) == ATT_OK)
            att_ode_trajectory_free(&trajectory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_context();
    size_t before = fuzz_begin();
    att_ode *ode = NULL;
    if (att_ode_open(fuzz_context(), fuzz_file("system.ode", data, size), NULL, &ode) == ATT_OK)
        integrate(ode);
    att_ode_close(&ode);
    att_ode_settings settings = att_ode_settings_defaults();
    settings.matrix = fuzz_file("matrix.txt", data, size);
    if (size < 2000 && att_ode_open(fuzz_context(), "linear", &settings, &ode) == ATT_OK)
        integrate(ode);
    att_ode_close(&ode);
    fuzz_end(before);
    return 0;
}
