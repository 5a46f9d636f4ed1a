#include "base/io/xml.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"

typedef struct reading {
    att_context *context;
    const char *what;
    XML_Parser parser;
    att_xml_element element;
    void *user;
    att_status status; /* of the first failure */
    char path[ATT_XML_PATH], text[ATT_XML_TEXT];
    size_t ends[ATT_XML_DEPTH]; /* lengths of the paths of the open elements */
    size_t text_size;
    int depth;
} reading;

static int line_of(const reading *r)
{
    const XML_Size line = XML_GetCurrentLineNumber(r->parser);
    return line < INT_MAX ? (int)line : INT_MAX;
}

static void stop(reading *r, att_status status)
{
    r->status = status;
    XML_StopParser(r->parser, XML_FALSE);
}

static void refuse(reading *r, const char *reason)
{
    stop(r, att_fail(r->context, ATT_ERR_FORMAT, "%s, line %d: %s", r->what, line_of(r), reason));
}

static void XMLCALL begin(void *user, const XML_Char *name, const XML_Char **attributes)
{
    reading *r = user;
    (void)attributes;
    const size_t before = r->depth > 0 ? r->ends[r->depth - 1] : 0, slash = before > 0, length = strlen(name);
    if (r->status != ATT_OK)
        return;
    if (r->depth == ATT_XML_DEPTH || before + slash + length >= sizeof r->path) {
        refuse(r, "too many elements inside each other, or too long a name");
        return;
    }
    if (slash)
        r->path[before] = '/';
    memcpy(r->path + before + slash, name, length + 1);
    r->ends[r->depth++] = before + slash + length;
    r->text_size = 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the text without blanks around it. */
static const char *trimmed(reading *r)
{
    char *text = r->text;
    while (r->text_size > 0 && is_blank(text[r->text_size - 1]))
        r->text_size--;
    text[r->text_size] = '\0';
    while (is_blank(*text))
        text++;
    return text;
}

static void XMLCALL end(void *user, const XML_Char *name)
{
    reading *r = user;
    (void)name;
    if (r->status != ATT_OK)
        return;
    att_status status = r->element(r->user, r->path, trimmed(r), line_of(r));
    r->depth--;
    r->path[r->depth > 0 ? r->ends[r->depth - 1] : 0] = '\0';
    r->text_size = 0;
    if (status != ATT_OK)
        stop(r, status);
}

static void XMLCALL add_text(void *user, const XML_Char *text, int length)
{
    reading *r = user;
    if (r->status != ATT_OK)
        return;
    if ((size_t)length >= sizeof r->text - r->text_size) {
        refuse(r, "too long a text");
        return;
    }
    memcpy(r->text + r->text_size, text, (size_t)length);
    r->text_size += (size_t)length;
}

static void XMLCALL refuse_type(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                int has_internal)
{
    (void)name, (void)system, (void)public, (void)has_internal;
    refuse(user, "document types (<!DOCTYPE ...>) are not read; remove this line");
}

static att_status fail_parser(const reading *r)
{
    const enum XML_Error error = XML_GetErrorCode(r->parser);
    if (error == XML_ERROR_NO_MEMORY)
        return att_fail_memory(r->context, ATT_XML_TEXT, r->what);
    return att_fail(r->context, ATT_ERR_FORMAT, "%s, line %d: not valid XML: %s", r->what, line_of(r),
                    XML_ErrorString(error));
}

static att_status read_all(reading *r, const char *bytes, size_t size)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin, end);
    XML_SetCharacterDataHandler(r->parser, add_text);
    XML_SetStartDoctypeDeclHandler(r->parser, refuse_type);
    if (XML_Parse(r->parser, bytes, (int)size, XML_TRUE) == XML_STATUS_OK)
        return ATT_OK;
    return r->status != ATT_OK ? r->status : fail_parser(r);
}

att_status att_xml_parse(att_context *context, const char *what, const char *bytes, size_t size,
                         att_xml_element element, void *user)
{
    reading r = {.context = context, .what = what, .element = element, .user = user};
    if (size > INT_MAX)
        return att_fail(context, ATT_ERR_FORMAT, "%s has %zu bytes; expected less than 2 GiB", what, size);
    r.parser = XML_ParserCreate(NULL);
    if (!r.parser)
        return att_fail_memory(context, ATT_XML_TEXT, what);
    att_status status = read_all(&r, bytes, size);
    XML_ParserFree(r.parser);
    return status;
}
