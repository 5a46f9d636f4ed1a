/* bench_cases.c - attscope bench cases: networks, each in a process of its own. */
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "network.h"

/* --- list of cases ------------------------------------------------------------------------------------------------ */

static double longer(double height, double width)
{
    return height > width ? height : width;
}

/* Longer side of the network's images, in pixels. Networks named with a pretrained tag or by a deprecated name are
 * networks for ImageNet. */
static double longer_side(const char *model, const att_option_values *network)
{
    enum { IMAGENET = 224 };
    const att_option_value *sides = att_options_find(network, "img_size");
    if (sides)
        return longer(sides->numbers[0], sides->numbers[sides->count - 1]);
    for (int i = 0; i < att_model_count(); i++)
        if (strcmp(att_model_at(i).name, model) == 0)
            return longer(att_model_at(i).height, att_model_at(i).width);
    return IMAGENET;
}

void bench_case_of(const bench_settings *s, const char *model, const char *modules, bool training, bench_case *made)
{
    enum { SMALL_IMAGE = 64, MANY = 128, FEW = 32 };
    *made = (bench_case){.model = model, .network = s->network.options, .training = training};
    if (*modules && !att_options_find(&made->network, "modules"))
        att_options_set_text(&made->network, "modules", modules);
    double size = longer_side(model, &made->network);
    made->batch_size = s->measure.batch_size ? s->measure.batch_size : size < SMALL_IMAGE ? MANY : FEW;
}

/* Case `index` of the standard cases, or of --model, without regard to --filter. Returns false past the last. */
static bool any_case(const bench_settings *s, int index, bench_case *found)
{
    if (s->network.model) {
        bench_case_of(s, s->network.model, "", index == 1, found);
        snprintf(found->name, sizeof found->name, "%.80s/%s", found->model, index == 1 ? "train" : "infer");
        return index < 2;
    }
    att_bench_case standard = att_bench_case_at(index);
    bench_case_of(s, standard.model, standard.modules, standard.training, found);
    snprintf(found->name, sizeof found->name, "%s", standard.name);
    return index < att_bench_case_count();
}

bool bench_wants(const bench_settings *s, const char *standard, const char *name)
{
    const char *pattern = s->measure.filter ? s->measure.filter : s->network.model ? NULL : standard;
    return !pattern || fnmatch(pattern, name, 0) == 0;
}

bool bench_case_at(const bench_settings *s, const char *standard, int index, bench_case *found)
{
    for (int i = 0; any_case(s, i, found); i++)
        if (bench_wants(s, standard, found->name) && index-- == 0)
            return true;
    return false;
}

void bench_options_of(const bench_call *call, const bench_case *c, att_bench_options *options)
{
    const bench_settings *s = call->settings;
    *options = att_bench_options_defaults();
    options->model = c->model;
    options->network = &c->network;
    options->training = c->training;
    options->freeze = s->measure.freeze;
    options->backend = s->engine.backend;
    options->precision = att_recipe_precision(&s->engine);
    options->batch_size = c->batch_size;
    options->repeats = s->measure.repeats;
    options->warmup = s->measure.warmup;
    options->profile = s->measure.profile;
}

int bench_open(const bench_call *call, const bench_case *c, int threads, att_bench_options *options)
{
    att_recipe_engine engine = call->settings->engine;
    engine.threads = threads;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    bench_options_of(call, c, options);
    return cli_engine_open(call->cli, &engine);
}

int bench_case_open(const bench_call *call, const char *name, int threads, bench_case *c, att_bench_options *options)
{
    const bench_settings *s = call->settings;
    int index = 0;
    while (any_case(s, index, c) && strcmp(c->name, name) != 0)
        index++;
    if (!any_case(s, index, c))
        return cli_usage("bench has no case \"%s\"", name);
    return bench_open(call, c, threads, options);
}

const char *bench_precision(const bench_call *call)
{
    return att_precision_name(att_recipe_precision(&call->settings->engine));
}

int bench_nothing(const bench_settings *s, const char *first)
{
    return cli_usage("--filter %s matches no case; the first is %s", s->measure.filter, first);
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

static void send_row(void *user, const att_profile_row *row)
{
    bench_record r = {.is_row = true, .of.row.figures = *row};
    snprintf(r.of.row.op, sizeof r.of.row.op, "%s", row->op);
    snprintf(r.of.row.kernel, sizeof r.of.row.kernel, "%s", row->kernel);
    r.of.row.figures.op = r.of.row.figures.kernel = NULL;
    bench_send(user, &r);
}

static int run_job(const bench_call *call, const char *job)
{
    bench_case c;
    att_bench_options options;
    int code = bench_case_open(call, job, call->settings->engine.threads, &c, &options);
    if (code != CLI_OK)
        return code;
    bench_call sender = *call;
    options.row = send_row;
    options.row_user = &sender;
    bench_record r = {.is_row = false};
    code = cli_check(call->cli, att_bench_run(call->cli->context, &options, &r.of.result));
    if (code == CLI_OK)
        bench_send(call, &r);
    return code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

/* What a child sent: the rows of the profile, then the result. */
typedef struct found {
    const bench_case *c;
    const att_bench_result *result;
    const bench_record *rows;
    int row_count, threads, repeats;
} found;

/* Threads that call kernels: those of a device are called by one. */
static int calling_threads(const bench_call *call)
{
    bool on_device = strcmp(call->settings->engine.backend, "cuda") == 0;
    return on_device ? 1 : att_context_threads(call->cli->context);
}

static void print_head(const bench_call *call)
{
    const bench_measure *m = &call->settings->measure;
    const int threads = calling_threads(call);
    cli_print("%d thread%s, %s, median of %d\n\n", threads, cli_plural(threads), bench_precision(call), m->repeats);
    cli_print("%-28s %5s %9s %9s %7s %9s %9s\n", "case", "batch", "images/s", "GEMM", "share", "memory", "peak");
}

static void print_row(const found *f, const bench_row *row)
{
    const att_profile_row *r = &row->figures;
    double ms = 1e3 * r->seconds / f->threads / f->repeats, floor = 1e3 * att_bench_floor(f->result, r) / f->repeats;
    bool computes = r->flops / f->result->gemm_rate > r->bytes / f->result->memory_rate;
    cli_print("  %-20s %-8s %7lld %9.2f %5.1f %% %9.2f %-6s %6.2f\n", row->op, row->kernel, (long long)r->calls, ms,
              100 * r->seconds / f->threads / f->result->all_seconds, floor, computes ? "flops" : "bytes",
              floor > 0 ? ms / floor : 0);
}

static void print_profile(const found *f)
{
    double seconds = 0, floor = 0, all = 1e3 * f->result->all_seconds / f->repeats;
    cli_print("  %-20s %-8s %7s %9s %7s %9s %-6s %6s\n", "op", "kernel", "calls", "ms", "", "floor", "of", "ratio");
    for (int i = 0; i < f->row_count; i++) {
        print_row(f, &f->rows[i].of.row);
        seconds += f->rows[i].of.row.figures.seconds;
        floor += 1e3 * att_bench_floor(f->result, &f->rows[i].of.row.figures) / f->repeats;
    }
    double outside = all - 1e3 * seconds / f->threads / f->repeats;
    cli_print("  %-37s %9.2f %5.1f %%\n", "outside of kernels", outside, 100 * outside / all);
    cli_print("  %-37s %9.2f %5.1f %% %9.2f %-6s %6.2f\n", "together", all, 100.0, floor, "", all / floor);
}

static void print_memory(const att_bench_memory *memory)
{
    const double mib = 1 << 20;
    cli_print(
        "  memory, MiB: weights %.0f, packed weights %.0f, between layers %.0f, kept for the batch %.0f,\n"
        "  gradients and slots %.0f, inputs and outputs %.0f\n",
        (double)memory->weights / mib, (double)memory->packed / mib, (double)memory->layers / mib,
        (double)memory->kept / mib, (double)memory->trained / mib, (double)memory->transfers / mib);
}

static void print_case(const found *f)
{
    const att_bench_result *r = f->result;
    cli_print("%-28s %5d %9.2f %9.1f %5.1f %% %9.1f %5.0f MiB\n", f->c->name, f->c->batch_size, r->images_per_second,
              1e-9 * r->gemm_rate, 100 * r->share, 1e-9 * r->memory_rate, (double)r->peak_bytes / (1 << 20));
    if (f->row_count > 0) {
        print_memory(&r->memory);
        cli_print("  compiled in %.0f ms, without packing of weights\n", 1e3 * r->compile_seconds);
        print_profile(f);
    }
}

static void print_formula(bool profile)
{
    puts(
        "\nshare = images/s x operations per image / GEMM rate. Operations: two per\n"
        "multiply-add of the matrix products, forward; three times that for training.\n"
        "GEMM: GFLOP/s of oneDNN's matmul on all threads over the same products, with\n"
        "packed weights and no fusion, whole-batch forward shapes, Q K' and P V per head;\n"
        "measured in turns with the network. Memory: GB/s of a = b + s c on all threads,\n"
        "with arrays much larger than the caches. Peak: VmHWM.\n"
        "A convolution counts as a product with one row per pixel's window. Such a product\n"
        "reads much more than the convolution and has few columns, so GEMM is a reference\n"
        "there, not an upper bound: networks can exceed 100 %.");
    if (profile)
        puts(
            "Below a case: ms per batch in each kind of kernel, mean over threads and timed\n"
            "runs, and its floor: operations at the GEMM rate, or bytes, each value read or\n"
            "written once, at the memory rate, whichever takes longer. Cached data can be\n"
            "faster. Outside of kernels: packing of weights, threads that wait.\n"
            "Memory: what the network reserves, without weights that it gives back when they\n"
            "are packed. The peak has the program and its libraries, too.");
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

void bench_write_case(const bench_call *call, const bench_case *c)
{
    att_json_put_string(call->writer, "case", c->name);
    att_json_put_string(call->writer, "model", c->model);
    if (att_options_find(&c->network, "modules"))
        att_json_put_string(call->writer, "attn", att_options_text(&c->network, "modules"));
    att_json_put_string(call->writer, "precision", bench_precision(call));
}

static void write_row(att_json_writer *w, const found *f, const bench_row *row)
{
    att_json_begin_object(w);
    att_json_put_string(w, "op", row->op);
    att_json_put_string(w, "kernel", row->kernel);
    att_json_put_integer(w, "calls", row->figures.calls);
    att_json_put_number(w, "seconds", row->figures.seconds);
    att_json_put_number(w, "floor_seconds", f->threads * att_bench_floor(f->result, &row->figures));
    att_json_put_number(w, "flops", row->figures.flops);
    att_json_put_number(w, "bytes", row->figures.bytes);
    att_json_end_object(w);
}

static void write_profile(att_json_writer *w, const found *f)
{
    att_json_put_integer(w, "timed_runs", f->repeats);
    att_json_put_number(w, "timed_seconds", f->result->all_seconds);
    att_json_put_array(w, "profile");
    for (int i = 0; i < f->row_count; i++)
        write_row(w, f, &f->rows[i].of.row);
    att_json_end_array(w);
}

static void write_memory(att_json_writer *w, const att_bench_memory *memory)
{
    att_json_put_object(w, "memory");
    att_json_put_integer(w, "weight_bytes", (int64_t)memory->weights);
    att_json_put_integer(w, "trained_bytes", (int64_t)memory->trained);
    att_json_put_integer(w, "packed_bytes", (int64_t)memory->packed);
    att_json_put_integer(w, "layer_bytes", (int64_t)memory->layers);
    att_json_put_integer(w, "kept_bytes", (int64_t)memory->kept);
    att_json_put_integer(w, "transfer_bytes", (int64_t)memory->transfers);
    att_json_end_object(w);
}

static void write_case(const bench_call *call, const found *f)
{
    att_json_writer *w = call->writer;
    const att_bench_result *r = f->result;
    char key[48];
    const char *prefix = f->c->training ? "train" : "infer";
    att_json_begin_object(w);
    bench_write_case(call, f->c);
#define KEY(name) (snprintf(key, sizeof key, "%s_" name, prefix), key)
    att_json_put_number(w, KEY("samples_per_sec"), r->images_per_second);
    att_json_put_number(w, KEY("step_time"), 1e3 * r->step_seconds);
    att_json_put_integer(w, KEY("batch_size"), f->c->batch_size);
    cli_json_sides(w, KEY("img_size"), r->height, r->width);
    if (!f->c->training)
        att_json_put_number(w, "infer_gmacs", r->gmacs);
#undef KEY
    att_json_put_number(w, "param_count", (double)r->parameters / 1e6);
    att_json_put_number(w, "gemm_gflops", 1e-9 * r->gemm_rate);
    att_json_put_number(w, "gemm_share", r->share);
    att_json_put_number(w, "memory_gbytes_per_sec", 1e-9 * r->memory_rate);
    att_json_put_integer(w, "peak_bytes", r->peak_bytes);
    write_memory(w, &r->memory);
    att_json_put_number(w, "compile_time", 1e3 * r->compile_seconds);
    att_json_put_integer(w, "threads", f->threads);
    att_json_put_integer(w, "group", r->plan.group);
    att_json_put_integer(w, "arena_bytes", (int64_t)r->plan.arena_bytes);
    att_json_put_integer(w, "gradient_bytes", (int64_t)r->plan.gradient_bytes);
    att_json_put_integer(w, "packed_bytes", (int64_t)r->plan.packed_bytes);
    if (call->settings->measure.profile)
        write_profile(w, f);
    att_json_end_object(w);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static int show(const bench_call *call, const bench_case *c, const bench_records *records)
{
    const bench_record *last = &records->items[records->count - 1];
    if (last->is_row)
        return cli_failure("%s gave no result", c->name);
    found f = {.c = c,
               .result = &last->of.result,
               .rows = records->items,
               .row_count = records->count - 1,
               .threads = calling_threads(call),
               .repeats = call->settings->measure.repeats};
    if (call->prints)
        print_case(&f);
    if (call->writer)
        write_case(call, &f);
    return CLI_OK;
}

static int run(const bench_call *call)
{
    bench_case first;
    any_case(call->settings, 0, &first);
    int code = bench_run_cases(call, NULL, first.name, print_head, show);
    if (code == CLI_OK && call->prints)
        print_formula(call->settings->measure.profile);
    return code;
}

const bench_what bench_what_cases = {.name = "cases", .operands = "", .run = run, .job = run_job};
