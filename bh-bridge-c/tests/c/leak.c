/* A program that loses 77 bytes, for the test of the checker. */
#include <bh.h>
#include <stdlib.h>

int main(void) {
    volatile char *lost = malloc(77);
    lost[0] = 1;
    lost = NULL;
    return bh_error_status();
}
