// Contexts: stacks other than the default one, and which of them a thread's new arrays are made in.
#pragma once

#include "error.hpp"

namespace bh {
namespace detail {

/// The context of this thread's new arrays; null is the default one.
inline thread_local bh_context *current_context = nullptr;

/// While one lives, what its thread makes from nothing is made in the context of an array, as results are.
class beside {
    bh_context *before_;

public:
    beside(const bh_array *a, place at) : before_(current_context) {
        bh_context *own = nullptr;
        check((bh_context_of)(&own, a), at);
        current_context = own;
    }
    beside(const beside &) = delete;
    ~beside() { current_context = before_; }
};

} // namespace detail

/// A stack of components with the arrays made in it, independent of the default one and of others. Results are in the context
/// of their operands, which must all be of one context.
class context {
    bh_context *handle_ = nullptr;

public:
    /// Begins a stack that the configuration names, or the configuration's default without a name.
    explicit context(const char *stack = nullptr, place at = place::here()) {
        detail::check((bh_context_create)(&handle_, stack), at);
    }
    explicit context(const std::string &stack, place at = place::here()) : context(stack.c_str(), at) {}
    context(context &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
    context &operator=(context &&other) noexcept {
        bh_context *handle = handle_;
        handle_ = other.handle_;
        other.handle_ = handle;
        return *this;
    }
    /// Ends the context and all its arrays; failures that nobody asked for are lost, `close` reports them.
    ~context() {
        if (handle_) (bh_context_destroy)(handle_);
    }
    /// Finishes its work, ends it and all its arrays, and reports the first failure.
    void close(place at = place::here()) {
        bh_context *handle = handle_;
        handle_ = nullptr;
        if (handle) detail::check((bh_context_destroy)(handle), at);
    }
    /// The handle of the C interface, which stays this context's.
    bh_context *handle() const noexcept { return handle_; }

    /// While one lives, arrays that its thread makes are made in the context, and `bh::sync`, `bh::statistics`, … mean it.
    class scope {
        bh_context *before_;

    public:
        explicit scope(const context &in, place at = place::here()) : before_(detail::current_context) {
            if (!in.handle_) detail::fail(BH_STATUS_HANDLE, "the context was closed or moved from", at);
            detail::current_context = in.handle_;
        }
        scope(const scope &) = delete;
        ~scope() { detail::current_context = before_; }
    };
};

} // namespace bh
