//! Stacks of little matrices: the systems of a block side by side, one in each lane of a vector.
//!
//! A block's matrices are copied into packs, each of which has one element of every system; the algorithms then run as for one matrix,
//! with pivots and rotations chosen by lane, and results are copied back. Bits of a system do not depend on those beside it.

mod eliminate;
mod orthogonal;
mod pack;
mod product;
mod rotate;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod work;

pub(crate) use product::products;
pub(crate) use work::{det, inverse, solve};

use crate::{Call, Parallel, Strided};
use bh_bytecode::{Complex, DType, Truth};
use bh_core::abi::status;
use bh_core::{Error, Result};
use pack::{Number, Pack, Pair};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use work::{Cholesky, Eigen, Qr, Singular, Solve};

/// The longest side of a little matrix.
pub(crate) const SIDE: usize = 16;
/// Elements of the largest one.
const ELEMENTS: usize = SIDE * SIDE;
/// The most systems side by side. Tasks begin at multiples of this number.
const LANES: usize = 16;
/// Blocks of a task, at least.
const LEAST: i64 = 4;
/// Tasks for each participant.
const TASKS: usize = 8;

/// Systems that follow each other, as many as fit side by side, or fewer at the end of a stack.
#[derive(Clone, Copy)]
struct Block {
    first: i64,
    count: usize,
}

/// Matrices of one operand: those behind the first axes of a view.
#[derive(Clone, Copy)]
struct Many<'a, 'b> {
    view: &'a Strided<'b>,
    axes: usize,
}

impl Many<'_, '_> {
    /// The extents of a matrix; a vector is a column, and a number both.
    fn sides(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.view.shape.get(self.axes + axis).map_or(1, |&extent| extent as usize))
    }

    /// The first element of a matrix.
    #[inline(always)]
    fn first(&self, number: i64) -> *mut u8 {
        let (mut rest, mut data) = (number, self.view.data());
        for (&extent, &stride) in self.view.shape[..self.axes].iter().zip(&self.view.stride).rev() {
            data = data.wrapping_offset((rest % extent) as isize * stride);
            rest /= extent;
        }
        data
    }

    /// Calls for the address of each element of a system's matrix, with its row and column.
    #[inline(always)]
    fn each(&self, number: i64, mut body: impl FnMut(*mut u8, usize, usize)) {
        let ([rows, columns], first) = (self.sides(), self.first(number));
        let [down, across] = [0, 1].map(|axis| self.view.stride.get(self.axes + axis).copied().unwrap_or(0));
        for row in 0..rows {
            let line = first.wrapping_offset(row as isize * down);
            (0..columns).for_each(|column| body(line.wrapping_offset(column as isize * across), row, column));
        }
    }

    /// Copies a block's matrices, elements `steps` apart along columns and rows. Lanes without a system get the last one.
    #[inline(always)]
    fn read<N: Number>(&self, block: Block, to: &mut [N], steps: [usize; 2]) {
        assert_eq!(size_of::<N::Element>(), self.view.dtype.size());
        assert!(self.reach(steps) < to.len());
        let to = to.as_mut_ptr();
        for lane in 0..N::LANES {
            self.each(block.first + lane.min(block.count - 1) as i64, |from, row, column| {
                // SAFETY: it is the address of an element of the view, whose type has this element's parts. The pack is one of `to`,
                // whose length was checked.
                unsafe {
                    let element = from.cast::<N::Element>().read_unaligned();
                    N::put(to.add(row * steps[0] + column * steps[1]), lane, element);
                }
            });
        }
    }

    /// The place of the last element of a matrix with these steps.
    fn reach(&self, steps: [usize; 2]) -> usize {
        let [rows, columns] = self.sides();
        (rows - 1) * steps[0] + (columns - 1) * steps[1]
    }

    /// Copies a block's matrices to an output, as [`Many::read`] copies those of an input.
    #[inline(always)]
    fn write<N: Number>(&self, block: Block, from: &[N], steps: [usize; 2]) {
        assert_eq!(size_of::<N::Element>(), self.view.dtype.size());
        assert!(self.reach(steps) < from.len() && block.count <= N::LANES);
        let from = from.as_ptr();
        for lane in 0..block.count {
            self.each(block.first + lane as i64, |to, row, column| {
                // SAFETY: it is the address of an element of an output, of this type, which is of a system of this block: no other block
                // has it. The pack is one of `from`, whose length was checked.
                unsafe {
                    let element = N::get(from.add(row * steps[0] + column * steps[1]), lane);
                    to.cast::<N::Element>().write_unaligned(element);
                }
            });
        }
    }

    /// Writes a truth value for each system of a block.
    fn write_truths(&self, block: Block, truths: &[bool; LANES]) {
        assert_eq!(self.view.dtype, DType::Bool);
        for (lane, &truth) in truths[..block.count].iter().enumerate() {
            let to = self.first(block.first + lane as i64).cast::<Truth>();
            // SAFETY: it is the address of a truth value of an output, which is of a system of this block.
            unsafe { to.write(Truth::from(truth)) };
        }
    }
}

/// The operands of a call for stacks.
struct Stack<'a, 'b> {
    call: &'a Call<'a, 'b>,
    axes: usize,
}

// SAFETY: participants read inputs, and write parts of outputs that belong to the systems of their blocks. Outputs overlap inputs only
// where they are the same elements, which are those of the same system.
unsafe impl Sync for Stack<'_, '_> {}

impl<'a, 'b> Stack<'a, 'b> {
    fn input(&self, number: usize) -> Many<'a, 'b> {
        Many { view: &self.call.inputs[number], axes: self.axes }
    }

    fn output(&self, number: usize) -> Many<'a, 'b> {
        Many { view: &self.call.outputs[number], axes: self.axes }
    }
}

/// The algorithm for the systems of a block.
trait Work {
    /// Multiplications and additions for a system, about.
    fn operations(stack: &Stack<'_, '_>) -> f64;

    /// Does it. The error is why a system has no result.
    fn block<N: Number>(
        stack: &Stack<'_, '_>,
        block: Block,
        room: &mut Room<N>,
    ) -> std::result::Result<(), &'static str>;
}

/// Room for some matrices of a block.
struct Room<N>([[N; ELEMENTS]; 3]);

/// The packs of a type of elements.
trait Kind {
    #[cfg(target_arch = "x86_64")]
    type Wide: Number;
    #[cfg(target_arch = "x86_64")]
    type Narrow: Number;
    type Plain: Number;
}

macro_rules! kinds {
    ($($real:ident: $wide:ident $narrow:ident),*) => {$(
        impl Kind for $real {
            #[cfg(target_arch = "x86_64")]
            type Wide = vectors::$wide;
            #[cfg(target_arch = "x86_64")]
            type Narrow = vectors::$narrow;
            type Plain = Pack<$real, 4>;
        }

        impl Kind for Complex<$real> {
            #[cfg(target_arch = "x86_64")]
            type Wide = Pair<vectors::$wide>;
            #[cfg(target_arch = "x86_64")]
            type Narrow = Pair<vectors::$narrow>;
            type Plain = Pair<Pack<$real, 4>>;
        }
    )*};
}
kinds!(f32: Wide32 Narrow32, f64: Wide64 Narrow64);

/// Runs a method for a stack of little matrices. `None` for those that it is not for.
pub(crate) fn run(call: &Call<'_, '_>, axes: usize, threads: &mut dyn Parallel) -> Option<Result<()>> {
    let is_little = |view: &Strided<'_>| view.shape[axes..].iter().all(|&extent| (1..=SIDE as i64).contains(&extent));
    if !call.outputs.iter().chain(call.inputs).all(is_little) {
        return None;
    }
    let stack = Stack { call, axes };
    Some(match call.name {
        "solve" => by_type::<Solve>(&stack, threads),
        "cholesky" => by_type::<Cholesky>(&stack, threads),
        "qr" => by_type::<Qr>(&stack, threads),
        "eigh" => by_type::<Eigen>(&stack, threads),
        "svd" => by_type::<Singular>(&stack, threads),
        _ => return None,
    })
}

fn by_type<W: Work>(stack: &Stack<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    match stack.call.inputs[0].dtype {
        DType::F32 => all::<W, f32>(stack, threads),
        DType::F64 => all::<W, f64>(stack, threads),
        DType::C64 => all::<W, Complex<f32>>(stack, threads),
        _ => all::<W, Complex<f64>>(stack, threads),
    }
}

/// All blocks, shared out. The error is that of the first block that has one.
fn all<W: Work, K: Kind>(stack: &Stack<'_, '_>, threads: &mut dyn Parallel) -> Result<()> {
    let count: i64 = stack.call.inputs[0].shape[..stack.axes].iter().product();
    let lanes = LANES as i64;
    let blocks = count.div_euclid(lanes) + i64::from(count % lanes > 0);
    let elements: i64 = stack.call.inputs.iter().map(|view| view.len() / count.max(1)).sum();
    let units = (W::operations(stack) * 5.0 / lanes as f64 + elements as f64 * 20.0) * count as f64;
    let participants = threads.participants(units as u64);
    let tasks = (participants * TASKS).min((blocks / LEAST) as usize).max(1);
    let level = Level::available().last().unwrap_or(Level::Plain);
    let failed: Mutex<Option<(i64, &'static str)>> = Mutex::new(None);
    threads.run(participants, tasks, &|numbers| {
        for task in numbers {
            let edge = |task: usize| blocks * task as i64 / tasks as i64;
            let range = (edge(task) * lanes).min(count)..(edge(task + 1) * lanes).min(count);
            let Err((first, text)) = at_level::<W, K>(level, stack, range) else { continue };
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.is_none_or(|(other, _)| first < other) {
                *failed = Some((first, text));
            }
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some((_, text)) => Err(Error::new(status::EXECUTION, format!("{}: {text}", stack.call.name))),
    }
}

/// The first system of a block that fails, and why.
type Outcome = std::result::Result<(), (i64, &'static str)>;

/// Instructions that algorithms are compiled for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Those that the processor has, the best last.
    fn available() -> impl Iterator<Item = Level> {
        #[cfg(target_arch = "x86_64")]
        {
            let has_narrow = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let has_wide = has_narrow
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            let all = [(Level::Plain, true), (Level::Avx2, has_narrow), (Level::Avx512, has_wide)];
            all.into_iter().filter(|(_, has)| *has).map(|(level, _)| level)
        }
        #[cfg(not(target_arch = "x86_64"))]
        [Level::Plain].into_iter()
    }
}

/// Some systems, by the instructions of an available level.
fn at_level<W: Work, K: Kind>(level: Level, stack: &Stack<'_, '_>, systems: Range<i64>) -> Outcome {
    match level {
        // SAFETY: the level is available.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { in_avx512::<W, K>(stack, systems) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { in_fma::<W, K>(stack, systems) },
        Level::Plain => blocks::<W, K::Plain>(stack, systems),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
fn in_avx512<W: Work, K: Kind>(stack: &Stack<'_, '_>, systems: Range<i64>) -> Outcome {
    blocks::<W, K::Wide>(stack, systems)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn in_fma<W: Work, K: Kind>(stack: &Stack<'_, '_>, systems: Range<i64>) -> Outcome {
    blocks::<W, K::Narrow>(stack, systems)
}

/// Some systems, block by block.
#[inline(always)]
fn blocks<W: Work, N: Number>(stack: &Stack<'_, '_>, systems: Range<i64>) -> Outcome {
    let mut room = Room([[N::ZERO; ELEMENTS]; 3]);
    for first in systems.clone().step_by(N::LANES) {
        let block = Block { first, count: (systems.end - first).min(N::LANES as i64) as usize };
        W::block(stack, block, &mut room).map_err(|text| (first, text))?;
    }
    Ok(())
}
