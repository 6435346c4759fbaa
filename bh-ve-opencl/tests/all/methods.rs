//! Extension methods on the device: products of matrices and vectors in all layouts, and kernels of the user. Numbers are
//! small and whole, so that results are exact in every type. Machines without OpenCL leave these tests out, and say so.

use crate::support;

use bh_bytecode::batch::Extension;
use bh_bytecode::random::{Program, Rng};
use bh_bytecode::{Base, Batch, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::stack::Stack;
use bh_tests::{run, stacks};
use support::{alone, count, load};

const TYPES: [DType; 6] = [DType::F64, DType::F32, DType::I32, DType::I64, DType::C64, DType::U8];

/// Registers a method with a stack and gives its opcode.
fn method(stack: &mut Stack, batch: &mut Batch, name: &str) -> Opcode {
    let opcode = Opcode(Opcode::FIRST_EXTENSION + 1);
    assert!(stack.extmethod(name, opcode).unwrap(), "{name}");
    let (name, name_len) = batch.push_string(name);
    batch.extensions.push(Extension { opcode, reserved: 0, name, name_len });
    opcode
}

/// A matrix or vector whose elements are `number(row, column)`: by rows, by columns, or backward with gaps.
fn array(program: &mut Program, dtype: DType, shape: &[i64], layout: usize, numbers: Option<&[i64]>) -> Operand {
    let len: i64 = shape.iter().product();
    let gap = 1 + i64::from(layout == 2);
    let (start, stride) = match (layout, shape) {
        (0, &[_, columns]) => (0, vec![columns, 1]),
        (1, &[rows, _]) => (0, vec![1, rows]),
        (_, &[rows, columns]) => ((rows - 1) * columns * gap + 1, vec![-columns * gap, gap]),
        (2, _) => (1, vec![2]),
        _ => (0, vec![1]),
    };
    let elements = (len * gap + 2).max(1);
    let id = program.batch.bases.len() as u64 + 1;
    let flags = base_flags::LIVE_OUT | if numbers.is_some() { 0 } else { base_flags::BORN };
    let view = View::new(start, shape, &stride).unwrap();
    if let Some(numbers) = numbers {
        let mut bytes = vec![0; elements as usize * dtype.size()];
        for (at, number) in bh_bytecode::interp::offsets(start, shape, &stride).zip(numbers) {
            bytes[at as usize * dtype.size()..][..dtype.size()].copy_from_slice(&element(dtype, *number));
        }
        program.memory.insert(id, bytes);
    }
    let base = program.batch.push_base(Base { flags, ..Base::new(id, dtype, elements) });
    Operand::view(program.batch.push_view(base, &view))
}

fn element(dtype: DType, number: i64) -> Vec<u8> {
    match dtype {
        DType::F64 => (number as f64).to_ne_bytes().to_vec(),
        DType::F32 => (number as f32).to_ne_bytes().to_vec(),
        DType::C64 => [number as f32, 0.0].map(f32::to_ne_bytes).concat(),
        _ => number.to_ne_bytes()[..dtype.size()].to_vec(),
    }
}

/// Runs the program and compares the view of `out` with these numbers.
fn compare(stack: &mut Stack, program: &Program, out: Operand, expected: &[i64], what: &str) {
    let batch = program.batch.as_ref();
    let view = batch.view(out.as_view().unwrap());
    let (base, dtype) = (batch.base_of(out.as_view().unwrap()).unwrap().id, batch.dtype(out).unwrap());
    let memory = run::run(stack, program).unwrap();
    let bytes = memory.get(base).unwrap();
    for (at, number) in bh_bytecode::interp::offsets(view.start(), view.shape(), view.stride()).zip(expected) {
        let found = &bytes[at as usize * dtype.size()..][..dtype.size()];
        assert_eq!(found, element(dtype, *number), "{what}: element at {at} should be {number}");
    }
}

#[test]
fn products_of_matrices_and_vectors() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let mut rng = Rng::new(7);
    let sizes = [(33, 17, 40), (70, 9, 1), (5, 3, 4), (1, 30, 20), (6, 5, 7), (20, 0, 6)];
    for (number, (m, k, n)) in sizes.into_iter().enumerate() {
        let dtype = TYPES[number % TYPES.len()];
        let mut program = Program { batch: Batch::default(), memory: Default::default() };
        let opcode = method(&mut stack, &mut program.batch, "matmul");
        let signed = if dtype == DType::U8 { 0 } else { 3 };
        let mut numbers = |len: i64| (0..len).map(|_| rng.below(6) as i64 - signed).collect::<Vec<_>>();
        let (a, b) = (numbers(m * k), numbers(k * n));
        // Vectors come as such, and as matrices of one row or column.
        let vectors = number % 2 == 1;
        let left = if m == 1 && vectors { vec![k] } else { vec![m, k] };
        let right = if n == 1 && vectors { vec![k] } else { vec![k, n] };
        let shape: Vec<i64> = match (left.len(), right.len()) {
            (1, 1) => vec![],
            (1, _) => vec![n],
            (_, 1) => vec![m],
            _ => vec![m, n],
        };
        let layouts = [rng.below(3), rng.below(3), rng.below(2)];
        let [left, right] = [(left, layouts[0], &a), (right, layouts[1], &b)]
            .map(|(shape, layout, numbers)| array(&mut program, dtype, &shape, layout, Some(numbers)));
        let out = array(&mut program, dtype, &shape, layouts[2], None);
        program.batch.push_instr(Instr { outputs: 1, ..Instr::new(opcode, &[out, left, right]) });
        let at = |row: i64, column: i64| {
            (0..k).map(|term| a[(row * k + term) as usize] * b[(term * n + column) as usize]).sum::<i64>()
        };
        let expected: Vec<i64> = (0..m * n).map(|number| at(number / n, number % n)).collect();
        compare(&mut stack, &program, out, &expected, &format!("{dtype} {m}x{k}x{n} {layouts:?}"));
    }
    assert!(count(&stack, "kernels") >= sizes.len() as u64);
}

/// A call of `solve` for a stack of systems of `n` equations, whose matrices need exchanges of rows and whose solutions are whole
/// numbers; the matrix with the number `singular` has a row of zeros. And the solutions. The stack has two axes, and its matrices
/// lie in the other order than its right sides.
fn systems(stack: &mut Stack, [outer, inner]: [i64; 2], n: i64, singular: Option<i64>) -> (Program, Operand, Vec<i64>) {
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let opcode = method(stack, &mut program.batch, "solve");
    let mut rng = Rng::new(5);
    let count = outer * inner;
    let (mut matrices, mut sides, mut solutions) =
        (vec![0; (count * n * n) as usize], vec![0; (count * n) as usize], vec![0; (count * n) as usize]);
    for number in 0..count {
        // An upper triangle whose rows stand in another order.
        let entry = |row: i64, column: i64, below: i64| match column - (row + number) % n {
            0 => 2,
            more if more > 0 && Some(number) != singular => below,
            _ => 0,
        };
        let mut matrix: Vec<i64> = (0..n * n).map(|at| entry(at / n, at % n, rng.below(5) as i64 - 2)).collect();
        if Some(number) == singular {
            matrix[..n as usize].fill(0);
        }
        let x: Vec<i64> = (0..n).map(|_| rng.below(9) as i64 - 4).collect();
        let side = |row: usize| (0..n as usize).map(|at| matrix[row * n as usize + at] * x[at]).sum::<i64>();
        let (own, other) = ((number * n) as usize, (number % inner * outer + number / inner) * n * n);
        (0..n as usize).for_each(|row| (sides[own + row], solutions[own + row]) = (side(row), x[row]));
        matrices[other as usize..][..matrix.len()].copy_from_slice(&matrix);
    }
    let a = array(&mut program, DType::F64, &[count * n, n], 0, Some(&matrices));
    let b = array(&mut program, DType::F64, &[count * n, 1], 0, Some(&sides));
    let out = array(&mut program, DType::F64, &[count * n, 1], 0, None);
    let bases = [out, a, b].map(|operand| program.batch.views[operand.as_view().unwrap() as usize].base);
    let view = |shape: &[i64], stride: &[i64]| View::new(0, shape, stride).unwrap();
    let vectors = view(&[outer, inner, n], &[inner * n, n, 1]);
    let views = [vectors, view(&[outer, inner, n, n], &[n * n, outer * n * n, n, 1]), vectors];
    let operands: Vec<Operand> =
        views.iter().zip(bases).map(|(view, base)| Operand::view(program.batch.push_view(base, view))).collect();
    program.batch.push_instr(Instr { outputs: 1, ..Instr::new(opcode, &operands) });
    (program, out, solutions)
}

#[test]
fn stacks_of_systems_are_one_kernel_and_few_systems_are_the_next_engines() {
    let _alone = alone();
    let keys = "specialise = 'off'\ncache_dir = ''\nplacement = 'device'";
    for n in [1, 7, 25, 90] {
        let Some(mut stack) = load("'opencl', 've-cpu'", keys) else { return };
        let (program, out, solutions) = systems(&mut stack, [5, 4], n, None);
        compare(&mut stack, &program, out, &solutions, &format!("20 systems of {n}"));
        assert_eq!(count(&stack, "kernels"), 1, "20 systems of {n}");
        let (program, out, solutions) = systems(&mut stack, [3, 1], n, None);
        compare(&mut stack, &program, out, &solutions, &format!("3 systems of {n}"));
        assert_eq!((count(&stack, "kernels"), count(&stack, "blocks too small")), (1, 1), "3 systems of {n}");
    }
}

#[test]
fn of_a_stack_with_a_singular_system_the_call_fails() {
    let _alone = alone();
    for n in [6, 30] {
        let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
        let (program, _, _) = systems(&mut stack, [4, 5], n, Some(11));
        let error = run::run(&mut stack, &program).unwrap_err();
        assert!(error.to_string().contains("singular"), "{error}");
        assert_eq!(error.instr, Some(0), "{error}");
    }
}

#[test]
fn kernels_of_the_user() {
    let _alone = alone();
    let Some(mut stack) = load("'opencl'", "specialise = 'off'\ncache_dir = ''") else { return };
    let file = std::env::temp_dir().join(format!("bh-device-method-{}.cl", std::process::id()));
    let (kernel, global, index) = match stacks::title() {
        "CUDA" => ("extern \"C\" __global__", "", "blockIdx.x * blockDim.x + threadIdx.x"),
        _ => ("__kernel", "__global", "get_global_id(0)"),
    };
    let text = format!(
        "{kernel} void twice({global} float *out, {global} const float *in, {global} const long *views) {{\n\
         const long at = {index};\n\
         if (at < views[0]) out[views[1] + at * views[19]] = 2 * in[views[36] + at * views[54]];\n}}\n"
    );
    std::fs::write(&file, text).unwrap();
    let asked = |file: &str| format!("extmethod-library {} twice {file}", stacks::driver());
    let load_file = asked(&file.display().to_string());
    let answer = stack.message(&load_file).unwrap();
    assert!(!answer.is_empty());
    let mut program = Program { batch: Batch::default(), memory: Default::default() };
    let opcode = method(&mut stack, &mut program.batch, "twice");
    let numbers: Vec<i64> = (0..50).collect();
    let input = array(&mut program, DType::F32, &[50], 2, Some(&numbers));
    let out = array(&mut program, DType::F32, &[50], 0, None);
    program.batch.push_instr(Instr { outputs: 1, ..Instr::new(opcode, &[out, input]) });
    compare(&mut stack, &program, out, &numbers.iter().map(|it| 2 * it).collect::<Vec<_>>(), "twice");
    // A kernel that cannot be built: the driver's words and the text are in the error.
    std::fs::write(&file, format!("{kernel} void twice({global} float *out) {{ out[0] = nonsense; }}\n")).unwrap();
    stack.message(&load_file).unwrap();
    assert!(stack.extmethod("twice", opcode).unwrap());
    let error = run::run(&mut stack, &program).unwrap_err().to_string();
    assert!(error.contains("building a kernel failed") && error.contains("nonsense"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let missing = stack.message(&asked("/no/such/file.cl")).unwrap_err().to_string();
    assert!(missing.contains("/no/such/file.cl"), "{missing}");
}
