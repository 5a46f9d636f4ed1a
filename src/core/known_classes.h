/* core/known_classes.h - the lists that the build makes of src/core/classes (cmake/classes.cmake). */
#ifndef ATT_CORE_KNOWN_CLASSES_H
#define ATT_CORE_KNOWN_CLASSES_H

#include <attscope/names.h>

extern const att_known_classes att_known_classes_all[];
extern const int att_known_classes_number;

#endif
