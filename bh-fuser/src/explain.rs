//! Why operations are in different kernels, in words.

use crate::deps::Dependencies;
use crate::entry::Entry;
use crate::facts::{Class, Facts};
use crate::legality::{Reason, Rules, Summary};
use crate::notes::Notes;
use crate::options::Options;
use crate::price::price;
use crate::relation::RelationCache;
use bh_bytecode::BatchRef;
use bh_kernel::{Survey, TileOptions, WindowOptions};
use std::fmt::Write;

/// The part of the largest array whose rows are taken to fit a cache.
const SHARE: i64 = 4;
/// The cache sizes and threads that tiles are assumed to have.
const SMALL_BYTES: i64 = 32 << 10;
const CACHE_BYTES: i64 = 768 << 10;
const THREADS: i64 = 8;

impl Reason {
    /// The reason in words; bases by the names of the text form.
    pub fn text(&self) -> String {
        match self {
            Reason::Alone => "one of them is of a kind that always runs alone".into(),
            Reason::Shape => "they run over different shapes".into(),
            Reason::Axes => "their reductions fold different axes".into(),
            Reason::Order => "their reductions take their elements in different orders in memory".into(),
            Reason::TooLarge => "together they pass the limit of instructions in a kernel".into(),
            Reason::Lifetime { base } => format!("b{base} is dropped or handed over between them"),
            Reason::Source { base } => format!("b{base} is gathered from and written"),
            Reason::ReadAfterWrite { base } => {
                format!("one reads b{base} through a view that overlaps what the other writes")
            }
            Reason::WriteAfterWrite { base } => format!("both write b{base} through overlapping views"),
            Reason::WriteAfterRead { base } => {
                format!("one overwrites what the other reads of b{base}, and a rename is not possible there")
            }
            Reason::Pinned { base } => {
                format!("one overwrites what the other reads of b{base}, and b{base} is pinned: it cannot be renamed")
            }
            Reason::TooMuchToCopy { base } => {
                format!(
                    "one overwrites what the other reads of b{base}, and a rename would have to copy too much of it"
                )
            }
            Reason::Result { base } => format!("the reduction into b{base} would come too late"),
            Reason::Between => "something between them depends on one and feeds the other".into(),
        }
    }
}

/// The blocks of a partition with all that the rules want to know of them.
struct Blocks {
    /// Indices in the batch.
    numbers: Vec<usize>,
    members: Vec<Vec<u32>>,
    described: Vec<(Summary, Vec<Entry>)>,
    /// The blocks that each block leads to, as sorted lists.
    successors: Vec<Vec<usize>>,
}

fn blocks(rules: &mut Rules<'_>, dependencies: &Dependencies) -> Blocks {
    let (batch, facts) = (rules.batch, rules.facts);
    let mut found = Blocks { numbers: vec![], members: vec![], described: vec![], successors: vec![] };
    let mut block_of = vec![usize::MAX; batch.instrs.len()];
    for (number, block) in batch.blocks.iter().enumerate() {
        let work = |op: &u32| facts.ops[*op as usize].class != Class::System;
        let mut members: Vec<u32> = batch.block_instrs(block).iter().copied().filter(work).collect();
        if members.is_empty() {
            continue;
        }
        // Reductions first: they decide what is box and what is epilogue.
        members.sort_by_key(|&op| (facts.ops[op as usize].class != Class::Reduction, op));
        members.iter().for_each(|&op| block_of[op as usize] = found.members.len());
        let mut described: Option<(Summary, Vec<Entry>)> = None;
        for &op in &members {
            let (own, summary) = (rules.entries_of(&[op]), rules.summary(op));
            described = Some(match described {
                None => (summary, own),
                Some((before, entries)) => {
                    let joined = rules.check((&before, &entries), (&summary, &own));
                    let mut all = Vec::new();
                    rules.join(&entries, &own, &mut all);
                    (joined.map_or(before, |join| join.summary), all)
                }
            });
        }
        found.described.extend(described);
        members.sort_unstable();
        found.numbers.push(number);
        found.members.push(members);
    }
    found.successors = vec![Vec::new(); found.members.len()];
    for &(earlier, later) in &dependencies.edges {
        let (from, to) = (block_of[earlier as usize], block_of[later as usize]);
        if from != to && !found.successors[from].contains(&to) {
            found.successors[from].push(to);
        }
    }
    found
}

impl Blocks {
    /// Does a path lead from `a` to `b` through a third block?
    fn path_between(&self, a: usize, b: usize) -> bool {
        let mut stack: Vec<usize> = self.successors[a].iter().copied().filter(|&next| next != b).collect();
        let mut seen = vec![false; self.members.len()];
        while let Some(block) = stack.pop() {
            if block == b {
                return true;
            }
            if !std::mem::replace(&mut seen[block], true) {
                stack.extend(&self.successors[block]);
            }
        }
        false
    }

    fn why_apart(&self, rules: &mut Rules<'_>, a: usize, b: usize) -> Result<i64, Reason> {
        let (x, y) = (&self.described[a], &self.described[b]);
        let join = rules.check((&x.0, &x.1), (&y.0, &y.1))?;
        if self.path_between(a, b) || self.path_between(b, a) { Err(Reason::Between) } else { Ok(join.saving) }
    }
}

/// Runs `f` with the rules and dependencies of a batch.
fn with_rules<T>(batch: &BatchRef<'_>, options: &Options, f: impl FnOnce(&mut Rules<'_>, &Dependencies) -> T) -> T {
    let (mut facts, mut relations) = (Facts::default(), RelationCache::default());
    let mut dependencies = Dependencies::default();
    facts.gather(batch);
    relations.reset(batch.views.len());
    dependencies.gather(batch, &facts, &mut relations);
    f(&mut Rules::new(batch, &facts, options, &mut relations), &dependencies)
}

/// Why two instructions may not share a kernel, looking at the two alone; what fusing them saves in bytes if they may.
pub fn why(batch: &BatchRef<'_>, options: &Options, a: u32, b: u32) -> Result<i64, Reason> {
    with_rules(batch, options, |rules, _| {
        let [(a, x), (b, y)] = [a, b].map(|op| (rules.summary(op), rules.entries_of(&[op])));
        rules.check((&a, &x), (&b, &y)).map(|join| join.saving)
    })
}

/// One instruction as text.
pub(crate) fn describe(batch: &BatchRef<'_>, instr: u32) -> String {
    let record = &batch.instrs[instr as usize];
    let name = batch.operation_name(record.opcode);
    let operand = |operand: &bh_bytecode::Operand| match operand.as_view() {
        Some(view) => match batch.base_of(view) {
            Some(base) => {
                let extents: Vec<String> = batch.shape(view).iter().map(i64::to_string).collect();
                format!("b{}:{}[{}]", batch.views[view as usize].base, base.dtype().name(), extents.join(","))
            }
            None => "index".into(),
        },
        None => "constant".into(),
    };
    let operands: Vec<String> = record.operands().iter().map(operand).collect();
    let place = batch.origin(record).map_or(String::new(), |(file, line)| format!("  ({file}:{line})"));
    format!("i{instr} {name} {}{place}", operands.join(", "))
}

/// A number with a noun.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The kernels of a partitioned batch, with what engines say of them, and for each pair of neighbours why they are two.
pub fn explain(batch: &BatchRef<'_>, options: &Options, notes: &Notes) -> String {
    let price = price(batch, options);
    let mut text = String::new();
    with_rules(batch, options, |rules, dependencies| {
        let blocks = blocks(rules, dependencies);
        let total = (price.total(), price.total_unfused());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} for {}; {} bytes instead of {} by cost model {}",
            counted(blocks.members.len(), "kernel"),
            counted(rules.facts.work, "operation"),
            total.0,
            total.1,
            options.cost.name
        );
        for (number, members) in blocks.members.iter().enumerate() {
            let _ = writeln!(text, "kernel {number}");
            for &instr in members {
                let _ = writeln!(text, "  {}", describe(batch, instr));
            }
            for note in notes.of(blocks.numbers[number]) {
                let _ = writeln!(text, "  {note}");
            }
            if number + 1 < blocks.members.len() {
                let reason = match blocks.why_apart(rules, number, number + 1) {
                    Err(reason) => reason.text(),
                    Ok(saving) if saving <= 0 => "fusing them would save nothing".into(),
                    Ok(saving) => format!("they may be fused, which would save {saving} bytes; the algorithm did not"),
                };
                let _ = writeln!(text, "  not fused with kernel {}: {reason}", number + 1);
            }
        }
    });
    text + &explain_windows(batch)
}

/// Which kernels the CPU engine may run in tiles, and which it runs in lock-step, if their arrays are large.
fn explain_windows(batch: &BatchRef<'_>) -> String {
    let largest = batch.bases.iter().map(|base| base.bytes()).max().unwrap_or(0);
    let survey = Survey::new(batch);
    let search = |bytes: i64| bh_kernel::windows(&survey, &WindowOptions { bytes, stand_ins: true }, &[]);
    let windows = search((largest as i64 / SHARE).max(1));
    // Kernels are numbered without those that compute nothing.
    let computes = |block: &u32| survey.computes(*block);
    let number = |block: u32| (0..block).filter(computes).count();
    let mut text = String::new();
    let bytes = (largest as i64 / SHARE).clamp(1, CACHE_BYTES);
    let options = TileOptions { bytes, small: SMALL_BYTES, threads: THREADS, kernels: None };
    let tilings = bh_kernel::tilings(&survey, &options, &search(options.bytes));
    // Writing to a string cannot fail.
    for (blocks, gain) in &tilings.declined {
        let (first, count) = (number(blocks.start), blocks.clone().filter(computes).count());
        if count < 2 {
            continue;
        }
        let _ = writeln!(
            text,
            "kernels {first} to {} do not run in tiles: they would take about {gain:.2} of the time",
            first + count - 1
        );
    }
    for tiling in &tilings.found {
        let [rows, columns, _] = tiling.tile;
        let first = number(tiling.blocks.start);
        let _ = writeln!(
            text,
            "kernels {first} to {} may run in tiles where arrays are large (time_tiles): {} loop nests, tiles of about {rows} rows and \
             {columns} columns, {} bytes moved instead of {}, about {:.2} of the time",
            first + tiling.kernels as usize - 1,
            tiling.nests.len(),
            tiling.bytes,
            tiling.plain_bytes,
            tiling.gain
        );
    }
    for window in &windows.found {
        let first = number(window.blocks.start);
        let _ = writeln!(
            text,
            "kernels {first} to {} run in lock-step where arrays are large: {} loop nests, {} arrays without \
             memory, {} bytes moved instead of {}",
            first + window.kernels as usize - 1,
            window.nests.len(),
            window.transient.len(),
            window.bytes,
            window.plain_bytes
        );
    }
    for &(block, reason) in &windows.apart {
        let first = number(block);
        let _ = writeln!(text, "kernels {first} and {} do not run in lock-step: {}", first + 1, reason.text());
    }
    text
}
