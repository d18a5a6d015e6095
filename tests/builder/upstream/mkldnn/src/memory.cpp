// Rounds a size up to pages. `peek` copies a short block through a longer type: GCC 11 and later warn (array-bounds).
// What lies behind it is the allocator's own and is not looked at.
#include "mkldnn.h"

namespace {
struct long_block {
    long used, spare;
};
struct short_block {
    long used;
};

long peek(long used) {
    short_block *block = new short_block;
    block->used = used;
    long_block copy = *reinterpret_cast<long_block *>(block);
    asm volatile("" : : "r"(&copy) : "memory");
    delete block;
    return copy.used;
}
} // namespace

long standin_pages(long bytes) {
    long pages = 0;
#pragma omp parallel for reduction(+ : pages)
    for (long first = 0; first < bytes; first += 4096)
        pages += 1;
    return peek(pages);
}
