//! `bh check`: compares the batches of a program, as configured, with the interpreter; reports the first array and line
//! that differ.

use crate::batch_file;
use crate::progress::Progress;
use bh_bytecode::compare::{Tolerance, compare, may_differ};
use bh_bytecode::interp::{Interpreter, Memory};
use bh_bytecode::random::Program;
use bh_bytecode::{Base, Batch, Constant, DType, c128};
use bh_core::abi::status;
use bh_core::{Config, Error, Result, Stack, private};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Runs the program, then each of its batches on the configured stack and by the interpreter.
pub fn run(stack: Option<&str>, line: &[OsString]) -> Result<ExitCode> {
    let fail = |text: String| Error::new(status::FILE, text);
    let Some((program, arguments)) = line.split_first() else {
        return Err(Error::new(status::ARGUMENT, "check needs a program after --"));
    };
    let directory = private::temporary_directory("bh-check").map_err(fail)?;
    let mut command = Command::new(program);
    command.args(arguments).env("BH_DUMP", &directory);
    if let Some(stack) = stack {
        command.env("BH_STACK", stack);
    }
    let ended = command.status();
    let found = batches(&directory).and_then(|files| compared(&files, stack));
    // Best effort: the files are in the temporary directory.
    let _ = std::fs::remove_dir_all(&directory);
    ended.map_err(|error| fail(format!("'{}' cannot be started: {error}", program.to_string_lossy())))?;
    let (text, is_right) = found?;
    eprintln!("bh check: {text}");
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The dumped batches in the order in which they ran.
fn batches(directory: &Path) -> Result<Vec<PathBuf>> {
    let fail = |error: std::io::Error| Error::new(status::FILE, format!("{}: {error}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(fail)?;
    let mut files =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>().map_err(fail)?;
    files.sort();
    Ok(files)
}

/// The first difference, or the number of compared batches; and whether there is none.
fn compared(files: &[PathBuf], stack: Option<&str>) -> Result<(String, bool)> {
    let mut stack = Stack::load(&Config::find()?, stack)?;
    let (mut arrays, mut skipped) = (0, 0);
    let progress = Progress::of(files.len() as u64);
    for (number, file) in files.iter().enumerate() {
        progress.show(number as u64, "batches compared");
        let dump = batch_file::read(file)?;
        let program = Program { memory: dump.memory(), batch: dump.batch };
        let Some((expected, writers)) = expected(&program) else {
            skipped += 1;
            continue;
        };
        for extension in &program.batch.extensions {
            if let Some(name) = program.batch.as_ref().extension_name(extension.opcode) {
                stack.extmethod(name, extension.opcode)?;
            }
        }
        let found = match bh_conformance::run::run(&mut stack, &program) {
            Ok(memory) => first_difference(&program.batch, &expected, &memory, &writers),
            Err(error) => Some(format!("fails: {error}")),
        };
        if let Some(text) = found {
            return Ok((format!("batch {} of {}: {text}", number + 1, files.len()), false));
        }
        arrays += expected.ids().len();
    }
    let left = if skipped > 0 {
        format!("; {skipped} batches with extension methods or errors are not compared")
    } else {
        String::new()
    };
    Ok((format!("{} batches, {arrays} arrays, all as the interpreter has them{left}", files.len() - skipped), true))
}

/// The interpreter's results, and the last instruction that writes each base. `None` if it cannot run the batch.
fn expected(program: &Program) -> Option<(Memory, HashMap<u64, usize>)> {
    let (batch, mut memory, mut writers) = (program.batch.as_ref(), program.memory.clone(), HashMap::new());
    let mut interpreter = Interpreter { memory: &mut memory, extensions: None, magnitudes: None };
    for (index, instr) in batch.instrs.iter().enumerate() {
        interpreter.execute_instr(&batch, index).ok()?;
        for output in instr.outputs() {
            if let Some(base) = output.as_view().and_then(|view| batch.base_of(view)) {
                writers.insert(base.id, index);
            }
        }
    }
    Some((memory, writers))
}

/// The difference in the base that is written first, with the last operation that writes it.
fn first_difference(
    batch: &Batch,
    expected: &Memory,
    memory: &Memory,
    writers: &HashMap<u64, usize>,
) -> Option<String> {
    let rounds = |instr: &bh_bytecode::Instr| {
        instr
            .operands()
            .iter()
            .filter_map(|operand| batch.as_ref().dtype(*operand))
            .any(|dtype| may_differ(instr.opcode, dtype))
    };
    let rounding = batch.instrs.iter().any(rounds);
    let mut bases: Vec<&Base> = batch.bases.iter().filter(|base| writers.contains_key(&base.id)).collect();
    bases.sort_by_key(|base| writers[&base.id]);
    bases.into_iter().find_map(|base| {
        let (right, mine) = (expected.get(base.id)?, memory.get(base.id)?);
        let difference = compare(base.dtype(), right, mine, &Tolerance::Exact).err()?;
        if rounding && are_near(base.dtype(), right, mine) {
            return None;
        }
        let instr = &batch.instrs[writers[&base.id]];
        let place = batch.as_ref().origin(instr).map_or(String::new(), |(file, line)| format!("{file}:{line}: "));
        let name = batch.as_ref().operation_name(instr.opcode);
        Some(format!("{place}the array that '{name}' writes, {} of {} elements: {difference}", base.dtype(), base.len))
    })
}

/// Are all elements within the rounding errors of functions and sums, relative to the largest?
fn are_near(dtype: DType, right: &[u8], mine: &[u8]) -> bool {
    let share = match dtype {
        DType::F64 | DType::C128 => 1e-9,
        DType::F32 | DType::C64 => 1e-4,
        _ => return false,
    };
    let numbers = |bytes: &[u8]| -> Vec<c128> {
        bytes.chunks_exact(dtype.size()).map(|bytes| Constant::from_bytes(dtype, bytes).to::<c128>()).collect()
    };
    let (right, mine) = (numbers(right), numbers(mine));
    let modulus = |value: &c128| value.re.hypot(value.im);
    let largest = right.iter().map(modulus).filter(|size| size.is_finite()).fold(0.0, f64::max);
    right.iter().zip(&mine).all(|(right, mine)| {
        let distance = modulus(&c128::new(right.re - mine.re, right.im - mine.im));
        right == mine || modulus(right).is_nan() && modulus(mine).is_nan() || distance <= share * largest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: &str = r#"bh batch 1
base b0 = f64[4] id 1 row 4
base b1 = f64[4] id 2 row 4 born
base b2 = f64[4] id 3 row 4 born
view v0 = b0 at 0 [4:1]
view v1 = b1 at 0 [4:1]
view v2 = b2 at 0 [4:1]
const c0 = f64 2.0
origin o1 = "script.py":7
origin o2 = "script.py":8
i0: v1 = multiply v0, c0 @o1
i1: v2 = OPERATION v1 @o2
"#;

    /// A program that doubles and then applies an operation, its results, and the writer of each base.
    fn program(operation: &str) -> (Program, Memory, HashMap<u64, usize>) {
        let batch = bh_bytecode::text::parse(&BATCH.replace("OPERATION", operation)).unwrap();
        let mut memory = Memory::new();
        memory.insert(1, [1.0f64, 2.0, 3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect());
        let program = Program { batch, memory };
        let (memory, writers) = expected(&program).unwrap();
        (program, memory, writers)
    }

    /// The memory with one element of a base changed.
    fn planted(memory: &Memory, base: u64, change: f64) -> Memory {
        let mut memory = memory.clone();
        let bytes = memory.get_mut(base).unwrap();
        let number = f64::from_le_bytes(bytes[8..16].try_into().unwrap()) + change;
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        memory
    }

    #[test]
    fn a_planted_error_is_told_with_the_line_that_wrote_it_first() {
        let (program, memory, writers) = program("sqrt");
        let found = |memory: &Memory| first_difference(&program.batch, &memory_of(&program), memory, &writers);
        assert_eq!(found(&memory), None);
        let text = found(&planted(&memory, 3, 1e-6)).unwrap();
        assert!(
            text.starts_with("script.py:8: the array that 'sqrt' writes, f64 of 4 elements: element 1 is"),
            "{text}"
        );
        let text = found(&planted(&planted(&memory, 3, 1.0), 2, 1.0)).unwrap();
        assert!(text.starts_with("script.py:7: the array that 'multiply' writes"), "{text}");
    }

    #[test]
    fn rounding_is_allowed_to_functions_only() {
        for (operation, is_right) in [("exp", true), ("sqrt", false)] {
            let (program, memory, writers) = program(operation);
            let found = first_difference(&program.batch, &memory, &planted(&memory, 3, 1e-15), &writers);
            assert_eq!(found.is_none(), is_right, "{operation}: {found:?}");
        }
    }

    fn memory_of(program: &Program) -> Memory {
        expected(program).unwrap().0
    }
}
