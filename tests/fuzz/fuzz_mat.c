/* A MATLAB file: reads the fields of its struct array "synsets". */
#include "fuzz.h"

#include "io/mat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    att_mat_struct *array = NULL;
    if (att_mat_struct_read(fuzz_context(), "file", data, size, "synsets", &array) == ATT_OK)
        for (int64_t i = 0; i < att_mat_struct_count(array); i++) {
            double number;
            char text[10];
            if (att_mat_struct_text(array, i, "WNID", text, sizeof text) == ATT_OK)
                fuzz_require(strlen(text) < sizeof text, "a text ends in its buffer");
            (void)att_mat_struct_number(array, i, "ILSVRC2012_ID", &number);
        }
    att_mat_struct_free(&array);
    fuzz_end(before);
    return 0;
}
