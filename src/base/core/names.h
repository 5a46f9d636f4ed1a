/* core/names.h - class names of known data sets. cmake/classes.cmake makes this array from the files in
 * src/base/core/classes. */
#ifndef ATT_CORE_NAMES_H
#define ATT_CORE_NAMES_H

#include <attscope/lab/names.h>

extern const att_known_classes att_known_classes_all[];
extern const int att_known_classes_number;

#endif
