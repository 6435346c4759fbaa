// Functions of elements as scalar programs: what is done with traced values is written down.
#pragma once

#include "shape.hpp"

#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace bh {
namespace detail {

/// Writes a scalar program while it is the writer of its thread. Traced values stand for registers then: they are arrays
/// without dimensions, with which the same is done, so that results have types; their values mean nothing.
class writer {
    static inline thread_local writer *current_ = nullptr;
    writer *before_ = current_;
    std::vector<int> types_;
    std::string text_;
    /// The operands of handles: registers, or numbers.
    std::unordered_map<const bh_array *, std::string> operands_;
    bool fits_ = true;

public:
    writer() { current_ = this; }
    writer(const writer &) = delete;
    ~writer() { current_ = before_; }
    static writer *current() noexcept { return current_; }

    /// Is everything in the program that was done?
    bool fits() const noexcept { return fits_; }
    void refuse() noexcept { fits_ = false; }

    std::string add(int type) {
        types_.push_back(type);
        return "r" + std::to_string(types_.size() - 1);
    }
    void write(const std::string &text) { text_ += text; }
    void stands(const bh_array *handle, const std::string &operand) { operands_[handle] = operand; }
    std::string operand(const bh_array *handle) {
        const auto known = operands_.find(handle);
        fits_ = fits_ && known != operands_.end();
        return fits_ ? known->second : std::string();
    }
    /// A second handle.
    void same(const bh_array *made, const bh_array *from) {
        const auto known = operands_.find(from);
        if (known != operands_.end()) stands(made, std::string(known->second));
    }
    /// An operation that was done with handles.
    void operation(int opcode, int param, const bh_array *made, std::size_t count, const bh_array *const *inputs, place at) {
        bh_dtype type = 0;
        check((bh_dtype_of)(&type, made), at);
        const std::string target = add(type);
        text_ += target + " = " + std::to_string(opcode) + (param ? "." + std::to_string(param) : std::string());
        for (std::size_t at_input = 0; at_input < count; ++at_input) text_ += " " + operand(inputs[at_input]);
        text_ += "; ";
        stands(made, target);
    }
    void copy(const std::string &target, const std::string &from) {
        text_ += target + " = " + std::to_string(int(BH_OP_COPY)) + " " + from + "; ";
    }

    /// The whole program, with this many inputs and outputs.
    std::string program(const char *name, std::size_t inputs, std::size_t outputs) const {
        static const char *const names[] = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128"};
        const auto types = [&](std::size_t first, std::size_t end) {
            std::string list;
            for (; first < end; ++first) list += (list.empty() ? "" : " ") + std::string(names[types_[first]]);
            return "(" + list + ")";
        };
        const std::size_t own = inputs + outputs;
        return std::string("program ") + name + " " + types(0, inputs) + " -> " + types(inputs, own) + " with " + types(own, types_.size()) + " { " + text_ + "}";
    }
};

/// A number as it stands in programs.
template <class T> std::string number_text(T value) {
    constexpr int c = code<T>;
    const auto bits = [](auto part) {
        char text[24];
        if constexpr (sizeof(part) == 4) {
            std::uint32_t whole;
            std::memcpy(&whole, &part, 4);
            std::snprintf(text, sizeof text, "#%x", unsigned(whole));
        } else {
            std::uint64_t whole;
            std::memcpy(&whole, &part, 8);
            std::snprintf(text, sizeof text, "#%llx", static_cast<unsigned long long>(whole));
        }
        return std::string(text);
    };
    if constexpr (c == BH_TYPE_BOOL) {
        return value ? "bool:1" : "bool:0";
    } else if constexpr (is_integer(c)) {
        return std::string(is_signed_integer(c) ? "i" : "u") + std::to_string(8 << width(c)) + ":" + std::to_string(value);
    } else if constexpr (is_complex(c)) {
        return std::string(c == BH_TYPE_C64 ? "c64:" : "c128:") + bits(value.real()) + "," + bits(value.imag());
    } else {
        return std::string(c == BH_TYPE_F32 ? "f32:" : "f64:") + bits(value);
    }
}

/// A number as an operand of an operation.
template <class T> const bh_array *operand_of(T value) {
    const bh_array *handle = constant(value);
    if (writer *program = writer::current()) program->stands(handle, number_text(value));
    return handle;
}

/// Notes in a program that an array was converted.
inline void note_converted(const bh_array *made, const bh_array *from, place at) {
    if (writer *program = writer::current()) program->operation(BH_OP_COPY, 0, made, 1, &from, at);
}
/// Notes in a program that there is a second handle.
inline void note_same(const bh_array *made, const bh_array *from) {
    if (writer *program = writer::current()) program->same(made, from);
}

} // namespace detail
} // namespace bh
