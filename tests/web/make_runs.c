/* make_runs FOLDER: runs for the page's test, as tests/report/fixture.h makes them: two configurations with two seeds
 * each, one of them with a name that means harm. */
#include "report/fixture.h"

int main(int count, char **arguments)
{
    static const struct {
        const char *name, *model, *seed, *broadcast;
    } runs[] = {
        {"plain-1", "vit_tiny_patch16_224", "1", "none"},
        {"plain-2", "vit_tiny_patch16_224", "2", "none"},
        {"cb-1", "vit_tiny_patch16_224", "1", "cb"},
        {"<img src=x onerror=boom()>", "</script><script>boom()</script>", "\"><svg onload=boom()>", "&lt;b&gt;"},
    };
    att_context *context = NULL;
    if (count != 2 || att_context_create(NULL, &context) != ATT_OK)
        return 2;
    att_status status = ATT_OK;
    for (size_t i = 0; i < sizeof runs / sizeof *runs && status == ATT_OK; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s", arguments[1], runs[i].name);
        fixture f;
        status = fixture_make(context, i + 1, &f);
        if (status == ATT_OK)
            status = fixture_run(context, &f, folder, runs[i].model, runs[i].seed, runs[i].broadcast);
        fixture_free(&f);
    }
    if (status != ATT_OK)
        fprintf(stderr, "%s\n", att_context_message(context));
    att_context_destroy(&context);
    return status != ATT_OK;
}
