//! Which launches of a batch run as graphs: those with the same memory and constants as some times before. A batch's memory mostly
//! alternates between few places, so that few graphs serve it.

/// Graphs that are kept for a batch, or arguments that may get one.
const MOST: usize = 4;
/// Launches with the same arguments before a graph of them is made.
const WARM: u32 = 2;

/// The arguments that launches had, and how often.
struct Known<G> {
    arguments: Box<[u64]>,
    seen: u32,
    /// The number of the last launch with them.
    used: u64,
    graph: Option<G>,
}

/// The graphs of a batch, by the arguments of its kernels.
pub(crate) struct Graphs<G> {
    known: Vec<Known<G>>,
    launches: u64,
}

impl<G> Graphs<G> {
    pub(crate) fn new() -> Graphs<G> {
        Graphs { known: Vec::new(), launches: 0 }
    }

    /// The graph for launches with these arguments; none if they are to be launched one by one. `make` makes a graph, or none if that
    /// fails, which it is asked once for the same arguments. A graph is only ever given to launches with its own arguments: that of
    /// memory that is gone stays unused until it makes room for another one.
    pub(crate) fn of(&mut self, arguments: &[u64], make: impl FnOnce() -> Option<G>) -> Option<&mut G> {
        self.launches += 1;
        let at = match self.known.iter().position(|known| *known.arguments == *arguments) {
            Some(at) => at,
            None => self.add(arguments),
        };
        let known = &mut self.known[at];
        (known.seen, known.used) = (known.seen.saturating_add(1), self.launches);
        if known.seen == WARM + 1 {
            known.graph = make();
        }
        known.graph.as_mut()
    }

    /// Remembers arguments, in the place of those that were not used for longest.
    fn add(&mut self, arguments: &[u64]) -> usize {
        let new = Known { arguments: arguments.into(), seen: 0, used: 0, graph: None };
        if self.known.len() < MOST {
            self.known.push(new);
            return self.known.len() - 1;
        }
        let oldest = (0..MOST).min_by_key(|&at| self.known[at].used).unwrap_or(0);
        self.known[oldest] = new;
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The launches that ran as graphs. Each graph has the arguments that it was made for.
    fn run(arguments: impl IntoIterator<Item = u64>, made: &mut HashMap<u64, u32>) -> Vec<bool> {
        let mut graphs = Graphs::new();
        let one = |place: u64| {
            let make = || {
                *made.entry(place).or_default() += 1;
                Some(place)
            };
            let graph = graphs.of(&[7, place], make);
            assert!(graph.as_ref().is_none_or(|graph| **graph == place));
            graph.is_some()
        };
        arguments.into_iter().map(one).collect()
    }

    #[test]
    fn launches_with_the_arguments_of_earlier_ones_become_graphs() {
        let mut made = HashMap::new();
        assert_eq!(run([1; 5], &mut made), [false, false, true, true, true]);
        assert_eq!(made, HashMap::from([(1, 1)]));
        let alternating = run((0..12).map(|at| at % 2), &mut made);
        assert_eq!(alternating.iter().filter(|graph| **graph).count(), 8);
    }

    #[test]
    fn memory_that_moves_gets_other_graphs_and_never_that_of_another_place() {
        let mut made = HashMap::new();
        // More places in turn than are kept: nothing becomes a graph.
        assert!(run((0..60).map(|at| at % (MOST as u64 + 1)), &mut made).iter().all(|graph| !graph));
        assert!(run(0..60, &mut made).iter().all(|graph| !graph) && made.is_empty());
        // A place that comes back after others took its room starts anew.
        let places = [vec![1; 4], (2..6).collect(), vec![1; 3]].concat();
        let graphs = run(places, &mut made);
        assert_eq!(graphs, [vec![false, false, true, true], vec![false; 4], vec![false, false, true]].concat());
        assert_eq!(made, HashMap::from([(1, 2)]));
    }

    #[test]
    fn a_graph_that_cannot_be_made_is_tried_once() {
        let (mut graphs, mut tries) = (Graphs::<()>::new(), 0);
        for _ in 0..9 {
            let make = || {
                tries += 1;
                None
            };
            assert!(graphs.of(&[1, 2], make).is_none());
        }
        assert_eq!(tries, 1);
    }
}
