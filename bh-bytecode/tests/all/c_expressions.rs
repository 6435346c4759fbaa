//! The C expressions of the opcode table, compiled by a C compiler, give what the interpreter gives on values at the
//! edges of every type. `CC` names the compiler (`cc`).

use bh_bytecode::c::{complete, expression, has_expression, neutral, type_name};
use bh_bytecode::compare::{Tolerance, compare, tolerance};
use bh_bytecode::interp::{self, Memory};
use bh_bytecode::opcode::Signature;
use bh_bytecode::random::Rng;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Kind, Opcode, Operand, TypeSet, View};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One expression with the values it is computed on.
struct Case {
    opcode: Opcode,
    param: u16,
    input: DType,
    output: DType,
    /// Types of the operands and their bytes.
    operands: Vec<(DType, Vec<u8>)>,
    count: usize,
}

impl Case {
    fn title(&self) -> String {
        format!("{} {} {} -> {}", self.opcode, self.param, self.input, self.output)
    }

    /// The operands as a batch of one instruction, whose last base is the result.
    fn expected(&self) -> Vec<u8> {
        let mut batch = Batch::default();
        let mut memory = Memory::new();
        let count = self.count as i64;
        let reduces = self.opcode.kind() == Kind::Reduction;
        let mut base = |batch: &mut Batch, dtype: DType, bytes: Option<&[u8]>| {
            let id = batch.bases.len() as u64 + 1;
            let base = batch.push_base(Base::new(id, dtype, count));
            if let Some(bytes) = bytes {
                memory.insert(id, bytes.to_vec());
            }
            base
        };
        let whole = View::contiguous(&[count]).unwrap();
        let output = base(&mut batch, self.output, None);
        let mut operands = vec![Operand::view(batch.push_view(output, &whole))];
        for (dtype, bytes) in &self.operands {
            let operand = base(&mut batch, *dtype, Some(bytes));
            let view = if reduces { View::contiguous(&[count, 1]).unwrap() } else { whole };
            operands.push(Operand::view(batch.push_view(operand, &view)));
        }
        let param = if reduces { 2 } else { self.param };
        batch.push_instr(Instr { param, ..Instr::new(self.opcode, &operands) });
        interp::execute(&batch.as_ref(), &mut memory).unwrap_or_else(|error| panic!("{}: {error}", self.title()));
        memory.get(1).unwrap().to_vec()
    }

    /// The C function of the case.
    fn function(&self, number: usize) -> String {
        let mut text = format!("static void case_{number}(char **in, char *out, long n) {{\n");
        let mut args = Vec::new();
        if self.opcode.kind() == Kind::Reduction {
            args.push(neutral(self.opcode, self.input));
        }
        for (at, (dtype, _)) in self.operands.iter().enumerate() {
            let name = type_name(*dtype);
            writeln!(text, "  const {name} *a{at} = (const {name} *)in[{at}];").unwrap();
            args.push(format!("a{at}[i]"));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let value = expression(self.opcode, self.param, self.input, self.output, &args);
        let name = type_name(self.output);
        writeln!(text, "  for (long i = 0; i < n; i++) (({name} *)out)[i] = {value};\n}}").unwrap();
        text
    }
}

/// Real numbers at which functions and conversions change their ways.
const FLOATS: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    f64::MIN_POSITIVE,
    5e-324,
    1e-40,
    f64::MAX,
    f64::MIN,
    3.4e38,
    127.5,
    -128.5,
    255.9,
    2147483647.5,
    2147483648.0,
    -2147483649.0,
    4294967296.0,
    9223372036854775807.0,
    -9223372036854775808.0,
    18446744073709551615.0,
    1e22,
    123456.789,
    709.5,
    -745.0,
    88.5,
    1e-9,
    std::f64::consts::PI,
    std::f64::consts::FRAC_PI_2,
];

fn real_values(dtype: DType) -> Vec<Constant> {
    let mut rng = Rng::new(dtype as u64 + 1);
    if dtype.is_float() {
        let random = (0..8).map(|_| (rng.bits() >> 11) as f64 * 2f64.powi(-51) - 2.0).collect::<Vec<f64>>();
        return FLOATS.iter().chain(&random).map(|&value| Constant::from_value(value).cast(dtype)).collect();
    }
    let bits = 8 * dtype.size() as u32;
    let (low, high) = if dtype.is_signed_int() {
        (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
    } else {
        (0, (u64::MAX >> (64 - bits)) as i64)
    };
    let edges = [low, low.wrapping_add(1), high.wrapping_sub(1), high, 0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, -1, -2, -7];
    let number = |value: &i64| Constant::from_value(*value).cast(dtype);
    if dtype == DType::Bool { [0, 1].iter().map(number).collect() } else { edges.iter().map(number).collect() }
}

fn values(dtype: DType) -> Vec<Vec<u8>> {
    let size = dtype.size();
    let bytes = |constant: &Constant| constant.bytes()[..constant.dtype().size()].to_vec();
    let parts = real_values(dtype.real_part());
    if !dtype.is_complex() {
        return parts.iter().map(bytes).collect();
    }
    let chosen: Vec<&Constant> =
        parts.iter().enumerate().filter(|(at, _)| at % 3 == 0 || *at < 8).map(|it| it.1).collect();
    let mut all = Vec::new();
    for re in &chosen {
        for im in &chosen {
            let value = [bytes(re), bytes(im)].concat();
            assert_eq!(value.len(), size);
            all.push(value);
        }
    }
    all
}

/// All combinations of values of these types, or some thousands of them.
fn combinations(types: &[DType]) -> (Vec<(DType, Vec<u8>)>, usize) {
    let all: Vec<Vec<Vec<u8>>> = types.iter().map(|&dtype| values(dtype)).collect();
    let total: usize = all.iter().map(Vec::len).product();
    let step = (total / 4000).max(1) | 1;
    let picks: Vec<usize> = (0..total).step_by(step).collect();
    let mut each = 1;
    let mut operands = Vec::new();
    for (dtype, values) in types.iter().zip(&all) {
        let bytes = picks.iter().flat_map(|pick| values[pick / each % values.len()].clone()).collect();
        operands.push((*dtype, bytes));
        each *= values.len();
    }
    (operands, picks.len())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &opcode in Opcode::ALL.iter().filter(|&&opcode| has_expression(opcode)) {
        let info = opcode.info();
        // Lowering makes a fold of two inputs a selection or a product in front of one of one.
        if !matches!(info.kind, Kind::Elementwise | Kind::Reduction) || opcode.fold_of_one() != opcode {
            continue;
        }
        for input in info.types.iter() {
            let outputs: Vec<DType> = match info.signature {
                Signature::Test => vec![DType::Bool],
                Signature::Abs | Signature::Part => vec![input.real_part()],
                Signature::Cast if input.is_complex() => TypeSet::COMPLEX.iter().collect(),
                Signature::Cast => TypeSet::ALL.iter().collect(),
                _ => vec![input],
            };
            // The interpreter's products are made in a wider type, with other zeros and NaN; MULTIPLY is tested beside.
            if opcode == Opcode::MultiplyReduce && (input.is_float() || input.is_complex()) {
                continue;
            }
            let mut types = vec![input; info.inputs as usize];
            if info.signature == Signature::Select {
                types[0] = DType::Bool;
            }
            for output in outputs {
                for param in (0..=5).filter(|&param| opcode.takes_param(param)) {
                    let (operands, count) = combinations(&types);
                    cases.push(Case { opcode, param, input, output, operands, count });
                }
            }
        }
    }
    cases
}

/// A program that reads all operands and writes all results, case by case.
fn program(cases: &[Case]) -> String {
    let mut text = String::new();
    let mut table = String::new();
    for (number, case) in cases.iter().enumerate() {
        text += &case.function(number);
        let sizes: Vec<String> = case.operands.iter().map(|(_, bytes)| bytes.len().to_string()).collect();
        let (count, bytes) = (case.count, case.count * case.output.size());
        writeln!(table, "  {{case_{number}, {count}, {bytes}, {{{}}}}},", sizes.join(", ")).unwrap();
    }
    let body = format!(
        "#include <stdio.h>\n#include <stdlib.h>\n{text}
struct {{ void (*run)(char **, char *, long); long count, result, operands[3]; }} cases[] = {{\n{table}}};
int main(int argc, char **argv) {{
  FILE *in = fopen(argv[1], \"rb\"), *out = fopen(argv[2], \"wb\");
  if (argc != 3 || !in || !out) return 1;
  for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {{
    char *operands[3] = {{0}}, *result = malloc(cases[c].result);
    for (int k = 0; k < 3 && cases[c].operands[k]; k++) {{
      operands[k] = malloc(cases[c].operands[k]);
      if (fread(operands[k], 1, cases[c].operands[k], in) != (size_t)cases[c].operands[k]) return 2;
    }}
    cases[c].run(operands, result, cases[c].count);
    if (fwrite(result, 1, cases[c].result, out) != (size_t)cases[c].result) return 3;
    for (int k = 0; k < 3; k++) free(operands[k]);
    free(result);
  }}
  return fclose(out) != 0;
}}
"
    );
    complete(&body)
}

fn compile(directory: &Path, text: &str) -> PathBuf {
    let (source, program) = (directory.join("cases.c"), directory.join("cases"));
    std::fs::write(&source, text).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler)
        .args([
            "-std=c99",
            "-O0",
            "-ffp-contract=off",
            "-Wall",
            "-Werror",
            "-Wno-unused-function",
            "-Wno-tautological-compare",
        ])
        .args(["-fsanitize=undefined", "-fno-sanitize=float-divide-by-zero", "-fno-sanitize-recover=all", "-o"])
        .args([&program, &source])
        .arg("-lm")
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A command that runs a program made by the compiler: by `BH_TEST_RUNNER`, if this machine is emulated.
fn running(program: &Path) -> Command {
    let runner = std::env::var("BH_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("the program is a word"));
    command.args(words);
    command
}

#[test]
fn compiled_expressions_equal_the_interpreter() {
    let directory = std::env::temp_dir().join(format!("bh-c-expressions-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let cases = cases();
    let program = compile(&directory, &program(&cases));
    let input: Vec<u8> =
        cases.iter().flat_map(|case| case.operands.iter().flat_map(|(_, bytes)| bytes.clone())).collect();
    let (operands, results) = (directory.join("operands"), directory.join("results"));
    std::fs::write(&operands, input).unwrap();
    let run = running(&program).args([&operands, &results]).output().unwrap();
    assert!(run.status.success(), "{:?} {}", run.status, String::from_utf8_lossy(&run.stderr));
    let output = std::fs::read(&results).unwrap();
    let mut rest = output.as_slice();
    let mut wrong = Vec::new();
    for case in &cases {
        let (found, others) = rest.split_at(case.count * case.output.size());
        rest = others;
        let allowed = match tolerance(case.opcode, case.input) {
            // Another compiler's library.
            Tolerance::Ulps(ulps) => Tolerance::Ulps(ulps.max(4)),
            other => other,
        };
        if let Err(difference) = compare(case.output, &case.expected(), found, &allowed) {
            wrong.push(format!("{}: {difference}", case.title()));
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(rest.is_empty() && cases.len() > 500, "{} cases", cases.len());
}

#[test]
fn random_numbers_are_the_interpreters_bit_by_bit() {
    use bh_bytecode::philox::Random;
    let directory = std::env::temp_dir().join(format!("bh-c-random-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let keys = [0u32, 1, 7, 0xdead_beef, u32::MAX];
    let indices = [0u64, 1, 2, u32::MAX as u64, 1 << 32, u64::MAX, 0x0123_4567_89ab_cdef];
    let mut lines = String::new();
    let mut expected = Vec::new();
    for index in indices {
        for key in keys {
            for (dtype, format) in [(DType::U32, "u32"), (DType::U64, "u64"), (DType::F32, "f32"), (DType::F64, "f64")]
            {
                let call = expression(Opcode::Random, 0, dtype, dtype, &[&format!("{index}UL"), &format!("{key}u")]);
                writeln!(lines, "  {{ bh_{format} x = {call}; fwrite(&x, sizeof x, 1, stdout); }}").unwrap();
            }
            expected.extend(u32::random(index, key).to_ne_bytes());
            expected.extend(u64::random(index, key).to_ne_bytes());
            expected.extend(f32::random(index, key).to_ne_bytes());
            expected.extend(f64::random(index, key).to_ne_bytes());
        }
    }
    let text = complete(&format!("#include <stdio.h>\nint main(void) {{\n{lines}  return 0;\n}}\n"));
    let program = compile(&directory, &text);
    let output = running(&program).output().unwrap().stdout;
    std::fs::remove_dir_all(directory).unwrap();
    assert_eq!(output, expected);
}
