//! The component: which blocks it takes, their plans, and what it says of itself.

use crate::arrays::Arrays;
use crate::company::{Alone, Company};
use crate::counters::Counters;
use crate::device;
use crate::driver::{Libraries, Platform};
use crate::explain::explain;
use crate::launch::Launcher;
use crate::offers::Exchange;
use crate::running::{Notes, Open, PLANS, open};
use crate::settings::Settings;
use crate::shared::Service;
use crate::timing::Timing;
use crate::whereabouts::{Verdict, Whereabouts};
use bh_bytecode::{Batch, BatchRef, Cache, Opcode};
use bh_core::abi::{Capabilities, Prediction, capability, kind, log_level, status};
use bh_core::component::SharedCalls;
use bh_core::config::Row;
use bh_core::{Child, Component, Error, Host, Registry, Report, Result, Ticket};
use std::marker::PhantomData;
use std::sync::Arc;

/// The engine on a driver's devices.
pub struct Engine<P> {
    platform: PhantomData<P>,
    host: Host,
    child: Option<Child>,
    settings: Settings,
    /// Without a device, everything goes to the next engine.
    device: Option<Open>,
    /// Why there is no device.
    absent: String,
    counters: Counters,
    /// Serves the program's requests for device memory.
    service: Arc<Service>,
    whereabouts: Whereabouts,
    /// Little blocks of the last batch that run where others do.
    company: Company,
    /// Elements that it passes to other engines of the process.
    exchange: Exchange,
}

// SAFETY: all that it is given lies in it; the threads that build kernels have no part of that, and end with it.
unsafe impl<P: Platform> Component for Engine<P> {
    const NAME: &'static str = P::NAME;
    const KIND: u32 = kind::ENGINE;
    const KEYS: &'static [Row] = P::KEYS;
    const SHARED: bool = true;

    fn create(host: Host, children: Vec<Child>) -> Result<Engine<P>> {
        let settings = Settings::read(&host, P::NAME)?;
        let child = children.into_iter().next();
        let opened = open::<P>(&host, &settings);
        let (device, absent) = match (opened, &child) {
            (Ok(device), _) => (Some(device), String::new()),
            (Err(error), Some(_)) if error.status == status::DEVICE && settings.device.is_none() => {
                host.log(log_level::WARN, &format!("{}; the next engine takes over", error.text));
                (None, error.text)
            }
            (Err(error), _) => return Err(Error { status: status::INIT, ..error }),
        };
        let counters = Counters::new(&host);
        let service = Arc::new(Service::new(device.as_ref().map(|device| device.pool.clone()), P::MEMORY));
        let (whereabouts, company, exchange) = Default::default();
        Ok(Engine {
            platform: PhantomData,
            host,
            child,
            settings,
            device,
            absent,
            counters,
            service,
            whereabouts,
            company,
            exchange,
        })
    }

    fn shared(&self) -> Option<Arc<dyn SharedCalls>> {
        Some(self.service.clone())
    }

    fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    fn capabilities(&mut self) -> Capabilities {
        let below = self.child.as_mut().map_or_else(Capabilities::default, |child| child.capabilities());
        let Some(device) = &self.device else {
            // Calls from other threads come to this engine, which has nothing for them.
            let flags = below.flags & !(capability::CONCURRENT_DATA | capability::EVALUATES | capability::IMMEDIATE);
            return Capabilities { flags, ..below };
        };
        // Operations on little arrays in host memory are the next engine's, which the host asks after this one.
        let at_once = if self.settings.little.at_once { capability::EVALUATES | capability::IMMEDIATE } else { 0 };
        Capabilities {
            flags: below.flags & at_once
                | capability::RETIRES_BLOCKS
                | capability::NO_FORK
                | capability::RENAMES
                | capability::ACQUIRES_FIRST
                | capability::CONCURRENT_DATA,
            parallelism: device.pool.gpu.facts.units as u32,
            bandwidth: 1e12,
            launch_seconds: 6e-6,
            ..Capabilities::default()
        }
    }

    fn bind(&mut self, registry: Registry) -> Result<()> {
        if let Some(device) = &mut self.device {
            let arrays = Arrays::new(registry, device.pool.clone(), self.service.held.clone(), &self.host);
            self.service.bind(arrays.space());
            let timing = Timing::new(self.host, self.settings.times);
            device.launcher = Some(Launcher::new(arrays, timing));
        }
        self.child.as_mut().map_or(Ok(()), |child| child.bind(registry))
    }

    fn supports(&mut self, batch: &BatchRef<'_>, block: u32) -> bool {
        let (Some(device), true) = (&mut self.device, (block as usize) < batch.blocks.len()) else { return false };
        if self.company.is_part_of_sent(batch, block) {
            return false;
        }
        if self.company.is_whole(batch, block, || device.runs_whole(batch, self.child.is_some())) {
            return true;
        }
        let alone = |block: u32| Alone::new(device, batch, block, &self.settings, self.child.is_some());
        let place = match alone(block) {
            Alone::Managing | Alone::Device => return true,
            Alone::Little if self.company.joins(batch, block, alone) => return true,
            Alone::Little => {
                self.company.send(batch, block);
                device.stays(batch, block, &self.settings);
                Verdict::TooSmall
            }
            Alone::Refused(place) => place,
        };
        if self.child.is_some() && self.service.held.is_used(batch, block) {
            // The next engine gets it from here, so that the program finds the results in its memory.
            return true;
        }
        self.counters.count(place);
        self.whereabouts.note(batch, block, place);
        false
    }

    fn extmethod(&mut self, name: &str, opcode: Opcode) -> Result<bool> {
        let own = self.device.as_mut().is_some_and(|device| {
            // A number that means something else now may be in plans.
            device.plans = Cache::new(PLANS);
            device.methods.announce(name, opcode)
        });
        Ok(own)
    }

    /// Answers `devices`, `device count`, `device memory`, `device speed`, `device id` with its name and the driver's number of its device, `where`, `explain FILE` and `extmethod-library COMPONENT
    /// NAME FILE`; passes elements to other engines of the process at `offer WAY PLACES`, `take OFFER PLACES`, `tell OFFER` and
    /// `withdraw OFFER`, see [`Exchange`]; adds its device to `info`, waits at `finish building` for kernels that are built beside
    /// the program, and passes everything else on.
    fn message(&mut self, text: &str) -> Result<String> {
        let below =
            |engine: &mut Engine<P>| engine.child.as_mut().map_or(Ok(String::new()), |child| child.message(text));
        match text {
            "devices" => Ok(match P::devices().map(device::numbered) {
                Ok(all) => all.iter().enumerate().map(|(index, facts)| format!("{index}: {facts}\n")).collect(),
                Err(error) => error.text,
            }),
            "device count" => {
                let devices = P::devices().map(device::numbered).unwrap_or_default();
                Ok(device::count(&devices, self.settings.device.as_deref()).to_string())
            }
            "device memory" => match &self.device {
                Some(device) if !device.pool.gpu.is_lost() => Ok(device.pool.limit.to_string()),
                _ => below(self),
            },
            "device id" => match &self.device {
                Some(device) => Ok(format!("{} {}", P::NAME, device.pool.gpu.facts.id)),
                None => below(self),
            },
            "device speed" => match &self.device {
                Some(device) => Ok(device.pool.gpu.facts.speed().to_string()),
                None => below(self),
            },
            "info" => {
                let own = match &self.device {
                    Some(device) => {
                        let (used, free) = device.pool.bytes();
                        let own = format!(
                            "{} device {}: {}; {used} bytes in use, {free} kept, at most {}",
                            P::TITLE,
                            device.pool.gpu.facts.number,
                            device.pool.gpu.facts,
                            device.pool.limit
                        );
                        let libraries = device.pool.gpu.driver.libraries().map_or(Vec::new(), Libraries::told);
                        [&[own], &libraries[..]].concat().join("\n")
                    }
                    None => format!("{} device: none ({})", P::TITLE, self.absent),
                };
                let below = below(self)?;
                Ok(if below.is_empty() { own } else { format!("{own}\n{below}") })
            }
            "where" => Ok(self.whereabouts.to_string() + &below(self)?),
            "finish building" => {
                if let Some(device) = &self.device {
                    device.pool.programs.finish_building();
                }
                below(self)
            }
            "exiting" => {
                if let Some(device) = &self.device {
                    device.pool.programs.close();
                }
                below(self)
            }
            _ => {
                if let Some(answer) = self.exchanges(text) {
                    return answer;
                }
                if let (Some(file), Some(device)) = (text.strip_prefix("explain "), &self.device) {
                    return explain(device, &self.settings, self.child.is_some(), file);
                }
                let mut words = text.splitn(4, ' ');
                if let (Some("extmethod-library"), Some(component), Some(name), Some(file)) =
                    (words.next(), words.next(), words.next(), words.next())
                    && let Some(device) = &mut self.device
                {
                    if component == Self::NAME {
                        return device.methods.load(name, file).map(|()| format!("loaded {name}"));
                    }
                    device.methods.leave(name);
                }
                below(self)
            }
        }
    }

    fn execute(&mut self, batch: &BatchRef<'_>, blocks: &[u32], report: &mut Report) -> Result<Ticket> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.execute(&whole.as_ref(), &[], report);
        }
        let Engine { device, child, settings, counters, whereabouts, .. } = self;
        let Some(device) = device else {
            let name = Self::NAME;
            return match child {
                Some(child) => child.execute(batch, blocks, report),
                None => Err(Error::new(status::UNSUPPORTED, format!("{name} has no device and no child"))),
            };
        };
        let all = if blocks.is_empty() { batch.blocks.len() } else { 0 };
        let blocks: Vec<u32> = (0..all as u32).chain(blocks.iter().copied()).collect();
        let notes = Notes { settings, counters, whereabouts };
        device.execute(batch, &blocks, child.as_mut(), notes, report)?;
        device.ticket()
    }

    /// The most bytes of the device's memory, which is not the registry's.
    fn predict(&mut self, batch: &BatchRef<'_>, blocks: &[u32]) -> Result<Prediction> {
        if batch.blocks.is_empty() && !batch.instrs.is_empty() {
            let whole = with_blocks(batch);
            return self.predict(&whole.as_ref(), &[]);
        }
        let Some(device) = &mut self.device else {
            return self.child.as_mut().map_or_else(|| Ok(Prediction::default()), |child| child.predict(batch, blocks));
        };
        let all = if blocks.is_empty() { batch.blocks.len() } else { 0 };
        let blocks: Vec<u32> = (0..all as u32).chain(blocks.iter().copied()).collect();
        let peak_bytes = device.foretell(batch, &blocks, self.child.is_some());
        Ok(Prediction { peak_bytes, ..Prediction::default() })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<()> {
        match (&mut self.device, &mut self.child) {
            (Some(device), _) => device.wait(ticket.0, &self.counters),
            (None, Some(child)) => child.wait(ticket),
            (None, None) => Ok(()),
        }
    }

    fn poll(&mut self, ticket: Ticket) -> Result<bool> {
        match (&mut self.device, &mut self.child) {
            (Some(device), _) => Ok(device.is_done(ticket.0)),
            (None, Some(child)) => child.poll(ticket),
            (None, None) => Ok(true),
        }
    }
}

impl<P: Platform> Engine<P> {
    /// Answers messages about offers of elements; none for other messages.
    fn exchanges(&mut self, text: &str) -> Option<Result<String>> {
        let launcher = self.device.as_mut()?.launcher.as_mut()?;
        let (word, rest) = text.split_once(' ')?;
        Some(match word {
            "offer" => self.exchange.offer(P::NAME, launcher, rest),
            "take" => self.exchange.take(P::NAME, launcher, rest),
            "tell" => Exchange::tell(P::NAME, rest),
            "withdraw" => Exchange::withdraw(P::NAME, rest),
            _ => return None,
        })
    }
}

/// The batch with one block per instruction.
fn with_blocks(batch: &BatchRef<'_>) -> Batch {
    let mut whole = batch.to_owned();
    for index in 0..batch.instrs.len() as u32 {
        whole.push_block(&[index], &[]);
    }
    whole
}
