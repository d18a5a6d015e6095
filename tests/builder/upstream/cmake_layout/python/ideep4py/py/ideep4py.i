%module ideep4py
%{
#define SWIG_FILE_WITH_INIT
#include <numpy/arrayobject.h>
#include "mdarray.h"
%}
%include "runtime_types.i"

%init %{
    import_array();
%}

%include "mdarray.h"

%inline %{
int dimensions_of(PyObject *array) {
    return PyArray_Check(array) ? PyArray_NDIM((PyArrayObject *)array) : -1;
}
%}
