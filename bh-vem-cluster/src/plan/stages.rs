//! The stages of a program while they are planned, in order. Models check them in builds with debug assertions.

#[cfg(debug_assertions)]
use crate::plan::order::Order;
use crate::plan::stage::{Local, LocalBatch, Stage, Transfer};
#[cfg(debug_assertions)]
use crate::plan::versions::Versions;
use bh_bytecode::{Base, Instr, Opcode};
use std::ops::Range;

/// The stages of a program that were planned and have not run yet.
#[derive(Debug)]
pub struct Stages {
    hosted: Range<usize>,
    complete: bool,
    /// The stages in order.
    pub list: Vec<Stage>,
    #[cfg(debug_assertions)]
    order: Order,
    /// What ranks have.
    #[cfg(debug_assertions)]
    pub versions: Versions,
}

impl Stages {
    /// None, for these ranks, which may be all that there are.
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

    /// The ranks whose work this process does.
    pub fn hosted(&self) -> &Range<usize> {
        &self.hosted
    }

    /// Are these all ranks that there are?
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Does this process do the work of a rank?
    pub fn hosts(&self, rank: usize) -> bool {
        self.hosted.contains(&rank)
    }

    /// Takes the stages, to run them.
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

    /// Tells the models of an instruction. Copies that are no part of the program's move elements.
    #[cfg(debug_assertions)]
    fn model(&mut self, stage: usize, like: &Instr, global: u32, operands: &[Local]) {
        self.order.run(stage, like, operands);
        match operands {
            [Local::Data(target), Local::Data(source)] if global == u32::MAX => self.versions.copy(source, target),
            _ => self.versions.run(operands, usize::from(like.outputs)),
        }
    }

    /// Tells the models that a base is dropped, or becomes zeros.
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

    /// Drops data that nothing uses any more, before anything arrives.
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

    /// Lets data move at the beginning of a stage.
    pub fn transfer(&mut self, stage: usize, transfer: Transfer) {
        #[cfg(debug_assertions)]
        {
            self.order.transfer(stage, &transfer);
            self.versions.copy(&transfer.source, &transfer.target);
        }
        // All ranks have the same stages, whatever moves between them.
        let list = &mut self.at(stage).transfers;
        list.push(transfer);
    }
}
