//! How many decimal digits the results of a program keep: random rounding, as stochastic arithmetic defines it.
//!
//! Each array of floats has shadows: arrays that the same operations make, but whose results are moved by about one unit of the last
//! place at random after each operation that rounds. The digits that the shadows and the program's own array share are those
//! that do not depend on how results are rounded. The program's own arrays decide: masks, indices and integers are made of
//! them alone. (J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993; D. Parker, "Monte Carlo
//! arithmetic", 1997.)

mod shadowed;

use crate::stack::backend::Backend;
use crate::stack::checked::guard::{discard, execute};
use bh_bytecode::{Base, BatchRef, DType};
use bh_core::abi::access;
use bh_core::error::Result;
use std::collections::{HashMap, HashSet};

/// Shadows of each array.
pub(super) const SHADOWS: usize = 3;

/// The digits of the results of one operation in one line of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct LineDigits {
    /// File and line, as they were recorded.
    pub place: (String, u32),
    /// The operation.
    pub operation: String,
    /// The type of the results, of their parts if they are complex.
    pub dtype: DType,
    /// The largest distance of a shadow from an element, as a part of that element.
    pub element: f64,
    /// The largest distance of a shadow from an element, as a part of the largest element of the same result.
    pub array: f64,
    /// How often it ran.
    pub runs: u64,
}

impl LineDigits {
    /// The decimal digits that a relative distance leaves, at most those of the type.
    pub fn digits(&self, distance: f64) -> f64 {
        let most = if self.dtype == DType::F32 { 7.2 } else { 15.9 };
        if distance > 0.0 { (0.0 - distance.log10()).clamp(0.0, most) } else { most }
    }
}

/// The shadows of a context's arrays, and what they say.
#[derive(Default)]
pub(crate) struct Digits {
    shadows: HashMap<u64, [Base; SHADOWS]>,
    lines: Vec<LineDigits>,
    places: HashMap<(String, u32, String), usize>,
    /// Random numbers that were drawn.
    drawn: u32,
}

impl Digits {
    /// Runs a batch on the program's arrays and on their shadows. `changed`: bases that the program has changed itself since the
    /// last batch; `shared`: it may change arrays of the batch at any time.
    pub(crate) fn run(
        &mut self,
        backend: &mut dyn Backend,
        batch: &BatchRef<'_>,
        changed: &HashSet<u64>,
        shared: bool,
    ) -> Result<()> {
        let is_stale =
            |base: &u64| changed.contains(base) || shared && batch.bases.iter().any(|other| other.id == *base);
        self.drop_shadows(backend, is_stale)?;
        let ids = backend.base_ids();
        let made = shadowed::shadowed(self, batch, &ids);
        if let Err(error) = execute(backend, &made.batch.as_ref()) {
            // The batch has failed for the program's arrays, too.
            self.drop_shadows(backend, |_| true)?;
            return Err(error);
        }
        let Some(found) = made.found else { return Ok(()) };
        let data = backend.map(&found, None, access::READ)?.cast::<f64>();
        for (number, &line) in made.lines.iter().enumerate() {
            // SAFETY: a mapped base holds its elements, three for each line.
            let [element, distance, size] = [0, 1, 2].map(|at| unsafe { data.add(3 * number + at).read() });
            let line = &mut self.lines[line];
            line.element = line.element.max(element.min(1.0));
            line.array = line.array.max(if distance > 0.0 { (distance / size).min(1.0) } else { 0.0 });
            line.runs += 1;
        }
        backend.unmap(&found)?;
        discard(backend, &[found])
    }

    /// All lines, in the order of first runs.
    pub(crate) fn lines(&self) -> Vec<LineDigits> {
        self.lines.clone()
    }

    /// Forgets the shadows of some bases.
    pub(crate) fn drop_shadows(&mut self, backend: &mut dyn Backend, is_stale: impl Fn(&u64) -> bool) -> Result<()> {
        let gone: Vec<u64> = self.shadows.keys().copied().filter(is_stale).collect();
        let bases: Vec<Base> = gone.iter().filter_map(|base| self.shadows.remove(base)).flatten().collect();
        discard(backend, &bases)
    }

    /// The number of a line's entry.
    fn line(&mut self, place: (String, u32), operation: &str, dtype: DType) -> usize {
        let key = (place.0.clone(), place.1, operation.to_owned());
        *self.places.entry(key).or_insert_with(|| {
            let operation = operation.to_owned();
            self.lines.push(LineDigits { place, operation, dtype, element: 0.0, array: 0.0, runs: 0 });
            self.lines.len() - 1
        })
    }
}
