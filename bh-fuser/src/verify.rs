//! An independent judge of partitions: checks one against the rules of what engines may be given.
//!
//! It shares no code with the algorithms and compares views only through [`bh_bytecode::view::overlap`], pair by pair.

use bh_bytecode::batch::NO_BASE;
use bh_bytecode::view::{Overlap, overlap};
use bh_bytecode::{BatchRef, Block, Kind, Opcode, base_flags};

/// One use of a view.
struct Use {
    view: u32,
    base: u32,
    reads: bool,
    writes: bool,
    source: bool,
}

/// Says what is wrong with the partition of a validated batch, if anything is.
pub fn verify(batch: &BatchRef<'_>) -> Result<(), String> {
    let uses: Vec<Vec<Use>> = (0..batch.instrs.len()).map(|index| uses_of(batch, index)).collect();
    let places = places(batch)?;
    check_order(batch, &uses, &places)?;
    for (number, block) in batch.blocks.iter().enumerate() {
        check_block(batch, block, &uses).map_err(|text| format!("block {number}: {text}"))?;
    }
    Ok(())
}

fn uses_of(batch: &BatchRef<'_>, index: usize) -> Vec<Use> {
    let instr = &batch.instrs[index];
    let mut uses = Vec::new();
    if instr.opcode.is_system() {
        return uses;
    }
    for (at, operand) in instr.operands().iter().enumerate() {
        let Some(view) = operand.as_view() else { continue };
        let base = batch.views[view as usize].base;
        if base != NO_BASE {
            let writes = at < instr.outputs as usize;
            let reads = !writes || instr.opcode.reads_output();
            uses.push(Use { view, base, reads, writes, source: instr.opcode == Opcode::Gather && at == 1 });
        }
    }
    uses
}

/// The base of a data-management instruction.
fn system_base(batch: &BatchRef<'_>, index: usize) -> Option<u32> {
    let instr = &batch.instrs[index];
    let view = instr.operands().first()?.as_view()?;
    instr.opcode.is_system().then(|| batch.views[view as usize].base)
}

/// (block, place in it) of each instruction.
fn places(batch: &BatchRef<'_>) -> Result<Vec<(usize, usize)>, String> {
    let mut places = vec![None; batch.instrs.len()];
    for (number, block) in batch.blocks.iter().enumerate() {
        for (at, &instr) in batch.block_instrs(block).iter().enumerate() {
            let place = places.get_mut(instr as usize).ok_or(format!("instruction {instr} does not exist"))?;
            if place.replace((number, at)).is_some() {
                return Err(format!("instruction {instr} is in two places"));
            }
        }
    }
    let missing = places.iter().position(Option::is_none);
    missing.map_or(Ok(()), |instr| Err(format!("instruction {instr} is in no block")))?;
    Ok(places.into_iter().flatten().collect())
}

fn related(batch: &BatchRef<'_>, a: u32, b: u32) -> Overlap {
    let empty = |view: u32| batch.views[view as usize].len == 0;
    if empty(a) || empty(b) { Overlap::Disjoint } else { overlap(&batch.view(a), &batch.view(b)) }
}

fn conflicts(batch: &BatchRef<'_>, a: &[Use], b: &[Use]) -> bool {
    a.iter().any(|x| {
        b.iter()
            .any(|y| x.base == y.base && (x.writes || y.writes) && related(batch, x.view, y.view) != Overlap::Disjoint)
    })
}

/// Whatever must stay in order does: across blocks by their order, within a block by the instructions' order. Data is
/// dropped after the block's work, so nothing that follows a drop may be in its block.
fn check_order(batch: &BatchRef<'_>, uses: &[Vec<Use>], places: &[(usize, usize)]) -> Result<(), String> {
    for later in 0..uses.len() {
        for earlier in 0..later {
            let text = || format!("instructions {earlier} and {later} are in the wrong order");
            match (system_base(batch, earlier), system_base(batch, later)) {
                (None, None) => {
                    if conflicts(batch, &uses[earlier], &uses[later]) && places[earlier] >= places[later] {
                        return Err(text());
                    }
                }
                (None, Some(base)) => {
                    if uses[earlier].iter().any(|x| x.base == base) && places[earlier].0 > places[later].0 {
                        return Err(text());
                    }
                }
                (Some(base), None) => {
                    let keeps = batch.instrs[earlier].opcode == Opcode::Sync;
                    let touched = uses[later].iter().any(|x| x.base == base && (!keeps || x.writes));
                    if touched && places[earlier].0 >= places[later].0 {
                        return Err(text());
                    }
                }
                (Some(a), Some(b)) => {
                    if a == b && a != NO_BASE && places[earlier] > places[later] {
                        return Err(text());
                    }
                }
            }
        }
    }
    Ok(())
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

fn check_block(batch: &BatchRef<'_>, block: &Block, uses: &[Vec<Use>]) -> Result<(), String> {
    let work: Vec<usize> = batch
        .block_instrs(block)
        .iter()
        .map(|&instr| instr as usize)
        .filter(|&instr| !batch.instrs[instr].opcode.is_system())
        .collect();
    let levels = check_boxes(batch, &work)?;
    let renamed: Vec<u32> = batch.renames(block).iter().map(|rename| rename.base).collect();
    for (i, &first) in work.iter().enumerate() {
        for (j, &second) in work.iter().enumerate().skip(i) {
            for x in &uses[first] {
                for y in uses[second].iter().filter(|y| y.base == x.base && (x.writes || y.writes)) {
                    let text = || format!("instructions {first} and {second} clash on base {}", x.base);
                    if work.len() > 1 && (x.source || y.source) {
                        return Err(format!("{}: a gather's source is written", text()));
                    }
                    if i == j {
                        continue;
                    }
                    // A reduction reads over the box and writes over the kept axes.
                    let over_box =
                        |level: Level, writes: bool| level == Level::Box || (level == Level::Fold && !writes);
                    let same_level = over_box(levels[i], x.writes) == over_box(levels[j], y.writes);
                    match related(batch, x.view, y.view) {
                        Overlap::Disjoint => {}
                        Overlap::Identical if same_level => {}
                        _ => {
                            let write_after_read = x.reads && !x.writes && y.writes && !y.reads;
                            if !write_after_read || !renamed.contains(&x.base) {
                                return Err(format!("{} without a rename", text()));
                            }
                        }
                    }
                }
            }
        }
    }
    check_contraction(batch, block, &work, uses)?;
    check_renames(batch, block, &work, uses)
}

/// All instructions run over the box of the reductions' input, or after them over the kept axes.
fn check_boxes(batch: &BatchRef<'_>, work: &[usize]) -> Result<Vec<Level>, String> {
    let alone = |&instr: &usize| {
        let opcode = batch.instrs[instr].opcode;
        match opcode.kind() {
            Kind::Accumulate | Kind::Extension => true,
            Kind::Index => opcode != Opcode::Gather,
            _ => false,
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

fn check_contraction(batch: &BatchRef<'_>, block: &Block, work: &[usize], uses: &[Vec<Use>]) -> Result<(), String> {
    for &base in batch.contracted(block) {
        let flags = batch.bases[base as usize].flags;
        let wanted = base_flags::BORN | base_flags::DIES;
        let forbidden = base_flags::PINNED | base_flags::LIVE_OUT;
        if flags & (wanted | forbidden) != wanted {
            return Err(format!("contracted base {base} has flags {flags:#b}"));
        }
        for (instr, uses) in uses.iter().enumerate() {
            if uses.iter().any(|x| x.base == base) && !work.contains(&instr) {
                return Err(format!("contracted base {base} is used by instruction {instr} in another block"));
            }
        }
        let synced =
            |index: usize| system_base(batch, index) == Some(base) && batch.instrs[index].opcode == Opcode::Sync;
        if (0..batch.instrs.len()).any(synced) {
            return Err(format!("contracted base {base} must be synced"));
        }
    }
    Ok(())
}

fn offsets(batch: &BatchRef<'_>, view: u32) -> Vec<i64> {
    let mut offsets = if batch.views[view as usize].len == 0 { vec![] } else { vec![batch.views[view as usize].start] };
    for (&extent, &stride) in batch.shape(view).iter().zip(batch.stride(view)) {
        offsets = offsets.iter().flat_map(|offset| (0..extent).map(move |i| offset + i * stride)).collect();
    }
    offsets
}

fn check_renames(batch: &BatchRef<'_>, block: &Block, work: &[usize], uses: &[Vec<Use>]) -> Result<(), String> {
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
        let mut written = vec![false; base.len as usize];
        let writes = work.iter().flat_map(|&instr| &uses[instr]).filter(|x| x.base == rename.base && x.writes);
        for x in writes {
            offsets(batch, x.view).iter().for_each(|&offset| written[offset as usize] = true);
        }
        for &view in batch.uncovered(rename) {
            if batch.views[view as usize].base != rename.base {
                return Err(format!("an uncovered view is not of base {}", rename.base));
            }
            for offset in offsets(batch, view) {
                if std::mem::replace(&mut written[offset as usize], true) {
                    return Err(format!("element {offset} of base {} is copied over a write", rename.base));
                }
            }
        }
        if let Some(offset) = written.iter().position(|&written| !written) {
            return Err(format!("element {offset} of renamed base {} is lost", rename.base));
        }
        if rename.alias != NO_BASE {
            check_alias(batch, rename.alias, rename.base, rename.alias_view, work)?;
        }
    }
    Ok(())
}

/// The alias is a base of the same type and size as the view, which the block copies from it.
fn check_alias(batch: &BatchRef<'_>, alias: u32, base: u32, view: u32, work: &[usize]) -> Result<(), String> {
    let (alias_base, named) = (&batch.bases[alias as usize], &batch.bases[base as usize]);
    let copies = |&instr: &usize| {
        let instr = &batch.instrs[instr];
        instr.opcode == Opcode::Copy
            && instr.operands[0].as_view() == Some(view)
            && instr.operands[1].as_view().is_some_and(|from| batch.views[from as usize].base == alias)
    };
    let fits = alias_base.dtype == named.dtype
        && alias_base.len == batch.views[view as usize].len
        && batch.views[view as usize].base == base
        && !alias_base.has(base_flags::PINNED)
        && work.iter().any(copies);
    if fits { Ok(()) } else { Err(format!("base {alias} cannot be an alias of base {base}")) }
}
