//! Random programs: what adjoints give for random directions is what tangents give.

use super::batch::{Builder, is_used, run};
use super::oracle::{Numbers, Oracle, Rough, bytes, is_smooth, numbers, width};
use crate::bounded::Bounded;
use crate::emit::{Place, contiguous};
use crate::history::Home;
use crate::levels::Levels;
use crate::reverse::{Progress, Sweep};
use crate::rewind::{Rewind, Stage, Values};
use crate::rules::{Rule, rule};
use crate::tape::Tape;
use bh_bytecode::interp::{Memory, execute};
use bh_bytecode::random::{Options, Rng, program};
use bh_bytecode::{Base, Batch, DType, Opcode, TypeSet, base_flags};
use bh_core::environment::variable;
use bh_recorder::Tape as _;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Identities from here on are those of copies, and from the second number on of adjoint programs.
const COPIES: u64 = 1 << 40;
const ADJOINTS: u64 = 1 << 41;

pub(super) fn random(rng: &mut Rng, count: usize, low: f64, high: f64) -> Numbers {
    (0..count).map(|_| low + (high - low) * (rng.bits() >> 11) as f64 / (1u64 << 53) as f64).collect()
}

/// Each base once, by its identity.
pub(super) fn bases(batches: &[Batch]) -> Vec<Base> {
    let mut all: Vec<Base> = batches.iter().flat_map(|batch| batch.bases.iter().copied()).collect();
    all.sort_by_key(|base| base.id);
    all.dedup_by_key(|base| base.id);
    all
}

/// Cuts a program into batches, without the management of data.
pub(super) fn cut(rng: &mut Rng, batch: &Batch) -> Vec<Batch> {
    let instrs: Vec<_> = batch.instrs.iter().filter(|instr| !instr.opcode.is_system()).copied().collect();
    let pieces = 1 + rng.below(3);
    let length = instrs.len().div_ceil(pieces).max(1);
    let part = |part: &[bh_bytecode::Instr]| Batch { instrs: part.to_vec(), ..batch.clone() };
    instrs.chunks(length).map(part).collect()
}

/// A taped program: the tape, the memory after it, and the batches as they ran.
pub(super) struct Taped {
    pub(super) tape: Tape,
    memory: Memory,
    batches: Vec<Batch>,
}

impl Taped {
    /// The data of a base, if it has got some.
    pub(super) fn value(&self, base: u64) -> Option<Vec<u8>> {
        self.memory.get(base).map(<[u8]>::to_vec)
    }

    /// How many operations ran.
    pub(super) fn operations(&self) -> usize {
        self.batches.iter().map(|batch| batch.instrs.len()).sum()
    }
}

/// `ending`: bases that the program drops behind their last use.
pub(super) fn tape(tape: Tape, batches: &[Batch], memory: &Memory, ending: &HashSet<u64>) -> Taped {
    let (mut tape, mut memory) = (tape, memory.clone());
    let batches = run(&mut tape, batches, &mut memory, COPIES, ending).expect("the program runs with its copies");
    Taped { tape, memory, batches }
}

/// The adjoints of the arguments, for adjoints of bases. `levels`: for how many states of a program that runs again there is room.
pub(super) fn adjoints(
    taped: &mut Taped,
    seeds: &HashMap<u64, Numbers>,
    arguments: &[Base],
    (least, levels): (i64, Levels),
) -> Vec<Option<Numbers>> {
    let mut known = bases(&taped.batches);
    let mut memory = Memory::new();
    taped.tape.end();
    let needed: Vec<u64> = taped.tape.arrays().map(|array| array.0).collect();
    // Drop the values that the tape does not keep.
    for base in known.iter().filter(|base| needed.contains(&base.id)) {
        if let Some(data) = taped.memory.get(base.id) {
            memory.insert(base.id, data.to_vec());
        }
    }
    let mut next = ADJOINTS;
    let mut seeded = Vec::new();
    for base in bases(&taped.batches).iter().filter(|base| seeds.contains_key(&base.id)) {
        next += 1;
        memory.insert(next, bytes(&seeds[&base.id]));
        known.push(Base::new(next, base.dtype(), base.len));
        seeded.push((*base, next));
    }
    let mut builder = Builder::new(next, &known);
    let find = |base: u64| needed.contains(&base).then_some(base);
    let mut sweep = Sweep::new(&mut builder, &taped.tape, &find, Progress::of(&taped.tape), least);
    for (base, seed) in seeded.into_iter().filter(|(base, _)| taped.tape.depends(base.id)) {
        let view = contiguous(&[base.len]).expect("a base has a view");
        sweep.add(&base, &view, Place { base: seed, dtype: base.dtype(), view }.into()).expect("the seed fits");
    }
    let bounded = taped.tape.bounded.as_ref().filter(|bounded| !bounded.keeps_all);
    let mut shared = Vec::new();
    if let Some(bounded) = bounded {
        let mut arrays = HashMap::new();
        let mut states = Vec::new();
        for (at, (unit, on_disk)) in bounded.history.places().into_iter().enumerate() {
            let mut values = Values::new();
            for (base, home) in bounded.history.state(at) {
                let Home::Array(array) = home else { unreachable!("nothing is written here") };
                let owner = arrays.entry(array).or_insert_with(|| Arc::new(array.0)).clone();
                // Arrays of the program may not be written.
                if array.0 == base.id && array.0 % 2 == 0 {
                    shared.push(owner.clone());
                }
                values.insert(base.id, (base, owner));
            }
            let is_own = levels.memory % 2 == 0;
            states.push(Stage { unit: unit as usize, values, stored: HashMap::new(), on_disk, is_own });
        }
        drop(arrays);
        let mut rewind = Rewind::new(states, bounded.history.units.len(), levels);
        let mut progress = sweep.progress;
        rewind.run_to(&mut builder, &bounded.history, &mut progress, least, 0).expect("all units run again");
        sweep = Sweep::new(&mut builder, &taped.tape, &find, progress, least);
    } else {
        sweep.run_to(0).expect("all operations have rules");
    }
    let found: Vec<Option<u64>> =
        arguments.iter().map(|base| sweep.take_result(base.id).expect("adjoints are added up")).collect();
    bh_bytecode::validate(&builder.batch.as_ref()).expect("the adjoint program is legal");
    execute(&builder.batch.as_ref(), &mut memory).expect("the adjoint program runs");
    found.iter().map(|id| id.map(|id| numbers(memory.get(id).expect("adjoints are written")))).collect()
}

/// Re Σ a·b over the elements, and the sum of the products' sizes.
fn paired(dtype: DType, a: &[f64], b: &[f64]) -> (f64, f64) {
    let width = width(dtype);
    let terms: Vec<f64> = match width {
        1 => a.iter().zip(b).map(|(a, b)| a * b).collect(),
        _ => a.chunks(2).zip(b.chunks(2)).flat_map(|(a, b)| [a[0] * b[0], -a[1] * b[1]]).collect(),
    };
    (terms.iter().sum(), terms.iter().map(|term| term.abs()).sum())
}

/// A program, and the bases that it begins with.
pub(super) struct Case {
    pub(super) batch: Batch,
    pub(super) memory: Memory,
}

/// Compares adjoints with tangents on one program, whose arguments get random numbers. Returns the opcodes that it differentiates
/// through, if it could be compared.
pub(super) fn check(seed: u64, given: &Case) -> Result<Vec<Opcode>, Rough> {
    let mut rng = Rng::new(seed ^ 0x9e37);
    let mut memory = given.memory.clone();
    let batches = cut(&mut rng, &given.batch);
    let all = bases(&batches);
    let arguments: Vec<Base> =
        all.iter().filter(|base| is_smooth(base.dtype()) && memory.get(base.id).is_some()).copied().collect();
    for base in &arguments {
        memory.insert(base.id, bytes(&random(&mut rng, base.len as usize * width(base.dtype()), 0.4, 1.9)));
    }
    let directions: HashMap<u64, Numbers> = arguments
        .iter()
        .map(|base| (base.id, random(&mut rng, base.len as usize * width(base.dtype()), -1.0, 1.0)))
        .collect();
    let mut oracle = Oracle { memory: memory.clone(), tangents: directions.clone() };
    for batch in &batches {
        oracle.run(batch, |_| false)?;
    }
    let new = || Tape::new(arguments.iter().map(|base| base.id));
    let mut taped = tape(new(), &batches, &memory, &HashSet::new());
    for base in &all {
        assert_eq!(taped.memory.get(base.id), oracle.memory.get(base.id), "seed {seed}: the program gives the same");
    }
    let seeds: HashMap<u64, Numbers> = all
        .iter()
        .filter(|base| is_smooth(base.dtype()) && oracle.memory.get(base.id).is_some() && rng.chance(80))
        .collect::<Vec<&Base>>()
        .into_iter()
        .map(|base| (base.id, random(&mut rng, base.len as usize * width(base.dtype()), -1.0, 1.0)))
        .collect();
    // Grids in one pass, or box by box.
    let least = if seed % 4 == 3 { i64::MAX } else { 0 };
    let found = adjoints(&mut taped, &seeds, &arguments, (least, Levels::default()));
    again(&mut rng, (&batches, &memory), &seeds, &arguments, (least, &found));
    let (mut forward, mut backward, mut size) = (0.0, 0.0, 1e-6);
    for base in &all {
        if let (Some(seed), Some(tangent)) = (seeds.get(&base.id), oracle.tangents.get(&base.id)) {
            let (sum, terms) = paired(base.dtype(), seed, tangent);
            (forward, size) = (forward + sum, size + terms);
        }
    }
    for (base, adjoint) in arguments.iter().zip(&found) {
        if let Some(adjoint) = adjoint {
            let (sum, terms) = paired(base.dtype(), adjoint, &directions[&base.id]);
            (backward, size) = (backward + sum, size + terms);
        }
    }
    // A derivative is infinite, as of a root at zero.
    if !size.is_finite() {
        return Err(Rough);
    }
    let close = (forward - backward).abs() <= 1e-5 * size;
    assert!(
        close,
        "seed {seed}: tangents give {forward}, adjoints {backward}, terms {size}\n{}",
        bh_bytecode::text::print(&given.batch.as_ref())
    );
    let steps = taped.tape.segments.iter().flat_map(|segment| {
        segment
            .steps
            .iter()
            .filter(|step| step.needs.flows != 0)
            .map(|step| segment.batch.instrs[step.at as usize].opcode)
    });
    Ok(steps.collect())
}

/// The same adjoints, to the bit, under a bound of memory.
fn again(
    rng: &mut Rng,
    (batches, memory): (&[Batch], &Memory),
    seeds: &HashMap<u64, Numbers>,
    arguments: &[Base],
    (least, expected): (i64, &[Option<Numbers>]),
) {
    let mut batches = batches.to_vec();
    let mut known: HashSet<u64> =
        bases(&batches).iter().map(|base| base.id).filter(|&base| memory.get(base).is_some()).collect();
    for batch in &mut batches {
        for at in 0..batch.bases.len() {
            if is_used(batch, batch.bases[at].id) && known.insert(batch.bases[at].id) {
                batch.bases[at].flags |= base_flags::BORN;
            }
        }
    }
    // Arrays that end have no adjoints of their own.
    let ending: HashSet<u64> =
        bases(&batches).iter().map(|base| base.id).filter(|base| !seeds.contains_key(base)).collect();
    let bounded = Bounded::new(rng.below(3000) as u64, None, Some(1 + rng.below(4)));
    let given = Tape::new(arguments.iter().map(|base| base.id)).within(bounded);
    let mut taped = tape(given, &batches, memory, &ending);
    let memory = taped.tape.bounded.as_ref().map_or(0, |bounded| bounded.levels().memory).max(1) + rng.below(3) as u64;
    let levels = Levels { memory, disk: rng.below(4) as u64, weight: rng.below(3) as u64 };
    let found = adjoints(&mut taped, seeds, arguments, (least, levels));
    let bits = |all: &[Option<Numbers>]| -> Vec<Option<Vec<u64>>> {
        // Which copies the tape has followed decides on the sign of a zero.
        all.iter().map(|one| one.as_ref().map(|one| one.iter().map(|x| (x + 0.0).to_bits()).collect())).collect()
    };
    assert_eq!(bits(&found), bits(expected), "{levels:?}: {}", bh_bytecode::text::print(&batches[0].as_ref()));
}

pub(super) fn options(types: TypeSet) -> Options {
    Options { max_instrs: 12, max_elements: 24, max_rank: 4, types, allow_specials: false, ..Options::default() }
}

pub(super) fn types(list: &[DType]) -> TypeSet {
    TypeSet(list.iter().fold(0, |set, &dtype| set | 1 << dtype as u16))
}

#[test]
fn adjoints_of_random_programs_pair_with_tangents() {
    let (mut compared, mut through) = (0, std::collections::BTreeMap::new());
    let sets =
        [types(&[DType::F64, DType::Bool, DType::I64]), types(&[DType::F64, DType::C128, DType::Bool, DType::I64])];
    let number = |name: &str, default: u64| variable(name).map_or(default, |text| text.parse().unwrap());
    let (first, count) = (number("BH_TEST_FIRST", 0), number("BH_TEST_PROGRAMS", 20_000));
    for seed in first..first + count {
        let given = program(seed, &options(sets[seed as usize % 2]));
        if let Ok(opcodes) = check(seed, &Case { batch: given.batch, memory: given.memory }) {
            compared += 1;
            opcodes.into_iter().for_each(|opcode| *through.entry(opcode).or_insert(0) += 1);
        }
    }
    assert!(compared > count / 2, "only {compared} of {count} programs could be compared");
    if count < 20_000 {
        return;
    }
    for &opcode in Opcode::ALL {
        let flows = !matches!(rule(opcode, None, DType::F64), Rule::Zero);
        assert_eq!(flows, through.contains_key(&opcode), "{opcode}: through {through:?}");
    }
}
