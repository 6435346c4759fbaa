// The exception that failures become.
#pragma once

#include "place.hpp"

#include <stdexcept>
#include <string>

namespace bh {

/// A failed operation. `what()` is "file:line: message"; an operation that ran late names the line that recorded it.
class error : public std::runtime_error {
    int status_;
    std::string file_;
    unsigned line_;
    std::string message_;

    static std::string text(const std::string &file, unsigned line, const std::string &message) {
        return file.empty() ? message : file + ":" + std::to_string(line) + ": " + message;
    }

public:
    error(int status, const std::string &message, const std::string &file, unsigned line)
        : std::runtime_error(text(file, line, message)), status_(status), file_(file), line_(line), message_(message) {}

    /// One of the `BH_STATUS_*` numbers.
    int status() const noexcept { return status_; }
    /// File of the failed operation; empty if it is not known.
    const std::string &file() const noexcept { return file_; }
    /// Line of the failed operation; 0 if it is not known.
    unsigned line() const noexcept { return line_; }
    /// The error, without the place.
    const std::string &message() const noexcept { return message_; }
};

namespace detail {

[[noreturn]] inline void fail(int status, const std::string &message, place at) {
    throw error(status, message, at.file ? at.file : "", at.line);
}

/// Throws what the C interface reported last. It knows a null handle by the name of a parameter that the program never saw.
[[noreturn]] inline void fail_as_reported(int status, place at) {
    const std::string reported = (bh_error_message)(), ending = "is null";
    if (status == BH_STATUS_HANDLE && reported.size() > ending.size() && reported.compare(reported.size() - ending.size(), ending.size(), ending) == 0) {
        fail(status, "an array is used that nothing was assigned to", at);
    }
    const std::string file = (bh_error_file)();
    const unsigned line = (bh_error_line)();
    if (file.empty()) fail(status, (bh_error_message)(), at);
    throw error(status, (bh_error_message)(), file, line);
}

/// Operators that cannot know their line, such as `!`, are noted at that of the operation before.
inline void note(place at) {
    if (at.file) (bh_at)(at.file, at.line);
}

/// Frees the handle of a temporary, where there is one.
inline void drop(bh_array **dying) noexcept {
    if (!dying || !*dying) return;
    (bh_free)(*dying);
    *dying = nullptr;
}

inline void check(int status, place at) {
    if (__builtin_expect(status != BH_STATUS_OK, 0)) fail_as_reported(status, at);
}

} // namespace detail
} // namespace bh
