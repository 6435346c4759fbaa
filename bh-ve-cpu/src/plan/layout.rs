//! Where the line buffers of a sliding window begin. Vectors that lie across two lines of the caches take twice as long to read, and
//! longer to write. Arrays in memory begin where their views say; line buffers may begin anywhere, and so
//! they begin such that, in the nest that writes them, they lie in their lines as the arrays in memory do.

use bh_kernel::{SlotMode, TileNest, TileSlot, Tiling};

/// Bytes of a line.
const LINE: i64 = 64;
/// Shorter rows, in lines, stay as they are.
const SHORT: i64 = 8;

/// Makes the rows of line buffers whole lines long where they need not follow each other. Returns how many bytes behind a
/// line's beginning those of each array begin. Tiles in time have whole lines of the caches already.
pub(super) fn align(window: &mut Tiling) -> Vec<usize> {
    if window.borders.is_none() {
        return vec![0; window.rows.len()];
    }
    for rows in 0..window.rows.len() as u32 {
        lengthen(window, rows);
    }
    let mut begins: Vec<Option<i64>> = vec![None; window.rows.len()];
    for nest in &window.nests {
        let own = &nest.stage.kernel.slots;
        let size = |slot: usize| own[slot].dtype.size() as i64;
        // How far the first element lies behind a line's beginning.
        let place =
            |slot: usize, begin: i64| (begin + nest.stage.parameters.starts[slot] * size(slot)).rem_euclid(LINE);
        let begin = |slot: usize| match nest.slots[slot] {
            TileSlot::Rows(rows) => begins[rows as usize],
            TileSlot::Index => None,
            TileSlot::Base(_) | TileSlot::Fresh(_) | TileSlot::Temporary(_) => Some(0),
        };
        let guide = (0..own.len()).find_map(|slot| Some(place(slot, begin(slot)?)));
        let written = |slot: usize| match nest.slots[slot] {
            TileSlot::Rows(rows) if own[slot].mode == SlotMode::Write && begin(slot).is_none() => {
                // The guide may have shorter elements, which begin anywhere.
                let begin = (guide.unwrap_or(0) - place(slot, 0)).rem_euclid(LINE) / size(slot) * size(slot);
                Some((rows as usize, begin))
            }
            _ => None,
        };
        let written: Vec<(usize, i64)> = (0..own.len()).filter_map(written).collect();
        written.into_iter().for_each(|(rows, begin)| begins[rows] = Some(begin));
    }
    begins.into_iter().map(|begin| begin.unwrap_or(0) as usize).collect()
}

/// Lengthens the rows of an array to whole lines, if its slots allow that.
fn lengthen(window: &mut Tiling, number: u32) {
    let rows = &mut window.rows[number as usize];
    let (pitch, elements, own) = (rows.pitch, LINE / (rows.size as i64).min(LINE), TileSlot::Rows(number));
    let longer = (pitch + elements - 1) / elements * elements;
    let fits = |nest: &TileNest| {
        let mut slots = nest.slots.iter().enumerate().filter(|(_, slot)| **slot == own);
        slots.all(|(slot, _)| nest.stage.parameters.stride(slot)[0] == pitch)
    };
    if !rows.apart || longer == pitch || pitch < SHORT * elements || !window.nests.iter().all(fits) {
        return;
    }
    rows.pitch = longer;
    let joined = window.turns.iter_mut().filter_map(|turn| turn.joined.as_mut());
    for nest in window.nests.iter_mut().chain(joined) {
        let parameters = &mut nest.stage.parameters;
        let rank = parameters.extents.len();
        for slot in (0..nest.slots.len()).filter(|&slot| nest.slots[slot] == own) {
            let (row, column) = (parameters.starts[slot].div_euclid(pitch), parameters.starts[slot].rem_euclid(pitch));
            parameters.starts[slot] = row * longer + column;
            parameters.strides[slot * rank] = longer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text::parse;
    use bh_kernel::{Survey, WindowOptions, windows};

    /// Differences between rows and then of those, of the inside of a grid with rows of `n` elements.
    fn window(n: i64) -> Tiling {
        let (inner, elements) = (n - 2, 100 * n);
        let text = format!(
            "bh batch 1
base b0 = f64[{elements}] id 1 live_out
base b1 = f64[{}] id 2 born dies
base b2 = f64[{elements}] id 3 live_out
view v0 = b0 at 1 [99:{n}, {inner}:1]
view v1 = b0 at {} [99:{n}, {inner}:1]
view v2 = b1 at 0 [99:{inner}, {inner}:1]
view v3 = b1 at 0 [98:{inner}, {inner}:1]
view v4 = b1 at {inner} [98:{inner}, {inner}:1]
view v5 = b2 at {} [98:{n}, {inner}:1]
i0: v2 = subtract v1, v0
i1: v5 = subtract v4, v3
",
            99 * inner,
            n + 1,
            n + 1
        );
        let mut batch = parse(&text).unwrap();
        for index in 0..2 {
            batch.push_block(&[index], &[]);
        }
        windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes: 20_000, stand_ins: true }, &[]).found.remove(0)
    }

    #[test]
    fn buffered_elements_are_aligned_beside_shorter_ones() {
        let text = "bh batch 1
base b0 = u8[10400] id 1 live_out
base b1 = f64[10296] id 2 born dies
base b2 = f64[10192] id 3 live_out
view v0 = b0 at 3 [99:104, 98:1]
view v1 = b1 at 0 [99:104, 98:1]
view v2 = b1 at 0 [98:104, 98:1]
view v3 = b1 at 104 [98:104, 98:1]
view v4 = b2 at 0 [98:104, 98:1]
i0: v1 = copy v0
i1: v4 = subtract v3, v2
";
        let mut batch = parse(text).unwrap();
        for index in 0..2 {
            batch.push_block(&[index], &[]);
        }
        let mut window = windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes: 20_000, stand_ins: true }, &[])
            .found
            .remove(0);
        let begins = align(&mut window);
        // Not 3, as the bytes that it is made of.
        assert_eq!(begins, [0]);
    }

    #[test]
    fn short_rows_follow_each_other() {
        let mut window = window(40);
        let pitches = |window: &Tiling| window.rows.iter().map(|rows| rows.pitch).collect::<Vec<_>>();
        let before = pitches(&window);
        align(&mut window);
        assert_eq!((pitches(&window), before.contains(&38)), (before, true));
    }

    #[test]
    fn line_buffers_lie_in_their_lines_as_those_in_memory() {
        let mut window = window(104);
        let begins = align(&mut window);
        // 102 elements are 13 lines, and the inside of the grid begins at its second column.
        assert_eq!((window.rows[0].pitch, begins[0]), (104, 8));
        let joined = window.turns.iter().filter_map(|turn| turn.joined.as_ref());
        let mut places = Vec::new();
        for nest in window.nests.iter().chain(joined) {
            for slot in 0..nest.slots.len() {
                let begin = if let TileSlot::Rows(rows) = nest.slots[slot] { begins[rows as usize] as i64 } else { 0 };
                assert_eq!(nest.stage.parameters.stride(slot), [104, 1]);
                places.push((begin + 8 * nest.stage.parameters.starts[slot]).rem_euclid(64));
            }
        }
        assert!(places.len() >= 10 && places.iter().all(|&place| place == 8), "{places:?}");
    }
}
