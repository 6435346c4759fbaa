//! The stages of the current plan, in order. In builds with debug assertions, models check them.

#[cfg(debug_assertions)]
use crate::plan::order::Order;
use crate::plan::stage::{Local, LocalBatch, Stage, Transfer};
#[cfg(debug_assertions)]
use crate::plan::versions::Versions;
use bh_bytecode::{Base, Instr, Opcode};
use std::ops::Range;

/// Planned stages that have not run.
#[derive(Debug)]
pub struct Stages {
    hosted: Range<usize>,
    complete: bool,
    /// The stages in order.
    pub list: Vec<Stage>,
    #[cfg(debug_assertions)]
    order: Order,
    /// The model of the elements that ranks have.
    #[cfg(debug_assertions)]
    pub versions: Versions,
}

impl Stages {
    /// No stages, for a process that hosts these ranks. `complete`: there are no others.
    pub fn new(hosted: Range<usize>, complete: bool) -> Stages {
        Stages {
            hosted,
            complete,
            list: Vec::new(),
            #[cfg(debug_assertions)]
            order: Default::default(),
            #[cfg(debug_assertions)]
            versions: Versions::new(complete),
        }
    }

    /// The ranks of this process.
    pub fn hosted(&self) -> &Range<usize> {
        &self.hosted
    }

    /// Does this process host all ranks?
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Does this process host a rank?
    pub fn hosts(&self, rank: usize) -> bool {
        self.hosted.contains(&rank)
    }

    /// Takes the stages for execution.
    pub fn take(&mut self) -> Vec<Stage> {
        #[cfg(debug_assertions)]
        {
            self.order = Default::default();
            self.versions.settle();
        }
        std::mem::take(&mut self.list)
    }

    fn at(&mut self, stage: usize) -> &mut Stage {
        while self.list.len() <= stage {
            let local = vec![LocalBatch::default(); self.hosted.len()];
            self.list.push(Stage { transfers: Vec::new(), early: Vec::new(), local });
        }
        &mut self.list[stage]
    }

    /// Appends an instruction to a rank's batch of a stage.
    pub fn push(&mut self, stage: usize, rank: usize, like: &Instr, global: u32, operands: &[Local]) {
        if self.hosts(rank) {
            #[cfg(debug_assertions)]
            self.model(stage, like, global, operands);
            let place = rank - self.hosted.start;
            self.at(stage).local[place].push(like, global, operands);
        }
    }

    /// Records an instruction in the models. A copy without an instruction of the program moves elements.
    #[cfg(debug_assertions)]
    fn model(&mut self, stage: usize, like: &Instr, global: u32, operands: &[Local]) {
        self.order.run(stage, like, operands);
        match operands {
            [Local::Data(target), Local::Data(source)] if global == u32::MAX => self.versions.copy(source, target),
            _ => self.versions.run(operands, usize::from(like.outputs)),
        }
    }

    /// Records in the models that a base is dropped or cleared.
    #[cfg(debug_assertions)]
    fn model_drop(&mut self, stage: Option<usize>, opcode: Opcode, base: &Base) {
        self.order.drop(stage, opcode, base);
        if opcode == Opcode::Discard {
            self.versions.drop(base);
        }
    }

    /// Appends data management to a rank's batch of a stage.
    pub fn push_system(&mut self, stage: usize, rank: usize, opcode: Opcode, base: &Base) {
        if self.hosts(rank) {
            #[cfg(debug_assertions)]
            self.model_drop(Some(stage), opcode, base);
            let place = rank - self.hosted.start;
            self.at(stage).local[place].push_system(opcode, base);
        }
    }

    /// Drops an unused base before any message arrives.
    pub fn drop_first(&mut self, rank: usize, base: &Base) {
        if self.hosts(rank) {
            #[cfg(debug_assertions)]
            self.model_drop(None, Opcode::Discard, base);
            let (place, hosted) = (rank - self.hosted.start, self.hosted.len());
            let early = &mut self.at(0).early;
            early.resize_with(hosted, LocalBatch::default);
            early[place].push_system(Opcode::Discard, base);
        }
    }

    /// Adds a transfer at the beginning of a stage.
    pub fn transfer(&mut self, stage: usize, transfer: Transfer) {
        #[cfg(debug_assertions)]
        {
            self.order.transfer(stage, &transfer);
            self.versions.copy(&transfer.source, &transfer.target);
        }
        // All ranks create the stage, even if they have no part in the transfer.
        let list = &mut self.at(stage).transfers;
        list.push(transfer);
    }
}
