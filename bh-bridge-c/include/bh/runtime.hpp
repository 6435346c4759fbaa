// The runtime of the arrays: flushing, memory, threads, checks, and counters.
#pragma once

#include "array.hpp"

namespace bh {

/// Writes an array to a file in NumPy's `.npy` format.
template <class T> void save(const std::string &path, const array<T> &a, place at = place::here()) {
    detail::check((bh_save)(path.c_str(), a.handle()), at);
}
/// The array in a file in NumPy's `.npy` format, converted to T if its elements are of another type.
template <class T = double> array<T> load(const std::string &path, place at = place::here()) {
    bh_array *handle = nullptr;
    detail::check((bh_load)(&handle, detail::current_context, path.c_str()), at);
    detail::owner loaded(handle);
    if (detail::dtype_of(handle, at) == detail::code<T>) return detail::wrapped<T>(loaded.give());
    bh_array *converted = nullptr;
    detail::check((bh_cast)(&converted, handle, detail::code<T>), at);
    return detail::wrapped<T>(converted);
}

/// Hands everything recorded to the engine, without waiting.
inline void flush(place at = place::here()) { detail::check((bh_flush)(detail::current_context), at); }
/// Waits until everything recorded is done; reports failures.
inline void sync(place at = place::here()) { detail::check((bh_sync)(detail::current_context), at); }
/// Makes each operation complete before it returns, or goes back to recording.
inline void eager(bool on, place at = place::here()) { detail::check((bh_eager)(detail::current_context, on), at); }
/// Ends the library's work and all arrays; a later use starts anew. Not needed before the program exits.
inline void shutdown(place at = place::here()) { detail::check((bh_context_destroy)(nullptr), at); }

/// The version of the library, as "0.1.0".
inline std::string version() { return (bh_version)(); }
/// The stack and its components, one line each.
inline std::string info(place at = place::here()) {
    const char *text = nullptr;
    detail::check((bh_info)(&text, detail::current_context), at);
    return text;
}
/// The name of the stack.
inline std::string stack_name(place at = place::here()) {
    const char *text = nullptr;
    detail::check((bh_stack_name)(&text, detail::current_context), at);
    return text;
}
/// Sends a question or command down the stack and returns the answer, empty if nobody knows it.
inline std::string message(const std::string &text, place at = place::here()) {
    const char *answer = nullptr;
    detail::check((bh_message)(&answer, detail::current_context, text.c_str()), at);
    return answer;
}

/// Counts of arrays, operations and batches.
inline bh_statistics statistics(place at = place::here()) {
    bh_statistics counts{};
    detail::check((bh_statistics_get)(&counts, detail::current_context), at);
    return counts;
}
/// A counter of the stack by its name; 0 if nothing was counted under it.
inline std::uint64_t counter(const std::string &name, place at = place::here()) {
    std::uint64_t value = 0;
    detail::check((bh_counter)(&value, detail::current_context, name.c_str()), at);
    return value;
}

namespace memory {

/// Host memory of arrays in bytes: in use, its peak, kept for reuse, and the limit.
inline bh_memory usage(place at = place::here()) {
    bh_memory memory{};
    detail::check((bh_memory_get)(&memory, detail::current_context), at);
    return memory;
}
/// Sets the most bytes that arrays may use; what would pass it fails.
inline void limit(std::uint64_t bytes, place at = place::here()) { detail::check((bh_memory_limit)(detail::current_context, bytes), at); }
/// Gives memory that is kept for reuse back to the system.
inline void release(place at = place::here()) { detail::check((bh_memory_release)(detail::current_context), at); }

} // namespace memory

/// The number of threads that the engine uses.
inline int threads(place at = place::here()) {
    std::int32_t count = 0;
    detail::check((bh_threads_get)(&count, detail::current_context), at);
    return count;
}
/// Sets the number of threads that the engine uses.
inline void set_threads(int count, place at = place::here()) { detail::check((bh_threads_set)(detail::current_context, count), at); }
/// The processors that the engine's threads are bound to: "none", "auto", or a list like "0,2,4".
inline std::string affinity(place at = place::here()) {
    const char *text = nullptr;
    detail::check((bh_affinity_get)(&text, detail::current_context), at);
    return text;
}
/// Binds the engine's threads to processors: "none", "auto", or a list like "0,2,4-7".
inline void set_affinity(const std::string &processors, place at = place::here()) {
    detail::check((bh_affinity_set)(detail::current_context, processors.c_str()), at);
}

} // namespace bh
