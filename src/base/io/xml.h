/* io/xml.h - reads XML with expat, under limits that make untrusted input safe. */
#ifndef ATT_IO_XML_H
#define ATT_IO_XML_H

#include <stddef.h>

#include <attscope/context.h>

enum { ATT_XML_DEPTH = 16, ATT_XML_PATH = 256, ATT_XML_TEXT = 4096 };

/* Called at the end of each element. path: the names of the elements around it and its own, joined by "/":
 * "annotation/object/name". text: the characters after its last inner element, without blanks around them. line: where
 * the element ends, from 1. */
typedef att_status (*att_xml_element)(void *user, const char *path, const char *text, int line);

/* Reads a document. Attributes and comments are skipped. Errors: ERR_FORMAT, with the line, for malformed and truncated
 * documents, document types (<!DOCTYPE>), more than ATT_XML_DEPTH elements inside each other, a path of ATT_XML_PATH
 * bytes or more, and a text of ATT_XML_TEXT bytes or more; ERR_MEMORY; those of `element`.
 * what: the name of the source in messages. */
att_status att_xml_parse(att_context *context, const char *what, const char *bytes, size_t size,
                         att_xml_element element, void *user);

#endif
