// Access to elements: iterators over them in C order, and guarded mappings of memory.
#pragma once

#include "apply.hpp"

#include <iterator>

namespace bh {

/// Walks over the elements of an array in C order. Valid until an operation that changes or frees the array is recorded.
template <class T> class element_iterator {
    const T *data_ = nullptr;
    std::int64_t at_ = 0;
    bool contiguous_ = true;
    shape extents_, strides_;

    std::int64_t offset(std::int64_t position) const noexcept {
        if (contiguous_) return position;
        std::int64_t offset = 0;
        for (int dim = extents_.rank() - 1; dim >= 0; --dim) {
            offset += position % extents_[dim] * strides_[dim];
            position /= extents_[dim];
        }
        return offset;
    }

public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T *;
    using reference = const T &;

    element_iterator() noexcept = default;
    element_iterator(const T *data, std::int64_t at) noexcept : data_(data), at_(at) {}
    element_iterator(const T *data, std::int64_t at, const shape &extents, const shape &strides) noexcept
        : data_(data), at_(at), contiguous_(false), extents_(extents), strides_(strides) {}

    reference operator*() const noexcept { return data_[offset(at_)]; }
    pointer operator->() const noexcept { return data_ + offset(at_); }
    reference operator[](difference_type n) const noexcept { return data_[offset(at_ + n)]; }
    element_iterator &operator++() noexcept { return *this += 1; }
    element_iterator &operator--() noexcept { return *this += -1; }
    element_iterator operator++(int) noexcept {
        element_iterator before = *this;
        ++*this;
        return before;
    }
    element_iterator operator--(int) noexcept {
        element_iterator before = *this;
        --*this;
        return before;
    }
    element_iterator &operator+=(difference_type n) noexcept {
        at_ += n;
        return *this;
    }
    element_iterator &operator-=(difference_type n) noexcept { return *this += -n; }
    friend element_iterator operator+(element_iterator a, difference_type n) noexcept { return a += n; }
    friend element_iterator operator+(difference_type n, element_iterator a) noexcept { return a += n; }
    friend element_iterator operator-(element_iterator a, difference_type n) noexcept { return a -= n; }
    friend difference_type operator-(const element_iterator &a, const element_iterator &b) noexcept {
        return static_cast<difference_type>(a.at_ - b.at_);
    }
    friend bool operator==(const element_iterator &a, const element_iterator &b) noexcept { return a.at_ == b.at_; }
    friend bool operator!=(const element_iterator &a, const element_iterator &b) noexcept { return a.at_ != b.at_; }
    friend bool operator<(const element_iterator &a, const element_iterator &b) noexcept { return a.at_ < b.at_; }
    friend bool operator>(const element_iterator &a, const element_iterator &b) noexcept { return b < a; }
    friend bool operator<=(const element_iterator &a, const element_iterator &b) noexcept { return !(b < a); }
    friend bool operator>=(const element_iterator &a, const element_iterator &b) noexcept { return !(a < b); }
};

/// The memory of an array, held in place while this lives. Meanwhile operations that would change the array fail.
template <class T> class mapping {
    detail::owner array_;
    T *data_ = nullptr;
    shape extents_, strides_;

public:
    mapping(const bh_array *array, unsigned access, place at) : extents_(detail::shape_of(array, at)) {
        bh_array *mine = nullptr;
        detail::check((bh_retain)(&mine, array), at);
        array_ = detail::owner(mine);
        strides_ = shape::of_rank(extents_.rank());
        detail::check((bh_stride)(strides_.data(), mine), at);
        void *data = nullptr;
        detail::check((bh_map)(&data, mine, access), at);
        data_ = static_cast<T *>(data);
    }
    mapping(mapping &&other) noexcept
        : array_(static_cast<detail::owner &&>(other.array_)), data_(other.data_), extents_(other.extents_),
          strides_(other.strides_) {}
    mapping &operator=(mapping &&) = delete;
    ~mapping() {
        if (array_.get()) (bh_unmap)(array_.get());
    }

    /// The address of the first element; others lie `strides()` elements apart.
    T *data() const noexcept { return data_; }
    const shape &extents() const noexcept { return extents_; }
    const shape &strides() const noexcept { return strides_; }
    std::size_t size() const noexcept { return static_cast<std::size_t>(extents_.count()); }
    /// The element at an index per axis, counted from 0.
    template <class... I> T &operator()(I... i) const {
        const std::int64_t list[] = {static_cast<std::int64_t>(i)..., 0};
        std::int64_t offset = 0;
        bool inside = static_cast<int>(sizeof...(I)) == extents_.rank();
        for (int dim = 0; inside && dim < extents_.rank(); ++dim) {
            inside = list[dim] >= 0 && list[dim] < extents_[dim];
            offset += list[dim] * strides_[dim];
        }
        if (!inside) detail::fail(BH_STATUS_BOUNDS, "there is no such element in a mapping of shape " + extents_.text(), place());
        return data_[offset];
    }
};

namespace detail {

/// Do these strides lay the elements out in C order without gaps?
inline bool is_contiguous(const shape &extents, const shape &strides) {
    std::int64_t expected = 1;
    for (int dim = extents.rank() - 1; dim >= 0; --dim) {
        if (extents[dim] > 1 && strides[dim] != expected) return false;
        expected *= extents[dim];
    }
    return true;
}

} // namespace detail
} // namespace bh
