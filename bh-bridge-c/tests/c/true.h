/* A condition that must hold, else the program ends and says where it did not. */
#ifndef TRUE_H
#define TRUE_H

#include <stdio.h>
#include <stdlib.h>

#define TRUE(condition)                                                               \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#endif
