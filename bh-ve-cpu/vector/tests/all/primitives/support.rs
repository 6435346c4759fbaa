//! Shared by the tests: blocks, samples, scalar functions of opcodes, and the check of a primitive against one.

use super::*;
use bh_bytecode::opcode::Signature;
use bh_bytecode::{CastFrom, c64, c128, for_each_opcode};

/// The lengths tried: less than a vector, many vectors at a time, one at a time, and tails.
pub(super) const LENGTHS: [usize; 5] = [1, 7, 64, 105, 131];

/// A block with room for misalignment by one element.
#[derive(Clone)]
pub(super) struct Block {
    words: Vec<u128>,
    offset: usize,
}

impl Block {
    pub(super) fn new(bytes: &[u8], size: usize) -> Block {
        let mut block = Block { words: vec![0; bytes.len() / 16 + 2], offset: size };
        // SAFETY: the words are longer than the bytes by more than the offset.
        unsafe { block.words.as_mut_ptr().cast::<u8>().add(size).copy_from(bytes.as_ptr(), bytes.len()) };
        block
    }

    pub(super) fn pointer(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast::<u8>().wrapping_add(self.offset)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        // SAFETY: only called with counts the block was made for.
        unsafe { std::slice::from_raw_parts(self.pointer(), count).to_vec() }
    }
}

/// Interesting values of a type, in the order of a counter: limits, small numbers, halves, special values.
pub(super) fn sample(dtype: DType, i: usize, salt: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mixed = (i * 7 + salt * 13 + i * i * salt) % 61;
    let whole = [0, 1, -1, 2, 3, -5, 7, 64, -128, 127, 255, 31, i64::MIN, i64::MAX, 1 << 40, -77][mixed % 16];
    let real = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.1,
        -7.25,
        3e9,
        -3e9,
        1e20,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-310,
        65535.9,
        -129.5,
        0.75,
        9_223_372_036_854_775_808.0,
        -9_223_372_036_854_775_808.0,
        18_446_744_073_709_551_616.0,
        2_147_483_647.5,
        4_294_967_295.5,
        -1e20,
    ];
    macro_rules! write {
        ($kind:ident, [$(($type:ty, $variant:ident)),*]) => {
            match dtype {
                $(DType::$variant => write!(@ $kind $type),)*
                #[allow(unreachable_patterns, reason = "the sets are matched one after the other")]
                _ => {}
            }
        };
        (@ whole $type:ty) => { <$type as CastFrom<i64>>::cast_from(whole).write(&mut bytes) };
        (@ real $type:ty) => { (real[mixed % real.len()] as $type).write(&mut bytes) };
        (@ complex $type:ty) => {{
            let mut value = <$type as CastFrom<f64>>::cast_from(real[mixed % real.len()]);
            value.im = real[(mixed * 5 + 2) % real.len()] as _;
            value.write(&mut bytes)
        }};
    }
    match dtype {
        // Memory may hold any byte.
        DType::Bool => bytes[0] = [0, 1, 0, 128, 0, 255, 0, 2][mixed % 8],
        DType::F32 | DType::F64 => types_of!(FLOAT, write, real),
        DType::C64 | DType::C128 => types_of!(COMPLEX, write, complex),
        _ => types_of!(INT, write, whole),
    }
    bytes
}

pub(super) fn samples(dtype: DType, n: usize, salt: usize) -> Vec<u8> {
    (0..n).flat_map(|i| sample(dtype, i, salt)[..dtype.size()].to_vec()).collect()
}

/// Equal bits, any NaN being as good as another.
pub(super) fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    match dtype {
        DType::F32 => a == b || (f32::read(a).is_nan() && f32::read(b).is_nan()),
        DType::F64 => a == b || (f64::read(a).is_nan() && f64::read(b).is_nan()),
        DType::C64 => same(DType::F32, &a[..4], &b[..4]) && same(DType::F32, &a[4..8], &b[4..8]),
        DType::C128 => same(DType::F64, &a[..8], &b[..8]) && same(DType::F64, &a[8..16], &b[8..16]),
        _ => a == b,
    }
}

/// The scalar function of an opcode on bytes.
pub(super) type Scalar = Box<dyn Fn(&[u8], &[u8], &[u8]) -> Vec<u8>>;

pub(super) fn to_bytes<T: Element>(value: T) -> Vec<u8> {
    let mut bytes = [0; 16];
    value.write(&mut bytes);
    bytes[..T::DTYPE.size()].to_vec()
}

macro_rules! by_type {
    (unary, $dtype:expr, $scalar:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(|a: &[u8], _: &[u8], _: &[u8]| to_bytes(scalar::$scalar(<$type>::read(a)))) as Scalar),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
    (binary, $dtype:expr, $scalar:ident, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(|a: &[u8], b: &[u8], _: &[u8]| to_bytes(scalar::$scalar(<$type>::read(a), <$type>::read(b)))) as Scalar),)*
            #[allow(unreachable_patterns, reason = "some sets hold every type")]
            _ => None,
        }
    };
    (powi, $dtype:expr, $param:expr, [$(($type:ty, $variant:ident)),*]) => {
        match $dtype {
            $(DType::$variant => Some(Box::new(move |a: &[u8], _: &[u8], _: &[u8]| to_bytes(scalar::powi(<$type>::read(a), $param))) as Scalar),)*
            _ => None,
        }
    };
}

macro_rules! row {
    ($dtype:ident $param:ident, Elementwise 1 same $set:ident powi) => {
        types_of!($set, by_type, powi, $dtype, $param)
    };
    ($dtype:ident $param:ident, Elementwise 1 cast $set:ident $scalar:ident) => {
        None
    };
    ($dtype:ident $param:ident, Elementwise 1 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, unary, $dtype, $scalar)
    };
    ($dtype:ident $param:ident, Elementwise 2 $signature:ident $set:ident $scalar:ident) => {
        types_of!($set, by_type, binary, $dtype, $scalar)
    };
    ($($other:tt)*) => {
        None
    };
}

macro_rules! define_scalar {
    ($(($variant:ident, $name:tt, $code:tt, $kind:ident, $inputs:tt, $signature:ident $set:ident, $scalar:ident, $neutral:tt, $cost:literal, $expression:tt, [$($front:literal),*], $doc:tt)),* $(,)?) => {
        /// The scalar function of an opcode; selections and casts are tested apart.
        #[allow(unused_variables, reason = "only POWI has an exponent")]
        pub(super) fn scalar_of(opcode: Opcode, dtype: DType, param: u16) -> Option<Scalar> {
            match opcode {
                $(Opcode::$variant => row!(dtype param, $kind $inputs $signature $set $scalar),)*
                _ => None,
            }
        }
    };
}
for_each_opcode!(define_scalar);

/// The result type of an element-wise opcode on a type.
pub(super) fn output_of(opcode: Opcode, dtype: DType) -> DType {
    match opcode.info().signature {
        Signature::Test => DType::Bool,
        Signature::Abs | Signature::Part => dtype.real_part(),
        _ => dtype,
    }
}

/// Runs a primitive on samples, apart and in place, and compares each element.
pub(super) fn check(what: &str, run: PrimFn, inputs: &[DType], output: DType, wanted: &Scalar) {
    for (case, n) in LENGTHS.into_iter().enumerate() {
        let operands: Vec<Vec<u8>> = inputs.iter().enumerate().map(|(k, &dtype)| samples(dtype, n, k + case)).collect();
        let mut blocks: Vec<Block> =
            operands.iter().zip(inputs).map(|(bytes, dtype)| Block::new(bytes, dtype.size())).collect();
        let mut out = Block::new(&vec![0xa5; n * output.size()], output.size());
        let mut pointers = [std::ptr::null::<u8>(); 3];
        for (pointer, block) in pointers.iter_mut().zip(&mut blocks) {
            *pointer = block.pointer();
        }
        // SAFETY: all blocks hold n elements.
        unsafe { run(n, out.pointer(), pointers[0], pointers[1], pointers[2]) };
        let got = out.bytes(n * output.size());
        for i in 0..n {
            let operand = |k: usize| operands.get(k).map_or(&[][..], |bytes| &bytes[i * inputs[k].size()..]);
            let wanted = wanted(operand(0), operand(1), operand(2));
            let got = &got[i * output.size()..][..output.size()];
            assert!(same(output, got, &wanted), "{what}, element {i} of {n}: {got:?} for {wanted:?}");
        }
        for k in 0..inputs.len() {
            if inputs[k].size() != output.size() {
                continue;
            }
            let mut fresh = blocks.clone();
            let mut pointers = [std::ptr::null::<u8>(); 3];
            for (pointer, block) in pointers.iter_mut().zip(&mut fresh) {
                *pointer = block.pointer();
            }
            // SAFETY: all blocks hold n elements; the result replaces one operand, of the same size.
            unsafe { run(n, pointers[k].cast_mut(), pointers[0], pointers[1], pointers[2]) };
            let replaced = fresh[k].bytes(n * output.size());
            let equal = replaced.chunks(output.size()).zip(got.chunks(output.size())).all(|(a, b)| same(output, a, b));
            assert!(equal, "{what} in place of operand {k}, length {n}");
        }
    }
}
