//! Folds with a fixed tree: items fold chunks as the lanes of the processor's engine do, and a second kernel joins the chunks' results
//! by halving.

use super::part::Part;
use super::rounds::Rounds;
use super::stage::reductions;
use super::unroll::{MOST_GROUPS, halving};
use super::{Code, KernelMemory, Target, Variant};
use bh_bytecode::DType;
use bh_bytecode::c::{expression, neutral, type_name};
use bh_kernel::schedule::{Grouping, LANES, ROW_SETS, SET_PAIRS};
use bh_kernel::{Dim, Stage};

/// A kernel under construction, and what it folds.
struct Folding<'a> {
    part: Part<'a>,
    tree: Grouping,
    /// Results, and elements that are folded into each.
    results: i64,
    folded: i64,
    /// Extents and names of the kept dimensions, and of the folded ones.
    kept: (Vec<i64>, Vec<String>),
    reduced: (Vec<i64>, Vec<String>),
}

/// The kernels of a stage; `scratch` gets the bytes of the chunks' results.
pub(super) fn fixed(stage: &Stage, target: &Target, variant: Variant, scratch: &mut Vec<usize>) -> Vec<Code> {
    let first = scratch.len() as u16;
    let folding = Folding::new(stage, target, variant, first);
    let (results, chunks) = (folding.results, folding.tree.chunks.count);
    if results == 0 {
        return Vec::new();
    }
    let keeps_lines = folding.tree.keeps_lines;
    let mut codes = vec![if keeps_lines { folding.lines(target) } else { folding.lanes(target) }];
    if chunks > 1 {
        let sizes =
            reductions(&stage.kernel).into_iter().map(|(_, slot, _)| stage.kernel.slots[slot as usize].dtype.size());
        scratch.extend(sizes.map(|size| (results * chunks) as usize * size));
        codes.push(Folding::new(stage, target, variant, first).halves(target));
    }
    codes
}

impl<'a> Folding<'a> {
    fn new(stage: &'a Stage, target: &Target, variant: Variant, scratch: u16) -> Folding<'a> {
        let part = Part::new(stage, variant, target, scratch);
        let (dims, parameters) = (&stage.kernel.dims, &stage.parameters);
        let of_role = |role: Dim| {
            let all = dims.iter().zip(&parameters.extents).zip(&part.names).filter(|((dim, _), _)| **dim == role);
            all.map(|((_, extent), name)| (*extent, name.clone())).unzip::<i64, String, Vec<i64>, Vec<String>>()
        };
        let (kept, reduced) = (of_role(Dim::Kept), of_role(Dim::Reduced));
        let tree = Grouping::fixed(&parameters.folded, dims.last() == Some(&Dim::Kept));
        let (results, folded) = (kept.0.iter().product(), reduced.0.iter().product());
        Folding { part, tree, results, folded, kept, reduced }
    }

    /// One item folds the lines of a chunk for a kept element.
    fn lines(mut self, target: &Target) -> Code {
        let units = self.results * self.tree.chunks.count;
        let index = self.part.writer.index();
        let [results, folded, each] = [self.results, self.folded, self.tree.chunks.elements].map(|it| self.number(it));
        let end = self.number(units);
        self.part.body += &format!("for ({index} unit = BH_INDEX; unit < {end}; unit += BH_INDICES) {{\n");
        self.part.body += &format!("const {index} chunk = unit / {results}, k = unit % {results};\n");
        self.kept_indices("k");
        self.begin();
        self.part.body += &format!("const {index} first = chunk * {each};\n");
        self.part.body += &format!("const {index} end = min(({index})(first + {each}), ({index}){folded});\n");
        self.elements("first", "end", 1);
        for number in 0..reductions(&self.part.stage.kernel).len() {
            self.put(number, "unit", &format!("a{number}"));
        }
        self.part.body += "}\n";
        let groups = (units as u64).div_ceil(target.group as u64).min(MOST_GROUPS) as usize;
        self.part.writer.finish(target, groups, target.group, &self.part.body)
    }

    /// As many items as there are lanes, or as a group has, fold a chunk.
    fn lanes(mut self, target: &Target) -> Code {
        let (items, chunks) = (target.group.min(LANES), self.tree.chunks.clone());
        let (units, together) = (self.results * chunks.count, target.group / items);
        let index = self.part.writer.index();
        let slots = &self.part.stage.kernel.slots;
        let types: Vec<DType> =
            reductions(&self.part.stage.kernel).iter().map(|(_, slot, _)| slots[*slot as usize].dtype).collect();
        // An item of one lane keeps what it has folded until its round.
        let keeps = items == LANES;
        let rounds = match keeps {
            true => Rounds::new(&types, together * LANES, target.local_bytes),
            false => Rounds::one(types.len()),
        };
        for number in rounds.owners() {
            self.part.body += &format!("BH_LOCAL {} l{number}[{}];\n", type_name(types[number]), together * LANES);
        }
        let (end, count, results) = (self.number(units), self.number(chunks.count), self.number(self.results));
        let [per_group, group, each] = [chunks.per_group, chunks.group, chunks.elements].map(|it| self.number(it));
        self.part.body += &format!("const int item = BH_ITEM, own = item % {items}, place = item / {items};\n");
        self.part.body += &format!("for ({index} tile = BH_GROUP; tile * {together} < {end}; tile += BH_GROUPS) {{\n");
        self.part.body += &format!("const {index} unit = tile * {together} + place;\n");
        self.part.body += &format!("const {index} chunk = unit % {count}, k = unit < {end} ? unit / {count} : 0;\n");
        self.kept_indices("k");
        self.part.body += &format!("const {index} number = chunk % {per_group} * {each};\n");
        self.part.body += &format!("const {index} begin = chunk / {per_group} * {group} + number;\n");
        self.part.body += &format!("const {index} end = begin + min(({index}){each}, ({index})({group} - number));\n");
        let local = |number: usize, lane: &str| format!("l{}[place * {LANES}{lane}]", rounds.place(number));
        let puts = |round: &[usize]| -> String {
            round.iter().map(|&number| format!("{} = a{number};\n", local(number, " + lane"))).collect()
        };
        if keeps {
            self.part.body += "const int lane = own;\n";
            self.begin();
        }
        self.part.body += &format!("if (unit < {end}) {{\n");
        if !keeps {
            self.part.body += &format!("for (int lane = own; lane < {LANES}; lane += {items}) {{\n");
            self.begin();
        }
        match self.tree.row {
            Some(row) => self.rows(row),
            None => self.elements("begin + lane", "end", LANES),
        }
        self.part.body += if keeps { "}\n" } else { "" };
        for round in &rounds.each {
            self.part.body += &puts(round);
            self.part.body += if keeps { "" } else { "}\n}\n" };
            self.part.body += "BH_BARRIER;\n";
            self.part.body += &halving(target, LANES);
            self.part.body += &format!("for (int lane = own; lane < s; lane += {items}) {{\n");
            for &number in round {
                let [to, from] = [" + lane", " + lane + s"].map(|lane| local(number, lane));
                self.part.body += &format!("{to} = {};\n", self.combined(number, &to, &from));
            }
            self.part.body += &format!("}}\nBH_BARRIER;\n}}\nif (own == 0 && unit < {end}) {{\n");
            for &number in round {
                self.put(number, &format!("chunk * {results} + k"), &local(number, ""));
            }
            self.part.body += "}\nBH_BARRIER;\n";
        }
        self.part.body += "}\n";
        let groups = (units as u64).div_ceil(together as u64).min(MOST_GROUPS) as usize;
        self.part.writer.finish(target, groups, target.group, &self.part.body)
    }

    /// Folds a lane of long rows, each into the next of some sets, and joins these.
    fn rows(&mut self, row: i64) {
        let index = self.part.writer.index();
        let folds = reductions(&self.part.stage.kernel);
        for (number, &(opcode, slot, _)) in folds.iter().enumerate() {
            let dtype = self.part.stage.kernel.slots[slot as usize].dtype;
            let identity = vec![neutral(opcode, dtype); ROW_SETS].join(", ");
            self.part.body += &format!("{} s{number}[{ROW_SETS}] = {{{identity}}};\n", type_name(dtype));
        }
        let row = self.number(row);
        self.part.body += "int set = 0;\n";
        self.part.body += &format!("for ({index} line = begin; line < end; line += {row}) {{\n");
        (0..folds.len()).for_each(|number| self.part.body += &format!("a{number} = s{number}[set];\n"));
        self.elements("line + lane", &format!("line + {row}"), LANES);
        (0..folds.len()).for_each(|number| self.part.body += &format!("s{number}[set] = a{number};\n"));
        self.part.body += &format!("set = (set + 1) % {ROW_SETS};\n}}\n");
        for number in 0..folds.len() {
            for (to, from) in SET_PAIRS {
                let [to, from] = [to, from].map(|set| format!("s{number}[{set}]"));
                self.part.body += &format!("{to} = {};\n", self.combined(number, &to, &from));
            }
            self.part.body += &format!("a{number} = s{number}[0];\n");
        }
    }

    /// A group joins the chunks' results of a kept element by halving.
    fn halves(mut self, target: &Target) -> Code {
        let index = self.part.writer.index();
        let (results, count) = (self.number(self.results), self.number(self.tree.chunks.count));
        self.part.body += &format!("for ({index} k = BH_GROUP; k < {results}; k += BH_GROUPS) {{\n");
        self.kept_indices("k");
        self.part.body +=
            &format!("for ({index} left = {count}, next; left > 1; left = next) {{\nnext = (left + 1) / 2;\n");
        self.part.body += &format!("for ({index} at = BH_ITEM; at < left - next; at += {}) {{\n", target.group);
        let folds = reductions(&self.part.stage.kernel).len();
        for number in 0..folds {
            let [to, from] = ["at", "next + at"].map(|chunk| self.chunk(number, &format!("({chunk}) * {results} + k")));
            self.part.body += &format!("{to} = {};\n", self.combined(number, &to, &from));
        }
        self.part.body += "}\nBH_BARRIER_ALL;\n}\nif (BH_ITEM == 0) {\n";
        for number in 0..folds {
            let slot = reductions(&self.part.stage.kernel)[number].1;
            let (to, from) = (self.part.element(slot, number), self.chunk(number, "k"));
            self.part.body += &format!("{to} = {from};\n");
        }
        self.part.body += "}\n}\n";
        let groups = (self.results as u64).min(MOST_GROUPS) as usize;
        self.part.writer.finish(target, groups, target.group, &self.part.body)
    }

    fn number(&mut self, value: i64) -> String {
        self.part.writer.numbers.text(value)
    }

    /// Declares the kept indices of the result with a number.
    fn kept_indices(&mut self, result: &str) {
        let index = self.part.writer.index();
        self.part.body += &self.part.writer.numbers.split(index, result, &self.kept.0, &self.kept.1);
    }

    /// Declares the accumulators, with the neutral elements.
    fn begin(&mut self) {
        for (number, (opcode, slot, _)) in reductions(&self.part.stage.kernel).into_iter().enumerate() {
            let dtype = self.part.stage.kernel.slots[slot as usize].dtype;
            self.part.body += &format!("{} a{number} = {};\n", type_name(dtype), neutral(opcode, dtype));
        }
    }

    /// The loop that folds elements, as numbered among all that are folded into a result.
    fn elements(&mut self, first: &str, end: &str, step: usize) {
        let index = self.part.writer.index();
        self.part.body += &format!("for ({index} r = {first}; r < {end}; r += {step}) {{\n");
        self.part.body += &self.part.writer.numbers.split(index, "r", &self.reduced.0, &self.reduced.1);
        self.part.steps();
        self.part.body += "}\n";
    }

    /// The combination of two values of a fold.
    fn combined(&self, number: usize, left: &str, right: &str) -> String {
        let (opcode, slot, _) = reductions(&self.part.stage.kernel)[number];
        let dtype = self.part.stage.kernel.slots[slot as usize].dtype;
        expression(opcode, 0, dtype, dtype, &[left, right])
    }

    /// A chunk's result in the memory between the kernels.
    fn chunk(&mut self, number: usize, at: &str) -> String {
        let slot = reductions(&self.part.stage.kernel)[number].1;
        let dtype = self.part.stage.kernel.slots[slot as usize].dtype;
        let buffer = self.part.writer.buffer(KernelMemory::Scratch(self.part.scratch + number as u16), dtype, true);
        format!("{buffer}[{at}]")
    }

    /// Writes a chunk's result: the whole one, if there is no other chunk.
    fn put(&mut self, number: usize, at: &str, value: &str) {
        let slot = reductions(&self.part.stage.kernel)[number].1;
        let to = match self.tree.chunks.count {
            1 => self.part.element(slot, number),
            _ => self.chunk(number, at),
        };
        self.part.body += &format!("{to} = {value};\n");
    }
}
