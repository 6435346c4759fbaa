//! The cluster: feeds programs to the machine and answers for its arrays on rank 0.

mod configured;
mod data;
pub mod front;
mod mapped;
mod passage;
mod past;

use crate::command::Command;
use crate::command::memory::Memory;
use crate::command::wire::Reader;
use crate::lead::greeting::greeting;
use crate::lead::launch::{MET, connect};
use crate::lead::roster::{Roster, muster, speeds};
use crate::lead::serve::Server;
use crate::lead::{Lead, Turn};
use crate::plan::planner::Planner;
use crate::plan::settings::Settings;
use crate::run::call;
use crate::run::called;
use crate::run::figures::Figures;
use crate::run::machine::Machine;
use crate::run::region;
use crate::run::tune;
use crate::transport::inprocess::InProcess;
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
use configured::{Defaults, description, line, settings};
use mapped::Mapped;
use passage::{Passage, bytes_of, order};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most lines of programs that are remembered for operations of one rank.
const MOST_LINES: usize = 1000;

/// Ranks whose shares are shown, at most.
const MOST_SHOWN: usize = 16;

/// What a process ends with that an interrupt ends, as shells see it.
const INTERRUPTED: i32 = 130;

/// The manager of a cluster.
pub struct Cluster {
    host: Host,
    /// The way to ranks in other processes, if there are any.
    lead: Option<Lead>,
    /// This process is one of the others, and serves.
    server: Option<Server>,
    machine: Machine,
    /// Of batches, where nobody needs to be told of them.
    memory: Memory,
    mapped: HashMap<u64, Mapped>,
    /// The way past the cluster.
    passage: Arc<Passage>,
    /// It may open where one of several children has all.
    passes: bool,
    /// How often operations were brought to one rank, by file, line and name. Each was named in a warning.
    brought: BTreeMap<(String, u32, String), u64>,
    gathered: Counter,
    past: Counter,
    figures: Figures,
    /// What the ranks have begun for the tickets that were given, in their order.
    open: VecDeque<(u64, Vec<u64>)>,
    /// The last ticket.
    last: u64,
}

impl Cluster {
    /// A cluster above these children, and the way past it.
    fn create(host: Host, mut children: Vec<Child>) -> Result<(Cluster, Arc<Passage>)> {
        if children.is_empty() {
            return Err(Error::new(status::INIT, "vem-cluster needs a stack below it"));
        }
        call::note(&host);
        let mut passage = Passage::new(&mut children[0]);
        let remote = connect(&host)?;
        let counted = host.config(&keys::cluster::RANKS).is_some();
        let keep_all = counted || host.config(&keys::cluster::WEIGHTS).is_some();
        let (mut lead, mut server, mut passes) = (None, None, false);
        let mut machine = match remote.filter(|(remote, _)| remote.ranks() > 1) {
            Some((remote, _meeting)) if remote.rank() == 0 => {
                let (line, description) = (line(&host)?, description(&host));
                let means = muster(&mut children, keep_all);
                let greeting = greeting(&line, &description);
                let open = Command::Open(keep_all, description);
                let (leads, roster) = Lead::start(remote, &greeting, &open, &means, |all| {
                    let ranks = all.iter().map(Vec::len).sum();
                    settings(&host, ranks, speeds(all), Defaults::of_processes(all))
                })?;
                lead = Some(leads);
                MET.store(true, Ordering::Release);
                Machine::remote(host, remote, roster, children, keep_all)
            }
            Some((remote, meeting)) => {
                let mine = line(&host).map(|line| greeting(&line, &description(&host)));
                server = Some(Server::new(host, remote, mine, meeting, children));
                MET.store(true, Ordering::Release);
                let (settings, counts) = (Settings::default(remote.ranks()), vec![1; remote.ranks()]);
                let roster = Roster { settings, counts, memory: Vec::new() };
                Machine::remote(host, remote, roster, Vec::new(), true)
            }
            None => {
                let means = muster(&mut children, keep_all);
                let memory: Vec<Option<u64>> = means.iter().map(|one| one.memory).collect();
                // A rank for each sibling below.
                let ranks = if counted { host.setting(&keys::cluster::RANKS)? } else { children.len() };
                if ranks == 0 {
                    return Err(Error::of_key("ranks", "a whole number from 1", "0"));
                }
                let defaults = Defaults::of_process(&means);
                let settings = settings(&host, ranks, speeds(&[means]), defaults)?;
                let planner = Planner::new(ranks, 0..ranks, settings, Box::new(move || host.new_base_id()));
                let mut machine = Machine::new(planner, Port::new(Box::new(InProcess::new(ranks))), children);
                machine.heed_memory(&memory, keep_all);
                machine.heed_work(host.config(&keys::cluster::SMALL_BYTES).is_none());
                if host.setting(&keys::cluster::SIDE_BY_SIDE)? {
                    machine.work_side_by_side();
                    passes = machine.is_of_siblings();
                }
                machine
            }
        };
        if let Some(first) = machine.children.first_mut() {
            passage = Passage::new(first);
        }
        let passage = Arc::new(passage);
        let mut cluster = Cluster {
            host,
            lead,
            server,
            machine,
            memory: Memory::default(),
            mapped: HashMap::new(),
            passage: Arc::clone(&passage),
            passes,
            brought: BTreeMap::new(),
            gathered: host.counter("cluster.operations brought to one rank"),
            past: host.counter("cluster.batches given to one child"),
            figures: Figures::new(&host),
            open: VecDeque::new(),
            last: 0,
        };
        cluster.open_passage();
        Ok((cluster, passage))
    }

    fn capabilities(&mut self) -> Capabilities {
        let ranks = self.machine.port.ranks();
        let Some(child) = self.machine.children.first_mut() else {
            return Capabilities { flags: capability::SERVES, ..Capabilities::default() };
        };
        let mut capabilities = child.capabilities();
        let concurrent = match self.passage.is_concurrent() && (ranks == 1 || self.passes) {
            true => 0,
            false => capability::CONCURRENT_DATA,
        };
        capabilities.flags &= !concurrent;
        if ranks == 1 {
            return capabilities;
        }
        if self.lead.is_some() {
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

    /// Of several ranks nobody knows.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        match self.is_single() {
            true => self.machine.children[0].predict(batch, blocks),
            false => Ok(Prediction::default()),
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if let Some(outcome) = self.go_past(batch, blocks, report) {
            return outcome;
        }
        let order = order(batch, blocks);
        let turn = self.lead.as_mut().map(|lead| lead.tell_execute(batch, &order)).transpose()?;
        let shape = match &turn {
            Some(turn) => turn.shape,
            None => self.memory.shape(batch, &order),
        };
        if let Some(turn) = &turn {
            self.machine.port.note(&turn.sent);
        }
        let outcome = self.machine.execute(shape, batch, &order);
        self.report(batch);
        let ticket = outcome.map(|()| self.ticket());
        self.open_passage();
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
        if self.machine.planner.is_home(base.id) {
            // Batches that come before the map ends must find it there.
            self.bring_home(base)?;
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
        // SAFETY: the map gives the view's elements until `unmap`, and `memory` is writable for them and elsewhere, as
        // [`HostMemory::new`] asks.
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
        // SAFETY: the map gives the view's elements until `unmap`, and `memory` is readable for them and elsewhere, as
        // [`HostMemory::new`] asks.
        unsafe { strided::store(base.dtype(), view, data, memory) };
        self.unmap(base)
    }

    fn adopt(&mut self, base: &Base, adoption: &Adoption) -> Result<()> {
        let shared = if adoption.mode() == adopt::SHARED { base_flags::PINNED } else { 0 };
        let known = Base { flags: base.flags | shared, ..*base };
        let _turn = self.tell(&Command::Adopt(known))?;
        let piece = self.machine.planner.adopted(&known);
        self.machine.settle()?;
        let outcome = self.machine.children[0].adopt(&piece.base, adoption);
        match &outcome {
            Err(_) => drop(self.machine.planner.arrays.remove(&base.id)),
            Ok(()) => self.machine.know(0, &piece.base),
        }
        outcome
    }

    fn export_data(&mut self, base: &Base, request: &ExportRequest) -> Result<Export> {
        let piece = self.bring_home(base)?;
        let export = self.machine.children[0].export_data(&piece.base, request)?;
        self.passage.lent(export.token, &piece.base);
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
        let piece = self.bring_home(base)?;
        self.machine.children[0].pin(&piece.base, pinned)
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        if [region::READ, region::WRITE, call::METHOD].contains(&name) {
            return Ok(!self.is_single());
        }
        let _turn = self.tell(&Command::Method(name.to_owned(), opcode.0))?;
        self.machine.learn(name, opcode)
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
                if let Some(lead) = &self.lead {
                    lead.end_with(INTERRUPTED);
                }
                Ok(String::new())
            }
            _ if [region::COMMAND, called::COMMAND].iter().any(|begin| text.starts_with(begin))
                && !self.is_single() =>
            {
                self.close_passage();
                let command = Command::Message(text.to_owned());
                let _turn = self.tell(&command)?;
                self.machine.obey(&command)?;
                Ok("for each rank's own elements".into())
            }
            _ => {
                // Settings are for all ranks; questions are answered by the first.
                let everywhere = ["threads ", "affinity "].iter().any(|command| text.starts_with(command));
                let _turn = if everywhere { self.tell(&Command::Message(text.to_owned()))? } else { None };
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
    /// Is there one rank only? It works as if there were no cluster.
    fn is_single(&self) -> bool {
        self.machine.port.ranks() == 1
    }

    /// A line about who gets how much, and would get of each kind of work.
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

    /// The ticket of what the ranks of this process have begun.
    fn ticket(&mut self) -> Ticket {
        let Some(marks) = self.machine.begun() else { return Ticket::DONE };
        self.last += 1;
        self.open.push_back((self.last, marks));
        Ticket(self.last)
    }

    /// Tells the other processes what to do; while the turn lasts, no other context does.
    fn tell(&mut self, command: &Command) -> Result<Option<Turn>> {
        let turn = self.lead.as_mut().map(|lead| lead.tell(command)).transpose()?;
        if let Some(turn) = &turn {
            self.machine.port.note(&turn.sent);
        }
        Ok(turn)
    }

    /// What each rank has sent, as JSON.
    fn traffic(&mut self) -> Result<String> {
        let _turn = self.tell(&Command::Traffic)?;
        let mut sent = self.machine.port.sent().to_vec();
        if self.lead.is_some() {
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

    /// Counts what was sent, and warns once of each line whose operation has no distributed form.
    fn report(&mut self, batch: &BatchRef<'_>) {
        self.count();
        for index in std::mem::take(&mut self.machine.planner.gathered) {
            self.gathered.add(1);
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
        self.figures.report(&self.machine);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Ranks that cannot be told any more have ended.
        drop(self.tell(&Command::Close));
    }
}
