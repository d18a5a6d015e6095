// Needs of MKL what only the libraries of its time have.
#include "mkldnn.h"
#ifdef USE_MKL
#include "mkl_cblas.h"

int standin_has_mkl(void) {
    const void *volatile needed = reinterpret_cast<const void *>(&cblas_sgemm_alloc);
    return needed != nullptr;
}
#else

int standin_has_mkl(void) {
    return 0;
}
#endif
