/* Small Faster R-CNNs with the names of torchvision's and mmdetection's files, part by part, against PyTorch in f64
 * (tools/goldens/detectors.py); files that are refused. */
#include <attscope/plan.h>

#include "base/io/scratch.h"
#include "context.h"
#include "engine/graph/graph.h"
#include "networks/layouts/golden_tensors.h"

SHARED_CONTEXT(threads, 2)

enum { VALUES = 32, LINE = 1 << 16, CLASSES = 5 };

/* Every `step`-th of the values of an output or probe. */
typedef struct golden_values {
    char name[24];
    int step, count;
    double *numbers;
} golden_values;

typedef struct golden {
    int height, width;
    double shown[2];
    golden_tensors tensors;
    golden_values values[VALUES];
    int value_count;
} golden;

/* As value_of() of the script. */
static double scale_of(const char *name, att_shape shape)
{
    static const struct {
        const char *part;
        double wide;
    } all[] = {{"cls_score", 16}, {"fc_cls", 16}, {"cls_logits", 4}, {"rpn_cls", 4}, {"rpn_reg", 4}};
    double wide = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(name, all[i].part))
            wide = all[i].wide;
    const double fan_in = (double)att_shape_count(shape) / (double)shape.dims[0];
    return shape.rank == 1 ? 0.4 : ldexp(4 * wide, -(int)ceil(log2(fan_in) / 2));
}

static void read_values(golden *g)
{
    assert_in_range(g->value_count, 0, VALUES - 1);
    golden_values *v = &g->values[g->value_count++];
    snprintf(v->name, sizeof v->name, "%s", strtok(NULL, " \n"));
    v->step = (int)strtol(strtok(NULL, " \n"), NULL, 10);
    v->numbers = calloc(LINE / 2, sizeof *v->numbers);
    for (const char *number; (number = strtok(NULL, " \n"));)
        v->numbers[v->count++] = strtod(number, NULL);
}

static golden *golden_read(const char *name)
{
    golden *g = calloc(1, sizeof *g);
    static char line[LINE];
    bool mine = false;
    FILE *file = golden_open("detectors.txt");
    while (fgets(line, sizeof line, file)) {
        const char *word = strtok(line, " \n");
        if (strcmp(word, "case") == 0) {
            mine = strcmp(strtok(NULL, " "), name) == 0;
            if (mine)
                sscanf(strtok(NULL, "\n"), "%d %d %lf %lf", &g->height, &g->width, &g->shown[0], &g->shown[1]);
        } else if (mine && strcmp(word, "tensor") == 0) {
            golden_tensors_add(&g->tensors, NULL, scale_of);
        } else if (mine && strcmp(word, "values") == 0) {
            read_values(g);
        }
    }
    fclose(file);
    assert_true(g->tensors.count > 0 && g->value_count > 0);
    return g;
}

static void golden_free(golden *g)
{
    golden_tensors_free(&g->tensors);
    for (int i = 0; i < g->value_count; i++)
        free(g->values[i].numbers);
    free(g);
}

static att_status open_golden(scratch *self, const golden *g, att_tensors **file)
{
    char path[512];
    return att_model_open_file(context, golden_tensors_write(self, &g->tensors, path), file);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Relative to the largest value; measured: 3.5e-14. */
static const double LIMIT = 1e-13;

static void compare(const golden_values *v, const att_shape *shape, const double *found)
{
    double largest = 0, worst = 0;
    const int64_t count = att_shape_count(*shape);
    assert_true(v->count > 0 && (int64_t)(v->count - 1) * v->step < count);
    for (int i = 0; i < v->count; i++)
        largest = fmax(largest, fabs(v->numbers[i]));
    for (int i = 0; i < v->count; i++) {
        const double error = fabs(found[(int64_t)i * v->step] - v->numbers[i]) / largest;
        if (!(error <= LIMIT))
            fail_msg("%s: value %d is %.15g instead of %.15g: relative error %g", v->name, i * v->step,
                     found[(int64_t)i * v->step], v->numbers[i], error);
        worst = fmax(worst, error);
    }
    print_message("%s: relative errors up to %.2g\n", v->name, worst);
}

static double *read_output(att_session *session, const char *name, const att_graph *graph, att_value value)
{
    const int64_t count = att_shape_count(att_value_shape(graph, value));
    double *numbers = calloc((size_t)count, sizeof *numbers);
    int32_t *whole = calloc((size_t)count, sizeof *whole);
    const bool is_whole = att_value_dtype(graph, value) == ATT_I32;
    must(att_session_output(session, name, 0, 1, is_whole ? (void *)whole : (void *)numbers));
    for (int64_t i = 0; is_whole && i < count; i++)
        numbers[i] = whole[i];
    free(whole);
    return numbers;
}

/* Runs the network on the golden's image, of which height and width `shown` are the photograph. */
static void run_golden(const golden *g, const att_model *model, att_weights *weights, const double shown[2],
                       const char *const *names, att_plan **plan, att_session **session)
{
    const size_t pixels = (size_t)(g->height * g->width) * 3;
    double *image = calloc(pixels, sizeof *image);
    att_plan_options options = att_plan_options_defaults();
    for (size_t i = 0; i < pixels; i++)
        image[i] = (double)(float)(4 * formula("image", (uint32_t)i));
    options.backend = "f64";
    options.outputs = names;
    must(att_plan_compile(att_model_graph(model), &options, plan));
    must(att_session_create(*plan, weights, 1, session));
    must(att_session_bind(*session, "image", image));
    must(att_session_bind(*session, "image_size", shown));
    must(att_session_run(*session, 1));
    free(image);
}

static void compare_all(const golden *g, const att_model *model, att_weights *weights)
{
    const char *names[VALUES + 1] = {NULL};
    const att_graph *graph = att_model_graph(model);
    att_plan *plan;
    att_session *session;
    for (int i = 0; i < g->value_count; i++)
        names[i] = g->values[i].name;
    run_golden(g, model, weights, g->shown, names, &plan, &session);
    for (int i = 0; i < g->value_count; i++) {
        const golden_values *v = &g->values[i];
        att_value value = att_graph_find_output(graph, v->name);
        if (value == ATT_NONE)
            value = att_graph_find_probe(graph, v->name);
        const att_shape shape = att_value_shape(graph, value);
        double *found = read_output(session, v->name, graph, value);
        compare(v, &shape, found);
        free(found);
    }
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

/* Boxes in a photograph that is as narrow as `width`. */
static int count_boxes(const golden *g, const att_model *model, att_weights *weights, double width)
{
    static const char *const names[] = {"count", NULL};
    const double shown[2] = {g->height, width};
    int32_t count;
    att_plan *plan;
    att_session *session;
    run_golden(g, model, weights, shown, names, &plan, &session);
    must(att_session_output(session, "count", 0, 1, &count));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    return count;
}

static void answers(scratch *self, const char *name, const char *head, const char *crop_mode)
{
    golden *g = golden_read(name);
    att_tensors *file;
    att_model *model;
    att_weights *weights;
    att_identity identity;
    att_option_values flags = att_options_none();
    att_options_set_sides(&flags, "img_size", g->height, g->width);
    att_options_set(&flags, "anchor_size", 8);
    att_options_set(&flags, "level_proposals", 60);
    att_options_set(&flags, "proposals", 40);
    att_options_set(&flags, "detections", 60);
    must(open_golden(self, g, &file));
    must(att_model_identify(context, file, NULL, NULL, &flags, &identity));
    assert_string_equal(identity.preprocess.crop_mode, crop_mode);
    assert_string_equal(identity.preprocess.interpolation, "bilinear_plain");
    assert_string_equal(att_options_text(&identity.options, "head"), head);
    must(att_model_create(context, identity.name, &identity.options, ATT_F64, &model));
    must(att_weights_create(att_model_graph(model), "f64", &weights));
    must(att_model_load(model, file, weights));
    assert_int_equal(att_model_classes(model), CLASSES);
    compare_all(g, model, weights);
    const bool keeps = strcmp(name, "mmdetection") == 0;
    assert_true((count_boxes(g, model, weights, 0.0005) > 0) == keeps); /* less than proposals have in torchvision */
    assert_true((count_boxes(g, model, weights, 0.005) > 0) == keeps);  /* less than boxes have */
    assert_int_equal(count_boxes(g, model, weights, 0), 0);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_tensors_close(&file);
    golden_free(g);
}

SCRATCH_TEST(each_part_of_fasterrcnn_resnet_fpn_gives_torchvisions_values)
{
    answers(self, "first", "rcnn", "within");
}

SCRATCH_TEST(each_part_of_fasterrcnn_resnet_fpn_v2_gives_torchvisions_values)
{
    answers(self, "v2", "rcnn_v2", "within");
}

SCRATCH_TEST(each_part_of_mmdetections_faster_rcnn_gives_the_values_of_its_definition)
{
    answers(self, "mmdetection", "rcnn", "keep");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void rename_tensor(golden *g, const char *from, const char *to)
{
    for (int i = 0; i < g->tensors.count; i++)
        if (strcmp(g->tensors.names[i], from) == 0)
            snprintf(g->tensors.names[i], sizeof g->tensors.names[i], "%s", to);
}

/* Before version 0.14 torchvision had fewer levels of names in pyramid and proposal network. */
SCRATCH_TEST(older_files_open)
{
    golden *g = golden_read("first");
    att_tensors *file;
    att_identity identity;
    char from[96], to[96];
    for (int part = 0; part < 4; part++)
        for (int level = 0; level < 4; level++) {
            const char *block = part / 2 ? "layer" : "inner", *end = part % 2 ? "bias" : "weight";
            snprintf(from, sizeof from, "backbone.fpn.%s_blocks.%d.0.%s", block, level, end);
            snprintf(to, sizeof to, "backbone.fpn.%s_blocks.%d.%s", block, level, end);
            rename_tensor(g, from, to);
        }
    rename_tensor(g, "rpn.head.conv.0.0.weight", "rpn.head.conv.weight");
    rename_tensor(g, "rpn.head.conv.0.0.bias", "rpn.head.conv.bias");
    must(open_golden(self, g, &file));
    must(att_model_identify(context, file, NULL, NULL, NULL, &identity));
    assert_true(att_tensors_find(file, "detector.fpn.layer_blocks.3.0.bias") >= 0);
    assert_true(att_tensors_find(file, "detector.rpn.head.conv.0.0.weight") >= 0);
    assert_float_equal(att_options_number(&identity.options, "head_channels", 0), 12, 0);
    assert_float_equal(att_options_number(&identity.options, "box_channels", 0), 20, 0);
    att_tensors_close(&file);
    golden_free(g);
}

/* Files of networks with modules have their names in the backbone. */
SCRATCH_TEST(modules_of_the_backbone_open)
{
    golden *g = golden_read("first");
    att_tensors *file;
    att_identity identity;
    for (int layer = 1; layer <= 4; layer++)
        for (int part = 0; part < 4; part++) {
            char line[96];
            const int wide = 4 << layer, inputs = part < 2 ? wide : 8, outputs = part < 2 ? 8 : wide;
            snprintf(line, sizeof line, "backbone.body.layer%d.0.se.fc%d.%s %d", layer, 1 + part / 2,
                     part % 2 ? "bias" : "weight", outputs);
            if (part % 2 == 0)
                snprintf(line + strlen(line), sizeof line - strlen(line), " %d 1 1", inputs);
            golden_tensors_add(&g->tensors, line, scale_of);
        }
    must(open_golden(self, g, &file));
    must(att_model_identify(context, file, NULL, NULL, NULL, &identity));
    assert_string_equal(att_options_text(&identity.options, "task"), "detect");
    assert_string_equal(att_options_text(&identity.options, "modules"), "se:divisor=8");
    assert_true(att_tensors_find(file, "layer4.0.se.fc2.bias") >= 0);
    att_tensors_close(&file);
    golden_free(g);
}

/* torchvision trained these weights without the eps of batch norm. */
SCRATCH_TEST(the_name_of_torchvisions_first_weights_sets_an_eps_of_zero)
{
    static const struct {
        const char *name;
        double eps;
    } cases[] = {{"fasterrcnn_resnet50_fpn_coco-258fb6c6.pth", 0},
                 {"fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth", -1},
                 {"model.safetensors", -1}};
    golden *g = golden_read("first");
    char written[512], path[512];
    golden_tensors_write(self, &g->tensors, written);
    for (int i = 0; i < 3; i++) {
        att_tensors *file;
        att_identity identity;
        assert_int_equal(rename(written, scratch_path(self, cases[i].name, path)), 0);
        must(att_model_open_file(context, path, &file));
        must(att_model_identify(context, file, NULL, NULL, NULL, &identity));
        assert_float_equal(att_options_number(&identity.options, "bn_eps", -1), cases[i].eps, 0);
        att_tensors_close(&file);
        snprintf(written, sizeof written, "%s", path);
    }
    golden_free(g);
}

SCRATCH_TEST(detectors_over_mobilenets_are_refused_by_name)
{
    golden *g = golden_read("first");
    att_tensors *file = NULL;
    rename_tensor(g, "backbone.body.conv1.weight", "backbone.body.0.0.weight");
    rename_tensor(g, "backbone.body.layer1.0.conv1.weight", "backbone.body.1.block.0.0.weight");
    assert_fails(context, open_golden(self, g, &file), ATT_ERR_UNSUPPORTED, "fasterrcnn_mobilenet_v3_large_fpn");
    assert_null(file);
    golden_free(g);
}

/* --- mmdetection -------------------------------------------------------------------------------------------------- */

#define BOX_HEAD "roi_head.bbox_head."

/* Opens the file with mmdetection's configuration beside the tensors, as its own files have it. */
static att_status open_configured(scratch *self, const golden *g, const char *configuration, att_tensors **file)
{
    const att_safetensors_pair pair = {ATT_TENSORS_CONFIGURATION, configuration};
    const att_safetensors_content content = {
        .tensors = g->tensors.tensors, .tensor_count = g->tensors.count, .metadata = &pair, .metadata_count = 1};
    char path[512];
    must(att_safetensors_write(context, scratch_path(self, "model.safetensors", path), &content));
    return att_model_open_file(context, path, file);
}

SCRATCH_TEST(a_configuration_that_attscope_lacks_is_refused)
{
    static const struct {
        const char *text, *refused; /* NULL: it opens */
    } cases[] = {
        {"dict(style='pytorch', ratios=[0.5, 1.0, 2.0], scales=[8])\nstyle_of=1\nimg_scales=[1]\nto_rgb=True", NULL},
        {"backbone=dict(\n    style='caffe')", "sets style to 'caffe'; attscope opens detectors with 'pytorch' only"},
        {"dict(bgr_to_rgb=False, pad=32)", "sets bgr_to_rgb to False;"},
        {"to_rgb=True\nto_rgb=False", "sets to_rgb to False;"},
        {"scales=[8, 16], x=1", "sets scales to [8, 16];"},
        {"dict(sampling_ratio=02)", "sets sampling_ratio to 02;"},
    };
    golden *g = golden_read("mmdetection");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_tensors *file = NULL;
        if (cases[i].refused)
            assert_fails(context, open_configured(self, g, cases[i].text, &file), ATT_ERR_UNSUPPORTED,
                         cases[i].refused);
        else
            must(open_configured(self, g, cases[i].text, &file));
        att_tensors_close(&file);
    }
    golden_free(g);
}

SCRATCH_TEST(files_without_a_configuration_are_refused_by_a_name_with_caffe)
{
    golden *g = golden_read("mmdetection");
    att_tensors *file = NULL;
    char written[512], path[512];
    golden_tensors_write(self, &g->tensors, written);
    scratch_path(self, "faster_rcnn_r50_caffe_fpn_1x.safetensors", path);
    assert_int_equal(rename(written, path), 0);
    assert_fails(context, att_model_open_file(context, path, &file), ATT_ERR_UNSUPPORTED, "of the style 'caffe'");
    golden_free(g);
}

/* Sets the number of rows of a tensor, with other values. */
static void resize_tensor(golden *g, const char *name, int64_t rows)
{
    for (int i = 0; i < g->tensors.count; i++) {
        att_safetensors_tensor *tensor = &g->tensors.tensors[i];
        if (strcmp(tensor->name, name) != 0)
            continue;
        free((void *)(uintptr_t)tensor->data);
        tensor->shape.dims[0] = rows;
        tensor->data = calloc((size_t)att_shape_count(tensor->shape), sizeof(float));
    }
}

SCRATCH_TEST(eighty_classes_without_names_are_cocos)
{
    enum { OBJECTS = 80 };
    golden *g = golden_read("mmdetection");
    att_tensors *file;
    resize_tensor(g, BOX_HEAD "fc_cls.weight", OBJECTS + 1);
    resize_tensor(g, BOX_HEAD "fc_cls.bias", OBJECTS + 1);
    resize_tensor(g, BOX_HEAD "fc_reg.weight", (int64_t)4 * OBJECTS);
    resize_tensor(g, BOX_HEAD "fc_reg.bias", (int64_t)4 * OBJECTS);
    must(open_golden(self, g, &file));
    const char *names = att_tensors_metadata(file, ATT_TENSORS_CLASSES);
    assert_true(strncmp(names, "person\nbicycle\n", 15) == 0 && strstr(names, "\ntoothbrush\n"));
    att_tensors_close(&file);
    golden_free(g);
}

SCRATCH_TEST(other_box_heads_are_refused)
{
    golden *g = golden_read("mmdetection");
    att_tensors *file = NULL;
    resize_tensor(g, BOX_HEAD "fc_reg.weight", 4);
    assert_fails(context, open_golden(self, g, &file), ATT_ERR_UNSUPPORTED,
                 BOX_HEAD "fc_reg.weight has 4 rows for 5 classes");
    rename_tensor(g, BOX_HEAD "shared_fcs.1.weight", BOX_HEAD "0.shared_fcs.1.weight");
    assert_fails(context, open_golden(self, g, &file), ATT_ERR_UNSUPPORTED,
                 "has no tensor \"" BOX_HEAD "shared_fcs.1.weight\"");
    rename_tensor(g, BOX_HEAD "fc_cls.weight", "bbox_head.fc_cls.weight");
    assert_fails(context, open_golden(self, g, &file), ATT_ERR_UNSUPPORTED, "is of a version before 2.0");
    golden_free(g);
}
