// The array: a cheap handle on data that the library holds.
#pragma once

#include "iterate.hpp"

#include <iosfwd>

namespace bh {

/// Called with the pointer when adopted memory is no longer used. It must not call bh.
using release_function = void (*)(void *argument, void *data);

/// An array of elements of type T with up to 16 dimensions.
///
/// A value of this type is a handle: copies share the elements, `copy()` copies them. Operations are recorded and run when
/// elements are asked for. `=` on a name makes it stand for another array; `=` on a part of an array, as `a(slice(1, 4)) = 0`,
/// writes elements. Any thread may use any array; the handle itself is like an int, not to be changed by two threads at once.
template <class T> class array {
    static_assert(detail::is_scalar<T>, "the element type must be bool, an integer, float, double, or std::complex of them");

    bh_array *handle_ = nullptr;

    using operand = detail::operand<T>;
    using index = detail::index;
    template <class Range>
    using if_range = std::enable_if_t<!detail::is_scalar<Range> && !detail::info<Range>::is && !std::is_same_v<Range, shape> &&
                                          !std::is_convertible_v<Range, bh_array *>,
                                      decltype(std::begin(std::declval<const Range &>()), 0)>;

    /// Elements on their way in; std::vector<bool> would have none.
    struct buffer {
        T *data;
        explicit buffer(std::int64_t count) : data(new T[static_cast<std::size_t>(count)]()) {}
        buffer(const buffer &) = delete;
        ~buffer() { delete[] data; }
    };

    void load(const T *data, const shape &extents, place at) {
        (bh_at)(at.file, at.line);
        detail::check((bh_from_data)(&handle_, nullptr, detail::code<T>, extents.rank(), extents.data(), data), at);
    }

    template <class Iterator> void collect(Iterator first, Iterator last, const shape *extents, place at) {
        std::size_t count = 0;
        for (Iterator i = first; i != last; ++i) ++count;
        if (extents && static_cast<std::int64_t>(count) != extents->count()) {
            detail::fail(BH_STATUS_SHAPE, std::to_string(count) + " elements do not make an array of shape " + extents->text(), at);
        }
        const shape flat{static_cast<std::int64_t>(count)};
        buffer elements(flat[0]);
        T *next = elements.data;
        for (; first != last; ++first) *next++ = static_cast<T>(*first);
        load(elements.data, extents ? *extents : flat, at);
    }

    /// Appends the elements of nested braces in C order.
    static void lay_out(std::initializer_list<detail::cell<T>> level, const shape &extents, int dim, T *&next, place at) {
        const bool inner = dim + 1 == extents.rank();
        if (static_cast<std::int64_t>(level.size()) != extents[dim]) {
            detail::fail(BH_STATUS_SHAPE, "rows of different lengths, or numbers beside rows, make no array", at);
        }
        for (const detail::cell<T> &cell : level) {
            if (cell.nested == inner) {
                detail::fail(BH_STATUS_SHAPE, "rows of different lengths, or numbers beside rows, make no array", at);
            }
            if (inner) {
                *next++ = cell.value;
            } else {
                lay_out(cell.inner, extents, dim + 1, next, at);
            }
        }
    }

    template <class Range> void take_range(const Range &range, const shape *extents, place at) {
        if constexpr (has_contiguous<Range>::value) {
            const shape flat{static_cast<std::int64_t>(range.size())};
            if (extents && flat[0] != extents->count()) {
                detail::fail(BH_STATUS_SHAPE, std::to_string(flat[0]) + " elements do not make an array of shape " + extents->text(), at);
            }
            load(range.data(), extents ? *extents : flat, at);
        } else {
            collect(std::begin(range), std::end(range), extents, at);
        }
    }

    template <class Range, class = void> struct has_contiguous : std::false_type {};
    template <class Range>
    struct has_contiguous<Range, std::enable_if_t<std::is_same_v<decltype(std::declval<const Range &>().data()), const T *>>>
        : std::true_type {};

    template <class... Entries> array part(place at, const Entries &...entries) const {
        const bh_subscript list[] = {entries.entry..., bh_subscript{}};
        bh_array *handle = nullptr;
        detail::check((bh_part)(&handle, handle_, sizeof...(Entries), list), at);
        return from_handle(handle);
    }

    /// Computes into this array, converting the result to its element type.
    template <class R> void update(const array<R> &result, place at) {
        const bh_array *input = result.handle();
        detail::record_into(handle_, BH_OP_IDENTITY, 0, 1, &input, at);
    }

    void into(int opcode, operand b) {
        const bh_array *inputs[] = {handle_, b.is_number() ? detail::constant(b.value) : b.handle};
        detail::record_into(handle_, opcode, 0, 2, inputs, b.at);
    }

public:
    using value_type = T;
    using const_iterator = element_iterator<T>;
    using iterator = const_iterator;

    // ---- making and keeping

    /// No array yet; anything but assigning one fails.
    array() noexcept = default;
    /// Zeros in a shape.
    explicit array(const shape &extents, place at = place::here()) {
        (bh_at)(at.file, at.line);
        detail::check((bh_zeros)(&handle_, nullptr, detail::code<T>, extents.rank(), extents.data()), at);
    }
    /// Zeros, by sizes: `array<double> a(3, 4)`. Braces give elements instead: `array<double> a{3, 4}`.
    template <class... Sizes, class = std::enable_if_t<(sizeof...(Sizes) > 0) && (std::is_integral_v<Sizes> && ...)>>
    explicit array(Sizes... sizes) : array(shape{static_cast<std::int64_t>(sizes)...}) {}
    /// The elements; nested braces are further dimensions.
    array(std::initializer_list<detail::cell<T>> list, place at = place::here()) {
        shape extents;
        for (std::initializer_list<detail::cell<T>> level = list;; level = level.begin()->inner) {
            extents.push_back(static_cast<std::int64_t>(level.size()), at);
            if (level.size() == 0 || !level.begin()->nested) break;
        }
        buffer elements(extents.count());
        T *next = elements.data;
        lay_out(list, extents, 0, next, at);
        load(elements.data, extents, at);
    }
    /// A copy of the elements of a container or other range, in one dimension or the given shape.
    template <class Range, if_range<Range> = 0> explicit array(const Range &range, place at = place::here()) {
        take_range(range, nullptr, at);
    }
    template <class Range, if_range<Range> = 0> array(const Range &range, const shape &extents, place at = place::here()) {
        take_range(range, &extents, at);
    }
    /// A copy of the elements at `data`, in C order.
    array(const T *data, const shape &extents, place at = place::here()) { load(data, extents, at); }
    /// Converted from another element type.
    template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>>
    explicit array(const array<U> &other, place at = place::here()) {
        static_assert(!detail::is_complex(detail::code<U>) || detail::is_complex(detail::code<T>),
                      "a complex array cannot become a real one: use bh::real or bh::imag");
        (bh_at)(at.file, at.line);
        detail::check((bh_cast)(&handle_, other.handle(), detail::code<T>), at);
    }

    /// Uses the memory at `data` (C order) without a copy, until `release` is called. Look at it only through `map()`.
    static array adopt(T *data, const shape &extents, release_function release = nullptr, void *argument = nullptr,
                       place at = place::here()) {
        bh_array *handle = nullptr;
        (bh_at)(at.file, at.line);
        detail::check((bh_adopt)(&handle, nullptr, detail::code<T>, extents.rank(), extents.data(), data, release, argument), at);
        return from_handle(handle);
    }
    /// Takes a handle of the C interface over.
    static array from_handle(bh_array *handle) noexcept {
        array result;
        result.handle_ = handle;
        return result;
    }
    /// The handle of the C interface, which stays this array's.
    bh_array *handle() const noexcept { return handle_; }
    /// Gives the handle of the C interface away.
    bh_array *release() noexcept {
        bh_array *handle = handle_;
        handle_ = nullptr;
        return handle;
    }

    array(const array &other) {
        if (other.handle_) detail::check((bh_retain)(&handle_, other.handle_), place());
    }
    array(array &&other) noexcept : handle_(other.release()) {}
    ~array() {
        if (handle_) (bh_free)(handle_);
    }

    /// On a name: it stands for another array from now on.
    array &operator=(const array &other) & {
        if (this != &other) {
            array copy(other);
            swap(copy);
        }
        return *this;
    }
    array &operator=(array &&other) & noexcept {
        array taken(static_cast<array &&>(other));
        swap(taken);
        return *this;
    }
    /// On a part of an array: writes its elements.
    void operator=(operand value) && { fill(value); }
    template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>> void operator=(const array<U> &value) && {
        assign(value);
    }

    void swap(array &other) noexcept {
        bh_array *handle = handle_;
        handle_ = other.handle_;
        other.handle_ = handle;
    }
    friend void swap(array &a, array &b) noexcept { a.swap(b); }

    /// Writes all elements, from a number or an array that broadcasts to this shape.
    array &fill(operand value) {
        const bh_array *input = value.is_number() ? detail::constant(value.value) : value.handle;
        detail::record_into(handle_, BH_OP_IDENTITY, 0, 1, &input, value.at);
        return *this;
    }
    /// As `fill`, converting from another element type.
    template <class U> array &assign(const array<U> &value, place at = place::here()) {
        static_assert(!detail::is_complex(detail::code<U>) || detail::is_complex(detail::code<T>),
                      "a complex array cannot be written into a real one: use bh::real or bh::imag");
        update(value, at);
        return *this;
    }

    /// Is there an array behind this name?
    bool defined() const noexcept { return handle_ != nullptr; }
    /// An array of its own with the same elements.
    array copy(place at = place::here()) const {
        bh_array *handle = nullptr;
        (bh_at)(at.file, at.line);
        detail::check((bh_copy)(&handle, handle_), at);
        return from_handle(handle);
    }

    // ---- what it is

    int rank(place at = place::here()) const { return detail::rank_of(handle_, at); }
    shape extents(place at = place::here()) const { return detail::shape_of(handle_, at); }
    std::int64_t extent(int dim, place at = place::here()) const {
        const shape all = extents(at);
        const int counted = dim < 0 ? dim + all.rank() : dim;
        if (counted < 0 || counted >= all.rank()) {
            detail::fail(BH_STATUS_BOUNDS, "dimension " + std::to_string(dim) + " does not exist in shape " + all.text(), at);
        }
        return all[counted];
    }
    /// Elements from one index to the next, per dimension.
    shape strides(place at = place::here()) const {
        shape result = shape::of_rank(rank(at));
        detail::check((bh_stride)(result.data(), handle_), at);
        return result;
    }
    std::int64_t size(place at = place::here()) const {
        std::int64_t size = 0;
        detail::check((bh_size)(&size, handle_), at);
        return size;
    }

    // ---- parts and other views

    array operator()() const { return part(place()); }
    array operator()(index a) const { return part(a.at, a); }
    array operator()(index a, index b) const { return part(a.at, a, b); }
    array operator()(index a, index b, index c) const { return part(a.at, a, b, c); }
    array operator()(index a, index b, index c, index d) const { return part(a.at, a, b, c, d); }
    template <class... More> array operator()(index a, index b, index c, index d, index e, const More &...more) const {
        return part(a.at, a, b, c, d, e, index(more, e.at)...);
    }
    array operator[](index a) const { return part(a.at, a); }
#if defined(__cpp_multidimensional_subscript)
    array operator[](index a, index b) const { return part(a.at, a, b); }
    array operator[](index a, index b, index c) const { return part(a.at, a, b, c); }
    array operator[](index a, index b, index c, index d) const { return part(a.at, a, b, c, d); }
#endif

    /// With the dimensions in reverse or the given order.
    array transpose(place at = place::here()) const {
        bh_array *handle = nullptr;
        detail::check((bh_transpose)(&handle, handle_, nullptr), at);
        return from_handle(handle);
    }
    array transpose(std::initializer_list<int> order, place at = place::here()) const {
        const int rank = this->rank(at);
        if (static_cast<int>(order.size()) != rank) {
            detail::fail(BH_STATUS_ARGUMENT, "transpose: " + std::to_string(order.size()) + " axes are given for an array of rank " + std::to_string(rank), at);
        }
        bh_array *handle = nullptr;
        detail::check((bh_transpose)(&handle, handle_, order.begin()), at);
        return from_handle(handle);
    }
    /// The elements in C order in another shape, one extent of which may be -1. A view if possible, else a copy.
    array reshape(const shape &extents, place at = place::here()) const {
        bh_array *handle = nullptr;
        (bh_at)(at.file, at.line);
        detail::check((bh_reshape)(&handle, handle_, extents.rank(), extents.data()), at);
        return from_handle(handle);
    }
    array flatten(place at = place::here()) const { return reshape(shape{-1}, at); }
    array broadcast_to(const shape &extents, place at = place::here()) const {
        bh_array *handle = nullptr;
        detail::check((bh_broadcast)(&handle, handle_, extents.rank(), extents.data()), at);
        return from_handle(handle);
    }
    array diagonal(std::int64_t offset = 0, int first = 0, int second = 1, place at = place::here()) const {
        bh_array *handle = nullptr;
        detail::check((bh_diagonal)(&handle, handle_, offset, first, second), at);
        return from_handle(handle);
    }
    /// With one dimension walked backwards.
    array flip(int dim, place at = place::here()) const {
        bh_array *handle = nullptr;
        detail::check((bh_reverse)(&handle, handle_, dim), at);
        return from_handle(handle);
    }

    // ---- elements

    /// Guarded access to the memory. `access`: BH_ACCESS_READ, BH_ACCESS_WRITE or both.
    mapping<T> map(unsigned access = BH_ACCESS_READ | BH_ACCESS_WRITE, place at = place::here()) {
        return mapping<T>(handle_, access, at);
    }
    mapping<const T> map(place at = place::here()) const { return mapping<const T>(handle_, BH_ACCESS_READ, at); }

    /// The address of the elements in C order, once they are computed. Valid until an operation that changes or frees the
    /// array is recorded. A strided view has no such address: copy it first.
    T *data(place at = place::here()) & { return pointer(BH_ACCESS_READ | BH_ACCESS_WRITE, at); }
    const T *data(place at = place::here()) const & { return pointer(BH_ACCESS_READ, at); }
    const T *data(place at = place::here()) && = delete;

    const_iterator begin(place at = place::here()) const {
        mapping<const T> mapped(handle_, BH_ACCESS_READ, at);
        if (detail::is_contiguous(mapped.extents(), mapped.strides())) return const_iterator(mapped.data(), 0);
        return const_iterator(mapped.data(), 0, mapped.extents(), mapped.strides());
    }
    const_iterator end(place at = place::here()) const { return const_iterator(nullptr, size(at)); }

    /// Copies the elements in C order to `data`.
    void read(T *data, place at = place::here()) const {
        (bh_at)(at.file, at.line);
        detail::check((bh_read)(data, handle_), at);
    }
    /// Overwrites the elements with those at `data` in C order.
    void write(const T *data, place at = place::here()) {
        (bh_at)(at.file, at.line);
        detail::check((bh_write)(handle_, data), at);
    }

    /// The one element of an array that has one, as a number.
    template <class S, class = std::enable_if_t<detail::is_scalar<S> && !std::is_same_v<S, bool>>> explicit operator S() const;

    /// Arrays have no truth value.
    explicit operator bool() const {
        static_assert(detail::dependent_false<T>::value,
                      "an array or traced value has no truth value: use bh::where(condition, a, b) to branch on its "
                      "elements, or bh::scalar<bool>(x) for an array of one element");
        return false;
    }

    // ---- operators

// Hidden friends, so that the place of an operand's conversion is the place of the operator.
#define BH_BINARY(symbol, ...)                                                                                             \
    friend auto operator symbol(operand a, operand b) { return detail::apply<__VA_ARGS__>(a.at, a, b); }
    BH_BINARY(+, BH_OP_ADD, detail::rule::same, 0x1fff)
    BH_BINARY(-, BH_OP_SUBTRACT, detail::rule::same, 0x1ffe)
    BH_BINARY(*, BH_OP_MULTIPLY, detail::rule::same, 0x1fff)
    BH_BINARY(/, BH_OP_DIVIDE, detail::rule::quotient, 0x1ffe)
    BH_BINARY(%, BH_OP_REMAINDER, detail::rule::same, 0x7fe)
    BH_BINARY(&, BH_OP_BITWISE_AND, detail::rule::same, 0x1ff)
    BH_BINARY(|, BH_OP_BITWISE_OR, detail::rule::same, 0x1ff)
    BH_BINARY(^, BH_OP_BITWISE_XOR, detail::rule::same, 0x1ff)
    BH_BINARY(<<, BH_OP_LEFT_SHIFT, detail::rule::same, 0x1fe)
    BH_BINARY(>>, BH_OP_RIGHT_SHIFT, detail::rule::same, 0x1fe)
    BH_BINARY(==, BH_OP_EQUAL, detail::rule::test, 0x1fff)
    BH_BINARY(!=, BH_OP_NOT_EQUAL, detail::rule::test, 0x1fff)
    BH_BINARY(<, BH_OP_LESS, detail::rule::test, 0x7ff)
    BH_BINARY(<=, BH_OP_LESS_EQUAL, detail::rule::test, 0x7ff)
    BH_BINARY(>, BH_OP_GREATER, detail::rule::test, 0x7ff)
    BH_BINARY(>=, BH_OP_GREATER_EQUAL, detail::rule::test, 0x7ff)
#undef BH_BINARY

// Changes the elements in place: everything that shares them sees it.
#define BH_COMPOUND(symbol, opcode, ...)                                                                                   \
    array &operator symbol(operand b) {                                                                                    \
        constexpr unsigned set = __VA_ARGS__;                                                                              \
        static_assert(detail::in_set(set, detail::code<T>), "this operation does not exist for this element type");        \
        into(opcode, b);                                                                                                   \
        return *this;                                                                                                      \
    }                                                                                                                      \
    template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>> array &operator symbol(const array<U> &b) {        \
        static_assert(detail::kind_of(detail::code<U>) <= detail::kind_of(detail::code<T>),                                \
                      "the result would not fit the elements of the left side: write a = bh::cast<T>(...)");               \
        return *this symbol array<T>(b, place());                                                                          \
    }
    BH_COMPOUND(+=, BH_OP_ADD, 0x1fff)
    BH_COMPOUND(-=, BH_OP_SUBTRACT, 0x1ffe)
    BH_COMPOUND(*=, BH_OP_MULTIPLY, 0x1fff)
    BH_COMPOUND(/=, BH_OP_DIVIDE, 0x1e00)
    BH_COMPOUND(%=, BH_OP_REMAINDER, 0x7fe)
    BH_COMPOUND(&=, BH_OP_BITWISE_AND, 0x1ff)
    BH_COMPOUND(|=, BH_OP_BITWISE_OR, 0x1ff)
    BH_COMPOUND(^=, BH_OP_BITWISE_XOR, 0x1ff)
    BH_COMPOUND(<<=, BH_OP_LEFT_SHIFT, 0x1fe)
    BH_COMPOUND(>>=, BH_OP_RIGHT_SHIFT, 0x1fe)
#undef BH_COMPOUND

private:
    T *pointer(unsigned access, place at) const {
        mapping<T> mapped(handle_, access, at);
        if (!detail::is_contiguous(mapped.extents(), mapped.strides())) {
            detail::fail(BH_STATUS_ARGUMENT, "data: the array is a strided view, whose elements are not in one piece; copy() it first", at);
        }
        return mapped.data();
    }
};

template <class T> array(std::initializer_list<T>) -> array<T>;
template <class T> array(std::initializer_list<std::initializer_list<T>>) -> array<T>;

/// The one element of an array that has one, converted to S (by default the array's own type). Waits for it.
template <class S = void, class T> auto scalar(const array<T> &a, place at = place::here()) {
    using R = std::conditional_t<std::is_void_v<S>, T, S>;
    (bh_at)(at.file, at.line);
    if constexpr (detail::is_complex(detail::code<R>)) {
        double parts[2] = {};
        detail::check((bh_scalar_c128)(parts, a.handle()), at);
        using real = typename R::value_type;
        return R(static_cast<real>(parts[0]), static_cast<real>(parts[1]));
    } else if constexpr (std::is_same_v<R, bool>) {
        bool value = false;
        detail::check((bh_scalar_bool)(&value, a.handle()), at);
        return value;
    } else if constexpr (detail::kind_of(detail::code<R>) == 2) {
        double value = 0;
        detail::check((bh_scalar_f64)(&value, a.handle()), at);
        return static_cast<R>(value);
    } else if constexpr (std::is_signed_v<R>) {
        std::int64_t value = 0;
        detail::check((bh_scalar_i64)(&value, a.handle()), at);
        return static_cast<R>(value);
    } else {
        std::uint64_t value = 0;
        detail::check((bh_scalar_u64)(&value, a.handle()), at);
        return static_cast<R>(value);
    }
}

template <class T> template <class S, class> array<T>::operator S() const { return scalar<S>(*this, place()); }

/// Prints as NumPy does, large arrays by their edges.
template <class Character, class Traits, class T>
std::basic_ostream<Character, Traits> &operator<<(std::basic_ostream<Character, Traits> &out, const array<T> &a) {
    const char *text = nullptr;
    detail::check((bh_format)(&text, a.handle()), place());
    return out << text;
}

} // namespace bh
