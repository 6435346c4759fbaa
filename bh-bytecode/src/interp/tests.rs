//! The interpreter on small programs with known results, and on every opcode and legal type.

use super::*;
use crate::batch::{Batch, Constant, NO_BASE};
use crate::complex::{Complex, c64};
use crate::dtype::{DType, TypeSet};
use crate::element::CastFrom;
use crate::opcode::{Kind, Signature};
use crate::validate::validate;
use crate::view::View;

/// A batch and its memory under construction.
#[derive(Default)]
struct Program {
    batch: Batch,
    memory: Memory,
}

impl Program {
    fn array<T: Element>(&mut self, shape: &[i64], values: &[T]) -> Operand {
        let view = View::contiguous(shape).unwrap();
        let id = self.batch.bases.len() as u64;
        let base = self.batch.push_base(Base::new(id, T::DTYPE, view.len()));
        let operand = Operand::view(self.batch.push_view(base, &view));
        self.memory.store(&self.batch.as_ref(), operand, values).unwrap();
        operand
    }

    fn view(&mut self, of: Operand, change: impl Fn(View) -> View) -> Operand {
        let (view, base) = (self.batch.as_ref().view(of.0), self.batch.views[of.0 as usize].base);
        Operand::view(self.batch.intern_view(base, &change(view)))
    }

    fn index(&mut self, start: i64, shape: &[i64], stride: &[i64]) -> Operand {
        Operand::view(self.batch.push_view(NO_BASE, &View::new(start, shape, stride).unwrap()))
    }

    fn constant<T: Element>(&mut self, value: T) -> Operand {
        Operand::constant(self.batch.push_constant(Constant::from_value(value)))
    }

    /// Appends an instruction, executes it, and returns its output.
    fn run<T: Element>(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) -> Vec<T> {
        self.try_run(opcode, param, operands).unwrap();
        self.memory.load(&self.batch.as_ref(), operands[0], 0).unwrap()
    }

    fn try_run(&mut self, opcode: Opcode, param: u16, operands: &[Operand]) -> Result<(), String> {
        let mut instr = Instr::new(opcode, operands);
        instr.param = param;
        let index = self.batch.push_instr(instr) as usize;
        validate(&self.batch.as_ref()).map_err(|error| error.to_string())?;
        let mut interpreter = Interpreter { memory: &mut self.memory, extensions: None, magnitudes: None };
        interpreter.execute_instr(&self.batch.as_ref(), index)
    }
}

#[test]
fn elementwise_broadcasts_casts_and_selects() {
    let mut p = Program::default();
    let x = p.array(&[2, 3], &[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let row = p.view(x, |view| view.index(0, 1).unwrap().broadcast_to(&[2, 3]).unwrap());
    let out = p.array(&[2, 3], &[0.0f64; 6]);
    assert_eq!(p.run::<f64>(Opcode::Subtract, 0, &[out, x, row]), [-3.0, -3.0, -3.0, 0.0, 0.0, 0.0]);
    let mask = p.array(&[2, 3], &[Truth::FALSE; 6]);
    let three = p.constant(3.0f64);
    assert_eq!(
        p.run::<Truth>(Opcode::Less, 0, &[mask, x, three]),
        [true, true, false, false, false, false].map(Truth::from)
    );
    assert_eq!(p.run::<f64>(Opcode::Where, 0, &[out, mask, three, x]), [3.0, 3.0, 3.0, 4.0, 5.0, 6.0]);
    let complex = p.array(&[2, 3], &[c64::default(); 6]);
    assert_eq!(p.run::<c64>(Opcode::Copy, 0, &[complex, mask])[1], Complex::new(1.0, 0.0));
    let transposed = p.view(x, |view| view.transpose(&[1, 0]).unwrap().reverse(0).unwrap());
    let tall = p.array(&[3, 2], &[0i32; 6]);
    assert_eq!(p.run::<i32>(Opcode::Copy, 0, &[tall, transposed]), [3, 6, 2, 5, 1, 4]);
    assert_eq!(p.run::<f64>(Opcode::Powi, 5, &[x, x])[1], 32.0);
}

#[test]
fn reductions_and_accumulates_follow_axes() {
    let mut p = Program::default();
    let x = p.array(&[2, 3], &[1i64, 2, 3, 4, 5, 6]);
    let (rows, columns, all) = (p.array(&[2], &[0i64; 2]), p.array(&[3], &[0i64; 3]), p.array(&[], &[0i64]));
    assert_eq!(p.run::<i64>(Opcode::AddReduce, 0b10, &[rows, x]), [6, 15]);
    assert_eq!(p.run::<i64>(Opcode::MultiplyReduce, 0b01, &[columns, x]), [4, 10, 18]);
    assert_eq!(p.run::<i64>(Opcode::MinimumReduce, 0b11, &[all, x]), [1]);
    assert_eq!(p.run::<i64>(Opcode::AddAccumulate, 0b01, &[x, x]), [1, 2, 3, 5, 7, 9]);
    assert_eq!(p.run::<i64>(Opcode::MultiplyAccumulate, 0b10, &[x, x]), [1, 2, 6, 5, 35, 315]);
    let (row, column) = (p.array(&[3], &[1i64, 10, 100]), p.array(&[2], &[1i64, -1]));
    let row = p.view(row, |view| view.broadcast_to(&[2, 3]).unwrap());
    assert_eq!(p.run::<i64>(Opcode::Contract, 0b10, &[rows, x, row]), [621, 31855]);
    let column = p.view(column, |view| view.new_axis(1).unwrap().broadcast_to(&[2, 3]).unwrap());
    assert_eq!(p.run::<i64>(Opcode::Contract, 0b11, &[all, column, row]), [0]);
    let (none, empty) = (p.array::<f32>(&[0, 2], &[]), p.array(&[2], &[7.0f32; 2]));
    assert_eq!(p.run::<f32>(Opcode::MaximumReduce, 0b01, &[empty, none]), [f32::NEG_INFINITY; 2]);
}

#[test]
fn magnitudes_are_noted() {
    let mut p = Program::default();
    let x = p.array(&[2, 2], &[1.0f32, -2.0, 3.0, -4.0]);
    let sums = p.array(&[2], &[0.0f32; 2]);
    p.run::<f32>(Opcode::AddReduce, 0b10, &[sums, x]);
    p.run::<f32>(Opcode::MultiplyAccumulate, 0b10, &[x, x]);
    let mut magnitudes = Magnitudes::new();
    p.memory.store(&p.batch.as_ref(), x, &[1.0f32, -2.0, 3.0, -4.0]).unwrap();
    Interpreter { memory: &mut p.memory, extensions: None, magnitudes: Some(&mut magnitudes) }
        .execute(&p.batch.as_ref())
        .unwrap();
    assert_eq!(magnitudes[&0], [3.0, 7.0]);
    assert_eq!(magnitudes[&1], [1.0, 2.0, 3.0, 12.0]);
}

#[test]
fn generators_use_their_index_view() {
    let mut p = Program::default();
    let index = p.index(10, &[2, 3], &[-1, 100]);
    let out = p.array(&[2, 3], &[0u8; 6]);
    assert_eq!(p.run::<u8>(Opcode::Range, 0, &[out, index]), [10, 110, 210, 9, 109, 209]);
    let key = p.constant(-1i64);
    let bits = p.array(&[2, 3], &[0u32; 6]);
    assert_eq!(p.run::<u32>(Opcode::Random, 0, &[bits, index, key])[3], u32::random(9, u32::MAX));
}

#[test]
fn gather_and_scatter() {
    let mut p = Program::default();
    let x = p.array(&[2, 2], &[10i16, 11, 12, 13]);
    let index = p.array(&[3], &[3i64, -4, 0]);
    let out = p.array(&[3], &[0i16; 3]);
    assert_eq!(p.run::<i16>(Opcode::Gather, 0, &[out, x, index]), [13, 10, 10]);
    let values = p.array(&[3], &[1i16, 2, 3]);
    assert_eq!(p.run::<i16>(Opcode::ScatterAdd, 0, &[x, values, index]), [15, 11, 12, 14]);
    assert_eq!(p.run::<i16>(Opcode::Scatter, 0, &[x, values, index]), [3, 11, 12, 1]);
    let mask = p.array(&[3], &[true, true, false].map(Truth::from));
    assert_eq!(p.run::<i16>(Opcode::CondScatter, 0, &[x, values, index, mask]), [2, 11, 12, 1]);
    let wild = p.array(&[3], &[1u64, 1, u64::MAX]);
    assert_eq!(p.run::<i16>(Opcode::CondScatter, 0, &[x, values, wild, mask]), [2, 2, 12, 1]);
    let error = p.try_run(Opcode::Gather, 0, &[out, x, wild]).unwrap_err();
    assert_eq!(error, "index 18446744073709551615 at position 2 is out of range for 4 elements");
    let error = execute(&p.batch.as_ref(), &mut p.memory).unwrap_err();
    assert_eq!(error.instr, 5);
}

#[test]
fn data_management_drops_data() {
    let mut p = Program::default();
    let x = p.array(&[2], &[1i8, 2]);
    p.try_run(Opcode::Sync, 0, &[x]).unwrap();
    assert_eq!(p.memory.ids(), [0]);
    p.try_run(Opcode::Free, 0, &[x]).unwrap();
    assert_eq!(p.memory.get(0), None);
}

/// A method that doubles f64 elements.
struct Doubling;

impl ExtensionMethods for Doubling {
    fn execute(&mut self, name: &str, batch: &BatchRef, instr: &Instr, memory: &mut Memory) -> Result<(), String> {
        assert_eq!(name, "double");
        let values: Vec<f64> = memory.load(batch, instr.operands[1], 0)?;
        memory.store(batch, instr.operands[0], &values.iter().map(|value| value * 2.0).collect::<Vec<_>>())
    }
}

#[test]
fn extension_methods_are_called() {
    let mut p = Program::default();
    let (out, x) = (p.array(&[2], &[0.0f64; 2]), p.array(&[2], &[1.0f64, 2.0]));
    let opcode = Opcode(Opcode::FIRST_EXTENSION);
    let (name, name_len) = p.batch.push_string("double");
    p.batch.extensions.push(crate::batch::Extension { opcode, reserved: 0, name, name_len });
    p.batch.push_instr(Instr::new(opcode, &[out, x]));
    let batch = p.batch.as_ref();
    let error = execute(&batch, &mut p.memory).unwrap_err().to_string();
    assert_eq!(error, "instruction 0: double: extension methods are not available here");
    let mut interpreter = Interpreter { memory: &mut p.memory, extensions: Some(&mut Doubling), magnitudes: None };
    interpreter.execute(&batch).unwrap();
    assert_eq!(p.memory.load::<f64>(&batch, out, 0).unwrap(), [2.0, 4.0]);
}

/// The output type of an elementwise opcode.
fn output_type(signature: Signature, input: DType) -> DType {
    match signature {
        Signature::Test => DType::Bool,
        Signature::Abs | Signature::Part => input.real_part(),
        _ => input,
    }
}

#[test]
fn every_opcode_runs_for_every_legal_type() {
    let mut runs = 0;
    for &opcode in Opcode::ALL {
        let info = opcode.info();
        for dtype in info.types.iter() {
            let mut p = Program::default();
            let ones = |p: &mut Program, dtype| crate::with_dtype!(dtype, T => p.array(&[3], &[T::cast_from(true); 3]));
            let mut operands = vec![];
            let param = match info.kind {
                Kind::Elementwise => {
                    operands.push(ones(&mut p, output_type(info.signature, dtype)));
                    for input in 0..info.inputs {
                        let mask = info.signature == Signature::Select && input == 0;
                        operands.push(ones(&mut p, if mask { DType::Bool } else { dtype }));
                    }
                    if opcode == Opcode::Powi { 3 } else { 0 }
                }
                Kind::Reduction => {
                    operands = vec![crate::with_dtype!(dtype, T => p.array(&[], &[T::default()])), ones(&mut p, dtype)];
                    if info.inputs > 1 {
                        let product = info.signature == Signature::Product;
                        operands.push(ones(&mut p, if product { dtype } else { DType::Bool }));
                    }
                    1
                }
                Kind::Accumulate => {
                    operands = vec![ones(&mut p, dtype); 2];
                    1
                }
                Kind::Generator => {
                    operands = vec![ones(&mut p, dtype), p.index(0, &[3], &[1])];
                    if info.inputs == 2 {
                        operands.push(p.constant(1u32));
                    }
                    0
                }
                Kind::Index => {
                    operands = vec![ones(&mut p, dtype), ones(&mut p, dtype), p.array(&[3], &[0u64, 1, 2])];
                    if info.inputs == 3 {
                        operands.push(p.array(&[3], &[true, false, true].map(Truth::from)));
                    }
                    0
                }
                Kind::System | Kind::Extension => continue,
            };
            p.try_run(opcode, param, &operands).unwrap_or_else(|error| panic!("{opcode} of {dtype}: {error}"));
            runs += 1;
        }
    }
    assert!(runs > 450, "{runs}");
    for (output, input) in TypeSet::ALL.iter().flat_map(|output| DType::ALL.map(|input| (output, input))) {
        let mut p = Program::default();
        let value = crate::with_dtype!(input, T => p.array(&[1], &[T::cast_from(true)]));
        let out = crate::with_dtype!(output, T => p.array(&[1], &[T::default()]));
        let legal = !input.is_complex() || output.is_complex();
        assert_eq!(p.try_run(Opcode::Copy, 0, &[out, value]).is_ok(), legal, "{output} ← {input}");
        let result = crate::with_dtype!(output, T => p.memory.load::<T>(&p.batch.as_ref(), out, 0).unwrap()[0] == T::cast_from(legal));
        assert!(result, "{output} ← {input}");
    }
}
