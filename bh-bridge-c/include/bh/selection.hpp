// Elements that a mask chooses: a(mask), to be read and written.
#pragma once

#include "arrange.hpp"

#include <forward_list>
#include <initializer_list>

namespace bh {
namespace detail {

/// For each true element its number among the true ones, for others anything from -1.
inline array<std::int64_t> numbers_of_true(const array<bool> &flat, place at) {
    return bh::subtract(bh::add_accumulate(bh::cast<std::int64_t>(flat, at), 0, at), 1, at);
}

/// Calls a method on what a mask chooses; false if no component of the stack has it.
inline bool choose(const char *name, bh_array *out, std::initializer_list<const bh_array *> inputs, place at) {
    (bh_at)(at.file, at.line);
    const bh_status status = (bh_extmethod)(name, 1, &out, inputs.size(), inputs.begin());
    if (status == BH_STATUS_UNSUPPORTED) return false;
    check(status, at);
    return true;
}

/// The number of true elements. Waits for it.
inline std::int64_t count_true(const array<bool> &mask, place at) {
    const beside here(mask.handle(), at);
    array<std::int64_t> total = bh::empty<std::int64_t>(shape{}, at);
    if (choose("count_nonzero", total.handle(), {mask.handle()}, at)) return bh::scalar(total, at);
    return bh::scalar(bh::add_reduce(bh::cast<std::int64_t>(mask, at), {}, dropdims, at), at);
}

} // namespace detail

/// The flat (C order) positions of the elements that are true (not zero). Waits for their number.
template <class A, detail::if_array<A> = 0> array<std::int64_t> flatnonzero(A &&a, place at = place::here()) {
    const array<bool> flat = bh::cast<bool>(static_cast<A &&>(a), at).flatten(at);
    const std::int64_t total = flat.size(at) == 0 ? 0 : detail::count_true(flat, at);
    const detail::beside here(flat.handle(), at);
    array<std::int64_t> positions = bh::empty<std::int64_t>({total}, at);
    if (total == 0 || detail::choose("flatnonzero", positions.handle(), {flat.handle()}, at)) return positions;
    put_where(positions, detail::numbers_of_true(flat, at), flat, bh::arange<std::int64_t>(flat.size(at), at), at);
    return positions;
}

/// The elements of an array that a mask chooses. Converts to an array of them, in C order, whose size is known when the mask
/// is: reading waits for it. `=`, `+=`, … write the chosen elements; from a number, they wait for nothing.
///
/// With a name, as in `auto x = a(mask)`, it behaves as a view does: it reads the elements of `a` as they are then, and `+=`
/// and `fill` write them. `bh::array<T> x = a(mask)` keeps what they are now.
template <class T> class selection : detail::operators<T, false> {
    array<T> array_;
    array<bool> mask_;
    place at_;
    /// Arrays read for operations that are not recorded yet: they give up what they have used, and keep their places.
    mutable std::forward_list<array<T>> read_;

    using operand = detail::operand<T>;

    /// The mask with as many dimensions as the array.
    array<bool> spread(place at) const {
        shape extents = mask_.extents(at);
        for (int dim = extents.rank(), rank = array_.rank(at); dim < rank; ++dim) extents.push_back(1, at);
        return mask_.reshape(extents, at);
    }
    /// Flat positions of the chosen elements, with the dimensions after the mask's as columns.
    array<std::int64_t> positions(place at) const {
        const shape extents = array_.extents(at);
        std::int64_t inner = 1;
        for (int dim = mask_.rank(at); dim < extents.rank(); ++dim) inner *= extents[dim];
        array<std::int64_t> rows = bh::flatnonzero(mask_, at);
        if (extents.rank() == mask_.rank(at)) return rows;
        shape chosen{rows.size(at)};
        for (int dim = mask_.rank(at); dim < extents.rank(); ++dim) chosen.push_back(extents[dim], at);
        const detail::beside here(array_.handle(), at);
        auto columns = bh::arange<std::int64_t>(inner, at);
        return bh::add(bh::multiply(rows.reshape({-1, 1}, at), inner, at), std::move(columns), at).reshape(chosen, at);
    }
    /// The chosen elements, with a mask for all dimensions.
    array<T> compressed(place at) const {
        const std::int64_t total = mask_.size(at) == 0 ? 0 : detail::count_true(mask_, at);
        const detail::beside here(array_.handle(), at);
        array<T> chosen = bh::empty<T>({total}, at);
        if (total == 0 || detail::choose("compress", chosen.handle(), {mask_.handle(), array_.handle()}, at)) return chosen;
        return bh::take(array_, positions(at), at);
    }
    void store(const bh_array *value, place at) {
        const array<bool> mask = spread(at);
        const bh_array *inputs[] = {mask.handle(), value, array_.handle()};
        detail::record_into(array_.handle(), BH_OP_WHERE, 0, 3, inputs, at);
    }
    template <int Opcode, unsigned Set> void update(operand b) {
        static_assert(detail::in_set(Set, detail::code<T>), "this operation does not exist for this element type");
        if (b.is_number()) {
            const array<T> all = detail::apply<Opcode, detail::rule::same, Set>(b.at, operand(array_, b.at), b);
            store(all.handle(), b.at);
        } else {
            const array<std::int64_t> where = positions(b.at);
            array<T> chosen = bh::take(array_, where, b.at);
            const bh_array *inputs[] = {chosen.handle(), b.handle};
            detail::record_into(chosen.handle(), Opcode, 0, 2, inputs, b.at);
            b.spend();
            bh::put(array_, where, std::move(chosen), b.at);
        }
    }

public:
    using value_type = T;

    selection(const array<T> &a, const array<bool> &mask, place at) : array_(a), mask_(mask), at_(at) {
        const shape extents = a.extents(at), chosen = mask.extents(at);
        bool fits = chosen.rank() > 0 && chosen.rank() <= extents.rank();
        for (int dim = 0; fits && dim < chosen.rank(); ++dim) fits = chosen[dim] == extents[dim];
        if (!fits) {
            detail::fail(BH_STATUS_SHAPE, "a mask of shape " + chosen.text() + " does not fit an array of shape " + extents.text(), at);
        }
    }
    selection(const selection &other) : array_(other.array_), mask_(other.mask_), at_(other.at_) {}

    /// The elements as an array of its own.
    operator array<T>() const { return gathered(at_); }
    array<T> &&gathered(place at) const {
        read_.remove_if([](const array<T> &a) { return !a.defined(); });
        read_.push_front(mask_.rank(at) == array_.rank(at) ? compressed(at) : bh::take(array_, positions(at), at));
        return static_cast<array<T> &&>(read_.front());
    }

    /// All elements, and which of them are chosen, for reductions that need no array of the chosen ones.
    const array<T> &elements() const { return array_; }
    array<bool> choice(place at) const { return spread(at); }

    /// Writes the elements: all the same, or from an array with as many as there are.
    void operator=(operand value) && { write(value); }
    void operator=(const detail::foreign<T, false> &value) && { fill(value); }
    void operator=(const selection &other) && { write(operand(other)); }
    /// A name cannot stand for other elements.
    template <class V> void operator=(V &&) & {
        static_assert(detail::dependent_false<V>::value,
                      "x = value, where x is a name of elements that a mask chooses: use x.fill(value) to write them, or "
                      "bh::array<T> x = a(mask) for an array of its own");
    }
    selection &operator=(const selection &) & = delete;
    /// As `=` on the elements, also where they have a name.
    void fill(operand value) { write(value); }
    void fill(const detail::foreign<T, false> &value) {
        const array<T> converted = value.template as<T>();
        write(operand(converted, value.at));
    }

#define BH_COMPOUND(symbol, opcode, rule, types)                                                                           \
    void operator symbol##=(operand b) { update<opcode, detail::in_place(rule, types)>(b); }
    BH_ARITHMETIC(BH_COMPOUND)
#undef BH_COMPOUND

    /// Prints the chosen elements.
    template <class Character, class Traits>
    friend std::basic_ostream<Character, Traits> &operator<<(std::basic_ostream<Character, Traits> &out, const selection &chosen) {
        return out << array<T>(chosen);
    }

private:
    void write(operand value) {
        if (value.is_number()) {
            store(detail::constant(value.value), value.at);
            return;
        }
        const array<std::int64_t> where = positions(value.at);
        bh_array *stretched = nullptr;
        const shape extents = where.extents(value.at), given = detail::shape_of(value.handle, value.at);
        bool fits = given.rank() <= extents.rank();
        for (int dim = 1; fits && dim <= given.rank(); ++dim) {
            const std::int64_t extent = given[given.rank() - dim];
            fits = extent == 1 || extent == extents[extents.rank() - dim];
        }
        if (!fits) {
            detail::fail(BH_STATUS_SHAPE, "values of shape " + given.text() + " do not fit chosen elements of shape " + extents.text(), value.at);
        }
        (bh_at)(value.at.file, value.at.line);
        detail::check((bh_broadcast)(&stretched, value.handle, extents.rank(), extents.data()), value.at);
        value.spend();
        bh::put(array_, where, detail::wrapped<T>(stretched), value.at);
    }
};

} // namespace bh
