// The header that the programs of the Bohrium papers include.
#pragma once

#include "paper.hpp"
