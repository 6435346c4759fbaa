//! Measures how fast the stacks below are at each kind of work, all of them at the same time, as they work in programs.

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
use std::time::Instant;

/// Elements of an array, and rows of a matrix, for stacks that would take long with more; the last are more than caches hold.
const SIZES: [(i64, i64); 3] = [(1 << 14, 64), (1 << 20, 512), (16 << 20, 2048)];
/// Nanoseconds in which a stack computes on a size before it gets the next one.
const FAST: [u128; 2] = [10_000_000, 60_000_000];
/// Operations on each element where computing is measured.
const OPERATIONS: usize = 256;
/// Turns of three functions on each element.
const FUNCTIONS: usize = 8;
/// Each stack runs each batch at least so often, and goes on until all have.
const RUNS: usize = 5;
/// How many times as fast as the fastest alone stacks must be together.
const LEAST: f64 = 0.97;
/// Runs in which kernels are built for sizes that come again.
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

/// A batch in the making.
struct Making(Batch);

impl Making {
    fn whole(&mut self, base: &Base, flags: u32) -> Result<Operand> {
        let place = self.0.push_base(Base { flags, ..*base });
        let view = View::contiguous(&[base.len]).map_err(|why| Error::new(status::BATCH, why.0))?;
        Ok(Operand::view(self.0.push_view(place, &view)))
    }

    fn matrix(&mut self, base: &Base, side: i64) -> Result<Operand> {
        let place = self.0.push_base(Base { flags: base_flags::LIVE_OUT, ..*base });
        let view = View::contiguous(&[side, side]).map_err(|why| Error::new(status::BATCH, why.0))?;
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
            let all = making.whole(&base, base_flags::BORN | base_flags::LIVE_OUT)?;
            let one = making.0.push_constant(Constant::from_value(1.0f64));
            making.0.push_instr(Instr::new(Opcode::Copy, &[all, Operand::constant(one)]));
        } else {
            let all = making.whole(&base, base_flags::DIES)?;
            making.0.push_instr(Instr::new(Opcode::Discard, &[all]));
        }
        making.run(child)?;
    }
    Ok(())
}

/// A batch that is of one kind of work.
fn batch(arrays: &Arrays, kind: usize) -> Result<Batch> {
    let mut making = Making(Batch::default());
    if kind == 3 {
        let batch = &mut making.0;
        let (name, name_len) = batch.push_string("matmul");
        batch.extensions.push(Extension { opcode: PRODUCT, reserved: 0, name, name_len });
        let [factor, product] = [0, 1].map(|place| making.matrix(&arrays.matrices[place], arrays.side));
        let factor = factor?;
        making.0.push_instr(Instr::new(PRODUCT, &[product?, factor, factor]));
    } else {
        let all = making.whole(&arrays.values, base_flags::LIVE_OUT)?;
        let one = Operand::constant(making.0.push_constant(Constant::from_value(1.0f64)));
        let mut push = |opcode: Opcode, operands: &[Operand]| {
            making.0.push_instr(Instr::new(opcode, operands));
        };
        match kind {
            2 => (0..FUNCTIONS).for_each(|_| {
                [Opcode::Sin, Opcode::Exp, Opcode::Log].into_iter().for_each(|opcode| push(opcode, &[all, all]));
            }),
            _ => (0..[1, OPERATIONS][kind]).for_each(|_| push(Opcode::Add, &[all, all, one])),
        }
    }
    making.0.sign();
    Ok(making.0)
}

/// Lets a stack build what it needs.
fn prepare(child: &mut Child, batch: &Batch) -> Result<()> {
    (0..BUILDING).try_for_each(|_| run(child, batch))?;
    child.message("finish building")?;
    run(child, batch)
}

/// The size that a stack is measured with.
fn size(host: &Host, child: &mut Child) -> Result<(i64, i64)> {
    for (size, fast) in SIZES.into_iter().zip(FAST) {
        let arrays = Arrays::new(host, size);
        manage(child, &arrays, true)?;
        let batch = batch(&arrays, 1)?;
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

/// Runs a batch on each stack until all have run theirs often enough; how long one run took, in nanoseconds. `before`: what is done
/// first in each run.
fn side_by_side(
    children: &mut [Child],
    batches: &[Batch],
    before: impl Fn(&mut Child, usize) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let (start, ready) = (Barrier::new(children.len()), AtomicUsize::new(0));
    let measure = |child: &mut Child, place: usize| {
        let prepared = prepare(child, &batches[place]);
        start.wait();
        let (begin, mut runs, mut outcome) = (Instant::now(), 0, prepared);
        while outcome.is_ok() && (runs < RUNS || ready.load(Ordering::Relaxed) < batches.len()) {
            outcome = before(child, place).and_then(|()| run(child, &batches[place]));
            runs += 1;
            if runs == RUNS {
                ready.fetch_add(1, Ordering::Relaxed);
            }
        }
        if runs < RUNS {
            ready.fetch_add(1, Ordering::Relaxed);
        }
        outcome.map(|()| begin.elapsed().as_nanos() as f64 / runs as f64)
    };
    let failed = |_| Error::new(status::EXECUTION, "a measurement ended by a panic");
    std::thread::scope(|scope| {
        let measure = &measure;
        let threads: Vec<_> =
            children.iter_mut().enumerate().map(|(place, child)| scope.spawn(move || measure(child, place))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(failed)?).collect()
    })
}

/// The rates of one kind that stacks have beside each other, unless that is less than the fastest does alone. Then they stand in
/// each other's way, and the others count as too slow for what is mainly of this kind.
fn worth(together: &[f64], alone: &[f64]) -> Vec<f64> {
    let best = alone.iter().copied().fold(0.0, f64::max);
    if together.iter().sum::<f64>() >= best * LEAST {
        return together.to_vec();
    }
    let first = alone.iter().position(|rate| *rate == best).unwrap_or(0);
    alone
        .iter()
        .enumerate()
        .map(|(place, rate)| if place == first { *rate } else { (best / (2.0 * MOST_TIMES_SLOWER)).min(*rate) })
        .collect()
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
    for kind in 0..4 {
        if kind == 3 && !multiply {
            found.iter_mut().for_each(|rates| rates.0[3] = rates.0[1]);
            break;
        }
        let batches: Vec<Batch> = arrays.iter().map(|arrays| batch(arrays, kind)).collect::<Result<_>>()?;
        let amount = |batch: &Batch| work(&batch.as_ref(), &(0..batch.instrs.len() as u32).collect::<Vec<u32>>())[kind];
        let amounts: Vec<f64> = batches.iter().map(amount).collect();
        let rates = rates(children, &batches, &amounts, |_, _| Ok(()))?;
        found.iter_mut().zip(rates).for_each(|(all, rate)| all.0[kind] = rate);
    }
    let copied = copies(children, &arrays)?;
    found.iter_mut().zip(copied).for_each(|(all, rate)| all.0[4] = rate);
    for (child, arrays) in children.iter_mut().zip(&arrays) {
        manage(child, arrays, false)?;
    }
    Ok(found)
}

/// What stacks do in a nanosecond, of which each has so much in a run.
fn rates(
    children: &mut [Child],
    batches: &[Batch],
    amounts: &[f64],
    before: impl Fn(&mut Child, usize) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let mut alone = Vec::new();
    for (place, child) in children.iter_mut().enumerate() {
        let (child, batch) = (std::slice::from_mut(child), std::slice::from_ref(&batches[place]));
        let times = side_by_side(child, batch, |child, _| before(child, place))?;
        alone.push(amounts[place] / times[0]);
    }
    let times = side_by_side(children, batches, before)?;
    let together: Vec<f64> = amounts.iter().zip(times).map(|(amount, time)| amount / time).collect();
    Ok(worth(&together, &alone))
}

/// Bytes in a nanosecond that each stack gets from the program's memory.
fn copies(children: &mut [Child], arrays: &[Arrays]) -> Result<Vec<f64>> {
    let most = arrays.iter().map(|arrays| arrays.values.bytes()).max().unwrap_or(0);
    let memory = vec![0u8; most as usize];
    let batches: Vec<Batch> = arrays.iter().map(|arrays| batch(arrays, 0)).collect::<Result<_>>()?;
    let amounts: Vec<f64> = arrays.iter().map(|arrays| arrays.values.bytes() as f64).collect();
    rates(children, &batches, &amounts, |child, place| {
        let base = &arrays[place].values;
        let view = View::contiguous(&[base.len]).map_err(|why| Error::new(status::BATCH, why.0))?;
        let stride = dense(&view, base.dtype().size());
        // SAFETY: it has as many bytes as the largest of the arrays, and is only read.
        let from = unsafe { HostMemory::new(memory.as_ptr().cast_mut(), &stride) };
        child.write(base, &view, &from)
    })
}

/// The lines of a file for the key `weights`.
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

/// What the key `weights` says where all get as much, however fast they are.
pub const EVEN: &str = "even";

/// What the key `weights` may say.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The shares.
    Shares(Vec<f64>),
    /// What they follow.
    Rates(Vec<Rates>),
}

/// The numbers of a text, or of the file that it names.
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
        assert_eq!(worth(&[4.0, 2.0], &[5.0, 3.0]), [4.0, 2.0]);
        assert_eq!(worth(&[3.0, 1.0], &[5.0, 3.0]), [5.0, 0.25]);
    }

    #[test]
    fn what_was_measured_comes_back() {
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
