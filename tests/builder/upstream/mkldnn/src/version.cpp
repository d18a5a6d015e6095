#include "mkldnn.h"

const char *standin_version(void) {
    return "@MKLDNN_VERSION@";
}
