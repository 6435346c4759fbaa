//! Rules of what engines may be given: does a partition keep the order of what depends on each other, is each block one
//! kernel, are contracted bases used in their block alone, and do renames lose nothing?
//!
//! It shares no code with the algorithms that make partitions and compares views only through [`crate::view::overlap`], pair
//! by pair.

use crate::batch::{BatchRef, Block, NO_BASE, base_flags};
use crate::contraction::is_product;
use crate::opcode::{Kind, Opcode};
use crate::view::{Overlap, overlap};

/// One use of a view.
#[derive(Clone, Copy)]
struct Use {
    instr: usize,
    view: u32,
    base: u32,
    reads: bool,
    writes: bool,
    source: bool,
}

/// The events of each base, in the order of the instructions.
struct Bases {
    events: Vec<Vec<Event>>,
}

#[derive(Clone, Copy)]
enum Event {
    Use(Use),
    /// A data-management instruction.
    System(usize),
}

impl Event {
    fn instr(&self) -> usize {
        match self {
            Event::Use(used) => used.instr,
            Event::System(instr) => *instr,
        }
    }
}

/// Says what is wrong with the partition of a batch whose tables and ranges have been checked, if anything is. `order`: the
/// blocks that run, in their order.
pub(super) fn check(batch: &BatchRef<'_>, order: impl Iterator<Item = u32>) -> Result<(), String> {
    let bases = Bases::of(batch);
    check_order(batch, &bases, &places(batch, order))?;
    for (number, block) in batch.blocks.iter().enumerate() {
        check_block(batch, block, &bases).map_err(|text| format!("block {number}: {text}"))?;
    }
    Ok(())
}

impl Bases {
    fn of(batch: &BatchRef<'_>) -> Bases {
        let mut events = vec![Vec::new(); batch.bases.len()];
        for (index, instr) in batch.instrs.iter().enumerate() {
            if instr.opcode.is_system() {
                let base = instr.operands().first().and_then(|operand| base_of(batch, operand.as_view()?));
                if let Some(base) = base {
                    events[base as usize].push(Event::System(index));
                }
                continue;
            }
            for used in uses_of(batch, index) {
                events[used.base as usize].push(Event::Use(used));
            }
        }
        Bases { events }
    }
}

fn base_of(batch: &BatchRef<'_>, view: u32) -> Option<u32> {
    let base = batch.views[view as usize].base;
    (base != NO_BASE).then_some(base)
}

/// The uses of bases by an instruction that does work.
fn uses_of(batch: &BatchRef<'_>, index: usize) -> impl Iterator<Item = Use> {
    let instr = batch.instrs[index];
    (0..instr.count as usize).filter_map(move |at| {
        let view = instr.operands[at].as_view()?;
        let base = base_of(batch, view)?;
        let writes = at < instr.outputs as usize;
        let reads = !writes || instr.opcode.reads_output();
        Some(Use { instr: index, view, base, reads, writes, source: instr.opcode == Opcode::Gather && at == 1 })
    })
}

/// (turn of its block, place in it) of each instruction; `None` for those of blocks that do not run.
fn places(batch: &BatchRef<'_>, order: impl Iterator<Item = u32>) -> Vec<Option<(usize, usize)>> {
    let mut places = vec![None; batch.instrs.len()];
    for (turn, block) in order.enumerate() {
        for (at, &instr) in batch.block_instrs(&batch.blocks[block as usize]).iter().enumerate() {
            places[instr as usize] = Some((turn, at));
        }
    }
    places
}

fn related(batch: &BatchRef<'_>, a: u32, b: u32) -> Overlap {
    let empty = |view: u32| batch.views[view as usize].len == 0;
    if empty(a) || empty(b) { Overlap::Disjoint } else { overlap(&batch.view(a), &batch.view(b)) }
}

/// Checks the order of events: across blocks by the blocks' order, within a block by the instructions' order. Data is dropped
/// after the block's work, so nothing that follows a drop may be in its block.
fn check_order(batch: &BatchRef<'_>, bases: &Bases, places: &[Option<(usize, usize)>]) -> Result<(), String> {
    for events in &bases.events {
        // An event later than all before it, in a later block than all data management, needs no comparison.
        let (mut latest, mut latest_system) = (None, None);
        for (at, later) in events.iter().enumerate() {
            let Some(place) = places[later.instr()] else { continue };
            if latest.is_some_and(|latest| latest >= place) || latest_system.is_some_and(|turn| turn >= place.0) {
                for earlier in &events[..at] {
                    if let Some(before) = places[earlier.instr()]
                        && !in_order(batch, (earlier, before), (later, place))
                    {
                        let (first, second) = (earlier.instr(), later.instr());
                        return Err(format!("instructions {first} and {second} are in the wrong order"));
                    }
                }
            }
            latest = latest.max(Some(place));
            if matches!(later, Event::System(_)) {
                latest_system = latest_system.max(Some(place.0));
            }
        }
    }
    Ok(())
}

fn in_order(batch: &BatchRef<'_>, earlier: (&Event, (usize, usize)), later: (&Event, (usize, usize))) -> bool {
    match (earlier, later) {
        ((Event::Use(x), before), (Event::Use(y), after)) => {
            before < after
                || x.instr == y.instr
                || !(x.writes || y.writes)
                || related(batch, x.view, y.view) == Overlap::Disjoint
        }
        ((Event::Use(_), before), (Event::System(_), after)) => before.0 <= after.0,
        ((Event::System(system), before), (Event::Use(used), after)) => {
            let keeps = batch.instrs[*system].opcode == Opcode::Sync;
            before.0 < after.0 || keeps && !used.writes
        }
        ((Event::System(_), before), (Event::System(_), after)) => before <= after,
    }
}

/// Where an instruction stands in its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Box,
    Fold,
    Epilogue,
}

fn shape_of(batch: &BatchRef<'_>, instr: usize, operand: usize) -> Vec<i64> {
    batch.instrs[instr].operands[operand].as_view().map_or(Vec::new(), |view| batch.shape(view).to_vec())
}

fn check_block(batch: &BatchRef<'_>, block: &Block, bases: &Bases) -> Result<(), String> {
    let work: Vec<usize> = batch
        .block_instrs(block)
        .iter()
        .map(|&instr| instr as usize)
        .filter(|&instr| !batch.instrs[instr].opcode.is_system())
        .collect();
    let levels = check_boxes(batch, &work)?;
    let renamed: Vec<u32> = batch.renames(block).iter().map(|rename| rename.base).collect();
    let mut uses: Vec<(usize, Use)> =
        work.iter().enumerate().flat_map(|(at, &instr)| uses_of(batch, instr).map(move |used| (at, used))).collect();
    // Stable: of one base they stay in the block's order.
    uses.sort_by_key(|(_, used)| used.base);
    for same in uses.chunk_by(|(_, x), (_, y)| x.base == y.base) {
        let may_change = renamed.contains(&same[0].1.base);
        check_pairs(batch, same, &levels, may_change)?;
    }
    check_contraction(batch, block, &work, bases)?;
    check_renames(batch, block, &uses)
}

/// Checks the uses of one base in a block, each with the place of its instruction.
fn check_pairs(batch: &BatchRef<'_>, uses: &[(usize, Use)], levels: &[Level], renamed: bool) -> Result<(), String> {
    if uses.iter().all(|(_, used)| !used.writes) {
        return Ok(());
    }
    for (number, &(i, x)) in uses.iter().enumerate() {
        for &(j, y) in &uses[number..] {
            if !(x.writes || y.writes) {
                continue;
            }
            let text = || format!("instructions {} and {} clash on base {}", x.instr, y.instr, x.base);
            if levels.len() > 1 && (x.source || y.source) {
                return Err(format!("{}: a gather's source is written", text()));
            }
            if i == j {
                continue;
            }
            // A reduction reads over the box and writes over the kept axes.
            let over_box = |level: Level, writes: bool| level == Level::Box || (level == Level::Fold && !writes);
            let same_level = over_box(levels[i], x.writes) == over_box(levels[j], y.writes);
            match related(batch, x.view, y.view) {
                Overlap::Disjoint => {}
                Overlap::Identical if same_level => {}
                _ => {
                    let write_after_read = x.reads && !x.writes && y.writes && !y.reads;
                    if !write_after_read || !renamed {
                        return Err(format!("{} without a rename", text()));
                    }
                }
            }
        }
    }
    Ok(())
}

/// All instructions run over the box of the reductions' input, or after them over the kept axes.
fn check_boxes(batch: &BatchRef<'_>, work: &[usize]) -> Result<Vec<Level>, String> {
    let alone = |&instr: &usize| {
        let opcode = batch.instrs[instr].opcode;
        match opcode.kind() {
            Kind::Accumulate | Kind::Extension => true,
            Kind::Index => opcode != Opcode::Gather,
            _ => is_product(batch, &batch.instrs[instr]),
        }
    };
    if work.len() > 1 && work.iter().any(alone) {
        return Err("an instruction that must be alone is not".into());
    }
    let folds = |&instr: &usize| {
        let instr = &batch.instrs[instr];
        instr.opcode.kind() == Kind::Reduction && instr.param != 0
    };
    let Some(&first) = work.iter().find(|instr| folds(instr)) else {
        if work.iter().any(|&instr| shape_of(batch, instr, 0) != shape_of(batch, work[0], 0)) && !work.is_empty() {
            return Err("shapes differ".into());
        }
        return Ok(vec![Level::Box; work.len()]);
    };
    let (shape, kept) = (shape_of(batch, first, 1), shape_of(batch, first, 0));
    let mut after = false;
    let mut levels = Vec::new();
    for &instr in work {
        let opcode = batch.instrs[instr].opcode;
        if folds(&instr) {
            let (own, other) = (&batch.instrs[instr], &batch.instrs[first]);
            if shape_of(batch, instr, 1) != shape || own.param != other.param || own.order != other.order {
                return Err("reductions differ in shape, axes or order".into());
            }
            if after {
                return Err(format!("reduction {instr} comes after the epilogue"));
            }
            levels.push(Level::Fold);
        } else if shape_of(batch, instr, 0) == shape {
            levels.push(Level::Box);
        } else if shape_of(batch, instr, 0) == kept && opcode != Opcode::Gather {
            after = true;
            levels.push(Level::Epilogue);
        } else {
            return Err(format!("instruction {instr} fits neither the box nor the kept axes"));
        }
    }
    Ok(levels)
}

fn check_contraction(batch: &BatchRef<'_>, block: &Block, work: &[usize], bases: &Bases) -> Result<(), String> {
    for &base in batch.contracted(block) {
        let flags = batch.bases[base as usize].flags;
        let wanted = base_flags::BORN | base_flags::DIES;
        let forbidden = base_flags::PINNED | base_flags::LIVE_OUT;
        if flags & (wanted | forbidden) != wanted {
            return Err(format!("contracted base {base} has flags {flags:#b}"));
        }
        let mut written: Vec<u32> = Vec::new();
        for event in &bases.events[base as usize] {
            match *event {
                Event::Use(used) if !work.contains(&used.instr) => {
                    return Err(format!(
                        "contracted base {base} is used by instruction {} in another block",
                        used.instr
                    ));
                }
                Event::Use(used) => {
                    // Nothing but what the block wrote is there to be read.
                    let made = |&view: &u32| related(batch, view, used.view) == Overlap::Identical;
                    if used.reads && batch.views[used.view as usize].len > 0 && !written.iter().any(made) {
                        let instr = used.instr;
                        return Err(format!(
                            "contracted base {base} is read by instruction {instr} before it is written"
                        ));
                    }
                    if used.writes {
                        written.push(used.view);
                    }
                }
                Event::System(instr) if batch.instrs[instr].opcode == Opcode::Sync => {
                    return Err(format!("contracted base {base} must be synced"));
                }
                Event::System(_) => {}
            }
        }
    }
    Ok(())
}

fn check_renames(batch: &BatchRef<'_>, block: &Block, uses: &[(usize, Use)]) -> Result<(), String> {
    for (at, rename) in batch.renames(block).iter().enumerate() {
        let base = &batch.bases[rename.base as usize];
        if base.has(base_flags::PINNED) {
            return Err(format!("pinned base {} is renamed", rename.base));
        }
        if batch.contracted(block).contains(&rename.base) {
            return Err(format!("base {} is renamed and contracted", rename.base));
        }
        if batch.renames(block)[..at].iter().any(|other| other.base == rename.base) {
            return Err(format!("base {} is renamed twice", rename.base));
        }
        let writes = uses.iter().filter(|(_, used)| used.base == rename.base && used.writes);
        let mut views: Vec<u32> = Vec::new();
        for &(_, used) in writes {
            if !views.iter().any(|&view| related(batch, view, used.view) == Overlap::Identical) {
                views.push(used.view);
            }
        }
        let written = views.len();
        views.extend(batch.uncovered(rename));
        check_cover(batch, rename.base, &views, written)?;
        if rename.alias != NO_BASE {
            check_alias(batch, rename.alias, rename.base, rename.alias_view, uses)?;
        }
    }
    Ok(())
}

/// The most elements of a base that is looked at element by element. Views of larger ones must be provably apart.
const COUNTED: i64 = 1 << 20;

/// The elements of a view, in C order.
fn offsets(batch: &BatchRef<'_>, view: u32) -> Vec<i64> {
    let mut offsets = if batch.views[view as usize].len == 0 { vec![] } else { vec![batch.views[view as usize].start] };
    for (&extent, &stride) in batch.shape(view).iter().zip(batch.stride(view)) {
        offsets = offsets.iter().flat_map(|offset| (0..extent).map(move |i| offset + i * stride)).collect();
    }
    offsets
}

/// As [`check_cover`], exactly: what is written may be written several times.
fn check_elements(batch: &BatchRef<'_>, base: u32, views: &[u32], written: usize) -> Result<(), String> {
    let mut covered = vec![false; batch.bases[base as usize].len as usize];
    for (number, &view) in views.iter().enumerate() {
        if batch.views[view as usize].len > COUNTED {
            return Err(format!("view {view} of renamed base {base} has elements several times"));
        }
        for offset in offsets(batch, view) {
            if std::mem::replace(&mut covered[offset as usize], true) && number >= written {
                return Err(format!("element {offset} of base {base} is copied over a write"));
            }
        }
    }
    match covered.iter().position(|&covered| !covered) {
        Some(offset) => Err(format!("element {offset} of renamed base {base} is lost")),
        None => Ok(()),
    }
}

/// Each element of a renamed base is in exactly one of the views, of which the first are written and the others copied.
fn check_cover(batch: &BatchRef<'_>, base: u32, views: &[u32], written: usize) -> Result<(), String> {
    if batch.bases[base as usize].len <= COUNTED {
        return check_elements(batch, base, views, written);
    }
    let mut elements = 0i64;
    for (number, &view) in views.iter().enumerate() {
        if !batch.view(view).is_injective() {
            return Err(format!("a view of renamed base {base} has an element twice"));
        }
        // Written views that overlap each other were refused before, unless they are written alike.
        let others = &views[..number];
        if let Some(other) = others.iter().find(|&&other| related(batch, other, view) != Overlap::Disjoint) {
            let what = if number < written { "are both written" } else { "are written or copied over each other" };
            return Err(format!("views {other} and {view} of renamed base {base} {what}"));
        }
        elements = elements.saturating_add(batch.views[view as usize].len);
    }
    match batch.bases[base as usize].len - elements {
        0 => Ok(()),
        lost => Err(format!("{lost} elements of renamed base {base} are lost")),
    }
}

/// The alias is a base of the same type and size as the view, which the block copies from it.
fn check_alias(batch: &BatchRef<'_>, alias: u32, base: u32, view: u32, uses: &[(usize, Use)]) -> Result<(), String> {
    let (alias_base, named) = (&batch.bases[alias as usize], &batch.bases[base as usize]);
    let copies = |(_, used): &(usize, Use)| {
        let instr = &batch.instrs[used.instr];
        instr.opcode == Opcode::Copy
            && instr.operands[0].as_view() == Some(view)
            && instr.operands[1].as_view().is_some_and(|from| batch.views[from as usize].base == alias)
    };
    let fits = alias_base.dtype == named.dtype
        && alias_base.len == batch.views[view as usize].len
        && batch.views[view as usize].base == base
        && !alias_base.has(base_flags::PINNED)
        && uses.iter().any(copies);
    if fits { Ok(()) } else { Err(format!("base {alias} cannot be an alias of base {base}")) }
}
