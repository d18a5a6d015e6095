// Stand-in for upstream's array: has its name and holds nothing.
#ifndef STANDIN_MDARRAY_H
#define STANDIN_MDARRAY_H

class mdarray {
public:
    mdarray() : bytes_(0) {}
    explicit mdarray(long bytes) : bytes_(bytes) {}
    virtual ~mdarray() {}
    long pages() const;
    bool is_mdarray() const { return true; }

private:
    long bytes_;
};

// How many of the MKL functions that upstream calls were found by the loader; none is called.
int mkl_functions();
const char *library_version();
#endif
