#include "mdarray.h"

#include "ideep.hpp"
#include "mkl_vml_functions.h"
#include "mkl_vsl.h"

long mdarray::pages() const {
    return standin_pages(bytes_);
}

int mkl_functions() {
    const void *volatile needed[] = {
        reinterpret_cast<const void *>(&vslNewStream), reinterpret_cast<const void *>(&vslSkipAheadStream),
        reinterpret_cast<const void *>(&vslDeleteStream), reinterpret_cast<const void *>(&viRngBernoulli),
        reinterpret_cast<const void *>(&vsMul), reinterpret_cast<const void *>(&vsPowx),
    };
    int found = 0;
    for (unsigned number = 0; number < sizeof needed / sizeof *needed; ++number)
        found += needed[number] != nullptr;
    return found;
}

const char *library_version() {
    return standin_version();
}
