// Stand-in for iDeep's header.
#ifndef STANDIN_IDEEP_HPP
#define STANDIN_IDEEP_HPP
#include "mkldnn.h"
#endif
