//! Checks of the kernel partition: ranges, indices, and that each instruction is in exactly one block.

use crate::batch::{BatchRef, Block, NO_BASE, Rename};

/// Checks the partition, if there is one.
pub(super) fn check(batch: &BatchRef) -> Result<(), String> {
    if batch.blocks.is_empty() {
        return Ok(());
    }
    let mut placed = vec![false; batch.instrs.len()];
    let mut contracted = vec![false; batch.bases.len()];
    for (index, block) in batch.blocks.iter().enumerate() {
        check_block(batch, block, &mut placed, &mut contracted)
            .map_err(|message| format!("block {index}: {message}"))?;
    }
    match placed.iter().position(|&placed| !placed) {
        Some(instr) => Err(format!("instruction {instr} is in no block")),
        None => Ok(()),
    }
}

/// A range of a table, if it lies inside.
fn range<T>(table: &[T], first: u32, count: u32) -> Option<&[T]> {
    table.get(first as usize..)?.get(..count as usize)
}

fn check_block(batch: &BatchRef, block: &Block, placed: &mut [bool], contracted: &mut [bool]) -> Result<(), String> {
    let instrs =
        range(batch.block_instrs, block.instrs, block.instr_count).ok_or("its instructions lie outside the table")?;
    for &instr in instrs {
        match placed.get_mut(instr as usize) {
            None => return Err(format!("instruction {instr} does not exist; there are {}", batch.instrs.len())),
            Some(true) => return Err(format!("instruction {instr} is in two places")),
            Some(placed) => *placed = true,
        }
    }
    let bases = range(batch.contracted, block.contracted, block.contracted_count)
        .ok_or("its contracted bases lie outside the table")?;
    for &base in bases {
        match contracted.get_mut(base as usize) {
            None => return Err(format!("base {base} does not exist; there are {}", batch.bases.len())),
            Some(true) => return Err(format!("base {base} is contracted twice")),
            Some(contracted) => *contracted = true,
        }
    }
    let renames = range(batch.renames, block.renames, block.rename_count).ok_or("its renames lie outside the table")?;
    renames.iter().try_for_each(|rename| check_rename(batch, rename))
}

fn check_rename(batch: &BatchRef, rename: &Rename) -> Result<(), String> {
    let Some(base) = batch.bases.get(rename.base as usize) else {
        return Err(format!("the renamed base {} does not exist", rename.base));
    };
    let uncovered = range(batch.rename_views, rename.uncovered, rename.uncovered_count)
        .ok_or("the views that a rename leaves uncovered lie outside the table")?;
    let on_base = |view: u32| batch.views.get(view as usize).filter(|record| record.base == rename.base);
    if let Some(view) = uncovered.iter().find(|&&view| on_base(view).is_none()) {
        return Err(format!("uncovered view {view} is not one of the renamed base {}", rename.base));
    }
    if rename.alias == NO_BASE {
        return Ok(());
    }
    let (Some(alias), Some(view)) = (batch.bases.get(rename.alias as usize), on_base(rename.alias_view)) else {
        return Err(format!(
            "alias {} as view {} of base {} does not exist",
            rename.alias, rename.alias_view, rename.base
        ));
    };
    if rename.alias == rename.base || alias.dtype != base.dtype || alias.len != view.len {
        return Err(format!("base {} cannot be an alias of view {}", rename.alias, rename.alias_view));
    }
    Ok(())
}
