//! Copies that a tape leaves out change neither the values of a program nor its adjoints.

use super::oracle::{Numbers, bytes, is_smooth, width};
use super::programs::{adjoints, bases, cut, options, random, tape, types};
use crate::levels::Levels;
use crate::tape::Tape;
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::random::{Rng, program};
use bh_bytecode::{Base, Batch, DType, Instr, Kind, Opcode, Operand, View, base_flags};
use std::collections::{HashMap, HashSet};

/// Identities from here on are those of arrays of elements.
const ELEMENTS: u64 = 1 << 39;

/// The program with some inputs and outputs of its operations in arrays of their own, as a program has them that reads and assigns
/// elements. Returns these arrays, too.
fn with_copies(rng: &mut Rng, batch: &Batch) -> (Batch, HashSet<u64>) {
    let mut all = batch.clone();
    let mut own = HashSet::new();
    let mut copy = |all: &mut Batch, of: u32| {
        let view = all.as_ref().view(of);
        let from = all.bases[all.views[of as usize].base as usize];
        let id = ELEMENTS + own.len() as u64;
        own.insert(id);
        let base = all.push_base(Base { flags: base_flags::BORN, ..Base::new(id, from.dtype(), view.len()) });
        Operand::view(all.push_view(base, &View::contiguous(view.shape()).expect("the shape is legal")))
    };
    all.instrs.clear();
    for instr in &batch.instrs {
        let mut instr = *instr;
        let is_plain = matches!(instr.opcode.kind(), Kind::Elementwise | Kind::Reduction);
        for position in usize::from(instr.outputs)..usize::from(instr.count) {
            let view = instr.operands[position].as_view().filter(|&view| batch.views[view as usize].base != NO_BASE);
            if let Some(view) = view.filter(|_| is_plain && rng.chance(40)) {
                let to = copy(&mut all, view);
                all.push_instr(Instr::new(Opcode::Copy, &[to, Operand::view(view)]));
                instr.operands[position] = to;
            }
        }
        let target = instr.outputs().first().and_then(|operand| operand.as_view());
        match target.filter(|_| is_plain && rng.chance(40)) {
            Some(view) => {
                let written = copy(&mut all, view);
                let mut through = instr;
                through.operands[0] = written;
                all.push_instr(through);
                all.push_instr(Instr::new(Opcode::Copy, &[Operand::view(view), written]));
            }
            None => _ = all.push_instr(instr),
        }
    }
    (all, own)
}

#[test]
fn copies_of_elements_change_no_adjoint() {
    let (mut run, mut left_out) = (0, 0);
    for seed in 0..4_000 {
        let given = program(seed, &options(types(&[DType::F64, DType::Bool, DType::I64])));
        let mut rng = Rng::new(seed ^ 0x51ed);
        let (batch, own) = with_copies(&mut rng, &given.batch);
        let (batches, mut memory) = (cut(&mut rng, &batch), given.memory.clone());
        let all = bases(&batches);
        let mut numbers = |base: &Base, low, high| -> Numbers {
            random(&mut rng, base.len as usize * width(base.dtype()), low, high)
        };
        let is_argument = |base: &&Base| is_smooth(base.dtype()) && memory.get(base.id).is_some();
        let arguments: Vec<Base> = all.iter().filter(is_argument).copied().collect();
        arguments.iter().for_each(|base| _ = memory.insert(base.id, bytes(&numbers(base, 0.4, 1.9))));
        let seeded = all.iter().filter(|base| is_smooth(base.dtype()) && !own.contains(&base.id));
        let seeds: HashMap<u64, Numbers> = seeded.map(|base| (base.id, numbers(base, -1.0, 1.0))).collect();
        let mut found = Vec::new();
        for follows_copies in [true, false] {
            let mut new = Tape::new(arguments.iter().map(|base| base.id));
            new.follows_copies = follows_copies;
            let mut taped = tape(new, &batches, &memory, &own);
            let is_kept = |base: &&Base| !own.contains(&base.id);
            let values: Vec<_> = all.iter().filter(is_kept).map(|base| taped.value(base.id)).collect();
            let count = taped.operations();
            let seeds = seeds.iter().filter(|(base, _)| taped.value(**base).is_some());
            let seeds: HashMap<u64, Numbers> = seeds.map(|(&base, seed)| (base, seed.clone())).collect();
            let adjoints = adjoints(&mut taped, &seeds, &arguments, (i64::MAX, Levels::default()));
            let bits: Vec<Option<Vec<u64>>> = adjoints
                .iter()
                .map(|one| one.as_ref().map(|one| one.iter().map(|x| (x + 0.0).to_bits()).collect()))
                .collect();
            found.push((values, bits, count));
        }
        assert_eq!(found[0].0, found[1].0, "seed {seed}: values");
        assert_eq!(found[0].1, found[1].1, "seed {seed}: {}", bh_bytecode::text::print(&batch.as_ref()));
        (run, left_out) = (run + found[0].2, left_out + found[0].2 - found[1].2);
    }
    assert!(left_out * 10 > run, "of {run} operations {left_out} were left out");
}
