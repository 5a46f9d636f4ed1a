/* Boxes that move with their image, and the boxes of a loader's batches. */
#include "data/loading.h"
#include "data/opened.h"

/* --- moving ------------------------------------------------------------------------------------------------------- */

static void assert_row(const float *row, float left, float top, float right, float low, float class)
{
    const float expected[ATT_BOX_COLUMNS] = {left, top, right, low, class};
    for (int i = 0; i < ATT_BOX_COLUMNS; i++)
        assert_float_equal(row[i], expected[i], 1e-5);
}

TEST(boxes_move_with_their_image)
{
    static const att_true_box boxes[] = {{.x = 1, .y = 2, .width = 3, .height = 4, .label = 7, .crowd = true},
                                         {.x = -1, .y = 2, .width = 3, .height = 9, .label = 5},
                                         {.x = 6, .y = 0, .width = 2, .height = 2, .label = 6}};
    float rows[4 * ATT_BOX_COLUMNS];
    att_geometry geometry = {
        .map = {{2, 0, 0}, {0, 3, 0}}, .from_width = 8, .from_height = 10, .width = 32, .height = 32};
    assert_int_equal(att_boxes_move(boxes, 3, &geometry, 4, rows), 3);
    assert_row(rows, 0, 6, 4, 30, 5);
    assert_row(rows + 5, 12, 0, 16, 6, 6);
    assert_row(rows + 10, 2, 6, 8, 18, ATT_BOX_IGNORED);
    assert_row(rows + 15, 0, 0, 0, 0, 0);
    assert_int_equal(att_boxes_move(boxes, 3, &geometry, 2, rows), 2);
    assert_row(rows + 5, 12, 0, 16, 6, 6);
    /* mirrored, then cropped to the columns 0 to 4 of the image; nothing of the last box is left */
    geometry =
        (att_geometry){.map = {{-1, 0, 4}, {0, 1, 0}}, .from_width = 8, .from_height = 10, .width = 4, .height = 10};
    assert_int_equal(att_boxes_move(boxes, 3, &geometry, 4, rows), 2);
    assert_row(rows, 2, 2, 4, 10, 5);
    assert_row(rows + 5, 0, 2, 3, 6, ATT_BOX_IGNORED);
    /* turned by 45 degrees around the upper left corner: the smallest upright box around it */
    geometry = (att_geometry){
        .map = {{0.5, -0.5, 8}, {0.5, 0.5, 0}}, .from_width = 8, .from_height = 10, .width = 32, .height = 32};
    assert_int_equal(att_boxes_move(boxes + 2, 1, &geometry, 4, rows), 1);
    assert_row(rows, 10, 3, 12, 5, 6);
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

enum { MOST = 2 };

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *fields)
{
    int count;
    const att_true_box *boxes = att_dataset_boxes(dataset, index, &count);
    (void)user, (void)context;
    *(int32_t *)fields[1] = att_boxes_move(boxes, count, geometry, MOST, fields[0]);
    return ATT_OK;
}

/* Batches of one padded shape, with the boxes of mirrored images of which the sides are doubled. */
SCRATCH_TEST(loaders_give_the_boxes_of_each_image)
{
    static const att_field fields[] = {{"boxes", ATT_F32, {2, {MOST, ATT_BOX_COLUMNS}}}, {"boxes_count", ATT_I32, {0}}};
    att_dataset_options how = att_dataset_options_defaults();
    att_dataset *dataset = NULL;
    picture_write_sized(self, "images/a.png", 1, 8, 6);
    picture_write_sized(self, "images/b.png", 2, 3, 10);
    picture_write_sized(self, "images/c.png", 3, 8, 5);
    scratch_text(self, "labels/a.txt", "0 0.25 0.5 0.5 0.3333333333333333\n1 0.75 0.25 0.25 0.5\n2 0.5 0.5 1 1\n");
    scratch_text(self, "labels/c.txt", "3 0.9375 0.5 0.375 0.4\n");
    how.annotations = ATT_ANNOTATION_BOXES;
    CHECK(self->context, att_dataset_open(self->context, self->folder, &how, &dataset));
    att_loader_options options = att_loader_options_defaults(0, 0, 3);
    options.transform.crop = ATT_CROP_KEEP;
    options.transform.longer = 20;
    options.transform.shorter = 12;
    options.transform.divisor = 4;
    options.transform.flip = 1;
    options.image = "image";
    options.batch_size = 2;
    options.targets = (att_target_rules){.fields = fields, .count = 2, .fill = fill};
    for (options.workers = 0; options.workers < 3; options.workers++) {
        att_loader *loader = make_loader(self, dataset, &options);
        att_batch batch =
            next(self, loader); /* 8 x 5 pixels become 19 x 12, and with 8 x 6 (16 x 12) there is no batch */
        for (int seen = 0; batch.count > 0; batch = next(self, loader), seen++) {
            const float *rows = att_batch_field(&batch, "boxes");
            const int32_t *counts = att_batch_field(&batch, "boxes_count");
            assert_int_equal(batch.count, 1);
            assert_in_range(seen, 0, 2);
            if (batch.indices[0] == 0) {
                assert_int_equal(counts[0], 2); /* of three */
                assert_row(rows, 8, 4, 16, 8, 0);
                assert_row(rows + ATT_BOX_COLUMNS, 2, 0, 6, 6, 1);
            } else if (batch.indices[0] == 1) {
                assert_int_equal(counts[0], 0);
                assert_row(rows, 0, 0, 0, 0, 0);
            } else {
                assert_int_equal(counts[0], 1);
                assert_row(rows, 0, 3.6f, 19 * 0.25f, 8.4f, 3);
            }
        }
        att_loader_destroy(&loader);
    }
    att_dataset_close(&dataset);
}
