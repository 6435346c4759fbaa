//! Measures how fast the stacks below are: bytes and operations in a second, of one kernel that moves and one that computes.

use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::status;
use bh_core::component::{Child, Host, Report};
use bh_core::error::{Error, Result};
use std::time::Instant;

/// Elements of the array: more than caches hold.
const ELEMENTS: i64 = 16 << 20;
/// The same for stacks that would take long.
const FEW: i64 = 1 << 20;
/// Operations on each element where computing is measured.
const OPERATIONS: usize = 256;
/// Each is run so often; the fastest counts.
const RUNS: usize = 5;

/// What a stack does in a nanosecond.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Bytes that it reads and writes.
    pub bytes: f64,
    /// Operations on numbers of 32 bits.
    pub operations: f64,
}

/// A batch that adds to all elements so often.
fn additions(base: &Base, flags: u32, times: usize) -> Result<Batch> {
    let mut batch = Batch::default();
    let place = batch.push_base(Base { flags, ..*base });
    let whole = View::contiguous(&[base.len]).map_err(|why| Error::new(status::BATCH, why.0))?;
    let (all, one) = (batch.push_view(place, &whole), batch.push_constant(Constant::from_value(1.0f32)));
    if flags & base_flags::BORN != 0 {
        batch.push_instr(Instr::new(Opcode::Copy, &[Operand::view(all), Operand::constant(one)]));
    }
    for _ in 0..times {
        batch.push_instr(Instr::new(Opcode::Add, &[Operand::view(all), Operand::view(all), Operand::constant(one)]));
    }
    if flags & base_flags::DIES != 0 {
        batch.push_instr(Instr::new(Opcode::Discard, &[Operand::view(all)]));
    }
    batch.sign();
    Ok(batch)
}

fn run(child: &mut Child, batch: &Batch) -> Result<()> {
    child.execute(&batch.as_ref(), &[], &mut Report::none()).and_then(|ticket| child.wait(ticket))
}

/// Nanoseconds of one run, the fastest of some.
fn nanoseconds(child: &mut Child, base: &Base, times: usize) -> Result<f64> {
    let batch = additions(base, base_flags::LIVE_OUT, times)?;
    let mut best = f64::INFINITY;
    // Kernels are built and cached in the first.
    for _ in 0..=RUNS {
        let begin = Instant::now();
        run(child, &batch)?;
        best = best.min(begin.elapsed().as_nanos() as f64);
    }
    Ok(best)
}

/// Measures one stack.
pub fn measure(host: &Host, child: &mut Child) -> Result<Measured> {
    let mut found = Measured { bytes: 0.0, operations: 0.0 };
    for elements in [FEW, ELEMENTS] {
        let base = Base::new(host.new_base_id(), DType::F32, elements);
        run(child, &additions(&base, base_flags::BORN | base_flags::LIVE_OUT, 0)?)?;
        let (moving, computing) = (nanoseconds(child, &base, 1)?, nanoseconds(child, &base, OPERATIONS)?);
        run(child, &additions(&base, base_flags::DIES, 0)?)?;
        let bytes = 2 * base.bytes();
        found =
            Measured { bytes: bytes as f64 / moving, operations: (elements as usize * OPERATIONS) as f64 / computing };
        // A slow stack is known by now.
        if computing > 1e9 {
            break;
        }
    }
    Ok(found)
}

/// The lines of a file for the key `weights`: shares follow the bytes that stacks move.
pub fn file(measured: &[Measured]) -> String {
    let mut text = String::from("# measured: GB/s, operations of 32 bits in a nanosecond\n");
    for (number, Measured { bytes, operations }) in measured.iter().enumerate() {
        text += &format!("# {number}: {bytes:.1}, {operations:.1}\n");
    }
    let most = measured.iter().map(|one| one.bytes).fold(f64::MIN_POSITIVE, f64::max);
    let shares: Vec<String> = measured.iter().map(|one| format!("{:.3}", one.bytes / most)).collect();
    text + &shares.join(",") + "\n"
}

/// The numbers of a text, or of the file that it names.
pub fn shares(text: &str) -> Option<Vec<f64>> {
    let numbers = |text: &str| text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<f64>>>();
    numbers(text).or_else(|| {
        let file = std::fs::read_to_string(text.trim()).ok()?;
        numbers(file.lines().rfind(|line| !line.starts_with('#') && !line.is_empty())?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_gives_shares() {
        let one = |bytes| Measured { bytes, operations: 7.0 };
        let text = file(&[one(2000.0), one(500.0)]);
        let path = std::env::temp_dir().join(format!("bh-shares-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        assert_eq!(shares(path.to_str().unwrap()), Some(vec![1.0, 0.25]));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(shares("1, 2,0"), Some(vec![1.0, 2.0, 0.0]));
        assert_eq!(shares("much"), None);
    }
}
