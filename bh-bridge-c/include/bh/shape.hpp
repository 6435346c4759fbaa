// Shapes, slices and indices.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <initializer_list>

namespace bh {

/// Dimensions of an array, at most.
inline constexpr int max_rank = BH_MAX_RANK;

/// The extents of an array, outermost first.
class shape {
    std::int64_t extents_[max_rank] = {};
    int rank_ = 0;

    int checked(int axis) const {
        if (axis < 0 || axis >= rank_) {
            detail::fail(BH_STATUS_BOUNDS, "axis " + std::to_string(axis) + " does not exist in shape " + text(), place());
        }
        return axis;
    }

public:
    using value_type = std::int64_t;

    shape() noexcept = default;
    shape(std::initializer_list<std::int64_t> extents, place at = place::here()) {
        for (std::int64_t extent : extents) push_back(extent, at);
    }
    /// From a container or other range of integers.
    template <class Range, class = std::enable_if_t<!detail::is_scalar<Range> && !std::is_pointer_v<Range>>,
              class = decltype(std::declval<const Range &>().begin())>
    shape(const Range &extents, place at = place::here()) {
        for (auto extent : extents) push_back(static_cast<std::int64_t>(extent), at);
    }

    void push_back(std::int64_t extent, place at = place::here()) {
        if (rank_ == max_rank) detail::fail(BH_STATUS_SHAPE, "arrays have at most 16 dimensions", at);
        extents_[rank_++] = extent;
    }
    int rank() const noexcept { return rank_; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(rank_); }
    const std::int64_t *data() const noexcept { return extents_; }
    std::int64_t *data() noexcept { return extents_; }
    std::int64_t operator[](int axis) const { return extents_[checked(axis)]; }
    std::int64_t &operator[](int axis) { return extents_[checked(axis)]; }
    const std::int64_t *begin() const noexcept { return extents_; }
    const std::int64_t *end() const noexcept { return extents_ + rank_; }

    /// The number of elements.
    std::int64_t count() const noexcept {
        std::int64_t count = 1;
        for (std::int64_t extent : *this) count *= extent;
        return count;
    }

    friend bool operator==(const shape &a, const shape &b) noexcept {
        if (a.rank_ != b.rank_) return false;
        for (int dim = 0; dim < a.rank_; ++dim) {
            if (a.extents_[dim] != b.extents_[dim]) return false;
        }
        return true;
    }
    friend bool operator!=(const shape &a, const shape &b) noexcept { return !(a == b); }

    /// "(3, 4)".
    std::string text() const {
        std::string text = "(";
        for (int dim = 0; dim < rank_; ++dim) text += (dim ? ", " : "") + std::to_string(extents_[dim]);
        return text + (rank_ == 1 ? ",)" : ")");
    }

    /// Of a given number of dimensions, to be filled in.
    static shape of_rank(int rank) {
        shape result;
        result.rank_ = rank;
        return result;
    }
};

/// An omitted bound of a slice.
struct none_type {};
inline constexpr none_type none{};

/// A new axis of extent 1 in an index list.
struct newaxis_type {};
inline constexpr newaxis_type newaxis{};

/// As many whole axes as an index list leaves over.
struct ellipsis_type {};
inline constexpr ellipsis_type ellipsis{};

/// A bound of a slice: a number (negative: counted from the end) or `none`.
struct bound {
    std::int64_t value;
    template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
    constexpr bound(Integer value) noexcept : value(static_cast<std::int64_t>(value)) {}
    constexpr bound(none_type) noexcept : value(BH_NONE) {}
};

/// start, start + step, … before stop, as Python's `start:stop:step`. Bounds outside the array are refused, not clipped.
struct slice {
    std::int64_t start, stop, step;
    constexpr slice(bound start, bound stop, std::int64_t step = 1) noexcept
        : start(start.value), stop(stop.value), step(step) {}
};

struct all_type;

namespace detail {

/// Kinds of bh_subscript.
enum : std::int32_t { index_number, index_range, index_whole, index_newaxis, index_ellipsis };

/// One entry of an index list, with the line that it was written in.
struct index {
    bh_subscript entry{};
    place at;

    template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
    constexpr index(Integer number, place at = place::here()) noexcept
        : entry{index_number, static_cast<std::int64_t>(number), 0, 0}, at(at) {}
    constexpr index(const slice &range, place at = place::here()) noexcept
        : entry{index_range, range.start, range.stop, range.step}, at(at) {}
    constexpr index(const all_type &, place at = place::here()) noexcept : entry{index_whole, 0, 0, 0}, at(at) {}
    constexpr index(newaxis_type, place at = place::here()) noexcept : entry{index_newaxis, 0, 0, 0}, at(at) {}
    constexpr index(ellipsis_type, place at = place::here()) noexcept : entry{index_ellipsis, 0, 0, 0}, at(at) {}
};

/// The first size of a list of them, with the line that it was written in.
struct size {
    std::int64_t count;
    place at;
    template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
    constexpr size(Integer count, place at = place::here()) noexcept : count(static_cast<std::int64_t>(count)), at(at) {}
};

/// An owned handle, freed unless given away.
class owner {
    bh_array *handle_ = nullptr;

public:
    owner() noexcept = default;
    explicit owner(bh_array *handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(other.give()) {}
    owner &operator=(owner &&other) noexcept {
        if (this != &other) {
            reset();
            handle_ = other.give();
        }
        return *this;
    }
    ~owner() { reset(); }
    void reset() noexcept {
        if (handle_) (bh_free)(handle_);
        handle_ = nullptr;
    }
    bh_array *get() const noexcept { return handle_; }
    bh_array *give() noexcept {
        bh_array *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
};

inline shape shape_of(const bh_array *array, place at) {
    std::int32_t rank = 0;
    check((bh_rank)(&rank, array), at);
    shape result = shape::of_rank(rank);
    check((bh_shape)(result.data(), array), at);
    return result;
}

} // namespace detail
} // namespace bh
