// All C++ tests in one program, so that the framework is compiled once.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.hpp"

#include "arrays.inc"
#include "assignment.inc"
#include "errors.inc"
#include "files.inc"
#include "functions.inc"
#include "indexing.inc"
#include "lifetimes.inc"
#include "linear.inc"
#include "operators.inc"
#include "paper.inc"
#include "reductions.inc"
#include "runtime.inc"
#include "threads.inc"
#include "traced.inc"
#include "types.inc"
