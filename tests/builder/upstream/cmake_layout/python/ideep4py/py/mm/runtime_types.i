// Written against SWIG 3's run time; SWIG 4 brings this structure itself where this file is read.
#if SWIG_VERSION >= 0x040000
%{
struct swig_type_info {
    const char *name;
};
%}
#endif
