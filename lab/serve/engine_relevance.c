/* Relevance of the parts of an image for a class. */
#include "lab/serve/engine_parts.h"

void att_engine_write_methods(const att_opened *o, att_json_writer *writer)
{
    const int count = att_relevance_applies(o->seats[0].explorer) ? att_relevance_method_count() : 0;
    att_json_put_array(writer, "relevance");
    for (int i = 0; i < count; i++) {
        const att_relevance_method_info info = att_relevance_method_at(i);
        if (info.needs_image && att_engine_reads_texts(o))
            continue;
        att_json_begin_object(writer);
        att_json_put_string(writer, "name", info.name);
        att_json_put_string(writer, "title", info.title);
        att_json_put_string(writer, "summary", info.summary);
        att_json_put_string(writer, "source", info.source);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

static void write_map(const char *method, const att_relevance_map *map, att_json_writer *writer)
{
    att_json_put_string(writer, "method", method);
    att_json_put_integer(writer, "class", map->target);
    att_json_put_number(writer, "logit", map->logit);
    att_json_put_integer(writer, "height", map->height);
    att_json_put_integer(writer, "width", map->width);
    att_json_put_array(writer, "values");
    for (int i = 0; i < map->height * map->width; i++)
        att_json_number(writer, map->values[i]);
    att_json_end_array(writer);
}

/* After a failure the explorer may have run another image. */
static att_status find_map(const att_opened *o, att_seat *s, const char *method, int target, att_relevance_map *map)
{
    att_seat_inputs room;
    const att_batch inputs = att_engine_seat_inputs(o, s, &room);
    if (!s->relevance)
        ATT_TRY(att_relevance_create(s->explorer, &s->relevance));
    const att_status status = att_relevance_run(s->relevance, &inputs, method, target, map);
    s->has_run = status == ATT_OK;
    return status;
}

att_status att_engine_write_relevance(att_engine *engine, att_context *context, const att_engine_view *view,
                                      const char *method, int target, att_json_writer *writer)
{
    att_opened *o;
    att_seat *s;
    att_relevance_map map;
    ATT_TRY(att_engine_enter(engine, context));
    att_status status = att_engine_run(engine, view, &o, &s);
    if (status == ATT_OK)
        status = find_map(o, s, method, target, &map);
    if (status == ATT_OK)
        write_map(method, &map, writer);
    return att_engine_leave(engine, status);
}
