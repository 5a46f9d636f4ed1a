/* bench_kernels.c - attscope bench kernels: each kernel alone, on the benchmark cases of its operation. */
#include "bench.h"

typedef struct list {
    const bench_call *call;
    int shown;
} list;

static bool wants(void *user, const char *op, const char *name)
{
    char full_name[96];
    snprintf(full_name, sizeof full_name, "%s/%s", op, name);
    return bench_wants(((const list *)user)->call->settings, NULL, full_name);
}

static void print_row(list *l, const att_bench_kernel_row *r)
{
    if (l->shown == 0)
        cli_print(
            "one thread, %s, median of %d; * marks the kernel that plans use\n\n  %-38s %-8s %-12s %10s %8s %8s\n",
            bench_precision(l->call), l->call->settings->measure.repeats, "case", "kernel", "tier", "us", "GFLOP/s",
            "GB/s");
    char full_name[96];
    snprintf(full_name, sizeof full_name, "%s/%s", r->op, r->name);
    cli_print("%c %-38s %-8s %-12s %10.2f %8.1f %8.1f\n", r->taken ? '*' : ' ', full_name, r->kernel, r->tier,
              1e6 * r->seconds, 1e-9 * r->flops / r->seconds, 1e-9 * r->bytes / r->seconds);
    fflush(stdout);
}

static void write_row(const bench_call *call, const att_bench_kernel_row *r)
{
    att_json_writer *w = call->writer;
    att_json_begin_object(w);
    att_json_put_string(w, "op", r->op);
    att_json_put_string(w, "case", r->name);
    att_json_put_string(w, "kernel", r->kernel);
    att_json_put_string(w, "tier", r->tier);
    att_json_put_bool(w, "taken", r->taken);
    att_json_put_string(w, "precision", bench_precision(call));
    att_json_put_number(w, "seconds", r->seconds);
    att_json_put_number(w, "flops", r->flops);
    att_json_put_number(w, "bytes", r->bytes);
    att_json_end_object(w);
}

static void show_row(void *user, const att_bench_kernel_row *row)
{
    list *l = user;
    if (l->call->prints)
        print_row(l, row);
    if (l->call->writer)
        write_row(l->call, row);
    l->shown++;
}

static int run(const bench_call *call)
{
    list l = {.call = call};
    att_bench_kernel_options options = att_bench_kernel_options_defaults();
    options.backend = call->settings->engine.backend;
    options.precision = att_recipe_precision(&call->settings->engine);
    options.repeats = call->settings->measure.repeats;
    options.wants = wants;
    options.row = show_row;
    options.row_user = &l;
    int code = cli_check(call->cli, att_bench_kernels(call->cli->context, &options));
    return code == CLI_OK && l.shown == 0 ? bench_nothing(call->settings, "attention/tiny") : code;
}

const bench_what bench_what_kernels = {.name = "kernels", .operands = "", .run = run};
