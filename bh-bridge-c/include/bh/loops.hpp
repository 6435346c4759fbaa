// Choices and loops of elements, and folds whose state has several values.
#pragma once

#include "functional.hpp"

#include <tuple>
#include <vector>

namespace bh {
namespace detail {

/// The results of a traced function, as a tuple.
template <class... R> std::tuple<R...> listed(std::tuple<R...> results) { return results; }
template <class R> std::tuple<R> listed(R result) { return std::tuple<R>(static_cast<R &&>(result)); }

/// A result of a function, as an operand of type T of a program.
template <class T, class R> std::string written(writer &program, const R &result, place at) {
    if constexpr (is_scalar<R>) {
        return number_text(static_cast<T>(result));
    } else if constexpr (std::is_same_v<T, typename R::value_type>) {
        return program.operand(result.value().handle());
    } else {
        return program.operand(bh::cast<T>(result, at).value().handle());
    }
}

/// A value that stands for a register.
template <class T> traced<T> register_value(writer &program, const std::string &name, place at) {
    auto value = leaf(bh::full<T>(shape{}, T(1), at), 0);
    program.stands(value.value().handle(), name);
    return value;
}

/// Values as registers of these types, by statements that everybody comes to who comes here.
template <class... T, class... R, std::size_t... I>
void assign(writer &program, const std::vector<std::string> &targets, const std::tuple<R...> &values, std::tuple<T...> *, std::index_sequence<I...>, place at) {
    const std::vector<std::string> operands{written<T>(program, std::get<I>(values), at)...};
    // All values are there before a register changes.
    const int types[] = {code<T>...};
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < sizeof...(I); ++i) {
        kept.push_back(program.add(types[i]));
        program.copy(kept[i], operands[i]);
    }
    for (std::size_t i = 0; i < sizeof...(I); ++i) program.copy(targets[i], kept[i]);
}

/// A choice of values as a branch of a program.
template <class C, class F, class D, class... R, std::size_t... I>
std::tuple<traced<R>...> branch(writer &program, const C &condition, F &f, D &g, std::tuple<R...> *types, std::index_sequence<I...> all, place at) {
    std::vector<std::string> targets{program.add(code<R>)...};
    program.write("if " + written<bool>(program, condition, at) + " { ");
    assign(program, targets, listed(f()), types, all, at);
    program.write("} else { ");
    assign(program, targets, listed(g()), types, all, at);
    program.write("} ");
    return std::tuple<traced<R>...>(register_value<R>(program, targets[I], at)...);
}

/// A loop as a scalar program; empty if it does what programs do not have.
template <class C, class F, class... T, class... G, std::size_t... S, std::size_t... I>
std::string loop_program(C &condition, F &step, std::tuple<array<T>...> *, std::tuple<array<G>...> *, std::index_sequence<S...> all, std::index_sequence<I...>, place at) {
    writer program;
    const std::vector<std::string> inputs{program.add(code<T>)..., program.add(code<G>)...};
    std::vector<std::string> states{program.add(code<T>)...};
    for (std::size_t i = 0; i < sizeof...(T); ++i) program.copy(states[i], inputs[i]);
    program.write("block { loop { ");
    const auto values = std::make_tuple(register_value<T>(program, states[S], at)..., register_value<G>(program, inputs[sizeof...(T) + I], at)...);
    const auto holds = std::apply(condition, values);
    if constexpr (is_scalar<std::decay_t<decltype(holds)>>) {
        return std::string();
    } else {
        program.write("if " + written<bool>(program, holds, at) + " { } else { leave 0 } ");
        const auto results = listed(std::apply(step, values));
        static_assert(std::tuple_size_v<std::decay_t<decltype(results)>> == sizeof...(T), "the step must return as many values as the state has");
        assign(program, states, results, static_cast<std::tuple<T...> *>(nullptr), all, at);
        program.write("} } ");
        return program.fits() ? program.program("loop", sizeof...(T) + sizeof...(G), sizeof...(T)) : std::string();
    }
}

/// Runs a loop as one operation; false if it does what programs do not have, or the stack has no programs.
template <class C, class F, class... T, class... G, std::size_t... S, std::size_t... I>
bool loop_at_once(std::tuple<array<T>...> &results, const shape &extents, C &condition, F &step, const std::tuple<array<T>...> &state, const std::tuple<array<G>...> &given, std::index_sequence<S...> all, std::index_sequence<I...> others, place at) {
    if (2 * sizeof...(T) + sizeof...(G) > BH_MAX_OPERANDS) return false;
    const std::string program = loop_program(condition, step, static_cast<std::tuple<array<T>...> *>(nullptr), static_cast<std::tuple<array<G>...> *>(nullptr), all, others, at);
    if (program.empty()) return false;
    const std::tuple<array<T>...> from(std::get<S>(state).broadcast_to(extents, at)...);
    [[maybe_unused]] const std::tuple<array<G>...> beside(std::get<I>(given).broadcast_to(extents, at)...);
    results = std::tuple<array<T>...>(bh::empty<T>((static_cast<void>(std::get<S>(from)), extents), at)...);
    bh_array *const outs[] = {std::get<S>(results).handle()...};
    const bh_array *const inputs[] = {std::get<S>(from).handle()..., std::get<I>(beside).handle()...};
    (bh_at)(at.file, at.line);
    const bh_status status = (bh_extmethod)(program.c_str(), sizeof...(T), outs, sizeof...(T) + sizeof...(G), inputs);
    if (status == BH_STATUS_UNSUPPORTED) return false;
    check(status, at);
    return true;
}

/// The turns of a loop, of elements that may have been moved together.
template <class... T> class turns {
    using states = std::tuple<array<T>...>;
    static constexpr auto all_states = std::index_sequence_for<T...>();

    states now_, whole_;
    array<bool> active_;
    /// Where the elements belong, once they were moved; how many of all there are now.
    array<std::int64_t> places_;
    std::int64_t size_;
    shape extents_;
    bool is_moved_ = false;
    place at_;

    template <std::size_t... S> void keep(const states &next, std::index_sequence<S...>) {
        ((std::get<S>(now_) = bh::where(active_, std::get<S>(next), std::get<S>(now_), at_)), ...);
    }
    template <std::size_t... S> void put_back(std::index_sequence<S...>) {
        (bh::put(std::get<S>(whole_), places_, std::get<S>(now_), at_), ...);
    }
    template <std::size_t... S> void choose(const array<std::int64_t> &found, std::index_sequence<S...>) {
        ((std::get<S>(now_) = bh::take(std::get<S>(now_), found, at_)), ...);
    }
    template <std::size_t... S> states shaped(const states &flat, std::index_sequence<S...>) {
        return states(std::get<S>(flat).reshape(extents_, at_)...);
    }

public:
    turns(const shape &extents, place at, const array<T> &...state)
        : now_(state.broadcast_to(extents, at).copy(at).flatten(at)...), active_(bh::full<bool>({extents.count()}, true, at)),
          size_(extents.count()), extents_(extents), at_(at) {}

    /// One turn: elements for which the condition does not hold keep their state.
    template <class C, class F, class... G> void turn(C &condition, F &step, const std::tuple<array<G>...> &given) {
        std::apply(
            [&](const auto &...values) {
                const shape here{size_};
                active_ = bh::logical_and(active_, finished<bool>(condition(leaf(values, 0)...), here, at_), at_);
                const auto results = listed(step(leaf(values, 0)...));
                static_assert(std::tuple_size_v<std::decay_t<decltype(results)>> == sizeof...(T), "the step must return as many values as the state has");
                keep(std::apply([&](const auto &...next) { return states(finished<T>(next, here, at_)...); }, results), all_states);
            },
            std::tuple_cat(now_, given));
    }

    /// The number of elements that go on. Waits for it.
    std::int64_t left() { return size_ == 0 ? 0 : count_true(active_, at_); }
    std::int64_t size() const { return size_; }

    /// Moves the elements that go on together, with what is given for them.
    template <class... G> void move(std::int64_t left, std::tuple<array<G>...> &given) {
        const array<std::int64_t> found = bh::flatnonzero(active_, at_);
        if (is_moved_) {
            put_back(all_states);
            places_ = bh::take(places_, found, at_);
        } else {
            whole_ = now_;
            places_ = found;
        }
        is_moved_ = true;
        choose(found, all_states);
        std::apply([&](auto &...value) { ((value = bh::take(value, found, at_)), ...); }, given);
        size_ = left;
        active_ = bh::full<bool>({left}, true, at_);
    }

    states result() {
        if (is_moved_) put_back(all_states);
        return shaped(is_moved_ ? whole_ : now_, all_states);
    }
};

/// Turns that are recorded before their elements are counted; the fewest elements worth moving.
inline constexpr int turns_at_once = 16;
inline constexpr std::int64_t few = 4096;

/// Neighbouring states combined, along an axis, in the order of `reduce`.
template <class F, class... T> class folding {
    using states = std::tuple<array<T>...>;
    F &f_;
    int axis_;
    place at_;

    template <class A> A slice_of(const A &from, std::int64_t first, std::int64_t stop, std::int64_t step) const {
        bh_array *handle = nullptr;
        check((bh_slice)(&handle, from.handle(), axis_, first, stop, step), at_);
        return wrapped<typename A::value_type>(handle);
    }

public:
    folding(F &f, int axis, place at) : f_(f), axis_(axis), at_(at) {}

    states part(const states &from, std::int64_t first, std::int64_t stop, std::int64_t step) const {
        return std::apply([&](const auto &...value) { return states(slice_of(value, first, stop, step)...); }, from);
    }

    states combined(const states &a, const states &b) const {
        const shape extents = std::get<0>(a).extents(at_);
        const auto traces = [](const states &from) { return std::apply([](const auto &...value) { return std::make_tuple(leaf(value, 0)...); }, from); };
        const auto results = f_(traces(a), traces(b));
        return std::apply([&](const auto &...value) { return states(finished<T>(value, extents, at_)...); }, results);
    }

    states folded(const states &start, states now, std::int64_t count) const {
        if (count == 0) return start;
        std::vector<states> left;
        for (; count > 1; count /= 2) {
            if (count % 2 == 1) left.push_back(part(now, count - 1, count, 1));
            const std::int64_t paired = count / 2 * 2;
            now = combined(part(now, 0, paired, 2), part(now, 1, paired, 2));
        }
        states result = combined(start, now);
        for (; !left.empty(); left.pop_back()) result = combined(result, left.back());
        return result;
    }
};

/// The arrays of a tuple in one shape.
template <class... A> shape shape_of_all(const std::tuple<A...> &arrays, place at) {
    shape extents;
    std::apply([&](const auto &...a) { ((extents = common_shape(extents, a.extents(at), at)), ...); }, arrays);
    return extents;
}

} // namespace detail

/// The result of `f()` where the condition holds, and of `g()` elsewhere; both may give tuples. For functions of elements, in
/// place of `if`: `map([](auto x) { return bh::when(x > 0, [&] { return sqrt(x); }, [&] { return 0.0 * x; }); }, a)`. Both are
/// computed for all elements, except in a `loop`, whose elements go their own ways.
template <class C, class F, class D> auto when(const C &condition, F &&f, D &&g) {
    const auto both = [&](const auto &...a) {
        return [&](const auto &...b) { return std::make_tuple(where(condition, a, b)...); };
    };
    const auto all_types = [](const auto &...value) { return std::tuple<typename std::decay_t<decltype(value)>::value_type...>(); };
    using choice = decltype(std::apply(std::apply(both, detail::listed(f())), detail::listed(g())));
    using types = decltype(std::apply(all_types, std::declval<choice>()));
    const auto chosen = [&]() -> choice {
        if constexpr (detail::info<C>::traced) {
            constexpr auto all = std::make_index_sequence<std::tuple_size_v<choice>>();
            if (auto *program = detail::writer::current()) {
                return detail::branch(*program, condition, f, g, static_cast<types *>(nullptr), all, place());
            }
        }
        return std::apply(std::apply(both, detail::listed(f())), detail::listed(g()));
    }();
    if constexpr (std::tuple_size_v<std::decay_t<decltype(chosen)>> == 1) {
        return std::get<0>(chosen);
    } else {
        return chosen;
    }
}

/// For each element: while `condition(state…, given…)` holds, its state becomes `step(state…, given…)`, a tuple of as many values.
/// Returns the states at the end. The arrays broadcast. Both functions are traced. The loop is one operation, in which each element
/// has its own turns, and runs when its results are needed. Where the functions do more than operations on what they get, or there are
/// more than 8 states, results and given arrays together, 16 turns are recorded at a time; when many elements are done, the others are
/// moved together; and the loop waits for its elements.
template <class C, class F, class... T, class... G>
std::tuple<array<T>...> loop(const std::tuple<array<T>...> &state, C &&condition, F &&step, const array<G> &...given) {
    const place at;
    const shape extents = detail::shape_of_all(std::tuple_cat(state, std::tuple<array<G>...>(given...)), at);
    const detail::beside here(std::get<0>(state).handle(), at);
    std::tuple<array<T>...> results;
    const std::tuple<array<G>...> others(given...);
    if (detail::loop_at_once(results, extents, condition, step, state, others, std::index_sequence_for<T...>(), std::index_sequence_for<G...>(), at)) return results;
    auto turns = std::apply([&](const auto &...value) { return detail::turns<T...>(extents, at, value...); }, state);
    std::tuple<array<G>...> kept(given.broadcast_to(extents, at).copy(at).flatten(at)...);
    for (std::int64_t left = extents.count(); left > 0;) {
        if (turns.size() >= detail::few && left <= turns.size() / 2) turns.move(left, kept);
        for (int turn = 0; turn < detail::turns_at_once; ++turn) turns.turn(condition, step, kept);
        left = turns.left();
    }
    return turns.result();
}

/// As `reduce`, with states of several values: `arrays` and `initial` have one of each, and `f` takes and returns tuples of them.
/// The arrays broadcast; `axis` counts in their common shape. `fold([](auto a, auto b) { … }, std::tuple{0.0, 1.0}, std::tuple{x, y}, 0)`.
template <class F, class... S, class... T>
std::tuple<array<T>...> fold(F &&f, const std::tuple<S...> &initial, const std::tuple<array<T>...> &arrays, int axis, place at = place::here()) {
    static_assert(sizeof...(S) == sizeof...(T), "a state of as many values as there are arrays needs as many initial ones");
    const shape extents = detail::shape_of_all(arrays, at);
    const int counted = detail::counted_axis(axis, extents.rank(), at);
    shape one = extents, kept;
    one[counted] = 1;
    for (int d = 0; d < extents.rank(); ++d) {
        if (d != counted) kept.push_back(extents[d], at);
    }
    using states = std::tuple<array<T>...>;
    const detail::beside here(std::get<0>(arrays).handle(), at);
    const auto start = std::apply([&](const auto &...value) { return states(bh::full<T>(one, detail::convert_scalar<T>(value, at), at)...); }, initial);
    const auto spread = std::apply([&](const auto &...value) { return states(value.broadcast_to(extents, at)...); }, arrays);
    const auto result = detail::folding<F, T...>(f, counted, at).folded(start, spread, extents[counted]);
    return std::apply([&](const auto &...value) { return states(value.reshape(kept, at)...); }, result);
}
/// Of all elements.
template <class F, class... S, class... T>
std::tuple<array<T>...> fold(F &&f, const std::tuple<S...> &initial, const std::tuple<array<T>...> &arrays, place at = place::here()) {
    const shape extents = detail::shape_of_all(arrays, at);
    const auto flat = std::apply([&](const auto &...value) { return std::tuple<array<T>...>(value.broadcast_to(extents, at).flatten(at)...); }, arrays);
    return fold(f, initial, flat, 0, at);
}

} // namespace bh
