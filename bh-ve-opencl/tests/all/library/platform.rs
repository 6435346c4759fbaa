//! OpenCL's devices with a library that works on the host: what the engine gives to libraries and takes from them is that of a device
//! whose maker has some.

use super::numbers::{C, add, conjugate, divide, less, scale, size, times};
use bh_core::config::Row;
use bh_core::{Host, Result, keys};
use bh_device::device::DeviceInfo;
use bh_device::driver::{
    Buffer, Direction, Driver, Event, Factors, Libraries, Options, Pinned, Platform, Program, Region, Subject, Task,
    Transforms,
};
use bh_device::language::Language;
use bh_ve_opencl::OpenCl;
use std::ffi::c_void;
use std::sync::Arc;

/// OpenCL with the library.
pub struct Hosted;

impl Platform for Hosted {
    const NAME: &'static str = "hosted";
    const TITLE: &'static str = "OpenCL with a library";
    const KEYS: &'static [Row] = keys::opencl::ALL;
    const MEMORY: u32 = OpenCl::MEMORY;

    fn devices() -> Result<Vec<DeviceInfo>> {
        OpenCl::devices()
    }

    fn open(device: DeviceInfo, options: Options) -> Result<Arc<dyn Driver>> {
        Ok(Arc::new(Device(OpenCl::open(device, options)?)))
    }

    fn borrow(_: &Host, _: Options) -> Option<Result<Arc<dyn Driver>>> {
        None
    }
}

/// A device of OpenCL.
struct Device(Arc<dyn Driver>);

impl Driver for Device {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn language(&self) -> &'static Language {
        self.0.language()
    }

    fn identity(&self) -> String {
        self.0.identity()
    }

    fn shares_queue(&self) -> bool {
        self.0.shares_queue()
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn Buffer>> {
        self.0.allocate(bytes)
    }

    unsafe fn adopt(&self, handle: *mut c_void, bytes: usize) -> Result<Box<dyn Buffer>> {
        // SAFETY: as `# Safety` asks, here and below.
        unsafe { self.0.adopt(handle, bytes) }
    }

    fn pinned(&self, bytes: usize) -> Option<Box<dyn Pinned>> {
        self.0.pinned(bytes)
    }

    unsafe fn upload(&self, to: &dyn Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.0.upload(to, offset, bytes) }
    }

    unsafe fn upload_rows(&self, to: &dyn Buffer, rows: &Region, bytes: &[u8]) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.0.upload_rows(to, rows, bytes) }
    }

    unsafe fn download(&self, from: &dyn Buffer, offset: usize, bytes: &mut [u8]) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.0.download(from, offset, bytes) }
    }

    unsafe fn begin_upload(
        &self,
        to: &dyn Buffer,
        offset: usize,
        data: *const u8,
        len: usize,
    ) -> Result<Arc<dyn Event>> {
        // SAFETY: as above.
        unsafe { self.0.begin_upload(to, offset, data, len) }
    }

    unsafe fn begin_download(
        &self,
        from: &dyn Buffer,
        offset: usize,
        data: *mut u8,
        len: usize,
    ) -> Result<Arc<dyn Event>> {
        // SAFETY: as above.
        unsafe { self.0.begin_download(from, offset, data, len) }
    }

    unsafe fn copy(&self, from: &dyn Buffer, to: &dyn Buffer, bytes: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.0.copy(from, to, bytes) }
    }

    unsafe fn clear(&self, buffer: &dyn Buffer, bytes: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.0.clear(buffer, bytes) }
    }

    fn compile(&self, text: &str) -> std::result::Result<Arc<dyn Program>, String> {
        self.0.compile(text)
    }

    fn load(&self, binary: &[u8]) -> Option<Arc<dyn Program>> {
        self.0.load(binary)
    }

    fn libraries(&self) -> Option<&dyn Libraries> {
        Some(self)
    }

    fn settle(&self) -> Result<()> {
        self.0.settle()
    }

    fn mark(&self) -> Result<Arc<dyn Event>> {
        self.0.mark()
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn finish(&self) -> Result<()> {
        self.0.finish()
    }
}

/// Bytes of work space that every task asks for, and fills.
const ROOM: usize = 40;

impl Libraries for Device {
    fn has(&self, subject: Subject) -> bool {
        subject != Subject::Products
    }

    fn told(&self) -> Vec<String> {
        vec!["a library on the host: 1".into()]
    }

    fn room(&self, _: &Task) -> Result<usize> {
        Ok(ROOM)
    }

    unsafe fn run(&self, task: &Task, buffers: &[&dyn Buffer]) -> Result<()> {
        let &Task::Factors { dtype, rows, columns, of } = task else {
            let Task::Transforms(transforms) = task else { panic!("{task:?}") };
            // SAFETY: as `# Safety` asks.
            return unsafe { self.transform(transforms, buffers) };
        };
        let (m, n) = (rows as usize, columns as usize);
        let read = |buffer: usize, elements: usize| {
            let mut bytes = vec![0; elements * dtype.size()];
            // SAFETY: the buffer has all elements that the task names, as `# Safety` asks.
            unsafe { self.0.download(buffers[buffer], 0, &mut bytes) }.map(|()| C::read(dtype, &bytes))
        };
        // SAFETY: as above.
        let write = |buffer: usize, bytes: &[u8]| unsafe { self.0.upload(buffers[buffer], 0, bytes) };
        let leave = |buffer: usize, values: &[C]| write(buffer, &C::bytes(dtype, values));
        let reals = |buffer: usize, values: &[f64]| {
            let values: Vec<C> = values.iter().map(|value| C(*value, 0.0)).collect();
            write(buffer, &C::bytes(dtype.real_part(), &values))
        };
        write(2, &[0xff; ROOM])?;
        let mut fails = 0;
        match of {
            Factors::Cholesky => {
                let mut a = read(0, n * n)?;
                fails = cholesky(&mut a, n);
                leave(0, &a)?;
            }
            Factors::Lu { sides } => {
                let mut a = read(0, n * (n + sides as usize))?;
                if sides > 0 {
                    // SAFETY: as above.
                    unsafe { self.check_triangles(buffers[1], &a[..n * n], n) }?;
                }
                let pivots = lu(&mut a, n);
                leave(0, &a)?;
                write(3, &pivots.iter().flat_map(|pivot| pivot.to_ne_bytes()).collect::<Vec<u8>>())?;
            }
            Factors::Qr { columns } => {
                let a = read(0, m * n)?;
                let q = completed(&a[..m * m.min(n)], m, columns as usize);
                let r = product(&adjoint(&q, m), &a, [columns as usize, m, n]);
                // Reflections are what lies below the triangle.
                let at = |at: usize| if at % m <= at / m { r[at / m * columns as usize + at % m] } else { C(7.0, 0.0) };
                leave(0, &(0..m * n).map(at).collect::<Vec<C>>())?;
                leave(4, &q)?;
            }
            Factors::Eigen { vectors } => {
                let (values, found) = eigen(&read(0, n * n)?, n);
                reals(3, &values)?;
                leave(0, &if vectors { found } else { vec![C(7.0, 0.0); n * n] })?;
            }
            Factors::Singular { left } => {
                let a = read(0, m * n)?;
                // Of zeros, this library says that it has not found any.
                fails = i32::from(a.iter().all(|value| size(*value) == 0.0));
                let (squares, v) = eigen(&product(&adjoint(&a, m), &a, [n, m, n]), n);
                let v: Vec<C> = v.chunks(n).rev().flatten().copied().collect();
                let values: Vec<f64> = squares.iter().rev().map(|square| square.max(0.0).sqrt()).collect();
                reals(3, &values)?;
                if left > 0 {
                    leave(4, &completed(&product(&a, &v, [m, n, n]), m, left as usize))?;
                    leave(5, &adjoint(&v, n))?;
                }
            }
        }
        write(1, &fails.to_ne_bytes())
    }
}

impl Device {
    /// Checks what a buffer of numbers says about the elements above and below the diagonal of a matrix.
    ///
    /// # Safety
    /// The buffer must have three numbers.
    unsafe fn check_triangles(&self, numbers: &dyn Buffer, matrix: &[C], n: usize) -> Result<()> {
        let mut bytes = [0; 12];
        // SAFETY: as `# Safety` asks.
        unsafe { self.0.download(numbers, 0, &mut bytes) }?;
        let found: Vec<i32> = bytes.as_chunks::<4>().0.iter().map(|&bytes| i32::from_ne_bytes(bytes)).collect();
        let differs = |places: fn(usize, usize) -> bool| {
            i32::from((0..n * n).any(|at| places(at % n, at / n) && matrix[at] != C(0.0, 0.0)))
        };
        assert_eq!(found, [0, differs(|row, column| row < column), differs(|row, column| row > column)], "triangles");
        Ok(())
    }

    /// Transforms by their definition.
    ///
    /// # Safety
    /// As [`Libraries::run`].
    unsafe fn transform(&self, transforms: &Transforms, buffers: &[&dyn Buffer]) -> Result<()> {
        let &Transforms { dtype, direction, len, count, places } = transforms;
        let (len, count, real) = (len as usize, count as usize, dtype.real_part());
        let half = len / 2 + 1;
        let (types, lens) = match direction {
            Direction::Forward | Direction::Inverse => ([dtype, dtype], [len, len]),
            Direction::FromReal => ([dtype, real], [half, len]),
            Direction::ToReal => ([real, dtype], [len, half]),
        };
        let at = |side: usize, line: usize, element: usize| {
            let place = places[side];
            place.first as usize + line * place.next as usize + element * place.step as usize
        };
        let read = |side: usize| {
            let mut bytes = vec![0; (at(side, count - 1, lens[side] - 1) + 1) * types[side].size()];
            // SAFETY: the buffer has all elements that the places lead to, as `# Safety` asks.
            unsafe { self.0.download(buffers[side], 0, &mut bytes) }.map(|()| C::read(types[side], &bytes))
        };
        let (mut to, mut from) = (read(0)?, read(1)?);
        let is_inverse = matches!(direction, Direction::Inverse | Direction::ToReal);
        let turn = if is_inverse { 2.0 } else { -2.0 } * std::f64::consts::PI / len as f64;
        let roots: Vec<C> = (0..len).map(|j| C((turn * j as f64).cos(), (turn * j as f64).sin())).collect();
        for line in 0..count {
            // Of first halves, the others are conjugates.
            let whole: Vec<C> = (0..len)
                .map(|j| match from.get(at(1, line, j)) {
                    Some(&value) if j < lens[1] => value,
                    _ => C(from[at(1, line, len - j)].0, -from[at(1, line, len - j)].1),
                })
                .collect();
            for k in 0..lens[0] {
                let term = |j: usize| times(whole[j], roots[j * k % len]);
                to[at(0, line, k)] = (0..len).fold(C(0.0, 0.0), |sum, j| add(sum, term(j)));
            }
        }
        // SAFETY: as above.
        unsafe {
            if direction == Direction::ToReal {
                from.iter_mut().for_each(|value| *value = C(7.0, 7.0));
                self.0.upload(buffers[1], 0, &C::bytes(types[1], &from))?;
            }
            self.0.upload(buffers[0], 0, &C::bytes(types[0], &to))?;
            self.0.upload(buffers[2], 0, &[0xff; ROOM])
        }
    }
}

/// The product of matrices in columns: rows, inner elements, columns.
fn product(left: &[C], right: &[C], [m, k, n]: [usize; 3]) -> Vec<C> {
    let sum = |at: usize| {
        let (row, column) = (at % m, at / m);
        (0..k).fold(C(0.0, 0.0), |sum, term| add(sum, times(left[term * m + row], right[column * k + term])))
    };
    (0..m * n).map(sum).collect()
}

/// The conjugate transpose of a matrix of this many rows.
fn adjoint(a: &[C], rows: usize) -> Vec<C> {
    let columns = a.len() / rows.max(1);
    (0..a.len()).map(|at| conjugate(a[at % columns * rows + at / columns])).collect()
}

/// The lower factor in the lower triangle; the number of the first column that has none, from 1.
fn cholesky(a: &mut [C], n: usize) -> i32 {
    for j in 0..n {
        let root = a[j * n + j].0;
        if root.is_nan() || root <= 0.0 {
            return j as i32 + 1;
        }
        let root = root.sqrt();
        a[j * n + j] = C(root, 0.0);
        (j + 1..n).for_each(|i| a[j * n + i] = scale(a[j * n + i], 1.0 / root));
        for k in j + 1..n {
            for i in k..n {
                a[k * n + i] = less(a[k * n + i], times(a[j * n + i], conjugate(a[j * n + k])));
            }
        }
    }
    0
}

/// LU factors in place, and the row that each is exchanged with, from 1; columns beside the matrix become solutions.
fn lu(a: &mut [C], n: usize) -> Vec<i64> {
    let (mut pivots, columns) = (Vec::new(), a.len() / n);
    for j in 0..n {
        let with = (j..n).fold(j, |most, i| if size(a[j * n + i]) > size(a[j * n + most]) { i } else { most });
        pivots.push(with as i64 + 1);
        (0..columns).for_each(|column| a.swap(column * n + j, column * n + with));
        for i in j + 1..n {
            let factor = if size(a[j * n + j]) == 0.0 { C(0.0, 0.0) } else { divide(a[j * n + i], a[j * n + j]) };
            a[j * n + i] = factor;
            (j + 1..columns).for_each(|k| a[k * n + i] = less(a[k * n + i], times(factor, a[k * n + j])));
        }
    }
    for column in n..columns {
        for j in (0..n).rev() {
            let x = divide(a[column * n + j], a[j * n + j]);
            a[column * n + j] = x;
            (0..j).for_each(|i| a[column * n + i] = less(a[column * n + i], times(a[j * n + i], x)));
        }
    }
    pivots
}

/// As many orthonormal columns, of which the first span what these span.
fn completed(a: &[C], rows: usize, columns: usize) -> Vec<C> {
    let mut q: Vec<C> = Vec::new();
    let unit = |at: usize| (0..rows).map(|row| C(f64::from(u8::from(row == at)), 0.0)).collect::<Vec<C>>();
    let candidates = a.chunks(rows).map(<[C]>::to_vec).chain((0..rows).map(unit));
    for (number, mut column) in candidates.enumerate() {
        if q.len() == rows * columns {
            break;
        }
        for _ in 0..2 {
            for other in q.chunks(rows) {
                let along =
                    other.iter().zip(&column).fold(C(0.0, 0.0), |sum, (a, b)| add(sum, times(conjugate(*a), *b)));
                column.iter_mut().zip(other).for_each(|(value, other)| *value = less(*value, times(*other, along)));
            }
        }
        let length = column.iter().map(|value| size(*value).powi(2)).sum::<f64>().sqrt();
        if number * rows < a.len() || length > 0.1 {
            q.extend(column.into_iter().map(|value| scale(value, 1.0 / length)));
        }
    }
    q
}

/// The eigenvalues of a Hermitian matrix, rising, of which the lower triangle is read, and the vectors in columns (Jacobi 1846).
fn eigen(lower: &[C], n: usize) -> (Vec<f64>, Vec<C>) {
    let entry = |at: usize| match (at % n).cmp(&(at / n)) {
        std::cmp::Ordering::Less => conjugate(lower[at % n * n + at / n]),
        std::cmp::Ordering::Equal => C(lower[at].0, 0.0),
        std::cmp::Ordering::Greater => lower[at],
    };
    let mut a: Vec<C> = (0..n * n).map(entry).collect();
    let mut v: Vec<C> = (0..n * n).map(|at| C(f64::from(u8::from(at % n == at / n)), 0.0)).collect();
    for _ in 0..30 {
        for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
            let beside = a[q * n + p];
            if size(beside) < 1e-300 {
                continue;
            }
            let phase = conjugate(scale(beside, 1.0 / size(beside)));
            let angle = (a[q * n + q].0 - a[p * n + p].0) / (2.0 * size(beside));
            let tangent = angle.signum() / (angle.abs() + angle.hypot(1.0));
            let cosine = 1.0 / tangent.hypot(1.0);
            let sine = tangent * cosine;
            let turn = |x: C, y: C, phase: C| {
                let y = times(y, phase);
                (less(scale(x, cosine), scale(y, sine)), add(scale(x, sine), scale(y, cosine)))
            };
            for k in 0..n {
                (a[p * n + k], a[q * n + k]) = turn(a[p * n + k], a[q * n + k], phase);
                (v[p * n + k], v[q * n + k]) = turn(v[p * n + k], v[q * n + k], phase);
            }
            for k in 0..n {
                (a[k * n + p], a[k * n + q]) = turn(a[k * n + p], a[k * n + q], conjugate(phase));
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| a[x * n + x].0.total_cmp(&a[y * n + y].0));
    let values = order.iter().map(|at| a[at * n + at].0).collect();
    (values, order.iter().flat_map(|at| v[at * n..][..n].to_vec()).collect())
}
