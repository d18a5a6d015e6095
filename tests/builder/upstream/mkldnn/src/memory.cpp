// Rounds a size up to pages. `peek` looks at a short block through a longer type: GCC 11 and later warn (array-bounds).
#include <cstdlib>
#include "mkldnn.h"

namespace {
struct long_block {
    long used, spare;
};
struct short_block {
    long used;
};

long peek(long used) {
    short_block *block = static_cast<short_block *>(std::malloc(sizeof(short_block)));
    block->used = used;
    long seen = reinterpret_cast<long_block *>(block)->used;
    std::free(block);
    return seen;
}
} // namespace

long standin_pages(long bytes) {
    long pages = 0;
#pragma omp parallel for reduction(+ : pages)
    for (long first = 0; first < bytes; first += 4096)
        pages += 1;
    return peek(pages);
}
