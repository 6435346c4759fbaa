//! The cluster: feeds programs to the machine and answers for its arrays on rank 0.

mod bypass;
mod bypass_policy;
mod configured;
mod data;
pub mod front;
mod mapped;

use crate::command::Command;
use crate::command::known_batches::KnownBatches;
use crate::command::wire::Reader;
use crate::coordinator::handshake::handshake;
use crate::coordinator::launch::{JOINED, connect};
use crate::coordinator::membership::{Membership, speeds, usable_stacks};
use crate::coordinator::serve::Server;
use crate::coordinator::{CommandGuard, Coordinator};
use crate::plan::planner::Planner;
use crate::plan::settings::Settings;
use crate::run::call;
use crate::run::called;
use crate::run::counters::Counters;
use crate::run::file_region;
use crate::run::machine::Machine;
use crate::run::tune;
use crate::transport::inprocess::InProcess;
use crate::transport::remote::Remote;
use crate::transport::{Port, Traffic, Transport, to_json};
use bh_bytecode::{Base, Batch, BatchRef, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{
    Adoption, Capabilities, Export, ExportRequest, HostMemory, Prediction, Residency, access, adopt, capability,
    log_level, retire, status,
};
use bh_core::component::{Child, Counter, Host, Report, Ticket};
use bh_core::error::{Error, Result};
use bh_core::keys;
use bh_core::strided;
use bypass::{Bypass, bytes_of, order};
use configured::{Defaults, description, line, settings};
use mapped::Mapped;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Program lines remembered for operations that run on one rank, at most.
const MOST_LINES: usize = 1000;

/// Ranks whose shares are printed, at most.
const MOST_SHOWN: usize = 16;

/// The exit code of a process that an interrupt ended, as shells report it.
const INTERRUPTED: i32 = 130;

/// The manager of a cluster.
pub struct Cluster {
    host: Host,
    /// The connection to ranks in other processes. `None` in a single process and on ranks other than 0.
    coordinator: Option<Coordinator>,
    /// On ranks other than 0: the loop that serves rank 0's commands.
    server: Option<Server>,
    machine: Machine,
    /// Known batches, used where no other process needs a description of them.
    known_batches: KnownBatches,
    mapped: HashMap<u64, Mapped>,
    /// The direct route to the first child.
    bypass: Arc<Bypass>,
    /// The bypass may open when one of several children owns every array.
    may_bypass: bool,
    /// How often operations ran on one rank, by file, line and name. Each of them caused one warning.
    brought: BTreeMap<(String, u32, String), u64>,
    on_one_rank: Counter,
    bypassed: Counter,
    counters: Counters,
    /// Work in progress on this process's ranks, by ticket, oldest first.
    open: VecDeque<(u64, Vec<u64>)>,
    /// The last ticket.
    last: u64,
}

impl Cluster {
    /// Creates a cluster above these children, and the bypass to its first child.
    fn create(host: Host, mut children: Vec<Child>) -> Result<(Cluster, Arc<Bypass>)> {
        if children.is_empty() {
            return Err(Error::new(status::INIT, "vem-cluster needs a stack below it"));
        }
        call::note(&host);
        let mut bypass = Bypass::new(&mut children[0]);
        let remote = connect(&host)?;
        let counted = host.config(&keys::cluster::RANKS).is_some();
        let keep_all = counted || host.config(&keys::cluster::WEIGHTS).is_some();
        let (mut coordinator, mut server, mut may_bypass) = (None, None, false);
        let mut machine = match remote.filter(|(remote, _)| remote.ranks() > 1) {
            // The meeting ends when all ranks have joined.
            Some((remote, _meeting)) if remote.rank() == 0 => {
                let (started, machine) = Cluster::coordinate(host, remote, children, keep_all)?;
                coordinator = Some(started);
                machine
            }
            Some((remote, meeting)) => {
                let mine = line(&host).map(|line| handshake(&line, &description(&host)));
                server = Some(Server::new(host, remote, mine, meeting, children));
                JOINED.store(true, Ordering::Release);
                let (settings, counts) = (Settings::default(remote.ranks()), vec![1; remote.ranks()]);
                let membership = Membership { settings, counts, memory: Vec::new() };
                Machine::remote(host, remote, membership, Vec::new(), true)
            }
            None => {
                let ranks = counted.then(|| host.setting(&keys::cluster::RANKS)).transpose()?;
                let mut machine = Cluster::in_process(host, children, ranks, keep_all)?;
                if host.setting(&keys::cluster::SIDE_BY_SIDE)? {
                    machine.work_side_by_side();
                    may_bypass = machine.is_of_siblings();
                }
                machine
            }
        };
        machine.peer_copies = host.setting(&keys::cluster::PEER_COPIES)?;
        if let Some(first) = machine.children.first_mut() {
            bypass = Bypass::new(first);
        }
        let bypass = Arc::new(bypass);
        let mut cluster = Cluster {
            host,
            coordinator,
            server,
            machine,
            known_batches: KnownBatches::default(),
            mapped: HashMap::new(),
            bypass: Arc::clone(&bypass),
            may_bypass,
            brought: BTreeMap::new(),
            on_one_rank: host.counter("cluster.operations brought to one rank"),
            bypassed: host.counter("cluster.batches given to one child"),
            counters: Counters::new(&host),
            open: VecDeque::new(),
            last: 0,
        };
        cluster.open_bypass();
        Ok((cluster, bypass))
    }

    /// Rank 0's connection to the other processes, and its machine.
    fn coordinate(
        host: Host,
        remote: Remote,
        mut children: Vec<Child>,
        keep_all: bool,
    ) -> Result<(Coordinator, Machine)> {
        let (line, description) = (line(&host)?, description(&host));
        let stacks = usable_stacks(&mut children, keep_all);
        let handshake = handshake(&line, &description);
        let open = Command::Open(keep_all, description);
        let (coordinator, membership) = Coordinator::start(remote, &handshake, &open, &stacks, |all| {
            let ranks = all.iter().map(Vec::len).sum();
            settings(&host, ranks, speeds(all), Defaults::of_processes(all))
        })?;
        JOINED.store(true, Ordering::Release);
        Ok((coordinator, Machine::remote(host, remote, membership, children, keep_all)))
    }

    /// A machine with all ranks in this process: as many as given, or one per child.
    fn in_process(host: Host, mut children: Vec<Child>, ranks: Option<usize>, keep_all: bool) -> Result<Machine> {
        let stacks = usable_stacks(&mut children, keep_all);
        let memory: Vec<Option<u64>> = stacks.iter().map(|one| one.memory).collect();
        let ranks = ranks.unwrap_or(children.len());
        if ranks == 0 {
            return Err(Error::of_key("ranks", "a whole number from 1", "0"));
        }
        let defaults = Defaults::of_process(&stacks);
        let settings = settings(&host, ranks, speeds(&[stacks]), defaults)?;
        let planner = Planner::new(ranks, 0..ranks, settings, Box::new(move || host.new_base_id()));
        let mut machine = Machine::new(planner, Port::new(Box::new(InProcess::new(ranks))), children);
        machine.limit_shares_by_memory(&memory, keep_all);
        machine.follow_work(host.config(&keys::cluster::SMALL_BYTES).is_none());
        Ok(machine)
    }

    fn capabilities(&mut self) -> Capabilities {
        let ranks = self.machine.port.ranks();
        let Some(child) = self.machine.children.first_mut() else {
            return Capabilities { flags: capability::SERVES, ..Capabilities::default() };
        };
        let mut capabilities = child.capabilities();
        let concurrent = match self.bypass.is_concurrent() && (ranks == 1 || self.may_bypass) {
            true => 0,
            false => capability::CONCURRENT_DATA,
        };
        capabilities.flags &= !concurrent;
        if ranks == 1 {
            return capabilities;
        }
        if self.coordinator.is_some() {
            capabilities.flags |= capability::NO_FORK;
        }
        capabilities.flags &= !(capability::ASYNCHRONOUS
            | capability::RETIRES_BLOCKS
            | capability::EVALUATES
            | capability::IMMEDIATE
            | capability::PREDICTS);
        capabilities.parallelism = capabilities.parallelism.saturating_mul(ranks as u32);
        capabilities
    }

    /// Predictions exist for a single rank only.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        match self.is_single() {
            true => self.machine.children[0].predict(batch, blocks),
            false => Ok(Prediction::default()),
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if let Some(outcome) = self.execute_bypassing(batch, blocks, report) {
            return outcome;
        }
        let order = order(batch, blocks);
        let guard = self.coordinator.as_mut().map(|coordinator| coordinator.send_batch(batch, &order)).transpose()?;
        let shape = match &guard {
            Some(guard) => guard.shape,
            None => self.known_batches.shape(batch, &order),
        };
        if let Some(guard) = &guard {
            self.machine.port.note(&guard.sent);
        }
        let outcome = self.machine.execute(shape, batch, &order);
        self.report(batch);
        let ticket = outcome.map(|()| self.ticket());
        self.open_bypass();
        ticket
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        if self.is_single() {
            return self.machine.children[0].wait(ticket);
        }
        let mut outcome = Ok(());
        while let Some((_, marks)) = self.open.pop_front_if(|(number, _)| *number <= ticket.0) {
            outcome = outcome.and(self.machine.wait(&marks));
        }
        self.count();
        outcome
    }

    fn poll(&mut self, ticket: Ticket) -> Result<bool> {
        if self.is_single() {
            return self.machine.children[0].poll(ticket);
        }
        let last = self.open.iter().rev().find(|(number, _)| *number <= ticket.0);
        last.map_or(Ok(true), |(_, marks)| self.machine.is_done(marks))
    }

    fn map(&mut self, base: &Base, view: Option<&View>, mode: u32) -> Result<*mut u8> {
        self.machine.note_copies(bytes_of(base, view));
        if self.machine.planner.is_adopted(base.id) {
            // Batches that run before the map ends must find the array on rank 0.
            self.gather_to_rank0(base)?;
        }
        let outcome = self.map_base(base, view, mode);
        self.count();
        outcome
    }

    fn unmap(&mut self, base: &Base) -> Result<()> {
        let outcome = self.unmap_base(base);
        self.count();
        outcome
    }

    fn read(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        self.machine.note_copies(bytes_of(base, Some(view)));
        if self.read_directly(base, view, memory)? {
            return Ok(());
        }
        let data = self.map_base(base, Some(view), access::READ)?;
        // SAFETY: the map exposes the view's elements until `unmap`, and `memory` is writable for them and does not
        // overlap, as [`HostMemory::new`] requires.
        unsafe { strided::load(base.dtype(), view, data, memory) };
        self.unmap(base)
    }

    fn write(&mut self, base: &Base, view: &View, memory: &HostMemory) -> Result<()> {
        self.machine.note_copies(bytes_of(base, Some(view)));
        if self.write_directly(base, view, memory)? {
            return Ok(());
        }
        let discard = if view.len() == base.len { access::DISCARD } else { 0 };
        let data = self.map_base(base, Some(view), access::WRITE | discard)?;
        // SAFETY: the map exposes the view's elements until `unmap`, and `memory` is readable for them and does not
        // overlap, as [`HostMemory::new`] requires.
        unsafe { strided::store(base.dtype(), view, data, memory) };
        self.unmap(base)
    }

    fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        let shared = if adoption.mode() == adopt::SHARED { base_flags::PINNED } else { 0 };
        let known = Base { flags: base.flags | shared, ..*base };
        let _guard = self.send_command(&Command::Adopt(known))?;
        let shard = self.machine.planner.adopt(&known);
        self.machine.run_planned()?;
        let outcome = self.machine.children[0].adopt(&shard.base, adoption);
        match &outcome {
            Err(_) => drop(self.machine.planner.arrays.remove(&base.id)),
            Ok(()) => self.machine.know(0, &shard.base),
        }
        outcome
    }

    fn export_data(&mut self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let shard = self.gather_to_rank0(base)?;
        let export = self.machine.children[0].export_data(&shard.base, request)?;
        self.bypass.note_export(export.token, &shard.base);
        Ok(export)
    }

    fn residency(&mut self, base: &Base) -> Result<Residency> {
        let home = self.machine.planner.arrays.get(&base.id).is_some_and(|array| array.cuts.is_first());
        Ok(Residency { host: u32::from(home), ..Residency::default() })
    }

    fn retire(&mut self, base: &Base, action: u32) -> Result<()> {
        let opcode = match action {
            retire::FREE => Opcode::Free,
            retire::DISCARD => Opcode::Discard,
            _ => return Ok(()),
        };
        let mut batch = Batch::default();
        let place = batch.push_base(*base);
        let view = batch.push_view(place, &View::contiguous(&[base.len]).unwrap_or_default());
        batch.push_instr(Instr::new(opcode, &[Operand::view(view)]));
        self.execute(&batch.as_ref(), &[], &mut Report::none()).map(drop)
    }

    fn progress(&mut self) -> Result<()> {
        self.machine.children.first_mut().map_or(Ok(()), Child::progress)
    }

    fn fork(&mut self, moment: u32) -> Result<()> {
        self.machine.fork(moment)
    }

    fn pin(&mut self, base: &Base, pinned: bool) -> Result<()> {
        let shard = self.gather_to_rank0(base)?;
        self.machine.children[0].pin(&shard.base, pinned)
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        if [file_region::READ, file_region::WRITE, call::METHOD].contains(&name) {
            return Ok(!self.is_single());
        }
        let _guard = self.send_command(&Command::Method(name.to_owned(), opcode.0))?;
        self.machine.register_method(name, opcode)
    }

    fn message(&mut self, text: &str) -> Result<String> {
        match text {
            "cluster traffic" => self.traffic(),
            "device memory" if !self.is_single() => {
                let all = self.machine.children.iter_mut().map(|child| {
                    child
                        .message(text)?
                        .trim()
                        .parse::<u64>()
                        .map_err(|_| Error::new(status::UNSUPPORTED, "it uses host memory"))
                });
                Ok(all.sum::<Result<u64>>().map_or(String::new(), |bytes| bytes.to_string()))
            }
            "cluster tune" => Ok(tune::file(&tune::measure(&self.host, &mut self.machine.children)?)),
            "cluster shares" if !self.is_single() => Ok(self.shares()),
            "cluster ranks" => Ok(self.machine.port.ranks().to_string()),
            "cluster brought" => {
                let line = |((file, line, name), count): (&(String, u32, String), &u64)| {
                    format!("{count}\t{name}\t{line}\t{file}")
                };
                Ok(self.brought.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            "cluster interrupted" => {
                if let Some(coordinator) = &self.coordinator {
                    coordinator.end_with(INTERRUPTED);
                }
                Ok(String::new())
            }
            _ if [file_region::COMMAND, called::COMMAND].iter().any(|begin| text.starts_with(begin))
                && !self.is_single() =>
            {
                self.close_bypass();
                let command = Command::Message(text.to_owned());
                let _guard = self.send_command(&command)?;
                self.machine.execute_command(&command)?;
                Ok("for each rank's own elements".into())
            }
            _ => {
                // Settings apply to all ranks; the first rank answers questions.
                let everywhere = ["threads ", "affinity "].iter().any(|command| text.starts_with(command));
                let _guard = if everywhere { self.send_command(&Command::Message(text.to_owned()))? } else { None };
                let children = &mut self.machine.children;
                let mut answers: Vec<String> =
                    children.iter_mut().map(|child| child.message(text)).collect::<Result<_>>()?;
                answers.dedup();
                if text == "info" && !self.is_single() {
                    answers.insert(0, self.shares());
                }
                Ok(answers.join("\n"))
            }
        }
    }
}

impl Cluster {
    /// Is there only one rank? Calls then go straight to its stack.
    fn is_single(&self) -> bool {
        self.machine.port.ranks() == 1
    }

    /// A line with the shares of all ranks, and those for each kind of work.
    fn shares(&self) -> String {
        let ranks = self.machine.port.ranks();
        let shown = |weights: &[f64]| {
            let sum: f64 = weights.iter().sum();
            let share = |rank: usize| weights.get(rank).map_or(100.0 / ranks as f64, |weight| 100.0 * weight / sum);
            let each: Vec<String> = (0..ranks.min(MOST_SHOWN)).map(|rank| format!("{:.1}%", share(rank))).collect();
            each.join(", ") + if ranks > MOST_SHOWN { ", ..." } else { "" }
        };
        let mut text =
            format!("cluster: {ranks} ranks, shares {}", shown(self.machine.planner.settings.weights.as_slice()));
        let kinds = self.machine.shares_by_kind();
        if kinds.iter().any(|(_, shares)| *shares != kinds[0].1) {
            let each: Vec<String> = kinds.iter().map(|(name, shares)| format!("{name} {}", shown(shares))).collect();
            text += &format!("; by kind of work: {}", each.join("; "));
        }
        for (grid, arrays) in self.machine.planner.grids() {
            text += &format!("; {arrays} arrays on a grid of {grid}");
        }
        text
    }

    /// A ticket for the work in progress on this process's ranks.
    fn ticket(&mut self) -> Ticket {
        let Some(marks) = self.machine.begun() else { return Ticket::DONE };
        self.last += 1;
        self.open.push_back((self.last, marks));
        Ticket(self.last)
    }

    /// Sends a command to the other processes. While the guard lives, no other context sends one.
    fn send_command(&mut self, command: &Command) -> Result<Option<CommandGuard>> {
        let guard = self.coordinator.as_mut().map(|coordinator| coordinator.send_command(command)).transpose()?;
        if let Some(guard) = &guard {
            self.machine.port.note(&guard.sent);
        }
        Ok(guard)
    }

    /// The messages and bytes that each rank sent, as JSON.
    fn traffic(&mut self) -> Result<String> {
        let _guard = self.send_command(&Command::Traffic)?;
        let mut sent = self.machine.port.sent().to_vec();
        if self.coordinator.is_some() {
            for rank in self.machine.port.hosted().end..self.machine.port.ranks() {
                let bytes = self.machine.port.receive(0, rank)?;
                let mut reader = Reader(&bytes);
                let mut numbers = [0; 4];
                for number in &mut numbers {
                    *number = reader.number()?;
                }
                sent.push(Traffic::of_numbers(numbers));
            }
        }
        Ok(to_json(sent.into_iter().enumerate()))
    }

    /// Updates the counters, and warns once for each line whose operation has no distributed form.
    fn report(&mut self, batch: &BatchRef<'_>) {
        self.count();
        for index in std::mem::take(&mut self.machine.planner.on_one_rank) {
            self.on_one_rank.add(1);
            let instr = &batch.instrs[index as usize];
            let name = batch.operation_name(instr.opcode);
            let (file, line) = batch.origin(instr).map_or(("", 0), |(file, line)| (file, line));
            let full = self.brought.len() >= MOST_LINES;
            let count = match self.brought.entry((file.to_owned(), line, name.to_owned())) {
                Entry::Vacant(_) if full => continue,
                entry => entry.or_insert(0),
            };
            *count += 1;
            if *count == 1 {
                let place = if file.is_empty() { String::new() } else { format!("{file}:{line}: ") };
                let text =
                    format!("{place}cluster: '{name}' on these arrays is done by one rank, to which they are sent");
                self.host.log(log_level::WARN, &text);
            }
        }
    }

    fn count(&mut self) {
        self.counters.report(&self.machine);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Ranks that cannot receive the command have ended.
        drop(self.send_command(&Command::Close));
    }
}
