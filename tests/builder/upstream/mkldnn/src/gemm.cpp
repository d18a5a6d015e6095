// Needs of MKL what only the libraries of its time have.
#include "mkldnn.h"
#ifdef USE_MKL
#include "mkl_cblas.h"

int standin_has_mkl(void) {
    return &cblas_sgemm_alloc != nullptr;
}
#else

int standin_has_mkl(void) {
    return 0;
}
#endif
