//! What a block needs to run: its kernels, the bases that it uses and how, and its renames.

use crate::code::{self, Code, Target, Variant};
use crate::programs::{Entry, Programs};
use bh_bytecode::BatchRef;
use bh_bytecode::batch::NO_BASE;
use bh_core::abi::access;
use bh_fuser::lower::{
    self, BaseUse, BufferRef, Dim, Kernel, Lowered, Parameters, Slot, SlotMode, Special, Stage, Step, StrideClass, Uses,
};
use std::sync::Arc;

/// One kernel to launch.
pub(crate) struct Launch {
    pub(crate) code: Code,
    pub(crate) entry: Arc<Entry>,
    /// Numbers on the device, if they are no arguments.
    pub(crate) numbers: Option<crate::memory::Memory>,
}

/// The kernels of a block in one variant.
pub(crate) struct Launches {
    pub(crate) all: Vec<Launch>,
    /// Bytes of memory between the kernels.
    pub(crate) scratch: Vec<usize>,
}

impl Launches {
    /// Are all of them built?
    pub(crate) fn ready(&self) -> bool {
        self.all.iter().all(|launch| launch.entry.ready().is_some())
    }
}

/// A planned block.
pub(crate) struct BlockPlan {
    pub(crate) uses: Vec<BaseUse>,
    /// Bases that get new memory.
    pub(crate) renames: Vec<u32>,
    /// Bytes of the results of contracted reductions.
    pub(crate) temporaries: Vec<usize>,
    pub(crate) plain: Launches,
    /// With sizes in their texts, if that was asked for.
    pub(crate) special: Option<Launches>,
    /// How often it has run.
    pub(crate) runs: u32,
}

impl BlockPlan {
    /// Plans a block.
    pub(crate) fn new(batch: &BatchRef<'_>, block: u32, target: &Target, programs: &Programs) -> BlockPlan {
        let lowered = lower::lower(batch, block);
        let mut uses = Uses::default();
        let mut temporaries = Vec::new();
        match &lowered {
            Lowered::Nothing => {}
            Lowered::Special(special) => uses.special(batch, *special),
            Lowered::Loops(stages, between) => {
                stages.iter().for_each(|stage| uses.stage(batch, stage));
                temporaries = between.iter().map(|it| it.len as usize * it.dtype.size()).collect();
            }
        }
        let renames = batch.renames(&batch.blocks[block as usize]);
        for rename in renames {
            if rename.uncovered_count > 0 {
                uses.add(rename.base, access::READ);
            }
            if rename.alias != NO_BASE {
                uses.add(rename.alias, access::WRITE | access::DISCARD);
            }
        }
        BlockPlan {
            uses: uses.into_vec(),
            renames: renames.iter().map(|rename| rename.base).collect(),
            temporaries,
            plain: launches(batch, block, &lowered, target, Variant::Parameterised, programs),
            special: None,
            runs: 0,
        }
    }

    /// Plans the kernels with sizes in their texts.
    pub(crate) fn specialise(&mut self, batch: &BatchRef<'_>, block: u32, target: &Target, programs: &Programs) {
        let lowered = lower::lower(batch, block);
        self.special = Some(launches(batch, block, &lowered, target, Variant::Specialised, programs));
    }

    /// The kernels to run: specialised ones if they are built.
    pub(crate) fn launches(&mut self) -> &mut Launches {
        match &mut self.special {
            Some(special) if special.ready() => special,
            _ => &mut self.plain,
        }
    }
}

/// All kernels of a block.
fn launches(
    batch: &BatchRef<'_>,
    block: u32,
    lowered: &Lowered,
    target: &Target,
    variant: Variant,
    programs: &Programs,
) -> Launches {
    let mut scratch = Vec::new();
    let mut codes = Vec::new();
    match lowered {
        Lowered::Nothing => {}
        Lowered::Loops(stages, _) => {
            stages.iter().for_each(|stage| codes.extend(code::stage(stage, target, variant, &mut scratch)));
        }
        Lowered::Special(Special::Accumulate(instr)) => {
            (codes, scratch) = code::accumulate(batch, *instr, target, variant);
        }
        Lowered::Special(Special::Scatter(instr)) => {
            (codes, scratch) = code::scatter(batch, *instr, target, variant).unwrap_or_default();
        }
        Lowered::Special(Special::Extension(_)) => {}
    }
    for rename in batch.renames(&batch.blocks[block as usize]) {
        let copy = |view| lower::copy_stage(batch, view, BufferRef::Base(rename.base), BufferRef::Fresh(rename.base));
        let mut stages: Vec<Stage> = batch.uncovered(rename).iter().map(|&view| copy(view)).collect();
        if rename.alias != NO_BASE {
            stages.push(alias_stage(batch, rename.alias, rename.base, rename.alias_view));
        }
        stages.iter().for_each(|stage| codes.extend(code::stage(stage, target, variant, &mut scratch)));
    }
    let launch = |mut code: Code| {
        let entry = programs.entry(std::mem::take(&mut code.text));
        Launch { code, entry, numbers: None }
    };
    Launches { all: codes.into_iter().map(launch).collect(), scratch }
}

/// Copies the view of a fresh buffer that a base equals to the base itself.
fn alias_stage(batch: &BatchRef<'_>, alias: u32, base: u32, view: u32) -> Stage {
    let dtype = batch.bases[alias as usize].dtype();
    let shape = if batch.shape(view).is_empty() { vec![1] } else { batch.shape(view).to_vec() };
    let mut dense = vec![1; shape.len()];
    for dim in (0..shape.len() - 1).rev() {
        dense[dim] = dense[dim + 1] * shape[dim + 1];
    }
    let source = if batch.stride(view).is_empty() { vec![0] } else { batch.stride(view).to_vec() };
    let slot = |mode, same_as| Slot { dtype, mode, inner: StrideClass::Other, same_as };
    Stage {
        kernel: Kernel {
            dims: vec![Dim::Kept; shape.len()],
            slots: vec![slot(SlotMode::Read, 0), slot(SlotMode::Write, 1)],
            constants: Vec::new(),
            steps: vec![Step::Load { slot: 0 }, Step::Store { slot: 1, arg: lower::Arg::Value(0) }],
        },
        parameters: Parameters {
            extents: shape,
            buffers: vec![BufferRef::Fresh(base), BufferRef::Base(alias)],
            starts: vec![batch.views[view as usize].start, 0],
            strides: [source, dense].concat(),
            instrs: vec![0; 2],
            ..Parameters::default()
        },
    }
}
