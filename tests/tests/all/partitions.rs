//! Partitions from outside: damaged ones are refused, and valid ones give the right values.

use bh_bytecode::random::{self, Program, Rng};
use bh_bytecode::{Batch, Block, Rename};
use bh_core::stack::Stack;
use bh_fuser::{Options, Partitioner};
use bh_tests::{run, stacks};

/// Damaged partitions. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 3_000;

fn load() -> Stack {
    let text = "[stacks]\nit = ['node', 've-cpu']\n";
    Stack::load(&stacks::from_text("partitions.toml", text).unwrap(), Some("it")).unwrap()
}

/// A block with its own lists.
#[derive(Clone, Default)]
struct Kernel {
    instrs: Vec<u32>,
    contracted: Vec<u32>,
    renames: Vec<(Rename, Vec<u32>)>,
}

fn kernels(batch: &Batch) -> Vec<Kernel> {
    let tables = batch.as_ref();
    let list = |block: &Block| Kernel {
        instrs: tables.block_instrs(block).to_vec(),
        contracted: tables.contracted(block).to_vec(),
        renames: tables.renames(block).iter().map(|rename| (*rename, tables.uncovered(rename).to_vec())).collect(),
    };
    tables.blocks.iter().map(list).collect()
}

fn store(batch: &mut Batch, kernels: &[Kernel]) {
    batch.blocks.clear();
    batch.block_instrs.clear();
    batch.contracted.clear();
    batch.renames.clear();
    batch.rename_views.clear();
    for kernel in kernels {
        batch.blocks.push(Block {
            instrs: batch.block_instrs.len() as u32,
            instr_count: kernel.instrs.len() as u32,
            contracted: batch.contracted.len() as u32,
            contracted_count: kernel.contracted.len() as u32,
            renames: batch.renames.len() as u32,
            rename_count: kernel.renames.len() as u32,
        });
        batch.block_instrs.extend(&kernel.instrs);
        batch.contracted.extend(&kernel.contracted);
        for (rename, uncovered) in &kernel.renames {
            let mut rename = *rename;
            (rename.uncovered, rename.uncovered_count) = (batch.rename_views.len() as u32, uncovered.len() as u32);
            batch.renames.push(rename);
            batch.rename_views.extend(uncovered);
        }
    }
}

fn pick<'a, T>(list: &'a mut [T], rng: &mut Rng) -> Option<&'a mut T> {
    let at = rng.below(list.len());
    list.get_mut(at)
}

/// Another plausible partition: blocks merged, split, swapped, instructions moved, contraction and renames changed.
fn rearrange(kernels: &mut Vec<Kernel>, bases: usize, views: usize, rng: &mut Rng) {
    let at = rng.below(kernels.len());
    match rng.below(10) {
        0 | 1 if at + 1 < kernels.len() => {
            let mut next = kernels.remove(at + 1);
            kernels[at].instrs.append(&mut next.instrs);
            kernels[at].contracted.append(&mut next.contracted);
            kernels[at].renames.append(&mut next.renames);
        }
        2 => {
            let place = rng.below(kernels[at].instrs.len() + 1);
            let instrs = kernels[at].instrs.split_off(place);
            kernels.insert(at + 1, Kernel { instrs, ..Kernel::default() });
        }
        3 => {
            let other = rng.below(kernels.len());
            kernels.swap(at, other);
        }
        4 => {
            let (i, j) = (rng.below(kernels[at].instrs.len()), rng.below(kernels[at].instrs.len()));
            if !kernels[at].instrs.is_empty() {
                kernels[at].instrs.swap(i, j);
            }
        }
        5 => {
            if let Some(instr) = kernels[at].instrs.pop() {
                let other = rng.below(kernels.len());
                let place = rng.below(kernels[other].instrs.len() + 1);
                kernels[other].instrs.insert(place, instr);
            }
        }
        6 => kernels[at].contracted.push(rng.below(bases) as u32),
        7 => {
            let other = rng.below(kernels.len());
            if let Some(base) = kernels[at].contracted.pop() {
                kernels[other].contracted.push(base);
            }
        }
        8 => {
            let base = rng.below(bases) as u32;
            let views = rng.below(views) as u32;
            match pick(&mut kernels[at].renames, rng) {
                Some((rename, _)) if rng.chance(30) => rename.base = base,
                Some((rename, _)) if rng.chance(30) => rename.alias = base,
                Some((rename, _)) if rng.chance(30) => rename.alias_view = views,
                Some((_, uncovered)) if rng.chance(50) => drop(uncovered.pop()),
                Some((_, uncovered)) => uncovered.push(views),
                None => {}
            }
        }
        _ => drop(kernels[at].renames.pop()),
    }
}

/// Replaces one word of a table.
fn damage(batch: &mut Batch, rng: &mut Rng) {
    let word = match rng.below(3) {
        0 => rng.bits() as u32,
        1 => u32::MAX - rng.below(3) as u32,
        _ => rng.below(12) as u32,
    };
    match rng.below(6) {
        0 => {
            if let Some(block) = pick(&mut batch.blocks, rng) {
                let fields = [
                    &mut block.instrs,
                    &mut block.instr_count,
                    &mut block.contracted,
                    &mut block.contracted_count,
                    &mut block.renames,
                    &mut block.rename_count,
                ];
                *fields.into_iter().nth(rng.below(6)).unwrap() = word;
            }
        }
        1 => pick(&mut batch.block_instrs, rng).into_iter().for_each(|place| *place = word),
        2 => pick(&mut batch.contracted, rng).into_iter().for_each(|place| *place = word),
        3 => pick(&mut batch.rename_views, rng).into_iter().for_each(|place| *place = word),
        4 => {
            if let Some(rename) = pick(&mut batch.renames, rng) {
                let fields = [
                    &mut rename.base,
                    &mut rename.alias,
                    &mut rename.alias_view,
                    &mut rename.uncovered,
                    &mut rename.uncovered_count,
                ];
                *fields.into_iter().nth(rng.below(5)).unwrap() = word;
            }
        }
        _ => pick(&mut batch.bases, rng).into_iter().for_each(|base| base.flags ^= 1 << rng.below(4)),
    }
}

fn changed(seed: u64, partitioner: &mut Partitioner) -> Program {
    let wide = random::Options { max_rank: 4, max_instrs: 16, max_elements: 60, ..random::Options::default() };
    let mut program = random::program(seed, &wide);
    let partition = partitioner.partition(&program.batch.as_ref(), &Options::default());
    program.batch = partition.apply(&program.batch.as_ref()).to_owned();
    let mut rng = Rng::new(seed);
    if seed.is_multiple_of(3) {
        damage(&mut program.batch, &mut rng);
        return program;
    }
    let mut list = kernels(&program.batch);
    for _ in 0..=rng.below(3) {
        if !list.is_empty() {
            rearrange(&mut list, program.batch.bases.len(), program.batch.views.len(), &mut rng);
        }
    }
    store(&mut program.batch, &list);
    program
}

#[test]
fn partitions_of_others_are_refused_or_right() {
    let programs = std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
    let mut partitioner = Partitioner::default();
    let mut stack = load();
    let (mut refused, mut right) = (0, 0);
    for seed in 0..programs {
        let program = changed(seed, &mut partitioner);
        if bh_bytecode::validate(&program.batch.as_ref()).is_err() {
            refused += 1;
            continue;
        }
        let text = || bh_bytecode::text::print(&program.batch.as_ref());
        // Bad indices are errors with every partition.
        let Ok(oracle) = program.oracle() else { continue };
        match run::run(&mut stack, &program) {
            Ok(memory) => {
                oracle.check(&program.batch, &memory).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", text()))
            }
            Err(error) => panic!("seed {seed}: {error}\n{}", text()),
        }
        right += 1;
    }
    println!("{programs} damaged partitions: {refused} refused, {right} right");
    assert!(refused > programs / 4 && right > programs / 4, "{refused} refused, {right} right");
}

#[test]
fn lists_of_blocks_are_checked() {
    let mut partitioner = Partitioner::default();
    let mut found = [0; 2];
    for seed in 0..300 {
        let program = changed(3 * seed + 1, &mut partitioner);
        let batch = program.batch.as_ref();
        if bh_bytecode::validate(&batch).is_err() || batch.blocks.len() < 2 {
            continue;
        }
        let count = batch.blocks.len() as u32;
        let list = |blocks: &[u32]| bh_bytecode::validate::block_list(&batch, blocks);
        list(&(0..count).collect::<Vec<u32>>()).unwrap();
        list(&[count - 1]).unwrap();
        assert!(list(&[count]).unwrap_err().contains("does not exist"));
        assert!(list(&[1, 0, 1]).unwrap_err().contains("twice"));
        found[usize::from(list(&[1, 0]).is_ok())] += 1;
    }
    assert!(found[0] > 5 && found[1] > 5, "{found:?}");
}
