/* attscope coco-eval: average precision and recall of detected boxes. */
#include <string.h>

#include <attscope/coco.h>

#include "flags.h"
#include "paths.h"

typedef struct settings {
    bool classes;
    cli_output output;
} settings;

static const att_flag options[] = {
    {"classes", .kind = ATT_FLAG_SWITCH, .help = "print the figures of each class, too",
     ATT_FLAG_AT(settings, classes)},
};

static const att_flag_group group = {"Evaluation", .rows = options, .row_count = sizeof options / sizeof *options};
static const att_flag_use uses[] = {{&group, 0}, {&cli_group_output, offsetof(settings, output)}};

/* The twelve lines of pycocotools. */
static void print_figures(const att_coco_evaluation *evaluation)
{
    for (int i = 0; i < ATT_COCO_FIGURES; i++) {
        const att_coco_figure f = att_coco_figure_at(i);
        cli_print(" Average %-10s (%s) @[ IoU=%-9s | area=%6s | maxDets=%3d ] = %.3f\n",
                  f.recall ? "Recall" : "Precision", f.recall ? "AR" : "AP", f.iou, f.area, f.max_detections,
                  att_coco_evaluation_figure(evaluation, i));
    }
}

static void print_classes(const att_coco_evaluation *evaluation)
{
    enum { NAME = 24 };
    cli_print("\n  %-*s  %7s  %6s  %6s  %6s  %6s\n", NAME, "class", "boxes", "AP", "AP50", "AP75", "AR100");
    for (int i = 0; i < att_coco_evaluation_classes(evaluation); i++) {
        const att_coco_class c = att_coco_evaluation_class(evaluation, i);
        cli_print("  %-*.*s  %7lld  %6.3f  %6.3f  %6.3f  %6.3f\n", NAME, NAME, c.name, (long long)c.boxes, c.ap, c.ap50,
                  c.ap75, c.ar);
    }
}

static void write_class(att_json_writer *writer, const att_coco_class *c)
{
    att_json_begin_object(writer);
    att_json_put_integer(writer, "id", c->id);
    att_json_put_string(writer, "name", c->name);
    att_json_put_integer(writer, "boxes", c->boxes);
    att_json_put_number(writer, "AP", c->ap);
    att_json_put_number(writer, "AP50", c->ap50);
    att_json_put_number(writer, "AP75", c->ap75);
    att_json_put_number(writer, "AR100", c->ar);
    att_json_end_object(writer);
}

/* As for cli_json_save(). */
static void write_figures(att_json_writer *writer, const void *from)
{
    const att_coco_evaluation *evaluation = from;
    att_json_put_integer(writer, "images", att_coco_evaluation_images(evaluation));
    att_json_put_integer(writer, "detections", att_coco_evaluation_detections(evaluation));
    for (int i = 0; i < ATT_COCO_FIGURES; i++)
        att_json_put_number(writer, att_coco_figure_at(i).name, att_coco_evaluation_figure(evaluation, i));
    att_json_put_array(writer, "classes");
    for (int i = 0; i < att_coco_evaluation_classes(evaluation); i++) {
        const att_coco_class c = att_coco_evaluation_class(evaluation, i);
        write_class(writer, &c);
    }
    att_json_end_array(writer);
}

static int show(cli_app *cli, const settings *s, const att_coco_evaluation *evaluation)
{
    if (cli_prints(s->output.json)) {
        print_figures(evaluation);
        if (s->classes)
            print_classes(evaluation);
    }
    return cli_json_save(cli, s->output.json, write_figures, evaluation);
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    att_coco_evaluation *evaluation = NULL;
    (void)count;
    int code = cli_output_check(s->output.json);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = cli_check(cli, att_coco_evaluate(cli->context, operands[0], operands[1], &evaluation));
    if (code == CLI_OK)
        code = show(cli, s, evaluation);
    att_coco_evaluation_destroy(&evaluation);
    return code;
}

const cli_command cli_command_coco_eval = {
    .name = "coco-eval",
    .summary = "compares detected boxes with annotations, as COCO does",
    .operands = "ANNOTATIONS RESULTS",
    .least_operands = 2,
    .most_operands = 2,
    .about =
        "ANNOTATIONS: JSON with the lists images, categories and annotations, as COCO's\n"
        "instances_val2017.json. RESULTS: a JSON list of detections, each with image_id,\n"
        "category_id, bbox [left, top, width, height] and score.\n\n"
        "Prints the twelve figures of pycocotools: average precision (AP) and average\n"
        "recall (AR) of boxes, as means over the classes that have boxes and over the\n"
        "thresholds of the overlap (IoU). -1: no box is in this range of areas. Boxes of\n"
        "crowds count neither as found nor as missed.",
    .example =
        "  attscope coco-eval instances_val2017.json detections.json\n"
        "  attscope coco-eval instances_val2017.json detections.json --classes --json figures.json",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
