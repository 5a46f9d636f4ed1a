/* The attention maps of a run, as the report reads them: opens the file and writes some images. */
#include "fuzz.h"

#include "base/core/text.h"
#include "lab/report/map_file.h"
#include "networks/tasks/caption.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = fuzz_begin();
    const char *path = fuzz_file("maps.safetensors", data, size);
    att_map_file maps = {0};
    if (att_map_file_open(fuzz_context(), path, &maps) == ATT_OK) {
        fuzz_require(maps.images > 0 && maps.node_count > 0 && maps.bytes_per_image <= size &&
                         att_map_file_name(&maps, 0),
                     "maps are not larger than their file");
        for (int64_t i = 0; i < maps.images; i++) {
            const char *caption = att_map_file_caption(&maps, i);
            fuzz_require(caption && att_utf8_valid(caption) && strlen(caption) <= ATT_CAPTION_BYTES,
                         "every image has a caption");
        }
        att_json_writer *json = NULL;
        const char *text;
        size_t length;
        const int64_t shown[] = {maps.images - 1, 0};
        for (int64_t count = 0; count <= maps.images && count <= 2; count++) {
            if (att_json_writer_create(fuzz_context(), false, &json) != ATT_OK)
                break;
            if (att_map_file_write(json, &maps, shown, count) == ATT_OK)
                fuzz_require(att_json_writer_finish(json, &text, &length) == ATT_OK, "the written JSON is complete");
            att_json_writer_destroy(&json);
        }
    }
    att_map_file_close(&maps);
    fuzz_end(before);
    return 0;
}
