"""Modules in C that the program brings itself: they ask for NumPy's arrays and Python's numbers in C, and get them."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy
import pytest

import bh
from bh._numpy import loading

pytestmark = pytest.mark.falls_back

SOURCE = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

/* An argument of the class itself, which is doubled in place. */
static PyObject *doubled(PyObject *self, PyObject *args)
{
    PyArrayObject *array;
    if (!PyArg_ParseTuple(args, "O!", &PyArray_Type, &array))
        return NULL;
    double *data = PyArray_DATA(array);
    for (npy_intp i = 0; i < PyArray_SIZE(array); i++)
        data[i] *= 2;
    Py_INCREF(array);
    return (PyObject *)array;
}

static PyObject *checked(PyObject *self, PyObject *object)
{
    return PyBool_FromLong(PyArray_Check(object));
}

/* An array by NumPy's converter, and its sum. */
static PyObject *converted(PyObject *self, PyObject *args)
{
    PyArrayObject *array;
    if (!PyArg_ParseTuple(args, "O&", PyArray_Converter, &array))
        return NULL;
    PyObject *sum = PyArray_Sum(array, NPY_RAVEL_AXIS, NPY_DOUBLE, NULL);
    Py_DECREF(array);
    return sum;
}

static PyObject *number(PyObject *self, PyObject *object)
{
    return PyBool_FromLong(PyFloat_Check(object));
}

/* What a function of the program answers with. */
static PyObject *answer(PyObject *self, PyObject *args)
{
    PyObject *function, *value;
    if (!PyArg_ParseTuple(args, "OO", &function, &value))
        return NULL;
    PyObject *result = PyObject_CallOneArg(function, value);
    if (result == NULL)
        return NULL;
    int is_array = PyArray_Check(result), is_float = PyFloat_Check(result);
    Py_DECREF(result);
    return Py_BuildValue("ii", is_array, is_float);
}

static PyMethodDef methods[] = {
    {"doubled", doubled, METH_VARARGS, NULL}, {"checked", checked, METH_O, NULL}, {"converted", converted, METH_VARARGS, NULL},
    {"number", number, METH_O, NULL}, {"answer", answer, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "asking", NULL, -1, methods};
PyMODINIT_FUNC PyInit_asking(void)
{
    import_array();
    return PyModule_Create(&module);
}
"""


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """The module, compiled beside the program."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if compiler is None or not header.exists():
        pytest.skip("there is no compiler, or no header of Python")
    folder = tmp_path_factory.mktemp("program")
    (folder / "asking.c").write_text(SOURCE)
    target = folder / f"asking{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [compiler, "-shared", "-fPIC", "-O1", f"-I{header.parent}", f"-I{numpy.get_include()}", "asking.c", "-o", str(target)]
    subprocess.run(command, cwd=folder, check=True)
    sys.path.insert(0, str(folder))
    try:
        import asking

        yield asking
    finally:
        sys.path.remove(str(folder))


PROGRAM = """
import asking
from asking import doubled
x = np.arange(4.0)
y = x + 1
whole = doubled(x)
asking.doubled(y[1:3])
checks = asking.checked(x), asking.checked(x[1:] * 2), asking.converted(x), asking.number(np.ones(100_000).sum()), asking.number(x.sum())
answers = asking.answer(lambda value: np.asarray(value) + 1, x), asking.answer(lambda value: np.ones(100_000).sum(), 0)
results = [function(x) for function in (asking.checked, asking.number)]
"""


def test_modules_in_c_get_numpys_arrays(asking):
    scope = {"__name__": "program", "np": bh}
    exec(loading.compiled(PROGRAM, "program.py"), scope)
    assert scope["whole"] is scope["x"] and scope["x"].tolist() == [0, 2, 4, 6] and scope["y"].tolist() == [1, 4, 6, 4]
    assert scope["checks"] == (True, True, 12, True, True) and scope["results"] == [True, False]
    assert scope["answers"] == ((1, 0), (0, 1))


def test_functions_of_ctypes_get_numpys_arrays(asking):
    source = """
import ctypes
library = ctypes.CDLL(None)
move = library.memcpy
move.argtypes = numpy.ctypeslib.ndpointer(float), numpy.ctypeslib.ndpointer(float), ctypes.c_size_t
move.restype = None
x, y = np.arange(4.0), np.zeros(4)
move(y, x, 32)
library.memset(y[:1].ctypes.data_as(ctypes.c_void_p), 0, 8)
absolute = ctypes.CDLL("libm.so.6").fabs
absolute.argtypes, absolute.restype = [ctypes.c_double], ctypes.c_double
number = absolute(-np.ones(100_000).sum())
"""
    if sys.platform != "linux":
        pytest.skip("the names of the libraries are Linux's")
    scope = {"__name__": "program", "np": bh, "numpy": numpy}
    exec(loading.compiled(source, "program.py"), scope)
    assert scope["y"].tolist() == [0, 1, 2, 3] and scope["number"] == 100_000
