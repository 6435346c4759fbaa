//! THE table of configuration keys of bh's own components and of the core: a key is one row with its name, type,
//! default and text.
//!
//! `cargo xtask header` generates the documented part of `config/default.toml` and `docs/keys.md` from it. A component
//! reads a key by the row's constant, and [`crate::Component::KEYS`] is its list, so no component can read a key that
//! the table lacks.

use crate::config::casts::Casts;
use crate::config::key::{Row, Section};
use crate::config::recipes::Recipes;
use crate::config::size::Size;
use crate::keys;

/// All tables, in the order of the documentation.
pub const SECTIONS: [Section; 9] = [
    Section {
        name: "memory",
        is_component: false,
        text: "Host memory of a stack. Sizes are numbers with an optional unit (KiB, MiB, GiB, TiB), a percentage of the memory that \
               the machine or the container has, or \"none\".",
        rows: memory::ALL,
    },
    Section {
        name: "recorder",
        is_component: false,
        text: "When recorded operations run before a result is read.",
        rows: recorder::ALL,
    },
    component("filter", filter::ALL),
    component("fuser", fuser::ALL),
    component("cluster", cluster::ALL),
    component("node", node::ALL),
    component("ve-cpu", ve_cpu::ALL),
    component("opencl", opencl::ALL),
    component("cuda", cuda::ALL),
];

const fn component(name: &'static str, rows: &'static [Row]) -> Section {
    Section { name, is_component: true, text: "", rows }
}

keys! {
    /// Host memory of a stack.
    pub mod memory = "memory" {
        LIMIT "limit": Size = "\"90%\"",
            "The most memory that arrays may take together. An operation that needs more raises an error.";
        CACHE "cache": Size = "\"25%\"", "Freed buffers kept for reuse.";
        HUGE_PAGES "huge_pages": bool = "true", "Ask the system for huge pages for large arrays.";
    }
}

keys! {
    /// When recorded operations run.
    pub mod recorder = "recorder" {
        MAX_INSTRUCTIONS "max_instructions": Size = "1000",
            "The most operations in one batch. Batches that do little and repeat nothing end after a quarter of them.";
        MAX_BYTES "max_bytes": Size = "\"50%\"",
            "A batch ends when the arrays that it makes, or keeps from being freed, exceed this many bytes together. A batch of fewer \
             than 256 operations counts only arrays that it frees. Where the key is not set, half of the memory limit is the \
             most.";
        SMALL_BYTES "small_bytes": Size = "\"256KiB\"",
            "The thread that asks for a batch runs it itself if the batch writes no more bytes than this; else it wakes other \
             threads.";
        IMMEDIATE_BYTES "immediate_bytes": Size = "65536",
            "An operation runs at its call, and is not recorded, if each of its arrays has at most this many bytes and none of them \
             waits for other operations; 0 for never. The CPU engine can do so; a device engine leaves it to a CPU engine behind it.";
        RECIPES "recipes": Recipes = "\"auto\"",
            "Results of a batch that no call has read when it ends are computed at their first reading: auto (large results, if an \
             equal batch before dropped them unread), off, always. Results are the same to the last bit.";
        PROGRAMS "programs": bool = "true",
            "A function of scalars with loops becomes one operation, which engines run element by element; if false, it becomes \
             operations on whole arrays under masks.";
        CASTS "casts": Casts = "\"numpy\"",
            "How floats beyond the range of an integer type convert to it: numpy (as NumPy on this processor: x86-64 and AArch64 wrap, \
             each by its own rule, others saturate), saturate (to the nearest number of the type; NaN gives 0).";
        REPRODUCIBLE "reproducible": bool = "false",
            "Results have the same bits on all processors, devices and numbers of ranks: folds have one tree, functions one \
             implementation, and conversions saturate. Operations without such a form are errors.";
        CHECK "check": String = "[]",
            "Find the operation that made a bad number: \"nan\" (a NaN of other numbers), \"inf\" (an infinity of finite numbers), \
             \"overflow\" (sums, differences and products of integers beyond their type), \"zero-division\" (integers divided by 0), \
             \"cancellation\" (sums and differences of floats that lose 40 bits, or 18 of single precision; \
             \"cancellation=20\": 20 bits of any type). Programs run fused. \"bounds\" (indices out of range) and \"nan-all\" \
             (also NaN and infinities that no result keeps) run operations one by one and are slow. BH_CHECK=nan,inf is the same.";
    }
}

keys! {
    /// The filter.
    pub mod filter = "filter" {
        PASSES "passes": String =
            "[\"simplify\", \"collect\", \"reduction-chain\", \"matmul\", \"common\", \"copies\", \"pieces\", \"programs\", \"dead-code\"]",
            "The rewriting passes in their order. Diagnostic passes can be put in between: \"print\", \"price\".";
        REASSOCIATE "reassociate": bool = "false",
            "Also rewrite floating-point expressions in ways that change their rounding.";
        PIECES_FROM "pieces_from": u64 = "32768",
            "The pass \"pieces\" cuts operations on this many elements or more. Results do not depend on it.";
    }
}

keys! {
    /// The fuser.
    pub mod fuser = "fuser" {
        ALGORITHM "algorithm": String = "\"greedy\"",
            "The algorithm that partitions batches: singleton, naive, greedy, unintrusive, or optimal (with a monotone cost model).";
        COST_MODEL "cost_model": String = "\"traffic\"",
            "The cost that partitions minimise: traffic, unique-views or max-contraction.";
        LEGALITY "legality": String = "\"full\"",
            "The rules for operations that share a kernel: full (all that engines can run), or paper (those of the original \
             publication).";
        RENAMES "renames": bool = "true",
            "Let a kernel write a fresh buffer of an array that it also reads at other places.";
        RENAME_PERCENT "rename_percent": u32 = "25",
            "The largest part of such a fresh buffer that may be copied from the old one, in percent of the kernel's writes.";
        MAX_BLOCK "max_block": u32 = "512", "The most operations in one kernel.";
        OPTIMAL_STEPS "optimal_steps": u64 = "100000", "Steps that the algorithm \"optimal\" may take for a batch.";
        PLANNING "planning": String = "\"auto\"",
            "The planning of batches: direct (none), linear (one pass in order), full (all), or auto, which starts with little for \
             small batches and plans more with each repetition. Results do not depend on it.";
        CACHE_BYTES "cache_bytes": usize = "67108864", "Bytes for the partitions of repeated batches; 0 for none.";
        CACHE_DIR "cache_dir": String = "\"\"", "Directory that keeps partitions from run to run; empty for none.";
        GRAPH_DIR "graph_dir": String = "\"\"",
            "Directory in which the partition of each new batch is drawn (dot, SVG) and explained; empty for none.";
    }
}

keys! {
    /// The cluster.
    pub mod cluster = "cluster" {
        TRANSPORT "transport": String = "\"auto\"",
            "How ranks talk to each other: auto (as the launcher says), openmpi, mpich, or in-process for simulated ranks.";
        RANKS "ranks": usize = "1",
            "Ranks in this process; they take turns if there are fewer chains below. If unset, each chain is a rank. Not allowed under a launcher.";
        WEIGHTS "weights": String = "[]",
            "Shares of the ranks, a number for each, as in [1, 1, 2, 2]: a rank with 0 gets nothing. Or 'even', or a file of bh tune. Empty for shares by the speeds that engines announce, or equal ones where they announce none.";
        SMALL_BYTES "small_bytes": u64 = "4096", "Arrays of no more bytes are not split.";
        PEER_COPIES "peer_copies": bool = "true",
            "Copy between CUDA devices of one process directly; otherwise through pinned host memory.";
        OVERLAP_ROWS "overlap_rows": u32 = "2",
            "The most rows of temporary arrays that both neighbours compute instead of sending them.";
        AHEAD_PERCENT "ahead_percent": u32 = "0",
            "In batches of several iterations of a loop, ranks get rows of neighbours for all iterations at once and compute with them, \
             as long as these are at most this percentage of their own; 0 to send rows for each iteration. Unset, 10 where all ranks \
             work in host memory, and 2 elsewhere.";
        GRID "grid": String = "\"auto\"",
            "Grids of ranks on which arrays are cut along several axes: auto (where that moves less), rows (never), or the ranks along each \
             axis, as in 4x4, for all arrays whose operations allow it.";
        OVERLAP_BYTES "overlap_bytes": u64 = "262144",
            "A rank that gets this many bytes or more computes meanwhile the elements that need none of them.";
        KEEP_BYTES "keep_bytes": u64 = "0",
            "Every rank gets the whole right factor of a product if it has at most this many bytes, and keeps it until it changes. \
             Unset, 67108864 on ranks of one host, and a tenth of their memory on devices and siblings.";
        SIDE_BY_SIDE "side_by_side": bool = "true",
            "While an operation that may fail runs, siblings go on with operations that do not depend on it, and operations for a \
             single sibling are shared out, so that several run at once; if false, the first sibling runs them one after the other.";
        PART_BYTES "part_bytes": u64 = "1073741824",
            "The most bytes that one call of MPI gets; longer messages are parted.";
        MEET_SECONDS "meet_seconds": u64 = "30",
            "The longest wait of ranks for each other before the program begins, in seconds; 0 to wait for ever.";
    }
}

keys! {
    /// The node.
    pub mod node = "node" {
        LEAK_REPORT "leak_report": bool = "false", "Name the arrays that the program has not freed at its end.";
    }
}

keys! {
    /// The CPU engine.
    pub mod ve_cpu = "ve-cpu" {
        THREADS "threads": String = "\"auto\"", "Threads that share a kernel: a number, or auto for all cores.";
        ISA "isa": String = "\"auto\"", "Instruction set: auto, avx512, avx2 or sse2 (x86-64), neon (AArch64), or portable.";
        AFFINITY "affinity": String = "\"none\"", "Processors that the threads are bound to: none, auto, or a list of numbers.";
        DOMAINS "domains": String = "\"auto\"",
            "The processors of each engine that `ve-cpu*` stands for: auto (one for each part of the memory), or lists, as in \
             0-7;8-15.";
        WINDOWS "windows" or "sweeps": String = "\"auto\"",
            "Run a kernel that reads shifted elements of another's output in lock-step with it, row by row, so that the rows between \
             them stay in the caches: auto or off. Results are the same to the last bit.";
        TIME_TILES "time_tiles": String = "\"auto\"",
            "Run chains of kernels, as of several iterations of a loop, tile by tile of the arrays, so that a tile stays in the \
             caches for all of them: auto (where that moves less), off, or the most kernels of a chain, wherever that is possible. Results are the \
             same to the last bit.";
        SUPERINSTRUCTIONS "superinstructions": String = "\"auto\"",
            "Let one instruction do several operations of a kernel, such as sums of many terms, scaled sums, sums of squares and folds \
             of products: auto or off. Results are the same to the last bit.";
        PLANNING "planning": String = "\"auto\"",
            "The planning before a batch runs: auto (a new batch with little work runs at once, operation by operation, and others are \
             planned as far as it pays), full (all), direct (only where an operation cannot run without). Results are the same to \
             the last bit.";
        PLAN_BYTES "plan_bytes": String = "\"auto\"",
            "The approximate bytes for plans of batches, so that a repeated batch runs at once: a size, or auto for 128MiB.";
        WINDOW_BYTES "window_bytes" or "sweep_bytes": String = "\"auto\"",
            "The most bytes of rows that a window holds: a size, or auto for three quarters of the second-level cache.";
        STREAM_BYTES "stream_bytes": String = "\"auto\"",
            "Outputs of this size or more bypass the caches: a size, none for never, or auto for 64MiB (of all ranks on a host \
             together).";
        JIT "jit": String = "\"auto\"",
            "Compile hot kernels to machine code, if the kernel compiler is installed: auto (in the background), on (before their \
             first run), off.";
        JIT_KERNELS "jit_kernels": usize = "1024", "The most compiled kernels that are kept in memory.";
        JIT_CACHE_DIR "jit_cache_dir": String = "\"auto\"",
            "Directory that keeps compiled kernels from run to run: auto ($XDG_CACHE_HOME/bh/kernels), a path, or empty for \
             none.";
        JIT_LIBRARY "jit_library": String = "\"\"",
            "The file of the kernel compiler; by default libbh_ve_cpu_jit.so beside the engine.";
        DIVIDER "divider": String = "\"auto\"",
            "The speed of the processor's division relative to its other operations, by which the compiler chooses between divisions \
             and products: auto (from a table of processors), slow (Intel's), fast (Zen 4), wide (Zen 5), or unknown (divisions only).";
        FAST_MATH "fast_math": bool = "false",
            "Let compiled kernels round differently from interpreted ones: fused multiply-add, reciprocals, other orders of sums.";
    }
}

keys! {
    /// The OpenCL engine.
    pub mod opencl = "opencl" {
        DEVICE "device": String = "\"auto\"",
            "The device: auto (the GPU with most memory, else an accelerator), a number, gpu, cpu or accelerator, or a part of a name.";
        MEMORY "memory": String = "\"auto\"", "Device memory that may be used: a size, or auto for nine tenths.";
        STAGING "staging": String = "\"auto\"",
            "Transfers of more bytes than this go in pieces of this size through pinned memory, which is faster: a size, 0 for never, \
             or auto.";
        PLACEMENT "placement": String = "\"auto\"",
            "Where little work runs: auto (on the next engine while its data is in host memory, single operations on little arrays at \
             their calls), device (on the device, as all that it can run), or a size and a number, as in 256KiB 4194304 (kernels on \
             data in host memory that touch fewer bytes and make fewer element operations run on the next engine, nothing at its call).";
        GROUP "group": usize = "256", "Items of a work-group, a power of two.";
        SPECIALISE "specialise": String = "\"auto\"",
            "Build kernels anew with their sizes in the text: auto (in the background, at the third call), on (at once), off.";
        FAST_MATH "fast_math": bool = "false",
            "Let kernels round differently: contraction of products and sums, reciprocals.";
        CACHE_DIR "cache_dir": String = "\"auto\"",
            "Directory that keeps built kernels from run to run: auto (one of the component in $XDG_CACHE_HOME/bh), a path, or empty for none.";
        DUMP "dump": String = "\"\"", "Directory for the texts of kernels; empty for none.";
        PROFILE "profile": bool = "false", "Measure the time of kernels on the device.";
        BUILDERS "builders": usize = "0",
            "Threads that build the kernels of a batch; 0 for one on each core, but 16 at most.";
        TOGETHER "together": usize = "8",
            "The most kernels in one program. Drivers build several kernels faster together than one after the other. With 1, each kernel \
             is a program of its own.";
        WHILE_BUILDING "while_building": String = "\"off\"",
            "May the next engine run new blocks, if it finishes before their kernels are built? auto or off.";
        PLACEMENTS "placements": String = "\"auto\"",
            "Optimisations of kernels: all, none, auto (all but vector), or a list of private (rows of stencils in registers), local \
             (tiles in local memory), padding (of tiles), unroll (several elements by each item), units (matrix units), library \
             (libraries of the device's maker), select (only those elements of a sorted line that are read), filled (no zeros for \
             arrays that kernels fill part by part), prepared (batches that repeat run from a list), graphs (their kernels start \
             together), vector (loads of neighbours). Results are the same, except that library sums in another order.";
        TUNE "tune": String = "\"auto\"",
            "Measure other ways of building hot kernels, and keep the fastest: auto (on GPUs, blocks with much data), on, or off.";
        TIME_TILES "time_tiles": String = "\"auto\"",
            "Run chains of kernels, as of several iterations of a loop, tile by tile of the arrays, so that values between them stay in \
             registers and local memory: auto (where that takes less time, after several repetitions), off, or the most kernels of a \
             chain, at once and wherever possible. Results are the same to the last bit.";
        METHODS "methods": bool = "true",
            "Transforms, sorts, searches, choices by masks and factorisations run on the device; else they go to the next engine.";
        FAULT_AFTER "fault_after": u64 = "0",
            "For tests: after this many kernels the device behaves as if it were lost; 0 for never.";
    }
}

/// The CUDA engine, whose keys mean what those of the OpenCL engine mean.
pub mod cuda {
    use super::{Row, opencl};

    const ROWS: [Row; opencl::ALL.len()] = {
        let mut rows = [opencl::ALL[0]; opencl::ALL.len()];
        let mut at = 0;
        while at < rows.len() {
            rows[at] = Row { section: "cuda", ..opencl::ALL[at] };
            at += 1;
        }
        rows
    };
    /// All of them.
    pub const ALL: &[Row] = &ROWS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_defaults_are_legal() {
        for section in SECTIONS {
            let mut names = HashSet::new();
            for row in section.rows {
                assert_eq!(row.section, section.name, "{}", row.name);
                assert!(row.names().all(|name| names.insert(name)), "{}.{} twice", section.name, row.name);
                assert!((row.is_legal)(&row.default_text()), "{}.{}: {}", section.name, row.name, row.default);
                assert!(row.text.ends_with(['.', '?']) || row.text.ends_with("off."), "{}.{}", section.name, row.name);
            }
        }
    }
}
