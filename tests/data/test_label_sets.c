/* Several right classes for an image, from ReaL's file. */
#include "data/label_sets.h"

#include "data/opened.h"

static const char name_2[] = "a/ILSVRC2012_val_00000002.png", name_3[] = "b/sub/ILSVRC2012_val_00000003.png";

/* Reads the text as real.json for the images in the folder. */
static att_status read_sets(scratch *self, const char *text, att_label_sets *sets)
{
    char path[512];
    snprintf(path, sizeof path, "%s.json", self->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, false);
    assert_int_equal(fclose(file), 0);
    att_dataset *dataset = open_set(self, self->folder, NULL, NULL);
    *sets = (att_label_sets){.arena = {.context = self->context}};
    att_status status = att_label_sets_read(path, dataset, 10, sets);
    att_dataset_close(&dataset);
    remove(path);
    return status;
}

SCRATCH_TEST(images_are_found_by_their_numbers)
{
    att_label_sets sets;
    picture_write(self, name_2, 1);
    picture_write(self, name_3, 2);
    assert_int_equal(read_sets(self, "[[0], [9, 3], [], [1]]", &sets), ATT_OK);
    assert_int_equal(sets.count, 2);
    assert_int_equal(sets.first[0], 0);
    assert_int_equal(sets.first[1], 2);
    assert_int_equal(sets.first[2], 2);
    assert_int_equal(sets.labels[0], 9);
    assert_int_equal(sets.labels[1], 3);
    att_label_sets_free(&sets);
}

SCRATCH_TEST(other_files_are_refused)
{
    static const struct {
        const char *text, *part;
        att_status status;
    } cases[] = {
        {"{}", "is not an array of arrays", ATT_ERR_FORMAT},
        {"[[1], 2, [3]]", "element 1 is not an array", ATT_ERR_FORMAT},
        {"[[1], [10], [3]]", "element 1 has a class that is not a number from 0 to 9", ATT_ERR_MISMATCH},
        {"[[1], [-1], [3]]", "element 1 has a class that is not a number from 0 to 9", ATT_ERR_MISMATCH},
        {"[[1], [\"1\"], [3]]", "element 1 has a class that is not a number from 0 to 9", ATT_ERR_MISMATCH},
        {"[[1], [1]]", "has labels of 2 images, and none of b/sub/ILSVRC2012_val_00000003.png", ATT_ERR_MISMATCH},
        {"[[1], [2], [2.0]]", "element 2 has a class that is not a number from 0 to 9", ATT_ERR_MISMATCH},
        {"[[1], [], []]", "has no class for any of the 2 images", ATT_ERR_MISMATCH},
        {"[[1], [1]", "not valid JSON", ATT_ERR_FORMAT},
    };
    picture_write(self, name_2, 1);
    picture_write(self, name_3, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_label_sets sets;
        assert_fails(self->context, read_sets(self, cases[i].text, &sets), cases[i].status, cases[i].part);
        att_label_sets_free(&sets);
    }
}

SCRATCH_TEST(images_of_other_names_are_refused)
{
    static const char *const names[] = {"a/ILSVRC2012_val_0000001.png", "a/ILSVRC2012_val_000000001.png",
                                        "a/ILSVRC2012_val_00000000.png", "a/val_00000001.png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        att_label_sets sets;
        char path[512];
        picture_write(self, names[i], 1);
        assert_fails(self->context, read_sets(self, "[[1]]", &sets), ATT_ERR_MISMATCH, names[i]);
        att_label_sets_free(&sets);
        snprintf(path, sizeof path, "%s/%s", self->folder, names[i]);
        assert_int_equal(remove(path), 0);
    }
}
