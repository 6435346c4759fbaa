// The tests with several threads alone, for the thread sanitizer.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.hpp"

#include "threads.inc"
