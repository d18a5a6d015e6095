/* Stand-in for MKL-DNN's header: three functions of our own, none of MKL-DNN's. */
#ifndef STANDIN_MKLDNN_H
#define STANDIN_MKLDNN_H
#ifdef __cplusplus
extern "C" {
#endif
const char *standin_version(void);
long standin_pages(long bytes);
int standin_has_mkl(void);
#ifdef __cplusplus
}
#endif
#endif
