//! Texts of kernels: golden files in `tests/golden`, rewritten if `BH_WRITE_GOLDEN` is set.

use super::*;
use crate::language::tests::PLAIN;
use bh_bytecode::batch::base_flags;
use bh_bytecode::{Base, Batch, BatchRef, Constant, Instr, Opcode, Operand, View};
use bh_kernel::{Lowered, Runner, Special, lower};

const TARGET: Target = Target {
    language: &PLAIN,
    group: 256,
    largest: 1024,
    groups: 64,
    parameter_bytes: 1024,
    square: 8,
    local_bytes: 48 << 10,
    placements: Placements::USUAL,
};

/// The kernels of a block as text, without the functions that they call.
fn text_of(batch: &BatchRef<'_>, block: u32, specialised: bool) -> String {
    let variant = if specialised { Variant::Specialised } else { Variant::Parameterised };
    let mut codes: Vec<Code> = Vec::new();
    match lower(batch, block, Runner::Items) {
        Lowered::Nothing => {}
        Lowered::Loops(stages, _) => {
            let mut scratch = Vec::new();
            stages.iter().for_each(|part| codes.extend(stage(part, &TARGET, variant, &mut scratch)));
        }
        Lowered::Special(Special::Accumulate(instr)) => codes.extend(accumulate(batch, instr, &TARGET, variant).0),
        Lowered::Special(Special::Scatter(instr)) => {
            codes.extend(scatter(batch, instr, &TARGET, variant).map_or(Vec::new(), |found| found.0));
        }
        Lowered::Special(Special::Product(_) | Special::Extension(_)) => {}
    }
    let shown = |code: &Code| {
        format!("// {} groups of {}, numbers {:?}\n{}", code.groups, code.group, code.numbers, kernel_of(&code.text))
    };
    codes.iter().map(shown).collect::<Vec<_>>().join("\n")
}

struct Program(Batch);

impl Program {
    fn new() -> Program {
        Program(Batch::default())
    }

    fn base(&mut self, dtype: DType, len: i64) -> u32 {
        let id = self.0.bases.len() as u64 + 1;
        let flags = base_flags::LIVE_OUT;
        self.0.push_base(Base { flags, ..Base::new(id, dtype, len) })
    }

    fn view(&mut self, base: u32, start: i64, shape: &[i64], stride: &[i64]) -> Operand {
        Operand::view(self.0.push_view(base, &View::new(start, shape, stride).unwrap()))
    }

    fn array(&mut self, dtype: DType, shape: &[i64]) -> Operand {
        let base = self.base(dtype, shape.iter().product());
        Operand::view(self.0.push_view(base, &View::contiguous(shape).unwrap()))
    }

    fn push(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) {
        self.0.push_instr(Instr { param, ..Instr::new(opcode, operands) });
    }

    /// The texts of all instructions as one block, in both variants.
    fn text(&mut self, contracted: &[u32]) -> String {
        let all: Vec<u32> = (0..self.0.instrs.len() as u32).collect();
        self.0.push_block(&all, contracted);
        let batch = self.0.as_ref();
        format!("// Parameterised.\n{}\n// Specialised.\n{}", text_of(&batch, 0, false), text_of(&batch, 0, true))
    }
}

fn golden(name: &str, text: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.cl"));
    if bh_core::environment::variable("BH_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, expected, "{}", file.display());
}

#[test]
fn elementwise_with_a_constant() {
    let mut program = Program::new();
    let [a, b, c] = [0; 3].map(|_| program.array(DType::F64, &[1000, 1000]));
    let two = Operand::constant(program.0.push_constant(Constant::from_value(2.0)));
    program.push(Opcode::Multiply, 0, &[b, a, two]);
    program.push(Opcode::Sin, 0, &[c, b]);
    golden("elementwise", &program.text(&[]));
}

#[test]
fn a_stencil_of_shifted_views() {
    let mut program = Program::new();
    let (grid, out) = (program.base(DType::F32, 100), program.base(DType::F32, 64));
    let up = program.view(grid, 1, &[8, 8], &[10, 1]);
    let down = program.view(grid, 21, &[8, 8], &[10, 1]);
    let result = program.view(out, 0, &[8, 8], &[8, 1]);
    program.push(Opcode::Add, 0, &[result, up, down]);
    golden("stencil", &program.text(&[]));
}

#[test]
fn a_large_stencil_does_some_rows_at_once() {
    let mut program = Program::new();
    let (grid, out) = (program.base(DType::F64, 4098 * 4096), program.base(DType::F64, 4096 * 4096));
    let rows: Vec<Operand> = (0..3).map(|at| program.view(grid, at * 4096, &[4096, 4000], &[4096, 1])).collect();
    let result = program.view(out, 0, &[4096, 4000], &[4096, 1]);
    program.push(Opcode::Add, 0, &[result, rows[0], rows[1]]);
    program.push(Opcode::Add, 0, &[result, result, rows[2]]);
    golden("rows_at_once", &program.text(&[]));
}

#[test]
fn a_transpose_goes_through_local_memory_in_tiles() {
    let mut program = Program::new();
    let (grid, out) = (program.base(DType::F64, 100 * 70), program.array(DType::F64, &[100, 70]));
    let turned = program.view(grid, 0, &[100, 70], &[1, 100]);
    program.push(Opcode::Sqrt, 0, &[out, turned]);
    golden("transpose", &program.text(&[]));
}

#[test]
fn a_product_through_local_memory() {
    let mut program = Program::new();
    let [left, right, out] = [[1000, 50], [50, 1500], [1000, 1500]].map(|shape| program.array(DType::F64, &shape));
    let opcode = Opcode(Opcode::FIRST_EXTENSION);
    program.0.push_instr(Instr { outputs: 1, ..Instr::new(opcode, &[out, left, right]) });
    let usual = Target { placements: Placements::ALL.without(Placement::Units), ..TARGET };
    let units = Target { placements: Placements::ALL, ..usual };
    for (name, target) in [("product", usual), ("product_by_units", units)] {
        let codes = product(&program.0.as_ref(), 0, &target, Variant::Parameterised, None, &mut Vec::new());
        let [code] = codes.as_slice() else { panic!("{} kernels", codes.len()) };
        golden(name, &format!("// {} groups of {}\n{}", code.groups, code.group, kernel_of(&code.text)));
    }
}

#[test]
fn some_short_rows_are_folded_at_a_time() {
    let mut program = Program::new();
    let (rows, sums) = (program.array(DType::F64, &[1 << 18, 64]), program.array(DType::F64, &[1 << 18]));
    program.push(Opcode::AddReduce, 0b10, &[sums, rows]);
    golden("short_rows", &program.text(&[]));
}

#[test]
fn a_full_reduction_in_two_kernels() {
    let mut program = Program::new();
    let values = program.array(DType::F64, &[1 << 20]);
    let squares = program.array(DType::F64, &[1 << 20]);
    let sum = program.array(DType::F64, &[]);
    program.push(Opcode::Multiply, 0, &[squares, values, values]);
    program.push(Opcode::AddReduce, 1, &[sum, squares]);
    golden("sum_of_squares", &program.text(&[1]));
}

#[test]
fn what_all_results_read_comes_to_local_memory() {
    let mut program = Program::new();
    let (left, right) = (program.base(DType::F32, 8192), program.base(DType::F32, 4096));
    let left = program.view(left, 0, &[8192, 4096], &[1, 0]);
    let right = program.view(right, 0, &[8192, 4096], &[0, 1]);
    let (apart, sum) = (program.array(DType::F32, &[8192, 4096]), program.array(DType::F32, &[8192]));
    program.push(Opcode::Subtract, 0, &[apart, right, left]);
    program.push(Opcode::AddReduce, 2, &[sum, apart]);
    let text = program.text(&[2]);
    assert!(text.contains("BH_LOCAL bh_f32 t"), "{text}");
    golden("pairs", &text);
}

#[test]
fn reductions_of_rows_and_of_columns() {
    for (name, axes) in [("columns", 0b01), ("rows", 0b10)] {
        let mut program = Program::new();
        let values = program.array(DType::I32, &[4096, 4096]);
        let result = program.array(DType::I32, &[4096]);
        program.push(Opcode::MaximumReduce, axes, &[result, values]);
        golden(name, &program.text(&[]));
    }
}

#[test]
fn gathers_check_their_indices() {
    let mut program = Program::new();
    let source = program.array(DType::C64, &[30, 40]);
    let index = program.array(DType::I64, &[500]);
    let result = program.array(DType::C64, &[500]);
    program.push(Opcode::Gather, 0, &[result, source, index]);
    golden("gather", &program.text(&[]));
}

#[test]
fn scans_and_scatters() {
    let mut program = Program::new();
    let values = program.array(DType::F64, &[1 << 20]);
    let result = program.array(DType::F64, &[1 << 20]);
    program.push(Opcode::AddAccumulate, 1, &[result, values]);
    golden("accumulate", &program.text(&[]));
    for (name, opcode) in [("scatter", Opcode::Scatter), ("scatter_add", Opcode::ScatterAdd)] {
        let mut program = Program::new();
        let target = program.array(DType::F32, &[100]);
        let values = program.array(DType::F32, &[5000]);
        let index = program.array(DType::I64, &[5000]);
        program.push(opcode, 0, &[target, values, index]);
        golden(name, &program.text(&[]));
    }
}

#[test]
fn large_arrays_get_wide_indices_and_many_numbers_a_buffer() {
    let mut program = Program::new();
    let [a, b] = [0; 2].map(|_| program.array(DType::I8, &[3_000_000_000]));
    program.push(Opcode::Invert, 0, &[b, a]);
    let text = program.text(&[]);
    assert!(text.contains("const long n0") && text.contains("3000000000L"), "{text}");
    let mut program = Program::new();
    let (grid, out) = (program.base(DType::F64, 20_000), program.base(DType::F64, 6561));
    let sum = program.view(out, 0, &[9, 9, 9, 9], &[729, 81, 9, 1]);
    for at in 0..81 {
        let point = program.view(grid, at, &[9, 9, 9, 9], &[1331, 121, 11, 1]);
        program.push(Opcode::Add, 0, &[sum, sum, point]);
    }
    let target = Target { placements: Placements::ALL, ..TARGET };
    let all: Vec<u32> = (0..81).collect();
    program.0.push_block(&all, &[]);
    let Lowered::Loops(stages, _) = lower(&program.0.as_ref(), 0, Runner::Items) else { panic!("no loops") };
    let code = &stage(&stages[0], &target, Variant::Parameterised, &mut Vec::new())[0];
    assert!(code.packed && code.text.contains("numbers") && code.numbers.len() > 200, "{}", code.text);
    let code = &stage(&stages[0], &target, Variant::Specialised, &mut Vec::new())[0];
    assert!(!code.packed && code.numbers.is_empty());
}
