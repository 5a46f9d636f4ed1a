#include "sweep_check.h"

#include <string.h>

#include "digest.h"
#include "figures.h"
#include "train_network.h"
#include "train_settle.h"

/* --- data --------------------------------------------------------------------------------------------------------- */

static int check_split(cli_app *cli, const train_data *data, const char *split, bool *has_splits)
{
    att_dataset_options options = cli_train_data_options(data, split);
    att_dataset *dataset = NULL;
    int code = cli_file_check("--class-map", data->class_map);
    if (code == CLI_OK)
        code = cli_check(cli, att_dataset_open(cli->context, data->data_dir, &options, &dataset));
    *has_splits = code == CLI_OK && *att_dataset_split(dataset);
    att_dataset_close(&dataset);
    return code;
}

/* What training opens, and the split that is measured. */
static int check_data(cli_app *cli, const train_data *data)
{
    bool has_splits;
    int code = check_split(cli, data, data->train_split, &has_splits);
    if (code == CLI_OK && has_splits && *data->val_split)
        code = check_split(cli, data, data->val_split, &has_splits);
    return code == CLI_OK ? check_split(cli, data, "test", &has_splits) : code;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_data(const train_data *a, const train_data *b)
{
    return same_text(a->data_dir, b->data_dir) && same_text(a->train_split, b->train_split) &&
           same_text(a->val_split, b->val_split) && same_text(a->class_map, b->class_map) &&
           a->coarse_labels == b->coarse_labels;
}

typedef struct data_digests {
    train_data of;                     /* zero: none yet */
    char listing[ATT_DATASET_LISTING]; /* of what is trained on */
    char contents[CLI_DIGEST];         /* of what is measured */
} data_digests;

static int read_digests(cli_app *cli, const train_data *data, data_digests *digests)
{
    att_dataset_options train = cli_train_data_options(data, data->train_split),
                        test = cli_train_data_options(data, "test");
    att_dataset *trained = NULL, *measured = NULL;
    if (same_data(data, &digests->of))
        return CLI_OK;
    int code = cli_check(cli, att_dataset_open(cli->context, data->data_dir, &train, &trained));
    if (code == CLI_OK)
        code = cli_check(cli, att_dataset_open(cli->context, data->data_dir, &test, &measured));
    if (code == CLI_OK) {
        att_dataset_listing(trained, digests->listing);
        cli_images_digest(cli, measured, data->data_dir, digests->contents);
        digests->of = *data;
    }
    att_dataset_close(&measured);
    att_dataset_close(&trained);
    return code;
}

static int refuse_data(const sweep_run *run, const char *what, const char *data)
{
    return cli_failure("%s was %s other images than %s has; another --experiment keeps both", run->folder, what, data);
}

/* The runs of a setting, as far as they have records that say of which images they are. */
static int compare_data(cli_app *cli, const sweep_plan *plan, int first, data_digests *here)
{
    const train_data *data = &plan->settings.data;
    for (int i = first; i < first + plan->seed_count; i++) {
        const sweep_run *run = &plan->runs[i];
        const att_run_state *found = &run->found;
        int code = *found->listing || *found->contents ? read_digests(cli, data, here) : CLI_OK;
        if (code != CLI_OK)
            return code;
        if (*found->listing && strcmp(found->listing, here->listing) != 0)
            return refuse_data(run, "begun with", data->data_dir);
        if (*found->contents && strcmp(found->contents, here->contents) != 0)
            return refuse_data(run, "measured on", data->data_dir);
    }
    return CLI_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static int check_network(cli_app *cli, train_settings *s, const char *instruments)
{
    cli_train_network network = {0};
    int code = cli_train_settle(cli, s);
    if (code == CLI_OK)
        code = cli_train_network_find(cli, s, "", &network);
    if (code == CLI_OK)
        code = cli_train_network_try(cli, s, &network, instruments, "*");
    cli_train_network_free(&network);
    return code;
}

/* The runs of a setting lie one behind another. */
static bool is_to_do(const sweep_plan *plan, int first)
{
    for (int i = first; i < first + plan->seed_count; i++)
        if (strcmp(plan->runs[i].status, "measured") != 0)
            return true;
    return false;
}

int sweep_check(cli_app *cli, sweep_plan *plan, const char *instruments)
{
    train_data checked = {0};
    data_digests here = {0};
    int code = cli_instruments_check(cli, instruments);
    for (int i = 0; code == CLI_OK && i < plan->run_count; i += plan->seed_count) {
        code = sweep_plan_settle(plan, &plan->runs[i]);
        if (code == CLI_OK)
            code = compare_data(cli, plan, i, &here);
        if (code != CLI_OK || !is_to_do(plan, i))
            continue;
        if (!same_data(&checked, &plan->settings.data)) {
            checked = plan->settings.data;
            code = check_data(cli, &checked);
        }
        if (code == CLI_OK)
            code = check_network(cli, &plan->settings, instruments);
        if (code != CLI_OK)
            cli_note(cli, "of the setting %s, measured with --measure %s; no run was started", plan->runs[i].setting,
                     instruments);
    }
    return code;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

int sweep_check_records(cli_app *cli, const sweep_run *run)
{
    const att_sweep_run one = {run->folder, run->setting, run->seed};
    att_sweep *sweep = NULL;
    int code = cli_check(cli, att_sweep_read(cli->context, &one, 1, 0, &sweep));
    att_sweep_destroy(&sweep);
    if (code != CLI_OK)
        sweep_advise_removal(cli, run);
    return code;
}
