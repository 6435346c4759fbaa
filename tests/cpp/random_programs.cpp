// Runs the programs that random_programs.py makes: a statement a line, about eight names of arrays.

#include <bh.hpp>

#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using bh::array;

namespace {

/// A value of the line.
template <class V = int> V next(std::istream &line) {
    V value{};
    if (!(line >> value)) std::abort();
    return value;
}

bh::shape extents(std::istream &line) {
    bh::shape result;
    for (int left = next(line); left > 0; --left) result.push_back(next<std::int64_t>(line));
    return result;
}

/// `:` for all, `n` for a new axis, `i` and a number for an index, or start,stop,step with _ for none.
bh::detail::index subscript(std::istream &line) {
    const auto text = next<std::string>(line);
    if (text == ":") return bh::all;
    if (text == "n") return bh::newaxis;
    if (text[0] == 'i') return std::stoll(text.substr(1));
    const auto comma = text.find(','), second = text.find(',', comma + 1);
    const std::string start = text.substr(0, comma), stop = text.substr(comma + 1, second - comma - 1);
    const std::int64_t step = std::stoll(text.substr(second + 1));
    if (start == "_" && stop == "_") return bh::slice(bh::none, bh::none, step);
    if (start == "_") return bh::slice(bh::none, std::stoll(stop), step);
    if (stop == "_") return bh::slice(std::stoll(start), bh::none, step);
    return bh::slice(std::stoll(start), std::stoll(stop), step);
}

template <class T> class machine {
    std::vector<array<T>> v = std::vector<array<T>>(8);
    std::map<std::string, std::function<void(std::istream &)>> statements;

    const array<T> &name(std::istream &line) { return v[static_cast<std::size_t>(next(line))]; }
    T number(std::istream &line) { return static_cast<T>(next(line)); }
    /// Positions in an array of so many elements.
    static array<std::int64_t> positions(const array<T> &a, std::int64_t count) {
        return bh::cast<std::int64_t>(bh::remainder(bh::abs(a), static_cast<T>(count)));
    }
    static array<T> part(const array<T> &a, std::istream &line) {
        const int count = next(line);
        const auto first = subscript(line);
        if (count == 1) return a(first);
        const auto second = subscript(line);
        if (count == 2) return a(first, second);
        const auto third = subscript(line);
        if (count == 3) return a(first, second, third);
        return a(first, second, third, subscript(line));
    }
    template <class B> static array<T> computed(const std::string &sign, const array<T> &a, const B &b) {
        if (sign == "+") return a + b;
        if (sign == "-") return a - b;
        if (sign == "from") return b - a;
        if (sign == "*") return a * b;
        if (sign == "max") return bh::maximum(a, b);
        if (sign == "min") return bh::minimum(a, b);
        if (sign == "<") return bh::cast<T>(a < b);
        if (sign == "==") return bh::cast<T>(a == b);
        if (sign == "rem") return bh::remainder(a, b);
        return bh::floor_divide(a, b);
    }
    template <class B> static void update(const std::string &sign, array<T> &a, const B &b) {
        if (sign == "+") a += b;
        else if (sign == "-") a -= b;
        else a *= b;
    }
    static array<T> folded(const std::string &fold, const array<T> &a, const bh::axes &over, bh::keep kept) {
        if (fold == "sum") return bh::cast<T>(bh::sum(a, over, kept));
        if (fold == "max") return bh::max(a, over, kept);
        if (fold == "min") return bh::min(a, over, kept);
        if (fold == "any") return bh::cast<T>(bh::any(a > T(3), over, kept));
        return bh::cast<T>(bh::all(a > T(-2), over, kept));
    }
    static array<T> small(const array<T> &a) { return bh::clip(a, T(-1), T(2)); }

    /// A statement that makes a name stand for an array.
    template <class F> void make(const char *word, F f) {
        statements[word] = [this, f](std::istream &line) {
            const auto to = static_cast<std::size_t>(next(line));
            v[to] = f(line);
        };
    }
    /// A statement that changes elements.
    template <class F> void change(const char *word, F f) {
        statements[word] = [this, f](std::istream &line) { f(v[static_cast<std::size_t>(next(line))], line); };
    }

    void making() {
        using in = std::istream &;
        make("new", [](in l) {
            const auto first = next<std::int64_t>(l);
            const bh::shape shape = extents(l);
            const auto numbers = bh::arange<std::int64_t>(static_cast<double>(shape.count())) * std::int64_t(3) + first;
            return bh::cast<T>(bh::remainder(numbers, std::int64_t(7)) - std::int64_t(2)).reshape(shape);
        });
        make("two", [this](in l) { const auto sign = next<std::string>(l); const auto &a = name(l), &b = name(l); return computed(sign, a, b); });
        make("div", [this](in l) { const auto sign = next<std::string>(l); const auto &a = name(l), &b = name(l); return computed(sign, a, array<T>(bh::abs(b) + T(1))); });
        make("one", [this](in l) { const auto sign = next<std::string>(l); const auto &a = name(l); return computed(sign, a, number(l)); });
        make("moved", [this](in l) { const auto &a = name(l), &b = name(l); auto sum = a + b; return bh::minimum(std::move(sum) * b, a); });
        make("mixed", [this](in l) { const auto &a = name(l), &b = name(l); return bh::cast<T>(bh::cast<std::int32_t>(a) * 2 + bh::cast<float>(b)); });
        make("narrow", [this](in l) { return bh::cast<T>(bh::cast<std::int8_t>(name(l) * T(11))); });
        make("clip", [this](in l) { return bh::clip(name(l), T(-3), T(4)); });
        make("pow", [this](in l) { const auto &a = name(l); return bh::pow(a, number(l)); });
        make("where", [this](in l) { const auto &a = name(l), &b = name(l), &c = name(l); return bh::where(a > b, c, b); });
        make("less", [this](in l) { const auto &a = name(l); return a - bh::scalar(bh::max(name(l))); });
        make("slice", [this](in l) { const auto &a = name(l); return part(a, l); });
        make("name", [this](in l) { return name(l); });
        make("copy", [this](in l) { return name(l).copy(); });
        make("transpose", [this](in l) { return name(l).transpose(); });
        make("reshape", [this](in l) { const auto &a = name(l); return a.reshape(extents(l)); });
        make("flip", [this](in l) { const auto &a = name(l); return bh::flip(a, next(l)); });
        make("swap", [this](in l) { const auto &a = name(l); const int first = next(l); return bh::swap_axes(a, first, next(l)); });
        make("squeeze", [this](in l) { return bh::squeeze(name(l)); });
        make("diagonal", [this](in l) { const auto &a = name(l); return bh::diagonal(a, next(l)).copy(); });
        make("fold", [this](in l) {
            const auto fold = next<std::string>(l);
            const auto &a = name(l);
            const int axis = next(l), kept = next(l);
            return folded(fold, a, axis < -8 ? bh::axes{} : bh::axes{axis}, kept ? bh::keepdims : bh::dropdims);
        });
        make("both", [this](in l) { const auto &a = name(l); const int first = next(l); return folded("sum", a, {first, next(l)}, bh::dropdims); });
        make("prod", [this](in l) { const auto &a = name(l); return bh::cast<T>(bh::prod(small(a), {next(l)})); });
        make("argmax", [this](in l) { const auto &a = name(l); return bh::cast<T>(bh::argmax(a, next(l))); });
        make("argmin", [this](in l) { const auto &a = name(l); return bh::cast<T>(bh::argmin(a, next(l))); });
        make("cumsum", [this](in l) { const auto &a = name(l); return bh::cast<T>(bh::cumsum(a, next(l))); });
        make("cumprod", [this](in l) { const auto &a = name(l); return bh::cast<T>(bh::cumprod(small(a), next(l))); });
        make("chosen", [this](in l) -> array<T> { const auto &a = name(l); return a(a > number(l)); });
        make("rows", [this](in l) -> array<T> { const auto &a = name(l); return a(name(l) > T(0)); });
        make("take", [this](in l) { const auto &a = name(l); return bh::take(a.flatten(), positions(name(l), a.size())); });
        make("along", [this](in l) { const auto &a = name(l), &b = name(l); const int axis = next(l); return bh::take(a, positions(b, a.extent(axis)), axis); });
        make("join", [this](in l) { const auto &a = name(l), &b = name(l); return bh::concatenate({a, b}, next(l)); });
        make("stack", [this](in l) { const auto &a = name(l), &b = name(l); return bh::stack({a, b}, next(l)); });
        make("roll", [this](in l) { const auto &a = name(l); const int by = next(l); return bh::roll(a, by, next(l)); });
        make("diff", [this](in l) { const auto &a = name(l); return bh::diff(a, next(l)); });
        make("repeat", [this](in l) { const auto &a = name(l); const int count = next(l); return bh::repeat(a, count, next(l)); });
        make("tile", [this](in l) { const auto &a = name(l); return bh::tile(a, extents(l)); });
        make("tril", [this](in l) { const auto &a = name(l); return bh::tril(a, next(l)); });
        make("triu", [this](in l) { const auto &a = name(l); return bh::triu(a, next(l)); });
        make("matmul", [this](in l) { const auto &a = name(l), &b = name(l); return bh::matmul(a, b); });
        make("outer", [this](in l) { const auto &a = name(l), &b = name(l); return bh::outer(a, b); });
    }

    void changing() {
        using in = std::istream &;
        using one = array<T> &;
        change("update", [this](one a, in l) { const auto sign = next<std::string>(l); update(sign, a, name(l)); });
        change("number", [this](one a, in l) { const auto sign = next<std::string>(l); update(sign, a, number(l)); });
        change("fill", [this](one a, in l) { a.fill(name(l)); });
        change("set", [this](one a, in l) { const auto &b = name(l); part(a, l) = b; });
        change("set-number", [this](one a, in l) { const T b = number(l); part(a, l) = b; });
        change("set-update", [this](one a, in l) {
            const auto sign = next<std::string>(l);
            const auto &b = name(l);
            auto to = part(a, l);
            update(sign, to, b);
        });
        change("mask", [this](one a, in l) { const T least = number(l); a(a > least) = number(l); });
        change("mask-add", [this](one a, in l) { const T least = number(l); a(a > least) += number(l); });
        change("mask-rows", [this](one a, in l) { const auto &b = name(l); a(b > T(0)) = number(l); });
        change("mask-turn", [](one a, in) {
            const array<T> chosen = a(a > T(0));
            a(a > T(0)) = bh::flip(chosen, 0) + T(1);
        });
        change("mask-put", [this](one a, in l) { bh::put_mask(a, a < T(1), name(l)); });
        change("put", [this](one a, in l) { const auto &b = name(l); bh::put(a, positions(b, a.size()), number(l)); });
        change("put-add", [this](one a, in l) { const auto &b = name(l); bh::put_add(a, positions(b, a.size()), number(l)); });
        change("loop", [](one a, in l) {
            for (int round = 0, rounds = next(l); round < rounds; ++round) {
                const auto left = a(bh::slice(0, -2)), right = a(bh::slice(2, bh::none)), inside = a(bh::slice(1, -1));
                a(bh::slice(1, -1)) = bh::clip(left + right - inside, T(-3), T(4));
                if (round % 3 == 2 && bh::scalar(bh::max(a)) > T(3)) a -= T(1);
            }
        });
        change("print", [](one a, in) {
            const array<T> all = a.copy();
            for (std::int64_t extent : all.extents()) std::cout << extent << ' ';
            std::cout << '|' << std::setprecision(17);
            for (T element : all) std::cout << ' ' << element;
            std::cout << '\n';
        });
    }

public:
    machine() {
        making(), changing();
        statements["flush"] = [](std::istream &) { bh::flush(); };
    }
    void run(const std::string &text) {
        std::istringstream line(text);
        const auto found = statements.find(next<std::string>(line));
        if (found == statements.end()) std::abort();
        found->second(line);
    }
};

template <class T> void run() {
    machine<T> all;
    for (std::string text; std::getline(std::cin, text);) {
        try {
            all.run(text);
        } catch (const bh::error &error) {
            std::cout << "error: " << text << ": " << error.message() << '\n';
        }
    }
}

} // namespace

int main(int, char **arguments) { std::string(arguments[1]) == "double" ? run<double>() : run<std::int64_t>(); }
