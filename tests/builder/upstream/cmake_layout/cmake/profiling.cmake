option(STANDIN_PROFILING "count calls" OFF)
