// The array: a cheap handle on data that the library holds.
#pragma once

#include "context.hpp"
#include "iterate.hpp"
#include "operators.hpp"

#include <iosfwd>

namespace bh {

/// Called with the pointer when adopted memory is no longer used. It must not call bh.
using release_function = void (*)(void *argument, void *data);

namespace detail {

/// `a.T()` and `a.shape()`: members of a base, as inside of the array T is its element type, and shape the class.
template <class U> struct named {
    /// The extents, outermost first; `extents()` is the same.
    bh::shape shape(place at = place::here()) const { return static_cast<const array<U> &>(*this).extents(at); }
    /// With the axes in reverse order.
    array<U> T(place at = place::here()) const & { return static_cast<const array<U> &>(*this).transpose(at); }
    array<U> T(place at = place::here()) && { return static_cast<array<U> &&>(*this).transpose(at); }
};

} // namespace detail

/// An array of elements of type T with up to 16 dimensions.
///
/// A value of this type is a handle: copies share the elements, `copy()` copies them. Operations are recorded and run when
/// elements are asked for. `=` on a name makes it stand for another array; `=` on a part of an array, as `a(slice(1, 4)) = 0`,
/// writes elements. Any thread may use any array; the handle itself is like an int, not to be changed by two threads at once.
template <class T> class array : detail::operators<T, false>, public detail::named<T> {
    static_assert(detail::is_scalar<T>, "the element type must be bool, an integer, float, double, or std::complex of them");

    bh_array *handle_ = nullptr;

    template <class, bool> friend struct detail::operand;
    template <class U> friend array<U> detail::wrapped(bh_array *handle) noexcept;

    using operand = detail::operand<T>;
    using index = detail::index;
    template <class Range>
    using if_range = std::enable_if_t<!detail::info<detail::plain<Range>>::is && !std::is_same_v<detail::plain<Range>, shape>,
                                      decltype(std::begin(std::declval<Range &>()), 0)>;

    /// Elements on their way in; std::vector<bool> would have none.
    struct buffer {
        T *data;
        std::size_t room;
        explicit buffer(std::size_t count) : data(new T[count]()), room(count) {}
        buffer(const buffer &) = delete;
        ~buffer() { delete[] data; }
        void grow() {
            buffer larger(2 * room);
            for (std::size_t i = 0; i < room; ++i) larger.data[i] = data[i];
            std::swap(data, larger.data);
            std::swap(room, larger.room);
        }
    };

    void load(const T *data, const shape &extents, place at) {
        (bh_at)(at.file, at.line);
        detail::check((bh_from_data)(&handle_, detail::current_context, detail::code<T>, extents.rank(), extents.data(), data), at);
    }

    /// As many elements as a shape has, where one is given.
    static void fits_shape(std::size_t count, const shape *extents, place at) {
        if (extents && static_cast<std::int64_t>(count) != extents->count()) {
            detail::fail(BH_STATUS_SHAPE, std::to_string(count) + " elements do not make an array of shape " + extents->text(), at);
        }
    }

    template <class Iterator, class End> void collect(Iterator first, End last, const shape *extents, place at) {
        buffer elements(16);
        std::size_t count = 0;
        for (; first != last; ++first) {
            if (count == elements.room) elements.grow();
            elements.data[count++] = detail::convert_element<T>(*first);
        }
        fits_shape(count, extents, at);
        load(elements.data, extents ? *extents : shape{static_cast<std::int64_t>(count)}, at);
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

    template <class Range> void take_range(Range &range, const shape *extents, place at) {
        if constexpr (has_contiguous<Range>::value) {
            fits_shape(range.size(), extents, at);
            load(range.data(), extents ? *extents : shape{static_cast<std::int64_t>(range.size())}, at);
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
        return detail::wrapped<T>(handle);
    }

    template <class F, class... Arguments> array view(place at, F f, Arguments... arguments) const {
        bh_array *handle = nullptr;
        (bh_at)(at.file, at.line);
        detail::check(f(&handle, handle_, arguments...), at);
        return detail::wrapped<T>(handle);
    }
    array permuted(std::initializer_list<int> order, place at) const {
        const int rank = this->rank(at);
        if (static_cast<int>(order.size()) != rank) {
            detail::fail(BH_STATUS_ARGUMENT, "transpose: " + std::to_string(order.size()) + " axes are given for an array of rank " + std::to_string(rank), at);
        }
        return view(at, bh_transpose, order.begin());
    }
    array exchanged(int first, int second, place at) const {
        int order[max_rank];
        const int rank = this->rank(at);
        first = detail::counted_axis(first, rank, at);
        second = detail::counted_axis(second, rank, at);
        for (int axis = 0; axis < rank; ++axis) order[axis] = axis == first ? second : axis == second ? first : axis;
        return view(at, bh_transpose, static_cast<const int *>(order));
    }
    array reversed(place at) const {
        array turned = view(at, bh_retain);
        for (int axis = rank(at) - 1; axis >= 0; --axis) turned = turned.flip(axis, at);
        return turned;
    }
    array squeezed(place at) const {
        shape left;
        for (std::int64_t extent : extents(at)) {
            if (extent != 1) left.push_back(extent, at);
        }
        return reshape(left, at);
    }

    void reset() noexcept {
        if (handle_) (bh_free)(handle_);
        handle_ = nullptr;
    }
    /// Returns `made` in the place of this temporary, which ends here.
    array instead(array made) noexcept {
        reset();
        return made;
    }

    template <class U> void convert(const detail::operand<U> &other, place at) {
        static_assert(!detail::is_complex(detail::code<U>) || detail::is_complex(detail::code<T>),
                      "a complex array cannot become a real one: use bh::real or bh::imag");
        (bh_at)(at.file, at.line);
        detail::check((bh_cast)(&handle_, other.handle, detail::code<T>), at);
        detail::note_converted(handle_, other.handle, at);
        other.spend();
    }

    void into(int opcode, operand b) {
        const bh_array *inputs[] = {handle_, b.is_number() ? detail::constant(b.value) : b.handle};
        detail::record_into(handle_, opcode, 0, 2, inputs, b.at);
        b.spend();
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
        detail::check((bh_zeros)(&handle_, detail::current_context, detail::code<T>, extents.rank(), extents.data()), at);
    }
    /// Zeros, by sizes: `array<double> a(3, 4)`. Braces give elements instead: `array<double> a{3, 4}`.
    template <class... Sizes, class = std::enable_if_t<(std::is_integral_v<Sizes> && ...)>>
    explicit array(detail::size first, Sizes... more) : array(shape({first.count, static_cast<std::int64_t>(more)...}, first.at), first.at) {}
    /// The elements; nested braces are further dimensions.
    array(std::initializer_list<detail::cell<T>> list, place at = place::here()) {
        shape extents;
        for (std::initializer_list<detail::cell<T>> level = list;; level = level.begin()->inner) {
            extents.push_back(static_cast<std::int64_t>(level.size()), at);
            if (level.size() == 0 || !level.begin()->nested) break;
        }
        buffer elements(static_cast<std::size_t>(extents.count()));
        T *next = elements.data;
        lay_out(list, extents, 0, next, at);
        load(elements.data, extents, at);
    }
    /// A copy of the elements of a container or other range, in one dimension or the given shape.
    template <class Range, if_range<Range> = 0> explicit array(Range &&range, place at = place::here()) {
        take_range(range, nullptr, at);
    }
    template <class Range, if_range<Range> = 0> array(Range &&range, const shape &extents, place at = place::here()) {
        take_range(range, &extents, at);
    }
    /// A copy of the elements at `data`, in C order.
    array(const T *data, const shape &extents, place at = place::here()) { load(data, extents, at); }
    /// Converted from another element type.
    template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>>
    explicit array(const array<U> &other, place at = place::here()) {
        convert(detail::operand<U>(other, at), at);
    }
    template <class U, class = std::enable_if_t<!std::is_same_v<U, T>>> explicit array(array<U> &&other, place at = place::here()) {
        convert(detail::operand<U>(static_cast<array<U> &&>(other), at), at);
    }

    /// Uses the memory at `data` (C order) without a copy, until `release` is called. Look at it only through `map()`.
    static array adopt(T *data, const shape &extents, release_function release = nullptr, void *argument = nullptr,
                       place at = place::here()) {
        bh_array *handle = nullptr;
        (bh_at)(at.file, at.line);
        detail::check((bh_adopt)(&handle, detail::current_context, detail::code<T>, extents.rank(), extents.data(), data, release, argument), at);
        return detail::wrapped<T>(handle);
    }
    /// Takes a handle of the C interface over, whose element type must be T.
    static array from_handle(bh_array *handle, place at = place::here()) {
        if (detail::dtype_of(handle, at) != detail::code<T>) {
            detail::fail(BH_STATUS_TYPE, "from_handle: the array's elements are of another type", at);
        }
        return detail::wrapped<T>(handle);
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
        if (other.handle_) detail::note_same(handle_, other.handle_);
    }
    array(array &&other) noexcept : handle_(other.release()) {}
    ~array() { reset(); }

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
    /// As above, converting from another element type.
    void operator=(const detail::foreign<T, false> &value) && {
        detail::record_into(handle_, BH_OP_COPY, 0, 1, &value.handle, value.at);
        value.spend();
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
        detail::record_into(handle_, BH_OP_COPY, 0, 1, &input, value.at);
        value.spend();
        return *this;
    }
    /// As `fill`, converting from another element type.
    template <class A, detail::if_array<A> = 0> array &assign(A &&value, place at = place::here()) {
        const auto from = detail::take(static_cast<A &&>(value), at);
        static_assert(!detail::is_complex(detail::info<detail::plain<A>>::code) || detail::is_complex(detail::code<T>),
                      "a complex array cannot be written into a real one: use bh::real or bh::imag");
        detail::record_into(handle_, BH_OP_COPY, 0, 1, &from.handle, at);
        from.spend();
        return *this;
    }

    /// Is there an array behind this name?
    bool defined() const noexcept { return handle_ != nullptr; }
    /// An array of its own with the same elements.
    array copy(place at = place::here()) const & { return view(at, bh_copy_new); }
    array copy(place at = place::here()) && { return instead(view(at, bh_copy_new)); }

    // ---- what it is

    /// The number of dimensions.
    int rank(place at = place::here()) const { return detail::rank_of(handle_, at); }
    /// The extents, outermost first; `shape()` is the same.
    shape extents(place at = place::here()) const { return detail::shape_of(handle_, at); }
    /// The extent of one axis, counted from the end if negative.
    std::int64_t extent(int axis, place at = place::here()) const {
        const shape all = extents(at);
        const int counted = axis < 0 ? axis + all.rank() : axis;
        if (counted < 0 || counted >= all.rank()) {
            detail::fail(BH_STATUS_BOUNDS, "axis " + std::to_string(axis) + " does not exist in shape " + all.text(), at);
        }
        return all[counted];
    }
    /// Elements from one index to the next, per axis.
    shape strides(place at = place::here()) const {
        shape result = shape::of_rank(rank(at));
        detail::check((bh_stride)(result.data(), handle_), at);
        return result;
    }
    /// The number of elements.
    std::int64_t size(place at = place::here()) const {
        std::int64_t size = 0;
        detail::check((bh_size)(&size, handle_), at);
        return size;
    }

    // ---- parts and other views

// Of a temporary, its parts and other views are all that is left.
#define BH_VIEW(name, parameters, ...)                                                                                     \
    array name parameters const & { return __VA_ARGS__; }                                                                  \
    array name parameters && { return instead(__VA_ARGS__); }
    BH_VIEW(operator(), (place at = place::here()), part(at))
    BH_VIEW(operator(), (index a), part(a.at, a))
    BH_VIEW(operator(), (index a, index b), part(a.at, a, b))
    BH_VIEW(operator(), (index a, index b, index c), part(a.at, a, b, c))
    BH_VIEW(operator(), (index a, index b, index c, index d), part(a.at, a, b, c, d))
    template <class... More> array operator()(index a, index b, index c, index d, index e, const More &...more) const {
        return part(a.at, a, b, c, d, e, index(more, e.at)...);
    }
    BH_VIEW(operator[], (index a), part(a.at, a))
#if defined(__cpp_multidimensional_subscript)
    BH_VIEW(operator[], (index a, index b), part(a.at, a, b))
    BH_VIEW(operator[], (index a, index b, index c), part(a.at, a, b, c))
    BH_VIEW(operator[], (index a, index b, index c, index d), part(a.at, a, b, c, d))
#endif
    /// With the axes in reverse or the given order.
    BH_VIEW(transpose, (place at = place::here()), view(at, bh_transpose, nullptr))
    BH_VIEW(transpose, (std::initializer_list<int> order, place at = place::here()), permuted(order, at))
    /// The elements in C order in another shape, one extent of which may be -1. A view if possible, else a copy.
    BH_VIEW(reshape, (const shape &extents, place at = place::here()), view(at, bh_reshape, extents.rank(), extents.data()))
    /// The elements in C order in one dimension.
    BH_VIEW(flatten, (place at = place::here()), reshape(shape{-1}, at))
    /// Stretched to a larger shape by NumPy's broadcasting; the result can be read only.
    BH_VIEW(broadcast_to, (const shape &extents, place at = place::here()), view(at, bh_broadcast, extents.rank(), extents.data()))
    /// The diagonal of two axes as a last axis.
    BH_VIEW(diagonal, (std::int64_t offset = 0, int first = 0, int second = 1, place at = place::here()), view(at, bh_diagonal, offset, first, second))
    /// With all axes walked backwards, or one.
    BH_VIEW(flip, (place at = place::here()), reversed(at))
    BH_VIEW(flip, (int axis, place at = place::here()), view(at, bh_reverse, axis))
    /// With two axes exchanged.
    BH_VIEW(swap_axes, (int first, int second, place at = place::here()), exchanged(first, second, at))
    /// Without the axes of extent 1.
    BH_VIEW(squeeze, (place at = place::here()), squeezed(at))
#undef BH_VIEW

    /// The elements that a mask chooses, in C order: to be read, or written by `=`, `+=`, …. A mask of fewer dimensions chooses
    /// parts of the leading ones.
    selection<T> operator()(const array<bool> &mask, place at = place::here()) const { return selection<T>(*this, mask, at); }

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

    /// The elements in C order, once they are computed; valid as an address is.
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

    // ---- compound assignment

// Changes the elements in place: everything that shares them sees it.
#define BH_COMPOUND(symbol, opcode, rule, types)                                                                           \
    array &operator symbol##=(operand b) {                                                                                 \
        constexpr unsigned set = detail::in_place(rule, types);                                                            \
        static_assert(detail::in_set(set, detail::code<T>), "this operation does not exist for this element type");        \
        into(opcode, b);                                                                                                   \
        return *this;                                                                                                      \
    }                                                                                                                      \
    array &operator symbol##=(const detail::foreign<T, true> &b) { return *this symbol##= operand(b.template as<T>(), b.at); }
    BH_ARITHMETIC(BH_COMPOUND)
#undef BH_COMPOUND

    /// Prints as NumPy does, large arrays by their edges.
    template <class Character, class Traits>
    friend std::basic_ostream<Character, Traits> &operator<<(std::basic_ostream<Character, Traits> &out, operand a) {
        const char *text = nullptr;
        detail::check((bh_format)(&text, a.handle), a.at);
        return out << text;
    }

private:
    T *pointer(unsigned access, place at) const {
        mapping<T> mapped(handle_, access, at);
        if (!detail::is_contiguous(mapped.extents(), mapped.strides())) {
            detail::fail(BH_STATUS_ARGUMENT, "data: the array is a strided view, whose elements are not in one piece; copy() it first", at);
        }
        return mapped.data();
    }
};

namespace detail {

template <class T> array<T> wrapped(bh_array *handle) noexcept {
    array<T> result;
    result.handle_ = handle;
    return result;
}

} // namespace detail

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

} // namespace bh
