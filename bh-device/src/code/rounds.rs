//! Folds of a group in rounds: those of a round are joined in local memory together, and the next ones take their places, where there
//! is no room for all.

use bh_bytecode::DType;

/// Bytes of local memory for folds at most: every device of NVIDIA gives a group 48 KiB.
const LOCAL: usize = 40 << 10;

/// Which folds are joined together, and where.
pub(super) struct Rounds {
    /// The fold whose memory a fold takes: its own, or that of one of the same type in the first round.
    places: Vec<usize>,
    /// The folds of each round, in order.
    pub(super) each: Vec<Vec<usize>>,
}

impl Rounds {
    /// The rounds of folds of these types, each with so many elements of local memory, of which a group has so many bytes.
    pub(super) fn new(types: &[DType], elements: usize, local_bytes: usize) -> Rounds {
        let room = local_bytes.min(LOCAL);
        if types.iter().map(|dtype| dtype.size() * elements).sum::<usize>() <= room {
            return Rounds::one(types.len());
        }
        // Types share the room evenly.
        let of_type = |dtype: DType| (0..types.len()).filter(move |&number| types[number] == dtype);
        let kinds = (0..types.len()).filter(|&number| of_type(types[number]).next() == Some(number)).count();
        let (mut places, mut each) = (Vec::new(), Vec::new());
        for (number, &dtype) in types.iter().enumerate() {
            let fitting = (room / kinds / (dtype.size() * elements)).max(1);
            let before = of_type(dtype).take_while(|&other| other < number).count();
            places.extend(of_type(dtype).nth(before % fitting));
            each.resize(each.len().max(before / fitting + 1), Vec::new());
            each[before / fitting].push(number);
        }
        Rounds { places, each }
    }

    /// One round of some folds.
    pub(super) fn one(folds: usize) -> Rounds {
        Rounds { places: (0..folds).collect(), each: vec![(0..folds).collect()] }
    }

    /// The fold whose memory a fold takes.
    pub(super) fn place(&self, fold: usize) -> usize {
        self.places[fold]
    }

    /// The folds with memory of their own.
    pub(super) fn owners(&self) -> impl Iterator<Item = usize> {
        (0..self.places.len()).filter(|&fold| self.places[fold] == fold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_round_takes_more_than_there_is_and_each_fold_has_its_turn() {
        for count in [1, 10, 40, 41, 250] {
            for pattern in [&[DType::F32][..], &[DType::F64, DType::I32], &[DType::C128, DType::Bool, DType::F32]] {
                let types: Vec<DType> = pattern.iter().copied().cycle().take(count).collect();
                let rounds = Rounds::new(&types, 256, 48 << 10);
                let taken: usize = rounds.owners().map(|fold| types[fold].size() * 256).sum();
                assert!(taken <= LOCAL, "{count}: {taken}");
                let mut all: Vec<usize> = rounds.each.concat();
                all.sort();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
                for round in &rounds.each {
                    let mut places: Vec<usize> = round.iter().map(|&fold| rounds.place(fold)).collect();
                    assert!(round.iter().all(|&fold| types[fold] == types[rounds.place(fold)]));
                    places.sort();
                    places.dedup();
                    assert_eq!(places.len(), round.len());
                }
            }
        }
        assert_eq!(Rounds::new(&[DType::F32; 40], 256, 48 << 10).each.len(), 1);
        assert_eq!(Rounds::new(&[DType::F32; 41], 256, 48 << 10).each.len(), 2);
    }
}
