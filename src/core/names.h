/* core/names.h - near misses, and the lists that the build makes of src/core/classes (cmake/classes.cmake). */
#ifndef ATT_CORE_NAMES_H
#define ATT_CORE_NAMES_H

#include <attscope/lab/names.h>

extern const att_known_classes att_known_classes_all[];
extern const int att_known_classes_number;

#endif
