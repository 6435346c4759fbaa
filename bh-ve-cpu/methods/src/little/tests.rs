//! Random stacks, in all types, sizes, layouts and at all levels: results by what they have to fulfil.

use super::work::{Determinant, Inverse};
use super::*;
use crate::multiply;
use crate::view::Layout;
use bh_bytecode::c128;

/// Random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.next() + 1.0) / 2.0 * count as f64) as usize % count
    }
}

/// An element of an array, as a complex number and back.
trait Entry: Kind + Copy + Default + 'static {
    const DTYPE: DType;
    const EPSILON: f64;
    const IS_COMPLEX: bool;
    fn to(self) -> c128;
    fn of(number: c128) -> Self;
}

macro_rules! entries {
    ($($real:ident $dtype:ident $complex:ident),*) => {$(
        impl Entry for $real {
            const DTYPE: DType = DType::$dtype;
            const EPSILON: f64 = $real::EPSILON as f64;
            const IS_COMPLEX: bool = false;
            fn to(self) -> c128 {
                Complex { re: self.into(), im: 0.0 }
            }
            fn of(number: c128) -> $real {
                number.re as $real
            }
        }

        impl Entry for Complex<$real> {
            const DTYPE: DType = DType::$complex;
            const EPSILON: f64 = $real::EPSILON as f64;
            const IS_COMPLEX: bool = true;
            fn to(self) -> c128 {
                Complex { re: self.re.into(), im: self.im.into() }
            }
            fn of(number: c128) -> Complex<$real> {
                Complex { re: number.re as $real, im: number.im as $real }
            }
        }
    )*};
}
entries!(f32 F32 C64, f64 F64 C128);

fn plus(a: c128, b: c128) -> c128 {
    Complex { re: a.re + b.re, im: a.im + b.im }
}

fn times(a: c128, b: c128) -> c128 {
    Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
}

fn conj(a: c128) -> c128 {
    Complex { re: a.re, im: -a.im }
}

/// A matrix by rows.
#[derive(Clone)]
struct Matrix {
    sides: [usize; 2],
    elements: Vec<c128>,
}

impl Matrix {
    fn new(sides: [usize; 2], element: impl FnMut(usize, usize) -> c128) -> Matrix {
        let mut element = element;
        let elements = (0..sides[0] * sides[1]).map(|at| element(at / sides[1], at % sides[1])).collect();
        Matrix { sides, elements }
    }

    fn unit(n: usize) -> Matrix {
        Matrix::new([n, n], |i, j| Complex { re: f64::from(i == j), im: 0.0 })
    }

    fn at(&self, i: usize, j: usize) -> c128 {
        self.elements[i * self.sides[1] + j]
    }

    fn adjoint(&self) -> Matrix {
        Matrix::new([self.sides[1], self.sides[0]], |i, j| conj(self.at(j, i)))
    }

    fn product(&self, other: &Matrix) -> Matrix {
        let terms = |i, j| (0..self.sides[1]).map(move |k| times(self.at(i, k), other.at(k, j)));
        Matrix::new([self.sides[0], other.sides[1]], |i, j| terms(i, j).fold(Complex { re: 0.0, im: 0.0 }, plus))
    }

    fn size(&self) -> f64 {
        self.elements.iter().fold(0.0, |most, x| f64::max(most, x.re.abs() + x.im.abs()))
    }

    fn apart(&self, other: &Matrix) -> f64 {
        assert_eq!(self.sides, other.sides);
        let differences =
            self.elements.iter().zip(&other.elements).map(|(a, b)| (a.re - b.re).abs() + (a.im - b.im).abs());
        differences.fold(0.0, |most, x| if x <= most { most } else { x })
    }
}

/// Matrices in memory: an array with room between elements, perhaps by columns.
struct Held<E> {
    memory: Vec<E>,
    shape: Vec<i64>,
    stride: Vec<isize>,
}

impl<E: Entry> Held<E> {
    fn new(count: usize, sides: &[usize], random: &mut Random) -> Held<E> {
        let (gap, turned) = (1 + random.below(2) as isize, random.below(2) == 1 && sides.len() == 2);
        let size = size_of::<E>() as isize;
        let elements: usize = sides.iter().product();
        let mut stride = vec![elements as isize * gap * size];
        stride.extend(match *sides {
            [rows, columns] => {
                if turned { [1, rows as isize] } else { [columns as isize, 1] }.map(|step| step * gap * size).to_vec()
            }
            [_] => vec![gap * size],
            _ => vec![],
        });
        let shape = [count].iter().chain(sides).map(|&extent| extent as i64).collect();
        Held { memory: vec![E::default(); count * elements * gap as usize], shape, stride }
    }

    fn of(matrices: &[Matrix], random: &mut Random) -> Held<E> {
        let mut held = Held::new(matrices.len(), &matrices[0].sides, random);
        for (number, matrix) in matrices.iter().enumerate() {
            for i in 0..matrix.sides[0] {
                for j in 0..matrix.sides[1] {
                    let at = held.place(number, i, j);
                    held.memory[at] = E::of(matrix.at(i, j));
                }
            }
        }
        held
    }

    fn place(&self, number: usize, i: usize, j: usize) -> usize {
        let steps = [number, i, j].into_iter().zip(&self.stride).map(|(index, stride)| index * *stride as usize);
        steps.sum::<usize>() / size_of::<E>()
    }

    fn matrix(&self, number: usize) -> Matrix {
        let extent = |axis: usize| self.shape.get(axis).map_or(1, |&extent| extent as usize);
        Matrix::new([extent(1), extent(2)], |i, j| self.memory[self.place(number, i, j)].to())
    }

    /// The first matrix, bytes from one to the next, and their form.
    fn matrices(&mut self) -> (*mut u8, usize, multiply::Matrix) {
        let (data, size) = (self.memory.as_mut_ptr().cast::<u8>(), size_of::<E>() as isize);
        let [row_stride, column_stride] = [1, 2].map(|axis| self.stride[axis] / size);
        let matrix = multiply::Matrix { data, rows: self.shape[1], columns: self.shape[2], row_stride, column_stride };
        (data, self.stride[0] as usize, matrix)
    }

    fn view(&mut self, dtype: DType) -> Strided<'_> {
        let layout = Layout { dtype, shape: &self.shape, stride: self.stride.clone() };
        // SAFETY: the memory has the elements, and nobody else uses it meanwhile.
        unsafe { Strided::at_address(self.memory.as_mut_ptr().cast(), layout) }
    }
}

fn run_at<W: Work, E: Entry>(level: Level, outputs: &[Strided<'_>], inputs: &[Strided<'_>]) -> Outcome {
    let call = Call { name: "", outputs, inputs, memory: None };
    at_level::<W, E>(level, &Stack { call: &call, axes: 1 }, 0..inputs[0].shape[0])
}

/// Random matrices; some are singular, or zero.
fn matrices<E: Entry>(count: usize, sides: [usize; 2], random: &mut Random) -> Vec<Matrix> {
    let one = |random: &mut Random| {
        let im = if E::IS_COMPLEX { random.next() } else { 0.0 };
        E::of(Complex { re: random.next(), im }).to()
    };
    (0..count).map(|_| Matrix::new(sides, |_, _| one(random))).collect()
}

/// Matrices of which the eigenvalues are above 1.
fn definite<E: Entry>(count: usize, n: usize, random: &mut Random) -> Vec<Matrix> {
    let make = |a: Matrix| {
        let mut product = a.product(&a.adjoint());
        (0..n).for_each(|k| product.elements[k * n + k].re += 1.0);
        product.elements.iter_mut().for_each(|x| *x = E::of(*x).to());
        product
    };
    matrices::<E>(count, [n, n], random).into_iter().map(make).collect()
}

fn is_small(found: f64, bound: f64, what: &str, [rows, columns]: [usize; 2], level: Level) {
    assert!(found <= bound, "{what} of {rows} × {columns} at {level:?}: {found} above {bound}");
}

/// A test for all kinds of elements and levels.
macro_rules! everywhere {
    ($name:ident, $test:ident) => {
        #[test]
        fn $name() {
            for level in Level::available() {
                let mut random = Random(7);
                $test::<f32>(level, &mut random);
                $test::<f64>(level, &mut random);
                $test::<Complex<f32>>(level, &mut random);
                $test::<Complex<f64>>(level, &mut random);
            }
        }
    };
}
everywhere!(products_are_sums, products);
everywhere!(systems_are_solved, solves);
everywhere!(definite_matrices_have_factors, factors);
everywhere!(columns_become_orthonormal, orthonormal);
everywhere!(eigenvalues_and_vectors_fit, eigenvalues);
everywhere!(singular_values_and_vectors_fit, singular_values);

const COUNT: usize = 21;

fn products<E: Entry>(level: Level, random: &mut Random) {
    for [rows, inner] in sides(random) {
        let columns = 1 + random.below(SIDE);
        let (a, b) = (matrices::<E>(COUNT, [rows, inner], random), matrices::<E>(COUNT, [inner, columns], random));
        let (mut left, mut right) = (Held::<E>::of(&a, random), Held::<E>::of(&b, random));
        let mut out = Held::<E>::new(COUNT, &[rows, columns], random);
        let held = [out.matrices(), left.matrices(), right.matrices()];
        let mut places = (0..COUNT).map(|number| held.map(|(first, step, _)| first.wrapping_add(number * step)));
        // SAFETY: the memory has the elements of these matrices, and nobody else uses it meanwhile.
        unsafe { product::at_level(level, E::DTYPE, held.map(|(.., matrix)| matrix), &mut places) };
        for number in 0..COUNT {
            let bound = 4.0 * inner as f64 * E::EPSILON;
            is_small(
                out.matrix(number).apart(&a[number].product(&b[number])),
                bound,
                "a product",
                [rows, columns],
                level,
            );
        }
    }
}

fn solves<E: Entry>(level: Level, random: &mut Random) {
    for n in 1..=SIDE {
        let bound = 40.0 * n as f64 * E::EPSILON;
        let a = matrices::<E>(COUNT, [n, n], random);
        let b = matrices::<E>(COUNT, [n, 1 + random.below(SIDE)], random);
        let (mut left, mut right) = (Held::<E>::of(&a, random), Held::<E>::of(&b, random));
        let mut x = Held::<E>::new(COUNT, &b[0].sides, random);
        run_at::<Solve, E>(level, &[x.view(E::DTYPE)], &[left.view(E::DTYPE), right.view(E::DTYPE)]).unwrap();
        let mut inverse = Held::<E>::new(COUNT, &[n, n], random);
        let mut determinants = Held::<E>::new(COUNT, &[], random);
        let mut doubts = [0u8; COUNT];
        let first = doubts.as_mut_ptr();
        let (shape, stride) = ([COUNT as i64], vec![1]);
        // SAFETY: the memory has the elements, and nobody else uses it meanwhile.
        let doubt = || unsafe {
            let layout = Layout { dtype: DType::Bool, shape: &shape, stride: stride.clone() };
            Strided::at_address(first, layout)
        };
        run_at::<Inverse, E>(level, &[inverse.view(E::DTYPE), doubt()], &[left.view(E::DTYPE)]).unwrap();
        run_at::<Determinant, E>(level, &[determinants.view(E::DTYPE), doubt()], &[left.view(E::DTYPE)]).unwrap();
        for number in 0..COUNT {
            let (x, inverse) = (x.matrix(number), inverse.matrix(number));
            let share = |x: &Matrix| bound * a[number].size() * x.size();
            is_small(a[number].product(&x).apart(&b[number]), share(&x), "a solution", [n, n], level);
            is_small(a[number].product(&inverse).apart(&Matrix::unit(n)), share(&inverse), "an inverse", [n, n], level);
            let found = determinants.matrix(number);
            let wanted = Matrix::new([1, 1], |_, _| determinant(a[number].clone()));
            is_small(
                found.apart(&wanted),
                bound * (n as f64).powi(n as i32 / 2).max(1.0),
                "a determinant",
                [n, n],
                level,
            );
        }
    }
}

/// The determinant, by elimination in double precision.
fn determinant(mut a: Matrix) -> c128 {
    let n = a.sides[0];
    let mut product = Complex { re: 1.0, im: 0.0 };
    for k in 0..n {
        let size = |x: c128| x.re.abs() + x.im.abs();
        let pivot = (k..n).max_by(|&i, &j| size(a.at(i, k)).total_cmp(&size(a.at(j, k)))).unwrap();
        for j in 0..n {
            a.elements.swap(k * n + j, pivot * n + j);
        }
        let x = a.at(k, k);
        let sign = if pivot == k { 1.0 } else { -1.0 };
        product = times(product, Complex { re: x.re * sign, im: x.im * sign });
        let square = x.re * x.re + x.im * x.im;
        let inverse = Complex { re: x.re / square, im: -x.im / square };
        for i in k + 1..n {
            let factor = times(a.at(i, k), inverse);
            for j in k..n {
                let taken = times(factor, a.at(k, j));
                a.elements[i * n + j] = plus(a.at(i, j), Complex { re: -taken.re, im: -taken.im });
            }
        }
    }
    product
}

fn factors<E: Entry>(level: Level, random: &mut Random) {
    for n in 1..=SIDE {
        let a = definite::<E>(COUNT, n, random);
        let (mut held, mut out) = (Held::<E>::of(&a, random), Held::<E>::new(COUNT, &[n, n], random));
        run_at::<Cholesky, E>(level, &[out.view(E::DTYPE)], &[held.view(E::DTYPE)]).unwrap();
        for (number, a) in a.iter().enumerate() {
            let factor = out.matrix(number);
            let bound = 4.0 * n as f64 * E::EPSILON * a.size();
            is_small(factor.product(&factor.adjoint()).apart(a), bound, "a factor", [n, n], level);
            assert!((0..n).all(|i| (i + 1..n).all(|j| factor.at(i, j) == Complex { re: 0.0, im: 0.0 })));
        }
        let mut bad = a;
        bad[COUNT - 1].elements[n * n - 1].re = -1.0;
        let mut held = Held::<E>::of(&bad, random);
        let failed = run_at::<Cholesky, E>(level, &[out.view(E::DTYPE)], &[held.view(E::DTYPE)]);
        assert!(failed.is_err_and(|(first, text)| first > 0 && text.contains("not positive definite")));
    }
}

/// Matrices of any rank: some columns are zero or equal.
fn any_rank<E: Entry>(sides: [usize; 2], random: &mut Random) -> Vec<Matrix> {
    let mut all = matrices::<E>(COUNT, sides, random);
    for matrix in all.iter_mut().step_by(3) {
        let [one, other] = [random.below(sides[1]), random.below(sides[1])];
        let factor = f64::from(random.below(2) as u32);
        for row in matrix.elements.chunks_mut(sides[1]) {
            row[one] = E::of(Complex { re: row[other].re * factor, im: row[other].im * factor }).to();
        }
    }
    all[1].elements.fill(Complex { re: 0.0, im: 0.0 });
    all
}

/// Sides of matrices, not all of them square.
fn sides(random: &mut Random) -> Vec<[usize; 2]> {
    (0..12)
        .map(|_| [1 + random.below(SIDE), 1 + random.below(SIDE)])
        .chain([[SIDE; 2], [1, 1], [SIDE, 1], [1, SIDE]])
        .collect()
}

fn is_orthonormal<E: Entry>(matrix: &Matrix, what: &str, level: Level) {
    let product = matrix.adjoint().product(matrix);
    let bound = 100.0 * matrix.sides[0] as f64 * E::EPSILON;
    is_small(product.apart(&Matrix::unit(matrix.sides[1])), bound, what, matrix.sides, level);
}

fn orthonormal<E: Entry>(level: Level, random: &mut Random) {
    for [rows, columns] in sides(random) {
        let count = if random.below(2) == 1 { rows } else { rows.min(columns) };
        let a = any_rank::<E>([rows, columns], random);
        let mut held = Held::<E>::of(&a, random);
        let (mut q, mut r) =
            (Held::<E>::new(COUNT, &[rows, count], random), Held::<E>::new(COUNT, &[count, columns], random));
        run_at::<Qr, E>(level, &[q.view(E::DTYPE), r.view(E::DTYPE)], &[held.view(E::DTYPE)]).unwrap();
        for (number, a) in a.iter().enumerate() {
            let (q, r) = (q.matrix(number), r.matrix(number));
            is_orthonormal::<E>(&q, "Q", level);
            is_small(q.product(&r).apart(a), 40.0 * rows as f64 * E::EPSILON, "QR", [rows, columns], level);
            assert!((0..count).all(|i| (0..i.min(columns)).all(|j| r.at(i, j) == Complex { re: 0.0, im: 0.0 })));
        }
    }
}

/// A diagonal matrix of the first numbers of a column.
fn diagonal(values: &Matrix, [rows, columns]: [usize; 2]) -> Matrix {
    let value = |i: usize| if i < values.sides[0] { values.at(i, 0).re } else { 0.0 };
    Matrix::new([rows, columns], |i, j| Complex { re: if i == j { value(i) } else { 0.0 }, im: 0.0 })
}

/// The real type of the precision of an element.
trait Precision: Entry {
    type Real: Entry;
}

impl Precision for f32 {
    type Real = f32;
}
impl Precision for f64 {
    type Real = f64;
}
impl Precision for Complex<f32> {
    type Real = f32;
}
impl Precision for Complex<f64> {
    type Real = f64;
}

fn eigenvalues<E: Precision>(level: Level, random: &mut Random) {
    for n in 1..=SIDE {
        let mut a = definite::<E>(COUNT, n, random);
        a[1].elements.fill(Complex { re: 0.0, im: 0.0 });
        a[2] = Matrix::unit(n);
        a[3].elements.iter_mut().for_each(|x| *x = Complex { re: 1.0, im: 0.0 });
        let mut held = Held::<E>::of(&a, random);
        let mut values = Held::<E::Real>::new(COUNT, &[n], random);
        let mut alone = Held::<E::Real>::new(COUNT, &[n], random);
        let mut vectors = Held::<E>::new(COUNT, &[n, n], random);
        let outputs = [values.view(E::Real::DTYPE), vectors.view(E::DTYPE)];
        run_at::<Eigen, E>(level, &outputs, &[held.view(E::DTYPE)]).unwrap();
        run_at::<Eigen, E>(level, &[alone.view(E::Real::DTYPE)], &[held.view(E::DTYPE)]).unwrap();
        for (number, a) in a.iter().enumerate() {
            let (values, vectors) = (values.matrix(number), vectors.matrix(number));
            is_orthonormal::<E>(&vectors, "eigenvectors", level);
            let bound = 40.0 * n as f64 * E::EPSILON * a.size();
            let products = vectors.product(&diagonal(&values, [n, n]));
            is_small(a.product(&vectors).apart(&products), bound, "eigenvalues", [n, n], level);
            assert!(values.elements.is_sorted_by(|x, y| x.re <= y.re));
            assert_eq!(values.apart(&alone.matrix(number)), 0.0);
        }
    }
}

fn singular_values<E: Precision>(level: Level, random: &mut Random) {
    for [rows, columns] in sides(random) {
        let (a, short) = (any_rank::<E>([rows, columns], random), rows.min(columns));
        let [left, right] = if random.below(2) == 1 { [rows, columns] } else { [short; 2] };
        let mut held = Held::<E>::of(&a, random);
        let mut values = Held::<E::Real>::new(COUNT, &[short], random);
        let mut alone = Held::<E::Real>::new(COUNT, &[short], random);
        let (mut u, mut vh) =
            (Held::<E>::new(COUNT, &[rows, left], random), Held::<E>::new(COUNT, &[right, columns], random));
        let outputs = [u.view(E::DTYPE), values.view(E::Real::DTYPE), vh.view(E::DTYPE)];
        run_at::<Singular, E>(level, &outputs, &[held.view(E::DTYPE)]).unwrap();
        run_at::<Singular, E>(level, &[alone.view(E::Real::DTYPE)], &[held.view(E::DTYPE)]).unwrap();
        for (number, a) in a.iter().enumerate() {
            let (u, values, vh) = (u.matrix(number), values.matrix(number), vh.matrix(number));
            is_orthonormal::<E>(&u, "left vectors", level);
            is_orthonormal::<E>(&vh.adjoint(), "right vectors", level);
            let bound = 100.0 * rows.max(columns) as f64 * E::EPSILON;
            let product = u.product(&diagonal(&values, [left, right])).product(&vh);
            is_small(product.apart(a), bound, "singular values", [rows, columns], level);
            assert!(values.elements.is_sorted_by(|x, y| x.re >= y.re) && values.elements.iter().all(|x| x.re >= 0.0));
            assert_eq!(values.apart(&alone.matrix(number)), 0.0);
        }
    }
}

#[test]
fn bits_of_a_system_do_not_depend_on_others() {
    let mut random = Random(3);
    for level in Level::available() {
        let a = matrices::<f64>(COUNT, [9, 5], &mut random);
        let values = |matrices: &[Matrix], random: &mut Random| {
            let mut held = Held::<f64>::of(matrices, random);
            let mut values = Held::<f64>::new(matrices.len(), &[5], random);
            run_at::<Singular, f64>(level, &[values.view(DType::F64)], &[held.view(DType::F64)]).unwrap();
            (0..matrices.len()).flat_map(|number| values.matrix(number).elements).map(|x| x.re).collect::<Vec<f64>>()
        };
        let together = values(&a, &mut random);
        let apart: Vec<f64> = a.chunks(2).flat_map(|few| values(few, &mut random)).collect();
        assert_eq!(together, apart, "{level:?}");
    }
}

#[test]
fn pivots_that_rounding_makes_are_doubtful() {
    let parts = |numbers: &[f64]| numbers.iter().map(|&x| (x, 0.0)).collect::<Vec<(f64, f64)>>();
    let doubtful = |numbers: &[f64], n: usize| eliminate::is_doubtful(&mut parts(numbers), n, f64::EPSILON);
    assert!(doubtful(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 3));
    assert!(doubtful(&[0.1, 0.2, 0.3, 0.6], 2));
    assert!(doubtful(&[0.0], 1) && doubtful(&[f64::NAN], 1) && doubtful(&[f64::INFINITY, 1.0, 1.0, 1.0], 2));
    // Scales of rows and columns are no reason.
    assert!(!doubtful(&[1.0, 1.0, 1e-20, 2e-20], 2));
    assert!(!doubtful(&[1.0, 1e-20, 1.0, 2e-20], 2));
    assert!(!doubtful(&[1e-200, 0.0, 0.0, 1e200], 2));
}
