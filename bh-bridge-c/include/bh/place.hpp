// Places in the user's program, and the C interface below.
#pragma once

#include <cstdint>

// The macros of the C header note places by themselves; here every call passes its own.
#ifndef BH_NO_PLACES
#define BH_NO_PLACES
#include "../bh.h"
#undef BH_NO_PLACES
#else
#include "../bh.h"
#endif

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

namespace bh {

/// A line of the program, which errors name. As a default argument, `place::here()` is the line of the call.
struct place {
    const char *file = nullptr;
    unsigned line = 0;

    constexpr place() noexcept = default;
    constexpr place(const char *file, unsigned line) noexcept : file(file), line(line) {}
#if defined(__cpp_lib_source_location)
    constexpr place(const std::source_location &at) noexcept : file(at.file_name()), line(at.line()) {}
#endif

    static constexpr place here(const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept {
        return place(file, line);
    }
};

} // namespace bh
