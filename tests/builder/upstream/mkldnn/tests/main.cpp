#include "mkldnn.h"

int main() {
    return standin_pages(4096) == 1 ? 0 : 1;
}
