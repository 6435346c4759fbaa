//! A program gives the same bits with every fuser, including reductions.

use bh_bytecode::interp::Memory;
use bh_bytecode::random::{self, Program, Rng};
use bh_bytecode::{AxisOrder, Base, Batch, Constant, DType, Instr, Kind, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};

/// Programs of each kind. `BH_TEST_PROGRAMS` sets their number.
const PROGRAMS: u64 = 2_000;

/// Algorithms with a cost model and a planning level each; the first one never fuses.
const FUSERS: &[(&str, &str, &str)] = &[
    ("singleton", "traffic", "full"),
    ("naive", "traffic", "full"),
    ("greedy", "traffic", "linear"),
    ("greedy", "traffic", "full"),
    ("greedy", "max-contraction", "full"),
    ("unintrusive", "unique-views", "full"),
    ("optimal", "unique-views", "full"),
];

fn load(index: usize) -> Stack {
    let (algorithm, cost, planning) = FUSERS[index];
    let text = format!(
        "[stacks]\n{algorithm}-{cost}-{planning} = [\"fuser\", \"node\", \"ve-cpu\"]\n[components.fuser]\nalgorithm = \"{algorithm}\"\n\
         cost_model = \"{cost}\"\nrename_percent = 400\noptimal_steps = 2000\nplanning = \"{planning}\"\n"
    );
    let config = stacks::from_text("fusers", &text).unwrap();
    Stack::load(&config, None).unwrap_or_else(|error| panic!("{algorithm}: {error}"))
}

fn programs() -> u64 {
    std::env::var("BH_TEST_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap())
}

/// Runs programs on a stack for each fuser and compares all bytes.
fn check(make: impl Fn(u64) -> Program) {
    let mut stacks: Vec<Stack> = (0..FUSERS.len()).map(load).collect();
    for seed in 0..programs() {
        let program = make(seed);
        let mut first: Option<Memory> = None;
        for stack in &mut stacks {
            let Ok(memory) = run::run(stack, &program) else { continue };
            let Some(first) = &first else {
                first = Some(memory);
                continue;
            };
            assert_eq!(first.ids(), memory.ids());
            for id in first.ids() {
                let base = program.batch.bases.iter().find(|base| base.id == id).unwrap();
                let (expected, actual) = (first.get(id).unwrap(), memory.get(id).unwrap());
                if let Some(at) = (0..expected.len()).find(|&at| expected[at] != actual[at]) {
                    panic!(
                        "seed {seed}, {}: element {} of {base:?} differs from what it is without fusion\n{}",
                        stack.name(),
                        at / base.dtype().size(),
                        bh_bytecode::text::print(&program.batch.as_ref())
                    );
                }
            }
        }
        assert!(first.is_some(), "seed {seed} runs nowhere");
    }
}

/// The levels of a repeated program: the tenth run is fully planned.
#[test]
fn results_stay_while_planning_rises() {
    let text =
        "[stacks]\nrising = [\"filter\", \"fuser\", \"node\", \"ve-cpu\"]\n[components.fuser]\nrename_percent = 400\n";
    let config = stacks::from_text("fusers", text).unwrap();
    let mut stack = Stack::load(&config, None).unwrap();
    for seed in 0..programs() / 10 {
        let program = if seed % 2 == 0 { reductions(seed) } else { random::program(seed, &random::Options::default()) };
        let Ok(first) = run::run(&mut stack, &program) else { continue };
        for time in 1..10 {
            let again = run::run(&mut stack, &program).unwrap();
            for id in first.ids() {
                assert_eq!(
                    first.get(id),
                    again.get(id),
                    "seed {seed}, run {time}: base {id} differs from its first time"
                );
            }
        }
    }
    let count = |name: &str| stack.stats().get(name).unwrap_or(0);
    let levels = ["fuser.planned_linear", "fuser.planned_full"].map(count);
    assert!(levels.iter().all(|&count| count > 0), "{levels:?}");
    stack.shutdown().unwrap();
}

#[test]
fn random_programs_give_the_same_bits() {
    check(|seed| {
        let wide = random::Options { max_rank: 4, max_instrs: 24, allow_specials: false, ..random::Options::default() };
        random::program(seed, &wide)
    });
}

#[test]
fn reductions_give_the_same_bits() {
    check(reductions);
}

/// Arrays of one shape under construction.
struct Builder {
    batch: Batch,
    memory: Memory,
    rng: Rng,
    dtype: DType,
    shape: Vec<i64>,
}

impl Builder {
    fn base(&mut self, len: i64, flags: u32) -> u32 {
        let id = self.batch.bases.len() as u64 + 1;
        self.batch.push_base(Base { flags, ..Base::new(id, self.dtype, len) })
    }

    /// A base of numbers with rounding sums.
    fn filled(&mut self, len: i64) -> u32 {
        let base = self.base(len, base_flags::LIVE_OUT);
        let size = self.dtype.size();
        let number = |rng: &mut Rng| rng.bits() as i64 as f64 * 2f64.powi(-63) + 1.0;
        let bytes = (0..len)
            .flat_map(|_| Constant::from_value(number(&mut self.rng)).cast(self.dtype).bytes().into_iter().take(size))
            .collect();
        self.memory.insert(self.batch.bases[base as usize].id, bytes);
        base
    }

    /// An array of the shape: contiguous, a view, transposed, reversed, or broadcast along an axis.
    fn input(&mut self) -> Operand {
        let rank = self.shape.len();
        let mut shape = self.shape.clone();
        let layout = self.rng.below(6);
        let axis = self.rng.below(rank);
        if layout == 1 {
            shape.iter_mut().for_each(|extent| *extent += 2);
        }
        if layout == 4 {
            shape[axis] = 1;
        }
        let mut axes: Vec<usize> = (0..rank).collect();
        if layout == 2 {
            (1..rank).for_each(|at| axes.swap(at, self.rng.below(at + 1)));
        }
        let stored: Vec<i64> = axes.iter().map(|&axis| shape[axis]).collect();
        let mut view = View::contiguous(&stored).unwrap();
        let base = self.filled(view.len());
        match layout {
            1 => (0..rank).for_each(|dim| view = view.slice(dim, Some(1), Some(-1), 1).unwrap()),
            2 => {
                let place: Vec<usize> = (0..rank).map(|axis| axes.iter().position(|&x| x == axis).unwrap()).collect();
                view = view.transpose(&place).unwrap();
            }
            3 => view = view.reverse(axis).unwrap(),
            4 => view = view.broadcast_to(&self.shape).unwrap(),
            _ => {}
        }
        Operand::view(self.batch.intern_view(base, &view))
    }

    fn output(&mut self, shape: &[i64], kept: bool) -> Operand {
        let view = View::contiguous(shape).unwrap();
        let flags = base_flags::BORN | if kept { base_flags::LIVE_OUT } else { base_flags::DIES };
        let base = self.base(view.len(), flags);
        Operand::view(self.batch.intern_view(base, &view))
    }

    fn run(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        if let (Kind::Reduction, Some(input)) = (opcode.kind(), operands.get(1).and_then(|input| input.as_view())) {
            // In the input's memory order, or in C order.
            let (tables, in_memory) = (self.batch.as_ref(), self.rng.chance(70));
            let order = AxisOrder::of_memory(tables.shape(input), &[tables.stride(input)]).backward_only(param);
            instr.order = if in_memory { order.code() } else { 0 };
        }
        self.batch.push_instr(instr);
    }
}

/// Elementwise work on arrays of all layouts, then reductions of its results and operands, and a final operation.
fn reductions(seed: u64) -> Program {
    let mut rng = Rng::new(seed);
    let most = if rng.chance(15) { 150_000 } else { 3_000 };
    let mut shape = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let extent = *rng.pick(&[1, 2, 3, 5, 7, 16, 31, 33, 47, 50, 64, 100, 257, 1000, 33_000, 70_000]).unwrap();
        if shape.iter().product::<i64>() * extent <= most {
            shape.push(extent);
        }
    }
    if shape.is_empty() {
        shape.push(1 + rng.below(3000) as i64);
    }
    let dtype = *rng.pick(&[DType::F64, DType::F32]).unwrap();
    let mut b = Builder { batch: Batch::default(), memory: Memory::new(), rng, dtype, shape: shape.clone() };
    let mut arrays: Vec<Operand> = (0..1 + b.rng.below(3)).map(|_| b.input()).collect();
    for _ in 0..b.rng.below(4) {
        let (x, y) = (*b.rng.pick(&arrays).unwrap(), *b.rng.pick(&arrays).unwrap());
        let opcode = *b.rng.pick(&[Opcode::Add, Opcode::Multiply, Opcode::Maximum]).unwrap();
        let kept = b.rng.chance(25);
        let out = b.output(&shape, kept);
        b.run(opcode, 0, &[out, x, y]);
        arrays.push(out);
    }
    let all = (1u16 << shape.len()) - 1;
    let mask = 1 + b.rng.below(all as usize) as u16;
    for _ in 0..1 + b.rng.below(3) {
        let mask = if b.rng.chance(75) { mask } else { all };
        let kept: Vec<i64> = (0..shape.len()).filter(|axis| mask >> axis & 1 == 0).map(|axis| shape[axis]).collect();
        let input = if b.rng.chance(60) { arrays[arrays.len() - 1] } else { *b.rng.pick(&arrays).unwrap() };
        let opcode = if b.rng.chance(80) { Opcode::AddReduce } else { Opcode::MultiplyReduce };
        let further = b.rng.chance(50);
        let sum = b.output(&kept, !further);
        b.run(opcode, mask, &[sum, input]);
        if further {
            let result = b.output(&kept, true);
            let factor = Constant::from_value(0.7f64).cast(dtype);
            let factor = Operand::constant(b.batch.push_constant(factor));
            b.run(Opcode::Multiply, 0, &[result, sum, factor]);
        }
    }
    let dying: Vec<u32> =
        (0..b.batch.bases.len() as u32).filter(|&base| b.batch.bases[base as usize].has(base_flags::DIES)).collect();
    for base in dying {
        let view = View::contiguous(&[b.batch.bases[base as usize].len]).unwrap();
        let view = b.batch.intern_view(base, &view);
        b.run(Opcode::Discard, 0, &[Operand::view(view)]);
    }
    Program { batch: b.batch, memory: b.memory }
}
