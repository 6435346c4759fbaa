//! Running blocks whose arrays do not fit the device together: their loop nests, piece by piece, on arrays in host memory.

use crate::code::{self, Code, KernelMemory, Variant};
use crate::launch::{Failure, Launcher, failed, note_bytes};
use crate::memory::Memory;
use crate::parted::{InPieces, Nests};
use crate::pieces::{Part, Piece, Window};
use crate::start::Launch;
use bh_bytecode::BatchRef;
use bh_core::abi::status;
use bh_core::component::Loan;
use bh_core::{Error, Result};
use bh_kernel::{BaseUse, BufferRef};

/// A base in host memory, which nobody else uses for as long as it is lent.
pub(crate) struct Home {
    /// Index in the batch.
    base: u32,
    loan: Loan,
}

impl Home {
    /// The elements of a window.
    fn slice(&mut self, window: &Window) -> &mut [u8] {
        // SAFETY: the loan has all elements of the base, and windows are made of views, which were validated; the only
        // reference to them is this one.
        unsafe {
            let first = self.loan.data().cast::<u8>().add(window.offset());
            std::slice::from_raw_parts_mut(first, window.bytes())
        }
    }
}

/// The elements of a window in host memory.
fn elements<'a>(homes: &'a mut [Home], window: &Window) -> Result<&'a mut [u8]> {
    if window.len == 0 {
        return Ok(&mut []);
    }
    let found = homes.iter_mut().find(|home| home.base == window.base);
    let missing = || Error::new(status::DEVICE, "a piece's array is missing");
    found.map(|home| home.slice(window)).ok_or_else(missing)
}

/// The memory and the kernels of a piece.
pub(crate) struct Ready {
    launches: Vec<Launch>,
    windows: Vec<(Window, Memory)>,
    partials: Vec<Memory>,
    scratch: Vec<Memory>,
    note: Option<Memory>,
}

impl Ready {
    pub(crate) fn kernels(&self) -> u64 {
        self.launches.len() as u64
    }

    fn memory<'a>(&'a self, temporaries: &'a [Memory], place: KernelMemory) -> Option<&'a Memory> {
        match place {
            KernelMemory::Of(BufferRef::Base(window)) => self.windows.get(window as usize).map(|(_, memory)| memory),
            KernelMemory::Of(BufferRef::Temporary(number)) => {
                let number = number as usize;
                temporaries.get(number).or_else(|| self.partials.get(number - temporaries.len()))
            }
            KernelMemory::Of(BufferRef::Fresh(_) | BufferRef::None) => None,
            KernelMemory::Scratch(number) => self.scratch.get(number as usize),
            KernelMemory::Failures => self.note.as_ref(),
        }
    }
}

impl Launcher {
    /// Runs a block piece by piece. Its outputs are in host memory afterwards. Returns how many pieces and kernels there were, and
    /// the instructions that failed while the others went on.
    pub(crate) fn in_pieces(&mut self, batch: &BatchRef<'_>, block: &InPieces) -> Result<(u64, u64, Vec<Failure>)> {
        self.begun = false;
        match block {
            InPieces::Nests(nests) => self.nests(batch, nests),
            InPieces::Steps(steps) => self.in_steps(batch, steps),
        }
    }

    fn nests(&mut self, batch: &BatchRef<'_>, nests: &Nests) -> Result<(u64, u64, Vec<Failure>)> {
        self.arrays.tick();
        let mut homes = self.homes(batch, &nests.uses)?;
        let temporaries = self.take_all(&nests.temporaries)?;
        let (mut pieces, mut kernels, mut failures) = (0, 0, Vec::new());
        for stage in &nests.stages {
            let too_large = || Error::new(status::MEMORY, "out of device memory: its arrays cannot be parted");
            let mut left = crate::pieces::parts(stage, batch, &nests.room).ok_or_else(too_large)?;
            left.reverse();
            while let Some(part) = left.pop() {
                let piece = crate::pieces::piece(stage, &part, batch, temporaries.len());
                match self.prepare(piece) {
                    Ok(ready) => {
                        self.piece(batch, &ready, &temporaries, &mut homes, &mut failures)?;
                        pieces += 1;
                        kernels += ready.launches.len() as u64;
                    }
                    Err(error) if error.status == status::MEMORY => {
                        let [first, second]: [Part; 2] = part.split(stage, batch).ok_or(error)?;
                        left.extend([second, first]);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((pieces, kernels, failures))
    }

    /// Brings the bases of a block to host memory. Bases that are only overwritten come last, as their content is given up.
    pub(crate) fn homes(&mut self, batch: &BatchRef<'_>, uses: &[BaseUse]) -> Result<Vec<Home>> {
        let mut homes = Vec::new();
        for overwritten in [false, true] {
            for used in uses.iter().filter(|used| used.discards() == overwritten) {
                let loan = self.arrays.bring_home(&batch.bases[used.base as usize], used.access)?;
                homes.push(Home { base: used.base, loan });
            }
        }
        Ok(homes)
    }

    /// Takes the memory of a piece and builds its kernels. Changes nothing.
    fn prepare(&mut self, piece: Piece) -> Result<Ready> {
        let pool = self.arrays.pool.clone();
        let mut scratch = Vec::new();
        let mut codes = Vec::new();
        for stage in std::iter::once(&piece.stage).chain(&piece.combine) {
            codes.extend(code::stage(stage, &pool.target, Variant::Parameterised, &mut scratch));
        }
        self.bring(codes, piece.windows, &piece.partials, &scratch)
    }

    /// Takes the memory of kernels that work on windows and builds them. Changes nothing.
    pub(crate) fn bring(
        &mut self,
        codes: Vec<Code>,
        windows: Vec<Window>,
        partials: &[usize],
        scratch: &[usize],
    ) -> Result<Ready> {
        let programs = self.arrays.pool.programs.clone();
        let notes = codes.iter().map(note_bytes).max().unwrap_or(0);
        let windows = windows.into_iter().map(|window| Ok((window, self.arrays.take(window.bytes())?)));
        let windows = windows.collect::<Result<Vec<(Window, Memory)>>>()?;
        let (partials, scratch) = (self.take_all(partials)?, self.take_all(scratch)?);
        let note = if notes > 0 { Some(self.arrays.take(notes)?) } else { None };
        let launches: Vec<Launch> = codes.into_iter().map(|code| Launch::new(code, &programs)).collect();
        for launch in &launches {
            launch.bring_numbers(|bytes| self.arrays.take(bytes))?;
        }
        let entries: Vec<_> = launches.iter().map(|launch| launch.entry.clone()).collect();
        programs.build(&entries)?;
        Ok(Ready { launches, windows, partials, scratch, note })
    }

    /// Runs a piece: arrays in, kernels, arrays out.
    pub(crate) fn piece(
        &mut self,
        batch: &BatchRef<'_>,
        ready: &Ready,
        temporaries: &[Memory],
        homes: &mut [Home],
        failures: &mut Vec<Failure>,
    ) -> Result<()> {
        self.begun = true;
        for (window, memory) in ready.windows.iter().filter(|(window, _)| window.needed) {
            self.arrays.upload(memory, elements(homes, window)?)?;
        }
        for launch in &ready.launches {
            if let Some(note) = &ready.note {
                note.clear(note_bytes(&launch.code))?;
            }
            let constant = |dtype, name: bh_kernel::ConstantRef| name.value(batch, dtype);
            let memory = |place| ready.memory(temporaries, place);
            let event = launch.start(&self.arrays.pool.gpu, &memory, &constant, self.timing.is_wanted())?;
            self.timing.started(event);
            if let Some(note) = &ready.note {
                failed(&launch.code, note, failures)?;
            }
        }
        for (window, memory) in ready.windows.iter().filter(|(window, _)| window.written) {
            self.arrays.download(memory, elements(homes, window)?)?;
        }
        Ok(())
    }
}
