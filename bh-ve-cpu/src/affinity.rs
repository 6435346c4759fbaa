//! Which processors the threads of the pool run on.

/// Processor numbers end here: the size of the system's set.
const PROCESSORS: usize = 1024;

/// Which processors the pool's threads may run on. The thread that calls the engine is the program's and stays free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// Left to the system.
    None,
    /// One processor per thread where that helps.
    Auto,
    /// Thread `i` runs on the `i`-th of these processors, counted around.
    List(Vec<usize>),
}

impl Affinity {
    /// Reads "none", "auto", or a list like "0,2,4-7" of processors that this process may use. An error names the mistake.
    pub(crate) fn parse(text: &str) -> Result<Affinity, String> {
        match text.trim() {
            "" | "none" => return Ok(Affinity::None),
            "auto" => return Ok(Affinity::Auto),
            _ => {}
        }
        let mut processors = Vec::new();
        for item in text.split(',').map(str::trim) {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
                (Ok(first), Ok(last)) if first <= last && last < PROCESSORS => first..=last,
                _ => {
                    let wanted = "none, auto, or a list of processor numbers like 0,2,4-7";
                    return Err(format!("'{text}' is not {wanted}: '{item}' is no number or range"));
                }
            };
            for processor in range {
                if processors.contains(&processor) {
                    return Err(format!("'{text}' names processor {processor} twice"));
                }
                processors.push(processor);
            }
        }
        match processors.iter().find(|&&processor| !usable(processor)) {
            Some(processor) => Err(format!("'{text}': this process may not use processor {processor}")),
            None => Ok(Affinity::List(processors)),
        }
    }

    /// The processors for a pool with this many participants in turn; none to leave them to the system.
    pub(crate) fn processors(&self, threads: usize) -> Vec<usize> {
        match self {
            Affinity::None => Vec::new(),
            Affinity::List(processors) => processors.clone(),
            // Threads of one kernel share its data; on few processors the system places them well enough.
            Affinity::Auto => allowed().filter(|all| threads >= 4 && threads == all.len()).unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Affinity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Affinity::None => f.write_str("none"),
            Affinity::Auto => f.write_str("auto"),
            Affinity::List(processors) => {
                let numbers: Vec<String> = processors.iter().map(usize::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

/// Binds the calling thread, the pool's thread number `thread`, to its processor.
pub(crate) fn bind(processors: &[usize], thread: usize) {
    if let Some(&processor) = processors.get(thread % processors.len().max(1)) {
        // The list was checked; a processor that went away since leaves the thread where it was.
        system::restrict(&[processor]);
    }
}

/// The processors that the calling thread may run on, if the system tells.
fn allowed() -> Option<Vec<usize>> {
    system::allowed()
}

/// May threads of this process run on this processor? The calling thread may be bound itself, so it tries.
fn usable(processor: usize) -> bool {
    let Some(before) = allowed() else { return true };
    let usable = system::restrict(&[processor]);
    system::restrict(&before);
    usable
}

#[cfg(target_os = "linux")]
mod system {
    use super::PROCESSORS;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The processors of the calling thread.
    pub(super) fn allowed() -> Option<Vec<usize>> {
        let set = sched_getaffinity(None).ok()?;
        Some((0..PROCESSORS).filter(|&processor| set.is_set(processor)).collect())
    }

    /// Lets the calling thread run on these processors only; refused if none of them is for this process.
    pub(super) fn restrict(processors: &[usize]) -> bool {
        let mut set = CpuSet::new();
        processors.iter().filter(|&&processor| processor < PROCESSORS).for_each(|&processor| set.set(processor));
        sched_setaffinity(None, &set).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn restrict(_: &[usize]) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written() {
        let first = allowed().unwrap()[0];
        for (text, written) in [
            ("none".to_owned(), "none".to_owned()),
            (String::new(), "none".into()),
            (" auto ".into(), "auto".into()),
            (format!(" {first} "), format!("{first}")),
            (format!("{first}-{first}"), format!("{first}")),
        ] {
            assert_eq!(Affinity::parse(&text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn bad_lists_are_refused_with_a_reason() {
        for (text, reason) in [
            ("all", "'all' is no number or range"),
            ("0,", "'' is no number or range"),
            ("3-1", "'3-1' is no number or range"),
            ("-1", "'-1' is no number or range"),
            ("1024", "'1024' is no number or range"),
            ("0-1,1", "names processor 1 twice"),
            ("1023", "this process may not use processor 1023"),
        ] {
            let error = Affinity::parse(text).unwrap_err();
            assert!(error.starts_with(&format!("'{text}'")) && error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn threads_are_bound_in_turn() {
        std::thread::spawn(|| {
            let before = allowed().unwrap();
            bind(&[], 3);
            assert_eq!(allowed().unwrap(), before);
            for thread in [0, 1, before.len()] {
                bind(&before, thread);
                assert_eq!(allowed().unwrap(), [before[thread % before.len()]]);
            }
            // A bound thread can still ask for other processors.
            assert!(before.iter().all(|&processor| usable(processor)));
            assert_eq!(allowed().unwrap().len(), 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn automatic_binding_needs_a_thread_for_each_of_several_processors() {
        let count = allowed().unwrap().len();
        assert!(Affinity::Auto.processors(count + 1).is_empty());
        assert_eq!(Affinity::Auto.processors(count).len(), if count >= 4 { count } else { 0 });
        assert_eq!(Affinity::List(vec![5, 2]).processors(9), [5, 2]);
    }
}
