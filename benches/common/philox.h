/* Philox2x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011). */
#ifndef PHILOX_H
#define PHILOX_H

#include <stdint.h>

/* The 64 random bits of `counter` under `key`: the first output word is the low half. Held in 64-bit lanes, so that a
 * loop over counters becomes vector code. */
static inline uint64_t philox2x32(uint64_t counter, uint32_t key) {
    uint64_t left = (uint32_t)counter, right = counter >> 32;
    for (int round = 0; round < 10; round++) {
        uint64_t product = (uint64_t)UINT32_C(0xD256D193) * (uint32_t)left;
        left = (product >> 32) ^ key ^ right;
        right = (uint32_t)product;
        key += UINT32_C(0x9E3779B9);
    }
    return right << 32 | left;
}

#endif
