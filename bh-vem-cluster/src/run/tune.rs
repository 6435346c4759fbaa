//! Measures the rates of the stacks below for each kind of work, all at the same time, as in programs.

use crate::plan::methods::PRODUCT;
use crate::plan::rates::{KINDS, MOST_TIMES_SLOWER, Rates, work};
use crate::run::local::dense;
use bh_bytecode::batch::Extension;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{HostMemory, status};
use bh_core::component::{Child, Host, Report};
use bh_core::error::{Error, Result};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The index of the kind "copies", the last one.
const COPIES: usize = KINDS.len() - 1;
/// Elements of an array, and rows of a matrix: smaller sizes for slow stacks; the largest exceeds caches.
const SIZES: [(i64, i64); 3] = [(1 << 14, 64), (1 << 20, 512), (16 << 20, 2048)];
/// Nanoseconds below which a stack is measured with the next larger size.
const FAST: [u128; 2] = [10_000_000, 60_000_000];
/// Additions per element when operations are measured.
const OPERATIONS: usize = 256;
/// Repetitions of three functions per element.
const FUNCTIONS: usize = 8;
/// Runs of a batch per stack, at least; each continues until all have finished theirs.
const RUNS: usize = 3;
/// The time of runs per stack, at least; each continues until all have finished theirs.
const SHORTEST: Duration = Duration::from_millis(10);
/// Rounds of measurements, alone and together; medians are robust against other programs.
const ROUNDS: usize = 5;
/// The least speed of all stacks together, relative to the fastest alone.
const LEAST: f64 = 0.97;
/// Runs after which engines have built kernels for repeated sizes.
const BUILDING: usize = 4;

/// The arrays of one stack.
struct Arrays {
    values: Base,
    matrices: [Base; 2],
    side: i64,
}

impl Arrays {
    fn new(host: &Host, (elements, side): (i64, i64)) -> Arrays {
        let base = |len: i64, row: i64| Base { row_hint: row, ..Base::new(host.new_base_id(), DType::F64, len) };
        Arrays { values: base(elements, 1), matrices: [(); 2].map(|()| base(side * side, side)), side }
    }

    fn all(&self) -> [Base; 3] {
        [self.values, self.matrices[0], self.matrices[1]]
    }
}

/// A batch under construction.
struct Making(Batch);

impl Making {
    /// A base's first elements as an operand of this shape.
    fn view(&mut self, base: &Base, flags: u32, shape: &[i64]) -> Result<Operand> {
        let known = self.0.bases.iter().position(|known| known.id == base.id);
        let place = known.map_or_else(|| self.0.push_base(Base { flags, ..*base }), |place| place as u32);
        let view = View::contiguous(shape).map_err(|why| Error::new(status::BATCH, why.0))?;
        Ok(Operand::view(self.0.push_view(place, &view)))
    }

    fn run(mut self, child: &mut Child) -> Result<()> {
        self.0.sign();
        run(child, &self.0)
    }
}

fn run(child: &mut Child, batch: &Batch) -> Result<()> {
    child.execute(&batch.as_ref(), &[], &mut Report::none()).and_then(|ticket| child.wait(ticket))
}

/// Fills the arrays with ones, or drops them.
fn manage(child: &mut Child, arrays: &Arrays, makes: bool) -> Result<()> {
    for base in arrays.all() {
        let mut making = Making(Batch::default());
        if makes {
            let all = making.view(&base, base_flags::BORN | base_flags::LIVE_OUT, &[base.len])?;
            let one = making.0.push_constant(Constant::from_value(1.0f64));
            making.0.push_instr(Instr::new(Opcode::Copy, &[all, Operand::constant(one)]));
        } else {
            let all = making.view(&base, base_flags::DIES, &[base.len])?;
            making.0.push_instr(Instr::new(Opcode::Discard, &[all]));
        }
        making.run(child)?;
    }
    Ok(())
}

/// A share of an extent.
fn part(extent: i64, share: f64) -> i64 {
    ((extent as f64 * share).round() as i64).clamp(1, extent)
}

/// A batch of one kind of work, on a share of the elements or of the product's rows.
fn batch(arrays: &Arrays, kind: usize, share: f64) -> Result<Batch> {
    let part = |extent| part(extent, share);
    let mut making = Making(Batch::default());
    if kind == 3 {
        let batch = &mut making.0;
        let (name, name_len) = batch.push_string("matmul");
        batch.extensions.push(Extension { opcode: PRODUCT, reserved: 0, name, name_len });
        let ([right, product], side) = (&arrays.matrices, arrays.side);
        let product = making.view(product, base_flags::LIVE_OUT, &[part(side), side])?;
        let left = making.view(right, base_flags::LIVE_OUT, &[part(side), side])?;
        let right = making.view(right, base_flags::LIVE_OUT, &[side, side])?;
        making.0.push_instr(Instr::new(PRODUCT, &[product, left, right]));
    } else {
        let all = making.view(&arrays.values, base_flags::LIVE_OUT, &[part(arrays.values.len)])?;
        let one = Operand::constant(making.0.push_constant(Constant::from_value(1.0f64)));
        let mut push = |opcode: Opcode, operands: &[Operand]| {
            making.0.push_instr(Instr::new(opcode, operands));
        };
        match kind {
            2 => (0..FUNCTIONS).for_each(|_| {
                [Opcode::Sin, Opcode::Exp, Opcode::Log].into_iter().for_each(|opcode| push(opcode, &[all, all]));
            }),
            1 => (0..OPERATIONS).for_each(|_| push(Opcode::Add, &[all, all, one])),
            _ => push(Opcode::Add, &[all, all, one]),
        }
    }
    making.0.sign();
    Ok(making.0)
}

/// Runs a batch until the stack has built its kernels.
fn prepare(child: &mut Child, batch: &Batch) -> Result<()> {
    (0..BUILDING).try_for_each(|_| run(child, batch))?;
    child.message("finish building")?;
    run(child, batch)
}

/// The size for measurements of a stack.
fn size(host: &Host, child: &mut Child) -> Result<(i64, i64)> {
    for (size, fast) in SIZES.into_iter().zip(FAST) {
        let arrays = Arrays::new(host, size);
        manage(child, &arrays, true)?;
        let batch = batch(&arrays, 1, 1.0)?;
        let outcome = prepare(child, &batch).and_then(|()| {
            let begin = Instant::now();
            run(child, &batch).map(|()| begin.elapsed().as_nanos())
        });
        manage(child, &arrays, false)?;
        if outcome? >= fast {
            return Ok(size);
        }
    }
    Ok(SIZES[2])
}

/// A stack's work in one run of a measurement.
struct Load {
    batch: Batch,
    /// The amount, in the kind's unit.
    amount: f64,
    /// The base that it works on, and the number of elements.
    values: Base,
    elements: i64,
}

/// The loads of stacks, each on its share of its arrays.
fn loads(arrays: &[Arrays], kind: usize, shares: &[f64]) -> Result<Vec<Load>> {
    let load = |(arrays, share): (&Arrays, &f64)| {
        let (batch, values) = (batch(arrays, kind, *share)?, arrays.values);
        let elements = part(values.len, *share);
        let amount = match kind {
            COPIES => elements as f64 * values.dtype().size() as f64,
            _ => work(&batch.as_ref(), &(0..batch.instrs.len() as u32).collect::<Vec<u32>>())[kind],
        };
        Ok(Load { batch, amount, values, elements })
    };
    arrays.iter().zip(shares).map(load).collect()
}

/// Runs loads on all stacks until each has run often and long enough; returns the amounts per nanosecond. `before` is
/// called first in each run.
fn side_by_side(
    children: &mut [Child],
    loads: &[Load],
    before: impl Fn(&mut Child, &Load) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let (start, ready) = (Barrier::new(children.len()), AtomicUsize::new(0));
    let measure = |child: &mut Child, load: &Load| {
        start.wait();
        let (begin, mut runs, mut is_ready) = (Instant::now(), 0, false);
        loop {
            let outcome = before(child, load).and_then(|()| run(child, &load.batch));
            runs += 1;
            if !is_ready && (outcome.is_err() || (runs >= RUNS && begin.elapsed() >= SHORTEST)) {
                is_ready = true;
                ready.fetch_add(1, Ordering::Relaxed);
            }
            outcome?;
            if ready.load(Ordering::Relaxed) == loads.len() {
                return Ok(load.amount * runs as f64 / begin.elapsed().as_nanos() as f64);
            }
        }
    };
    let failed = |_| Error::new(status::EXECUTION, "a measurement ended by a panic");
    std::thread::scope(|scope| {
        let measure = &measure;
        let threads: Vec<_> =
            children.iter_mut().zip(loads).map(|(child, load)| scope.spawn(move || measure(child, load))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(failed)?).collect()
    })
}

/// The median of each column.
fn medians(rows: &[Vec<f64>]) -> Vec<f64> {
    let median = |place: usize| {
        let mut column: Vec<f64> = rows.iter().map(|row| row[place]).collect();
        column.sort_by(f64::total_cmp);
        column[column.len() / 2]
    };
    (0..rows[0].len()).map(median).collect()
}

/// The rates of one kind from those of each round, together and alone. Usually those together. If the sum of these is
/// less than the fastest alone, stacks slow each other down, and all but the fastest get a rate that counts as too
/// slow. Rounds are compared separately, because other programs may slow down some of them.
fn worth(together: &[Vec<f64>], alone: &[Vec<f64>]) -> Vec<f64> {
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let quotient = |(together, alone): (&Vec<f64>, &Vec<f64>)| vec![together.iter().sum::<f64>() / best(alone)];
    let quotients: Vec<Vec<f64>> = together.iter().zip(alone).map(quotient).collect();
    if medians(&quotients)[0] >= LEAST {
        return medians(together);
    }
    let mut rates = medians(alone);
    let fastest = best(&rates);
    let first = rates.iter().position(|rate| *rate == fastest).unwrap_or(0);
    for (_, rate) in rates.iter_mut().enumerate().filter(|(place, _)| *place != first) {
        *rate = rate.min(fastest / (2.0 * MOST_TIMES_SLOWER));
    }
    rates
}

/// Measures all stacks, alone and beside each other.
pub fn measure(host: &Host, children: &mut [Child]) -> Result<Vec<Rates>> {
    let arrays: Vec<Arrays> =
        children.iter_mut().map(|child| Ok(Arrays::new(host, size(host, child)?))).collect::<Result<_>>()?;
    let mut multiply = true;
    for (child, arrays) in children.iter_mut().zip(&arrays) {
        manage(child, arrays, true)?;
        multiply &= child.extmethod("matmul", PRODUCT)?;
    }
    let mut found = vec![Rates([0.0; KINDS.len()]); children.len()];
    for kind in 0..COPIES {
        if kind == 3 && !multiply {
            found.iter_mut().for_each(|rates| rates.0[3] = rates.0[1]);
            break;
        }
        let rates = rates(children, &arrays, kind, |_, _| Ok(()))?;
        found.iter_mut().zip(rates).for_each(|(all, rate)| all.0[kind] = rate);
    }
    let copied = copies(children, &arrays)?;
    found.iter_mut().zip(copied).for_each(|(all, rate)| all.0[COPIES] = rate);
    for (child, arrays) in children.iter_mut().zip(&arrays) {
        manage(child, arrays, false)?;
    }
    Ok(found)
}

/// The rates of a kind. Together, stacks share the work that one does alone, as in programs, so that caches hold the
/// same data.
fn rates(
    children: &mut [Child],
    arrays: &[Arrays],
    kind: usize,
    before: impl Fn(&mut Child, &Load) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let prepare = |children: &mut [Child], loads: &[Load]| {
        children.iter_mut().zip(loads).try_for_each(|(child, load)| prepare(child, &load.batch))
    };
    let whole = loads(arrays, kind, &vec![1.0; arrays.len()])?;
    let one_by_one = |children: &mut [Child]| -> Result<Vec<f64>> {
        let one = |(child, load)| side_by_side(std::slice::from_mut(child), std::slice::from_ref(load), &before);
        Ok(children.iter_mut().zip(&whole).map(one).collect::<Result<Vec<_>>>()?.concat())
    };
    prepare(children, &whole)?;
    let speeds = one_by_one(children)?;
    let all: f64 = speeds.iter().sum();
    let parts = loads(arrays, kind, &speeds.iter().map(|speed| speed / all).collect::<Vec<f64>>())?;
    prepare(children, &parts)?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(one_by_one(children)?);
        together.push(side_by_side(children, &parts, &before)?);
    }
    Ok(worth(&together, &alone))
}

/// Bytes per nanosecond that each stack copies from the program's memory.
fn copies(children: &mut [Child], arrays: &[Arrays]) -> Result<Vec<f64>> {
    let most = arrays.iter().map(|arrays| arrays.values.bytes()).max().unwrap_or(0);
    let memory = vec![0u8; most as usize];
    rates(children, arrays, COPIES, |child, load| {
        let view = View::contiguous(&[load.elements]).map_err(|why| Error::new(status::BATCH, why.0))?;
        let stride = dense(&view, load.values.dtype().size());
        // SAFETY: `memory` has as many bytes as the largest array, and is only read.
        let from = unsafe { HostMemory::new(memory.as_ptr().cast_mut(), &stride) };
        child.write(&load.values, &view, &from)
    })
}

/// Formats a file for the key `weights`.
pub fn file(measured: &[Rates]) -> String {
    let mut text = String::from(
        "# a line for each engine: GB/s of its memory; additions of 32 bits in a nanosecond, the same in functions, and in\n\
         # products of matrices; GB/s from the program's memory\n",
    );
    for (number, Rates(rates)) in measured.iter().enumerate() {
        let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.3}")).collect();
        text += &format!("{number}: {}\n", rates.join(", "));
    }
    text
}

/// The value of the key `weights` for equal shares.
pub const EVEN: &str = "even";

/// A value of the key `weights`.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The shares.
    Shares(Vec<f64>),
    /// Rates, which determine the shares.
    Rates(Vec<Rates>),
}

/// Parses numbers, or the file that the text names.
pub fn given(text: &str) -> Option<Given> {
    let numbers = |text: &str| text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<f64>>>();
    if let Some(shares) = numbers(text) {
        return Some(Given::Shares(shares));
    }
    let file = std::fs::read_to_string(text.trim()).ok()?;
    let lines = || file.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let rates = |(number, line): (usize, &str)| {
        let (name, rates) = line.split_once(':')?;
        (name.trim() == number.to_string()).then_some(Rates(numbers(rates)?.try_into().ok()?))
    };
    match lines().next()?.contains(':') {
        true => {
            let rates = lines().enumerate().map(rates).collect::<Option<Vec<Rates>>>();
            rates.filter(|rates| Rates::are_sound(rates)).map(Given::Rates)
        }
        false => numbers(lines().next_back()?).map(Given::Shares),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_only_slow_each_other_get_nothing() {
        assert_eq!(worth(&[vec![4.0, 2.0]], &[vec![5.0, 3.0]]), [4.0, 2.0]);
        assert_eq!(worth(&[vec![3.0, 1.0]], &[vec![5.0, 3.0]]), [5.0, 0.25]);
    }

    #[test]
    fn a_disturbed_round_does_not_count() {
        let alone = [vec![5.0, 3.0], vec![9.0, 3.0], vec![5.0, 3.0]];
        assert_eq!(worth(&[vec![1.0, 1.0], vec![4.0, 6.0], vec![4.5, 2.0]], &alone), [4.0, 2.0]);
    }

    #[test]
    fn measured_rates_are_read_back() {
        let path = std::env::temp_dir().join(format!("bh-shares-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            given(path.to_str().unwrap())
        };
        let rates = vec![Rates([2000.0, 4.0, 1.5, 8.0, 6.0]), Rates([500.0, 1.0, 0.25, 1.0, 6.0])];
        assert_eq!(read(&file(&rates)), Some(Given::Rates(rates)));
        assert_eq!(read("# kept from before\n1, 0.25\n"), Some(Given::Shares(vec![1.0, 0.25])));
        for wrong in ["", "0: 1, 2, 3, 4\n", "1: 1, 2, 3, 4, 5\n", "0: 1, 2, 0, 4, 5\n", "0: 1, 2, 3, 4, 5\nmuch\n"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(given("1, 2,0"), Some(Given::Shares(vec![1.0, 2.0, 0.0])));
        assert_eq!(given("much"), None);
    }
}
