//! Eigenvalues and vectors of symmetric tridiagonal matrices, by divide and conquer: Cuppen (1981), with the secular equation solved
//! as by Bunch, Nielsen and Sorensen (1978) and vectors made as by Gu and Eisenstat (1995). Ranks know all eigenvalues, and each has
//! the rows of the vectors that it keeps; they share the solving of large equations, and send nothing beside.

use std::ops::Range;

/// Matrices of at most this many rows are solved by turns of planes.
const LEAF: usize = 24;

/// Equations of at least this many terms are shared out.
const SHARED: usize = 256;

/// Columns of vectors that are made at a time.
const COLUMNS: usize = 256;

/// Turns in which an eigenvalue is found, at most.
const TURNS: usize = 100;

/// Those who solve a matrix.
pub trait Solvers {
    type Error;

    /// Which of them this one is, and how many there are.
    fn place(&self) -> (usize, usize);

    /// Replaces numbers by their sums over all.
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Self::Error>;

    /// Sets the kept rows of the vectors of a part of the matrix; `vectors` has them by rows.
    fn set(&mut self, part: Range<usize>, vectors: &[f64]);

    /// Turns two columns of the kept rows in their plane: the first becomes `c · first + s · second`, the second
    /// `c · second − s · first`.
    fn turn(&mut self, columns: [usize; 2], c: f64, s: f64);

    /// Replaces some columns of the kept rows that are in a part by their products with a square matrix, of which `make` gives columns,
    /// by rows.
    fn multiply(
        &mut self,
        part: Range<usize>,
        columns: &[usize],
        make: &mut dyn FnMut(Range<usize>) -> Vec<f64>,
    ) -> Result<(), Self::Error>;

    /// Brings the columns of a part in this order.
    fn arrange(&mut self, first: usize, order: &[usize]);
}

/// The part of a matrix that is solved: its eigenvalues in ascending order, and the first and last rows of its vectors.
struct Solved {
    values: Vec<f64>,
    first: Vec<f64>,
    last: Vec<f64>,
}

/// The eigenvalues of a matrix with this diagonal and what is beside it, in ascending order. The solvers keep rows of its vectors.
pub fn solve<S: Solvers>(mut diagonal: Vec<f64>, beside: &[f64], solvers: &mut S) -> Result<Vec<f64>, S::Error> {
    let count = diagonal.len();
    let most = diagonal.iter().chain(beside).fold(0.0, |most: f64, value| most.max(value.abs()));
    if most == 0.0 || !most.is_finite() {
        let mut unit = vec![0.0; count * count];
        (0..count).for_each(|row| unit[row * count + row] = 1.0);
        solvers.set(0..count, &unit);
        return Ok(diagonal.iter().map(|value| value * if most == 0.0 { 1.0 } else { f64::NAN }).collect());
    }
    diagonal.iter_mut().for_each(|value| *value /= most);
    let beside: Vec<f64> = beside.iter().map(|value| value / most).collect();
    let solved = part(&mut diagonal, &beside, 0, solvers)?;
    Ok(solved.values.into_iter().map(|value| value * most).collect())
}

fn part<S: Solvers>(diagonal: &mut [f64], beside: &[f64], first: usize, solvers: &mut S) -> Result<Solved, S::Error> {
    let count = diagonal.len();
    if count <= LEAF {
        let (values, vectors) = turned(diagonal, beside);
        solvers.set(first..first + count, &vectors);
        let row = |row: usize| vectors[row * count..][..count].to_vec();
        return Ok(Solved { values, first: row(0), last: row(count - 1) });
    }
    let half = count / 2;
    let between = beside[half - 1];
    diagonal[half - 1] -= between.abs();
    diagonal[half] -= between.abs();
    let (upper, lower) = diagonal.split_at_mut(half);
    let one = part(upper, &beside[..half - 1], first, solvers)?;
    let two = part(lower, &beside[half..], first + half, solvers)?;
    join(one, two, between, first, solvers)
}

/// Eigenvalues in ascending order and vectors by rows, by implicit QL turns (Martin and Wilkinson, 1968).
fn turned(diagonal: &[f64], beside: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = diagonal.len();
    let (mut d, mut e) = (diagonal.to_vec(), beside.to_vec());
    e.push(0.0);
    let mut z = vec![0.0; n * n];
    (0..n).for_each(|row| z[row * n + row] = 1.0);
    for l in 0..n {
        for _ in 0..TURNS {
            let small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(|&m| small(m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = g.hypot(1.0);
            g = d[m] - d[l] + e[l] / (g + if g >= 0.0 { r } else { -r });
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut ended = true;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    ended = false;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                for row in z.chunks_exact_mut(n) {
                    let f = row[i + 1];
                    row[i + 1] = s * row[i] + c * f;
                    row[i] = c * row[i] - s * f;
                }
            }
            if ended {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| d[*a].total_cmp(&d[*b]));
    let sorted = z.chunks_exact(n).flat_map(|row| order.iter().map(|&column| row[column])).collect();
    (order.iter().map(|&place| d[place]).collect(), sorted)
}

/// An eigenvalue: so far behind a pole.
#[derive(Clone, Copy)]
struct Root {
    pole: usize,
    behind: f64,
}

/// The equation 1 + rho Σ z² / (d − x) = 0, whose poles ascend.
struct Secular {
    d: Vec<f64>,
    z: Vec<f64>,
    rho: f64,
}

impl Secular {
    /// The distance of a root from a pole.
    fn distance(&self, pole: usize, root: Root) -> f64 {
        (self.d[pole] - self.d[root.pole]) - root.behind
    }

    /// The sums of the terms up to a pole and behind it, and their slopes, at a place behind a pole.
    fn at(&self, between: usize, root: Root) -> [f64; 4] {
        let sums = |poles: Range<usize>| {
            let (mut value, mut slope) = (0.0, 0.0);
            for pole in poles {
                let part = self.z[pole] / self.distance(pole, root);
                value += part * self.z[pole];
                slope += part * part;
            }
            [self.rho * value, self.rho * slope]
        };
        let ([one, two], [three, four]) = (sums(0..between + 1), sums(between + 1..self.d.len()));
        [one, two, three, four]
    }

    /// The root between a pole and the next one, or behind the last.
    fn root(&self, between: usize) -> Root {
        let last = between + 1 == self.d.len();
        let gap = match last {
            true => self.rho * self.z.iter().map(|z| z * z).sum::<f64>(),
            false => self.d[between + 1] - self.d[between],
        };
        let middle = Root { pole: between, behind: gap / 2.0 };
        let [psi, _, phi, _] = self.at(between, middle);
        // The nearer pole is where distances are exact.
        let upper = !last && 1.0 + psi + phi < 0.0;
        let (pole, mut low, mut high) = match (upper, last) {
            (true, _) => (between + 1, -gap / 2.0, 0.0),
            (false, true) => (between, 0.0, gap),
            (false, false) => (between, 0.0, gap / 2.0),
        };
        let mut behind = (low + high) / 2.0;
        for _ in 0..TURNS {
            let root = Root { pole, behind };
            let [psi, psi_slope, phi, phi_slope] = self.at(between, root);
            let value = 1.0 + psi + phi;
            if value.abs() <= f64::EPSILON * (1.0 + psi.abs() + phi.abs()) * 4.0 {
                break;
            }
            if value < 0.0 {
                low = behind
            } else {
                high = behind
            }
            let next = self.step(between, root, [psi, psi_slope, phi, phi_slope]);
            let inside = next.is_finite() && next > low && next < high;
            let next = if inside { next } else { (low + high) / 2.0 };
            if next == behind || next == low || next == high {
                break;
            }
            behind = next;
        }
        Root { pole, behind }
    }

    /// Where simple functions with the same values and slopes meet: a pole on each side.
    fn step(&self, between: usize, root: Root, [psi, psi_slope, phi, phi_slope]: [f64; 4]) -> f64 {
        let one = self.distance(between, root);
        let b = psi_slope * one * one;
        let a = 1.0 + psi - psi_slope * one;
        if between + 1 == self.d.len() {
            // 1 + a + b / (one − x) = 0.
            return root.behind + one + b / a;
        }
        let two = self.distance(between + 1, root);
        let e = phi_slope * two * two;
        let a = a + phi - phi_slope * two;
        // a (one − x)(two − x) + b (two − x) + e (one − x) = 0.
        let (p, q) = (-(a * (one + two) + b + e), a * one * two + b * two + e * one);
        let root_of = (p * p - 4.0 * a * q).max(0.0).sqrt();
        let x = if p <= 0.0 { 2.0 * q / (-p + root_of) } else { (-p - root_of) / (2.0 * a) };
        root.behind + x
    }

    /// The z of which these are the exact roots.
    fn exact(&self, roots: &[Root], pole: usize) -> f64 {
        let count = self.d.len();
        let mut product = -self.distance(pole, roots[count - 1]);
        for (other, &root) in roots[..count - 1].iter().enumerate() {
            let behind = other + usize::from(other >= pole);
            product *= self.distance(pole, root) / (self.d[pole] - self.d[behind]);
        }
        (product.abs() / self.rho).sqrt().copysign(self.z[pole])
    }

    /// A column of the vectors.
    fn vector(&self, exact: &[f64], root: Root, into: &mut [f64]) {
        for (pole, value) in into.iter_mut().enumerate() {
            let distance = self.distance(pole, root);
            *value = if distance == 0.0 { f64::INFINITY } else { exact[pole] / distance };
        }
        if let Some(pole) = into.iter().position(|value| !value.is_finite()) {
            into.fill(0.0);
            into[pole] = 1.0;
            return;
        }
        let most = into.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let norm = into.iter().map(|value| (value / most).powi(2)).sum::<f64>().sqrt() * most;
        into.iter_mut().for_each(|value| *value /= norm);
    }
}

/// Numbers that solvers make in parts, for all.
fn shared<S: Solvers>(
    count: usize,
    solvers: &mut S,
    make: impl Fn(usize) -> [f64; 2],
) -> Result<Vec<[f64; 2]>, S::Error> {
    let (place, all) = solvers.place();
    if count < SHARED || all == 1 {
        return Ok((0..count).map(make).collect());
    }
    let mut numbers = vec![0.0; 2 * count];
    for number in count * place / all..count * (place + 1) / all {
        numbers[2 * number..][..2].copy_from_slice(&make(number));
    }
    solvers.sum(&mut numbers)?;
    Ok(numbers.as_chunks().0.to_vec())
}

/// Joins two neighbours.
fn join<S: Solvers>(one: Solved, two: Solved, between: f64, first: usize, solvers: &mut S) -> Result<Solved, S::Error> {
    let (half, count) = (one.values.len(), one.values.len() + two.values.len());
    let sign = if between < 0.0 { -1.0 } else { 1.0 };
    let z = one.last.iter().copied().chain(two.first.iter().map(|value| sign * value));
    let mut z: Vec<f64> = z.collect();
    let norm = z.iter().map(|value| value * value).sum::<f64>().sqrt();
    z.iter_mut().for_each(|value| *value /= norm);
    let rho = between.abs() * norm * norm;
    let mut d: Vec<f64> = one.values.iter().chain(&two.values).copied().collect();
    let mut rows = [[one.first, vec![0.0; count - half]].concat(), [vec![0.0; half], two.last].concat()];
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| d[*a].total_cmp(&d[*b]));
    // What z hardly reaches, or one of two that are almost equal, is an eigenvalue as it is.
    let most = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let least = 8.0 * f64::EPSILON * most(&d).max(most(&z));
    let (mut kept, mut done): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for &place in &order {
        if rho * z[place].abs() <= least {
            done.push(place);
            continue;
        }
        if let Some(&before) = kept.last() {
            let norm = z[before].hypot(z[place]);
            let (c, s) = (z[place] / norm, -z[before] / norm);
            if ((d[place] - d[before]) * c * s).abs() <= least {
                (z[before], z[place]) = (0.0, norm);
                solvers.turn([first + before, first + place], c, s);
                for row in &mut rows {
                    let (x, y) = (row[before], row[place]);
                    (row[before], row[place]) = (c * x + s * y, c * y - s * x);
                }
                let (low, high) = (d[before], d[place]);
                (d[before], d[place]) = (low * c * c + high * s * s, low * s * s + high * c * c);
                kept.pop();
                done.push(before);
            }
        }
        kept.push(place);
    }
    let mut values = d.clone();
    if !kept.is_empty() {
        let equation = Secular {
            d: kept.iter().map(|&place| d[place]).collect(),
            z: kept.iter().map(|&place| z[place]).collect(),
            rho,
        };
        let found = shared(kept.len(), solvers, |number| {
            let root = equation.root(number);
            [f64::from(u8::from(root.pole != number)), root.behind]
        })?;
        let roots: Vec<Root> = found
            .iter()
            .enumerate()
            .map(|(number, [next, behind])| Root { pole: number + usize::from(*next != 0.0), behind: *behind })
            .collect();
        let exact = shared(kept.len(), solvers, |pole| [equation.exact(&roots, pole), 0.0])?;
        let exact: Vec<f64> = exact.into_iter().map(|[value, _]| value).collect();
        let columns: Vec<usize> = kept.iter().map(|&place| first + place).collect();
        let before = rows.clone();
        let size = kept.len();
        solvers.multiply(first..first + count, &columns, &mut |wanted: Range<usize>| {
            let mut all = vec![0.0; size * wanted.len()];
            let mut column = vec![0.0; size];
            for number in wanted.clone() {
                equation.vector(&exact, roots[number], &mut column);
                for (row, old) in rows.iter_mut().zip(&before) {
                    row[kept[number]] = kept.iter().zip(&column).map(|(&place, value)| old[place] * value).sum();
                }
                for (place, value) in column.iter().enumerate() {
                    all[place * wanted.len() + number - wanted.start] = *value;
                }
            }
            all
        })?;
        for (&place, root) in kept.iter().zip(&roots) {
            values[place] = equation.d[root.pole] + root.behind;
        }
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    solvers.arrange(first, &order);
    let sorted = |all: &[f64]| order.iter().map(|&place| all[place]).collect::<Vec<f64>>();
    Ok(Solved { values: sorted(&values), first: sorted(&rows[0]), last: sorted(&rows[1]) })
}

/// The parts in which columns are made.
pub fn in_parts(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(COLUMNS).map(move |first| first..count.min(first + COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rows, by columns.
    struct Alone(Vec<Vec<f64>>);

    impl Solvers for Alone {
        type Error = ();

        fn place(&self) -> (usize, usize) {
            (0, 1)
        }

        fn sum(&mut self, _numbers: &mut [f64]) -> Result<(), ()> {
            Ok(())
        }

        fn set(&mut self, part: Range<usize>, vectors: &[f64]) {
            for (row, values) in part.clone().zip(vectors.chunks_exact(part.len())) {
                part.clone().zip(values).for_each(|(column, value)| self.0[column][row] = *value);
            }
        }

        fn turn(&mut self, [one, two]: [usize; 2], c: f64, s: f64) {
            for row in 0..self.0.len() {
                let (x, y) = (self.0[one][row], self.0[two][row]);
                (self.0[one][row], self.0[two][row]) = (c * x + s * y, c * y - s * x);
            }
        }

        fn multiply(
            &mut self,
            part: Range<usize>,
            columns: &[usize],
            make: &mut dyn FnMut(Range<usize>) -> Vec<f64>,
        ) -> Result<(), ()> {
            let old: Vec<Vec<f64>> = columns.iter().map(|&column| self.0[column].clone()).collect();
            for wanted in in_parts(columns.len()) {
                let factors = make(wanted.clone());
                for number in wanted.clone() {
                    for row in part.clone() {
                        let factor = |place: usize| factors[place * wanted.len() + number - wanted.start];
                        self.0[columns[number]][row] =
                            (0..old.len()).map(|place| old[place][row] * factor(place)).sum();
                    }
                }
            }
            Ok(())
        }

        fn arrange(&mut self, first: usize, order: &[usize]) {
            let old = self.0[first..first + order.len()].to_vec();
            order.iter().enumerate().for_each(|(place, &from)| self.0[first + place] = old[from].clone());
        }
    }

    fn check(diagonal: &[f64], beside: &[f64]) {
        let count = diagonal.len();
        let mut all = Alone(vec![vec![0.0; count]; count]);
        let values = solve(diagonal.to_vec(), beside, &mut all).unwrap();
        let most = diagonal.iter().chain(beside).fold(1e-300, |most: f64, value| most.max(value.abs()));
        let bound = most * f64::EPSILON * 20.0 * count as f64;
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        for (vector, value) in all.0.iter().zip(&values) {
            for row in 0..count {
                let mut made = diagonal[row] * vector[row];
                made += if row > 0 { beside[row - 1] * vector[row - 1] } else { 0.0 };
                made += if row + 1 < count { beside[row] * vector[row + 1] } else { 0.0 };
                assert!((made - value * vector[row]).abs() < bound, "{count}: {} at {row}", made - value * vector[row]);
            }
        }
        for one in 0..count {
            for two in one..count {
                let product: f64 = all.0[one].iter().zip(&all.0[two]).map(|(x, y)| x * y).sum();
                let wanted = f64::from(u8::from(one == two));
                assert!(
                    (product - wanted).abs() < f64::EPSILON * 20.0 * count as f64,
                    "{count}: {one} {two} {product}"
                );
            }
        }
    }

    #[test]
    fn vectors_are_orthogonal_and_those_of_the_matrix() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for count in [1, 2, 24, 25, 60, 200, 301] {
            let (d, e): (Vec<f64>, Vec<f64>) =
                ((0..count).map(|_| random()).collect(), (1..count).map(|_| random()).collect());
            check(&d, &e);
            // Second differences; equal values; small ones beside large ones; parts that nothing joins; what is nearly glued.
            check(&vec![2.0; count], &vec![-1.0; count - 1]);
            check(&vec![0.0; count], &vec![0.0; count - 1]);
            check(&vec![1.0; count], &vec![1e-9; count - 1]);
            let graded: Vec<f64> = (0..count).map(|place| 10f64.powi(-((place % 30) as i32))).collect();
            check(&graded, &graded[1..]);
            let wilkinson: Vec<f64> = (0..count).map(|place| ((place % 21) as f64 - 10.0).abs()).collect();
            let glued: Vec<f64> = (1..count).map(|place| if place % 21 == 0 { 1e-8 } else { 1.0 }).collect();
            check(&wilkinson, &glued);
            let cut: Vec<f64> = (1..count).map(|place| if place % 7 == 0 { 0.0 } else { random() }).collect();
            check(&d, &cut);
        }
    }
}
