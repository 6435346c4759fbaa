// Task graphs: a source, tasks and a sink, which work at the same time on pieces that follow each other.
#pragma once

#include "loops.hpp"
#include "runtime.hpp"

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace bh {

/// A failure of a stage of a graph. `what()` names the stage and the piece, and says why.
class graph_error : public std::runtime_error {
    std::string stage_;
    std::size_t piece_;

public:
    graph_error(const std::string &stage, std::size_t piece, const std::string &reason)
        : std::runtime_error(stage + " fails for piece " + std::to_string(piece) + ": " + reason), stage_(stage), piece_(piece) {}

    const std::string &stage() const noexcept { return stage_; }
    /// Counted from 0.
    std::size_t piece() const noexcept { return piece_; }
};

/// The counters of a stage: the pieces that it was given, how often it found none, and how often there was no room behind it.
struct stage_counters {
    std::string name;
    std::size_t pieces = 0, starved = 0, held = 0;
};

namespace detail {

/// The way from one stage to the next, with room for a few pieces.
template <class T> class pipe {
    static constexpr std::size_t room = 2;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> pieces_;
    bool is_ended_ = false, is_closed_ = false;

public:
    /// Waits for room; false if nobody takes pieces any more.
    bool put(T piece, stage_counters &counters) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (pieces_.size() >= room && !is_closed_) ++counters.held;
        changed_.wait(lock, [&] { return pieces_.size() < room || is_closed_; });
        if (is_closed_) return false;
        pieces_.push_back(static_cast<T &&>(piece));
        changed_.notify_all();
        return true;
    }
    /// Waits for a piece; none at the end.
    std::optional<T> take(stage_counters &counters) {
        std::unique_lock<std::mutex> lock(mutex_);
        if (pieces_.empty() && !is_ended_) ++counters.starved;
        changed_.wait(lock, [&] { return !pieces_.empty() || is_ended_; });
        if (pieces_.empty()) return std::nullopt;
        std::optional<T> piece(static_cast<T &&>(pieces_.front()));
        pieces_.pop_front();
        ++counters.pieces;
        changed_.notify_all();
        return piece;
    }
    void end() { set(is_ended_); }
    void close() { set(is_closed_); }

private:
    void set(bool &flag) {
        const std::lock_guard<std::mutex> lock(mutex_);
        flag = true;
        changed_.notify_all();
    }
};

/// The first failure of a graph.
class failures {
    std::mutex mutex_;
    std::exception_ptr first_;

public:
    void note(const std::string &stage, std::size_t piece) {
        std::string reason = "an exception";
        try {
            throw;
        } catch (const std::exception &error) {
            reason = error.what();
        } catch (...) {
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        if (first_) return;
        try {
            // The reason itself is nested in the error.
            std::throw_with_nested(graph_error(stage, piece, reason));
        } catch (...) {
            first_ = std::current_exception();
        }
    }
    void rethrow() {
        if (first_) std::rethrow_exception(first_);
    }
};

/// While one lives, its thread's new arrays are made in a context.
class within {
    bh_context *before_;

public:
    explicit within(bh_context *context) : before_(current_context) { current_context = context; }
    within(const within &) = delete;
    ~within() { current_context = before_; }
};

/// A piece in the context of this thread: arrays of others are copied.
template <class P> P brought(P piece) { return piece; }
template <class T> array<T> brought(const array<T> &piece) {
    bh_context *own = nullptr;
    check((bh_context_of)(&own, piece.handle()), place());
    if (own == current_context) return piece;
    const array<T> whole = piece.copy();
    return array<T>(whole.data(), whole.extents());
}
template <class... P> std::tuple<P...> brought(const std::tuple<P...> &piece) {
    return std::apply([](const auto &...part) { return std::tuple<P...>(brought(part)...); }, piece);
}

/// Calls of a function with some pieces of one type as its arguments.
template <class F, class P, class Indices> struct call_of;
template <class F, class P, std::size_t... K> struct call_of<F, P, std::index_sequence<K...>> {
    template <std::size_t> using piece = P;
    static constexpr bool possible = std::is_invocable_v<const F &, piece<K>...>;
    static auto run(const F &f, std::deque<P> &pieces) { return f(brought(static_cast<P &&>(pieces[K]))...); }
};
/// The pieces that a task passes on: its result, or each of several pieces in a `std::array`.
template <std::size_t Given, class M> struct piece_of {
    static_assert(Given == 1, "a task that gives several pieces a call returns them as a std::array");
    using type = M;
};
template <std::size_t Given, class R> struct piece_of<Given, std::array<R, Given>> { using type = R; };
template <class R> struct piece_of<1, std::array<R, 1>> { using type = std::array<R, 1>; };

/// A task: a function, how many pieces a call takes and gives, the stack that it runs on (the graph's if it has no name), and its name.
template <class F, std::size_t Taken = 1, std::size_t Given = 1> struct task_stage {
    static_assert(Taken > 0 && Given > 0, "a task takes and gives at least one piece a call");
    F f;
    std::string stack, name;

    template <class P> using call = call_of<F, P, std::make_index_sequence<Taken>>;
    template <class P> using made = typename piece_of<Given, std::decay_t<decltype(call<P>::run(std::declval<const F &>(), std::declval<std::deque<P> &>()))>>::type;
    static constexpr std::size_t taken = Taken, given = Given;

    task_stage on(const std::string &other) && { return {static_cast<F &&>(f), other, name}; }
    task_stage named(const std::string &other) && { return {static_cast<F &&>(f), stack, other}; }
    /// How many pieces a call takes, as so many arguments, and how many it gives, as a `std::array`.
    template <std::size_t Takes, std::size_t Gives> task_stage<F, Takes, Gives> rate() && { return {static_cast<F &&>(f), stack, name}; }
};
template <class F> struct sink_stage { F f; };

/// The state of a running graph.
struct running {
    bh_context *const own = present();
    failures failed;
    // Stages keep references to what is theirs.
    std::deque<stage_counters> counters;
    std::deque<context> contexts;
    std::vector<std::thread> threads;

    /// The context of this thread, by name also if it is the default one.
    static bh_context *present() {
        bh_context *found = nullptr;
        const array<bool> some = zeros<bool>({1});
        check((bh_context_of)(&found, some.handle()), place());
        return found;
    }
    stage_counters &counted(const std::string &name) {
        counters.emplace_back();
        counters.back().name = name;
        return counters.back();
    }
    /// The context of a task, by the name of its stack.
    bh_context *context_for(const std::string &stack) {
        if (stack.empty()) return own;
        contexts.emplace_back(stack);
        return contexts.back().handle();
    }
    void join() {
        for (auto &thread : threads) thread.join();
        threads.clear();
    }
};

/// The pieces of a container, one after the other.
template <class Range> class pieces_of {
    Range range_;
    std::optional<decltype(std::begin(std::declval<const Range &>()))> at_;

public:
    explicit pieces_of(Range range) : range_(static_cast<Range &&>(range)) {}
    auto operator()() {
        if (!at_) at_ = std::begin(static_cast<const Range &>(range_));
        using P = std::decay_t<decltype(**at_)>;
        return *at_ == std::end(static_cast<const Range &>(range_)) ? std::optional<P>() : std::optional<P>(*(*at_)++);
    }
};

} // namespace detail

/// A graph: what `source | task | … | sink` makes. `run` goes through all pieces.
template <class S, class H, class... Task> class graph {
    S source_;
    H sink_;
    std::tuple<Task...> tasks_;

    using first = typename std::invoke_result_t<S &>::value_type;
    template <class P> using way = std::shared_ptr<detail::pipe<P>>;

    void produce(detail::pipe<first> &out, detail::failures &failed, stage_counters &counters) {
        try {
            while (auto piece = source_()) {
                if (!out.put(*static_cast<std::optional<first> &&>(piece), counters)) break;
                ++counters.pieces;
            }
        } catch (...) {
            failed.note(counters.name, counters.pieces);
        }
        out.end();
    }

    template <class P> void consume(detail::pipe<P> &in, detail::failures &failed, stage_counters &counters) {
        static_assert(std::is_invocable_v<H &, P>, "the sink takes what the stage before it gives");
        try {
            while (auto piece = in.take(counters)) sink_(detail::brought(*static_cast<std::optional<P> &&>(piece)));
        } catch (...) {
            failed.note(counters.name, counters.pieces - 1);
        }
        in.close();
    }

    /// Takes the pieces of a call; false at the end.
    template <class P> static bool gather(std::deque<P> &pieces, std::size_t wanted, detail::pipe<P> &in, stage_counters &counters) {
        pieces.clear();
        while (pieces.size() < wanted) {
            auto piece = in.take(counters);
            if (!piece && pieces.empty()) return false;
            if (!piece)
                throw std::invalid_argument("it takes " + std::to_string(wanted) + " pieces a call, and the stream ended with " + std::to_string(pieces.size()) + " left");
            pieces.push_back(*static_cast<std::optional<P> &&>(piece));
        }
        return true;
    }

    template <class T, class P, class R>
    static void work(const T &task, detail::pipe<P> &in, detail::pipe<R> &out, detail::failures &failed, stage_counters &counters) {
        std::deque<P> pieces;
        const auto pass = [&](auto &&made) { return out.put(static_cast<R &&>(made), counters); };
        try {
            for (bool wanted = true; wanted && gather(pieces, T::taken, in, counters);) {
                auto made = T::template call<P>::run(task.f, pieces);
                flush();
                if constexpr (T::given == 1) {
                    wanted = pass(made);
                } else {
                    for (auto &one : made) wanted = wanted && pass(one);
                }
            }
        } catch (...) {
            failed.note(counters.name, counters.pieces - pieces.size());
        }
        in.close();
        out.end();
    }

    /// Starts the tasks from one of them on; behind the last one, this thread is the sink.
    template <std::size_t I, class P> void begin(const way<P> &in, detail::running &run, const std::vector<bh_context *> &contexts) {
        if constexpr (I == sizeof...(Task)) {
            const detail::within here(run.own);
            consume(*in, run.failed, run.counted("sink"));
        } else {
            using stage = std::tuple_element_t<I, std::tuple<Task...>>;
            static_assert(stage::template call<P>::possible, "a task takes what the stage before it gives, and keeps no state");
            using result = typename stage::template made<P>;
            const auto &task = std::get<I>(tasks_);
            const auto out = std::make_shared<detail::pipe<result>>();
            auto &counters = run.counted(task.name.empty() ? "task " + std::to_string(I + 1) : task.name);
            run.threads.emplace_back([&task, &run, &counters, in, out, context = contexts[I]] {
                const detail::within here(context);
                work(task, *in, *out, run.failed, counters);
            });
            begin<I + 1>(out, run, contexts);
        }
    }

public:
    graph(S source, H sink, std::tuple<Task...> tasks)
        : source_(static_cast<S &&>(source)), sink_(static_cast<H &&>(sink)), tasks_(static_cast<std::tuple<Task...> &&>(tasks)) {}

    /// Runs the graph, the sink in this thread, and returns what was counted at each stage. Pieces before one that fails get to the
    /// sink; then the failure is thrown, with its reason nested in it.
    std::vector<stage_counters> run() {
        detail::running run;
        const std::vector<bh_context *> contexts = std::apply(
            [&](const auto &...task) { return std::vector<bh_context *>{run.context_for(task.stack)...}; }, tasks_);
        const auto out = std::make_shared<detail::pipe<first>>();
        auto &counters = run.counted("source");
        run.threads.emplace_back([this, out, &run, &counters] {
            const detail::within here(run.own);
            produce(*out, run.failed, counters);
        });
        begin<0>(out, run, contexts);
        run.join();
        run.failed.rethrow();
        return {run.counters.begin(), run.counters.end()};
    }
};

/// A source and tasks: the beginning of a graph, to which `|` adds stages.
template <class S, class... Task> class graph_part {
    S source_;
    std::tuple<Task...> tasks_;

public:
    explicit graph_part(S source, std::tuple<Task...> tasks = {}) : source_(static_cast<S &&>(source)), tasks_(static_cast<std::tuple<Task...> &&>(tasks)) {}

    template <class G, std::size_t Taken, std::size_t Given>
    graph_part<S, Task..., detail::task_stage<G, Taken, Given>> operator|(detail::task_stage<G, Taken, Given> next) && {
        using added = std::tuple<detail::task_stage<G, Taken, Given>>;
        return graph_part<S, Task..., detail::task_stage<G, Taken, Given>>(
            static_cast<S &&>(source_), std::tuple_cat(static_cast<std::tuple<Task...> &&>(tasks_), added(static_cast<decltype(next) &&>(next))));
    }
    template <class H> graph<S, H, Task...> operator|(detail::sink_stage<H> last) && {
        return graph<S, H, Task...>(static_cast<S &&>(source_), static_cast<H &&>(last.f), static_cast<std::tuple<Task...> &&>(tasks_));
    }
};

/// The source of a graph: a function that returns the next piece as `std::optional`, none at the end; or a container of pieces.
/// `auto graph = bh::source(read) | bh::task(smooth) | bh::task(fit).on("opencl") | bh::sink(print); graph.run();`
template <class S> auto source(S from) {
    if constexpr (std::is_invocable_v<S &>) {
        return graph_part<S>(static_cast<S &&>(from));
    } else {
        return graph_part<detail::pieces_of<S>>(detail::pieces_of<S>(static_cast<S &&>(from)));
    }
}
/// A task of a graph: a function from a piece to another one, called in a thread of its own. It keeps no state. `.on("opencl")` names
/// the stack that it runs on, to which arrays (also in tuples) are copied; `.named("smooth")` names it in failures; with `.rate<2, 1>()` a
/// call takes two pieces, as two arguments, with `.rate<1, 2>()` it gives two, as a `std::array`.
template <class F> detail::task_stage<F> task(F f) { return {static_cast<F &&>(f), {}, {}}; }
/// The sink of a graph: a function that takes all pieces, in order.
template <class H> detail::sink_stage<H> sink(H f) { return {static_cast<H &&>(f)}; }

} // namespace bh
