//! From lowered kernels to texts of the dialect of [`crate::language`].

mod area;
mod choices;
mod columns;
mod common;
mod fixed;
mod fold;
mod item;
mod numbers;
mod paired;
mod part;
mod product;
mod rounds;
mod rows;
mod scan;
mod scatter;
mod short;
mod stage;
mod table;
#[cfg(test)]
mod tests;
mod tiles;
mod turned;
mod units;
mod unroll;
mod vector;
mod view;

pub(crate) use choices::choices;
pub(crate) use columns::columns;
pub(crate) use fold::Fold;
pub(crate) use numbers::Variant;
pub(crate) use paired::paired;
pub(crate) use product::{Matrix, Product, is_product, lowered, product};
pub(crate) use rows::rows;
pub(crate) use scan::accumulate;
pub(crate) use scatter::{Range, scatter, scatter_range};
pub(crate) use stage::{stage, together};
pub(crate) use tiles::{Into, tiles};
pub(crate) use unroll::{halving, loop_directive};
pub(crate) use view::is_wide;

use crate::driver::Task;
use crate::language::Language;
use bh_bytecode::DType;
use bh_kernel::{BufferRef, ConstantRef};
use std::cell::RefCell;
use std::collections::HashMap;

/// Where a kernel puts what it reads more than once, and other choices that change nothing but its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Rows of stencils that read each other's elements are done by one item, which keeps them in registers.
    Private,
    /// Tiles in local memory, for what is read across its order.
    Local,
    /// Rows of tiles are one element longer, so that neighbours in a column are in different banks.
    Padding,
    /// Some elements by each item, so that several reads are on their way.
    Unroll,
    /// Products of matrices of f64 by the matrix units of the device, if it has any.
    Units,
    /// Loads and stores of some neighbours at once.
    Vector,
    /// Work by the libraries of the device's maker, if there are any.
    Library,
    /// Of a sorted line of which only some elements are read, these alone.
    Select,
    /// No zeros for arrays that kernels fill part by part.
    Filled,
    /// Batches that repeat run from a list that is worked out once.
    Prepared,
    /// Such batches run as graphs of the driver.
    Graphs,
}

/// All placements with their names in the configuration.
pub(crate) const PLACEMENTS: [(Placement, &str); 11] = [
    (Placement::Private, "private"),
    (Placement::Local, "local"),
    (Placement::Padding, "padding"),
    (Placement::Unroll, "unroll"),
    (Placement::Units, "units"),
    (Placement::Library, "library"),
    (Placement::Vector, "vector"),
    (Placement::Select, "select"),
    (Placement::Filled, "filled"),
    (Placement::Prepared, "prepared"),
    (Placement::Graphs, "graphs"),
];

impl Placement {
    /// The name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        PLACEMENTS.iter().find(|(placement, _)| *placement == self).map_or("", |(_, name)| name)
    }
}

/// A set of placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placements(u32);

impl Placements {
    pub(crate) const ALL: Placements = Placements(u32::MAX);

    /// Those that are in use where nobody says otherwise: neighbouring items read whole lines of memory without vectors.
    pub(crate) const USUAL: Placements = Placements(!(1 << Placement::Vector as u32));

    /// The others and this one.
    pub(crate) fn with(self, placement: Placement) -> Placements {
        Placements(self.0 | 1 << placement as u32)
    }

    /// The set of these.
    pub(crate) fn of(chosen: impl IntoIterator<Item = Placement>) -> Placements {
        Placements(chosen.into_iter().fold(0, |set, placement| set | 1 << placement as u32))
    }

    /// The others than this one.
    pub(crate) fn without(self, placement: Placement) -> Placements {
        Placements(self.0 & !(1 << placement as u32))
    }

    pub(crate) fn has(self, placement: Placement) -> bool {
        self.0 >> placement as u32 & 1 != 0
    }
}

/// Results of a matrix product, down and across, that an item of a processor keeps in registers.
pub(crate) const PROCESSOR_SQUARE: usize = 2;

/// The properties of the device that the text may rely on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) language: &'static Language,
    /// Items of a work-group, and the most that the device allows.
    pub(crate) group: usize,
    pub(crate) largest: usize,
    /// Work-groups that fill the device, and some.
    pub(crate) groups: usize,
    /// Bytes of a kernel's arguments.
    pub(crate) parameter_bytes: usize,
    /// Results of a matrix product that an item keeps in registers, down and across, at most.
    pub(crate) square: usize,
    /// Bytes of local memory.
    pub(crate) local_bytes: usize,
    pub(crate) placements: Placements,
}

impl Target {
    /// Tiles of a matrix product in local memory at a time: two take turns, if there is room.
    pub(crate) fn halves(&self) -> usize {
        if self.local_bytes >= 48 << 10 { 2 } else { 1 }
    }

    /// Does a processor run the kernels, which has few registers, and whose compiler takes long over loops that are unrolled?
    pub(crate) fn is_processor(&self) -> bool {
        self.square <= PROCESSOR_SQUARE
    }

    /// Items that fill the device.
    pub(crate) fn items(&self) -> i64 {
        (self.group * self.groups) as i64
    }
}

/// Memory that a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KernelMemory {
    /// That of a slot.
    Of(BufferRef),
    /// Memory of the launches of one block, by number.
    Scratch(u16),
    /// Where failures are noted.
    Failures,
}

/// A kernel's text and what it is to be launched with. Arguments come in the order of these fields.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// The complete text; its one kernel is `bh`.
    pub(crate) text: String,
    /// Bytes at the end of the text without the types and functions that kernels of one program share; none if it shares none.
    pub(crate) own: usize,
    pub(crate) places: Vec<KernelMemory>,
    pub(crate) constants: Vec<(DType, ConstantRef)>,
    /// Sizes, strides and offsets, if they are not in the text.
    pub(crate) numbers: Vec<i64>,
    /// Are they 64 bits wide?
    pub(crate) wide: bool,
    /// Do they come in a buffer, because they are too many for arguments?
    pub(crate) packed: bool,
    /// Work-groups, and items of one.
    pub(crate) groups: usize,
    pub(crate) group: usize,
    /// The instructions (indices in the batch) that may note a failure, by the number that they note, and what that says.
    pub(crate) failing: Vec<(u32, Why)>,
    /// The task that a library does in the place of a kernel, and its memory; the text is empty then.
    pub(crate) library: Option<(Task, Vec<KernelMemory>)>,
}

impl Code {
    /// A task for a library, with its buffers.
    pub(crate) fn of_library(task: Task, places: Vec<KernelMemory>) -> Code {
        Code {
            text: String::new(),
            own: 0,
            places: Vec::new(),
            constants: Vec::new(),
            numbers: Vec::new(),
            wide: true,
            packed: false,
            groups: 0,
            group: 0,
            failing: Vec::new(),
            library: Some((task, places)),
        }
    }
}

/// The meaning of a noted number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is an index, signed or not, and out of range for this many elements.
    Index(bool, i64),
    /// A method fails for this reason, which may have the number in its text.
    Method(String),
}

/// The value of an element or a constant as the text reads it. Of truth values, every byte but 0 is true.
pub(crate) fn loaded(dtype: DType, text: String) -> String {
    if dtype == DType::Bool { format!("({text} != 0)") } else { text }
}

/// A parameter list and a body around which a kernel is made.
pub(crate) struct Writer {
    pub(crate) numbers: numbers::Numbers,
    places: Vec<(KernelMemory, DType, bool)>,
    constants: Vec<(DType, ConstantRef)>,
    pub(crate) failing: Vec<(u32, Why)>,
}

impl Writer {
    pub(crate) fn new(variant: Variant, wide: bool) -> Writer {
        let numbers = numbers::Numbers::new(variant, wide);
        Writer { numbers, places: Vec::new(), constants: Vec::new(), failing: Vec::new() }
    }

    /// The name of a buffer.
    pub(crate) fn buffer(&mut self, place: KernelMemory, dtype: DType, writes: bool) -> String {
        let at = self.places.iter().position(|(known, ..)| *known == place).unwrap_or_else(|| {
            self.places.push((place, dtype, false));
            self.places.len() - 1
        });
        self.places[at].2 |= writes;
        format!("b{at}")
    }

    /// The name of a constant.
    pub(crate) fn constant(&mut self, dtype: DType, constant: ConstantRef) -> String {
        let at = self.constants.iter().position(|known| *known == (dtype, constant)).unwrap_or_else(|| {
            self.constants.push((dtype, constant));
            self.constants.len() - 1
        });
        loaded(dtype, format!("c{at}"))
    }

    /// The number under which an instruction notes a failure.
    pub(crate) fn failure(&mut self, instr: u32, why: Why) -> usize {
        self.failing.push((instr, why));
        self.failing.len() - 1
    }

    /// The type of indices.
    pub(crate) fn index(&self) -> &'static str {
        if self.numbers.wide { "long" } else { "int" }
    }

    /// Makes the kernel.
    pub(crate) fn finish(self, target: &Target, groups: usize, group: usize, body: &str) -> Code {
        let index = self.index();
        let mut parameters: Vec<String> = Vec::new();
        for (at, (place, dtype, writes)) in self.places.iter().enumerate() {
            let name = bh_bytecode::c::type_name(*dtype);
            parameters.push(match place {
                KernelMemory::Failures => format!("BH_GLOBAL int *BH_RESTRICT b{at}"),
                _ if *writes => format!("BH_GLOBAL {name} *BH_RESTRICT b{at}"),
                _ => format!("BH_GLOBAL const {name} *BH_RESTRICT b{at}"),
            });
        }
        let bytes: usize = self.constants.iter().map(|(dtype, _)| dtype.size().max(4)).sum();
        for (at, (dtype, _)) in self.constants.iter().enumerate() {
            parameters.push(format!("const {} c{at}", bh_bytecode::c::type_name(*dtype)));
        }
        let numbers = self.numbers.values;
        let width = if self.numbers.wide { 8 } else { 4 };
        let packed = numbers.len() * width + bytes + 8 * self.places.len() > target.parameter_bytes * 3 / 4;
        let (mut named, mut unnamed) = (String::new(), String::new());
        if packed {
            parameters.push(format!("BH_GLOBAL const {index} *BH_RESTRICT numbers"));
            for at in 0..numbers.len() {
                named += &format!("#define n{at} numbers[{at}]\n");
                unnamed += &format!("#undef n{at}\n");
            }
        } else {
            parameters.extend((0..numbers.len()).map(|at| format!("const {index} n{at}")));
        }
        let parameters = parameters.join(", ");
        let text = format!("{named}BH_KERNEL({group})\nbh({parameters}) {{\n{body}}}\n{unnamed}");
        Code {
            own: text.len(),
            text: completed(target.language, &text),
            places: self.places.into_iter().map(|(place, ..)| place).collect(),
            constants: self.constants,
            numbers,
            wide: self.numbers.wide,
            packed,
            groups,
            group,
            failing: self.failing,
            library: None,
        }
    }
}

/// Texts that are remembered with what they call.
const TEXTS: usize = 64;

/// The complete text of a kernel. Kernels of a method differ in their numbers alone, so that the last texts are remembered.
fn completed(language: &Language, text: &str) -> String {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, String>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(whole) = known.get(text) {
            return whole.clone();
        }
        if known.len() >= TEXTS {
            known.clear();
        }
        let whole = language.complete(text);
        known.insert(text.into(), whole.clone());
        whole
    })
}

/// Integers of the note of one instruction: whether an index failed, and the two halves of the first that did.
pub(crate) const NOTE: usize = 3;

/// The statement that notes a number if a condition holds and nobody has noted one for this instruction.
pub(crate) fn note(condition: &str, notes: &str, failure: usize, index: &str) -> String {
    let at = failure * NOTE;
    format!(
        "if ({condition} && BH_COMPARE_EXCHANGE({notes} + {at}, 0, 1) == 0) {{ {notes}[{}] = (int)(ulong){index}; \
         {notes}[{}] = (int)((ulong){index} >> 32); }}\n",
        at + 1,
        at + 2
    )
}

/// The text of a program of several kernels, `bh0`, `bh1` and so on, of which each is what [`Code::own`] counts.
pub(crate) fn program<'a>(language: &Language, kernels: impl Iterator<Item = &'a str>) -> String {
    let renamed = |(at, kernel)| format!("#define bh bh{at}\n{kernel}#undef bh\n");
    language.complete(&kernels.enumerate().map(renamed).collect::<String>())
}

/// A text from its kernel on, without the functions that it calls.
pub(crate) fn kernel_of(text: &str) -> &str {
    text.find("\nBH_KERNEL(").map_or(text, |at| &text[at + 1..])
}
