//! Eigenvalues and vectors of symmetric matrices, whose columns ranks have in blocks. Householder reflections make the matrix
//! tridiagonal: for each, ranks multiply the columns that they have, and one sum over all ranks has the product and the next column.
//! Each rank keeps rows of the vectors of the tridiagonal matrix ([`divide`](crate::run::divide)), and reflects them back in blocks,
//! with one sum for each block (the compact WY form of Schreiber and Van Loan, 1989).

use crate::command::failure::Failure;
use crate::plan::columns::{Block, Columns, Sought};
use crate::plan::methods::PRODUCT;
use crate::plan::stage::Place;
use crate::run::columns::{Work, transposed};
use crate::run::divide::{self, Solvers};
use crate::run::machine::Machine;
use crate::transport::Class;
use crate::transport::tree::{above, below};
use bh_bytecode::{Base, BatchRef, DType, Opcode};
use bh_core::abi::status;
use bh_core::error::{Error, Result};
use std::ops::Range;

/// Reflections that are taken back at a time.
const REFLECTIONS: usize = 64;

/// Products of fewer rows or columns are made here, others by the stack below.
const SMALL: usize = 64;

/// A column of the matrix, from its diagonal on.
struct Column {
    number: usize,
    elements: Vec<f64>,
}

/// A reflection `I − tau · v · vᵀ`, whose v begins behind this row.
struct Reflection {
    tau: f64,
    behind: usize,
    v: Vec<f64>,
}

/// A rank's rows of the vectors, by columns, and of the reflections.
struct Kept {
    rank: usize,
    rows: Range<usize>,
    columns: Vec<Vec<f64>>,
    reflections: Vec<Vec<f64>>,
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|word| f64::from_ne_bytes(*word)).collect()
}

fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// The reflection that leaves nothing of a column but its first element, and that element.
fn reflection(column: &[f64], behind: usize) -> (Reflection, f64) {
    let most = column.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let rest = column[1..].iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let mut v = vec![0.0; column.len()];
    v[0] = 1.0;
    if rest == 0.0 {
        return (Reflection { tau: 0.0, behind, v }, column[0]);
    }
    let norm = column.iter().map(|value| (value / most).powi(2)).sum::<f64>().sqrt() * most;
    let left = if column[0] > 0.0 { -norm } else { norm };
    for (v, value) in v[1..].iter_mut().zip(&column[1..]) {
        *v = value / (column[0] - left);
    }
    (Reflection { tau: (left - column[0]) / left, behind, v }, left)
}

/// Takes `v wᵀ + w vᵀ` from a column, whose rows begin behind those of v and w by this many.
fn update(column: &mut [f64], at: usize, v: &[f64], w: &[f64]) {
    let (one, two) = (v[at], w[at]);
    for (element, (v, w)) in column.iter_mut().zip(v[at..].iter().zip(&w[at..])) {
        *element -= v * two + w * one;
    }
}

impl Machine {
    /// Does this; the columns are there. The failure is that of some rank.
    pub(super) fn eigen(&mut self, batch: &BatchRef<'_>, index: u32, columns: &Columns) -> Result<Option<Failure>> {
        debug_assert_eq!(columns.sought, Sought::Eigen);
        let mut work = Work {
            machine: self,
            batch,
            index,
            columns,
            size: DType::F64.size(),
            dtype: DType::F64,
            order: Vec::new(),
            failed: None,
        };
        let own = work.own_columns();
        let mut failed = work.agree()?;
        if failed.is_none() {
            let found = work.eigen(own)?;
            failed = work.agree()?;
            if failed.is_none() {
                let (values, blocks) = found;
                self.give_values(columns, &values)?;
                if let Some(output) = columns.outputs.get(1) {
                    self.planner.give_blocks(output, &blocks, 0)?;
                    let at = self.planner.after_use(output.0);
                    blocks.iter().for_each(|block| {
                        self.planner.stages.push_system(at, block.rank, Opcode::Discard, &block.place.base);
                    });
                }
            }
        }
        self.planner.drop_columns(columns);
        Ok(failed)
    }

    /// Gives the owners of the first output eigenvalues, which each rank knows.
    fn give_values(&mut self, columns: &Columns, values: &[f64]) -> Result<()> {
        let (output, rank) = (&columns.outputs[0], columns.members[0]);
        let dtype = columns.matrix[0].place.base.dtype();
        let shape = [values.len() as i64, 1];
        let place = self.planner.scratch(rank, &Base::new(0, dtype, 1), &shape)?;
        if self.port.hosts(rank) {
            let bytes: Vec<u8> = match dtype {
                DType::F32 => values.iter().flat_map(|value| (*value as f32).to_ne_bytes()).collect(),
                _ => bytes(values),
            };
            let (state, child) = self.rank(rank);
            state.unpack(child, &place, &bytes)?;
        }
        self.planner.give_blocks(output, &[Block { rank, first: 0, width: shape[0], place }], 0)?;
        let at = self.planner.after_use(output.0);
        self.planner.stages.push_system(at, rank, Opcode::Discard, &place.base);
        Ok(())
    }

    /// Replaces numbers by their sums over all processes, made in a tree of them.
    fn sum_over_all(&mut self, sums: &mut [f64]) -> Result<()> {
        let me = self.port.hosted().start;
        for other in below(&self.port).into_iter().rev() {
            let said = self.port.receive(me, other)?;
            sums.iter_mut().zip(numbers(&said)).for_each(|(sum, number)| *sum += number);
        }
        if let Some(above) = above(&self.port) {
            self.port.send(Class::Payload, me, above, bytes(sums))?;
            sums.copy_from_slice(&numbers(&self.port.receive(me, above)?));
        }
        for other in below(&self.port) {
            self.port.send(Class::Payload, me, other, bytes(sums))?;
        }
        Ok(())
    }
}

impl Work<'_, '_> {
    /// The columns of this process's ranks, from the diagonal on.
    fn own_columns(&mut self) -> Vec<Column> {
        let (columns, count) = (self.columns, self.columns.rows as usize);
        let mut own = Vec::new();
        for block in &columns.matrix {
            if !self.hosts(block.rank) {
                continue;
            }
            let (width, single) = (block.width as usize, block.place.base.dtype() == DType::F32);
            let found = self.elements(block.rank, &block.place);
            let elements: Vec<f64> = match single {
                true => found.as_chunks().0.iter().map(|word| f64::from(f32::from_ne_bytes(*word))).collect(),
                false => numbers(&found),
            };
            own.extend((0..width).map(|place| {
                let number = block.first as usize + place;
                Column { number, elements: (number..count).map(|row| elements[row * width + place]).collect() }
            }));
        }
        if own.iter().flat_map(|column| &column.elements).any(|element| !element.is_finite()) {
            let text = "eigh: the matrix has elements that are infinite or not a number";
            self.keep::<()>(Err(Error::new(status::EXECUTION, text)));
        }
        own
    }

    fn eigen(&mut self, own: Vec<Column>) -> Result<(Vec<f64>, Vec<Block>)> {
        let count = self.columns.rows as usize;
        let here = self.columns.kept.iter().filter(|(rank, _)| self.hosts(*rank));
        let kept: Vec<Kept> = here
            .map(|(rank, rows)| Kept {
                rank: *rank,
                rows: rows.low as usize..rows.high as usize,
                columns: vec![vec![0.0; rows.len() as usize]; count],
                reflections: Vec::new(),
            })
            .collect();
        let mut vectors = Vectors { work: self, kept, factors: Vec::new() };
        let (diagonal, beside) = vectors.tridiagonal(own)?;
        let values = divide::solve(diagonal, &beside, &mut vectors)?;
        let Vectors { kept, factors, .. } = vectors;
        let blocks = self.reflect_back(kept, &factors)?;
        Ok((values, blocks))
    }

    /// Takes the reflections back from the rows that ranks have, which are in their stacks then.
    fn reflect_back(&mut self, kept: Vec<Kept>, factors: &[f64]) -> Result<Vec<Block>> {
        let count = self.columns.rows as usize;
        let mut places = Vec::new();
        for one in &kept {
            let rows = one.rows.len();
            let by_rows: Vec<f64> =
                (0..rows).flat_map(|row| one.columns.iter().map(move |column| column[row])).collect();
            places.push(self.made(one.rank, [rows as i64, count as i64], &bytes(&by_rows))?);
        }
        let starts: Vec<usize> =
            if self.columns.kept.is_empty() { Vec::new() } else { (0..factors.len()).step_by(REFLECTIONS).collect() };
        for start in starts.into_iter().rev() {
            let taus = &factors[start..factors.len().min(start + REFLECTIONS)];
            let width = taus.len();
            // Vᵀ · [Q, V], of all rows.
            let mut sums = vec![0.0; width * (count + width)];
            let mut own = Vec::new();
            for (one, place) in kept.iter().zip(&places) {
                let (v, part) = self.projected(one, place, start..start + width)?;
                sums.iter_mut().zip(part).for_each(|(sum, number)| *sum += number);
                own.push(v);
            }
            self.machine.sum_over_all(&mut sums)?;
            let (products, squares) = sums.split_at(width * count);
            let times = triangle(taus, squares);
            let made: Vec<f64> = (0..width)
                .flat_map(|row| {
                    let mut sum = vec![0.0; count];
                    for inner in row..width {
                        let factor = times[row * width + inner];
                        let line = &products[inner * count..][..count];
                        sum.iter_mut().zip(line).for_each(|(sum, number)| *sum += factor * number);
                    }
                    sum
                })
                .collect();
            for ((one, place), v) in kept.iter().zip(&places).zip(own) {
                let right = self.made(one.rank, [width as i64, count as i64], &bytes(&made))?;
                let (mut steps, mut dropped) = (Vec::new(), vec![right, v]);
                self.take(one.rank, (*place, v, right), &mut steps, &mut dropped)?;
                self.run(one.rank, steps, &dropped);
            }
        }
        kept.iter().zip(places).map(|(one, place)| self.as_output(one, place)).collect()
    }

    /// A rank's rows of some reflections, and what they give for the sums.
    fn projected(&mut self, one: &Kept, place: &Place, which: Range<usize>) -> Result<(Place, Vec<f64>)> {
        let (rows, width, count) = (one.rows.len(), which.len(), self.columns.rows as usize);
        let own = &one.reflections[which];
        let by_rows: Vec<f64> = (0..rows).flat_map(|row| own.iter().map(move |v| v[row])).collect();
        let v = self.made(one.rank, [rows as i64, width as i64], &bytes(&by_rows))?;
        let product = self.scratch(one.rank, DType::F64, &[width as i64, count as i64])?;
        self.run(one.rank, vec![(PRODUCT, 1, vec![product, transposed(&v)?, *place])], &[]);
        let mut part = numbers(&self.elements(one.rank, &product));
        self.run(one.rank, Vec::new(), &[product]);
        for left in own {
            part.extend(own.iter().map(|right| left.iter().zip(right).map(|(one, two)| one * two).sum::<f64>()));
        }
        Ok((v, part))
    }

    /// A rank's rows with the elements of the output.
    fn as_output(&mut self, one: &Kept, place: Place) -> Result<Block> {
        let block =
            |place: Place| Block { rank: one.rank, first: one.rows.start as i64, width: one.rows.len() as i64, place };
        let dtype = self.columns.matrix[0].place.base.dtype();
        if dtype == DType::F64 {
            return Ok(block(place));
        }
        let converted = self.scratch(one.rank, dtype, place.view.shape())?;
        self.run(one.rank, vec![(Opcode::Copy, 1, vec![converted, place])], &[place]);
        Ok(block(converted))
    }
}

/// T of `I − V T Vᵀ`, by rows, of the factors of reflections and the products of their vectors.
fn triangle(taus: &[f64], squares: &[f64]) -> Vec<f64> {
    let width = taus.len();
    let mut all = vec![0.0; width * width];
    for column in 0..width {
        all[column * width + column] = taus[column];
        for row in 0..column {
            let sum: f64 = (row..column).map(|inner| all[row * width + inner] * squares[inner * width + column]).sum();
            all[row * width + column] = -taus[column] * sum;
        }
    }
    all
}

/// The rows that this process's ranks keep.
struct Vectors<'w, 'a, 'b> {
    work: &'w mut Work<'a, 'b>,
    kept: Vec<Kept>,
    /// Those of the reflections.
    factors: Vec<f64>,
}

impl Vectors<'_, '_, '_> {
    /// Makes the matrix tridiagonal: its diagonal, and what is beside it.
    fn tridiagonal(&mut self, mut own: Vec<Column>) -> Result<(Vec<f64>, Vec<f64>)> {
        let count = self.work.columns.rows as usize;
        let (mut diagonal, mut beside) = (Vec::with_capacity(count), Vec::with_capacity(count));
        // The column that comes next, and what is still to be taken from the columns behind it.
        let mut next = vec![0.0; count];
        own.iter().filter(|column| column.number == 0).for_each(|column| next.copy_from_slice(&column.elements));
        self.work.machine.sum_over_all(&mut next)?;
        let mut before: Option<(Vec<f64>, Vec<f64>)> = None;
        for row in 0..count.saturating_sub(2) {
            diagonal.push(next[0]);
            let (found, left) = reflection(&next[1..], row);
            beside.push(left);
            let size = count - row - 1;
            let mut sums = vec![0.0; 2 * size];
            own.retain(|column| column.number > row);
            for column in &mut own {
                let at = column.number - row - 1;
                if let Some((v, w)) = &before {
                    update(&mut column.elements, at + 1, v, w);
                }
                multiply(&column.elements, at, &found.v, &mut sums[..size]);
                if at == 0 {
                    sums[size..].copy_from_slice(&column.elements);
                }
            }
            self.work.machine.sum_over_all(&mut sums)?;
            let (product, column) = sums.split_at(size);
            let v = found.v.clone();
            let dot: f64 = v.iter().zip(product).map(|(v, p)| v * p).sum();
            let half = found.tau * found.tau * dot / 2.0;
            let w: Vec<f64> = product.iter().zip(&v).map(|(p, v)| found.tau * p - half * v).collect();
            next = column.to_vec();
            update(&mut next, 0, &v, &w);
            self.keep(&found);
            before = Some((v, w));
        }
        if count > 1 {
            // The last element.
            let mut last = [0.0];
            own.iter().filter(|column| column.number + 1 == count).for_each(|column| last[0] = column.elements[0]);
            self.work.machine.sum_over_all(&mut last)?;
            if let Some((v, w)) = &before {
                last[0] -= 2.0 * v[v.len() - 1] * w[w.len() - 1];
            }
            diagonal.push(next[0]);
            beside.push(next[1]);
            diagonal.push(last[0]);
        } else {
            diagonal.push(next[0]);
        }
        Ok((diagonal, beside))
    }

    /// Keeps the rows of a reflection.
    fn keep(&mut self, found: &Reflection) {
        if self.work.columns.kept.is_empty() {
            return;
        }
        self.factors.push(found.tau);
        let at = |row: usize| if row > found.behind { found.v[row - found.behind - 1] } else { 0.0 };
        for one in &mut self.kept {
            one.reflections.push(one.rows.clone().map(at).collect());
        }
    }
}

/// Adds to sums what a column, and the row that is its like, give in a product.
fn multiply(column: &[f64], at: usize, v: &[f64], sums: &mut [f64]) {
    let factor = v[at];
    // Lanes of their own, as sums in order cannot be made side by side.
    let mut own = [0.0; 8];
    let (elements, vs) = (column[1..].as_chunks::<8>(), v[at + 1..].as_chunks::<8>());
    let (into, last) = sums[at + 1..].as_chunks_mut::<8>();
    for (element, (v, sum)) in elements.0.iter().zip(vs.0.iter().zip(into)) {
        for lane in 0..8 {
            own[lane] += element[lane] * v[lane];
            sum[lane] += element[lane] * factor;
        }
    }
    let mut rest = column[0] * factor;
    for (element, (v, sum)) in elements.1.iter().zip(vs.1.iter().zip(last)) {
        rest += element * v;
        *sum += element * factor;
    }
    sums[at] += own.iter().sum::<f64>() + rest;
}

/// What one rank's rows of some vectors are multiplied from.
struct Factor {
    /// Which of the ranks that keep vectors.
    number: usize,
    /// Rows of its own.
    rows: Range<usize>,
    by_rows: Vec<f64>,
    /// The same on the rank, where the product is large.
    place: Option<Place>,
}

impl Solvers for Vectors<'_, '_, '_> {
    type Error = Error;

    fn place(&self) -> (usize, usize) {
        let port = &self.work.machine.port;
        (port.process(), port.processes().len())
    }

    fn sum(&mut self, numbers: &mut [f64]) -> Result<()> {
        self.work.machine.sum_over_all(numbers)
    }

    fn set(&mut self, part: Range<usize>, vectors: &[f64]) {
        for one in &mut self.kept {
            for row in part.start.max(one.rows.start)..part.end.min(one.rows.end) {
                let values = &vectors[(row - part.start) * part.len()..];
                part.clone().zip(values).for_each(|(column, value)| one.columns[column][row - one.rows.start] = *value);
            }
        }
    }

    fn turn(&mut self, [one, two]: [usize; 2], c: f64, s: f64) {
        for kept in &mut self.kept {
            let mut first = std::mem::take(&mut kept.columns[one]);
            for (x, y) in first.iter_mut().zip(&mut kept.columns[two]) {
                (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
            }
            kept.columns[one] = first;
        }
    }

    fn multiply(
        &mut self,
        part: Range<usize>,
        columns: &[usize],
        make: &mut dyn FnMut(Range<usize>) -> Vec<f64>,
    ) -> Result<()> {
        let size = columns.len();
        let mut left: Vec<Factor> = Vec::new();
        for (number, one) in self.kept.iter().enumerate() {
            let rows = part.start.max(one.rows.start)..part.end.min(one.rows.end);
            if rows.is_empty() {
                continue;
            }
            let rows = rows.start - one.rows.start..rows.end - one.rows.start;
            let by_rows: Vec<f64> =
                rows.clone().flat_map(|row| columns.iter().map(move |&column| one.columns[column][row])).collect();
            let below = size >= SMALL && rows.len() >= SMALL;
            let place = match below {
                true => Some(self.work.made(one.rank, [rows.len() as i64, size as i64], &bytes(&by_rows))?),
                false => None,
            };
            left.push(Factor { number, rows, by_rows, place });
        }
        for wanted in divide::in_parts(size) {
            let factors = make(wanted.clone());
            for Factor { number, rows, by_rows, place } in &left {
                let one = &mut self.kept[*number];
                let made = match place {
                    Some(place) => self.work.product(one.rank, place, &factors, wanted.len())?,
                    None => small_product(by_rows, &factors, [rows.len(), size, wanted.len()]),
                };
                for (at, column) in wanted.clone().enumerate() {
                    for (row, line) in rows.clone().zip(made.chunks_exact(wanted.len())) {
                        one.columns[columns[column]][row] = line[at];
                    }
                }
            }
        }
        for Factor { number, place, .. } in left {
            let rank = self.kept[number].rank;
            place.iter().for_each(|place| self.work.run(rank, Vec::new(), &[*place]));
        }
        Ok(())
    }

    fn arrange(&mut self, first: usize, order: &[usize]) {
        for one in &mut self.kept {
            let mut old: Vec<Vec<f64>> =
                one.columns[first..first + order.len()].iter_mut().map(std::mem::take).collect();
            order
                .iter()
                .enumerate()
                .for_each(|(place, &from)| one.columns[first + place] = std::mem::take(&mut old[from]));
        }
    }
}

impl Work<'_, '_> {
    /// The product of a matrix of a rank with another one of this many columns.
    fn product(&mut self, rank: usize, left: &Place, right: &[f64], columns: usize) -> Result<Vec<f64>> {
        let shape = [left.view.shape()[1], columns as i64];
        let right = self.made(rank, shape, &bytes(right))?;
        let product = self.scratch(rank, DType::F64, &[left.view.shape()[0], columns as i64])?;
        self.run(rank, vec![(PRODUCT, 1, vec![product, *left, right])], &[]);
        let found = numbers(&self.elements(rank, &product));
        self.run(rank, Vec::new(), &[product, right]);
        Ok(found)
    }
}

/// The product of two matrices by rows.
fn small_product(left: &[f64], right: &[f64], [rows, inner, columns]: [usize; 3]) -> Vec<f64> {
    let mut all = vec![0.0; rows * columns];
    for (sums, line) in all.chunks_exact_mut(columns).zip(left.chunks_exact(inner)) {
        for (factor, other) in line.iter().zip(right.chunks_exact(columns)) {
            sums.iter_mut().zip(other).for_each(|(sum, number)| *sum += factor * number);
        }
    }
    all
}
