//! Plans QR and SVD of tall matrices as communication-avoiding TSQR: each rank factors its own rows, a tree of ranks
//! joins the triangles, and the squares that complete the orthonormal columns return along the same tree. Only small
//! squares move.

use crate::plan::boxes::IndexBox;
use crate::plan::fold::OwnInstr;
use crate::plan::methods::{PRODUCT, QR};
use crate::plan::planner::{Planner, Share};
use crate::plan::stage::{Local, Place, Transfer};
use bh_bytecode::{Base, BatchRef, Opcode, View};
use bh_core::abi::status;
use bh_core::error::{Error, Result};

/// Triangles joined in one step.
const FAN_IN: usize = 8;

/// An operand: view number, array and view.
type Factor = (u32, u64, View);

/// The outputs for a tall matrix.
struct Outputs {
    /// The output with as many rows as the matrix.
    tall: Option<Factor>,
    /// The small outputs.
    others: Vec<Factor>,
    /// The small outputs derive from the triangle's singular values.
    values: bool,
}

/// A triangle on a rank.
#[derive(Clone, Copy)]
struct Triangle {
    rank: usize,
    place: Place,
}

/// Triangles joined by one of their ranks: the orthonormal columns, with a square of rows for each.
struct Joined {
    members: Vec<usize>,
    columns: Place,
}

impl Planner {
    /// Plans `qr` and `svd` of a tall matrix. False if another way suits it.
    pub(crate) fn factor_tall(&mut self, batch: &BatchRef<'_>, index: u32) -> Result<bool> {
        let Some((matrix, outputs)) = self.tall(batch, index) else { return Ok(false) };
        self.know_inputs(batch, &batch.instrs[index as usize]);
        let (_, id, view) = matrix;
        let Some(shares) = self.tall_shares(batch, index, &matrix, &outputs)? else { return Ok(false) };
        let at = self.fetchable(id);
        if !self.is_available(id, &view, &shares)? && self.fetch(id, &view, &shares, at)?.is_err() {
            return Ok(false);
        }
        for (number, ..) in &outputs.others {
            self.target(batch, index, *number, None)?;
        }
        Work { planner: self, batch, index, columns: view.shape()[1], stage: 0, unused: Vec::new() }
            .run(&matrix, &shares, &outputs)?;
        Ok(true)
    }

    /// The matrix and the outputs of such a method, if the stacks have the methods for it.
    fn tall(&self, batch: &BatchRef<'_>, index: u32) -> Option<(Factor, Outputs)> {
        let instr = &batch.instrs[index as usize];
        let values = match batch.extension_name(instr.opcode)? {
            "qr" => false,
            "svd" => true,
            _ => return None,
        };
        let factor = |view: u32| Some((view, batch.base_of(view)?.id, batch.view(view)));
        let mut all: Vec<Factor> =
            instr.operands().iter().map(|operand| factor(operand.as_view()?)).collect::<Option<_>>()?;
        let matrix = all.pop()?;
        let &[rows, columns] = matrix.2.shape() else { return None };
        let shapes: Vec<&[i64]> = all.iter().map(|(_, _, view)| view.shape()).collect();
        let (tall, square) = ([rows, columns], [columns, columns]);
        let fits = match values {
            false => shapes == [&tall[..], &square],
            true => shapes == [&[columns][..]] || shapes == [&tall[..], &[columns], &square],
        };
        let ids: Vec<u64> = all.iter().map(|(_, id, _)| *id).chain([matrix.1]).collect();
        let apart = ids.iter().enumerate().all(|(place, id)| !ids[..place].contains(id));
        let dtype = batch.base_of(matrix.0)?.dtype();
        if !self.factors || !fits || !apart || columns == 0 || !(dtype.is_float() || dtype.is_complex()) {
            return None;
        }
        let others = all.split_off(usize::from(all.len() > 1));
        Some((matrix, Outputs { tall: all.pop(), others, values }))
    }

    /// The rows of the matrix by rank, or those of the tall output if there is one. `None` unless each has at least as
    /// many rows as columns.
    fn tall_shares(
        &mut self,
        batch: &BatchRef<'_>,
        index: u32,
        (_, id, view): &Factor,
        outputs: &Outputs,
    ) -> Result<Option<Vec<Share>>> {
        let Some(mut shares) = self.slabs((*id, view)) else { return Ok(None) };
        if let Some((number, _, written)) = &outputs.tall {
            let parts = self.input_parts(batch, &batch.instrs[index as usize]);
            let target = self.target(batch, index, *number, parts.as_ref())?;
            match self.slabs((target, written)) {
                Some(own) if self.arrays[&target].extension == (0, 0) => shares = own,
                _ => return Ok(None),
            }
        }
        let columns = view.shape()[1];
        Ok(shares.iter().all(|(_, rows)| rows.extent()[0] >= columns).then_some(shares))
    }
}

/// A plan in progress.
struct Work<'a, 'b> {
    planner: &'a mut Planner,
    batch: &'a BatchRef<'b>,
    index: u32,
    columns: i64,
    /// The stage of the next instructions.
    stage: usize,
    unused: Vec<(usize, Base)>,
}

impl Work<'_, '_> {
    fn run(&mut self, matrix: &Factor, shares: &[Share], outputs: &Outputs) -> Result<()> {
        let mut places = Vec::with_capacity(shares.len());
        for share in shares {
            let (place, ready) = self.planner.locate(matrix.1, &matrix.2, *share)?;
            self.stage = self.stage.max(ready);
            places.push(place);
        }
        let (mut columns, mut triangles) = (Vec::new(), Vec::new());
        for ((rank, rows), place) in shares.iter().zip(&places) {
            let (own, triangle) = self.factor(*rank, place, rows.extent()[0])?;
            columns.push(own);
            triangles.push(Triangle { rank: *rank, place: triangle });
        }
        self.planner.reads(matrix.1, self.stage);
        let mut levels = Vec::new();
        while triangles.len() > 1 {
            self.stage += 1;
            let (joined, left) = self.join(&triangles)?;
            levels.push((triangles, joined));
            triangles = left;
        }
        let root = triangles[0];
        let given = self.finish_small(root, outputs)?;
        if let Some(tall) = &outputs.tall {
            let last = self.pass_down(root, given, levels)?;
            self.finish_tall(tall, shares, &columns, &last)?;
        }
        for (rank, base) in std::mem::take(&mut self.unused) {
            self.planner.stages.push_system(self.stage, rank, Opcode::Discard, &base);
        }
        Ok(())
    }

    /// A temporary that lives until the end of the plan.
    fn scratch(&mut self, rank: usize, like: &Base, shape: &[i64]) -> Result<Place> {
        let place = self.planner.scratch(rank, like, shape)?;
        self.unused.push((rank, place.base));
        Ok(place)
    }

    /// Appends a method on places of a rank.
    fn call(&mut self, rank: usize, method: Opcode, outputs: u8, places: &[Place]) {
        let mut own = OwnInstr::new(self.batch, self.index, method, places.len());
        own.instr.outputs = outputs;
        let operands: Vec<Local> = places.iter().copied().map(Local::Data).collect();
        self.planner.stages.push(self.stage, rank, &own.instr, own.index, &operands);
    }

    /// Factors a rank's rows: orthonormal columns and triangle.
    fn factor(&mut self, rank: usize, rows: &Place, count: i64) -> Result<(Place, Place)> {
        let columns = self.scratch(rank, &rows.base, &[count, self.columns])?;
        let triangle = self.scratch(rank, &rows.base, &[self.columns; 2])?;
        self.call(rank, QR, 2, &[columns, triangle, *rows]);
        Ok((columns, triangle))
    }

    /// The square of a member in the joined columns.
    fn square(&self, all: &Place, member: usize) -> Result<Place> {
        let part = IndexBox::whole(all.view.shape()).with(0, member as i64 * self.columns, self.columns);
        Ok(Place { base: all.base, view: part.of(&all.view, 0)? })
    }

    fn moved(&mut self, from: usize, to: usize, source: Place, target: Place) {
        if from == to {
            self.planner.copy(self.stage, to, target, source);
        } else if self.planner.stages.hosts(from) || self.planner.stages.hosts(to) {
            self.planner.stages.transfer(self.stage, Transfer { from, to, source, target });
        }
    }

    /// Sends the triangles of each group to its first rank, which factors them.
    fn join(&mut self, triangles: &[Triangle]) -> Result<(Vec<Joined>, Vec<Triangle>)> {
        let (mut joined, mut left) = (Vec::new(), Vec::new());
        for (number, group) in triangles.chunks(FAN_IN).enumerate() {
            let (rank, count) = (group[0].rank, group.len() as i64 * self.columns);
            let all = self.scratch(rank, &group[0].place.base, &[count, self.columns])?;
            for (member, triangle) in group.iter().enumerate() {
                let square = self.square(&all, member)?;
                self.moved(triangle.rank, rank, triangle.place, square);
            }
            let (columns, place) = self.factor(rank, &all, count)?;
            let members = (number * FAN_IN..number * FAN_IN + group.len()).collect();
            joined.push(Joined { members, columns });
            left.push(Triangle { rank, place });
        }
        Ok((joined, left))
    }

    /// Writes the small outputs; returns the factor for the triangle's orthonormal columns, if there is one.
    fn finish_small(&mut self, root: Triangle, outputs: &Outputs) -> Result<Option<Place>> {
        let (mut made, mut given) = (vec![root.place], None);
        if outputs.values {
            let mut places = Vec::new();
            if outputs.tall.is_some() {
                given = Some(self.scratch(root.rank, &root.place.base, &[self.columns; 2])?);
                places.extend(given);
            }
            made.clear();
            for (_, id, view) in &outputs.others {
                let like = self.planner.arrays[id].base;
                made.push(self.scratch(root.rank, &like, view.shape())?);
            }
            places.extend(&made);
            let count = places.len() as u8;
            places.push(root.place);
            let method = self.batch.instrs[self.index as usize].opcode;
            self.call(root.rank, method, count, &places);
        }
        self.stage += 1;
        for ((_, id, view), source) in outputs.others.iter().zip(made) {
            self.send_to_owners(root.rank, source, *id, view)?;
        }
        Ok(given)
    }

    /// Sends a small result to the owners of an output.
    fn send_to_owners(&mut self, from: usize, source: Place, id: u64, view: &View) -> Result<()> {
        self.stage = self.stage.max(self.planner.after_use(id) + 1);
        let shares = self.planner.shares(id, view);
        let shares = shares.ok_or_else(|| Error::new(status::BATCH, "a small factor is cut into too many parts"))?;
        for (rank, part) in shares {
            let shard = self.planner.shard(id, rank);
            let target = Place { base: shard.base, view: part.of(view, shard.window.low)? };
            let source = Place { base: source.base, view: part.of(&source.view, 0)? };
            self.moved(from, rank, source, target);
        }
        self.planner.finish(id, view, self.stage, false);
        Ok(())
    }

    /// Sends each rank the square that completes its orthonormal columns.
    fn pass_down(
        &mut self,
        root: Triangle,
        given: Option<Place>,
        levels: Vec<(Vec<Triangle>, Vec<Joined>)>,
    ) -> Result<Vec<Place>> {
        let mut squares = vec![given];
        for (triangles, joined) in levels.into_iter().rev() {
            let mut next = vec![None; triangles.len()];
            let mut sent = Vec::new();
            for (joined, given) in joined.into_iter().zip(squares) {
                let rank = triangles[joined.members[0]].rank;
                let mut all = joined.columns;
                if let Some(given) = given {
                    all = self.scratch(rank, &root.place.base, joined.columns.view.shape())?;
                    self.call(rank, PRODUCT, 1, &[all, joined.columns, given]);
                }
                sent.push((rank, all, joined.members));
            }
            self.stage += 1;
            for (rank, all, members) in sent {
                for (number, member) in members.into_iter().enumerate() {
                    let square = self.square(&all, number)?;
                    let to = triangles[member].rank;
                    next[member] = Some(square);
                    if to != rank {
                        let arrived = self.scratch(to, &all.base, &[self.columns; 2])?;
                        self.moved(rank, to, square, arrived);
                        next[member] = Some(arrived);
                    }
                }
            }
            squares = next;
        }
        Ok(squares.into_iter().flatten().collect())
    }

    /// Completes every owner's orthonormal columns.
    fn finish_tall(
        &mut self,
        (_, id, view): &Factor,
        shares: &[Share],
        columns: &[Place],
        squares: &[Place],
    ) -> Result<()> {
        self.stage = self.stage.max(self.planner.after_use(*id));
        for (((rank, rows), columns), square) in shares.iter().zip(columns).zip(squares) {
            let shard = self.planner.shard(*id, *rank);
            let out = Place { base: shard.base, view: rows.of(view, shard.window.low)? };
            self.call(*rank, PRODUCT, 1, &[out, *columns, *square]);
        }
        self.planner.finish(*id, view, self.stage, false);
        Ok(())
    }
}
